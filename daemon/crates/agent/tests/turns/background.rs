//! Background commands and live output, as a model and a client see them.

use std::{sync::Arc, time::Duration};

use cairn_engine::{DomainAccess, TurnSettings};
use cairn_llm::{ScriptedAnswer, ScriptedCall, Step};
use cairn_protocol::{
    background::BackgroundState,
    envelope::Body,
    event::AgentEvt,
    model::{Message, Part},
    turn::Outcome,
};
use cairn_trace::{Append, NewRecord};
use serde_json::{Value, json};

use crate::stage::{Stage, quick, text_answer};

fn call(name: &str, arguments: Value) -> ScriptedAnswer {
    ScriptedAnswer::new(vec![Step::Call(ScriptedCall { id: None, name: name.into(), arguments })])
}

fn dir() -> Arc<tempfile::TempDir> {
    Arc::new(tempfile::tempdir().unwrap())
}

/// Returns the notes on ended commands in the latest request.
fn notes(stage: &Stage) -> Vec<String> {
    let request = stage.script.requests().last().unwrap().clone();
    let texts = request.messages.into_iter().filter_map(|message| match message {
        Message::User { parts } => Some(parts),
        _ => None,
    });
    let text = |part| match part {
        Part::Text { text } => Some(text),
        Part::Image { .. } => None,
    };
    texts.flatten().filter_map(text).filter(|t| t.starts_with("[Background command")).collect()
}

async fn ends(stage: &Stage) -> Vec<(BackgroundState, Option<i32>)> {
    let all = stage.records().await.into_iter().filter_map(|evt| match evt {
        AgentEvt::BackgroundFinished { state, exit_code, .. } => Some((state, exit_code)),
        _ => None,
    });
    all.collect()
}

#[tokio::test]
async fn model_is_notified_of_an_end_once() {
    let command = json!({"command": "sleep 0.6; echo last line; exit 3", "background": true});
    let answers = vec![
        call("run_shell", command),
        text_answer("started"),
        text_answer("second"),
        text_answer("third"),
    ];
    let stage = Stage::in_root(dir(), None, answers, quick()).await;
    assert_eq!(stage.turn("start it").await.status, Outcome::Completed);
    assert_eq!(notes(&stage), [""; 0]);
    // It continues after the turn, and a daemon that was started on demand stays for it.
    assert!(!stage.engine.is_idle());
    let mut watch = stage.watch(0).await;
    watch.until(|evt| matches!(evt, AgentEvt::BackgroundFinished { .. }).then_some(())).await;
    assert_eq!(ends(&stage).await, [(BackgroundState::Exited, Some(3))]);
    // The command is among the running ones until just after its record.
    let idle = async {
        while !stage.engine.is_idle() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), idle).await.unwrap();
    stage.turn("and now").await;
    let first = notes(&stage);
    assert_eq!(first.len(), 1, "{first:?}");
    assert!(
        first[0].contains("exited with exit code 3") && first[0].contains("last line"),
        "{first:?}"
    );
    stage.turn("go on").await;
    assert_eq!(notes(&stage), first, "the note is part of the conversation, once");
}

#[tokio::test]
async fn stop_of_the_daemon_ends_commands_and_the_model_is_notified() {
    let command = json!({"command": "sleep 600", "background": true});
    let dir = dir();
    let answers = vec![call("run_shell", command), text_answer("started")];
    let stage = Stage::in_root(Arc::clone(&dir), None, answers, quick()).await;
    stage.turn("start it").await;
    let listed = stage.engine.background_commands(&stage.session).await.unwrap();
    assert_eq!(listed[0].state, BackgroundState::Running);
    stage.engine.close().await;
    assert_eq!(ends(&stage).await[0].0, BackgroundState::DaemonStopped);
    let session = stage.session.clone();
    drop(stage);
    let answers = vec![text_answer("I see"), text_answer("yes")];
    let stage = Stage::in_root(dir, Some(session), answers, quick()).await;
    stage.turn("what runs").await;
    let all = notes(&stage);
    assert!(all.len() == 1 && all[0].contains("ended when the daemon stopped"), "{all:?}");
    // One that a crashed daemon left has no end in the log until the next turn.
    let evt = AgentEvt::BackgroundStarted { id: "bg_lost".into(), command: "serve".into() };
    let body = Body::Evt { evt };
    let record = NewRecord { id: uuid::Uuid::now_v7(), parent_id: None, origin: None, body };
    stage.engine.trace().append(Append::new(&stage.session, vec![record])).await.unwrap();
    stage.turn("and now").await;
    let all = notes(&stage);
    assert!(all.len() == 2 && all[1].contains("bg_lost (serve) ended when"), "{all:?}");
    assert_eq!(ends(&stage).await.len(), 2);
}

#[tokio::test]
async fn deleted_session_ends_its_commands() {
    let command = json!({"command": "echo $$ > pid; exec sleep 600", "background": true});
    let dir = dir();
    let answers = vec![call("run_shell", command), text_answer("started")];
    let stage = Stage::in_root(Arc::clone(&dir), None, answers, quick()).await;
    stage.turn("start it").await;
    let pid = std::fs::read_to_string(dir.path().join("work/pid")).unwrap();
    let process = std::path::Path::new("/proc").join(pid.trim());
    assert!(process.exists());
    stage.engine.delete_session(&stage.session).await.unwrap();
    assert!(!process.exists());
}

#[tokio::test]
async fn output_of_a_command_is_published_while_it_runs() {
    // It ends once a file is there that the client makes when it sees the first line.
    let command = json!({"command": "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two"});
    let dir = dir();
    let answers = vec![call("run_shell", command), text_answer("done")];
    let stage = Stage::in_root(Arc::clone(&dir), None, answers, quick()).await;
    let params = stage.params("t", "run it");
    let (follower, _) = stage
        .engine
        .trace()
        .follow(&stage.session, &cairn_protocol::session::After::Seq(0))
        .await
        .unwrap();
    let mut watch = crate::stage::Watch::of(follower);
    stage.engine.start_run(params, None).await.unwrap();
    let outputs = |passed: &[Value]| -> Vec<String> {
        let events = passed.iter().map(|event| &event["evt"]);
        let outputs = events.filter(|evt| evt["type"] == "command_output");
        outputs.map(|evt| evt["text"].as_str().unwrap().to_owned()).collect()
    };
    let call_id = watch.until(|evt| match evt {
        AgentEvt::ToolCall { call_id, .. } => Some(call_id.clone()),
        _ => None,
    });
    let call_id = call_id.await;
    watch.live().await;
    while outputs(&watch.passed).is_empty() {
        watch.live().await;
    }
    assert_eq!(outputs(&watch.passed), ["one\n"]);
    std::fs::write(dir.path().join("work/go"), "").unwrap();
    watch.end().await;
    assert_eq!(outputs(&watch.passed).concat(), "one\ntwo\n");
    let of_call = |event: &&Value| event["evt"]["type"] == "command_output";
    let event = watch.passed.iter().find(of_call).unwrap();
    assert_eq!(event["evt"]["callId"], json!(call_id));
    assert!(event["seq"].is_null(), "live only");
}

#[tokio::test]
async fn web_tools_are_offered_with_a_list_of_domains() {
    for (domains, offers) in
        [(DomainAccess::Off, false), (DomainAccess::Commands, false), (DomainAccess::All, true)]
    {
        let settings = TurnSettings { domains, ..quick() };
        let stage = Stage::in_root(dir(), None, vec![text_answer("x")], settings).await;
        stage.turn("go").await;
        let request = stage.script.requests()[0].clone();
        assert_eq!(request.tools.iter().any(|t| t.name() == "web_fetch"), offers, "{domains:?}");
        assert!(request.tools.iter().any(|t| t.name() == "command_output"));
    }
}
