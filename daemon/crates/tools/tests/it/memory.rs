//! The knowledge store as tools, through the gate.

use cairn_harness::{Grants, Rules, Verdict};
use cairn_memory::Store;
use cairn_protocol::error::Reason;
use cairn_tools::Deps;
use serde_json::{Value, json};

use crate::place::Place;

async fn place(rules: Rules) -> (tempfile::TempDir, Place) {
    let dir = tempfile::tempdir().unwrap();
    let memory = Some(Store::new(dir.path().join("memory")));
    let place = Place::with_deps(&[], rules, |deps| Deps { memory, ..deps }).await;
    (dir, place)
}

#[tokio::test]
async fn knowledge_is_stored_without_asking_and_deleted_only_with_leave() {
    let (dir, place) = place(Rules::default()).await;
    let made =
        place.call("memory_save", json!({"keywords": "rust build", "content": "use mold"})).await.unwrap();
    assert_eq!(made["message"], "created \"build_rust.md\" (8 bytes)");
    let more = json!({"action": "append", "keywords": "build rust", "content": "and sccache"});
    assert_eq!(place.call("memory", more).await.unwrap()["bytes"], 26);
    let found = place.call("memory_search", json!({"query": "sccache"})).await.unwrap();
    assert_eq!(found["data"][0]["excerpt"], "and sccache");
    assert_eq!(
        place.call("memory", json!({"action": "keywords"})).await.unwrap()["data"].as_array().unwrap().len(),
        2
    );
    // No approver is connected.
    for (tool, arguments) in [
        ("memory_delete", json!({"keywords": "rust build"})),
        ("memory", json!({"action": "delete", "keywords": "rust build"})),
    ] {
        assert_eq!(place.call(tool, arguments).await.unwrap_err().reason, Reason::NoApprover, "{tool}");
    }
    assert!(dir.path().join("memory/build_rust.md").exists());
    let rules = Rules { allow: vec!["memory_delete".parse().unwrap()], ..Rules::default() };
    let allowed = Place::with_deps(&[], rules, |deps| Deps {
        memory: Some(Store::new(dir.path().join("memory"))),
        ..deps
    })
    .await;
    allowed.call("memory", json!({"action": "delete", "keywords": "rust build"})).await.unwrap();
    assert!(!dir.path().join("memory/build_rust.md").exists());
}

#[tokio::test]
async fn rules_bind_it_as_any_tool() {
    let (_dir, denied) =
        place(Rules { deny: vec!["memory_save".parse().unwrap()], ..Rules::default() }).await;
    let entry = |action: Option<&str>| {
        let mut value = json!({"keywords": "a", "content": "b"});
        if let Some(action) = action {
            value["action"] = Value::from(action);
        }
        value
    };
    for (tool, arguments) in [("memory_save", entry(None)), ("memory", entry(Some("save")))] {
        assert_eq!(denied.call(tool, arguments).await.unwrap_err().reason, Reason::ToolDenied, "{tool}");
    }
    denied.call("memory_append", entry(None)).await.unwrap();
    // A user whose default denies everything unnamed denies this too.
    let (_dir, strict) = place(Rules { default: Verdict::Deny, ..Rules::default() }).await;
    assert_eq!(strict.call("memory_append", entry(None)).await.unwrap_err().reason, Reason::ToolDenied);
    let limited = Grants { ops: Some(vec!["memory_load".into()]), ..Grants::default() };
    let (_dir, free) = place(Rules::default()).await;
    assert_eq!(
        free.with("memory_append", entry(None), limited).await.unwrap_err().reason,
        Reason::ToolDenied
    );
    free.call("memory_append", entry(None)).await.unwrap();
}

#[tokio::test]
async fn without_a_store_there_are_no_tools_for_it() {
    let place = Place::new(&[], Rules::default()).await;
    assert_eq!(place.call("memory_list", json!({})).await.unwrap_err().reason, Reason::UnknownTool);
}
