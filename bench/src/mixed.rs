//! Hours of everything at once: sessions in work trees, changing files, searches, greps and
//! subscribers, some of them slow. `CAIRN_BENCH_SECONDS` sets the duration, two minutes unless set.

mod model;
mod subscribers;

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    daemon::{Client, Daemon},
    meter::{memory, quantile, report, value},
};

/// Sessions that run turns at the same time.
const SESSIONS: usize = 40;
/// Work trees of the repository, in each of which two sessions work.
const WORKTREES: usize = 20;
/// Subscribers, and those among them that read slowly.
const SUBSCRIBERS: (usize, usize) = (10, 3);
/// Files of the repository.
const FILES: usize = 200;
/// Turns of a session, after which its worker creates another one.
const TURNS: usize = 20;
/// Pause of a worker between two turns.
const PAUSE: Duration = Duration::from_secs(2);
/// Interval of the other kinds of work.
const TICK: Duration = Duration::from_millis(100);
/// Rows of the table.
const INTERVALS: u32 = 10;
/// Growth from the third row to the last that is not growth: of memory in MB, of descriptors.
const ALLOWED: (f64, f64) = (64.0, 24.0);
/// Duration below which latencies are too few to compare.
const COMPARABLE: Duration = Duration::from_secs(1800);

/// Figures that all workers add to.
#[derive(Default)]
struct Figures {
    stop: AtomicBool,
    turns: AtomicU64,
    events: AtomicU64,
    gaps: AtomicU64,
    lags: AtomicU64,
    searches: Mutex<Vec<f64>>,
    subscribes: Mutex<Vec<f64>>,
    /// Latest session of each worker.
    sessions: Mutex<Vec<String>>,
}

impl Figures {
    fn is_running(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn session(&self, n: usize) -> Option<String> {
        let all = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(n % all.len().max(1)).cloned()
    }
}

fn take(values: &Mutex<Vec<f64>>) -> Vec<f64> {
    std::mem::take(&mut values.lock().unwrap_or_else(PoisonError::into_inner))
}

fn add(values: &Mutex<Vec<f64>>, since: Instant) {
    let ms = since.elapsed().as_secs_f64() * 1000.0;
    values.lock().unwrap_or_else(PoisonError::into_inner).push(ms);
}

/// One row of the table.
struct Row {
    memory: f64,
    descriptors: f64,
    search: f64,
    subscribe: f64,
}

/// Runs the load and returns false if memory or descriptors grow, a subscriber misses an event, or
/// the latency of a long run becomes more than 1.5 times that of its first third.
pub async fn run(scratch: &Path) -> bool {
    let seconds = std::env::var("CAIRN_BENCH_SECONDS").ok().and_then(|s| s.parse().ok());
    let duration = Duration::from_secs(seconds.unwrap_or(120));
    let home = scratch.join("home");
    let address = model::start().await;
    let llm = json!({"provider": "openai-compatible", "model": "m", "endpoint": address});
    // The rate of requests to a paid service is not part of the load.
    let models = json!({"maxRequestsPerMinute": 1_000_000});
    let config = json!({"llm": llm, "models": models, "resources": {"maxRuns": SESSIONS}});
    std::fs::create_dir_all(home.join("config")).expect("a folder");
    std::fs::write(home.join("config/config.json"), config.to_string()).expect("written");
    let repository = repository(scratch);
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect().await;
    client.call("index.addRoot", json!({"path": repository})).await;
    let mut worktrees = Vec::new();
    for _ in 0..WORKTREES {
        let created = client.call("worktree.create", json!({"root": repository})).await;
        worktrees.push(PathBuf::from(created["path"].as_str().expect("a path")));
    }
    let figures = Arc::new(Figures::default());
    let mut work = JoinSet::new();
    for n in 0..SESSIONS {
        let worktree = worktrees[n % WORKTREES].clone();
        work.spawn(run_turns(daemon.connect().await, worktree, n, Arc::clone(&figures)));
    }
    for n in 0..SUBSCRIBERS.0 {
        let client = daemon.connect().await;
        let is_slow = n < SUBSCRIBERS.1;
        work.spawn(subscribers::follow(client, n, is_slow, Arc::clone(&figures)));
    }
    work.spawn(search(daemon.connect().await, Arc::clone(&figures)));
    work.spawn(grep(daemon.connect().await, Arc::clone(&figures)));
    work.spawn(subscribers::probe(daemon.connect().await, Arc::clone(&figures)));
    work.spawn(change_files(worktrees, Arc::clone(&figures)));
    let rows = sample(&daemon, duration, &figures).await;
    figures.stop.store(true, Ordering::Relaxed);
    while let Some(finished) = work.join_next().await {
        finished.expect("a worker ends without a panic");
    }
    judge(&rows, duration, &figures)
}

/// Creates a repository of small source files with one commit.
fn repository(scratch: &Path) -> PathBuf {
    let folder = scratch.join("repository");
    for n in 0..FILES {
        let part = folder.join(format!("part{}", n / 20));
        std::fs::create_dir_all(&part).expect("a folder");
        std::fs::write(part.join(format!("unit{n}.py")), source(n, 0)).expect("written");
    }
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(&folder).args(["-c", "user.name=bench", "-c", "user.email=b@x"]);
        assert!(command.args(args).status().is_ok_and(|s| s.success()), "git {args:?}");
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "first"]);
    folder.canonicalize().expect("a folder")
}

fn source(n: usize, version: u64) -> String {
    (0..20)
        .map(|m| format!("def unit{n}_{m}(ledger):\n    return ledger.take({m}, {version})\n\n"))
        .collect()
}

/// Runs turn after turn, in a new session after some.
async fn run_turns(mut client: Client, worktree: PathBuf, n: usize, figures: Arc<Figures>) {
    while figures.is_running() {
        let created = client.call("session.create", json!({"root": worktree})).await;
        let session = created["sessionId"].as_str().expect("an id").to_owned();
        {
            let mut all = figures.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() <= n {
                all.resize(n + 1, session.clone());
            }
            all[n].clone_from(&session);
        }
        for turn in 0..TURNS {
            let params = json!({"sessionId": session, "turnId": format!("t{turn}"), "input": "go"});
            client.call("orchestrate.run.start", params).await;
            loop {
                let state = client.call("session.get", json!({"sessionId": session})).await;
                if !["running", "queued"].iter().any(|active| state["state"] == *active) {
                    assert_eq!(state["state"], "completed", "{state}");
                    break;
                }
                tokio::time::sleep(TICK).await;
            }
            figures.turns.fetch_add(1, Ordering::Relaxed);
            if !figures.is_running() {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn search(mut client: Client, figures: Arc<Figures>) {
    let mut n = 0;
    while figures.is_running() {
        n += 1;
        let query = format!("take from the ledger of unit{}", n % FILES);
        let start = Instant::now();
        client.call("search.hybrid", json!({"query": query, "k": 10})).await;
        add(&figures.searches, start);
        tokio::time::sleep(TICK).await;
    }
}

async fn grep(mut client: Client, figures: Arc<Figures>) {
    let mut n = 0;
    while figures.is_running() {
        n += 1;
        let pattern = format!("unit{}_1[0-9]", n % FILES);
        client.call("search.grep", json!({"pattern": pattern})).await;
        tokio::time::sleep(TICK).await;
    }
}

/// Changes a file of some work tree again and again.
async fn change_files(worktrees: Vec<PathBuf>, figures: Arc<Figures>) {
    let mut n = 0;
    while figures.is_running() {
        n += 1;
        let unit = n % FILES;
        let path = format!("part{}/unit{unit}.py", unit / 20);
        let file = worktrees[n % WORKTREES].join(path);
        std::fs::write(file, source(unit, n as u64)).expect("written");
        tokio::time::sleep(TICK).await;
    }
}

/// Prints a row at the end of each interval.
async fn sample(daemon: &Daemon, duration: Duration, figures: &Figures) -> Vec<Row> {
    report(
        "mixed: seconds  turns  events  lags  gaps   RSS MB  descriptors  search p95 ms  subscribe p95 ms",
    );
    let start = Instant::now();
    let mut rows = Vec::new();
    for _ in 0..INTERVALS {
        tokio::time::sleep(duration / INTERVALS).await;
        let open = std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).expect("descriptors");
        let row = Row {
            memory: memory(Some(daemon.pid()), "VmRSS"),
            descriptors: open.count() as f64,
            search: quantile(&mut take(&figures.searches), 0.95),
            subscribe: quantile(&mut take(&figures.subscribes), 0.95),
        };
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        report(format!(
            "mixed: {:7.0} {:6} {:7} {:5} {:5} {:8.1} {:12} {:14.1} {:17.1}",
            start.elapsed().as_secs_f64(),
            read(&figures.turns),
            read(&figures.events),
            read(&figures.lags),
            read(&figures.gaps),
            row.memory,
            row.descriptors,
            row.search,
            row.subscribe,
        ));
        rows.push(row);
    }
    rows
}

fn judge(rows: &[Row], duration: Duration, figures: &Figures) -> bool {
    let (Some(early), Some(last)) = (rows.get(2), rows.last()) else { return false };
    let gaps = figures.gaps.load(Ordering::Relaxed);
    value("mixed: RSS MB", last.memory);
    value("mixed: search p95 ms", last.search);
    value("mixed: gaps", gaps as f64);
    let is_slower = |early: f64, last: f64| duration >= COMPARABLE && last > 1.5 * early;
    let findings = [
        ("events are missing", gaps > 0),
        ("no event arrived", figures.events.load(Ordering::Relaxed) == 0),
        ("memory grows", last.memory > early.memory + ALLOWED.0),
        ("descriptors grow", last.descriptors > early.descriptors + ALLOWED.1),
        ("searches become slower", is_slower(early.search, last.search)),
        ("subscribing becomes slower", is_slower(early.subscribe, last.subscribe)),
    ];
    let found: Vec<&str> = findings.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
    let verdict = if found.is_empty() { "flat, no gap".to_owned() } else { found.join(", ") };
    report(format!("mixed: {verdict}"));
    found.is_empty()
}

/// Returns the number of an event, if the message is one of this subscription.
fn number_of(message: &Value, subscription: &Value) -> Option<u64> {
    let params = &message["params"];
    let is_event = message["method"] == "orchestrate.event";
    (is_event && params["subscriptionId"] == *subscription).then(|| params["seq"].as_u64())?
}
