//! The knowledge store as tools, through the gate.

use cairn_harness::{Grants, Rules, Verdict};
use cairn_memory::Store;
use cairn_protocol::error::Reason;
use cairn_tools::Deps;
use serde_json::{Value, json};

use crate::fixture::Fixture;

async fn fixture(rules: Rules) -> (tempfile::TempDir, Fixture) {
    let dir = tempfile::tempdir().unwrap();
    let memory = Some(Store::new(dir.path().join("memory")));
    let fixture = Fixture::with_deps(&[], rules, |deps| Deps { memory, ..deps }).await;
    (dir, fixture)
}

#[tokio::test]
async fn memory_save_needs_no_approval_and_delete_does() {
    let (dir, fixture) = fixture(Rules::default()).await;
    let created = fixture
        .call("memory_save", json!({"keywords": "rust build", "content": "use mold"}))
        .await
        .unwrap();
    assert_eq!(created["message"], "created \"build_rust.md\" (8 bytes)");
    let more = json!({"action": "append", "keywords": "build rust", "content": "and sccache"});
    assert_eq!(fixture.call("memory", more).await.unwrap()["bytes"], 26);
    let matches = fixture.call("memory_search", json!({"query": "sccache"})).await.unwrap();
    assert_eq!(matches["data"][0]["excerpt"], "and sccache");
    assert_eq!(
        fixture.call("memory", json!({"action": "keywords"})).await.unwrap()["data"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    // No approver is connected.
    for (tool, arguments) in [
        ("memory_delete", json!({"keywords": "rust build"})),
        ("memory", json!({"action": "delete", "keywords": "rust build"})),
    ] {
        assert_eq!(
            fixture.call(tool, arguments).await.unwrap_err().reason,
            Reason::NoApprover,
            "{tool}"
        );
    }
    assert!(dir.path().join("memory/build_rust.md").exists());
    let rules = Rules { allow: vec!["memory_delete".parse().unwrap()], ..Rules::default() };
    let allowed = Fixture::with_deps(&[], rules, |deps| Deps {
        memory: Some(Store::new(dir.path().join("memory"))),
        ..deps
    })
    .await;
    allowed.call("memory", json!({"action": "delete", "keywords": "rust build"})).await.unwrap();
    assert!(!dir.path().join("memory/build_rust.md").exists());
}

/// An entry of the user is not replaced without a question, by either name of the tool.
#[tokio::test]
async fn replacing_an_entry_needs_an_approval() {
    let (dir, fixture) = fixture(Rules::default()).await;
    let save = |content: &str| json!({"keywords": "deploy", "content": content});
    fixture.call("memory_save", save("ask first")).await.unwrap();
    let file = dir.path().join("memory/deploy.md");
    let all = |content: &str| {
        let mut arguments = save(content);
        arguments["action"] = "save".into();
        arguments
    };
    for (tool, arguments) in [("memory_save", save("push at once")), ("memory", all("push"))] {
        let error = fixture.call(tool, arguments).await.unwrap_err();
        assert_eq!(error.reason, Reason::NoApprover, "{tool}: {error}");
        assert!(error.message.contains("it replaces the entry"), "{tool}: {error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "ask first\n");
    }
    // Controls: the same content, another entry, and a rule of the user.
    fixture.call("memory_save", save("ask first")).await.unwrap();
    let other = json!({"keywords": "release", "content": "x"});
    fixture.call("memory_save", other).await.unwrap();
    fixture.set_rules(Rules { allow: vec!["memory_save".parse().unwrap()], ..Rules::default() });
    fixture.call("memory_save", save("push at once")).await.unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "push at once\n");
}

#[tokio::test]
async fn memory_tools_obey_rules() {
    let (_dir, denied) =
        fixture(Rules { deny: vec!["memory_save".parse().unwrap()], ..Rules::default() }).await;
    let entry = |action: Option<&str>| {
        let mut value = json!({"keywords": "a", "content": "b"});
        if let Some(action) = action {
            value["action"] = Value::from(action);
        }
        value
    };
    for (tool, arguments) in [("memory_save", entry(None)), ("memory", entry(Some("save")))] {
        assert_eq!(
            denied.call(tool, arguments).await.unwrap_err().reason,
            Reason::ToolDenied,
            "{tool}"
        );
    }
    denied.call("memory_append", entry(None)).await.unwrap();
    // A user whose default denies everything unnamed denies this too.
    let (_dir, strict) = fixture(Rules { default: Verdict::Deny, ..Rules::default() }).await;
    assert_eq!(
        strict.call("memory_append", entry(None)).await.unwrap_err().reason,
        Reason::ToolDenied
    );
    let limited = Grants { ops: Some(vec!["memory_load".into()]), ..Grants::default() };
    let (_dir, free) = fixture(Rules::default()).await;
    assert_eq!(
        free.with("memory_append", entry(None), limited).await.unwrap_err().reason,
        Reason::ToolDenied
    );
    free.call("memory_append", entry(None)).await.unwrap();
}

#[tokio::test]
async fn memory_tools_require_store() {
    let fixture = Fixture::new(&[], Rules::default()).await;
    assert_eq!(
        fixture.call("memory_list", json!({})).await.unwrap_err().reason,
        Reason::UnknownTool
    );
}
