//! Go modules and the builds of C and C++.

use regex::Regex;

use super::{Manifest, paths};

/// Parses a `go.mod` of Go.
pub fn go_mod(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "go");
    manifest.name =
        content.lines().find_map(|l| l.strip_prefix("module ")).map(|m| m.trim().to_owned());
    let dir = paths::folder(path);
    if let Some(name) = manifest.name.clone() {
        // The package of the module's own folder, by the file with its name; a version suffix is no
        // name.
        let version = |part: &str| part.strip_prefix('v').is_some_and(|v| v.parse::<u32>().is_ok());
        let last = name.rsplit('/').find(|part| !version(part)).unwrap_or(&name);
        let bare = last.trim_start_matches("go-").trim_end_matches("-go").trim_end_matches(".go");
        let files = [last, bare, "doc", "lib"].map(|stem| paths::join(dir, &format!("{stem}.go")));
        manifest.start(files.into(), "library", format!("import {name}"), false);
    }
    if dir.is_empty() {
        manifest.build.push("go build ./...".into());
        manifest.test.push("go test ./...".into());
    }
    manifest
}

/// Reads a CMake project: its name and the sources of its programs.
pub fn cmake(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "cmake");
    let dir = paths::folder(path);
    let first =
        |pattern: &str| Regex::new(pattern).ok()?.captures(content).map(|hit| hit[1].to_owned());
    manifest.name = first(r"(?im)^\s*project\s*\(\s*([\w.-]+)");
    manifest.description = first(r#"(?is)project\s*\([^)]*DESCRIPTION\s+"([^"]+)""#);
    if let Ok(pattern) = Regex::new(r"(?is)add_executable\s*\(\s*([\w.+-]+)\s+([^)]*)\)") {
        for hit in pattern.captures_iter(content).take(20) {
            let sources: Vec<&str> = hit[2]
                .split_whitespace()
                .filter(|w| [".c", ".cc", ".cpp", ".cxx"].iter().any(|e| w.ends_with(e)))
                .collect();
            let mains = sources.iter().filter(|s| s.contains("main")).chain(&sources);
            let candidates =
                mains.filter(|s| !s.contains('$')).map(|s| paths::join(dir, s)).collect();
            manifest.start(
                candidates,
                "manifest",
                format!("program '{}' (add_executable)", &hit[1]),
                false,
            );
        }
    }
    if dir.is_empty() {
        manifest.build.push("cmake -B build && cmake --build build".into());
        if content.to_lowercase().contains("enable_testing") || content.contains("CTest") {
            manifest.test.push("ctest --test-dir build".into());
        }
    }
    manifest
}

/// Reads the targets of a makefile.
pub fn make(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "make");
    if !paths::folder(path).is_empty() {
        return manifest;
    }
    let targets: Vec<&str> = content
        .lines()
        .filter(|l| !l.starts_with(['\t', ' ', '#', '.']))
        .filter_map(|l| l.split_once(':').filter(|(_, rest)| !rest.starts_with('=')))
        .flat_map(|(names, _)| names.split_whitespace())
        .collect();
    let has = |name: &str| targets.contains(&name);
    manifest.build.push(if has("build") && !has("all") { "make build" } else { "make" }.into());
    manifest.test.extend(
        ["test", "check", "tests"]
            .into_iter()
            .filter(|t| has(t))
            .take(1)
            .map(|t| format!("make {t}")),
    );
    let target =
        |names: &[&str]| names.iter().find(|name| has(name)).map(|name| format!("make {name}"));
    manifest.lint.extend(target(&["lint", "verify", "checksrc", "vet"]));
    manifest.format.extend(target(&["format", "fmt", "fix"]));
    manifest.run.extend(
        ["run", "serve", "start"]
            .into_iter()
            .filter(|t| has(t))
            .take(1)
            .map(|t| format!("make {t}")),
    );
    manifest
}

/// Reads a Meson project.
pub fn meson(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "meson");
    let dir = paths::folder(path);
    let programs = Regex::new(r#"executable\(\s*'([\w.+-]+)'\s*,\s*'([\w./+-]+)'"#);
    for hit in programs.iter().flat_map(|p| p.captures_iter(content)).take(20) {
        manifest.start(
            vec![paths::join(dir, &hit[2])],
            "manifest",
            format!("program '{}' (executable)", &hit[1]),
            false,
        );
    }
    if dir.is_empty() {
        let name = Regex::new(r"project\(\s*'([^']+)'")
            .ok()
            .and_then(|p| p.captures(content).map(|hit| hit[1].to_owned()));
        manifest.name = name;
        manifest.build.push("meson setup build && ninja -C build".into());
        manifest.test.push("meson test -C build".into());
    }
    manifest
}

/// Reads an Autotools project.
pub fn autotools(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "autotools");
    if paths::folder(path).is_empty() {
        let name = Regex::new(r"AC_INIT\(\s*\[?([^\],)]+)")
            .ok()
            .and_then(|p| p.captures(content).map(|hit| hit[1].trim().to_owned()));
        manifest.name = name;
        manifest.build.push("autoreconf -i && ./configure && make".into());
        manifest.test.push("make check".into());
    }
    manifest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_cmake_programs_and_make_targets() {
        let m =
            cmake("src/CMakeLists.txt", "project(x C)\nadd_executable(prog util.c main.c ${MORE})");
        assert_eq!(m.starts[0].candidates[0], "src/main.c");
        let m = make("Makefile", "CC := cc\nall: prog\n\ttrue\ntest: all\nrun:\n.PHONY: x");
        assert_eq!(
            (m.build, m.test, m.run),
            (vec!["make".to_owned()], vec!["make test".to_owned()], vec!["make run".to_owned()])
        );
        let m = go_mod("sub/go.mod", "module example.org/go-x/v2\n\ngo 1.22");
        assert_eq!(m.name.as_deref(), Some("example.org/go-x/v2"));
        assert_eq!(m.starts[0].candidates, ["sub/go-x.go", "sub/x.go", "sub/doc.go", "sub/lib.go"]);
    }
}
