//! An index of a process without room for a parser's thread. The limit holds for the process, so
//! this test has a binary of its own.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "the fixture serves other tests as well")]

#[path = "it/fixture.rs"]
mod fixture;

use cairn_protocol::index::IndexState;
use cairn_search::{CancelFlag, Until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use fixture::{build, open, options, write_file};

/// Bytes that remain for everything but a parser's thread, whose stack has 64 MiB.
const ROOM: u64 = 62 << 20;

/// Bytes of the address space in use.
fn used() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').next().unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn index_without_threads_for_parsers_is_incomplete_and_completed_later() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("root");
    const FILES: u64 = 200;
    for n in 0..FILES {
        write_file(&top, &format!("src/f{n}.rs"), format!("fn only{n}() {{}}\n"));
    }
    // The threads of the pool, the model and the memory of an index exist before the limit does; no
    // text of this root needs a parser.
    let options = options();
    let notes = dir.path().join("notes");
    write_file(&notes, "a.txt", "some words");
    let (indexes, id) = open(&dir.path().join("first"), &notes, options.clone());
    build(&indexes, &id);
    indexes.close();
    let before = getrlimit(Resource::As);
    let limited = Rlimit { current: Some(used() + ROOM), ..before };
    setrlimit(Resource::As, limited).unwrap();
    let folder = dir.path().join("index");
    for round in ["at first", "after a restart"] {
        let (indexes, id) = open(&folder, &top, options.clone());
        let failed = indexes.build_and_wait(&id, Until::Everything, &CancelFlag::new());
        let error = failed.expect_err(round);
        assert!(error.message.contains("no thread for a parser"), "{round}: {error}");
        let status = indexes.status(Some(&id)).unwrap().remove(0);
        assert!(!status.complete && status.state != IndexState::Ready, "{round}: {status:?}");
        assert!(status.error.is_some(), "{round}: {status:?}");
        indexes.close();
    }
    setrlimit(Resource::As, before).unwrap();
    let (indexes, id) = open(&folder, &top, options.clone());
    let status = build(&indexes, &id);
    assert_eq!((status.symbols, status.symbol_files, status.complete), (FILES, FILES, true));
    indexes.close();
}
