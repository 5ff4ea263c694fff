//! Answers a query file for the evaluation: `evaluate FOLDER INDEX_DIR QUERIES.jsonl MODE [MODEL
//! [RESCORER]]`. Each repository is a folder in FOLDER; prints one JSON object with up to 100
//! results for each query. MODE: `hybrid`, `lexical`, `semantic`, or `features`, which prints all
//! passages that a hybrid search ranked with their features, for `model/fit.py` (`lexical-features`
//! and `semantic-features` for the other two), or `packing`, which measures how long packing 20
//! results into 1,000, 2,000 and 4,000 tokens takes after the search, at best of three. MODEL:
//! `builtin`, or the folder of another model. RESCORER: the folder of a model that re-scores the
//! best 50. The elapsed time and the number of weak answers are printed to standard error.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a measuring program"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_protocol::search::SearchParams;
use cairn_search::{
    CancelFlag, Embedder, IndexOptions, Indexes, Mode, RescoreLimits, Rescorer, Until,
};
use cairn_workspace::Roots;

/// Results that are packed into an answer.
const PACKED: u32 = 20;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let roots = Roots::new(Vec::new());
    let mut opts =
        IndexOptions::new(Embedder::named(args.get(5).map_or("builtin", |a| a)).unwrap()).unwrap();
    opts.watch = false;
    if let Some(folder) = args.get(6) {
        let limits =
            RescoreLimits { top: 50, time: Duration::from_secs(600), threads: opts.threads };
        let model = Arc::new(Embedder::named(folder).unwrap());
        opts.rescorer = Some(Arc::new(Rescorer::new(model, limits).unwrap()));
    }
    let mut times = Vec::new();
    let mut weak = 0;
    let mut packing = [1_000, 2_000, 4_000].map(|tokens| (tokens, Vec::new()));
    let indexes = Indexes::open(args[2].clone().into(), opts, None);
    let mut results: BTreeMap<String, serde_json::Value> = BTreeMap::new();
    let none = CancelFlag::new();
    for line in std::fs::read_to_string(&args[3]).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let root = roots.declare(&Path::new(&args[1]).join(row["repo"].as_str().unwrap())).unwrap();
        let id = root.id.clone();
        if indexes.status(Some(&id)).is_err() {
            indexes.add_root(root).unwrap();
            let began = Instant::now();
            let status = indexes.build_and_wait(&id, Until::Everything, &none).unwrap();
            eprintln!(
                "{}: {} chunks, {:.1} s",
                row["repo"],
                status.chunks,
                began.elapsed().as_secs_f32()
            );
        }
        let request =
            serde_json::json!({"query": row["query"], "k": 100, "filters": {"roots": [id]}});
        let params: SearchParams = serde_json::from_value(request).unwrap();
        if let Some(mode) = args[4].strip_suffix("features") {
            let ranked = features(&indexes, &params, mode_of(mode.trim_end_matches('-')));
            results.insert(row["query_id"].as_str().unwrap().into(), ranked);
            continue;
        }
        if args[4] == "packing" {
            let params = SearchParams { k: PACKED, ..params };
            for (tokens, times) in &mut packing {
                let time = (0..3).map(|_| indexes.packing_time(&params, *tokens).unwrap());
                times.push(time.min().unwrap().as_secs_f32() * 1000.0);
            }
            continue;
        }
        let began = Instant::now();
        let answer = match mode_of(&args[4]) {
            Mode::Lexical => indexes.lexical(&params, &none, &|_| {}),
            Mode::Semantic => indexes.semantic(&params, &none, &|_| {}),
            Mode::Hybrid => indexes.hybrid(&params, &none, &|_| {}),
        };
        times.push(began.elapsed().as_secs_f32() * 1000.0);
        let answer = answer.unwrap();
        weak += usize::from(answer.weak);
        let items = answer.items.into_iter().map(|i| serde_json::json!({"path": i.path, "start": i.start_line, "end": i.end_line, "score": i.score}));
        results.insert(row["query_id"].as_str().unwrap().into(), items.collect());
    }
    eprintln!("{weak} of {} answers are weak", times.len());
    report("queries", times);
    for (tokens, times) in packing {
        report(&format!("answers packed into {tokens} tokens"), times);
    }
    println!("{}", serde_json::to_string(&results).unwrap());
}

/// All passages that a search ranked, with their features.
fn features(indexes: &Indexes, params: &SearchParams, mode: Mode) -> serde_json::Value {
    let one = |r: cairn_search::RankedLines| {
        let values = r.values.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
        let values: serde_json::Map<_, _> = values.collect();
        serde_json::json!({"path": r.path, "start": r.start_line, "end": r.end_line, "values": values})
    };
    indexes.ranked(params, mode).unwrap().into_iter().map(one).collect()
}

fn report(what: &str, mut times: Vec<f32>) {
    times.sort_by(f32::total_cmp);
    if let (Some(half), Some(most)) =
        (times.get(times.len() / 2), times.get(times.len() * 95 / 100))
    {
        eprintln!("{} {what}: p50 {half:.2} ms, p95 {most:.2} ms", times.len());
    }
}

fn mode_of(name: &str) -> Mode {
    match name {
        "lexical" => Mode::Lexical,
        "semantic" => Mode::Semantic,
        _ => Mode::Hybrid,
    }
}
