//! Time until a saved file is found, by its words and by its meaning, in a copy of the folder that
//! a daemon watches.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use cairn_workspace::QUIET;
use serde_json::{Value, json};

use crate::{
    daemon::{Client, Daemon},
    meter::{latencies, report},
};

/// Number of saves that are measured.
const SAVES: usize = 60;
/// Definitions in the saved file, of seven lines each: some thirteen kilobytes.
const DEFINITIONS: usize = 60;
/// After this time a save counts as not found.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Measures saves of one file in a copy of `folder` below `scratch`.
pub async fn run(folder: &Path, scratch: &Path) {
    let root = scratch.join("tree");
    copy(folder, &root);
    let root = root.canonicalize().expect("a folder");
    let mut daemon = Daemon::start(&scratch.join("home"));
    daemon.index(&root).await;
    let mut client = daemon.connect().await;
    let file = root.join("cairn_bench_saved.rs");
    let mut words = Vec::new();
    let mut meaning = Vec::new();
    let mut both = Vec::new();
    for save in 0..SAVES {
        // A unique word without an underscore, whose parts could be found elsewhere.
        let marker = format!("zqsaved{save:04}x");
        std::fs::write(&file, text(&marker)).expect("a saved file");
        let start = Instant::now();
        words.push(wait_until_searchable(&mut client, "search.lexical", &marker, start).await);
        meaning.push(wait_until_searchable(&mut client, "search.semantic", &marker, start).await);
        while client.call("index.status", json!({})).await["roots"][0]["complete"] != true {
            assert!(start.elapsed() < TIMEOUT, "the index did not become complete again");
        }
        both.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    let wait = QUIET.as_secs_f64() * 1000.0;
    report(format!(
        "saved: a file of {:.1} kB, written whole; the {wait:.0} ms that the watch waits for more are in these figures",
        text("").len() as f64 / 1000.0
    ));
    let floor = format!("floor p95 <= {:.0} ms", wait + 50.0);
    latencies("saved: found by its words", words, &floor);
    latencies("saved: found by its meaning", meaning, &floor);
    latencies("saved: index complete again", both, "");
}

/// Repeats a search until an answer contains the marker, and returns the milliseconds since
/// `start`.
async fn wait_until_searchable(
    client: &mut Client,
    method: &str,
    marker: &str,
    start: Instant,
) -> f64 {
    let query = json!({"query": format!("count the readers that wait for {marker}"), "k": 10});
    loop {
        let answer = client.call(method, query.clone()).await;
        let has = |hit: &Value| hit.to_string().contains(marker);
        if answer["items"].as_array().is_some_and(|items| items.iter().any(has)) {
            return start.elapsed().as_secs_f64() * 1000.0;
        }
        assert!(start.elapsed() < TIMEOUT, "{method} did not find the saved file: {answer}");
    }
}

/// Renders a source file with the marker in its first definition.
fn text(marker: &str) -> String {
    let one = |n: usize| {
        let name = if n == 0 { marker.to_owned() } else { format!("number_{n}") };
        format!(
            "/// Counts the readers that wait for {name}.\npub fn readers_of_{name}(queue: &Queue) -> usize {{\n    \
             let waiting = queue.waiting();\n    let readers = waiting.iter().filter(|w| w.reads());\n    \
             readers.count() + {n}\n}}\n\n"
        )
    };
    (0..DEFINITIONS).map(one).collect()
}

/// Copies folders and regular files; links and unreadable files are skipped.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_file() {
            let _unreadable = std::fs::copy(entry.path(), target);
        }
    }
}
