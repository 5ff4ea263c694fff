//! Commands that build, test and run a project, from manifests and CI.

use cairn_protocol::explore::{Entrypoint, ProjectCommands};

use super::{facts::Facts, manifests::Manifest, paths};

/// Most commands of each kind.
const MAX: usize = 6;

/// Most lines of a document that are considered.
const MAX_LINES: usize = 60;

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
    let is_listed = |command: &String| {
        [&commands.build, &commands.test, &commands.run, &commands.lint, &commands.format]
            .into_iter()
            .any(|list| list.contains(command))
    };
    commands.sources = commands
        .sources
        .iter()
        .filter(|(command, _)| is_listed(command))
        .map(|(command, path)| (command.clone(), path.clone()))
        .collect();
    commands
}

/// Adds the usual checks of a language if the project is set up for them.
fn tools_of_languages(facts: &Facts, manifests: &[Manifest], commands: &mut ProjectCommands) {
    let of_kind = |kind: &str| {
        let own = manifests.iter().filter(|m| !paths::secondary(&m.path));
        own.filter(|m| m.kind == kind).map(|m| m.path.as_str()).min_by_key(|p| paths::depth(p))
    };
    let pyproject = facts.text("pyproject.toml").unwrap_or_default();
    let ruff = pyproject.contains("[tool.ruff").then_some("pyproject.toml");
    let rubocop = facts.exists(".rubocop.yml").then_some(".rubocop.yml");
    let checks: &[(Option<&str>, &str, &str)] = &[
        (of_kind("cargo"), "cargo clippy", "cargo fmt"),
        (of_kind("go"), "go vet ./...", "gofmt -w ."),
        (ruff, "ruff check", "ruff format"),
        (rubocop, "bundle exec rubocop", "bundle exec rubocop -a"),
    ];
    for (source, lint, format) in checks {
        let Some(source) = source else { continue };
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
    let plain = command_lines.len() < MAX_LINES
        && TOOLS.contains(&first)
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
        let text = concat!(
            "jobs:\n",
            "  a:\n",
            "    steps:\n",
            "    - run: cargo test --all\n",
            "    - name: x\n",
            "      run: |\n",
            "        cargo build\n",
            "        echo hi\n",
            "        npm ci ${{ matrix.x }}\n",
            "    - run: \"make check\"\n",
        );
        assert_eq!(run_lines(text), ["cargo test --all", "cargo build", "make check"]);
    }

    #[test]
    fn lock_file_selects_package_manager() {
        let mut facts = Facts::new("x".into());
        facts.files.insert("pnpm-lock.yaml".into());
        assert_eq!(localised(&facts, "npm test"), "pnpm test");
        assert_eq!(localised(&facts, "./gradlew build"), "gradle build");
    }

    fn commands(texts: &[(&str, &str)]) -> ProjectCommands {
        let mut facts = Facts::new("x".into());
        for (path, text) in texts {
            facts.texts.insert((*path).into(), (*text).into());
        }
        let manifests = super::super::manifests::read_all(&facts);
        find(&facts, &manifests, &[])
    }

    fn lists(found: &ProjectCommands) -> [&Vec<String>; 5] {
        [&found.build, &found.test, &found.run, &found.lint, &found.format]
    }

    #[test]
    fn checks_follow_the_languages_and_name_their_file() {
        let cargo = "[package]\nname = \"x\"\n";
        for (path, text, lint, format) in [
            ("Cargo.toml", cargo, Some("cargo clippy"), Some("cargo fmt")),
            ("rust/Cargo.toml", cargo, Some("cargo clippy"), Some("cargo fmt")),
            ("tests/fixtures/a/Cargo.toml", cargo, None, None),
            ("go.mod", "module x\n", Some("go vet ./..."), Some("gofmt -w .")),
            ("pyproject.toml", "[tool.ruff]\n", Some("ruff check"), Some("ruff format")),
            ("pyproject.toml", "[project]\nname = \"x\"\n", None, None),
            (".rubocop.yml", "x", Some("bundle exec rubocop"), Some("bundle exec rubocop -a")),
        ] {
            let found = commands(&[(path, text)]);
            assert_eq!(found.lint.first().map(String::as_str), lint, "{path}");
            assert_eq!(found.format.first().map(String::as_str), format, "{path}");
            for command in found.lint.iter().chain(&found.format) {
                assert_eq!(found.sources.get(command).map(String::as_str), Some(path));
            }
        }
    }

    #[test]
    fn every_source_belongs_to_a_listed_command() {
        let scripts = "{\"scripts\": {\"test\": \"x\", \"lint\": \"y\", \"format\": \"z\"}}";
        let found = commands(&[
            (".github/workflows/ci.yml", "jobs:\n  a:\n    steps:\n    - run: cargo test --all\n"),
            ("Cargo.toml", "[package]\nname = \"x\"\n"),
            ("package.json", scripts),
        ]);
        let all: Vec<&String> = lists(&found).into_iter().flatten().collect();
        assert!(found.sources.keys().all(|command| all.contains(&command)), "{found:?}");
        assert_eq!(found.sources["cargo test --all"], ".github/workflows/ci.yml");
        assert_eq!(found.sources["cargo clippy"], "Cargo.toml");
        assert!(found.lint.iter().any(|c| found.sources[c] == "package.json"), "{found:?}");
    }

    #[test]
    fn long_readmes_are_quick() {
        let start = std::time::Instant::now();
        let lines: String = (0..200_000).map(|n| format!("    cargo test t{n}\n")).collect();
        let found = commands(&[("README.md", &lines)]);
        assert!(found.test.len() <= 2 && lists(&found).iter().all(|list| list.len() <= MAX));
        assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
    }
}
