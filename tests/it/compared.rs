//! The table of expectations in `docs/guide/compared.md`: each test that it names exists.

use crate::tidy::root;

/// Values of a peer's cell.
const VERDICTS: [&str; 4] = ["yes", "partly", "no", "unknown"];
/// Cells of a row: the expectation, four peers, Cairn.
const CELLS: usize = 6;
/// First cell of the header of each table.
const HEADER: &str = "| expectation |";

/// Returns the rows of the tables, without their headers.
fn rows(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter(|line| line.starts_with("| ") && !line.starts_with(HEADER))
}

/// Returns true if the source has a test of this name.
fn has_test(source: &str, function: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let signatures = ["", "async "].map(|prefix| format!("{prefix}fn {function}("));
    let is_attribute =
        |line: &&str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
    lines.iter().enumerate().any(|(at, line)| {
        signatures.iter().any(|signature| line.starts_with(signature))
            && lines
                .iter()
                .take(at)
                .rev()
                .take_while(|line| line.starts_with("#["))
                .any(is_attribute)
    })
}

/// Lists the errors of a row; `read` returns the text of a file of the repository.
fn errors(row: &str, read: &dyn Fn(&str) -> String) -> Vec<String> {
    let cells: Vec<&str> = row.trim().trim_matches('|').split('|').map(str::trim).collect();
    let [expectation, peers @ .., own] = cells.as_slice() else {
        return vec![format!("{row}: too few cells")];
    };
    let mut all = Vec::new();
    if cells.len() != CELLS || !peers.iter().all(|cell| VERDICTS.contains(cell)) {
        all.push(format!("{expectation}: each of four peers has one of {VERDICTS:?}"));
    }
    let tests: Vec<&str> = own.split('`').skip(1).step_by(2).collect();
    match (own.split([',', ' ']).next(), tests.is_empty()) {
        (Some("yes" | "partly"), false) | (Some("no"), true) => {}
        (Some("yes" | "partly"), true) => all.push(format!("{expectation}: no test is named")),
        _ => all.push(format!("{expectation}: '{own}' begins with yes, partly or no alone")),
    }
    for test in tests {
        let exists =
            test.rsplit_once("::").is_some_and(|(path, function)| has_test(&read(path), function));
        if !exists {
            all.push(format!("{expectation}: {test} does not exist"));
        }
    }
    all
}

#[test]
fn every_test_named_in_the_comparison_exists() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap_or_default();
    let page = read("docs/guide/compared.md");
    assert!(rows(&page).count() >= 40, "{} rows", rows(&page).count());
    let all: Vec<String> = rows(&page).flat_map(|row| errors(row, &read)).collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn row_without_its_test_is_detected() {
    let read = |path: &str| match path {
        "a.rs" => "#[test]\nfn one() {}\n\nfn helper() {}\n".to_owned(),
        "b.rs" => "    #[tokio::test]\n    #[ignore]\n    async fn two() {}\n".to_owned(),
        _ => String::new(),
    };
    for (peers, own, count) in [
        ("yes | partly | no | unknown", "yes, `a.rs::one`", 0),
        ("yes | partly | no | unknown", "partly, `a.rs::one`, `b.rs::two`", 0),
        ("no | no | no | no", "no", 0),
        ("no | no | no | no", "yes", 1),
        ("no | no | no | no", "no, `a.rs::one`", 1),
        ("no | no | no | no", "perhaps", 1),
        ("no | no | no | no", "yes, `a.rs::two`", 1),
        ("no | no | no | no", "yes, `a.rs::helper`", 1),
        ("no | no | no | no", "yes, `c.rs::one`", 1),
        ("no | no | no", "no", 1),
        ("no | no | no | nearly", "no", 1),
    ] {
        let row = format!("| an expectation | {peers} | {own} |");
        let got = errors(&row, &read);
        assert_eq!(got.len(), count, "{row}: {got:?}");
    }
}
