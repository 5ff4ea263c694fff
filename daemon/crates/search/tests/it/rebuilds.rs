//! Rebuilding during searches: the old index answers until the new one is complete.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cairn_protocol::error::Reason;
use cairn_protocol::id::RootId;
use cairn_protocol::index::IndexProgress;
use cairn_protocol::search::{GrepParams, SearchParams};
use cairn_search::{CancelFlag, Indexes, Until};
use cairn_test_support::StopOnDrop;
use cairn_workspace::Roots;
use crossbeam_channel::Receiver;

use crate::fixture::{build, hybrid, options};

const FILES: usize = 200;

fn indexes(dir: &Path) -> (Indexes, Receiver<IndexProgress>) {
    let (tx, rx) = crossbeam_channel::bounded(10_000);
    (Indexes::open(dir.join("index"), options(), Some(tx)), rx)
}

fn declare_root(dir: &Path) -> cairn_workspace::Root {
    let top = dir.join("root");
    fs::create_dir_all(&top).unwrap();
    for n in 0..FILES {
        fs::write(top.join(format!("f{n}.rs")), format!("fn wombat{n}() {{ parse_header(); }}\n"))
            .unwrap();
    }
    Roots::new(vec![]).declare(&top).unwrap()
}

/// The numbers of results of a search and of a grep.
fn count_results(indexes: &Indexes) -> (usize, u64) {
    let search = serde_json::json!({"query": "wombat parse_header", "k": 20});
    let search: SearchParams = serde_json::from_value(search).unwrap();
    let grep = serde_json::json!({"pattern": "parse_header", "k": 1000});
    let grep: GrepParams = serde_json::from_value(grep).unwrap();
    let answer = hybrid(indexes, &search);
    assert!(answer.complete, "answers of the old index are complete");
    (answer.items.len(), indexes.grep(&grep, &CancelFlag::new()).unwrap().total)
}

/// Waits for the end of an index that is not the one in the folder `old`.
fn wait_for_end(events: &Receiver<IndexProgress>, old: &str) -> IndexProgress {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let note = events.recv_deadline(until).unwrap();
        if note.done && note.index != old {
            return note;
        }
    }
}

#[test]
fn old_index_answers_until_the_new_one_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let (indexes, events) = indexes(dir.path());
    let root = declare_root(dir.path());
    let id = root.id.clone();
    indexes.add_root(root).unwrap();
    build(&indexes, &id);
    wait_for_end(&events, "");
    let (stop, searches) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(count_results(&indexes), (20, FILES as u64));
                    searches.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..8 {
            let before = indexes.folder(&id).unwrap();
            indexes.rebuild(&id).unwrap();
            let end = wait_for_end(&events, before.file_name().unwrap().to_str().unwrap());
            assert_ne!(
                indexes.folder(&id).unwrap(),
                before,
                "the end was reported before the new index answers"
            );
            assert_eq!(end.files_indexed, FILES as u64);
        }
    });
    assert!(searches.load(Ordering::Relaxed) > 8);
    assert_eq!(indexes.verify(&id).unwrap(), Vec::<String>::new());
    indexes.close();
}

// Of the folders that a crashed daemon left, the complete index with the highest number is used.
#[test]
fn unfinished_index_is_deleted_at_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (first, _notes) = indexes(dir.path());
    let root = declare_root(dir.path());
    let id: RootId = root.id.clone();
    first.add_root(root.clone()).unwrap();
    build(&first, &id);
    let folder = first.folder(&id).unwrap();
    first.close();
    drop(first);
    let unfinished = dir.path().join("index").join(format!("{id}.7"));
    fs::create_dir(&unfinished).unwrap();
    fs::write(unfinished.join("unfinished"), "").unwrap();
    fs::write(unfinished.join("index.db"), "a part").unwrap();
    let (second, _notes) = indexes(dir.path());
    second.add_root(root.clone()).unwrap();
    assert_eq!(second.folder(&id).unwrap(), folder);
    assert!(!unfinished.exists());
    build(&second, &id);
    assert_eq!(count_results(&second), (20, FILES as u64));
    // Closing during a rebuild leaves the old index.
    second.rebuild(&id).unwrap();
    second.close();
    drop(second);
    let (third, _notes) = indexes(dir.path());
    third.add_root(root).unwrap();
    build(&third, &id);
    assert_eq!(count_results(&third).1, FILES as u64);
    third.close();
}

// A removal does not wait for a running rebuild, and the root can be added again at once.
#[test]
fn removed_root_can_be_added_again_during_a_rebuild() {
    let dir = tempfile::tempdir().unwrap();
    let (indexes, _notes) = indexes(dir.path());
    let root = declare_root(dir.path());
    let id = root.id.clone();
    for _ in 0..5 {
        indexes.add_root(root.clone()).unwrap();
        indexes.build_and_wait(&id, Until::Lexical, &CancelFlag::new()).unwrap();
        indexes.rebuild(&id).unwrap();
        let start = Instant::now();
        assert!(indexes.remove_root(&id).unwrap());
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        assert_eq!(indexes.status(Some(&id)).unwrap_err().reason, Reason::RootNotFound);
    }
    indexes.add_root(root).unwrap();
    build(&indexes, &id);
    assert_eq!(count_results(&indexes), (20, FILES as u64));
    indexes.close();
}
