//! Watching: every change is either named or becomes a rescan.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use cairn_workspace::{Change, WalkOptions, Watch};
use crossbeam_channel::{Receiver, bounded};

use crate::{put, root};

/// Collects the named paths until `done` returns true, or for ten seconds.
fn gather(
    rx: &Receiver<Change>,
    done: impl Fn(&BTreeSet<String>, bool) -> bool,
) -> (BTreeSet<String>, bool) {
    let (mut named, mut rescan) = (BTreeSet::new(), false);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done(&named, rescan) {
        match rx.recv_deadline(deadline) {
            Ok(Change::Paths(paths)) => named.extend(paths),
            Ok(Change::Rescan) => rescan = true,
            Err(_) => panic!("waited too long; named so far: {named:?}, rescan {rescan}"),
        }
    }
    (named, rescan)
}

fn named(rx: &Receiver<Change>, path: &str) -> Duration {
    let start = Instant::now();
    gather(rx, |n, _| n.contains(path));
    start.elapsed()
}

#[test]
fn edits_creations_renames_and_deletions_are_reported() {
    let (dir, root) = root();
    put(dir.path(), "a.rs", "1");
    put(dir.path(), "d/b.rs", "1");
    put(dir.path(), "d/e/c.rs", "1");
    put(dir.path(), "gone/x.rs", "1");
    put(dir.path(), ".ignore", "ignored\n");
    put(dir.path(), "ignored/x", "1");
    let (tx, rx) = bounded(4);
    let watch = Watch::start(&root, &WalkOptions::default(), tx).unwrap();
    assert_eq!(watch.mode(), "watching");
    put(dir.path(), "ignored/y", "1");
    put(dir.path(), "a.rs", "2");
    assert!(named(&rx, "a.rs") < Duration::from_secs(20));
    put(dir.path(), "d/new.rs", "2");
    named(&rx, "d/new.rs");
    std::fs::rename(dir.path().join("d/b.rs"), dir.path().join("d/b2.rs")).unwrap();
    gather(&rx, |n, _| n.contains("d/b.rs") && n.contains("d/b2.rs"));
    std::fs::remove_file(dir.path().join("a.rs")).unwrap();
    named(&rx, "a.rs");
    // A folder that moves: the old name as one path, the new files one by one, and it is still
    // watched.
    std::fs::rename(dir.path().join("d"), dir.path().join("m")).unwrap();
    gather(&rx, |n, _| n.contains("d") && n.contains("m/e/c.rs") && n.contains("m/b2.rs"));
    put(dir.path(), "m/e/c.rs", "3");
    let (names, rescan) = gather(&rx, |n, _| n.contains("m/e/c.rs"));
    assert!(!rescan && !names.iter().any(|n| n.starts_with("ignored")));
    std::fs::remove_dir_all(dir.path().join("gone")).unwrap();
    named(&rx, "gone");
}

#[test]
fn burst_in_new_folders_is_reported() {
    let (dir, root) = root();
    let (tx, rx) = bounded(1);
    let _watch = Watch::start(&root, &WalkOptions::default(), tx).unwrap();
    let mut want = BTreeSet::new();
    for d in 0..100 {
        for f in 0..20 {
            let rel = format!("p{}/d{d}/f{f}.rs", d % 7);
            put(dir.path(), &rel, "x");
            want.insert(rel);
        }
    }
    let (names, rescan) = gather(&rx, |n, rescan| rescan || n.is_superset(&want));
    assert!(rescan || want.is_subset(&names));
}

#[test]
fn empty_git_folder_is_no_repository() {
    let (dir, root) = root();
    let (tx, rx) = bounded(4);
    let _watch = Watch::start(&root, &WalkOptions::default(), tx).unwrap();
    for n in 0..3 {
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        std::fs::remove_dir(dir.path().join(".git")).unwrap();
        put(dir.path(), &format!("a{n}"), "1");
        let (_, rescan) = gather(&rx, |names, _| names.contains(&format!("a{n}")));
        assert!(!rescan);
    }
    put(dir.path(), ".git/HEAD", "ref: refs/heads/a");
    gather(&rx, |_, rescan| rescan);
    std::fs::remove_dir_all(dir.path().join(".git")).unwrap();
    gather(&rx, |_, rescan| rescan);
}

#[test]
fn ignore_rules_branches_and_replaced_folders_cause_rescan() {
    let (dir, root) = root();
    put(dir.path(), ".git/HEAD", "ref: refs/heads/a");
    put(dir.path(), "d/a", "1");
    put(dir.path(), "d/b", "1");
    let (tx, rx) = bounded(4);
    let _watch = Watch::start(&root, &WalkOptions::default(), tx).unwrap();
    put(dir.path(), ".gitignore", "x\n");
    gather(&rx, |_, rescan| rescan);
    put(dir.path(), ".git/HEAD.lock", "ref: refs/heads/b");
    std::fs::rename(dir.path().join(".git/HEAD.lock"), dir.path().join(".git/HEAD")).unwrap();
    gather(&rx, |_, rescan| rescan);
    put(dir.path(), "x/in", "ignored now");
    put(dir.path(), "y", "not");
    let (names, _) = gather(&rx, |n, _| n.contains("y"));
    assert!(!names.iter().any(|n| n.starts_with('x')), "{names:?}");
    // Deleted rules: paths that they hid are watched from now on.
    std::fs::remove_file(dir.path().join(".gitignore")).unwrap();
    gather(&rx, |_, rescan| rescan);
    put(dir.path(), "x/in", "seen now");
    named(&rx, "x/in");
}

#[test]
fn full_channel_loses_no_event_and_drop_stops_watch() {
    let (dir, root) = root();
    let (tx, rx) = bounded(1);
    let watch = Watch::start(&root, &WalkOptions::default(), tx).unwrap();
    put(dir.path(), "first", "1");
    let deadline = Instant::now() + Duration::from_secs(60);
    while rx.is_empty() {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    for n in 0..50 {
        put(dir.path(), &format!("f{n}"), "1");
    }
    gather(&rx, |n, _| (0..50).all(|i| n.contains(&format!("f{i}"))));
    let start = Instant::now();
    drop(watch);
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(rx.try_iter().count() <= 1);
    assert!(rx.recv().is_err(), "the sender is gone with the watch");
}

#[test]
fn recreated_root_is_watched() {
    let (dir, _) = root();
    let at = dir.path().join("r");
    put(&at, "a", "1");
    let root = cairn_workspace::Roots::new(vec![]).declare(&at).unwrap();
    let (tx, rx) = bounded(4);
    let _watch = Watch::start(&root, &WalkOptions::default(), tx).unwrap();
    std::fs::rename(&at, dir.path().join("away")).unwrap();
    gather(&rx, |_, rescan| rescan);
    put(&at, "a", "2");
    gather(&rx, |_, rescan| rescan);
    put(&at, "b", "3");
    named(&rx, "b");
}
