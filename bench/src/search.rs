//! Search latencies, on queries drawn from the tree: words of comment lines and identifiers.

use std::path::Path;

use cairn_protocol::search::{GrepParams, SearchParams};
use cairn_search::{CancelFlag, Indexes};

use crate::meter::{latencies, timed};

/// Queries drawn.
const QUERIES: usize = 200;

/// Measures the three kinds on the library.
pub fn run(indexes: &Indexes, folder: &Path) {
    let queries = drawn(indexes, folder);
    let never = CancelFlag::new();
    for (name, floor) in [
        ("search: lexical", "floor p95 < 100 ms"),
        ("search: semantic", "floor p95 < 15 ms"),
        ("search: hybrid", "floor p95 < 120 ms"),
    ] {
        let mut times = Vec::new();
        // The first round warms what the file system holds.
        for round in 0..2 {
            times.clear();
            for query in &queries {
                let params: SearchParams =
                    serde_json::from_value(serde_json::json!({"query": query, "k": 20})).expect("params");
                let ask = || match name {
                    "search: lexical" => indexes.lexical(&params, &never, &|_| ()),
                    "search: semantic" => indexes.semantic(&params, &never, &|_| ()),
                    _ => indexes.hybrid(&params, &never, &|_| ()),
                };
                let (answer, ms) = timed(ask);
                answer.expect("an answer");
                times.push(ms);
            }
            let _ = round;
        }
        latencies(name, times, floor);
    }
}

/// Every so many comment lines and definitions of the tree, three to six words of each.
fn drawn(indexes: &Indexes, folder: &Path) -> Vec<String> {
    let pattern = r"^\s*(//|\*|#) +\w+ \w+ \w+ \w+|^\s*(fn|func|def|class|struct|static|int|void) +\w{6,}";
    let root = folder.canonicalize().expect("a folder");
    let params: GrepParams = serde_json::from_value(serde_json::json!({
        "pattern": pattern, "isRegex": true, "k": 10_000, "filters": {"roots": [root]},
    }))
    .expect("params");
    let lines = indexes.grep(&params, &CancelFlag::new()).expect("lines").items;
    let step = (lines.len() / QUERIES).max(1);
    let words = |line: &str| -> String {
        let words: Vec<&str> =
            line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| w.len() > 1).collect();
        words[..words.len().min(5)].join(" ")
    };
    lines.iter().step_by(step).map(|l| words(&l.text)).filter(|q| !q.is_empty()).take(QUERIES).collect()
}
