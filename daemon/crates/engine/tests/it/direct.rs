//! Calls that no agent makes: what the audit and the log have of them.

use cairn_protocol::{error::Reason, event::AgentEvt, session::CommandParams, trace::AuditQueryParams};
use serde_json::json;

use crate::stage::{Setup, Stage, World};

// R4
#[tokio::test]
async fn direct_calls_that_change_something_are_audited() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::open(dir.path(), &World::default(), &Setup::new()).await;
    let root = stage.root(&dir.path().join("repo")).await;
    stage.remove_root(&root).await;
    let gone = json!({"root": root.to_string_lossy()});
    stage.engine.remove_root(serde_json::from_value(gone).unwrap()).await.unwrap_err();
    let session = stage.session(None).await;
    stage.engine.delete_session(&session).await.unwrap();
    let rows = stage.engine.trace().audit_query(AuditQueryParams::default()).await.unwrap();
    let told: Vec<_> = rows.iter().map(|r| (r.tool.as_str(), r.outcome.as_deref().unwrap())).collect();
    assert_eq!(
        told,
        [
            ("index.addRoot", "ok"),
            ("index.removeRoot", "ok"),
            ("index.removeRoot", "root_not_found"),
            ("session.delete", "ok"),
        ]
    );
    assert_eq!(rows[3].session_id, session);
}

// R4
#[tokio::test]
async fn an_envelope_that_comes_twice_is_one_command_and_an_event_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::open(dir.path(), &World::default(), &Setup::new()).await;
    let session = stage.session(None).await;
    let params = |kind: &str, id: &str| -> CommandParams {
        let payload = json!({"type": "tool_call", "name": "note", "arguments": {"id": id}});
        let cmd = json!({"id": "0190f5a0-0000-7000-8000-000000000001", "kind": kind, "payload": payload});
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
