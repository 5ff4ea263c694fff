//! Background commands in the real sandbox.

use std::time::Duration;

use cairn_harness::background::BackgroundOptions;
use cairn_protocol::{event::AgentEvt, session::After};

use super::*;

async fn fixture() -> Option<Fixture> {
    let sandbox = sandbox()?;
    let rules = allow(&["run_shell", "stop_command"]);
    Some(Fixture::sandboxed(&[("a.txt", "a")], rules, |deps| deps, sandbox).await)
}

async fn start(fixture: &Fixture, command: &str) -> String {
    let arguments = json!({"command": command, "background": true});
    let started = fixture.call("run_shell", arguments).await.unwrap();
    started["id"].as_str().unwrap().to_owned()
}

/// Returns the output from the start on, once it contains `text`.
async fn output_with(fixture: &Fixture, id: &str, text: &str) -> Value {
    loop {
        let value = fixture.call("command_output", json!({"id": id})).await.unwrap();
        if value["output"].as_str().unwrap().contains(text) {
            return value;
        }
        assert_eq!(value["state"], "running", "{value}");
        tokio::task::yield_now().await;
    }
}

/// Returns the end of a command, as the log has it.
async fn end(fixture: &Fixture, id: &str) -> AgentEvt {
    let start = After::Seq(0);
    let (mut follower, _) = fixture.trace().follow(fixture.session(), &start).await.unwrap();
    loop {
        let cairn_trace::Step::Records(lines) = follower.step().await.unwrap() else { continue };
        for line in lines {
            let record: cairn_protocol::envelope::Envelope = serde_json::from_str(&line).unwrap();
            match record.body.evt() {
                Some(evt @ AgentEvt::BackgroundFinished { id: of, .. }) if of == id => {
                    return evt.clone();
                }
                _ => {}
            }
        }
    }
}

/// Returns true if a process with this word in its command line exists.
fn exists(word: &str) -> bool {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let line = |e: std::fs::DirEntry| std::fs::read(e.path().join("cmdline")).unwrap_or_default();
    all.map(line).any(|line| line.split(|b| *b == 0).any(|argument| argument == word.as_bytes()))
}

pub async fn background_command_is_read_and_stopped() {
    let Some(fixture) = fixture().await else { return };
    let id =
        start(&fixture, "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done")
            .await;
    let first = output_with(&fixture, &id, "ready\n").await;
    assert_eq!(
        (first["state"].as_str(), first["dropped_bytes"].as_u64()),
        (Some("running"), Some(0))
    );
    let cursor = first["cursor"].as_u64().unwrap();
    let nothing =
        fixture.call("command_output", json!({"id": id, "cursor": cursor})).await.unwrap();
    assert_eq!((nothing["output"].as_str(), nothing["cursor"].as_u64()), (Some(""), Some(cursor)));
    let list = fixture.call("command_output", json!({})).await.unwrap();
    assert_eq!(list["commands"][0]["id"], json!(id));
    // TERM reaches the command inside the sandbox, which ends by itself.
    let stopped = fixture.call("stop_command", json!({"id": id})).await.unwrap();
    assert_eq!(
        (stopped["state"].as_str(), stopped["exitCode"].as_i64()),
        (Some("stopped"), Some(7))
    );
    let rest = fixture.call("command_output", json!({"id": id, "cursor": cursor})).await.unwrap();
    // The shell also reports the end of its `sleep`, before or after.
    assert!(rest["output"].as_str().unwrap().contains("bye\n"), "{rest}");
    let AgentEvt::BackgroundFinished { exit_code, tail, .. } = end(&fixture, &id).await else {
        return;
    };
    // The tail has no line break at its end, where the last word may stand.
    let complete = tail.starts_with("ready\n") && tail.lines().any(|line| line == "bye");
    assert!(exit_code == Some(7) && complete, "{exit_code:?} {tail}");
    // A command that cannot run is reported by the start itself.
    let arguments = json!({"command": "no-such-program-here", "background": true});
    let failed = fixture.call("run_shell", arguments).await.unwrap();
    assert_eq!(
        (failed["state"].as_str(), failed["exit_code"].as_i64()),
        (Some("exited"), Some(127))
    );
    assert!(failed["output"].as_str().unwrap().contains("no-such-program-here"), "{failed}");
}

pub async fn stubborn_command_is_killed_with_its_descendants() {
    let Some(fixture) = fixture().await else { return };
    let mark = format!("{}.5", 1_000_000 + std::process::id());
    let script = format!(
        "trap '' TERM; (trap '' TERM; setsid sh -c \"trap '' TERM; echo on; sleep {mark}; :\" &) ; \
        while :; do sleep 0.1; done"
    );
    let id = start(&fixture, &script).await;
    output_with(&fixture, &id, "on").await;
    while !exists(&mark) {
        tokio::task::yield_now().await;
    }
    let stopped = fixture.call("stop_command", json!({"id": id})).await.unwrap();
    assert_eq!(
        (stopped["state"].as_str(), stopped["exitCode"].as_i64()),
        (Some("stopped"), Some(137))
    );
    assert!(!exists(&mark), "a detached process outlives its command");
}

pub async fn flood_is_bounded() {
    let Some(fixture) = fixture().await else { return };
    let id = start(&fixture, "yes flood").await;
    let read = |cursor: u64| fixture.call("command_output", json!({"id": id, "cursor": cursor}));
    // Until more was dropped than a reader can be given.
    let mut last = read(0).await.unwrap();
    while last["dropped_bytes"].as_u64().unwrap() < 4 << 20 {
        tokio::task::yield_now().await;
        last = read(0).await.unwrap();
    }
    assert!(last["output"].as_str().unwrap().len() <= 32 * 1024 && last["more"] == true, "{last}");
    // The daemon serves other calls meanwhile.
    let other = fixture.call("run_shell", json!({"command": "echo alive"})).await.unwrap();
    assert_eq!(other["stdout"], "alive\n");
    let stopped = fixture.call("stop_command", json!({"id": id})).await.unwrap();
    assert_eq!(stopped["state"], "stopped");
    let AgentEvt::BackgroundFinished { tail, .. } = end(&fixture, &id).await else { return };
    assert!(tail.len() <= 2000 && tail.ends_with("flood"), "{tail}");
}

pub async fn limits_of_background_commands_are_named() {
    let Some(fixture) = fixture().await else { return };
    let options = BackgroundOptions { per_session: 2, lifetime: Duration::from_secs(600) };
    fixture.harness.background().configure(options);
    let first = start(&fixture, "sleep 500").await;
    start(&fixture, "sleep 500").await;
    let third = json!({"command": "sleep 500", "background": true});
    let failure = fixture.call("run_shell", third.clone()).await.unwrap_err();
    assert_eq!(failure.reason, Reason::Overloaded);
    assert!(failure.message.contains("the limit of sandbox.maxBackground"), "{failure}");
    // Control: after one has ended there is room.
    fixture.call("stop_command", json!({"id": first})).await.unwrap();
    assert_eq!(fixture.call("run_shell", third).await.unwrap()["state"], "running");
    let timed = json!({"command": "true", "background": true, "timeout_seconds": 5});
    let failure = fixture.call("run_shell", timed).await.unwrap_err();
    assert_eq!(failure.reason, Reason::InvalidParams);
    fixture.harness.background().end_all().await;
}

pub async fn other_session_sees_no_command() {
    let Some(fixture) = fixture().await else { return };
    let id = start(&fixture, "echo secret; sleep 500").await;
    output_with(&fixture, &id, "secret").await;
    for (tool, arguments) in
        [("command_output", json!({"id": id})), ("stop_command", json!({"id": id}))]
    {
        let failure = fixture.in_other_session(tool, arguments).await.unwrap_err();
        assert_eq!(failure.reason, Reason::InvalidParams, "{tool}");
        assert!(failure.message.contains("this session has no background command"), "{failure}");
    }
    let list = fixture.in_other_session("command_output", json!({})).await.unwrap();
    assert_eq!(list["commands"], json!([]));
    // Control: its own session still has it.
    assert_eq!(output_with(&fixture, &id, "secret").await["state"], "running");
    fixture.harness.background().end_all().await;
}

pub async fn lifetime_and_session_end_commands() {
    let Some(fixture) = fixture().await else { return };
    let options = BackgroundOptions { per_session: 8, lifetime: Duration::from_millis(300) };
    fixture.harness.background().configure(options);
    let id = start(&fixture, "echo started; sleep 500").await;
    let AgentEvt::BackgroundFinished { state, .. } = end(&fixture, &id).await else { return };
    assert_eq!(serde_json::to_value(state).unwrap(), "timed_out");
    fixture.harness.background().configure(BackgroundOptions::default());
    let mark = format!("{}.5", 2_000_000 + std::process::id());
    let id = start(&fixture, &format!("echo on; sleep {mark}")).await;
    output_with(&fixture, &id, "on").await;
    fixture.harness.background().end_session(fixture.session()).await;
    assert!(!exists(&mark));
    let AgentEvt::BackgroundFinished { state, .. } = end(&fixture, &id).await else { return };
    assert_eq!(serde_json::to_value(state).unwrap(), "session_closed");
    assert!(fixture.call("command_output", json!({"id": id})).await.is_err());
}
