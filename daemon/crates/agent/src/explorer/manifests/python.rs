//! `pyproject.toml`, `setup.py`, `setup.cfg`.

use regex::Regex;
use toml::{Table, Value};

use super::{Manifest, paths, quoted};

fn at<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let value = table.get(*first)?;
    if rest.is_empty() { Some(value) } else { at(value.as_table()?, rest) }
}

/// Parses a `pyproject.toml` of Python.
pub fn pyproject(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "python");
    let Ok(table) = content.parse::<Table>() else { return manifest };
    let dir = paths::folder(path);
    let text = |path: &[&str]| at(&table, path).and_then(Value::as_str).map(str::to_owned);
    manifest.name = text(&["project", "name"]).or_else(|| text(&["tool", "poetry", "name"]));
    manifest.description =
        text(&["project", "description"]).or_else(|| text(&["tool", "poetry", "description"]));
    for (key_path, what) in [
        (&["project", "scripts"][..], "command"),
        (&["project", "gui-scripts"], "command"),
        (&["tool", "poetry", "scripts"], "command"),
    ] {
        for (command, target) in
            at(&table, key_path).and_then(Value::as_table).into_iter().flatten()
        {
            if let Some(target) = target.as_str() {
                script(&mut manifest, dir, command, target, what);
            }
        }
    }
    package(&mut manifest, dir);
    if dir.is_empty() {
        manifest.build.push("pip install -e .".into());
        if content.contains("pytest") {
            manifest.test.push("pytest".into());
        }
    }
    manifest
}

/// Reads `setup.py` or `setup.cfg`.
pub fn setup(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "python");
    let dir = paths::folder(path);
    let value = |key: &str| {
        let line = content
            .lines()
            .map(str::trim)
            .find(|l| l.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('=')))?;
        let value = line.split_once('=')?.1.trim();
        let plain = quoted(value).unwrap_or(value).trim_matches(',');
        (!plain.is_empty() && !plain.contains(['(', '['])).then(|| plain.to_owned())
    };
    manifest.name = value("name");
    manifest.description = value("description").filter(|d| !d.starts_with("file:"));
    if let Ok(commands) = Regex::new(r#"(?m)^\s*['"]?([\w.-]+)\s*=\s*([\w.]+:[\w.]+)['"]?"#) {
        let listed = content.find("console_scripts").map_or("", |start| &content[start..]);
        for hit in commands.captures_iter(listed).take(20) {
            script(&mut manifest, dir, &hit[1], &hit[2], "command");
        }
    }
    package(&mut manifest, dir);
    if dir.is_empty() {
        manifest.build.push("pip install -e .".into());
    }
    manifest
}

/// Adds the script `name = "package.module:function"`.
fn script(manifest: &mut Manifest, dir: &str, command: &str, target: &str, what: &str) {
    let module = target.split([':', '[']).next().unwrap_or(target).trim().replace('.', "/");
    let mut candidates = Vec::new();
    for base in ["", "src/", "lib/", "python/"] {
        candidates.push(paths::join(dir, &format!("{base}{module}.py")));
        candidates.push(paths::join(dir, &format!("{base}{module}/__init__.py")));
    }
    manifest.start(candidates, "manifest", format!("{what} '{command}' = {target}"), true);
    if dir.is_empty() {
        manifest.run.push(command.to_owned());
    }
}

/// Adds the package itself: its `__main__.py`, then its `__init__.py`.
fn package(manifest: &mut Manifest, dir: &str) {
    let Some(name) = manifest.name.clone() else { return };
    let spellings = [
        name.replace(['-', '.'], "_").to_lowercase(),
        name.to_lowercase(),
        name.replace(['-', '.'], "").to_lowercase(),
    ];
    let candidates_for = |file: &str| -> Vec<Option<String>> {
        let bases = ["src/", "", "lib/"];
        spellings
            .iter()
            .flat_map(|s| bases.map(|b| paths::join(dir, &format!("{b}{s}/{file}"))))
            .collect()
    };
    let module = spellings[0].clone();
    manifest.start(candidates_for("__main__.py"), "manifest", format!("python -m {module}"), false);
    let mut library = candidates_for("__init__.py");
    library.extend(["src/", ""].map(|b| paths::join(dir, &format!("{b}{module}.py"))));
    manifest.start(library, "library", format!("import {module}"), false);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_resolve_to_modules() {
        let m = pyproject(
            "pyproject.toml",
            "[project]\nname='Flask'\n[project.scripts]\nflask='flask.cli:main'\n[tool.pytest.ini_options]\nx=1",
        );
        assert!(m.starts[0].candidates.contains(&"src/flask/cli.py".into()));
        assert!(m.starts[1].candidates.contains(&"src/flask/__main__.py".into()));
        assert_eq!((m.run, m.test), (vec!["flask".to_owned()], vec!["pytest".to_owned()]));
        let m = setup(
            "setup.py",
            "setup(\n    name='tool',\n    entry_points={'console_scripts': [\n 'tool = tool.main:run',\n]})",
        );
        assert_eq!(m.name.as_deref(), Some("tool"));
        assert!(m.starts[0].candidates.contains(&"tool/main.py".into()));
    }
}
