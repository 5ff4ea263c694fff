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

use cairn_fleet::{LEASE, Login, Mirrored, Settings};
use cairn_protocol::{envelope::Body, event::AgentEvt, id::SessionId, time::Timestamp};
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
/// Records of each second of the measure at a rate, its duration, and records of a commit.
const PACED: usize = 1000;
const PACED_SECONDS: usize = 20;
const PACED_BATCH: usize = 10;
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
        mirror(&folder("mirror"));
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

/// Appends records and measures this process: `fleet-cost FOLDER ADDRESS PER_SECOND`, with `-` for a
/// daemon without a fleet. Prints the measures.
pub async fn cost(folder: &Path, address: &str, per_second: usize) {
    let is_member = address != "-";
    // Each process is another daemon.
    let name = format!("bench-{per_second}");
    let settings = is_member.then(|| settings(address, &name, &[]));
    let node = Node::open(folder, settings).await;
    node.until_connected().await;
    let trace = node.engine.trace().clone();
    let mut sessions: Vec<SessionId> = Vec::new();
    for _ in 0..RECORDS.1 {
        let created = trace.create_session(NewSession::default()).await;
        sessions.push(created.expect("a session").session_id);
    }
    let (total, batch) = match per_second {
        0 => (RECORDS.0, BATCH),
        per_second => (per_second * PACED_SECONDS, PACED_BATCH),
    };
    let mut pace = tokio::time::interval(Duration::from_secs_f64(
        batch as f64 / if per_second == 0 { 1e9 } else { per_second as f64 },
    ));
    let (cpu_before, rss, start) = (cpu(None), memory(None, "VmRSS"), Instant::now());
    let (mut commits, mut peak) = (Vec::new(), 0.0_f64);
    for n in 0..total / batch {
        if per_second > 0 {
            pace.tick().await;
        }
        let session = &sessions[n % sessions.len()];
        let records = (0..batch).map(|_| record()).collect();
        let started = Instant::now();
        trace.append(Append::new(session, records)).await.expect("a commit");
        commits.push(started.elapsed().as_secs_f64() * 1000.0);
        if n.is_multiple_of(50) {
            peak = peak.max(memory(None, "VmRSS"));
        }
    }
    while is_member && node.confirmed().await < total as u64 {
        peak = peak.max(memory(None, "VmRSS"));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let seconds = start.elapsed().as_secs_f64();
    let measures = json!({
        "perSecond": total as f64 / seconds,
        "cpuMicros": (cpu(None) - cpu_before) * 1e6 / total as f64,
        "share": (cpu(None) - cpu_before) / seconds,
        "memory": peak - rss,
        "commit50": quantile(&mut commits.clone(), 0.5),
        "commit95": quantile(&mut commits, 0.95),
    });
    report(measures.to_string());
}

/// A record with a text of 300 characters, as an agent's answer has.
fn record() -> NewRecord {
    let text = "the function reads the header and returns its length ".repeat(6);
    let body = Body::Evt { evt: AgentEvt::Progress { op: text, percent: 1.0, message: None } };
    NewRecord { id: uuid::Uuid::now_v7(), parent_id: None, origin: None, body }
}

/// Runs the measure in processes of their own, with and without a fleet.
fn mirror(folder: &Path) {
    let broker = Broker::start(folder);
    let run = |name: &str, address: &str, per_second: usize| -> Value {
        let own = std::env::current_exe().expect("this program's path");
        let folder = folder.join(format!("{name}-{per_second}"));
        let mut command = std::process::Command::new(own);
        command.arg("fleet-cost").arg(folder).args([address, &per_second.to_string()]);
        let output = command.output().expect("a measure");
        serde_json::from_slice(&output.stdout).expect("measures")
    };
    for per_second in [0, PACED] {
        let without = run("without", "-", per_second);
        let with = run("with", &broker.address(), per_second);
        let get = |from: &Value, key: &str| from[key].as_f64().unwrap_or(f64::NAN);
        let more = |key: &str| get(&with, key) - get(&without, key);
        let name = match per_second {
            0 => "as many records as possible".to_owned(),
            n => format!("{n} records/s"),
        };
        if per_second == 0 {
            value("fleet_mirror_records_per_s", get(&with, "perSecond"));
            value("fleet_mirror_cpu_us_per_record", more("cpuMicros"));
        }
        report(format!(
            "fleet: mirror: {name}: {:.0} records/s (≥ 20,000), {:.1} µs of CPU a record, {:+.1} % of a core (≤ 5), memory {:+.1} MB (≤ 10), commit p50 {:.2} ms and p95 {:.2} ms, without {:.2} and {:.2} ms",
            get(&with, "perSecond"),
            more("cpuMicros"),
            more("share") * 100.0,
            more("memory"),
            get(&with, "commit50"),
            get(&with, "commit95"),
            get(&without, "commit50"),
            get(&without, "commit95"),
        ));
    }
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

/// Time from the call that adds a run until the first event of the run in its session.
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
        let added = Timestamp::now();
        add_run(&mut client, "starts", &id, &root).await;
        let run = loop {
            let params = json!({"pool": "starts", "turnId": id});
            let run = client.call("fleet.runs", params).await["data"][0].clone();
            if !matches!(run["state"].as_str(), Some("queued" | "running")) {
                break run;
            }
        };
        let params = json!({"traceId": run["attempts"][0]["sessionId"], "limit": 10});
        let records = client.call("trace.get", params).await["data"].clone();
        let records: Vec<Value> = records.as_array().cloned().unwrap_or_default();
        if let Some(event) = records.iter().find(|record| record["evt"].is_object()) {
            let at: Timestamp = serde_json::from_value(event["ts"].clone()).expect("a time");
            times.push((at.0 - added.0) as f64);
        }
    }
    let (p50, p95) = (quantile(&mut times, 0.5), quantile(&mut times, 0.95));
    value("fleet_start_ms", p50);
    report(format!(
        "fleet: from adding a run to its start p50 {p50:.0} ms (≤ 5), p95 {p95:.0} ms, of {} runs",
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
        let all =
            client.call("fleet.runs", json!({"pool": "load", "limit": 1000})).await["data"].clone();
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
