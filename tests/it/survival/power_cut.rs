//! Power cuts: the file system loses everything that is not durable, while clients append.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;

use super::disk::Ext4;
use crate::{
    contents::{check_integrity, count},
    sealed::{Daemon, Raw, missing, note, seqs},
};

/// Clients that append at the same time.
const CLIENTS: usize = 8;
/// Runs the daemon with an fsync that does nothing.
const WITHOUT_FSYNC: &[&str] = &[
    "strace",
    "-D",
    "-f",
    "-qq",
    "--seccomp-bpf",
    "-o",
    "/dev/null",
    "-e",
    "trace=fsync,fdatasync",
    "-e",
    "inject=fsync,fdatasync:retval=0",
];

/// Number of records that were acknowledged as durable, by session.
struct Acknowledged {
    session: String,
    results: u64,
    /// Name of the latest entry of the knowledge store, if one was written.
    entry: Option<String>,
}

/// Appends until the connection ends.
async fn append(raw: &mut Raw, client: usize, total: &AtomicU64) -> Acknowledged {
    let session = raw.ok("session.create", json!({})).await["sessionId"].clone();
    let mut known =
        Acknowledged { session: session.as_str().unwrap().into(), results: 0, entry: None };
    let call = json!({"sessionId": session, "name": "datetime", "arguments": {}});
    while let Some(answer) = raw.try_call("tool.call", call.clone()).await {
        if answer["result"]["error"].is_null() && answer.get("result").is_some() {
            known.results += 1;
            total.fetch_add(1, Ordering::Relaxed);
        }
        if known.results % 50 == 1 {
            let name = format!("client{client} number{}", known.results);
            let params = json!({"keywords": name, "content": name});
            let saved = raw.try_call("memory.save", params).await;
            if saved.is_some_and(|saved| saved.get("result").is_some()) {
                known.entry = Some(name);
            }
        }
    }
    known
}

/// Cuts the power after so many acknowledged results, and restarts. Returns the lost results and
/// entries.
async fn lost_by_a_power_cut(disk: &Ext4, start: impl Fn() -> Daemon, results: u64) -> (u64, u64) {
    let mut daemon = start();
    let total = AtomicU64::new(0);
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(daemon.client().await);
    }
    let appends = clients.iter_mut().enumerate().map(|(n, raw)| append(raw, n, &total));
    let cut = async {
        while total.load(Ordering::Relaxed) < results {
            tokio::task::yield_now().await;
        }
        disk.cut_power();
        daemon.kill9();
    };
    let (known, ()) = tokio::join!(futures_util::future::join_all(appends), cut);
    let home = daemon.home.clone();
    drop(daemon);
    disk.remount();
    let daemon = Daemon::start_in(&home, &[]);
    check_integrity(&home);
    let mut raw = daemon.client().await;
    let (mut lost, mut lost_entries) = (0, 0);
    for Acknowledged { session, results, entry } in known {
        let records = all_records(&mut raw, &session).await;
        assert_eq!(seqs(&records), (1..=records.len() as u64).collect::<Vec<_>>());
        let stored = records.iter().filter(|r| r["evt"]["type"] == "result").count() as u64;
        lost += results.saturating_sub(stored);
        if let Some(entry) = entry {
            let answer = raw.call("memory.load", json!({"keywords": entry})).await;
            let content = answer["result"]["content"].as_str().unwrap_or_default();
            lost_entries += u64::from(content.trim_end() != entry);
        }
    }
    (lost, lost_entries)
}

/// Returns all records of a session; none if it is unknown.
async fn all_records(raw: &mut Raw, session: &str) -> Vec<serde_json::Value> {
    let mut all = Vec::new();
    loop {
        let params = json!({"traceId": session, "after": all.len(), "limit": 500});
        let page = raw.call("trace.get", params).await;
        let Some(records) = page["result"]["data"].as_array() else { return all };
        all.extend(records.iter().cloned());
        if page["result"]["nextAfter"].is_null() {
            return all;
        }
    }
}

#[tokio::test]
async fn power_cut_loses_no_acknowledged_record() {
    let results = count("CAIRN_POWER_CUT_RECORDS", 300) as u64;
    let Some(disk) = Ext4::create() else { return };
    let home = disk.folder.join("home");
    let lost = lost_by_a_power_cut(&disk, || Daemon::start_in(&home, &[]), results).await;
    note(&format!("power cut after {results} acknowledged records: {lost:?} lost"));
    assert_eq!(lost, (0, 0), "records and entries");
    // Control: without fsync the same cut loses records.
    if !super::write_faults::has_strace() {
        return missing("strace");
    }
    let Some(disk) = Ext4::create() else { return };
    let home = disk.folder.join("home");
    // The data folder itself is durable.
    assert!(Daemon::start_in(&home, &[]).stop().success());
    let start = || Daemon::start_under(&home, WITHOUT_FSYNC).expect("a daemon");
    let lost = lost_by_a_power_cut(&disk, start, results).await;
    note(&format!("the same without fsync: {lost:?} lost"));
    assert!(lost.0 > 0, "the power cut loses nothing even without fsync");
}
