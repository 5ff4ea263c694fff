//! The page: escaping, policy, bounds and structure.

use std::collections::BTreeSet;

use cairn_explore_report::{
    graph::MAX_NODES,
    samples::{self, HOSTILE, components, cyclic, flask, helix, hostile, many, of_components},
};
use proptest::prelude::*;

use super::*;

fn assert_golden(name: &str, actual: &str) {
    samples::assert_golden(env!("CARGO_MANIFEST_DIR"), name, actual);
}

/// Elements without an end.
const VOID: &[&str] = &["meta", "br", "wbr", "rect", "!doctype"];
/// Elements that the page may have.
const ELEMENTS: &[&str] = &[
    "a",
    "article",
    "body",
    "button",
    "code",
    "defs",
    "div",
    "figcaption",
    "figure",
    "footer",
    "h1",
    "h2",
    "h3",
    "head",
    "header",
    "html",
    "li",
    "main",
    "marker",
    "nav",
    "ol",
    "p",
    "path",
    "script",
    "section",
    "span",
    "strong",
    "style",
    "svg",
    "text",
    "title",
    "ul",
];

/// The tags of a page, as their content between `<` and `>`; the style and the script are skipped.
fn tags(page: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        let after = &rest[start + 1..];
        let end = after.find('>').unwrap();
        let tag = &after[..end];
        all.push(tag);
        rest = &after[end + 1..];
        if tag == "style" || tag == "script" {
            rest = &rest[rest.find(&format!("</{tag}>")).unwrap()..];
        }
    }
    all
}

fn attributes<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    let values = page.split(start.as_str()).skip(1);
    values.map(|rest| rest.split('"').next().unwrap()).collect()
}

/// Checks that a page is well-formed, has only known elements and no attribute with code.
fn assert_harmless(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in tags(page) {
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "{tag}");
        } else if !VOID.contains(&name) {
            assert!(ELEMENTS.contains(&name), "{tag}");
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
        let outside: String = tag.split('"').step_by(2).collect();
        assert!(!outside.contains(" on") && !outside.contains("style="), "{tag}");
    }
    assert!(open.is_empty(), "{open:?}");
    let is_raw = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!page.contains(is_raw), "a raw control character");
    let addresses: Vec<&str> = page.split("http").skip(1).collect();
    let elsewhere =
        |rest: &&&str| !rest.starts_with("://www.w3.org/2000/svg\"") && !rest.starts_with("-equiv");
    let is_attribute = |rest: &&&str| rest.contains("src=") && rest.starts_with("://");
    assert_eq!(addresses.iter().filter(elsewhere).filter(is_attribute).count(), 0);
    let ids: Vec<&str> = attributes(page, "id");
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "ids are not unique");
    for target in attributes(page, "href") {
        assert!(unique.contains(target.strip_prefix('#').unwrap()), "{target}");
    }
}

#[test]
fn hostile_text_is_displayed_and_not_interpreted() {
    for text in HOSTILE {
        let page = page(&hostile(text));
        assert_harmless(&page);
        assert_eq!(page.matches("<script").count(), 1, "{text}");
        assert!(!page.contains("<img") && !page.contains("<b>"), "{text}");
    }
    let visible = page(&hostile("rm \u{202e}x"));
    assert!(visible.contains("rm \\u{202e}x"));
    // Control: the checks find an unescaped page.
    let raw = page(&hostile("a")).replace(">a<", "><img src=x onerror=y><");
    assert!(std::panic::catch_unwind(|| assert_harmless(&raw)).is_err());
}

#[test]
fn policy_allows_only_the_style_and_the_script_of_the_page() {
    let page = page(&helix());
    let between =
        |start: &str, end: &str| page.split(start).nth(1).unwrap().split(end).next().unwrap();
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let policy = between("Content-Security-Policy\" content=\"", "\"");
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
            hash(between("<style>", "</style>")),
            hash(between("<script>", "</script>"))
        )
    );
    assert!(!STYLE.contains("url(") && !STYLE.contains("@import") && !STYLE.contains('<'));
    assert!(!SCRIPT.contains("innerHTML") && !SCRIPT.contains("</"));
}

#[test]
fn empty_summary_has_no_sections() {
    let page = page(&ExploreSummary::default());
    assert_harmless(&page);
    assert!(page.contains("Nothing was found to describe."));
    assert!(page.contains("<h1>repository</h1>"));
    for absent in ["<section", "<nav", "<figure", "<ul"] {
        assert!(!page.contains(absent), "{absent}");
    }
}

#[test]
fn page_of_a_repository_is_unchanged() {
    let page = page(&flask());
    assert_harmless(&page);
    assert_golden("explore-flask.html", &page);
    assert_eq!(page, super::page(&flask()));
}

#[test]
fn every_section_is_on_the_page() {
    let mut summary = helix();
    summary.details.findings = hostile("a goal").details.findings;
    summary.details.git = hostile("a commit").details.git;
    summary.details.changes = Some(samples::changes());
    summary.details.overview = hostile("an overview").details.overview;
    let page = page(&summary);
    assert_harmless(&page);
    assert_eq!(page.matches("<section ").count(), sections(&summary).len());
    for id in attributes(&page, "id").into_iter().filter(|id| id.ends_with("-title")) {
        assert!(page.contains(&format!("aria-labelledby=\"{id}\"")), "{id}");
    }
}

/// Left upper corners of the boxes.
fn boxes(page: &str) -> Vec<(f64, f64)> {
    let number = |tag: &str, name: &str| attributes(tag, name)[0].parse::<f64>().unwrap();
    let figure = page.split("</figure>").next().unwrap();
    let rects = tags(figure).into_iter().filter(|tag| tag.starts_with("rect x="));
    rects.map(|tag| (number(tag, "x"), number(tag, "y"))).collect()
}

fn assert_apart(page: &str) {
    let boxes = boxes(page);
    for (at, a) in boxes.iter().enumerate() {
        for b in &boxes[..at] {
            assert!((a.0 - b.0).abs() >= 226.0 || (a.1 - b.1).abs() >= 38.0, "{a:?} {b:?}");
        }
    }
}

#[test]
fn cyclic_components_are_drawn_apart() {
    let page = page(&of_components(cyclic()));
    assert_harmless(&page);
    assert_eq!(boxes(&page).len(), 15);
    assert_apart(&page);
    // The pair in both directions shares a line.
    assert_eq!(page.matches("marker-start").count(), 1);
}

#[test]
fn diagram_is_bounded() {
    let page = page(&of_components(many()));
    assert_harmless(&page);
    assert_eq!(boxes(&page).len(), MAX_NODES);
    assert_apart(&page);
    assert!(page.contains("The first 24 of 300 components."));
    assert_eq!(page.matches("<article").count(), 300);
}

#[test]
fn components_without_dependencies_are_a_grid() {
    let page = page(&of_components(components(6, &[])));
    assert_eq!(boxes(&page).len(), 6);
    assert_apart(&page);
    assert!(page.contains("No dependencies between components are known."));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_graph_is_drawn_apart(edges in prop::collection::vec((0..14_usize, 0..14_usize), 0..40)) {
        let summary = of_components(components(14, &edges));
        let page = page(&summary);
        prop_assert_eq!(boxes(&page).len(), 14);
        assert_apart(&page);
    }
}
