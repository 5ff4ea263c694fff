//! A damaged database of an index is noticed and rebuilt.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "the fixture serves other tests as well")]

#[path = "it/fixture.rs"]
mod fixture;

use std::{
    fs,
    time::{Duration, Instant},
};

use cairn_protocol::search::{GrepParams, SearchParams};
use cairn_search::{CancelFlag, Indexes};

use fixture::{build, hybrid, open, options, write_file};

const FILES: usize = 200;

/// The numbers of results of a search and of a grep.
fn count_results(indexes: &Indexes) -> (usize, u64) {
    let search = serde_json::json!({"query": "wombat parse_header", "k": 20});
    let search: SearchParams = serde_json::from_value(search).unwrap();
    let grep = serde_json::json!({"pattern": "parse_header", "k": 1000});
    let grep: GrepParams = serde_json::from_value(grep).unwrap();
    let found = hybrid(indexes, &search).items.len();
    (found, indexes.grep(&grep, &CancelFlag::new()).unwrap().total)
}

#[test]
fn damaged_index_is_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("root");
    for n in 0..FILES {
        write_file(&top, &format!("f{n}.rs"), format!("fn wombat{n}() {{ parse_header(); }}\n"));
    }
    let open = || open(&dir.path().join("index"), &top, options());
    let (indexes, id) = open();
    build(&indexes, &id);
    let control = count_results(&indexes);
    assert_eq!(control.1, FILES as u64);
    let path = indexes.folder(&id).unwrap().join("index.db");
    indexes.close();
    let bytes = fs::read(&path).unwrap();
    let pages = bytes.len() / 8192;
    for (from, to) in [(2, pages / 2), (pages / 2, pages), (pages / 3, pages / 3 + 2)] {
        // The folder of a rebuilt index has another name.
        let (indexes, id) = open();
        build(&indexes, &id);
        let path = indexes.folder(&id).unwrap().join("index.db");
        indexes.close();
        let mut damaged = fs::read(&path).unwrap();
        let end = damaged.len().min(to * 8192);
        damaged[from * 8192..end].fill(0x5A);
        fs::write(&path, damaged).unwrap();
        let (indexes, id) = open();
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let status = indexes.status(Some(&id)).unwrap().remove(0);
            if status.complete && indexes.folder(&id).unwrap().join("index.db") != path {
                break;
            }
            assert!(Instant::now() < until, "{from} to {to}: {status:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(count_results(&indexes), control, "{from} to {to}");
        indexes.close();
    }
}
