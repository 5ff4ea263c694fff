//! Answers a query file for the evaluation: `evaluate FOLDER INDEX_DIR QUERIES.jsonl MODE [MODEL]`. Each repository is a
//! folder in FOLDER; prints one JSON object with up to 100 results for each query. MODE: `hybrid`, `lexical`, `semantic`, or
//! `features`, which prints all that a hybrid search ranked with its features, for `model/fit.py`. MODEL: a folder with `table.bin` and
//! `vocab.txt` instead of the built-in model.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measuring program")]

use std::collections::BTreeMap;
use std::path::Path;

use cairn_protocol::search::SearchParams;
use cairn_search::{CancelFlag, Embedder, IndexOptions, Indexes, Until};
use cairn_workspace::Roots;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let roots = Roots::new(Vec::new());
    let mut opts = IndexOptions::new(Embedder::named(args.get(5).map_or("builtin", |a| a)).unwrap()).unwrap();
    opts.watch = false;
    let indexes = Indexes::open(args[2].clone().into(), opts, None);
    let mut results: BTreeMap<String, serde_json::Value> = BTreeMap::new();
    let none = CancelFlag::new();
    for line in std::fs::read_to_string(&args[3]).unwrap().lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let root = roots.declare(&Path::new(&args[1]).join(row["repo"].as_str().unwrap())).unwrap();
        let id = root.id.clone();
        if indexes.status(Some(&id)).is_err() {
            indexes.add_root(root).unwrap();
            indexes.build_and_wait(&id, Until::Everything, &none).unwrap();
        }
        let asked = serde_json::json!({"query": row["query"], "k": 100, "filters": {"roots": [id]}});
        let params: SearchParams = serde_json::from_value(asked).unwrap();
        if args[4] == "features" {
            let one = |r: cairn_search::RankedLines| {
                let values: serde_json::Map<_, _> =
                    r.values.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
                serde_json::json!({"path": r.path, "start": r.start_line, "end": r.end_line, "values": values})
            };
            let ranked = indexes.ranked(&params).unwrap().into_iter().map(one);
            results.insert(row["query_id"].as_str().unwrap().into(), ranked.collect());
            continue;
        }
        let answer = match args[4].as_str() {
            "lexical" => indexes.lexical(&params, &none, &|_| {}),
            "semantic" => indexes.semantic(&params, &none, &|_| {}),
            _ => indexes.hybrid(&params, &none, &|_| {}),
        };
        let items = answer.unwrap().items.into_iter().map(|i| serde_json::json!({"path": i.path, "start": i.start_line, "end": i.end_line, "score": i.score}));
        results.insert(row["query_id"].as_str().unwrap().into(), items.collect());
    }
    println!("{}", serde_json::to_string(&results).unwrap());
}
