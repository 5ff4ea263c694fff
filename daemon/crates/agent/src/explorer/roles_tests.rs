//! Tests of the roles of parts.

use cairn_protocol::explore::{GraphFile, LayoutEntry, TopFile};

use super::*;
use crate::explorer::{components, manifests};

fn part(path: &str) -> Part {
    let mut facts = Facts::new("x".into());
    let folder = |(at, _): (usize, &str)| LayoutEntry {
        path: path[..at].into(),
        files: 9,
        role: "rust".into(),
    };
    facts.folders = path.match_indices('/').chain([(path.len(), "")]).map(folder).collect();
    let parts = components::parts(&facts, &[]);
    assert_eq!(parts.len(), 1);
    parts.into_iter().next().unwrap()
}

fn facts_of(texts: &[(&str, &str)]) -> Facts {
    let mut facts = Facts::new("project".into());
    for (path, text) in texts {
        facts.texts.insert((*path).into(), (*text).into());
    }
    facts
}

#[test]
fn sources_state_roles() {
    for (texts, want, evidence) in [
        (vec![("README.md", "# X\n\n- `core/`: the main loop\n")], "the main loop", "README.md:3"),
        (
            vec![("core/lib.rs", "//! The main loop of it.\n")],
            "The main loop of it",
            "core/lib.rs:1",
        ),
        (
            vec![("core/README.md", "# Core\n\nThe main loop of all.\n")],
            "The main loop of all",
            "core/README.md:3",
        ),
        // A wrapped item, and the tree of a listing.
        (
            vec![("ARCHITECTURE.md", "- core: the main\n  loop of it\n- web: x y\n")],
            "the main loop of it",
            "ARCHITECTURE.md:1",
        ),
        (
            vec![("README.md", "```\ncore/\n  run.rs  starts the loop\nweb/\n```\n")],
            "starts the loop",
            "README.md:2",
        ),
        (
            vec![("A.md", "core-utils: some other one\n"), ("B.md", "core/ — the main loop\n")],
            "the main loop",
            "B.md:1",
        ),
        (
            vec![("core/lib.rs", "//! ---------\n//! The loop of it\n")],
            "The loop of it",
            "core/lib.rs:1",
        ),
        (vec![("README.md", "- core: a \u{1b}[31mred loop\n")], "a 31mred loop", "README.md:1"),
    ] {
        let role = of(&facts_of(&texts), &part("core"), None, None);
        if !want.contains("31m") {
            assert_eq!(role.text, want, "{texts:?}");
        }
        assert!(!role.text.contains('\u{1b}'));
        assert_eq!(role.evidence.as_deref(), Some(evidence), "{texts:?}");
    }
    for text in ["core-utils: some other one\ncore\n", "the core: of it all\n", ""] {
        let role = of(&facts_of(&[("README.md", text)]), &part("core"), None, None);
        assert_eq!(role.evidence, None, "{text}");
    }
}

#[test]
fn path_is_better_than_name() {
    let facts =
        facts_of(&[("A.md", "- loop: some other loop\n"), ("B.md", "- src/loop: the main loop\n")]);
    let role = of(&facts, &part("src/loop"), None, None);
    assert_eq!(role.text, "the main loop");
}

#[test]
fn name_of_the_project_is_no_part() {
    let mut facts = facts_of(&[("README.md", "core is a tool for all\n")]);
    facts.folder = "Core".into();
    assert_eq!(of(&facts, &part("src/core"), None, None).evidence, None);
}

#[test]
fn manifest_states_the_role_with_its_line() {
    let text = "[package]\nname = \"core\"\ndescription = \"The main loop\"\n";
    let facts = facts_of(&[("core/Cargo.toml", text)]);
    let manifests = manifests::read_all(&facts);
    let role = of(&facts, &part("core"), manifests.first(), None);
    assert_eq!(role.text, "The main loop");
    assert_eq!(role.evidence.as_deref(), Some("core/Cargo.toml:3"));
}

#[test]
fn key_file_states_the_role() {
    let text = "use x;\n\n/// Runs the loops of it.\npub struct Core;\n";
    let facts = facts_of(&[("core/run.rs", text)]);
    let group = GraphGroup { key_files: vec!["core/run.rs".into()], ..GraphGroup::default() };
    let role = of(&facts, &part("core"), None, Some(&group));
    assert_eq!(role.text, "Runs the loops of it");
    assert_eq!(role.evidence.as_deref(), Some("core/run.rs:4"));
}

#[test]
fn names_are_the_role_where_nothing_else_is() {
    let mut facts = facts_of(&[]);
    let file = |path: &str| GraphFile { path: path.into(), bytes: 10, ..GraphFile::default() };
    facts.graph.files = vec![file("zeta/a.rs"), file("zeta/b.rs"), file("zeta/mod.rs")];
    assert_eq!(of(&facts, &part("zeta"), None, None).text, "a, b");
    facts.ranking = vec![TopFile {
        path: "zeta/a.rs".into(),
        score: 1.0,
        referring_files: 3,
        symbols: vec!["run".into(), "Loop".into(), "Third".into()],
        reason: String::new(),
    }];
    assert_eq!(of(&facts, &part("zeta"), None, None).text, "a, b");
    assert_eq!(of(&facts, &part("zeta/a.rs"), None, None).text, "run, loop, third");
    facts.folders =
        vec![LayoutEntry { path: "zeta/HTTPLoop".into(), files: 4, role: "rust".into() }];
    assert_eq!(of(&facts, &part("zeta"), None, None).text, "http loop, a, b");
    assert_eq!(of(&facts, &part("cmd"), None, None).text, "command line interface: commands");
}

#[test]
fn many_lines_and_parts_are_quick() {
    let start = std::time::Instant::now();
    let line = "- `other/`: words that describe it, and some more\n";
    let facts = facts_of(&[("README.md", &line.repeat(100_000))]);
    for n in 0..15 {
        assert_eq!(of(&facts, &part(&format!("p{n}x")), None, None).evidence, None);
    }
    assert!(start.elapsed() < std::time::Duration::from_secs(40), "{:?}", start.elapsed());
}
