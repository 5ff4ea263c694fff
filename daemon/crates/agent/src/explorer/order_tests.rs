//! Tests of the reading order and of the hotspots.

use cairn_protocol::{explore::GraphFile, git::GitCommit};

use super::*;

fn commit(n: usize, paths: &[&str]) -> GitCommit {
    GitCommit {
        id: n.to_string(),
        subject: format!("commit {n}"),
        author: String::new(),
        time: 0,
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
    }
}

fn file(path: &str, bytes: u64, dependents: u32) -> GraphFile {
    GraphFile { path: path.into(), bytes, dependents, dependencies: 0 }
}

fn top(facts: &Facts) -> Vec<String> {
    top_files(facts, &[]).into_iter().map(|file| file.path).collect()
}

#[test]
fn empty_facts_have_no_order() {
    let facts = Facts::default();
    assert!(top_files(&facts, &[]).is_empty() && hotspots(&facts).is_empty());
}

#[test]
fn mass_edits_do_not_count() {
    let mut facts = Facts::default();
    let many: Vec<String> = (0..=MASS).map(|n| format!("src/f{n}.rs")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    facts.commits = (0..5).map(|n| commit(n, &many)).collect();
    facts.commits.extend((5..8).map(|n| commit(n, &["src/a.rs", "README.md", "tests/a.rs"])));
    assert_eq!(commits(&facts, usize::MAX).len(), 3);
    // A file that is gone is no place to look.
    assert!(hotspots(&facts).is_empty() && top(&facts).is_empty());
    facts.files.insert("src/a.rs".into());
    let spots = hotspots(&facts);
    assert_eq!(spots.len(), 1);
    assert_eq!((&*spots[0].path, spots[0].commits), ("src/a.rs", 3));
    assert_eq!(spots[0].subjects, ["commit 5", "commit 6", "commit 7"]);
    assert_eq!(top(&facts), ["src/a.rs"]);
    // Only the latest commits make a hotspot.
    let old = (0..LATELY).map(|n| commit(n, &[]));
    facts.commits = old.chain((0..9).map(|n| commit(n, &["src/a.rs"]))).collect();
    assert!(hotspots(&facts).is_empty());
}

#[test]
fn header_and_source_are_one_file() {
    let mut facts = Facts::default();
    facts.graph.files =
        vec![file("src/net.h", 100, 9), file("src/net.c", 900, 0), file("src/only.hpp", 50, 1)];
    let files = top_files(&facts, &[]);
    let found: Vec<(&str, u32)> = files.iter().map(|f| (&*f.path, f.referring_files)).collect();
    assert_eq!(found, [("src/net.c", 9), ("src/only.hpp", 1)]);
    let total: f64 = files.iter().map(|file| file.score).sum();
    assert!((total - 1.0).abs() < 1e-9);
}

#[test]
fn generated_and_secondary_files_are_left_out() {
    for (path, is_listed) in [
        ("src/a.rs", true),
        ("src/a.pb.go", false),
        ("src/a.min.js", false),
        ("src/a.d.ts", false),
        ("src/a_pb2.py", false),
        ("tests/a.rs", false),
        ("docs/a.py", false),
        ("a.md", false),
        ("Makefile", false),
    ] {
        let mut facts = Facts::default();
        facts.graph.files = vec![file(path, 10, 1)];
        assert_eq!(!top(&facts).is_empty(), is_listed, "{path}");
    }
}

#[test]
fn documents_name_files() {
    let mut facts = Facts::default();
    let text = "See [a](src/a.rs#L3), https://x.y/blob/main/src/b.rs. Then `./src/c.rs`; xsrc/d.rs";
    facts.texts.insert("README.md".into(), text.into());
    facts.texts.insert("build.txt".into(), "src/e.rs".into());
    facts.graph.files =
        ["a", "b", "c", "d", "e"].map(|n| file(&format!("src/{n}.rs"), 9, 0)).into();
    let files = top_files(&facts, &[]);
    let named: Vec<&str> =
        files.iter().filter(|f| f.reason.contains("documents")).map(|f| &*f.path).collect();
    assert_eq!(named, ["src/a.rs", "src/b.rs", "src/c.rs"]);
}

#[test]
fn many_files_and_a_long_document_are_quick() {
    let start = std::time::Instant::now();
    let mut facts = Facts::default();
    facts.graph.files = (0..1_000).map(|n| file(&format!("src/f{n}.rs"), n, 1)).collect();
    facts.texts.insert("README.md".into(), "words in src/f7.rs/ and\n".repeat(200_000));
    facts.texts.insert("b.md".into(), "/".repeat(1_000_000));
    assert_eq!(top(&facts).len(), MAX);
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn entrypoint_is_a_reason() {
    let mut facts = Facts::default();
    facts.graph.files = vec![file("src/net.h", 100, 1), file("src/net.c", 900, 0)];
    let entry = Entrypoint {
        path: "src/net.h".into(),
        line: None,
        kind: "library".into(),
        reason: String::new(),
    };
    let files = top_files(&facts, &[entry]);
    assert_eq!(files[0].reason, "entrypoint; 1 file depends on it");
}

#[test]
fn first_program_is_among_the_files() {
    let mut facts = Facts::default();
    facts.graph.files = (0..40).map(|n| file(&format!("src/f{n}.rs"), 9_000, 9)).collect();
    facts.graph.files.push(file("src/main.rs", 10, 0));
    let entry = |path: &str| Entrypoint {
        path: path.into(),
        kind: "main".into(),
        line: None,
        reason: String::new(),
    };
    let listed = |entries: &[Entrypoint]| -> Vec<String> {
        top_files(&facts, entries).into_iter().map(|file| file.path).collect()
    };
    assert!(!listed(&[]).contains(&"src/main.rs".to_owned()));
    assert_eq!(listed(&[entry("src/main.rs")]).last().map(String::as_str), Some("src/main.rs"));
    // One of several programs is enough.
    let both = listed(&[entry("src/main.rs"), entry("src/f0.rs")]);
    assert!(!both.contains(&"src/main.rs".to_owned()), "{both:?}");
    assert_eq!(both.len(), MAX);
}
