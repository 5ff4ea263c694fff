//! Records while the broker and the daemon are killed, the network is cut, and messages are
//! delivered twice; the death of a cluster's node; the broker's memory for many sessions.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use cairn_api::{Api, Fleet as _, HostInfo};
use cairn_engine::Engine;
use cairn_fleet::{Fleet, Settings};
use cairn_protocol::{daemon::Limits, id::SessionId};
use cairn_test_support::engine::{deps, index_options, options};
use cairn_trace::{Append, NewSession};
use serde_json::Value;

use super::{
    broker::{Broker, Network, python},
    record, settings,
};
use crate::meter::{bytes_ending, memory, report, value};

/// Records that are written under faults.
const RECORDS: u64 = 100_000;
/// Sessions that they are in.
const SESSIONS: usize = 50;
/// Records of one commit, and the pause after it.
const COMMIT: (usize, Duration) = (20, Duration::from_millis(10));
/// Duration of a partition.
const PARTITION: Duration = Duration::from_secs(30);
/// Longest wait until everything is on the broker.
const LIMIT: Duration = Duration::from_secs(300);
/// Sessions of the measure of memory, and the records of each.
const MANY: (usize, usize) = (100_000, 3);

/// A daemon without its program: an engine and its part in the fleet.
pub struct Node {
    pub engine: Engine,
    pub fleet: Option<Arc<Fleet>>,
}

impl Node {
    /// Opens the engine, as a member of a fleet if there are settings for one.
    pub async fn open(folder: &Path, settings: Option<Settings>) -> Self {
        std::fs::create_dir_all(folder).expect("a folder");
        let deps = deps(folder, index_options());
        let engine = Engine::open(deps, options(folder)).await.expect("an engine");
        let host = HostInfo::in_process("0", folder);
        let instance = host.instance_id.to_string();
        let api = Api::new(engine.clone(), host, Limits::default());
        let fleet = match settings {
            Some(settings) => {
                Some(Fleet::start(settings, api, folder, &instance).await.expect("a fleet"))
            }
            None => None,
        };
        Self { engine, fleet }
    }

    pub async fn until_connected(&self) {
        let Some(fleet) = &self.fleet else { return };
        while !fleet.status().await.is_ok_and(|status| status.connected) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn confirmed(&self) -> u64 {
        let Some(fleet) = &self.fleet else { return 0 };
        let status = fleet.status().await.ok().and_then(|status| status.mirror);
        status.map_or(0, |mirror| mirror.confirmed)
    }

    async fn close(self) {
        if let Some(fleet) = &self.fleet {
            fleet.close().await;
        }
        self.engine.close().await;
    }
}

/// Writes records until the log has them all, and stays until it is killed: `fleet-writer FOLDER
/// ADDRESS`.
pub async fn write(folder: &Path, address: &str) {
    let settings = Settings { server: address.to_owned(), ..settings("", "writer", &[]) };
    let node = Node::open(folder, Some(settings)).await;
    let trace = node.engine.trace();
    let mut sessions: Vec<(SessionId, u64)> = Vec::new();
    for head in trace.heads(None).await.expect("the log") {
        sessions.push((head.session, head.seq));
    }
    while sessions.len() < SESSIONS {
        let created = trace.create_session(NewSession::default()).await.expect("a session");
        sessions.push((created.session_id, 0));
    }
    let mut total: u64 = sessions.iter().map(|(_, seq)| seq).sum();
    let mut turn = 0;
    while total < RECORDS {
        let session = &sessions[turn % SESSIONS].0;
        turn += 1;
        let count = COMMIT.0.min((RECORDS - total) as usize);
        let records = (0..count).map(|_| record()).collect();
        trace.append(Append::new(session, records)).await.expect("a commit");
        total += count as u64;
        tokio::time::sleep(COMMIT.1).await;
    }
    std::fs::write(folder.join("complete"), "").expect("a file");
    std::future::pending().await
}

fn start_writer(folder: &Path, port: u16) -> Child {
    let own = std::env::current_exe().expect("this program's path");
    Command::new(own)
        .arg("fleet-writer")
        .arg(folder)
        .arg(format!("nats://127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .spawn()
        .expect("a writer")
}

/// Reads everything with a client that is not Cairn's.
fn check(address: &str, daemon: &str) -> Option<Value> {
    let output = Command::new(python())
        .args(["-c", include_str!("check.py"), address, daemon])
        .output()
        .expect("python beside nats-server, with nats-py");
    serde_json::from_slice(&output.stdout).ok()
}

pub async fn faults(folder: &Path) {
    let mut broker = Broker::start(folder);
    let network = Network::start(broker.port).await;
    let data = folder.join("writer");
    std::fs::create_dir_all(&data).expect("a folder");
    let mut writer = start_writer(&data, network.port);
    let started = Instant::now();
    let seed = u64::from(std::process::id());
    let mut random = seed | 1;
    let (mut kills, mut broker_kills, mut partitions, mut cuts) = (0, 0, 0, 0);
    while !data.join("complete").exists() || partitions < 3 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        tokio::time::sleep(Duration::from_millis(500 + random % 4000)).await;
        match random % 8 {
            0..=2 => {
                let _already_exited = writer.kill();
                let _already_exited = writer.wait();
                writer = start_writer(&data, network.port);
                kills += 1;
            }
            3..=4 => {
                broker.kill();
                tokio::time::sleep(Duration::from_millis(random % 3000)).await;
                broker.resume();
                broker_kills += 1;
            }
            5 => {
                network.pause(PARTITION).await;
                partitions += 1;
            }
            _ => {
                network.cut();
                cuts += 1;
            }
        }
    }
    let written = Instant::now();
    let mut result = check(&broker.address(), "writer");
    while result.as_ref().is_none_or(|found| found["records"].as_u64() < Some(RECORDS)) {
        if written.elapsed() > LIMIT {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        result = check(&broker.address(), "writer");
    }
    let _already_exited = writer.kill();
    let _already_exited = writer.wait();
    report(format!(
        "fleet: faults: {RECORDS} records in {:.0} s (seed {seed}), daemon killed {kills} times, broker {broker_kills}, partitions of {} s {partitions}, cuts {cuts}, every 50th message repeated: {}",
        started.elapsed().as_secs_f64(),
        PARTITION.as_secs(),
        result.unwrap_or_default()
    ));
}

/// Kills each node of a cluster in turn while records are written.
pub async fn cluster(folder: &Path) {
    let mut nodes = Broker::cluster(folder, 3);
    let addresses: Vec<_> = nodes.iter().map(Broker::address).collect();
    let server = addresses.join(",");
    let settings = Settings { server, replicas: 3, ..settings("", "clustered", &[]) };
    let node = Node::open(&folder.join("daemon"), Some(settings)).await;
    node.until_connected().await;
    let trace = node.engine.trace().clone();
    let session = trace.create_session(NewSession::default()).await.expect("a session").session_id;
    let mut written = 0_u64;
    for (dying, mortal) in nodes.iter_mut().enumerate() {
        let confirmed = node.confirmed().await;
        let mut longest = Duration::ZERO;
        let (mut last, mut last_at) = (confirmed, Instant::now());
        let started = Instant::now();
        let mut is_dead = false;
        while started.elapsed() < Duration::from_secs(20) {
            let records = (0..COMMIT.0).map(|_| record()).collect();
            trace.append(Append::new(&session, records)).await.expect("a commit");
            written += COMMIT.0 as u64;
            tokio::time::sleep(COMMIT.1).await;
            let now = node.confirmed().await;
            if now > last {
                longest = longest.max(last_at.elapsed());
                (last, last_at) = (now, Instant::now());
            }
            if !is_dead && started.elapsed() > Duration::from_secs(4) {
                mortal.kill();
                is_dead = true;
            }
        }
        mortal.resume();
        report(format!(
            "fleet: cluster: node {dying} of 3 killed: longest time without a confirmed record {:.2} s",
            longest.max(last_at.elapsed()).as_secs_f64()
        ));
    }
    let since = Instant::now();
    let mut result = None;
    while since.elapsed() < LIMIT {
        result = check(&addresses[0], "clustered");
        if result.as_ref().is_some_and(|found| found["records"].as_u64() == Some(written)) {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    report(format!("fleet: cluster: {written} records written: {}", result.unwrap_or_default()));
    node.close().await;
}

/// Memory and disk of the broker for many sessions.
pub async fn many(folder: &Path) {
    let broker = Broker::start(folder);
    let node =
        Node::open(&folder.join("daemon"), Some(settings(&broker.address(), "many", &[]))).await;
    node.until_connected().await;
    let trace = node.engine.trace().clone();
    let before = (memory(broker.pid(), "VmRSS"), memory(None, "VmRSS"));
    let started = Instant::now();
    for _ in 0..MANY.0 {
        let session = trace.create_session(NewSession::default()).await.expect("a session");
        let records = (0..MANY.1).map(|_| record()).collect();
        trace.append(Append::new(&session.session_id, records)).await.expect("a commit");
    }
    let total = (MANY.0 * MANY.1) as u64;
    while node.confirmed().await < total && started.elapsed() < LIMIT * 3 {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let after = (memory(broker.pid(), "VmRSS"), memory(None, "VmRSS"));
    let disk = bytes_ending(&folder.join("broker"), "") as f64 / 1e6;
    value("fleet_broker_mb_per_100k_sessions", after.0 - before.0);
    report(format!(
        "fleet: {} sessions of {} records: broker {:.0} → {:.0} MB of memory, {disk:.0} MB of files; daemon {:.0} → {:.0} MB; {:.0} s",
        MANY.0,
        MANY.1,
        before.0,
        after.0,
        before.1,
        after.1,
        started.elapsed().as_secs_f64()
    ));
    node.close().await;
}
