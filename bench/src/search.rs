//! Search latencies, on queries drawn from the tree: words of comment lines and identifiers. They
//! are compared with a plain pass over the vectors, the results of an exact search, and another
//! engine over the same windows.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use cairn_protocol::id::RootId;
use cairn_protocol::search::{GrepParams, SearchParams};
use cairn_search::{CancelFlag, Embedder, Indexes, Until};
use cairn_workspace::Root;

use crate::meter::{latencies, quantile, report, timed};

/// Number of queries that are measured.
const QUERIES: usize = 200;
/// Nearest chunks compared with an exact search, and number of such queries.
const NEAREST: usize = 200;
const COMPARED: usize = 50;

/// The kinds of search and the limits of their p95 in milliseconds.
const KINDS: [(&str, f64); 3] = [("lexical", 5.0), ("semantic", 15.0), ("hybrid", 15.0)];

/// Measures the three kinds through the library.
pub fn run(indexes: &Indexes, root: &Root, dir: &Path) {
    let queries = drawn(indexes, &root.path);
    let mut quiet = Vec::new();
    for (kind, floor) in KINDS {
        // The first round warms the file system cache.
        round(indexes, kind, &root.id, &queries, &AtomicBool::new(false));
        let mut times = round(indexes, kind, &root.id, &queries, &AtomicBool::new(false));
        quiet.push(quantile(&mut times, 0.95));
        latencies(&format!("search: {kind}"), times, &format!("floor p95 <= {floor} ms"));
    }
    let first = partial(indexes, &root.id, &queries);
    latencies("search: first partial of hybrid", first, "floor <= 5 ms");
    let database = dir.join(&*root.id.0).join("index.db");
    dense(indexes, &root.id, &queries, &database, quiet[1]);
    #[cfg(feature = "peers")]
    crate::peers::tantivy(&database, &root.path, &queries, quiet[0]);
    busy(indexes, root, &queries, &quiet);
}

/// Runs each query once and returns milliseconds; ends early when `stop` is set.
fn round(
    indexes: &Indexes,
    kind: &str,
    root: &RootId,
    queries: &[String],
    stop: &AtomicBool,
) -> Vec<f64> {
    let never = CancelFlag::new();
    let one = |query: &String| {
        let params: SearchParams = serde_json::from_value(
            serde_json::json!({"query": query, "k": 20, "filters": {"roots": [root]}}),
        )
        .expect("params");
        let search = || match kind {
            "lexical" => indexes.lexical(&params, &never, &|_| ()),
            "semantic" => indexes.semantic(&params, &never, &|_| ()),
            _ => indexes.hybrid(&params, &never, &|_| ()),
        };
        let (answer, ms) = timed(search);
        answer.expect("an answer");
        ms
    };
    queries.iter().take_while(|_| !stop.load(Ordering::Relaxed)).map(one).collect()
}

/// Returns the milliseconds until the first partial result of a hybrid search.
fn partial(indexes: &Indexes, root: &RootId, queries: &[String]) -> Vec<f64> {
    let never = CancelFlag::new();
    let one = |query: &String| {
        let params: SearchParams = serde_json::from_value(serde_json::json!({
            "query": query, "k": 20, "filters": {"roots": [root]}, "requestId": "one",
        }))
        .expect("params");
        let start = std::time::Instant::now();
        let first = std::sync::OnceLock::new();
        let on_partial = |_| {
            first.get_or_init(|| start.elapsed().as_secs_f64() * 1000.0);
        };
        indexes.hybrid(&params, &never, &on_partial).expect("an answer");
        first.get().copied().unwrap_or(f64::NAN)
    };
    queries.iter().map(one).collect()
}

/// Measures a plain pass over the vectors in the database, and compares with an exact search.
fn dense(indexes: &Indexes, root: &RootId, queries: &[String], database: &Path, semantic: f64) {
    let conn = cairn_store::open_read_only(database).expect("a database");
    let mut all = conn.prepare("SELECT chunk_id, vec, dim FROM chunk_vec").expect("vectors");
    let (mut ids, mut vectors): (Vec<i64>, Vec<f32>) = (Vec::new(), Vec::new());
    let mut rows = all.query([]).expect("vectors");
    while let Some(row) = rows.next().expect("a vector") {
        ids.push(row.get(0).expect("an id"));
        let blob = row.get_ref(1).expect("a vector").as_blob().expect("bytes");
        let dim = row.get(2).expect("a dimension");
        vectors.extend(cairn_search::stored_vector(blob, dim).expect("a vector"));
    }
    let dim = vectors.len() / ids.len().max(1);
    let mut plain: Vec<f64> = (0..30)
        .map(|_| {
            timed(|| {
                let lanes = vectors.as_chunks::<16>().0.iter().fold([0f32; 16], |mut sum, lane| {
                    sum.iter_mut().zip(lane).for_each(|(s, x)| *s += x);
                    sum
                });
                std::hint::black_box(lanes)
            })
            .1
        })
        .collect();
    let plain = quantile(&mut plain, 0.5);
    let embedder = Embedder::builtin().expect("the embedder");
    let mut recall = Vec::new();
    let mut scans = Vec::new();
    for query in queries.iter().step_by(queries.len().div_ceil(COMPARED).max(1)) {
        let query_vector = embedder.embed(&[query.as_bytes()]).expect("a vector");
        let cosine = |at: usize| -> f32 {
            vectors[at * dim..(at + 1) * dim].iter().zip(&query_vector).map(|(a, b)| a * b).sum()
        };
        let mut scored: Vec<(f32, i64)> = (0..ids.len()).map(|at| (cosine(at), ids[at])).collect();
        scored.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        scored.truncate(NEAREST);
        let exact: std::collections::HashSet<i64> = scored.iter().map(|s| s.1).collect();
        let (nearest, ms) =
            timed(|| indexes.nearest_chunks(root, query, NEAREST).expect("neighbours"));
        scans.push(ms);
        recall.push(
            nearest.iter().filter(|id| exact.contains(id)).count() as f64
                / exact.len().max(1) as f64,
        );
    }
    let mean = recall.iter().sum::<f64>() / recall.len().max(1) as f64;
    let least = recall.iter().copied().fold(1.0, f64::min);
    report(format!(
        "search: vectors                    recall@{NEAREST} {mean:.4} (least {least:.3}) of an exact search, {} queries; one plain pass over {:.0} MB of f32, one thread: {plain:.1} ms; the scan p50 {:.1}, p95 {:.1} ms; semantic p95 {:.2} x that  floor recall >= 0.995, <= 0.35 x",
        recall.len(),
        vectors.len() as f64 * 4e-6,
        quantile(&mut scans, 0.5),
        quantile(&mut scans, 0.95),
        semantic / plain
    ));
}

/// Measures the same searches while another index is built: a part of the tree as a separate root.
fn busy(indexes: &Indexes, root: &Root, queries: &[String], quiet: &[f64]) {
    let mut folders: Vec<_> = std::fs::read_dir(&root.path).expect("a folder").flatten().collect();
    folders.retain(|e| e.path().is_dir());
    for ((kind, _), quiet) in KINDS.iter().zip(quiet) {
        let mut times = Vec::new();
        for folder in &folders {
            let part =
                cairn_workspace::Roots::new(Vec::new()).declare(&folder.path()).expect("a folder");
            let done = AtomicBool::new(false);
            let enough = CancelFlag::new();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    indexes.add_root(part.clone()).expect("a root");
                    // Cancelled early once enough queries have run meanwhile.
                    let _cancelled = indexes.build_and_wait(&part.id, Until::Everything, &enough);
                    done.store(true, Ordering::Relaxed);
                });
                while !done.load(Ordering::Relaxed) && times.len() < 3 * QUERIES {
                    times.extend(round(indexes, kind, &root.id, queries, &done));
                }
                enough.cancel();
            });
            indexes.remove_root(&part.id).expect("removed");
        }
        let n = times.len();
        let p95 = quantile(&mut times, 0.95);
        report(format!(
            "search: {kind:8} while indexing   p95 {p95:9.3} ms  n {n}  {:.2} x the p95 without  floor <= 2 x",
            p95 / quiet
        ));
    }
}

/// Draws every n-th comment line and definition of the tree, with three to six words of each.
fn drawn(indexes: &Indexes, folder: &Path) -> Vec<String> {
    let pattern =
        r"^\s*(//|\*|#) +\w+ \w+ \w+ \w+|^\s*(fn|func|def|class|struct|static|int|void) +\w{6,}";
    let root = folder.canonicalize().expect("a folder");
    let params: GrepParams = serde_json::from_value(serde_json::json!({
        "pattern": pattern, "isRegex": true, "k": 10_000, "filters": {"roots": [root]},
    }))
    .expect("params");
    let lines = indexes.grep(&params, &CancelFlag::new()).expect("lines").items;
    let step = (lines.len() / QUERIES).max(1);
    let words = |line: &str| -> String {
        let words: Vec<&str> = line
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|w| w.len() > 1)
            .collect();
        words[..words.len().min(5)].join(" ")
    };
    lines
        .iter()
        .step_by(step)
        .map(|l| words(&l.text))
        .filter(|q| !q.is_empty())
        .take(QUERIES)
        .collect()
}
