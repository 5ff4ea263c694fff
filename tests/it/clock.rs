//! A wall clock that jumps by days under the running daemon, set by libfaketime. The monotonic
//! clock is the machine's, as when a user sets the time.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use cairn_protocol::time::Timestamp;
use serde_json::{Value, json};

use crate::{
    chat::{calls, text_answer},
    sealed::{Daemon, Raw, missing, seqs, tree},
};

const DAY: i64 = 24 * 60 * 60;

pub fn libfaketime() -> Option<PathBuf> {
    let folders =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let files = folders.map(|folder| Path::new(folder).join("faketime/libfaketimeMT.so.1"));
    files.into_iter().find(|file| file.exists())
}

/// A home whose model writes a file, which requires an approval, and the file with the offset of
/// its clock.
struct Home {
    dir: tempfile::TempDir,
    library: PathBuf,
}

fn script(answers: &Value) -> String {
    json!({"model": "script", "contextTokens": 16384, "answers": answers}).to_string()
}

impl Home {
    fn new() -> Option<Self> {
        let Some(library) = libfaketime() else {
            missing("libfaketime");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str| calls("write_file", &json!({"path": name, "content": "x\n"}));
        let script = script(&json!([write("one.txt"), write("two.txt"), text_answer("written")]));
        let config =
            json!({"llm": {"provider": "scripted", "endpoint": dir.path().join("script.json")}});
        tree(
            dir.path(),
            &[
                ("script.json", &script.to_string()),
                ("home/config/config.json", &config.to_string()),
                ("home/repo/a.txt", "a\n"),
            ],
        );
        let home = Self { dir, library };
        home.set_clock(0);
        Some(home)
    }

    /// Sets the daemon's wall clock to the real time plus the offset in seconds.
    fn set_clock(&self, offset: i64) {
        let (next, file) = (self.dir.path().join("clock.next"), self.dir.path().join("clock"));
        std::fs::write(&next, format!("{offset:+}\n")).unwrap();
        std::fs::rename(next, file).unwrap();
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn daemon(&self, timeout_seconds: &str) -> Daemon {
        let clock = self.dir.path().join("clock");
        Daemon::start_with(
            &self.path(),
            &[
                ("LD_PRELOAD", self.library.to_str().unwrap()),
                ("FAKETIME_TIMESTAMP_FILE", clock.to_str().unwrap()),
                ("FAKETIME_NO_CACHE", "1"),
                ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
                ("CAIRN_PERMISSIONS_APPROVAL_TIMEOUT_SECONDS", timeout_seconds),
            ],
        )
    }

    async fn started(&self, raw: &mut Raw) -> String {
        let root = self.path().join("repo").canonicalize().unwrap();
        raw.start_turn(&root).await
    }
}

/// Returns the pending approval of a session.
async fn open_approval(raw: &mut Raw, session: &str) -> String {
    let first = |open: &Value| Some(open["data"][0]["approvalId"].as_str()?.to_owned());
    raw.poll("approval.list", json!({"sessionId": session}), first).await
}

async fn wait_for_end(raw: &mut Raw, session: &str) -> Value {
    let state = |session: &Value| {
        let state = session["state"].clone();
        (state != "running" && state != "queued" && state != "awaiting_approval").then_some(state)
    };
    raw.poll("session.get", json!({"sessionId": session}), state).await
}

#[tokio::test]
async fn clock_jump_expires_and_loses_nothing() {
    let Some(home) = Home::new() else { return };
    let mut daemon = home.daemon("300");
    let mut raw = daemon.approver().await;
    let session = home.started(&mut raw).await;
    let first = open_approval(&mut raw, &session).await;
    home.set_clock(40 * DAY);
    // Control: the daemon's clock has jumped.
    let status = raw.ok("daemon.stats", json!({})).await;
    assert!(status["uptimeSeconds"].as_u64().unwrap() < 600, "{status}");
    raw.ok("approval.resolve", json!({"approvalId": first, "decision": "once"})).await;
    let second = open_approval(&mut raw, &session).await;
    assert_ne!(first, second);
    home.set_clock(-40 * DAY);
    let status = raw.ok("daemon.stats", json!({})).await;
    assert!(status["uptimeSeconds"].as_u64().unwrap() < 600, "{status}");
    raw.ok("approval.resolve", json!({"approvalId": second, "decision": "once"})).await;
    assert_eq!(wait_for_end(&mut raw, &session).await, "completed");
    let all = raw.records(&session).await;
    assert_eq!(seqs(&all), (1..=all.len() as u64).collect::<Vec<_>>());
    let days = |record: &Value| {
        let at: Timestamp = serde_json::from_value(record["ts"].clone()).unwrap();
        (at.0 - Timestamp::now().0 + 1000 * DAY / 2).div_euclid(1000 * DAY)
    };
    let jumps: Vec<i64> = all.iter().map(days).collect();
    assert!(jumps.contains(&40) && jumps.contains(&-40), "the clock did not jump: {jumps:?}");
    // A daemon that starts before the last record's time continues after that record.
    daemon.stop();
    tree(home.dir.path(), &[("script.json", &script(&json!([text_answer("again")])))]);
    let daemon = home.daemon("300");
    let mut raw = daemon.approver().await;
    let listed = raw.ok("session.list", json!({})).await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 1, "{listed}");
    raw.ok("orchestrate.run.start", json!({"sessionId": session, "turnId": "u", "input": "again"}))
        .await;
    assert_eq!(wait_for_end(&mut raw, &session).await, "completed");
    let after = raw.records(&session).await;
    assert_eq!(after[..all.len()], all);
    assert_eq!(seqs(&after), (1..=after.len() as u64).collect::<Vec<_>>());
}

/// Durations are measured by the monotonic clock: a day between start and end of a turn is not in
/// them, and none is negative.
#[tokio::test]
async fn durations_do_not_contain_a_clock_jump() {
    for jump in [DAY, -DAY] {
        let Some(home) = Home::new() else { return };
        let daemon = home.daemon("300");
        let mut raw = daemon.approver().await;
        let session = home.started(&mut raw).await;
        for approved in 0..2 {
            let approval = open_approval(&mut raw, &session).await;
            home.set_clock(if approved == 0 { jump } else { 0 });
            raw.ok("approval.resolve", json!({"approvalId": approval, "decision": "once"})).await;
        }
        assert_eq!(wait_for_end(&mut raw, &session).await, "completed");
        let mut durations = Vec::new();
        for record in raw.records(&session).await {
            collect_durations(&record, &mut durations);
        }
        collect_durations(&raw.ok("audit.query", json!({})).await, &mut durations);
        assert!(durations.len() >= 4, "{durations:?}");
        assert!(durations.iter().all(|ms| (0..600_000).contains(ms)), "{jump}: {durations:?}");
    }
}

/// Collects the values of all keys `millis`.
fn collect_durations(value: &Value, durations: &mut Vec<i64>) {
    match value {
        Value::Object(fields) => {
            durations.extend(fields.get("millis").and_then(Value::as_i64));
            fields.values().for_each(|value| collect_durations(value, durations));
        }
        Value::Array(all) => all.iter().for_each(|value| collect_durations(value, durations)),
        _ => {}
    }
}

#[tokio::test]
async fn approval_expires_although_the_clock_was_set_back() {
    let Some(home) = Home::new() else { return };
    let daemon = home.daemon("3");
    let mut raw = daemon.approver().await;
    let session = home.started(&mut raw).await;
    open_approval(&mut raw, &session).await;
    let start = Instant::now();
    home.set_clock(-DAY);
    let params = json!({"traceId": session, "limit": 500});
    let resolver = |page: &Value| {
        let records = page["data"].as_array()?;
        let resolved = records.iter().find(|r| r["evt"]["type"] == "approval_resolved")?;
        Some(resolved["evt"]["resolution"]["by"].clone())
    };
    assert_eq!(raw.poll("trace.get", params, resolver).await, "deadline");
    assert!(start.elapsed() < Duration::from_secs(60), "it waited for the wall clock");
}
