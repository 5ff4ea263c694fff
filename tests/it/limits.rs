//! Limits of running work: calls of one connection, cancelled calls, concurrent indexes, and
//! changes of these limits by SIGHUP.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    contents::{index, sources},
    sealed::{Daemon, PATIENCE, Raw, tree},
};

/// Writes more bytes than a search reads during a test, in one file with many names: it is too
/// large for the index, so that only grep reads it.
pub fn endless(root: &Path) {
    let line = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor\n";
    let first = root.join("n0.txt");
    std::fs::write(&first, line.repeat(6 * 1024 * 1024 / line.len())).unwrap();
    for n in 1..800 {
        std::fs::hard_link(&first, root.join(format!("n{n}.txt"))).unwrap();
    }
}

/// Returns a search without matches that must read every file.
pub fn long_search() -> Value {
    json!({"pattern": "[a-z]+[0-9]+[a-z]+ [a-z]+", "isRegex": true})
}

async fn in_endless() -> (Daemon, Raw, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    endless(dir.path());
    let daemon = Daemon::start();
    let mut raw = daemon.client().await;
    index(&mut raw, dir.path()).await;
    (daemon, raw, dir)
}

async fn send(raw: &mut Raw, id: &str, method: &str, params: Value) {
    raw.send_json(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
}

async fn cancel(raw: &mut Raw, id: &str) {
    raw.send_json(&json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}}))
        .await;
}

/// Returns the CPU time of a process so far, in clock ticks.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// Waits until a process uses no more CPU time.
async fn rests(pid: u32) {
    let until = Instant::now() + PATIENCE;
    loop {
        let before = ticks(pid);
        tokio::time::sleep(Duration::from_millis(250)).await;
        if ticks(pid) - before <= 3 {
            return;
        }
        assert!(Instant::now() < until, "it works on");
    }
}

#[tokio::test]
async fn cancelled_call_is_answered_at_once_and_its_work_stops() {
    let (daemon, mut raw, _dir) = in_endless().await;
    let pid = daemon.file().unwrap().pid;
    rests(pid).await;
    send(&mut raw, "slow", "search.grep", long_search()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = ticks(pid);
    let cancel_time = Instant::now();
    cancel(&mut raw, "slow").await;
    let answer = raw.answer(&json!("slow")).await;
    let took = cancel_time.elapsed();
    assert_eq!(answer["error"]["code"], -32800, "{answer}");
    assert_eq!(answer["error"]["data"]["reason"], "cancelled", "{answer}");
    assert!(took < Duration::from_secs(20), "it was waited for: {took:?}");
    rests(pid).await;
    crate::sealed::note(&format!(
        "cancelled in {took:?}, {} ticks of CPU after it",
        ticks(pid) - before
    ));
    // There is one answer; cancelling a finished or unknown call changes nothing.
    cancel(&mut raw, "slow").await;
    cancel(&mut raw, "never").await;
    send(&mut raw, "made", "session.create", json!({})).await;
    cancel(&mut raw, "made").await;
    assert!(raw.answer(&json!("made")).await["result"].is_object());
    raw.ok("daemon.status", json!({})).await;
    assert!(raw.backlog.iter().all(|m| m.get("id").is_none()), "{:?}", raw.backlog);
}

#[tokio::test]
async fn calls_over_the_limit_are_refused_and_others_continue() {
    let (daemon, mut raw, _dir) = in_endless().await;
    let mut other = daemon.client().await;
    for n in 0..64 {
        send(&mut raw, &format!("slow{n}"), "search.grep", long_search()).await;
    }
    let refused = raw.call("daemon.status", json!({})).await;
    assert_eq!(refused["error"]["code"], 1001, "{refused}");
    assert_eq!(refused["error"]["data"]["reason"], "overloaded");
    assert!(refused["error"]["data"]["retryAfterMs"].as_u64().unwrap() > 0);
    other.ok("daemon.status", json!({})).await;
    for n in 0..64 {
        cancel(&mut raw, &format!("slow{n}")).await;
    }
    for n in 0..64 {
        let answer = raw.answer(&json!(format!("slow{n}"))).await;
        assert_eq!(answer["error"]["code"], -32800, "{answer}");
    }
    raw.ok("daemon.status", json!({})).await;
    assert!(raw.backlog.iter().all(|m| m.get("id").is_none()), "{:?}", raw.backlog);
}

/// Calls `index_build` in a new session; returns its answer, and the state of the other root at
/// that time.
async fn build(raw: &mut Raw, root: &Path, other: &Path, arguments: Value) -> (Value, Value) {
    let session = raw.ok("session.create", json!({"root": root})).await["sessionId"].clone();
    let result = raw.call_tool(&session, "index_build", arguments).await;
    let status =
        raw.ok("index.status", json!({"root": other})).await["roots"][0]["complete"].clone();
    (result, status)
}

#[tokio::test]
async fn index_build_waits_for_the_concurrency_limit() {
    let daemon = Daemon::start();
    let mut raw = daemon.client().await;
    let dir = tempfile::tempdir().unwrap();
    let (large, small) = (dir.path().join("large"), dir.path().join("small"));
    sources(&large, 2_500);
    tree(&small, &[("a.py", "def alpha():\n    return 1\n")]);
    for root in [&small, &large] {
        raw.ok("index.addRoot", json!({"path": root})).await;
    }
    let (result, done) = build(&mut raw, &small, &large, json!({})).await;
    assert_eq!(
        (&result["ok"], done),
        (&json!(true), json!(false)),
        "without a limit nothing is waited for"
    );
    let (result, done) = build(&mut raw, &small, &large, json!({"maxConcurrency": 2})).await;
    assert_eq!((&result["ok"], done), (&json!(true), json!(false)), "two may be at work");
    let wrong = build(&mut raw, &small, &large, json!({"maxConcurrency": 0})).await.0;
    assert_eq!(wrong["error"]["reason"], "invalid_params", "{wrong}");
    let (result, done) = build(&mut raw, &small, &large, json!({"maxConcurrency": 1})).await;
    assert_eq!((&result["ok"], done), (&json!(true), json!(true)), "the other is waited for");
}

/// Calls a read-only tool and returns its answer.
async fn read_status(raw: &mut Raw, session: &Value) -> Value {
    raw.call_tool(session, "git_status", json!({"path": "."})).await
}

#[tokio::test]
async fn sighup_applies_limits_and_rules_and_reports_keys_that_need_a_restart() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    tree(&dir.path().join("one"), &[("a.py", "x = 1\n")]);
    tree(&dir.path().join("two"), &[("b.py", "y = 1\n")]);
    let mut raw = daemon.client().await;
    let session = raw.open_session(&dir.path().join("one")).await;
    assert_eq!(read_status(&mut raw, &session).await["ok"], true);
    let log = || std::fs::read_to_string(daemon.home.join("test.log")).unwrap();
    let hang_up = |config: Value, word: &str| {
        let before = log().matches(word).count();
        std::fs::create_dir_all(daemon.home.join("config")).unwrap();
        std::fs::write(daemon.home.join("config/config.json"), config.to_string()).unwrap();
        daemon.hang_up();
        crate::contents::until(word, || log().matches(word).count() > before);
    };
    let tight = json!({
        "roots": [dir.path().join("two")],
        "permissions": {"deny": ["git_status"]},
        "exclusions": ["*.tmp"],
        "daemon": {"log": "debug"},
    });
    hang_up(tight, "configuration reloaded");
    let denied = read_status(&mut raw, &session).await;
    assert_eq!(denied["error"]["reason"], "tool_denied", "{denied}");
    crate::contents::until("what waits", || log().contains("at the next start: exclusions"));
    let until = Instant::now() + PATIENCE;
    while raw.ok("index.list", json!({})).await["data"].as_array().unwrap().len() < 2 {
        assert!(Instant::now() < until, "the new root is not declared");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // An invalid configuration changes nothing.
    hang_up(json!({"permissions": {"deny": ["("]}}), "the configuration is unchanged");
    assert_eq!(read_status(&mut raw, &session).await["error"]["reason"], "tool_denied");
    hang_up(json!({}), "configuration reloaded");
    assert_eq!(read_status(&mut raw, &session).await["ok"], true);
}
