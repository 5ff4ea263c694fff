//! Tests of the division into parts.

use std::time::{Duration, Instant};

use cairn_protocol::explore::{CodeGraph, GraphEdge};

use super::*;

fn entry(path: &str, files: u64, role: &str) -> LayoutEntry {
    LayoutEntry { path: path.into(), files, role: role.into() }
}

fn file(path: &str, dependents: u32) -> GraphFile {
    GraphFile { path: path.into(), bytes: 5_000, dependents, dependencies: 1 }
}

/// Facts of a root whose files are in one language; the first ones are imported most.
fn facts_of(language: &str, files: &[&str]) -> Facts {
    let mut facts = Facts::new("project".into());
    let mut folders: BTreeMap<&str, u64> = BTreeMap::new();
    for path in files {
        for (at, _) in path.match_indices('/') {
            *folders.entry(&path[..at]).or_default() += 1;
        }
    }
    facts.folders = folders.into_iter().map(|(path, n)| entry(path, n, language)).collect();
    let graph =
        files.iter().enumerate().map(|(at, path)| file(path, 20_u32.saturating_sub(at as u32)));
    facts.graph = CodeGraph { files: graph.collect(), ..CodeGraph::default() };
    facts
}

fn package(folder: &str) -> Manifest {
    Manifest {
        path: format!("{folder}/Cargo.toml").trim_start_matches('/').to_owned(),
        kind: "cargo",
        name: Some(folder.rsplit('/').next().unwrap().to_owned()),
        ..Manifest::default()
    }
}

fn paths_of(facts: &Facts, manifests: &[Manifest]) -> Vec<String> {
    let mut paths = names_of(&parts(facts, manifests));
    paths.sort();
    paths
}

#[test]
fn empty_facts_have_no_parts() {
    let facts = Facts::new("x".into());
    assert!(parts(&facts, &[]).is_empty());
    assert!(describe(&facts, &[], &[]).is_empty());
    assert!(secondary(&facts).is_empty());
    assert!(files_to_read(&facts, &[]).is_empty());
}

#[test]
fn layouts_have_parts() {
    for (language, files, want) in [
        // Files at the root only.
        ("python", vec!["app.py", "db.py", "web.py"], vec!["app.py", "db.py", "web.py"]),
        // A flat tree; a header and its source are one part.
        (
            "c",
            vec!["src/net.c", "src/net.h", "src/db.c", "src/list.c", "tests/x.c"],
            vec!["src", "src/db.c", "src/list.c", "src/net.c"],
        ),
        // A folder that wraps all.
        (
            "python",
            vec![
                "src/pkg/a/x.py",
                "src/pkg/a/y.py",
                "src/pkg/b/x.py",
                "src/pkg/b/y.py",
                "src/pkg/c/x.py",
                "src/pkg/c/y.py",
                "src/pkg/d/x.py",
                "src/pkg/d/y.py",
            ],
            vec!["src/pkg/a", "src/pkg/b", "src/pkg/c", "src/pkg/d"],
        ),
        (
            "java",
            vec![
                "src/main/java/org/x/web/A.java",
                "src/main/java/org/x/web/B.java",
                "src/main/java/org/x/db/A.java",
                "src/main/java/org/x/db/B.java",
                "src/main/java/org/x/io/A.java",
                "src/main/java/org/x/io/B.java",
                "src/main/java/org/x/App.java",
                "src/main/java/org/x/Conf.java",
                "src/main/java/org/x/api/A.java",
                "src/main/java/org/x/api/B.java",
                "src/test/java/org/x/ATest.java",
            ],
            vec![
                "src/main/java/org/x",
                "src/main/java/org/x/api",
                "src/main/java/org/x/db",
                "src/main/java/org/x/io",
                "src/main/java/org/x/web",
            ],
        ),
        // A chain of folders.
        ("go", vec!["a/b/c/d/e/f/x.go"], vec!["a/b/c/d/e/f"]),
        ("markdown", vec!["notes/a.md", "notes/b.md"], vec!["notes"]),
        ("python", vec![".github/a.py", "tests/b.py", "docs/c.py"], vec![]),
    ] {
        assert_eq!(paths_of(&facts_of(language, &files), &[]), want, "{files:?}");
    }
}

#[test]
fn packages_are_parts_once() {
    let files = [
        "crates/a/src/lib.rs",
        "crates/a/x.rs",
        "crates/b/src/lib.rs",
        "crates/b/x.rs",
        "tests/p/a.rs",
        "tests/p/b.rs",
    ];
    let facts = facts_of("rust", &files);
    let twice = Manifest { path: "crates/a/package.json".into(), ..package("crates/a") };
    let nameless = Manifest { name: None, ..package("crates/b") };
    let missing = package("crates/none");
    let manifests =
        [package("crates/a"), twice, package("crates/b"), nameless, package("tests/p"), missing];
    let parts = parts(&facts, &manifests);
    let packages: Vec<&str> =
        parts.iter().filter(|p| p.manifest.is_some()).map(|p| &*p.path).collect();
    assert_eq!(packages.len(), 2, "{packages:?}");
    assert!(packages.contains(&"crates/a") && packages.contains(&"crates/b"));
}

#[test]
fn monorepo_of_many_packages_is_quick() {
    let start = Instant::now();
    let mut facts = Facts::new("mono".into());
    let mut manifests = Vec::new();
    for n in 0..300 {
        let folder = format!("packages/p{n}");
        facts.folders.push(entry(&folder, 2_000, "typescript"));
        for inner in ["src", "src/a", "src/b", "test"] {
            facts.folders.push(entry(&format!("{folder}/{inner}"), 500, "typescript"));
        }
        for m in 0..2_000 {
            facts.graph.files.push(file(&format!("{folder}/src/f{m}.ts"), m));
        }
        facts.files.insert(format!("{folder}/doc.go"));
        manifests.push(package(&folder));
    }
    facts.folders.push(entry("packages", 600_000, "typescript"));
    let parts = parts(&facts, &manifests);
    assert_eq!(parts.len(), MAX_GROUPS);
    assert!(names_of(&parts).iter().collect::<BTreeSet<_>>().len() == parts.len());
    facts.groups = names_of(&parts)
        .into_iter()
        .map(|path| GraphGroup { path, files: 1, lines: 1, ..GraphGroup::default() })
        .collect();
    assert_eq!(describe(&facts, &manifests, &parts).len(), MAX);
    assert!(files_to_read(&facts, &parts).len() >= MAX);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn circular_imports_are_listed_between_listed_parts() {
    let mut facts = facts_of("go", &["a/x.go", "a/y.go", "b/x.go", "b/y.go"]);
    let edge = |name: &str| GraphEdge { name: name.into(), imports: 1 };
    let group = |path: &str, to: &[&str]| GraphGroup {
        path: path.into(),
        files: 2,
        lines: 10,
        key_files: vec![format!("{path}/x.go")],
        depends_on: to.iter().map(|to| edge(to)).collect(),
    };
    facts.groups = vec![group("a", &["b", "hidden"]), group("b", &["a"])];
    let parts = vec![Part::folder("a"), Part::folder("b")];
    let all = describe(&facts, &[], &parts);
    let depends: Vec<&[String]> = all.iter().map(|c| &*c.depends_on).collect();
    assert_eq!(depends, [["b"], ["a"]]);
    assert_eq!(files_to_read(&facts, &parts), ["a/x.go", "b/x.go"]);
}

#[test]
fn secondary_folders_are_outermost_with_kinds() {
    let files = [
        "tests/a/x.py",
        "tests/fixtures/x.py",
        "docs/x.py",
        "vendor/y/x.c",
        "src/x.py",
        "hack/x.sh",
    ];
    let all = secondary(&facts_of("python", &files));
    let kinds: Vec<(&str, &str)> = all.iter().map(|c| (&*c.path, &*c.kind)).collect();
    let want =
        [("tests", "tests"), ("docs", "documents"), ("hack", "tools"), ("vendor", "vendored")];
    assert_eq!(kinds, want);
}

#[test]
fn hostile_names_are_paths_like_others() {
    let name = "a\u{1b}[31m<b>`x`";
    let files = [format!("{name}/x.py"), format!("{name}/y.py"), "b/x.py".into(), "b/y.py".into()];
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let facts = facts_of("python", &files);
    let parts = parts(&facts, &[]);
    assert!(names_of(&parts).iter().any(|path| path == name));
    assert_eq!(describe(&facts, &[], &parts).len(), parts.len());
}

#[test]
fn packages_are_programs_if_their_start_exists() {
    let mut facts = facts_of("rust", &["a/src/main.rs", "a/src/x.rs"]);
    let mut manifest = package("a");
    manifest.starts.push(manifests::Start {
        candidates: vec!["a/src/main.rs".into()],
        kind: "main",
        reason: String::new(),
        promised: false,
    });
    let part = Part { manifest: Some(0), ..Part::folder("a") };
    assert_eq!(kind(&facts, &part, Some(&manifest)), "library");
    facts.files.insert("a/src/main.rs".into());
    assert_eq!(kind(&facts, &part, Some(&manifest)), "program");
    assert_eq!(kind(&facts, &part, None), "module");
}
