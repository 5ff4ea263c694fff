//! The documents: their length, their links, the form of decisions, and the contents of the book.

use std::path::{Path, PathBuf};

use crate::tidy::root;

/// Sections of a decision, in their order.
const SECTIONS: [&str; 4] = ["## Context", "## Decision", "## Alternatives", "## Consequences"];

/// Every Markdown file below `docs`, and those of the root.
pub fn documents() -> Vec<PathBuf> {
    let mut folders = vec![root().join("docs")];
    let mut all: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .map(|name| root().join(name))
        .into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                all.push(path);
            }
        }
    }
    all
}

/// The targets of links in a document that are files of the repository.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets =
        text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets.filter(|target| !target.starts_with("http") && !target.starts_with('#'))
}

#[test]
fn readme_is_short_and_links_of_documents_exist() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= 150, "README.md has {} lines", readme.lines().count());
    let mut missing = Vec::new();
    for path in documents() {
        let text = std::fs::read_to_string(&path).unwrap();
        for target in links(&text) {
            let file = target.split('#').next().unwrap_or_default();
            if !path.parent().unwrap().join(file).exists() {
                missing.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn decisions_have_their_number_and_sections() {
    let folder = root().join("docs/decisions");
    let mut names: Vec<String> = std::fs::read_dir(folder.clone())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    for (at, name) in names.iter().enumerate() {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let number = format!("{:04}", at + 1);
        assert!(name.starts_with(&format!("{number}-")), "{name}: the number {number} is missing");
        assert!(text.starts_with(&format!("# {number} ")), "{name}: the title has another number");
        assert!(
            text.lines().nth(2).is_some_and(|line| line.starts_with("Date: 20")),
            "{name}: no date"
        );
        let sections: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(sections, SECTIONS, "{name}");
    }
}

#[test]
fn book_has_every_document() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed: Vec<&str> = links(&summary).collect();
    for path in documents() {
        let Ok(relative) = path.strip_prefix(root().join("docs")) else { continue };
        let is_listed = listed.iter().any(|target| Path::new(target) == relative);
        assert!(
            is_listed || relative == Path::new("SUMMARY.md"),
            "docs/SUMMARY.md lacks {}",
            relative.display()
        );
    }
}

/// The table of files that run later is the one that decides.
#[test]
fn guide_has_the_table_of_files_that_run_later() {
    let path = root().join("docs/guide/safety.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once("<!-- table: autorun -->\n").unwrap();
    let (_, tail) = rest.split_once("<!-- end -->").unwrap();
    let table = cairn_workspace::autorun_table();
    let now = format!("{head}<!-- table: autorun -->\n\n{table}\n<!-- end -->{tail}");
    if std::env::var_os("CAIRN_UPDATE").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    assert!(now == text, "docs/guide/safety.md is stale: run this test with CAIRN_UPDATE=1");
}
