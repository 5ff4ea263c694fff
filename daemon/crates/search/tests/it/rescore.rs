//! Re-scoring of the best results, with the built-in table as the model, whose scores are known.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cairn_protocol::search::{SearchAnswer, SearchParams};
use cairn_search::{CancelFlag, Embedder, Indexes, RescoreLimits, Rescorer};

use crate::fixture::{build, hybrid, open, options, write_file};

fn rescorer(top: usize, time: Duration) -> Option<Arc<Rescorer>> {
    let limits = RescoreLimits { top, time, threads: 2 };
    Some(Arc::new(Rescorer::new(Arc::new(Embedder::builtin().unwrap()), limits).unwrap()))
}

/// An index of twenty files about parsing headers, ten of them with a definition each.
fn index(dir: &Path, rescorer: Option<Arc<Rescorer>>) -> Indexes {
    let top = dir.join("root");
    for n in 0..10 {
        let code = format!(
            "/// Parses header number {n}.\npub fn parse_header{n}(line: &str) -> Header {{\n    Header::from(line)\n}}\n"
        );
        write_file(&top, &format!("header{n}.rs"), code);
        write_file(&top, &format!("note{n}.txt"), format!("the header is parsed, see {n}\n"));
    }
    let mut options = options();
    options.rescorer = rescorer;
    let (indexes, id) = open(&dir.join("index"), &top, options);
    build(&indexes, &id);
    indexes
}

fn params() -> SearchParams {
    SearchParams { explain: true, ..SearchParams::new("parse a header line") }
}

/// The number of items with a share of re-scoring, and true if all shares add up to the scores.
fn count_rescored(answer: &SearchAnswer) -> (usize, bool) {
    let has = |item: &&cairn_protocol::search::SearchItem| {
        item.explain.iter().any(|s| s.feature == "rerank")
    };
    let fits = |item: &cairn_protocol::search::SearchItem| {
        (item.explain.iter().map(|s| s.share).sum::<f64>() - item.score).abs() < 1e-4
    };
    (answer.items.iter().filter(has).count(), answer.items.iter().all(fits))
}

#[test]
fn best_results_are_rescored_with_an_explanation() {
    let dir = tempfile::tempdir().unwrap();
    let plain = index(dir.path(), None);
    let before = hybrid(&plain, &params());
    assert_eq!(count_rescored(&before), (0, true));
    plain.close();
    let long = Duration::from_secs(600);
    let all = index(dir.path(), rescorer(200, long));
    let answer = hybrid(&all, &params());
    let (count, fits) = count_rescored(&answer);
    // The farthest of the re-scored passages has a share of 0.
    assert!(
        count + 1 >= answer.items.len() && count > 5 && fits,
        "{count} of {}",
        answer.items.len()
    );
    assert_eq!((answer.items.len(), answer.degraded.len()), (before.items.len(), 0));
    let second = hybrid(&all, &params());
    assert_eq!(second.items, answer.items);
    let other = |answer: Result<SearchAnswer, _>| count_rescored(&answer.unwrap_or_default()).0;
    let none = CancelFlag::new();
    assert_eq!(other(all.lexical(&params(), &none, &|_| {})), 0);
    assert_eq!(other(all.semantic(&params(), &none, &|_| {})), 0);
    all.close();
    let few = index(dir.path(), rescorer(4, long));
    assert!((1..=4).contains(&count_rescored(&hybrid(&few, &params())).0));
    few.close();
}

#[test]
fn order_is_unchanged_and_degraded_without_time() {
    let dir = tempfile::tempdir().unwrap();
    let plain = index(dir.path(), None);
    let before = hybrid(&plain, &params());
    plain.close();
    let late = index(dir.path(), rescorer(50, Duration::ZERO));
    let answer = hybrid(&late, &params());
    assert_eq!(answer.degraded, ["rerank"]);
    assert_eq!(count_rescored(&answer).0, 0);
    assert_eq!(answer.items, before.items);
    let cancelled = CancelFlag::new();
    cancelled.cancel();
    assert!(late.hybrid(&params(), &cancelled, &|_| {}).is_err());
}
