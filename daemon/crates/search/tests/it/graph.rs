//! The graph of imports of real indexes: groups, hidden files, changes.

use std::fs;

use cairn_protocol::explore::{CodeGraph, GraphGroup};

use crate::fixture::{TestRoot, write_file};

const FILES: &[(&str, &str)] = &[
    ("app/__init__.py", ""),
    ("app/web/__init__.py", ""),
    ("app/web/pages.py", "from app.db import store\nimport flask\n\nX = 1\n"),
    ("app/db/__init__.py", ""),
    ("app/db/store.py", "from app.web import pages\nfrom app import log\n"),
    ("app/log.py", "X = 1\n"),
    ("tests/test_log.py", "from app import log\n"),
    ("README.md", "# App\n"),
];

fn graph_of(root: &TestRoot, groups: &[&str], shows: &dyn Fn(&str) -> bool) -> CodeGraph {
    let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
    root.indexes.code_graph(&root.id, &groups, 100, shows).unwrap()
}

fn graph(root: &TestRoot, groups: &[&str]) -> CodeGraph {
    graph_of(root, groups, &|_| true)
}

/// The groups that a group imports, with the number of imports.
fn edges(group: &GraphGroup) -> Vec<(&str, u32)> {
    group.depends_on.iter().map(|edge| (&*edge.name, edge.imports)).collect()
}

/// Number of files that import a file.
fn dependents(graph: &CodeGraph, path: &str) -> Option<u32> {
    graph.files.iter().find(|file| file.path == path).map(|file| file.dependents)
}

#[test]
fn groups_are_nested_and_may_be_unknown() {
    let root = TestRoot::new(FILES);
    root.build();
    let graph = graph(&root, &["app", "app/db/", "app/web", ".", "none", "../x", ""]);
    let files: Vec<u64> = graph.groups.iter().map(|group| group.files).collect();
    assert_eq!(files, [2, 2, 2, 1, 0, 0, 0]);
    assert_eq!(edges(&graph.groups[1]), [("app", 1), ("app/web", 1)]);
    assert_eq!(edges(&graph.groups[2]), [("app/db/", 1)]);
    assert_eq!(graph.groups[0].key_files, ["app/log.py"]);
    assert!(graph.groups[4].depends_on.is_empty() && graph.groups[4].key_files.is_empty());
    assert_eq!(graph.externals[0].name, "flask");
    // A test is no dependent of the product.
    assert_eq!(dependents(&graph, "app/log.py"), Some(1));
}

#[test]
fn hidden_files_are_not_in_the_graph() {
    let root = TestRoot::new(FILES);
    root.build();
    let graph = graph_of(&root, &["app/db", "app/web"], &|path| !path.starts_with("app/db"));
    assert!(!serde_json::to_string(&graph).unwrap().contains("store.py"), "{graph:?}");
    assert_eq!(graph.groups[0].files, 0);
    assert!(edges(&graph.groups[1]).is_empty());
}

#[test]
fn graph_follows_changes_of_files() {
    let root = TestRoot::new(FILES);
    root.build();
    assert_eq!(dependents(&graph(&root, &[]), "app/db/store.py"), Some(1));
    // An import that is gone.
    write_file(&root.top(), "app/web/pages.py", "import flask\n\nX = 22222\n");
    root.build();
    assert_eq!(dependents(&graph(&root, &[]), "app/db/store.py"), Some(0));
    // A file that is gone, with its imports.
    fs::remove_file(root.top().join("app/db/store.py")).unwrap();
    root.build();
    let after = graph(&root, &["app/db"]);
    assert_eq!(dependents(&after, "app/db/store.py"), None);
    assert_eq!(after.groups[0].files, 1);
    // A new file.
    write_file(&root.top(), "app/cli.py", "from app.web import pages\n");
    root.build();
    assert_eq!(dependents(&graph(&root, &[]), "app/web/pages.py"), Some(1));
}

#[test]
fn imports_are_removed_with_their_file() {
    let mut root = TestRoot::new(FILES);
    root.build();
    let stored = |root: &TestRoot| -> i64 {
        let db = root.indexes.folder(&root.id).unwrap().join("index.db");
        let conn = cairn_store::open_read_only(&db).unwrap();
        let sql = "SELECT count(*) FROM file_import";
        conn.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let before = stored(&root);
    assert!(before > 0);
    fs::remove_file(root.top().join("app/db/store.py")).unwrap();
    root.build();
    assert_eq!(stored(&root), before - 1);
    // They outlive a restart.
    root.reopen();
    root.build();
    assert_eq!(stored(&root), before - 1);
    assert_eq!(dependents(&graph(&root, &[]), "app/log.py"), Some(0));
}
