//! `Cargo.toml`.

use toml::{Table, Value};

use super::{Manifest, paths};

fn text(table: &Table, key: &str) -> Option<String> {
    table.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// Parses a `Cargo.toml` of a package or a workspace.
pub fn read(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "cargo");
    let Ok(table) = content.parse::<Table>() else { return manifest };
    let dir = paths::folder(path);
    let root = dir.is_empty();
    if root {
        manifest.build.push("cargo build".into());
        let workspace = table.contains_key("workspace");
        manifest.test.push(if workspace { "cargo test --workspace" } else { "cargo test" }.into());
    }
    let Some(package) = table.get("package").and_then(Value::as_table) else { return manifest };
    manifest.name = text(package, "name");
    manifest.description = text(package, "description");
    let name = manifest.name.clone().unwrap_or_default();
    let path_of = |rel: &str| paths::join(dir, rel);
    let mut listed = Vec::new();
    for bin in
        table.get("bin").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table)
    {
        let bin_name = text(bin, "name").unwrap_or_default();
        let given = text(bin, "path").and_then(|p| path_of(&p));
        let guesses = [
            path_of("src/main.rs").filter(|_| bin_name == name),
            path_of(&format!("src/bin/{bin_name}.rs")),
            path_of(&format!("src/bin/{bin_name}/main.rs")),
            path_of("src/main.rs"),
        ];
        let candidates: Vec<Option<String>> =
            if given.is_some() { vec![given] } else { guesses.into() };
        listed.push(bin_name.clone());
        manifest.start(
            candidates,
            "manifest",
            format!("binary '{bin_name}' of package {name} ([[bin]])"),
            true,
        );
    }
    if listed.is_empty() {
        manifest.start(
            vec![path_of("src/main.rs")],
            "manifest",
            format!("binary of package {name} (src/main.rs)"),
            false,
        );
    }
    if package.get("default-run").is_some() || !listed.is_empty() {
        let run =
            text(package, "default-run").or_else(|| listed.first().cloned()).unwrap_or_default();
        let run = if root {
            format!("cargo run --bin {run}")
        } else {
            format!("cargo run -p {name} --bin {run}")
        };
        manifest.run.push(run);
    }
    let lib = table
        .get("lib")
        .and_then(Value::as_table)
        .and_then(|l| text(l, "path"))
        .unwrap_or("src/lib.rs".into());
    let library = if table.get("lib").and_then(|l| l.get("proc-macro")).is_some() {
        "procedural macros"
    } else {
        "library"
    };
    manifest.start(vec![path_of(&lib)], "library", format!("{library} of package {name}"), false);
    manifest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_binaries_and_libraries() {
        let text =
            "[package]\nname='a'\ndescription='d'\n[[bin]]\nname='rg'\npath='crates/core/main.rs'";
        let m = read("Cargo.toml", text);
        assert_eq!(m.starts[0].candidates, ["crates/core/main.rs"]);
        assert_eq!(m.run, ["cargo run --bin rg"]);
        let m = read("x/Cargo.toml", "[package]\nname='a'");
        assert_eq!(m.starts[0].candidates, ["x/src/main.rs"]);
        assert_eq!(
            (m.starts[1].kind, m.starts[1].candidates[0].as_str()),
            ("library", "x/src/lib.rs")
        );
        assert!(read("Cargo.toml", "not [ toml").starts.is_empty());
    }
}
