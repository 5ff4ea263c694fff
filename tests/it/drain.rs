//! R5: SIGTERM during a turn: the turn gets the drain time; if it does not finish, it has an end
//! record after the restart.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    chat::{calls, text_answer},
    sealed::{Daemon, Raw, missing, tree},
};

/// Creates a home whose model returns these answers, and which allows commands.
fn home(dir: &Path, answers: &Value) -> std::path::PathBuf {
    let home = dir.join("home");
    let script = json!({"model": "script", "contextTokens": 16384, "answers": answers});
    tree(dir, &[("script.json", &script.to_string())]);
    let config = json!({
        "llm": {"provider": "scripted", "endpoint": dir.join("script.json")},
        "permissions": {"allow": ["run_shell"]},
    });
    tree(&home, &[("config/config.json", &config.to_string()), ("repo/a.txt", "a\n")]);
    home
}

/// Starts a daemon with that drain time, and a turn.
async fn started(home: &Path, seconds: &str) -> (Daemon, Raw, String) {
    let daemon = Daemon::start_with(home, &[("CAIRN_DAEMON_DRAIN_SECONDS", seconds)]);
    let mut raw = daemon.client().await;
    let root = home.join("repo").canonicalize().unwrap();
    let session = raw.start_turn(&root).await;
    (daemon, raw, session)
}

/// Waits until a record of that type is in the log; returns false if the turn ended without it.
async fn reached(raw: &mut Raw, session: &str, kind: &str) -> bool {
    let pick = |page: &Value| {
        let types = page["data"].as_array()?.iter().filter_map(|r| r["evt"]["type"].as_str());
        let types: Vec<&str> = types.collect();
        let has_kind = types.contains(&kind);
        (has_kind || types.contains(&"run_completed")).then_some(has_kind)
    };
    raw.poll("trace.get", json!({"traceId": session, "limit": 500}), pick).await
}

/// Sends SIGTERM and returns the time until the daemon exited.
fn stopped(daemon: &mut Daemon) -> Duration {
    let began = Instant::now();
    assert!(daemon.stop().success());
    began.elapsed()
}

#[tokio::test]
async fn turn_that_finishes_during_the_drain_completes() {
    let dir = tempfile::tempdir().unwrap();
    let slow = json!({"steps": [{"text": "half"}, {"delayMs": 1500}, {"text": " done"}]});
    let home = home(dir.path(), &json!([slow]));
    let (mut daemon, mut raw, session) = started(&home, "30").await;
    assert!(reached(&mut raw, &session, "run_started").await);
    let took = stopped(&mut daemon);
    assert!(took > Duration::from_millis(500) && took < Duration::from_secs(20), "{took:?}");
    let daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    assert_eq!(raw.ok("session.get", json!({"sessionId": session})).await["state"], "completed");
    let all = raw.records(&session).await;
    let last = &all[all.len() - 1]["evt"];
    assert_eq!(
        (last["type"].as_str(), last["result"]["status"].as_str()),
        (Some("run_completed"), Some("completed"))
    );
    assert!(last.to_string().contains("half done"), "{last}");
}

#[tokio::test]
async fn command_that_exceeds_the_drain_is_interrupted_with_an_end_record() {
    let dir = tempfile::tempdir().unwrap();
    let sleep = calls("run_shell", &json!({"command": "sleep 60"}));
    let home = home(dir.path(), &json!([sleep, text_answer("it went on")]));
    let (mut daemon, mut raw, session) = started(&home, "2").await;
    if !reached(&mut raw, &session, "tool_call").await {
        return missing("a sandbox for commands");
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let took = stopped(&mut daemon);
    assert!(took >= Duration::from_millis(1800) && took < Duration::from_secs(15), "{took:?}");
    let daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    assert_eq!(raw.ok("session.get", json!({"sessionId": session})).await["state"], "interrupted");
    let audit = raw.ok("audit.query", json!({"sessionId": session, "tool": "run_shell"})).await;
    assert_eq!(audit["data"][0]["outcome"], "interrupted", "{audit}");
    let all = raw.records(&session).await;
    let cut = all.iter().filter(|r| r["evt"]["reason"] == "interrupted").count();
    assert_eq!(cut, 1, "the call has one end: {all:?}");
}

#[tokio::test]
async fn answer_that_exceeds_the_drain_is_interrupted_and_resumable() {
    let dir = tempfile::tempdir().unwrap();
    let hangs = json!({"steps": [{"text": "half"}, "hang"]});
    let home = home(dir.path(), &json!([hangs, text_answer("never asked by this daemon")]));
    let (mut daemon, mut raw, session) = started(&home, "1").await;
    assert!(reached(&mut raw, &session, "run_started").await);
    let took = stopped(&mut daemon);
    assert!(took >= Duration::from_millis(900) && took < Duration::from_secs(15), "{took:?}");
    let text =
        json!({"model": "script", "contextTokens": 16384, "answers": [text_answer("it goes on")]});
    tree(dir.path(), &[("script.json", &text.to_string())]);
    let daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    assert_eq!(raw.ok("session.get", json!({"sessionId": session})).await["state"], "interrupted");
    raw.ok("session.resume", json!({"sessionId": session})).await;
    assert!(reached(&mut raw, &session, "run_completed").await);
    let all = raw.records(&session).await;
    let ends = all.iter().filter(|r| r["evt"]["type"] == "run_completed").count();
    assert_eq!(ends, 1, "one end of one turn");
    assert!(all[all.len() - 1].to_string().contains("it goes on"));
}
