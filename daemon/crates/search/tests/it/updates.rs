//! Updates: changes are noticed, interruptions are survived, and the index ends with the rows of a
//! new one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use cairn_protocol::id::RootId;
use cairn_protocol::search::SearchParams;
use cairn_search::{CancelFlag, Indexes, Until};
use cairn_workspace::Roots;

use crate::fixture::{
    DAMAGES, build, build_and_verify, lexical, open, options, options_with_watch, paths, segments,
};

fn search(indexes: &Indexes, query: &str) -> Vec<String> {
    search_in(indexes, query, &[])
}

fn search_in(indexes: &Indexes, query: &str, roots: &[&RootId]) -> Vec<String> {
    let params = serde_json::json!({"query": query, "k": 50, "filters": {"roots": roots}});
    let params: SearchParams = serde_json::from_value(params).unwrap();
    paths(lexical(indexes, &params).items)
}

/// Waits until the answer to `query` satisfies `is_expected`, and returns the elapsed time.
fn until(indexes: &Indexes, query: &str, is_expected: impl Fn(&[String]) -> bool) -> Duration {
    let start = Instant::now();
    loop {
        let results = search(indexes, query);
        if is_expected(&results) {
            return start.elapsed();
        }
        assert!(start.elapsed() < Duration::from_secs(120), "{query}: {results:?}");
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// The rows of the index by path: chunks with lines, fingerprints and vectors, and definitions.
fn rows(dir: &Path, id: &RootId) -> BTreeMap<String, BTreeSet<String>> {
    let conn = cairn_store::open_read_only(&dir.join(&*id.0).join("index.db")).unwrap();
    assert_eq!(cairn_store::integrity_check(&conn).unwrap(), "ok");
    let mut rows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for sql in [
        "SELECT path, hex(sha256) || pending_stages || coalesce(skipped, '') FROM file",
        "SELECT path, c.start_line || '-' || c.end_line || ' ' || fingerprint || ' ' || (v.vec IS NOT NULL)
         FROM chunk c JOIN file f ON f.id = file_id LEFT JOIN chunk_vec v ON v.chunk_id = c.id",
        "SELECT path, kind || name || start_line FROM symbol s JOIN file f ON f.id = file_id",
    ] {
        let mut get = conn.prepare(sql).unwrap();
        let all = get.query_map([], |r| Ok((r.get::<_, String>(0)?, r.get::<_, String>(1)?))).unwrap();
        for row in all {
            let (path, what) = row.unwrap();
            rows.entry(path).or_default().insert(what);
        }
    }
    let orphans: i64 = conn
        .query_row("SELECT (SELECT count(*) FROM chunk_vec WHERE chunk_id NOT IN (SELECT id FROM chunk)) + (SELECT count(*) FROM chunk WHERE file_id NOT IN (SELECT id FROM file))", [], |r| r.get(0))
        .unwrap();
    assert_eq!(orphans, 0);
    rows
}

fn assert_as_fresh(dir: &Path, top: &Path) {
    let other = tempfile::tempdir().unwrap();
    let (indexes, id) = open(other.path(), top, options());
    build(&indexes, &id);
    indexes.close();
    assert_eq!(rows(dir, &id), rows(other.path(), &id));
}

#[test]
fn changes_become_searchable() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("root");
    fs::create_dir_all(top.join("src")).unwrap();
    for n in 0..50 {
        fs::write(top.join(format!("src/f{n}.rs")), format!("fn original{n}() {{}}\n")).unwrap();
    }
    let index = dir.path().join("index");
    let (indexes, id) = open(&index, &top, options_with_watch(true));
    build(&indexes, &id);
    let mut times = Vec::new();
    for (n, word) in ["zebra", "okapi", "ibex", "lemur", "gecko"].into_iter().enumerate() {
        fs::write(top.join(format!("src/f{n}.rs")), format!("fn {word}() {{}}\n")).unwrap();
        times.push(until(&indexes, word, |p| p == [format!("src/f{n}.rs")]));
    }
    fs::rename(top.join("src/f0.rs"), top.join("src/moved.rs")).unwrap();
    until(&indexes, "zebra", |p| p == ["src/moved.rs"]);
    fs::remove_file(top.join("src/f1.rs")).unwrap();
    until(&indexes, "okapi", <[String]>::is_empty);
    fs::create_dir_all(top.join("deep/er")).unwrap();
    for n in 0..300 {
        fs::write(top.join(format!("deep/er/g{n}.py")), format!("def giraffe{n}(): pass\n"))
            .unwrap();
    }
    until(&indexes, "giraffe299", |p| !p.is_empty());
    fs::rename(top.join("deep"), top.join("other")).unwrap();
    until(&indexes, "giraffe7", |p| p.iter().any(|p| p == "other/er/g7.py"));
    fs::remove_dir_all(top.join("other/er")).unwrap();
    until(&indexes, "giraffe7", <[String]>::is_empty);
    times.sort();
    assert!(times[2] < Duration::from_secs(20), "{times:?}");
    build_and_verify(&indexes, &id);
    indexes.close();
    assert_as_fresh(&index, &top);
}

#[test]
fn interrupted_index_equals_a_new_index_in_the_end() {
    let mut rng = cairn_test_support::random("interruptions");
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("root");
    fs::create_dir_all(&top).unwrap();
    for n in 0..400 {
        let body: String =
            (0..60).map(|l| format!("    let value{l} = compute_{n}_{l}();\n")).collect();
        fs::write(top.join(format!("f{n}.rs")), format!("pub fn entry{n}() {{\n{body}}}\n"))
            .unwrap();
    }
    let index = dir.path().join("index");
    for round in 0..6 {
        let (indexes, id) = open(&index, &top, options());
        // Closed at an arbitrary moment of indexing.
        std::thread::sleep(Duration::from_millis(rng.u64(..120)));
        fs::write(top.join(format!("f{round}.rs")), format!("pub fn changed{round}() {{}}\n"))
            .unwrap();
        let started = Instant::now();
        indexes.close();
        assert!(started.elapsed() < Duration::from_secs(20));
        drop(indexes);
        rows(&index, &id);
    }
    let (indexes, id) = open(&index, &top, options());
    let status = build_and_verify(&indexes, &id);
    assert_eq!((status.files, status.vectors == status.chunks), (400, true));
    indexes.close();
    assert_as_fresh(&index, &top);
}

#[test]
fn damaged_or_missing_word_segments_are_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("root");
    fs::create_dir_all(&top).unwrap();
    for n in 0..60 {
        let body: String =
            (0..400).map(|l| format!("    let value{l} = compute_{n}_{l}();\n")).collect();
        fs::write(top.join(format!("f{n}.rs")), format!("pub fn wombat{n}() {{\n{body}}}\n"))
            .unwrap();
    }
    let index = dir.path().join("index");
    let (indexes, id) = open(&index, &top, options());
    build(&indexes, &id);
    fs::write(top.join("f0.rs"), "pub fn quokka() {}\n").unwrap();
    fs::remove_file(top.join("f1.rs")).unwrap();
    build(&indexes, &id);
    indexes.close();
    for damage in DAMAGES {
        let before = segments(&index, &id, "seg");
        assert!(!before.is_empty());
        before.iter().for_each(|path| damage(path));
        fs::write(index.join(&*id.0).join("words-9999.seg"), "a stranger").unwrap();
        let (indexes, id) = open(&index, &top, options());
        build_and_verify(&indexes, &id);
        assert_eq!(search(&indexes, "quokka"), ["f0.rs"]);
        assert_eq!(search(&indexes, "wombat7")[0], "f7.rs");
        assert!(search(&indexes, "wombat1").iter().all(|p| p != "f1.rs"));
        assert!(!index.join(&*id.0).join("words-9999.seg").exists());
        indexes.close();
    }
    assert_as_fresh(&index, &top);
}

#[test]
fn slow_opening_of_a_root_does_not_block_searches() {
    let (dir, top, slow) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(top.path().join("a.rs"), "fn zebra() {}\n").unwrap();
    let (indexes, id) = open(dir.path(), top.path(), options());
    indexes.build_and_wait(&id, Until::Lexical, &CancelFlag::new()).unwrap();
    let root = Roots::new(Vec::new()).declare(slow.path()).unwrap();
    // Opening waits for this lock as for a slow disk.
    let folder = dir.path().join(&*root.id.0);
    fs::create_dir(&folder).unwrap();
    let lock = cairn_store::rusqlite::Connection::open(folder.join("index.db")).unwrap();
    lock.execute_batch("PRAGMA locking_mode = EXCLUSIVE; CREATE TABLE locked (x); BEGIN EXCLUSIVE")
        .unwrap();
    let mut slowest = Duration::ZERO;
    let started = Instant::now();
    std::thread::scope(|scope| {
        let adding = scope.spawn(|| indexes.add_root(root));
        while !adding.is_finished() {
            let query_started = Instant::now();
            assert_eq!(search_in(&indexes, "zebra", &[&id]), ["a.rs"]);
            slowest = slowest.max(query_started.elapsed());
        }
        adding.join().unwrap().unwrap();
    });
    assert!(
        started.elapsed() > Duration::from_secs(2),
        "nothing was slow: {:?}",
        started.elapsed()
    );
    assert!(slowest < Duration::from_secs(2), "a search waited {slowest:?}");
    drop(lock);
    indexes.close();
}
