//! Work trees of one repository in one daemon: time until each is complete, disk and memory that it
//! adds, searches beside many of them, a branch switch. `CAIRN_BENCH_WORKTREES` sets their number.

use std::{
    collections::BTreeMap,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use cairn_workspace::{Roots, WalkOptions, walk};
use serde_json::{Value, json};

use crate::{
    daemon::{Client, Daemon},
    meter::{latencies, memory, quantile, report, timed, value},
};

const WORK_TREES: usize = 32;
/// Changed files of each work tree.
const CHANGED: usize = 200;
/// Changed files of the other branch.
const SWITCHED: usize = 5_000;
/// Number of searches whose times are reported together.
const SEARCHES: usize = 60;
const QUERIES: [&str; 6] = [
    "parse the configuration file",
    "read request header",
    "retry after a timeout",
    "Config",
    "write to the log",
    "open connection",
];
/// Longest time until an index notices a change.
const NOTICE: Duration = Duration::from_secs(2);
/// Longest wait for an index.
const PATIENCE: Duration = Duration::from_secs(600);

pub async fn run(folder: &Path, scratch: &Path) {
    let count = std::env::var("CAIRN_BENCH_WORKTREES").ok().and_then(|n| n.parse().ok());
    let count: usize = count.unwrap_or(WORK_TREES);
    let at = scratch.join("worktrees").join("main");
    let files = repository(folder, &at);
    let home = scratch.join("worktrees").join("home");
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect().await;
    let first = add(&mut client, &at).await;
    report(format!("worktrees: the first index          {:.2} s until complete", first / 1000.0));
    let indexes = home.join("index");
    let (disk, resident) = (allocated(&indexes), memory(Some(daemon.pid()), "RssAnon"));
    report(format!(
        "worktrees: the first index          {disk:.1} MB of disk, {resident:.0} MB of anonymous memory"
    ));
    let alone = searches(&mut client, &at).await;
    latencies("worktrees: search, alone", alone.clone(), "");
    let (mut ready, mut walks, mut grown) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..count {
        let tree = at.with_file_name(format!("tree{n}"));
        git(&at, &["worktree", "add", "--quiet", "--detach", &tree.to_string_lossy()]);
        change(&tree, &files, n, CHANGED);
        walks.push(walk_time(&tree));
        let before = allocated(&indexes);
        ready.push(add(&mut client, &tree).await);
        grown.push(allocated(&indexes) - before);
    }
    let walked = quantile(&mut walks, 0.5);
    let half = quantile(&mut ready, 0.5);
    value("worktrees: ready / walk and stat", half / walked);
    latencies("worktrees: ready", ready, "");
    report(format!(
        "worktrees: walk and stat            p50 {walked:9.3} ms; ready {:.2} x that, <= 1.5 x",
        half / walked
    ));
    let added = (memory(Some(daemon.pid()), "RssAnon") - resident) / count as f64;
    let each = quantile(&mut grown, 0.5);
    value("worktrees: disk of one / first", each / disk);
    value("worktrees: memory of one MB", added);
    report(format!(
        "worktrees: each of {count}               {each:.2} MB of disk = {:.3} x the first, <= .03; the first of them {:.1} MB; {added:.1} MB of memory, <= 5",
        each / disk,
        grown.first().copied().unwrap_or(0.0)
    ));
    let last = at.with_file_name(format!("tree{}", count.max(1) - 1));
    let beside = searches(&mut client, &last).await;
    let (mut one, mut other) = (alone, beside.clone());
    let ratio = quantile(&mut other, 0.95) / quantile(&mut one, 0.95);
    value("worktrees: search p95 / alone", ratio);
    latencies("worktrees: search in the last", beside, "");
    report(format!("worktrees: search in the last       p95 {ratio:.2} x of one alone, <= 1.2 x"));
    fresh(&mut client, &last).await;
    switch(&mut client, &at, &files).await;
    remove(&mut client, &at, count, &indexes).await;
}

/// Copies a folder into a new repository and returns its files.
fn repository(folder: &Path, at: &Path) -> Vec<PathBuf> {
    std::fs::create_dir_all(at).expect("a folder");
    let roots = Roots::new(Vec::new());
    let root = roots.declare(folder).expect("a folder");
    let files = std::sync::Mutex::new(Vec::new());
    walk(&root, &WalkOptions { exclude: vec![], threads: 2, ..WalkOptions::default() }, &|file| {
        files.lock().expect("no panic").push(PathBuf::from(&file.rel));
    });
    let mut files = files.into_inner().expect("no panic");
    files.sort_unstable();
    for file in &files {
        let to = at.join(file);
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        std::fs::copy(root.path.join(file), to).expect("a file");
    }
    git(at, &["init", "--quiet"]);
    git(at, &["add", "--force", "."]);
    git(at, &["commit", "--quiet", "-m", "first"]);
    report(format!("worktrees: {} files of {}", files.len(), folder.display()));
    files
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=b", "-c", "user.email=b@example.org", "-c", "gc.auto=0"]);
    command.args(arguments).current_dir(folder).stdout(Stdio::null());
    assert!(command.status().is_ok_and(|status| status.success()), "git {arguments:?}");
}

/// Appends a line to every so many files, different in each work tree.
fn change(tree: &Path, files: &[PathBuf], seed: usize, count: usize) {
    for file in files.iter().skip(seed % 7).step_by((files.len() / count).max(1)).take(count) {
        let path = tree.join(file);
        let mut text = std::fs::read(&path).expect("a file");
        text.extend(format!("\n// changed_in_{seed}\n").bytes());
        std::fs::write(&path, text).expect("a file");
    }
}

/// Milliseconds of a walk of a tree with a stat of each file, the second of two.
fn walk_time(tree: &Path) -> f64 {
    let root = Roots::new(Vec::new()).declare(tree).expect("a folder");
    let options = WalkOptions { exclude: vec![], threads: 2, ..WalkOptions::default() };
    walk(&root, &options, &|_| {});
    timed(|| walk(&root, &options, &|_| {})).1
}

/// Declares a root and returns the milliseconds until its index is complete.
async fn add(client: &mut Client, folder: &Path) -> f64 {
    let start = Instant::now();
    client.call("index.addRoot", json!({"path": folder})).await;
    wait(client, folder, |status| status["complete"] == true).await;
    start.elapsed().as_secs_f64() * 1000.0
}

async fn wait(client: &mut Client, folder: &Path, reached: impl Fn(&Value) -> bool) {
    let until = Instant::now() + PATIENCE;
    loop {
        let status = client.call("index.status", json!({"root": folder})).await;
        if reached(&status["roots"][0]) {
            return;
        }
        assert!(Instant::now() < until, "{status}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Milliseconds of hybrid searches in a root.
async fn searches(client: &mut Client, folder: &Path) -> Vec<f64> {
    let mut times = Vec::new();
    for n in 0..SEARCHES + QUERIES.len() {
        let query = QUERIES[n % QUERIES.len()];
        let start = Instant::now();
        client
            .streamed("search.hybrid", json!({"query": query, "filters": {"roots": [folder]}}))
            .await;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    times.split_off(QUERIES.len())
}

/// Reports the time from an edit to the first search that finds it.
async fn fresh(client: &mut Client, folder: &Path) {
    let mut times = Vec::new();
    for n in 0..10 {
        let word = format!("freshly_written_word_{n}");
        std::fs::write(folder.join("fresh.rs"), format!("fn {word}() {{}}\n")).expect("a file");
        let start = Instant::now();
        let params =
            json!({"query": word, "k": 1, "includeText": true, "filters": {"roots": [folder]}});
        loop {
            let answer = client.streamed("search.lexical", params.clone()).await;
            if answer["items"][0]["text"].as_str().is_some_and(|text| text.contains(&word)) {
                break;
            }
            assert!(start.elapsed() < PATIENCE, "{answer}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    latencies("worktrees: edit until found", times, "<= 500 ms");
}

/// Reports the time from the end of a checkout until the index is complete.
async fn switch(client: &mut Client, at: &Path, files: &[PathBuf]) {
    git(at, &["checkout", "--quiet", "-b", "other"]);
    change(at, files, 1_000, SWITCHED);
    git(at, &["commit", "--quiet", "-a", "-m", "other"]);
    settle(client, at).await;
    for (branch, name) in [("-", "a branch seen before"), ("other", "the branch after it")] {
        git(at, &["checkout", "--quiet", branch]);
        let time = settle(client, at).await;
        value(&format!("worktrees: switch to {name} ms"), time);
        report(format!(
            "worktrees: switch to {name}, {SWITCHED} files: {time:.0} ms until complete, <= 1,000 ms"
        ));
    }
}

/// Waits until the index has noticed changes and is complete again; returns the milliseconds.
async fn settle(client: &mut Client, at: &Path) -> f64 {
    let start = Instant::now();
    let noticed = |status: &Value| status["complete"] == false || start.elapsed() > NOTICE;
    wait(client, at, noticed).await;
    wait(client, at, |status| status["complete"] == true).await;
    start.elapsed().as_secs_f64() * 1000.0
}

async fn remove(client: &mut Client, at: &Path, count: usize, indexes: &Path) {
    for n in 0..count {
        let tree = at.with_file_name(format!("tree{n}"));
        client.call("index.removeRoot", json!({"root": tree})).await;
    }
    let left = allocated(indexes);
    client.call("index.removeRoot", json!({"root": at})).await;
    report(format!(
        "worktrees: {left:.1} MB of disk without them, {:.1} MB without the last root",
        allocated(indexes)
    ));
}

/// Megabytes that the files of a folder occupy; a file with several names counts once.
fn allocated(folder: &Path) -> f64 {
    let mut blocks = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.path().symlink_metadata() {
                Ok(meta) if meta.is_dir() => folders.push(entry.path()),
                Ok(meta) => drop(blocks.insert(meta.ino(), meta.blocks())),
                Err(_) => {}
            }
        }
    }
    blocks.values().sum::<u64>() as f64 * 512.0 / 1e6
}
