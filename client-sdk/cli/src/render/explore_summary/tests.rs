//! The page of a terminal: width, height and content.

use cairn_explore_report::samples::{
    self, HOSTILE, cyclic, flask, helix, hostile, many, of_components,
};
use cairn_protocol::explore::Finding;

use super::{page::MAX_LINES, *};
use crate::render::output;

const SESSION: &str = "ses_01a21316c9707442b7f3b5b13f488d98";

fn assert_golden(name: &str, actual: &str) {
    samples::assert_golden(env!("CARGO_MANIFEST_DIR"), name, actual);
}

fn session() -> SessionId {
    console::set_colors_enabled(false);
    SESSION.parse().unwrap()
}

fn samples() -> Vec<ExploreSummary> {
    let mut all = vec![helix(), flask(), of_components(cyclic()), of_components(many())];
    all.push(ExploreSummary::default());
    all.extend(HOSTILE.iter().map(|text| hostile(text)));
    all.extend(HOSTILE.iter().map(|text| hostile(&text.repeat(30))));
    let mut without_components = helix();
    without_components.details.components.clear();
    all.push(without_components);
    let mut goals = helix();
    let found = vec!["a/b.rs:1".to_owned(); 9];
    goals.details.findings = vec![Finding { goal: "a goal ".repeat(40), places: found }; 4];
    all.push(goals);
    let mut changed = helix();
    changed.details.changes = Some(samples::changes());
    all.push(changed);
    all
}

#[test]
fn pages_fit_the_terminal() {
    let id = session();
    for summary in samples() {
        for columns in (40..=130).chain([200]) {
            let text = page(&summary, &id, Some(columns));
            for line in text.lines() {
                assert!(cells::width(line) <= columns, "{columns}: {line}");
                assert_eq!(output::plain(line), line);
            }
            let limit = if columns >= 76 { MAX_LINES } else { MAX_LINES + 24 };
            let lines = text.lines().count();
            assert!(lines <= limit, "{columns} columns, {lines} lines:\n{text}");
        }
    }
}

#[test]
fn full_output_is_wrapped_on_a_terminal_only() {
    let id = session();
    for summary in samples() {
        for columns in [40, 60, 80, 200] {
            for line in full(&summary, &id, Some(columns)).lines() {
                assert!(cells::width(line) <= columns, "{columns}: {line}");
                assert_eq!(output::plain(line), line);
            }
        }
    }
    let long = "long ".repeat(100);
    let summary = ExploreSummary { followups: vec![long.clone()], ..Default::default() };
    assert!(full(&summary, &id, None).contains(long.trim_end()));
}

#[test]
fn pages_of_a_repository_are_unchanged() {
    let id = session();
    let mut all = String::new();
    for columns in [None, Some(80), Some(60)] {
        all.push_str(&page(&helix(), &id, columns));
        all.push_str(&format!("{}\n", "=".repeat(columns.unwrap_or(PIPED_COLUMNS))));
    }
    all.push_str(&full(&helix(), &id, Some(80)));
    assert_golden("explore-helix.txt", &all);
}

#[test]
fn empty_summary_has_no_sections() {
    let id = session();
    let summary = ExploreSummary { repo_name: "empty".into(), ..Default::default() };
    let text = page(&summary, &id, None);
    assert_eq!(text.lines().count(), 4, "{text}");
    let text = full(&summary, &id, None);
    assert_eq!(text.lines().count(), 3, "{text}");
}

#[test]
fn folders_stand_in_for_unknown_components() {
    let id = session();
    let mut summary = flask();
    assert!(!page(&summary, &id, None).contains("\nfolders"));
    summary.details.components.clear();
    let text = page(&summary, &id, None);
    assert!(text.contains("\nfolders     docs"), "{text}");
}

#[test]
fn everything_is_in_the_full_output() {
    let id = session();
    let summary = helix();
    let text = full(&summary, &id, None);
    let details = &summary.details;
    let mut expected: Vec<&str> = details.components.iter().map(|c| c.role.as_str()).collect();
    expected.extend(details.components.iter().flat_map(|c| &c.key_files).map(String::as_str));
    expected.extend(details.secondary.iter().map(|c| c.path.as_str()));
    expected.extend(details.conventions.iter().map(|c| c.text.as_str()));
    expected.extend(details.concepts.iter().map(|c| c.name.as_str()));
    expected.extend(details.hotspots.iter().flat_map(|h| &h.subjects).map(String::as_str));
    expected.extend(details.flows.iter().flat_map(|f| &f.steps).map(|s| s.name.as_str()));
    expected.extend(details.commands.sources.iter().flat_map(|(a, b)| [a.as_str(), b.as_str()]));
    expected.extend(summary.languages.keys().map(String::as_str));
    expected.extend(summary.followups.iter().map(String::as_str));
    for text_of_it in expected {
        assert!(text.contains(text_of_it), "{text_of_it} is not in:\n{text}");
    }
}

#[test]
fn changes_are_the_first_section() {
    let mut summary = helix();
    summary.details.changes = Some(samples::changes());
    let text = page(&summary, &session(), Some(100));
    let at = |label: &str| text.find(&format!("\n{label}")).unwrap_or_else(|| panic!("{text}"));
    assert!(at("changes") < at("risks") && at("affects") < at("components"), "{text}");
    for part in [
        "since v1.0 (0123456789ab): 3 commits, 4 changed files, +1,320 −45 lines",
        "+1,300 −40  1 added, 1 modified, 1 renamed, 2 commits",
        "src/flask/app.py  24 files depend on it, 9 directly: flask, tests",
        "cli: a module of its own",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    let full = full(&summary, &session(), None);
    for part in ["Changes since v1.0", "Changed files", "renamed from src/flask/command.py"] {
        assert!(full.contains(part), "{part} is not in:\n{full}");
    }
}
