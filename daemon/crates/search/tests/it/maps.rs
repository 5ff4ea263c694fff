//! Maps of real indexes: their content, focus and cost.

use std::fs;

use cairn_protocol::error::Reason;
use cairn_protocol::map::{MapAnswer, MapParams};
use cairn_search::CancelFlag;
use serde_json::json;

use crate::fixture::{TestRoot, add_root, build, write_files};

const FILES: &[(&str, &str)] = &[
    ("src/log.rs", "pub fn append_record() {}\npub fn close_record_log() {}\n"),
    (
        "src/header.rs",
        "/// Reads the first bytes of a request.\npub fn parse_header() -> u8 { 0 }\n",
    ),
    ("src/server.rs", "pub fn serve_requests() { append_record(); parse_header(); }\n"),
    ("src/client.rs", "pub fn send_request() { append_record(); }\n"),
    ("src/main.rs", "fn main() { append_record(); serve_requests(); }\n"),
    ("tests/log.rs", "fn log_grows() { append_record(); }\n"),
];
/// A second root that uses definitions of the first one, and has a file of the same name.
const OTHER: &[(&str, &str)] = &[
    ("src/main.rs", "fn other_main() { close_record_log(); }\n"),
    ("tool.py", "def rotate_logs(): pass\n"),
];

/// Two roots in the same indexes, the first of which has `FILES`.
fn two_roots() -> TestRoot {
    let one = TestRoot::new(FILES);
    one.build();
    let two = one.dir.path().join("two");
    write_files(&two, OTHER);
    let id = add_root(&one.indexes, &two);
    build(&one.indexes, &id);
    one
}

/// A map of the first root alone.
fn map(one: &TestRoot, params: serde_json::Value) -> MapAnswer {
    let mut params: MapParams = serde_json::from_value(params).unwrap();
    params.roots = vec![one.id.to_string()];
    one.indexes.map(&params, &CancelFlag::new()).unwrap()
}

fn paths(answer: &MapAnswer) -> Vec<&str> {
    answer.files.iter().map(|f| &*f.path).collect()
}

#[test]
fn map_shows_the_most_referenced_definitions() {
    let one = two_roots();
    let answer = map(&one, json!({}));
    assert!(
        answer.complete && answer.text.starts_with("src/log.rs\n 1 pub fn append_record()\n"),
        "{answer:?}"
    );
    assert_eq!(answer.files.len(), FILES.len());
    assert_eq!(answer.tokens as usize, answer.text.len().div_ceil(4));
    let names: Vec<&str> = answer.files[0].definitions.iter().map(|d| &*d.name).collect();
    assert_eq!(names, ["append_record", "close_record_log"]);
    // The other root is not included.
    assert!(!answer.text.contains("rotate_logs") && !answer.text.contains("other_main"));
}

#[test]
fn map_fits_its_budget() {
    let one = two_roots();
    for budget in 1..90 {
        let answer = map(&one, json!({"budget": budget}));
        assert!(
            answer.tokens <= budget && answer.text.len() <= 4 * budget as usize,
            "{budget}: {answer:?}"
        );
    }
    assert_eq!(paths(&map(&one, json!({"budget": 14}))), ["src/log.rs"]);
}

#[test]
fn files_and_names_in_focus_come_first() {
    let one = two_roots();
    let server = map(&one, json!({"files": ["src/server.rs"]}));
    assert_eq!(paths(&server)[0], "src/server.rs");
    let rank = |a: &MapAnswer, path: &str| a.files.iter().find(|f| f.path == path).unwrap().score;
    let header = |a: &MapAnswer| rank(a, "src/header.rs") / rank(a, "src/log.rs");
    assert!(header(&server) > header(&map(&one, json!({}))), "{server:?}");
    // Also by absolute path, and by the results of a search.
    let by_absolute_path = map(
        &one,
        json!({"files": [format!("{}/src/server.rs", one.top().canonicalize().unwrap().display())]}),
    );
    assert_eq!(by_absolute_path.files, server.files);
    for query in ["parse_header", "read the first bytes of a request"] {
        let map = map(&one, json!({"query": query, "budget": 40}));
        assert!(map.text.contains("pub fn parse_header() -> u8"), "{query}: {map:?}");
    }
}

#[test]
fn roots_are_distinguished_and_refer_to_each_other() {
    let one = two_roots();
    let both = one.indexes.map(&MapParams::default(), &CancelFlag::new()).unwrap();
    let mains: Vec<_> = both.files.iter().filter(|f| f.path == "src/main.rs").collect();
    let names = |n: usize| &*mains[n].definitions[0].name;
    assert!(mains.len() == 2 && mains[0].root != mains[1].root && names(0) != names(1), "{both:?}");
    assert_eq!(both.files[0].path, "src/log.rs");
    let alone = map(&one, json!({})).files[0].definitions.len();
    assert_eq!(both.files[0].definitions.len(), alone);
}

#[test]
fn invalid_parameters_are_refused() {
    let one = two_roots();
    for (params, expected) in [
        (json!({"budget": 0}), Reason::InvalidParams),
        (json!({"budget": 16385}), Reason::InvalidParams),
        (json!({"files": vec!["a"; 201]}), Reason::InvalidParams),
        (json!({"query": ""}), Reason::InvalidParams),
        (json!({"query": "x".repeat(5000)}), Reason::InvalidParams),
        (json!({"files": ["src/gone.rs"]}), Reason::PathNotFound),
        (json!({"roots": ["root_none"]}), Reason::RootNotFound),
    ] {
        let query: MapParams = serde_json::from_value(params.clone()).unwrap();
        let refusal = one.indexes.map(&query, &CancelFlag::new()).unwrap_err();
        assert_eq!(refusal.reason, expected, "{params}");
    }
    let cancelled = CancelFlag::new();
    cancelled.cancel();
    let refused = one.indexes.map(&MapParams::default(), &cancelled).unwrap_err();
    assert_eq!(refused.reason, Reason::Cancelled);
}

#[test]
fn removed_files_are_not_in_the_map() {
    let one = two_roots();
    fs::remove_file(one.top().join("src/log.rs")).unwrap();
    let answer = map(&one, json!({}));
    assert!(
        !answer.text.contains("src/log.rs") && paths(&answer).contains(&"src/server.rs"),
        "{answer:?}"
    );
}
