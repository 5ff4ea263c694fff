//! The table of attacks in the guide and the tests are the same.

use std::collections::BTreeSet;

use crate::tidy::root;

/// Each row of the table names an existing test of this folder, and each such test has a row.
#[test]
fn guide_has_a_row_for_each_attack() {
    let guide = std::fs::read_to_string(root().join("docs/guide/safety.md")).unwrap();
    let (_, rest) = guide.split_once("<!-- table: attacks -->\n").unwrap();
    let (table, _) = rest.split_once("<!-- end -->").unwrap();
    let mut listed = BTreeSet::new();
    for row in table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| class")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        assert!(cells.len() == 4 && cells.iter().all(|cell| !cell.is_empty()), "{row}");
        for name in cells[3].split(' ') {
            assert!(listed.insert(name.trim_matches('`').to_owned()), "twice: {name}");
        }
    }
    let mut written = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("tests/it/attacks")).unwrap().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let module = entry.path().file_stem().unwrap().to_string_lossy().into_owned();
        let text = text.replace("#[tokio::test(flavor = \"multi_thread\")]\n", "#[test]\n");
        for after in text.split("#[test]\n").skip(1).filter(|_| module != "table") {
            let name = after.split("fn ").nth(1).unwrap().split('(').next().unwrap();
            written.insert(format!("{module}::{name}"));
        }
    }
    assert_eq!(listed, written);
}
