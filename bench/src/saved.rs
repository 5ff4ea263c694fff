//! How long a saved file takes until it is found: by its words and by its meaning, in a copy of the folder that a daemon watches.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use cairn_workspace::QUIET;
use serde_json::{Value, json};

use crate::{
    daemon::{Client, Daemon},
    meter::{latencies, say},
};

/// Saves measured.
const SAVES: usize = 60;
/// Definitions of the file that is saved, of seven lines each: some thirteen kilobytes.
const DEFINITIONS: usize = 60;
/// After this long a save counts as never found.
const LONGEST: Duration = Duration::from_secs(10);

/// Measures saves of one file in a copy of `folder` below `scratch`.
pub async fn run(folder: &Path, scratch: &Path) {
    let root = scratch.join("tree");
    copy(folder, &root);
    let root = root.canonicalize().expect("a folder");
    let mut daemon = Daemon::start(&scratch.join("home"));
    daemon.index(&root).await;
    let mut client = daemon.connect().await;
    let file = root.join("cairn_bench_saved.rs");
    let (mut words, mut meaning, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for save in 0..SAVES {
        // A word that no other file has; the parts of one with an underscore would be found elsewhere.
        let marker = format!("zqsaved{save:04}x");
        std::fs::write(&file, text(&marker)).expect("a saved file");
        let start = Instant::now();
        words.push(until_found(&mut client, "search.lexical", &marker, start).await);
        meaning.push(until_found(&mut client, "search.semantic", &marker, start).await);
        while client.call("index.status", json!({})).await["roots"][0]["complete"] != true {
            assert!(start.elapsed() < LONGEST, "the index did not become complete again");
        }
        whole.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    let wait = QUIET.as_secs_f64() * 1000.0;
    say(format!(
        "saved: a file of {:.1} kB, written whole; the {wait:.0} ms that the watch waits for more are in these figures",
        text("").len() as f64 / 1000.0
    ));
    let floor = format!("floor p95 <= {:.0} ms", wait + 50.0);
    latencies("saved: found by its words", words, &floor);
    latencies("saved: found by its meaning", meaning, &floor);
    latencies("saved: index complete again", whole, "");
}

/// Asks again and again until an answer has the marker; milliseconds since `start`.
async fn until_found(client: &mut Client, method: &str, marker: &str, start: Instant) -> f64 {
    let query = json!({"query": format!("count the readers that wait for {marker}"), "k": 10});
    loop {
        let answer = client.call(method, query.clone()).await;
        let has = |hit: &Value| hit.to_string().contains(marker);
        if answer["items"].as_array().is_some_and(|items| items.iter().any(has)) {
            return start.elapsed().as_secs_f64() * 1000.0;
        }
        assert!(start.elapsed() < LONGEST, "{method} did not find the saved file: {answer}");
    }
}

/// A source file with the marker in the first of its definitions.
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

/// Copies folders and regular files; links and what cannot be read are left out.
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
