//! Files written to disk become searchable, and the index stays equal to a new one.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    contents::{assert_same, complete, count, fresh_rows, index, rows, source, sources},
    sealed::{Daemon, PATIENCE, Raw, commit_all, git, tree},
};

/// Returns the paths that a lexical search finds.
async fn paths(raw: &mut Raw, query: &str) -> Vec<String> {
    let results = raw.ok("search.lexical", json!({"query": query, "k": 50})).await;
    let path = |item: &Value| item["path"].as_str().unwrap().to_owned();
    results["items"].as_array().unwrap().iter().map(path).collect()
}

/// Polls until a search finds exactly these files, and returns the time taken.
async fn expect_paths(raw: &mut Raw, query: &str, want: &[&str]) -> Duration {
    let began = Instant::now();
    loop {
        let mut have = paths(raw, query).await;
        have.sort();
        have.dedup();
        if have == want {
            return began.elapsed();
        }
        assert!(began.elapsed() < PATIENCE, "{query}: {have:?}, not {want:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the index has as many files as the tree and is complete, and compares it with a new
/// one.
async fn assert_fresh(daemon: &Daemon, raw: &mut Raw, root: &Path) {
    let fresh = fresh_rows(root).await;
    let until = Instant::now() + PATIENCE;
    loop {
        complete(raw).await;
        let have = rows(&daemon.home, true);
        if have == fresh || Instant::now() > until {
            return assert_same(&have, &fresh);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn watching(root: &Path) -> (Daemon, Raw) {
    let daemon = Daemon::start();
    let mut raw = daemon.client().await;
    index(&mut raw, root).await;
    (daemon, raw)
}

#[tokio::test]
async fn file_changes_are_indexed() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    sources(&root, 100);
    let (daemon, mut raw) = watching(&root).await;

    tree(&root, &[("new/deep/er/created.py", "def zebrafish():\n    return 1\n")]);
    expect_paths(&mut raw, "zebrafish", &["new/deep/er/created.py"]).await;
    std::fs::rename(root.join("new/deep"), root.join("moved")).unwrap();
    expect_paths(&mut raw, "zebrafish", &["moved/er/created.py"]).await;
    std::fs::rename(root.join("moved/er/created.py"), root.join("moved/other.py")).unwrap();
    expect_paths(&mut raw, "zebrafish", &["moved/other.py"]).await;
    // Editors save like this: they replace the file by another one.
    tree(&root, &[("moved/.tmp", "def quokka():\n    return 2\n")]);
    std::fs::rename(root.join("moved/.tmp"), root.join("moved/other.py")).unwrap();
    expect_paths(&mut raw, "quokka", &["moved/other.py"]).await;
    expect_paths(&mut raw, "zebrafish", &[]).await;
    std::fs::remove_dir_all(root.join("moved")).unwrap();
    expect_paths(&mut raw, "quokka", &[]).await;
    tree(
        &root,
        &[
            (".gitignore", "hidden/\n"),
            ("hidden/h.py", "def axolotl(): pass\n"),
            ("shown.py", "def narwhal(): pass\n"),
        ],
    );
    git(&root, &["init", "-q"]);
    expect_paths(&mut raw, "narwhal", &["shown.py"]).await;
    expect_paths(&mut raw, "axolotl", &[]).await;
    assert_fresh(&daemon, &mut raw, &root).await;
}

/// Returns a word of letters that no other number has.
fn word(n: usize) -> String {
    let letter = |by: usize| char::from(b'a' + (n / by % 26) as u8);
    format!("quux{}{}{}zy", letter(676), letter(26), letter(1))
}

#[tokio::test]
async fn edits_are_searchable_soon() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    sources(&root, 200);
    let (daemon, mut raw) = watching(&root).await;
    let mut times = Vec::new();
    for n in 0..count("CAIRN_EDITS", 10) {
        let (path, word) = (format!("part{}/unit{}.py", n * 7 % 200 / 50, n * 7 % 200), word(n));
        std::fs::write(root.join(&path), format!("{}\n{word} = {n}\n", source(n))).unwrap();
        times.push(expect_paths(&mut raw, &word, &[&path]).await);
    }
    times.sort();
    if std::env::var_os("CAIRN_MEASURE").is_some() {
        let (median, p95) = (times[times.len() / 2], times[times.len() * 95 / 100]);
        crate::sealed::note(&format!(
            "from edit to searchable: median {median:?}, p95 {p95:?}, {} edits",
            times.len()
        ));
    }
    assert_fresh(&daemon, &mut raw, &root).await;
}

#[tokio::test]
async fn switched_branch_is_indexed() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    sources(&root, 60);
    commit_all(&root);
    git(&root, &["switch", "-q", "-c", "other"]);
    tree(
        &root,
        &[
            ("only/other.py", "def capybara():\n    pass\n"),
            ("part0/unit3.py", "def wombat():\n    pass\n"),
        ],
    );
    std::fs::remove_file(root.join("part0/unit5.py")).unwrap();
    git(&root, &["add", "-A"]);
    git(&root, &["commit", "-q", "-m", "two"]);
    git(&root, &["switch", "-q", "main"]);
    let (daemon, mut raw) = watching(&root).await;
    assert!(paths(&mut raw, "capybara").await.is_empty());
    git(&root, &["switch", "-q", "other"]);
    expect_paths(&mut raw, "capybara", &["only/other.py"]).await;
    expect_paths(&mut raw, "wombat", &["part0/unit3.py"]).await;
    assert_fresh(&daemon, &mut raw, &root).await;
    git(&root, &["switch", "-q", "main"]);
    expect_paths(&mut raw, "capybara", &[]).await;
    assert_fresh(&daemon, &mut raw, &root).await;
}

#[tokio::test]
async fn unpacked_tree_is_indexed_completely() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    sources(&root, 10);
    let (daemon, mut raw) = watching(&root).await;
    let files = count("CAIRN_UNPACK", 1500);
    let began = Instant::now();
    sources(&root.join("unpacked/deep"), files);
    let written = began.elapsed();
    let want = files as u64 + 10;
    let until = Instant::now() + PATIENCE * 5;
    while raw.ok("index.status", json!({})).await["roots"][0]["files"].as_u64().unwrap() < want {
        assert!(Instant::now() < until, "{}", raw.ok("index.status", json!({})).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    if std::env::var_os("CAIRN_MEASURE").is_some() {
        crate::sealed::note(&format!(
            "{files} files unpacked in {written:?}, all known after {:?}",
            began.elapsed()
        ));
    }
    assert_fresh(&daemon, &mut raw, &root).await;
}
