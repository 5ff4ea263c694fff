//! Maps of real indexes: their content, focus and cost.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::fs;

use cairn_protocol::error::Reason;
use cairn_protocol::map::{MapAnswer, MapParams};
use cairn_search::{CancelFlag, Embedder, IndexOptions, Indexes, Until};
use cairn_workspace::Roots;
use serde_json::json;

const FILES: &[(&str, &str)] = &[
    ("src/log.rs", "pub fn append_record() {}\npub fn close_record_log() {}\n"),
    ("src/header.rs", "/// Reads the first bytes of a request.\npub fn parse_header() -> u8 { 0 }\n"),
    ("src/server.rs", "pub fn serve_requests() { append_record(); parse_header(); }\n"),
    ("src/client.rs", "pub fn send_request() { append_record(); }\n"),
    ("src/main.rs", "fn main() { append_record(); serve_requests(); }\n"),
    ("tests/log.rs", "fn log_grows() { append_record(); }\n"),
];
/// A second root that uses definitions of the first one, and has a file of the same name.
const OTHER: &[(&str, &str)] =
    &[("src/main.rs", "fn other_main() { close_record_log(); }\n"), ("tool.py", "def rotate_logs(): pass\n")];

struct World {
    dir: tempfile::TempDir,
    indexes: Indexes,
}

fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let mut opts = IndexOptions::new(Embedder::builtin().unwrap()).unwrap();
    opts.watch = false;
    opts.sweep_seconds = 0;
    let indexes = Indexes::open(dir.path().join("index"), opts, None);
    for (name, files) in [("one", FILES), ("two", OTHER)] {
        for (path, text) in files {
            let full = dir.path().join(name).join(path);
            fs::create_dir_all(full.parent().unwrap()).unwrap();
            fs::write(full, text).unwrap();
        }
        let root = Roots::new(Vec::new()).declare(&dir.path().join(name)).unwrap();
        let id = root.id.clone();
        indexes.add_root(root).unwrap();
        indexes.build_and_wait(&id, Until::Everything, &CancelFlag::new()).unwrap();
    }
    World { dir, indexes }
}

impl World {
    fn one(&self) -> String {
        self.dir.path().join("one").canonicalize().unwrap().to_str().unwrap().to_owned()
    }

    /// A map of the first root.
    fn map(&self, params: serde_json::Value) -> MapAnswer {
        let mut params: MapParams = serde_json::from_value(params).unwrap();
        params.roots = vec![self.one()];
        self.indexes.map(&params, &CancelFlag::new()).unwrap()
    }

    fn refused(&self, params: serde_json::Value) -> Reason {
        let params: MapParams = serde_json::from_value(params).unwrap();
        self.indexes.map(&params, &CancelFlag::new()).unwrap_err().reason
    }
}

fn paths(answer: &MapAnswer) -> Vec<&str> {
    answer.files.iter().map(|f| &*f.path).collect()
}

#[test]
fn map_shows_the_most_referenced_definitions() {
    let world = world();
    let answer = world.map(json!({}));
    assert!(
        answer.complete && answer.text.starts_with("src/log.rs\n 1 function append_record\n"),
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
    let world = world();
    for budget in 1..90 {
        let answer = world.map(json!({"budget": budget}));
        assert!(answer.tokens <= budget && answer.text.len() <= 4 * budget as usize, "{budget}: {answer:?}");
    }
    assert_eq!(paths(&world.map(json!({"budget": 14}))), ["src/log.rs"]);
}

#[test]
fn files_and_names_in_focus_come_first() {
    let world = world();
    let server = world.map(json!({"files": ["src/server.rs"]}));
    assert_eq!(paths(&server)[0], "src/server.rs");
    let rank = |a: &MapAnswer, path: &str| a.files.iter().find(|f| f.path == path).unwrap().score;
    let header = |a: &MapAnswer| rank(a, "src/header.rs") / rank(a, "src/log.rs");
    assert!(header(&server) > header(&world.map(json!({}))), "{server:?}");
    // Also by absolute path, and by the results of a search.
    let complete_ = world.map(json!({"files": [format!("{}/src/server.rs", world.one())]}));
    assert_eq!(complete_.files, server.files);
    for query in ["parse_header", "read the first bytes of a request"] {
        let map = world.map(json!({"query": query, "budget": 40}));
        assert!(map.text.contains("function parse_header"), "{query}: {map:?}");
    }
}

#[test]
fn roots_are_distinguished_and_refer_to_each_other() {
    let world = world();
    let both = world.indexes.map(&MapParams::default(), &CancelFlag::new()).unwrap();
    let mains: Vec<_> = both.files.iter().filter(|f| f.path == "src/main.rs").collect();
    let names = |n: usize| &*mains[n].definitions[0].name;
    assert!(mains.len() == 2 && mains[0].root != mains[1].root && names(0) != names(1), "{both:?}");
    assert_eq!(both.files[0].path, "src/log.rs");
    let alone = world.map(json!({})).files[0].definitions.len();
    assert_eq!(both.files[0].definitions.len(), alone);
}

#[test]
fn invalid_parameters_are_refused() {
    let world = world();
    for (params, expected) in [
        (json!({"budget": 0}), Reason::InvalidParams),
        (json!({"budget": 16385}), Reason::InvalidParams),
        (json!({"files": vec!["a"; 201]}), Reason::InvalidParams),
        (json!({"query": ""}), Reason::InvalidParams),
        (json!({"query": "x".repeat(5000)}), Reason::InvalidParams),
        (json!({"files": ["src/gone.rs"]}), Reason::PathNotFound),
        (json!({"roots": ["root_none"]}), Reason::RootNotFound),
    ] {
        assert_eq!(world.refused(params.clone()), expected, "{params}");
    }
    let cancelled = CancelFlag::new();
    cancelled.cancel();
    let refused = world.indexes.map(&MapParams::default(), &cancelled).unwrap_err();
    assert_eq!(refused.reason, Reason::Cancelled);
}

#[test]
fn removed_files_are_not_in_the_map() {
    let world = world();
    fs::remove_file(world.dir.path().join("one/src/log.rs")).unwrap();
    let answer = world.map(json!({}));
    assert!(!answer.text.contains("src/log.rs") && paths(&answer).contains(&"src/server.rs"), "{answer:?}");
}
