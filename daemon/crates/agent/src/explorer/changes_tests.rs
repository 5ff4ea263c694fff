//! Changes by component, dependents and risks.

use cairn_protocol::{
    explore::GraphFile,
    git::GitCommit,
    search::{ImpactAnswer, ImpactItem},
};

use super::*;

fn component(path: &str) -> Component {
    Component { name: format!("the {path}"), path: path.into(), ..Component::default() }
}

fn file(path: &str, status: &str, added_lines: u64) -> GitFileChange {
    GitFileChange { path: path.into(), status: status.into(), added_lines, ..Default::default() }
}

fn commit(paths: &[&str]) -> GitCommit {
    GitCommit {
        id: "1".into(),
        subject: "s".into(),
        author: "a".into(),
        time: 0,
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
    }
}

fn facts(files: Vec<GitFileChange>, commits: Vec<GitCommit>) -> Facts {
    let ahead = commits.len() as u64;
    let changes = GitChanges { base: "b".into(), ahead, commits, files, ..Default::default() };
    Facts { changes: Some(changes), has_graph: true, ..Facts::default() }
}

#[test]
fn changes_belong_to_the_innermost_component() {
    let files = vec![
        file("a/x.rs", "modified", 1),
        file("a/b/y.rs", "added", 9),
        file("x/y/z/w.rs", "deleted", 0),
        file("c.rs", "renamed", 0),
        file("tests/t.rs", "added", 90),
        file("top.md", "modified", 50),
    ];
    let facts = facts(files, vec![commit(&["a/x.rs", "a/b/y.rs"]), commit(&["a/w.rs"])]);
    let components = [component("a"), component("a/b"), component("c.rs")];
    let secondary = [component("tests")];
    let report = report(&facts, "v1", &Owners::new(&components, &secondary), &[]).unwrap();
    let rows: Vec<(&str, u64, [u64; 4])> = report
        .components
        .iter()
        .map(|c| (c.name.as_str(), c.commits, [c.added, c.modified, c.deleted, c.renamed]))
        .collect();
    assert_eq!(
        rows,
        [
            ("the a/b", 1, [1, 0, 0, 0]),
            ("the a", 2, [0, 1, 0, 0]),
            ("the c.rs", 0, [0, 0, 0, 1]),
            ("x/y", 0, [0, 0, 1, 0]),
            ("the tests", 0, [1, 0, 0, 0]),
            ("other files", 0, [0, 1, 0, 0]),
        ]
    );
    assert_eq!((report.commits, report.files, report.added_lines), (2, 6, 150));
    assert_eq!(report.changed_files[0].path, "tests/t.rs");
}

#[test]
fn dependents_are_requested_for_imported_files_that_exist() {
    let files = vec![
        file("few.rs", "modified", 1),
        file("none.rs", "modified", 1),
        file("many.rs", "renamed", 1),
        file("gone.rs", "deleted", 1),
    ];
    let mut facts = facts(files, vec![]);
    let imported = |path: &str, dependents| GraphFile {
        path: path.into(),
        dependents,
        ..GraphFile::default()
    };
    facts.graph.files = vec![imported("many.rs", 9), imported("few.rs", 1), imported("none.rs", 0)];
    assert_eq!(files_with_dependents(&facts), ["many.rs", "few.rs"]);
    facts.has_graph = false;
    assert_eq!(files_with_dependents(&facts).len(), 0);
}

#[test]
fn risks_have_their_reasons_in_order_of_urgency() {
    let renamed =
        GitFileChange { previous_path: Some("a/old.rs".into()), ..file("a/new.rs", "renamed", 0) };
    let files = vec![
        renamed,
        file("a/Cargo.toml", "modified", 1),
        file("a/src/lib.rs", "modified", 1),
        file("a/src/main.rs", "modified", 1),
        file("a/src/deep/lib.rs", "modified", 1),
        file("tests/x.rs", "deleted", 1),
        file("README.md", "conflicted", 1),
    ];
    let mut facts = facts(files, vec![]);
    let items: Vec<ImpactItem> =
        (0..12).map(|n| ImpactItem { path: format!("a/{n}.rs"), steps: 1 + n / 11 }).collect();
    let answer = |path: &str| ImpactAnswer {
        path: path.into(),
        items: items.clone(),
        truncated: false,
        complete: true,
        took_us: 0,
    };
    facts.impacts.insert("a/src/lib.rs".into(), answer("a/src/lib.rs"));
    let entry = Entrypoint {
        path: "a/src/main.rs".into(),
        line: None,
        kind: "main".into(),
        reason: "fn main".into(),
    };
    let components = [component("a")];
    let report = report(&facts, "v1", &Owners::new(&components, &[]), &[entry]).unwrap();
    let risks: Vec<(&str, &str)> =
        report.risks.iter().map(|r| (r.path.as_str(), r.reason.as_str())).collect();
    assert_eq!(
        risks,
        [
            ("README.md", "has unresolved conflicts"),
            ("a/src/main.rs", "entrypoint: fn main"),
            ("a/src/lib.rs", "public root of the a; 12 files depend on it, 11 directly"),
            ("a/Cargo.toml", "manifest: dependencies, targets or build steps"),
            ("a/new.rs", "renamed from a/old.rs"),
        ]
    );
    assert_eq!((report.impact[0].direct, report.impact[0].total), (11, 12));
    assert_eq!(report.impact[0].components, ["the a"]);
}
