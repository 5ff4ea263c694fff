//! Calls that no agent makes, as recorded in the log.

use cairn_protocol::{error::Reason, event::AgentEvt, session::CommandParams};
use serde_json::json;

use crate::stage::{Setup, Stage, World};

// R4
#[tokio::test]
async fn duplicate_envelope_is_one_command_and_event_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::open(dir.path(), &World::default(), &Setup::new()).await;
    let session = stage.session(None).await;
    let params = |kind: &str, id: &str| -> CommandParams {
        let payload = json!({"type": "tool_call", "name": "note", "arguments": {"id": id}});
        let cmd =
            json!({"id": "0190f5a0-0000-7000-8000-000000000001", "kind": kind, "payload": payload});
        serde_json::from_value(json!({"sessionId": session, "cmd": cmd})).unwrap()
    };
    let wrong = stage.engine.command(params("Evt", "x"), None).await.unwrap_err();
    assert_eq!(wrong.reason, Reason::InvalidParams);
    let first = stage.engine.command(params("Cmd", "x"), None).await.unwrap();
    assert_eq!(stage.engine.command(params("Cmd", "x"), None).await.unwrap(), first);
    let other = stage.engine.command(params("Cmd", "y"), None).await.unwrap_err();
    assert_eq!(other.reason, Reason::RequestConflict);
    stage.until(&session, |e| matches!(e, AgentEvt::Result { .. }).then_some(())).await;
    assert_eq!(stage.world.acts().get("x"), Some(&1));
}

// A12
#[tokio::test]
async fn title_limit_applies_to_every_way_of_session_creation() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::open(dir.path(), &World::default(), &Setup::new()).await;
    let long = "t".repeat(900_000);
    let create = |title: &str| serde_json::from_value(json!({"title": title})).unwrap();
    let refused = stage.engine.create_session(create(&long)).await.unwrap_err();
    assert_eq!(refused.reason, Reason::InvalidParams);
    let session = stage.engine.create_session(create(&long[..200])).await.unwrap().session_id;
    let fork = serde_json::from_value(json!({"sessionId": session, "title": long})).unwrap();
    assert_eq!(stage.engine.fork_session(fork).await.unwrap().title.len(), 200);
    let part = stage.engine.trace().export(&session, None).await.unwrap();
    stage.engine.delete_session(&session).await.unwrap();
    let import = part.jsonl.replacen(&long[..200], &long, 1);
    assert!(import.len() > 900_000);
    stage.engine.trace().import(&import).await.unwrap();
    assert_eq!(stage.engine.session(&session).await.unwrap().title.len(), 500);
}
