//! `kill -9` at any moment: no acknowledged record is lost, sessions resume, and the index becomes
//! complete.

use cairn_test_support::random;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    contents::{assert_same, check_integrity, complete, count, fresh_rows, rows, sources},
    sealed::{Daemon, Raw, ends, seqs},
};

/// Maximum life of a daemon after its first work, in milliseconds.
const LIFE: u64 = 900;

/// Reads a stream for some time, and returns its events.
async fn watch(raw: &mut Raw, session: &str, life: Duration) -> Vec<Value> {
    let mut seen = Vec::new();
    let reading = async {
        raw.ok("orchestrate.subscribe", json!({"sessionId": session, "after": 0})).await;
        loop {
            let mut record = raw.notification("orchestrate.event").await;
            record.as_object_mut().unwrap().remove("subscriptionId");
            seen.push(record);
        }
    };
    let _over: Result<(), _> = tokio::time::timeout(life, reading).await;
    seen
}

/// Returns all records of a session.
async fn records(raw: &mut Raw, session: &str) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let page = raw.ok("trace.get", json!({"traceId": session, "after": all.len()})).await;
        all.extend(page["data"].as_array().unwrap().iter().cloned());
        if page["nextAfter"].is_null() {
            return all;
        }
    }
}

/// Checks after a restart that the log holds all records seen and that the session finishes.
/// Returns true if it was interrupted.
async fn recover(raw: &mut Raw, session: &str, acknowledged: u64, seen: &[Value]) -> bool {
    let log = records(raw, session).await;
    assert_eq!(seqs(&log), (1..=log.len() as u64).collect::<Vec<_>>());
    assert!(
        log.len() as u64 >= acknowledged,
        "record {acknowledged} was acknowledged, {} are left",
        log.len()
    );
    for (log, seen) in log.iter().zip(seen) {
        assert_eq!(log.to_string(), seen.to_string());
    }
    assert!(log.len() >= seen.len());
    let state = raw.ok("session.get", json!({"sessionId": session})).await["state"].clone();
    let interrupted = !log.iter().any(ends);
    assert_eq!(state, if interrupted { "interrupted" } else { "completed" });
    if interrupted {
        raw.ok("session.resume", json!({"sessionId": session})).await;
    }
    let all = raw.follow(session, 0).await;
    assert_eq!(seqs(&all), (1..=all.len() as u64).collect::<Vec<_>>());
    assert_eq!(all.iter().filter(|r| ends(r)).count(), 1);
    assert_eq!(all[all.len() - 1]["evt"]["type"], "completed", "{}", all[all.len() - 1]);
    interrupted
}

async fn round(home: &Path, tree: &Path, life: Duration) -> bool {
    let mut daemon = Daemon::start_in(home, &[]);
    let mut raw = daemon.client().await;
    let known = raw.ok("index.list", json!({})).await["data"] != json!([]);
    if known {
        raw.ok("index.removeRoot", json!({"root": tree})).await;
    }
    let receipt = raw.ok("orchestrate.explore.start", json!({"root": tree})).await;
    let session = receipt["sessionId"].as_str().unwrap();
    let seen = watch(&mut raw, session, life).await;
    daemon.kill9();
    drop(daemon);
    let daemon = Daemon::start_in(home, &[]);
    check_integrity(home);
    let mut raw = daemon.client().await;
    let interrupted = recover(&mut raw, session, receipt["seq"].as_u64().unwrap(), &seen).await;
    complete(&mut raw).await;
    interrupted
}

/// Fixture for killing daemons: a home, a tree, and the rows of an undisturbed index of it.
struct Scene {
    home: PathBuf,
    tree: PathBuf,
    fresh: BTreeSet<String>,
    _dir: tempfile::TempDir,
}

async fn scene() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let (home, tree) = (dir.path().join("home"), dir.path().join("tree"));
    sources(&tree, 200);
    let tree = tree.canonicalize().unwrap();
    let fresh = fresh_rows(&tree).await;
    Scene { home, tree, fresh, _dir: dir }
}

#[tokio::test]
async fn killed_daemon_loses_no_acknowledged_record() {
    let mut rng = random("kills");
    let Scene { home, tree, fresh, _dir } = scene().await;
    let rounds = count("CAIRN_CRASHES", 6);
    let mut interrupted = 0;
    for _ in 0..rounds {
        let life = Duration::from_millis(rng.u64(..LIFE));
        interrupted += usize::from(round(&home, &tree, life).await);
        assert_same(&rows(&home, true), &fresh);
    }
    crate::sealed::note(&format!("{rounds} kills, {interrupted} of them within an explore"));
}

/// Progress of a declaration when its daemon was killed.
struct Killed {
    answered: bool,
    indexed: bool,
}

/// Declares the tree and kills the daemon after `life`, during its first index.
async fn killed_while_declaring(home: &Path, tree: &Path, life: Duration) -> Killed {
    let mut daemon = Daemon::start_in(home, &[]);
    let mut raw = daemon.client().await;
    if raw.ok("index.list", json!({})).await["data"] != json!([]) {
        raw.ok("index.removeRoot", json!({"root": tree})).await;
    }
    let mut killed = Killed { answered: false, indexed: false };
    let declaring = async {
        let answer = raw.call("index.addRoot", json!({"path": tree})).await;
        assert!(answer["result"].is_object(), "{answer}");
        killed.answered = true;
        while raw.notification("index.progress").await["done"] != true {}
        killed.indexed = true;
        std::future::pending::<()>().await;
    };
    let _over: Result<(), _> = tokio::time::timeout(life, declaring).await;
    daemon.kill9();
    killed
}

#[tokio::test]
async fn root_declared_during_a_kill_is_complete_after_restart() {
    let mut rng = random("kills while declaring");
    let Scene { home, tree, fresh, _dir } = scene().await;
    let rounds = count("CAIRN_CRASHES", 6);
    let (mut acknowledged, mut cut) = (0, 0);
    for _ in 0..rounds {
        let killed =
            killed_while_declaring(&home, &tree, Duration::from_millis(rng.u64(..LIFE))).await;
        let daemon = Daemon::start_in(&home, &[]);
        check_integrity(&home);
        let mut raw = daemon.client().await;
        let known = raw.ok("index.list", json!({})).await["data"].as_array().unwrap().len();
        // An acknowledged root is stored; an unacknowledged one may or may not be, and can be
        // declared again.
        assert!(known == 1 || !killed.answered, "an acknowledged root is forgotten");
        if known == 0 {
            raw.ok("index.addRoot", json!({"path": tree})).await;
        }
        acknowledged += usize::from(killed.answered);
        cut += usize::from(!killed.indexed);
        complete(&mut raw).await;
        drop(daemon);
        assert_same(&rows(&home, true), &fresh);
    }
    crate::sealed::note(&format!(
        "{rounds} kills while declaring: {acknowledged} answered, {cut} within the first index"
    ));
}

#[tokio::test]
async fn stopped_session_resumes_after_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (home, tree) = (dir.path().join("home"), dir.path().join("tree"));
    sources(&tree, 200);
    let mut daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    let receipt = raw.ok("orchestrate.explore.start", json!({"root": tree})).await;
    let session = receipt["sessionId"].as_str().unwrap();
    let began = std::time::Instant::now();
    assert!(daemon.stop().success());
    crate::sealed::note(&format!("a stop within an explore took {:?}", began.elapsed()));
    assert!(daemon.file().is_none(), "daemon.json is taken back");
    let daemon = Daemon::start_in(&home, &[]);
    check_integrity(&home);
    let mut raw = daemon.client().await;
    recover(&mut raw, session, receipt["seq"].as_u64().unwrap(), &[]).await;
}
