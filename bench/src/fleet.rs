//! Daemons and a broker: records mirrored per second and their cost, time until a run starts, a
//! thousand runs over five daemons of which two are killed, records under faults. `CAIRN_NATS_SERVER`
//! names the broker's program, `nats-server` unless set.

mod broker;
mod faults;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use cairn_engine::record::Trace;
use cairn_fleet::{LEASE, Login, Mirrored, Settings};
use cairn_protocol::{envelope::Body, event::AgentEvt, id::SessionId};
use cairn_trace::{Append, NewRecord, NewSession};
use serde_json::{Value, json};

use crate::{
    daemon::{Client, Daemon},
    meter::{cpu, memory, quantile, report, value},
};
use broker::Broker;
use faults::Node;
pub use faults::write;

/// Records of the measure of the mirror, and the sessions that they are in.
const RECORDS: (usize, usize) = (200_000, 100);
/// Records of one commit.
const BATCH: usize = 100;
/// Runs of which the time until the start is measured.
const STARTS: usize = 200;
/// Daemons of the pool, those of them that are killed, and its runs.
const POOL: (usize, usize, usize) = (5, 2, 1000);
/// Longest duration of the runs of the pool.
const POOL_LIMIT: Duration = Duration::from_secs(900);

/// Runs the named parts, or all.
pub async fn run(scratch: &Path, parts: &[String]) {
    let is_selected = |name: &str| parts.is_empty() || parts.iter().any(|part| part == name);
    let folder = |name: &str| {
        let folder = scratch.join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    };
    if is_selected("mirror") {
        mirror(&folder("mirror")).await;
    }
    if is_selected("starts") {
        starts(&folder("starts")).await;
    }
    if is_selected("pool") {
        pool(&folder("pool")).await;
    }
    if is_selected("faults") {
        faults::faults(&folder("faults")).await;
    }
    if is_selected("cluster") {
        faults::cluster(&folder("cluster")).await;
    }
    if is_selected("many") {
        faults::many(&folder("many")).await;
    }
}

/// Appends the records and returns the seconds, and the milliseconds of the commits.
async fn append_all(trace: &Trace) -> (f64, Vec<f64>) {
    let mut sessions: Vec<SessionId> = Vec::new();
    for _ in 0..RECORDS.1 {
        let created = trace.create_session(NewSession::default()).await;
        sessions.push(created.expect("a session").session_id);
    }
    let start = Instant::now();
    let mut commits = Vec::new();
    for n in 0..RECORDS.0 / BATCH {
        let session = &sessions[n % sessions.len()];
        let records = (0..BATCH).map(|_| record()).collect();
        let started = Instant::now();
        trace.append(Append::new(session, records)).await.expect("a commit");
        commits.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    (start.elapsed().as_secs_f64(), commits)
}

/// A record with a text of 300 characters, as an agent's answer has.
fn record() -> NewRecord {
    let text = "the function reads the header and returns its length ".repeat(6);
    let body = Body::Evt { evt: AgentEvt::Progress { op: text, percent: 1.0, message: None } };
    NewRecord { id: uuid::Uuid::now_v7(), parent_id: None, origin: None, body }
}

async fn mirror(folder: &Path) {
    let broker = Broker::start(folder);
    std::fs::create_dir_all(folder.join("plain")).expect("a folder");
    std::fs::create_dir_all(folder.join("mirrored")).expect("a folder");
    let plain = Trace::open(&folder.join("plain/trace.db")).expect("a log");
    let before = cpu(None);
    let (_, mut commits) = append_all(&plain).await;
    let cpu_plain = cpu(None) - before;
    let commit_plain = quantile(&mut commits, 0.95);
    let dir = folder.join("mirrored");
    let node = Node::open(&dir, settings(&broker.address(), "bench", &[])).await;
    node.until_connected().await;
    let (before, rss) = (cpu(None), memory(None, "VmRSS"));
    let start = Instant::now();
    let (_, mut commits) = append_all(node.engine.trace()).await;
    let appended = start.elapsed().as_secs_f64();
    let mut peak = 0.0_f64;
    while node.confirmed().await < RECORDS.0 as u64 {
        peak = peak.max(memory(None, "VmRSS"));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let seconds = start.elapsed().as_secs_f64();
    let per_second = RECORDS.0 as f64 / seconds;
    let cost = cpu(None) - before - cpu_plain;
    let commit = quantile(&mut commits, 0.95);
    value("fleet_mirror_records_per_s", per_second);
    value("fleet_mirror_cpu_us_per_record", cost * 1e6 / RECORDS.0 as f64);
    report(format!(
        "fleet: mirror: {per_second:.0} records/s (≥ 20,000), appended in {appended:.1} s, confirmed in {seconds:.1} s; {:.1} µs of CPU a record; memory +{:.1} MB (≤ 10)",
        cost * 1e6 / RECORDS.0 as f64,
        peak - rss
    ));
    report(format!(
        "fleet: mirror: commit p95 {commit:.2} ms, without {commit_plain:.2} ms (never delayed)"
    ));
    node.fleet.close().await;
    node.engine.close().await;
}

fn settings(server: &str, name: &str, pools: &[&str]) -> Settings {
    Settings {
        server: server.to_owned(),
        login: Login::None,
        ca_file: None,
        name: name.to_owned(),
        pools: pools.iter().map(|pool| (*pool).to_owned()).collect(),
        mirror: Mirrored::All,
        mirror_folders: vec![],
        blobs: false,
        replicas: 1,
        clone_from: vec![],
        max_runs: 16,
        lease: LEASE,
    }
}

/// A daemon's home whose configuration names the broker, and a root with a few files.
fn home(folder: &Path, broker: &Broker, name: &str, pool: &str) -> PathBuf {
    let home = folder.join(name);
    std::fs::create_dir_all(home.join("config")).expect("a folder");
    let fleet =
        json!({"server": broker.address(), "name": name, "pools": [pool], "mirror": "pools"});
    let config = json!({"fleet": fleet, "resources": {"maxRuns": 8}});
    std::fs::write(home.join("config/config.json"), config.to_string()).expect("a file");
    home
}

fn root(folder: &Path) -> PathBuf {
    let root = folder.join("app");
    std::fs::create_dir_all(&root).expect("a folder");
    std::fs::write(root.join("main.py"), "def main():\n    return 0\n").expect("a file");
    root.canonicalize().expect("a folder")
}

async fn add_run(client: &mut Client, pool: &str, id: &str, root: &Path) {
    let work = json!({"type": "explore"});
    let params = json!({"pool": pool, "turnId": id, "work": work, "root": root});
    let added = client.call("fleet.run", params).await;
    assert_eq!(added["turnId"], id, "{added}");
}

/// Time from the call that adds a run until its session's first record.
async fn starts(folder: &Path) {
    let broker = Broker::start(folder);
    let home = home(folder, &broker, "starter", "starts");
    let root = root(folder);
    let mut daemon = Daemon::start(&home);
    daemon.index(&root).await;
    let mut client = daemon.client.take().expect("a client");
    until_listed(&mut client, 1).await;
    let mut times = Vec::new();
    for n in 0..STARTS {
        let id = format!("s{n}");
        let started = Instant::now();
        add_run(&mut client, "starts", &id, &root).await;
        loop {
            let params = json!({"pool": "starts", "turnId": id});
            let run = client.call("fleet.runs", params).await["data"][0].clone();
            if run["attempts"][0]["sessionId"].is_string() {
                times.push(started.elapsed().as_secs_f64() * 1000.0);
            }
            if !matches!(run["state"].as_str(), Some("queued" | "running")) {
                break;
            }
        }
    }
    let (p50, p95) = (quantile(&mut times, 0.5), quantile(&mut times, 0.95));
    value("fleet_start_ms", p50);
    report(format!(
        "fleet: from adding a run to its start p50 {p50:.1} ms (≤ 5), p95 {p95:.1} ms, of {} runs",
        times.len()
    ));
}

async fn until_listed(client: &mut Client, count: usize) {
    loop {
        let status = client.call("fleet.status", json!({})).await;
        if status["daemons"].as_array().is_some_and(|all| all.len() >= count) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A thousand runs; two daemons are killed while they have some.
async fn pool(folder: &Path) {
    let broker = Broker::start(folder);
    let root = root(folder);
    let (count, killed, runs) = POOL;
    let mut daemons = Vec::new();
    for n in 0..count {
        let mut daemon = Daemon::start(&home(folder, &broker, &format!("member-{n}"), "load"));
        daemon.index(&root).await;
        daemons.push(daemon);
    }
    // The last daemon is asked, so that the first ones can be killed.
    let mut client = daemons[count - 1].client.take().expect("a client");
    until_listed(&mut client, count).await;
    let started = Instant::now();
    for n in 0..runs {
        add_run(&mut client, "load", &format!("r{n}"), &root).await;
        if n == runs / 4 || n == runs / 2 {
            drop(daemons.remove(0));
        }
    }
    let mut states = BTreeMap::<String, usize>::new();
    while started.elapsed() < POOL_LIMIT {
        let all = client.call("fleet.runs", json!({"pool": "load"})).await["data"].clone();
        let all: Vec<Value> = all.as_array().cloned().unwrap_or_default();
        states.clear();
        for run in &all {
            *states.entry(run["state"].as_str().unwrap_or("?").to_owned()).or_default() += 1;
        }
        let is_open = |state: &String| matches!(state.as_str(), "queued" | "running");
        if all.len() == runs && !states.keys().any(is_open) {
            let again = all.iter().filter(|run| run["attempts"].as_array().map_or(0, Vec::len) > 1);
            report(format!(
                "fleet: {runs} runs over {count} daemons, {killed} killed: {states:?} in {:.1} s, {} of them at the second attempt",
                started.elapsed().as_secs_f64(),
                again.count()
            ));
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    report(format!("fleet: {runs} runs over {count} daemons: not finished: {states:?}"));
}
