//! Tests of the rules for contributors.

use std::time::{Duration, Instant};

use super::*;

fn facts_of(texts: &[(&str, &str)]) -> Facts {
    let mut facts = Facts::default();
    for (path, text) in texts {
        facts.texts.insert((*path).into(), (*text).into());
    }
    facts
}

fn found(texts: &[(&str, &str)]) -> Vec<(String, String)> {
    find(&facts_of(texts)).into_iter().map(|c| (c.text, c.source)).collect()
}

#[test]
fn files_and_manifests_state_rules() {
    for (path, text, want) in [
        ("rustfmt.toml", "x", "formatted with rustfmt (cargo fmt)"),
        (".editorconfig", "x", "layout of text by .editorconfig"),
        ("pyproject.toml", "[tool.ruff.lint]", "formatted and linted with Ruff"),
        ("package.json", "{\"devDependencies\": {\"prettier\": \"3\"}}", "formatted with Prettier"),
        ("Cargo.toml", "[package]\nrust-version = \"1.80\"\n", "Rust 1.80"),
        ("pyproject.toml", "requires-python = \">=3.9\"", "Python >=3.9"),
        ("go.mod", "module x\n\ngo 1.22\n", "Go 1.22"),
        ("pom.xml", "<release>17</release>", "Java 17"),
        ("x.gemspec", "s.required_ruby_version = \">= 2.7\"", "Ruby >= 2.7"),
        ("package.json", "{\"engines\": {\"node\": \">=18\"}}", "Node.js >=18"),
        (".nvmrc", "v20\nmore\n", "Node.js v20"),
        (".python-version", "3.12\n", "Python 3.12"),
        (".ruby-version", "ruby-3.3.0\n", "Ruby 3.3.0"),
        (".github/workflows/a.yml", "run: cargo clippy", "CI runs cargo clippy"),
    ] {
        assert_eq!(found(&[(path, text)]), [(want.to_owned(), path.to_owned())], "{path}");
    }
    for (path, text) in [
        ("Cargo.toml", "rust-version.workspace = true"),
        ("package.json", "{\"engines\": {}, \"x\": {\"node\": \"9\"}}"),
        (".nvmrc", "\n\n"),
        ("x.gemspec", "s.required_ruby_version = VERSION"),
        ("README.md", "You must run the tests before each commit."),
        ("", ""),
    ] {
        assert_eq!(found(&[(path, text)]), [], "{path}");
    }
    let long = "9".repeat(1_000_000);
    assert!(found(&[(".nvmrc", &long)])[0].0.len() < 60);
}

#[test]
fn documents_state_rules_with_their_lines() {
    for (text, want) in [
        ("# Rules\n\nYou must run the tests first.\n", Some(("You must run the tests first", 3))),
        (
            "Words about it. Some more of\nthem. Please rebase your\nbranch before merging it.\n",
            Some(("Please rebase your branch before merging it", 2)),
        ),
        ("1. Commits must be signed off.\n", Some(("Commits must be signed off", 1))),
        ("* 2 spaces must be used by the style\n", Some(("2 spaces must be used by the style", 1))),
        ("- Use `make` to\n  run the tests.\n- other\n", Some(("Use make to run the tests", 1))),
        ("```sh\n# you must run the tests here\n```\n", None),
        ("A class is declared because of the design.\n", None),
        ("The following classes are commonly designed.\n", None),
        ("You must eat.\n", None),
        ("", None),
    ] {
        let want: Vec<(String, String)> = want
            .map(|(text, line)| (text.to_owned(), format!("CONTRIBUTING.md:{line}")))
            .into_iter()
            .collect();
        assert_eq!(found(&[("CONTRIBUTING.md", text)]), want, "{text}");
    }
}

#[test]
fn both_kinds_have_a_share_within_the_limit() {
    let mut texts: Vec<(&str, &str)> = FILES.iter().map(|(names, _)| (names[0], "x")).collect();
    let rules =
        "- You must lint the code.\n- You must format the code.\n- Commits must be small.\n";
    texts.push(("CONTRIBUTING.md", rules));
    let all = found(&texts);
    assert_eq!(all.len(), MAX);
    assert!(all.iter().filter(|(_, source)| source.contains(':')).count() >= 2, "{all:?}");
}

#[test]
fn long_documents_are_quick() {
    let start = Instant::now();
    for unit in ["You must run the tests. ", "words\n", "- a\n", "test"] {
        let text = unit.repeat(1_000_000 / unit.len());
        assert!(found(&[("CONTRIBUTING.md", &text)]).len() <= 1);
    }
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());
}

#[test]
fn contributing_documents_are_near_the_top() {
    for (path, is_one) in [
        ("CONTRIBUTING.md", true),
        (".github/CONTRIBUTING.md", true),
        ("docs/developer-guide.rst", true),
        ("AGENTS.md", true),
        ("HACKING", false),
        ("a/b/c/CONTRIBUTING.md", false),
        ("src/contributing.rs", false),
    ] {
        assert_eq!(is_contributing(path), is_one, "{path}");
    }
}
