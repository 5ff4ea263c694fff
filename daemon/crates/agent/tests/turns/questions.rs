//! `llm_call`: one request, its typed answer, and the events while it is written.

use cairn_llm::{Expect, ScriptedAnswer, Step};
use cairn_protocol::{event::AgentEvt, tool::ToolCallParams};
use serde_json::{Value, json};

use crate::stage::{Stage, text_answer};

#[tokio::test]
async fn typed_answer_is_streamed_as_snapshots() {
    let plan = r#"{"goals": ["look at what is there", "and then tell of it"],
        "nextOps": [{"type": "list_dir", "path": ".", "depth": 12}]}"#;
    let pieces = |text: &str| {
        let letters: Vec<char> = text.chars().collect();
        letters.chunks(5).map(|piece| Step::Text(piece.iter().collect())).collect::<Vec<_>>()
    };
    let stage = Stage::new(vec![
        ScriptedAnswer::new(pieces(plan)),
        ScriptedAnswer::new(pieces(r#"{"goals": ["one", "two"], "nextOps": "none at all"}"#)),
    ])
    .await;
    let mut watch = stage.watch(0).await;
    let ask = || {
        let arguments =
            json!({"prompt": "plan", "expectsType": "ExplorePlan", "streamStructured": true});
        let (session_id, name) = (stage.session.clone(), "llm_call".into());
        stage.engine.call_tool(ToolCallParams { session_id, name, arguments }, None)
    };
    let seen = async { while !matches!(watch.next().await, AgentEvt::Result { .. }) {} };
    let (result, ()) = tokio::join!(ask(), seen);
    let result = result.unwrap();
    let snapshots: Vec<&Value> =
        watch.passed.iter().filter(|p| p["evt"]["type"] == "structured_snapshot").collect();
    assert!(snapshots.len() > 3, "{snapshots:#?}");
    let values: Vec<&Value> = snapshots.iter().map(|p| &p["evt"]["value"]).collect();
    assert_eq!(values.last().unwrap(), &&result.output["value"]);
    assert_eq!(values[0]["nextOps"], Value::Null);
    assert!(
        values.iter().any(|v| v["goals"][0].as_str().is_some_and(|g| g.len() < 21)),
        "{values:#?}"
    );
    let revisions: Vec<u64> =
        snapshots.iter().filter_map(|p| p["evt"]["revision"].as_u64()).collect();
    assert_eq!(revisions, (1..=snapshots.len() as u64).collect::<Vec<_>>());
    assert_eq!(snapshots[0]["evt"]["expectsType"], "ExplorePlan");
    // They belong to the command, as its result does.
    assert!(
        snapshots
            .iter()
            .all(|p| p["parentId"].is_string() && p["parentId"] == snapshots[0]["parentId"])
    );
    // None of them is in the log.
    let records = stage.records().await;
    assert!(
        !records.iter().any(|evt| matches!(evt, AgentEvt::StructuredSnapshot { .. })),
        "{records:#?}"
    );

    let failed = ask().await.unwrap();
    assert_eq!(failed.error.unwrap().reason, "schema_mismatch");
}

#[tokio::test]
async fn llm_call_returns_typed_answer() {
    let plan = r#"{"goals": ["g"], "nextOps": [{"type": "list_dir", "path": ".", "depth": 1}]}"#;
    let stage = Stage::new(vec![
        text_answer("forty-two").expecting(Expect::LastContains("how much".into())),
        text_answer(plan).expecting(Expect::Schema(true)),
        text_answer("no plan"),
    ])
    .await;
    let ask = |arguments| ToolCallParams {
        session_id: stage.session.clone(),
        name: "llm_call".into(),
        arguments,
    };
    let call = |arguments| stage.engine.call_tool(ask(arguments), None);
    let plain = call(json!({"prompt": "how much?"})).await.unwrap();
    assert_eq!(plain.output["text"], "forty-two");
    let typed = call(json!({"prompt": "plan", "expectsType": "ExplorePlan"})).await.unwrap();
    assert_eq!(typed.output["value"]["nextOps"][0]["type"], "list_dir");
    for (arguments, reason) in [
        (json!({"prompt": "plan", "expectsType": "ExplorePlan"}), "schema_mismatch"),
        (json!({"prompt": "x", "expectsType": "Nope"}), "invalid_params"),
        (json!({"prompt": "x", "streamStructured": true}), "invalid_params"),
        (json!({}), "invalid_params"),
    ] {
        assert_eq!(
            call(arguments.clone()).await.unwrap().error.unwrap().reason,
            reason,
            "{arguments}"
        );
    }
}
