//! `package.json`.

use serde_json::Value;

use super::{Manifest, paths};

/// Parses a `package.json` of a package or a workspace.
pub fn read(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "npm");
    let Ok(json) = serde_json::from_str::<Value>(content) else { return manifest };
    let text = |key: &str| json[key].as_str().filter(|t| !t.is_empty()).map(str::to_owned);
    let dir = paths::folder(path);
    manifest.name = text("name");
    manifest.description = text("description");
    let name = manifest
        .name
        .clone()
        .unwrap_or_else(|| if dir.is_empty() { "the root".into() } else { dir.into() });
    bins(&mut manifest, &json, dir, &name);
    let published = text("main").or_else(|| text("module")).or_else(|| exported(&json["exports"]));
    let promised = published.is_some();
    let main = published.unwrap_or_else(|| "index.js".into());
    let reason = if promised {
        format!("main module of package {name}")
    } else {
        format!("default module of package {name}")
    };
    manifest.start(sources(dir, &main), "library", reason, promised && !built(&main));
    scripts(&mut manifest, &json["scripts"], dir, &name);
    manifest
}

fn bins(manifest: &mut Manifest, json: &Value, dir: &str, name: &str) {
    if let Some(bin) = json["bin"].as_str() {
        manifest.start(
            sources(dir, bin),
            "manifest",
            format!("command '{name}' (bin)"),
            !built(bin),
        );
    }
    for (command, file) in json["bin"].as_object().into_iter().flatten() {
        if let Some(file) = file.as_str() {
            manifest.start(
                sources(dir, file),
                "manifest",
                format!("command '{command}' (bin)"),
                !built(file),
            );
        }
    }
}

/// Returns the first file that `exports` refers to.
fn exported(exports: &Value) -> Option<String> {
    match exports {
        Value::String(file) => Some(file.clone()),
        Value::Object(map) => [".", "import", "default", "node", "require"]
            .iter()
            .find_map(|key| exported(map.get(*key)?)),
        Value::Array(list) => list.iter().find_map(exported),
        _ => None,
    }
}

/// Returns true for a path of build output, which a repository does not contain.
fn built(file: &str) -> bool {
    paths::parts(file)
        .any(|p| ["dist", "build", "out", "lib-cjs", "lib-esm", "esm", "cjs"].contains(&p))
}

/// Returns the sources that a published path may correspond to.
fn sources(dir: &str, file: &str) -> Vec<Option<String>> {
    let mut all = vec![paths::join(dir, file)];
    let stem = file
        .trim_end_matches(".d.ts")
        .trim_end_matches(".js")
        .trim_end_matches(".mjs")
        .trim_end_matches(".cjs");
    for ending in [".js", ".ts", ".mjs", ".tsx", "/index.js", "/index.ts"] {
        all.push(paths::join(dir, &format!("{stem}{ending}")));
    }
    if built(file) {
        // The tree of the sources is often that of the output.
        let is_output = |part: &&str| built(part);
        let source: Vec<&str> =
            paths::parts(stem).map(|part| if is_output(&part) { "src" } else { part }).collect();
        let source = source.join("/");
        all.extend(["ts", "tsx", "js", "mjs"].map(|e| paths::join(dir, &format!("{source}.{e}"))));
        let base = paths::file_name(stem);
        for base in [base, "index"] {
            all.extend(
                ["ts", "tsx", "js", "mjs"].map(|e| paths::join(dir, &format!("src/{base}.{e}"))),
            );
            all.extend(["ts", "js"].map(|e| paths::join(dir, &format!("{base}.{e}"))));
        }
    }
    all
}

fn scripts(manifest: &mut Manifest, scripts: &Value, dir: &str, name: &str) {
    for (script, line) in scripts.as_object().into_iter().flatten() {
        let Some(line) = line.as_str() else { continue };
        let runs = ["start", "dev", "serve"].contains(&script.as_str());
        if runs && let Some(file) = started_file(line) {
            manifest.start(
                sources(dir, file),
                "manifest",
                format!("script '{script}' of {name}: {line}"),
                false,
            );
        }
        if !dir.is_empty() {
            continue;
        }
        // The package manager is filled in later, where the lock files are known.
        let run = format!("npm run {script}");
        match script.as_str() {
            "build" | "compile" => manifest.build.push(run),
            "test" if !line.contains("no test specified") => manifest.test.push("npm test".into()),
            _ if script.starts_with("test:") && manifest.test.len() < 3 => manifest.test.push(run),
            "start" | "dev" | "serve" => manifest.run.push(run),
            "lint" | "typecheck" | "check" | "check-types" => manifest.lint.push(run),
            "format" | "fmt" | "prettier" | "lint:fix" | "lint-fix" => manifest.format.push(run),
            _ => {}
        }
    }
    if dir.is_empty() {
        manifest.build.insert(0, "npm install".into());
    }
}

/// Returns the file that `node x.js`, `ts-node x.ts`, `nodemon x` and similar commands start.
fn started_file(line: &str) -> Option<&str> {
    let mut words = line
        .split_whitespace()
        .skip_while(|w| !["node", "ts-node", "nodemon", "tsx", "bun", "deno"].contains(w))
        .skip(1);
    words.find(|w| !w.starts_with('-') && w.contains(['.', '/']) && !w.contains('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_main_bins_and_scripts() {
        let m = read(
            "package.json",
            r#"{"name":"x","main":"dist/index.js","bin":{"x":"./bin/x.js"},"scripts":{"start":"node --inspect server.js","test":"mocha"}}"#,
        );
        assert!(m.starts[0].candidates.contains(&"bin/x.js".into()));
        assert!(m.starts[1].candidates.contains(&"src/index.ts".into()));
        assert!(m.starts[2].candidates.contains(&"server.js".into()));
        assert_eq!(m.test, ["npm test"]);
        let m = read("a/package.json", r#"{"exports":{".":{"import":"./src/mod.js"}}}"#);
        assert!(m.starts[0].candidates.contains(&"a/src/mod.js".into()));
        assert!(read("package.json", "{").starts.is_empty());
    }
}
