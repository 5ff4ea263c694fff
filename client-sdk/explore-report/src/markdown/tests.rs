//! The documents: escaping, structure and bounds.

use super::*;
use crate::{
    agents,
    samples::{HOSTILE, cyclic, flask, hostile, many, of_components},
};

fn assert_golden(name: &str, actual: &str) {
    crate::samples::assert_golden(env!("CARGO_MANIFEST_DIR"), name, actual);
}

/// Checks that each line has the structure that the renderer gave it.
fn assert_structure(document: &str) {
    let mut fences = 0;
    let mut columns = None;
    for line in document.lines() {
        if line == NOTE || line == agents::NOTE {
            continue;
        }
        fences += usize::from(line.starts_with("```"));
        let is_title = line.starts_with("# ") || line.starts_with("## ");
        assert!(is_title || !line.starts_with('#'), "{line}");
        // Code spans have no backticks inside, and text has none that are not escaped.
        let text: String = line.replace("\\`", "").split('`').step_by(2).collect();
        assert!(!text.replace("<code>", "").replace("</code>", "").contains('<'), "{line}");
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line}");
        // All cells of a table are in one column each.
        let cells = line.starts_with('|').then(|| line.matches('|').count());
        if let (Some(before), Some(now)) = (columns, cells) {
            assert_eq!(before, now, "{line}");
        }
        columns = cells;
        let is_node = line.starts_with("  c");
        assert!(!is_node || line.ends_with("\"]") || line.contains(" --> c"), "{line}");
        assert!(!is_node || line.matches('"').count() % 2 == 0, "{line}");
        assert!(!line.contains("](javascript") || line.contains("\\]("), "{line}");
    }
    assert!(fences == 0 || fences == 2, "{document}");
    let titles = document.lines().filter(|line| line.starts_with("# ")).count();
    assert_eq!(titles, 1, "{document}");
}

#[test]
fn hostile_text_cannot_break_out() {
    for text in HOSTILE {
        let summary = hostile(text);
        assert_structure(&document(&summary));
        assert_structure(&agents::draft(&summary));
        let page = page(&summary);
        assert_structure(&page);
        assert!(page.len() <= page::MAX_BYTES + 20, "{}", page.len());
    }
}

#[test]
fn documents_of_a_repository_are_unchanged() {
    let summary = flask();
    let text = document(&summary);
    assert_structure(&text);
    assert_golden("explore-flask.md", &text);
    let draft = agents::draft(&summary);
    assert_structure(&draft);
    assert_golden("explore-flask-agents.md", &draft);
    assert_eq!((document(&flask()), agents::draft(&flask())), (text, draft));
}

#[test]
fn empty_summary_has_a_title_alone() {
    assert_eq!(document(&ExploreSummary::default()), format!("# Overview\n\n{NOTE}\n"));
    let note = agents::NOTE;
    assert_eq!(agents::draft(&ExploreSummary::default()), format!("# Overview\n\n{note}\n"));
}

#[test]
fn diagrams_are_bounded_and_drawn_with_cycles() {
    let text = document(&of_components(cyclic()));
    assert_structure(&text);
    for edge in ["  c2 --> c7\n", "  c7 --> c2\n"] {
        assert!(text.contains(edge), "{edge} is not in:\n{text}");
    }
    assert!(!text.contains("c4 --> c4"));
    let text = document(&of_components(many()));
    assert_structure(&text);
    assert_eq!(text.lines().filter(|line| line.ends_with("\"]")).count(), 24);
    assert!(text.contains("The first 24 of 300 components."));
}

/// The real parsers of Mermaid and Markdown, from npm in `target/peers`.
#[test]
#[ignore = "needs npm's mermaid, jsdom, micromark and micromark-extension-gfm in target/peers"]
fn real_parsers_find_no_markup_in_text() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dir = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new("node");
    command.current_dir(root.join("target/peers"));
    command.arg(root.join("tests/conformance/markdown.mjs"));
    let mut summaries: Vec<ExploreSummary> = HOSTILE.iter().map(|text| hostile(text)).collect();
    summaries.extend([flask(), of_components(cyclic()), of_components(many())]);
    for (at, summary) in summaries.iter().enumerate() {
        let name = |form: &str| dir.path().join(format!("{at}-{form}.md"));
        std::fs::write(name("architecture"), document(summary)).unwrap();
        std::fs::write(name("agents"), agents::draft(summary)).unwrap();
        command.args([name("architecture"), name("agents")]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let count = summaries.len();
    assert_eq!(text, format!("{} documents, {count} diagrams, 0 problems\n", count * 2));
}

#[test]
fn empty_columns_of_a_table_are_left_out() {
    let cells = |all: &[&str]| all.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
    let table = |rows: &[Vec<String>]| {
        let mut document = Document { text: String::new() };
        document.table(&["a", "b"], rows);
        document.text
    };
    assert_eq!(table(&[cells(&["1", ""]), cells(&["2", ""])]), "\n| a |\n|---|\n| 1 |\n| 2 |\n");
    assert_eq!(
        table(&[cells(&["1", ""]), cells(&["", "2"])]),
        "\n| a | b |\n|---|---|\n| 1 |  |\n|  | 2 |\n"
    );
    assert_eq!((table(&[]), table(&[cells(&["", ""])])), (String::new(), String::new()));
}

#[test]
fn page_of_a_repository_is_short_and_unchanged() {
    let mut summary = flask();
    summary.details.changes = Some(crate::samples::changes());
    let text = page(&summary);
    assert_structure(&text);
    assert_golden("explore-flask-page.md", &text);
    let document = document(&summary);
    for line in ["## Changes since v1.0", "## Risky changes", "## Affected by the changes"] {
        assert!(document.contains(line) && text.contains(line), "{document}");
    }
}

#[test]
fn page_is_bounded() {
    let mut summary = of_components(many());
    summary.followups = (0..20).map(|n| n.to_string()).collect();
    let text = page(&summary);
    assert!(text.contains("* … 284 more\n") && text.contains("* … 15 more\n"), "{text}");
    summary.details.purpose = Some("long ".repeat(10_000));
    assert!(page(&summary).ends_with("\n… truncated\n"));
}

#[test]
fn unchanged_work_tree_is_reported() {
    let mut summary = ExploreSummary::default();
    summary.details.changes = Some(cairn_protocol::changes::ExploreChanges {
        since: "HEAD".into(),
        base: "0123456789abcdef".into(),
        ..Default::default()
    });
    let text = document(&summary);
    assert!(text.contains("Compared with commit `0123456789ab`: Nothing has changed."), "{text}");
    assert!(!text.contains("Risky"), "{text}");
}
