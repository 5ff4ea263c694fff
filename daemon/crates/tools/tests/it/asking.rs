//! `plan` and `tool_lookup`.

use cairn_harness::{Grants, Rules};
use cairn_protocol::error::Reason;
use serde_json::json;

use crate::fixture::Fixture;

#[tokio::test]
async fn plan_is_accepted_or_rejected_with_reason() {
    let fixture = Fixture::new(&[], Rules::default()).await;
    let items = json!({"items": [{"text": "read", "status": "done"}, {"text": "write", "status": "in_progress"}]});
    let output = fixture.output("plan", items.clone(), Grants::default()).await.unwrap();
    assert_eq!((output.tag, &output.value), ("plan", &items));
    for wrong in [
        json!({"items": [{"text": "", "status": "done"}]}),
        json!({"items": [{"text": "x", "status": "begun"}]}),
        json!({"items": "x", "more": 1}),
        json!({"items": vec![json!({"text": "x", "status": "done"}); 51]}),
    ] {
        let error = fixture.call("plan", wrong.clone()).await.unwrap_err();
        assert_eq!(error.reason, Reason::InvalidParams, "{wrong}: {error}");
    }
}

#[tokio::test]
async fn tool_lookup_finds_tools_by_name() {
    let fixture = Fixture::new(&[], Rules::default()).await;
    let all = fixture.call("tool_lookup", json!({})).await.unwrap();
    let all = all["content"].as_str().unwrap();
    assert!(
        all.starts_with("1. ") && all.contains(". read_file: Reads a file with line numbers\n"),
        "{all}"
    );
    // Tools for clients alone are not listed.
    assert!(!all.contains("fs_read"), "{all}");
    // Tools that are added later are listed too.
    let one = fixture.call("tool_lookup", json!({"name": "lookup"})).await.unwrap();
    assert!(
        one["content"].as_str().unwrap().starts_with("tool_lookup\nDescribes the tools."),
        "{one}"
    );
    let error = fixture.call("tool_lookup", json!({"name": "\u{7}zz"})).await.unwrap_err();
    assert_eq!(error.reason, Reason::UnknownTool);
    assert!(error.message.contains("\\u{7}zz"), "{error}");
}
