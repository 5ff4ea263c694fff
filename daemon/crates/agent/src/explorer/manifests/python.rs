//! `pyproject.toml`, `setup.py`, `setup.cfg`.

use regex::Regex;
use toml::{Table, Value};

use super::{Manifest, paths, quoted};

fn at<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let value = table.get(*first)?;
    if rest.is_empty() { Some(value) } else { at(value.as_table()?, rest) }
}

/// Reads `pyproject.toml`.
pub fn pyproject(path: &str, content: &str) -> Manifest {
    let mut found = Manifest::new(path, "python");
    let Ok(table) = content.parse::<Table>() else { return found };
    let dir = paths::folder(path);
    let text = |path: &[&str]| at(&table, path).and_then(Value::as_str).map(str::to_owned);
    found.name = text(&["project", "name"]).or_else(|| text(&["tool", "poetry", "name"]));
    found.description =
        text(&["project", "description"]).or_else(|| text(&["tool", "poetry", "description"]));
    for (place, what) in [
        (&["project", "scripts"][..], "command"),
        (&["project", "gui-scripts"], "command"),
        (&["tool", "poetry", "scripts"], "command"),
    ] {
        for (command, target) in at(&table, place).and_then(Value::as_table).into_iter().flatten() {
            if let Some(target) = target.as_str() {
                script(&mut found, dir, command, target, what);
            }
        }
    }
    package(&mut found, dir);
    if dir.is_empty() {
        found.build.push("pip install -e .".into());
        if content.contains("pytest") {
            found.test.push("pytest".into());
        }
    }
    found
}

/// Reads `setup.py` or `setup.cfg`.
pub fn setup(path: &str, content: &str) -> Manifest {
    let mut found = Manifest::new(path, "python");
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
    found.name = value("name");
    found.description = value("description").filter(|d| !d.starts_with("file:"));
    if let Ok(commands) = Regex::new(r#"(?m)^\s*['"]?([\w.-]+)\s*=\s*([\w.]+:[\w.]+)['"]?"#) {
        let listed = content.find("console_scripts").map_or("", |start| &content[start..]);
        for hit in commands.captures_iter(listed).take(20) {
            script(&mut found, dir, &hit[1], &hit[2], "command");
        }
    }
    package(&mut found, dir);
    if dir.is_empty() {
        found.build.push("pip install -e .".into());
    }
    found
}

/// Adds the script `name = "package.module:function"`.
fn script(found: &mut Manifest, dir: &str, command: &str, target: &str, what: &str) {
    let module = target.split([':', '[']).next().unwrap_or(target).trim().replace('.', "/");
    let mut candidates = Vec::new();
    for base in ["", "src/", "lib/", "python/"] {
        candidates.push(paths::join(dir, &format!("{base}{module}.py")));
        candidates.push(paths::join(dir, &format!("{base}{module}/__init__.py")));
    }
    found.start(candidates, "manifest", format!("{what} '{command}' = {target}"), true);
    if dir.is_empty() {
        found.run.push(command.to_owned());
    }
}

/// Adds the package itself: its `__main__.py`, then its `__init__.py`.
fn package(found: &mut Manifest, dir: &str) {
    let Some(name) = found.name.clone() else { return };
    let spellings = [
        name.replace(['-', '.'], "_").to_lowercase(),
        name.to_lowercase(),
        name.replace(['-', '.'], "").to_lowercase(),
    ];
    let places = |file: &str| -> Vec<Option<String>> {
        let bases = ["src/", "", "lib/"];
        spellings.iter().flat_map(|s| bases.map(|b| paths::join(dir, &format!("{b}{s}/{file}")))).collect()
    };
    let module = spellings[0].clone();
    found.start(places("__main__.py"), "manifest", format!("python -m {module}"), false);
    let mut library = places("__init__.py");
    library.extend(["src/", ""].map(|b| paths::join(dir, &format!("{b}{module}.py"))));
    found.start(library, "library", format!("import {module}"), false);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_lead_to_modules() {
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
