//! Commands that build, test and run a project, from manifests and CI.

use cairn_protocol::explore::{Entrypoint, ProjectCommands};

use super::{facts::Facts, manifests::Manifest, paths};

/// Most commands of each kind.
const MAX: usize = 6;

/// Tools whose lines in a workflow show how the project is built and tested.
const TOOLS: &[&str] = &[
    "cargo",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "pytest",
    "tox",
    "nox",
    "python",
    "uv",
    "poetry",
    "hatch",
    "go",
    "make",
    "cmake",
    "ctest",
    "meson",
    "ninja",
    "mvn",
    "./mvnw",
    "gradle",
    "./gradlew",
    "bundle",
    "rake",
    "composer",
    "swift",
    "dotnet",
    "mix",
    "bazel",
    "just",
];

/// Returns the commands of a project.
pub fn find(facts: &Facts, manifests: &[Manifest], entrypoints: &[Entrypoint]) -> ProjectCommands {
    let mut commands = ProjectCommands::default();
    for manifest in manifests.iter().filter(|m| !paths::secondary(&m.path)) {
        let fill =
            |list: &[String]| -> Vec<String> { list.iter().map(|c| localised(facts, c)).collect() };
        add(&mut commands.build, fill(&manifest.build));
        add(&mut commands.test, fill(&manifest.test));
        add(&mut commands.run, fill(&manifest.run));
        add(&mut commands.lint, fill(&manifest.lint));
        add(&mut commands.format, fill(&manifest.format));
        let stated =
            [&manifest.build, &manifest.test, &manifest.run, &manifest.lint, &manifest.format];
        for command in stated.into_iter().flat_map(|list| fill(list)) {
            commands.sources.entry(command).or_insert_with(|| manifest.path.clone());
        }
    }
    tools_of_languages(facts, manifests, &mut commands);
    for (path, lines) in workflows(facts) {
        for line in lines {
            commands.sources.entry(line).or_insert_with(|| path.clone());
        }
    }
    for line in workflows(facts).into_iter().flat_map(|(_, lines)| lines) {
        if tests(&line) {
            add(&mut commands.test, vec![line]);
        } else if builds(&line) {
            add(&mut commands.build, vec![line]);
        }
    }
    for line in readme_lines(facts) {
        if tests(&line) && commands.test.len() < 2 {
            add(&mut commands.test, vec![line]);
        } else if builds(&line) && commands.build.len() < 2 {
            add(&mut commands.build, vec![line]);
        }
    }
    if manifests.iter().any(|m| m.kind == "python") && commands.test.is_empty() {
        add(&mut commands.test, python_tests(facts));
    }
    runs(&mut commands, manifests, entrypoints);
    let kept = |command: &String| {
        [&commands.build, &commands.test, &commands.run, &commands.lint, &commands.format]
            .into_iter()
            .any(|list| list.contains(command))
    };
    commands.sources = commands
        .sources
        .iter()
        .filter(|(command, _)| kept(command))
        .map(|(command, path)| (command.clone(), path.clone()))
        .collect();
    commands
}

/// Adds the usual checks of a language if the project is set up for them.
fn tools_of_languages(facts: &Facts, manifests: &[Manifest], commands: &mut ProjectCommands) {
    let has_kind = |kind: &str| manifests.iter().any(|m| m.kind == kind);
    let pyproject = facts.text("pyproject.toml").unwrap_or_default();
    let checks: &[(bool, &str, &str, &str)] = &[
        (has_kind("cargo"), "cargo clippy", "cargo fmt", "Cargo.toml"),
        (has_kind("go"), "go vet ./...", "gofmt -w .", "go.mod"),
        (pyproject.contains("[tool.ruff"), "ruff check", "ruff format", "pyproject.toml"),
        (
            facts.exists(".rubocop.yml"),
            "bundle exec rubocop",
            "bundle exec rubocop -a",
            ".rubocop.yml",
        ),
    ];
    for (_, lint, format, source) in checks.iter().filter(|(is_used, ..)| *is_used) {
        add(&mut commands.lint, vec![(*lint).to_owned()]);
        add(&mut commands.format, vec![(*format).to_owned()]);
        for command in [lint, format] {
            commands.sources.entry((*command).to_owned()).or_insert_with(|| (*source).to_owned());
        }
    }
}

fn add(to: &mut Vec<String>, new: Vec<String>) {
    for command in new {
        if to.len() < MAX && !to.contains(&command) {
            to.push(command);
        }
    }
}

fn python_tests(facts: &Facts) -> Vec<String> {
    let tests = facts.listed.keys().any(|p| ["tests", "test"].contains(&p.as_str()));
    if facts.exists("tox.ini") {
        vec!["tox".into()]
    } else if facts.exists("noxfile.py") {
        vec!["nox".into()]
    } else if tests {
        vec!["python -m pytest".into()]
    } else {
        vec![]
    }
}

/// Adds run commands for entrypoints if no manifest names one.
fn runs(commands: &mut ProjectCommands, manifests: &[Manifest], entrypoints: &[Entrypoint]) {
    let cargo = manifests.iter().any(|m| m.kind == "cargo");
    for entry in entrypoints.iter().filter(|e| ["manifest", "main"].contains(&e.kind.as_str())) {
        let dir = paths::folder(&entry.path);
        if entry.path.ends_with(".go") {
            add(
                &mut commands.run,
                vec![if dir.is_empty() { "go run .".into() } else { format!("go run ./{dir}") }],
            );
        } else if cargo && entry.path.ends_with("src/main.rs") && commands.run.is_empty() {
            let starts =
                |m: &&Manifest| m.starts.iter().any(|start| start.candidates.contains(&entry.path));
            let package = manifests.iter().filter(|m| m.kind == "cargo").find(starts);
            let package = package.and_then(|m| m.name.as_deref());
            let single = dir == "src";
            let line = match package {
                Some(package) if !single => format!("cargo run -p {package}"),
                _ => "cargo run".into(),
            };
            add(&mut commands.run, vec![line]);
        } else if entry.path.ends_with("/__main__.py") {
            let module = dir.trim_start_matches("src/").replace('/', ".");
            add(&mut commands.run, vec![format!("python -m {module}")]);
        } else if entry.path == "manage.py" {
            add(&mut commands.run, vec!["python manage.py runserver".into()]);
        }
    }
}

/// Returns the command with the tool that the root's lock and wrapper files require.
fn localised(facts: &Facts, command: &str) -> String {
    let has = |name: &str| facts.exists(name);
    if let Some(rest) = command.strip_prefix("npm ") {
        let manager = [
            ("pnpm-lock.yaml", "pnpm"),
            ("yarn.lock", "yarn"),
            ("bun.lockb", "bun"),
            ("bun.lock", "bun"),
        ];
        let manager = manager.iter().find(|(lock, _)| has(lock)).map_or("npm", |(_, m)| m);
        return format!("{manager} {rest}");
    }
    if command.starts_with("pip install") {
        let manager = [
            ("uv.lock", "uv sync"),
            ("poetry.lock", "poetry install"),
            ("pdm.lock", "pdm install"),
        ];
        if let Some((_, line)) = manager.iter().find(|(lock, _)| has(lock)) {
            return (*line).to_owned();
        }
    }
    if let Some(rest) = command.strip_prefix("mvn ")
        && has("mvnw")
    {
        return format!("./mvnw {rest}");
    }
    if let Some(rest) = command.strip_prefix("./gradlew ")
        && !has("gradlew")
    {
        return format!("gradle {rest}");
    }
    command.to_owned()
}

/// Returns lines of CI workflows that call a known tool.
pub fn workflows(facts: &Facts) -> Vec<(String, Vec<String>)> {
    let of = |(path, text): (&String, &String)| {
        let lines = run_lines(text);
        (path.starts_with(".github/workflows/") && !lines.is_empty()).then(|| (path.clone(), lines))
    };
    facts.texts.iter().filter_map(of).collect()
}

/// Returns lines of the readmes' code that call a known tool, with or without a prompt.
fn readme_lines(facts: &Facts) -> Vec<String> {
    let mut command_lines = Vec::new();
    for text in super::describe::readmes(facts).into_iter().filter_map(|path| facts.text(path)) {
        let mut fenced = false;
        for line in text.lines() {
            fenced ^= line.trim_start().starts_with("```");
            if fenced || line.starts_with("    ") || line.starts_with('\t') {
                let line = line.trim();
                note(line.trim_start_matches(['$', '%', '>']).trim(), &mut command_lines);
            }
        }
    }
    command_lines
}

/// Returns the commands under `run:`, one per line, as far as they are plain.
fn run_lines(text: &str) -> Vec<String> {
    let mut command_lines: Vec<String> = Vec::new();
    let mut block: Option<usize> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let trimmed = line.trim();
        if let Some(depth) = block {
            if trimmed.is_empty() || indent > depth {
                note(trimmed, &mut command_lines);
                continue;
            }
            block = None;
        }
        let key = trimmed.trim_start_matches("- ");
        if let Some(rest) = key.strip_prefix("run:") {
            let rest = rest.trim();
            if rest.starts_with(['|', '>']) {
                block = Some(indent)
            } else {
                note(rest.trim_matches(['"', '\'']), &mut command_lines)
            }
        }
    }
    command_lines.truncate(MAX);
    command_lines
}

fn note(line: &str, command_lines: &mut Vec<String>) {
    let first = line.split_whitespace().next().unwrap_or("");
    let plain = TOOLS.contains(&first)
        && line.len() <= 100
        && !line.contains(['$', '<', '>'])
        && !line.ends_with('\\')
        && (tests(line) || builds(line));
    let install =
        line.contains(" install") && !line.contains("install &&") || line.contains("--version");
    if plain && !install && !command_lines.iter().any(|f| f == line) {
        command_lines.push(line.to_owned());
    }
}

fn tests(line: &str) -> bool {
    line.split_whitespace()
        .any(|w| w.contains("test") || ["check", "tox", "nox", "verify"].contains(&w))
        && !line.starts_with("cargo check")
}

fn builds(line: &str) -> bool {
    line.split_whitespace().any(|w| ["build", "compile", "package", "all"].contains(&w))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_workflow_lines() {
        let text = "jobs:\n  a:\n    steps:\n    - run: cargo test --all\n    - name: x\n      run: |\n        cargo build\n        echo hi\n        npm ci ${{ matrix.x }}\n    - run: \"make check\"\n";
        assert_eq!(run_lines(text), ["cargo test --all", "cargo build", "make check"]);
    }

    #[test]
    fn lock_file_selects_package_manager() {
        let mut facts = Facts::new("x".into());
        facts.files.insert("pnpm-lock.yaml".into());
        assert_eq!(localised(&facts, "npm test"), "pnpm test");
        assert_eq!(localised(&facts, "./gradlew build"), "gradle build");
    }
}
