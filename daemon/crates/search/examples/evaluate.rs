//! Answers a query file for the evaluation: `evaluate FOLDER INDEX_DIR QUERIES.jsonl MODE [MODEL
//! [RESCORER]]`. Each repository is a folder in FOLDER; prints one JSON object with up to 100
//! results for each query. MODE: `hybrid`, `lexical`, `semantic`, or `features`, which prints all
//! passages that a hybrid search ranked with their features, for `model/fit.py` (`lexical-features`
//! and `semantic-features` for the other two). MODEL: `builtin`, or the folder of another model.
//! RESCORER: the folder of a model that re-scores the best 50. The elapsed time is printed to
//! standard error.
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
            let one = |r: cairn_search::RankedLines| {
                let values: serde_json::Map<_, _> = r
                    .values
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).into()))
                    .collect();
                serde_json::json!({"path": r.path, "start": r.start_line, "end": r.end_line, "values": values})
            };
            let ranked = indexes
                .ranked(&params, mode_of(mode.trim_end_matches('-')))
                .unwrap()
                .into_iter()
                .map(one);
            results.insert(row["query_id"].as_str().unwrap().into(), ranked.collect());
            continue;
        }
        let began = Instant::now();
        let answer = match mode_of(&args[4]) {
            Mode::Lexical => indexes.lexical(&params, &none, &|_| {}),
            Mode::Semantic => indexes.semantic(&params, &none, &|_| {}),
            Mode::Hybrid => indexes.hybrid(&params, &none, &|_| {}),
        };
        times.push(began.elapsed().as_secs_f32() * 1000.0);
        let items = answer.unwrap().items.into_iter().map(|i| serde_json::json!({"path": i.path, "start": i.start_line, "end": i.end_line, "score": i.score}));
        results.insert(row["query_id"].as_str().unwrap().into(), items.collect());
    }
    times.sort_by(f32::total_cmp);
    if let (Some(half), Some(most)) =
        (times.get(times.len() / 2), times.get(times.len() * 95 / 100))
    {
        eprintln!("{} queries: p50 {half:.1} ms, p95 {most:.1} ms", times.len());
    }
    println!("{}", serde_json::to_string(&results).unwrap());
}

fn mode_of(name: &str) -> Mode {
    match name {
        "lexical" => Mode::Lexical,
        "semantic" => Mode::Semantic,
        _ => Mode::Hybrid,
    }
}
