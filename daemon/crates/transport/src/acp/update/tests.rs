//! Conversion of events to updates.

use super::*;

fn evt(value: Value) -> AgentEvt {
    serde_json::from_value(value).unwrap()
}

const RUN: &str = "run_00000000000000000000000000000001";

fn text(kind: &str, offset: u64, text: &str) -> AgentEvt {
    evt(json!({"type": kind, "runId": RUN, "offset": offset, "text": text}))
}

/// Returns the displayed text of these events.
fn displayed(events: &[AgentEvt]) -> Vec<String> {
    let mut displayed = Displayed::default();
    let updates = events.iter().flat_map(|evt| updates_for(evt, &mut displayed, "/r"));
    updates
        .map(|update| update["content"]["text"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn text_is_displayed_once() {
    for (events, expected) in [
        (vec![text("text", 0, "ab")], vec!["ab"]),
        (
            vec![text("token_delta", 0, "a"), text("token_delta", 1, "b"), text("text", 0, "ab")],
            vec!["a", "b"],
        ),
        // The record makes up for a lost delta.
        (
            vec![text("token_delta", 0, "a"), text("token_delta", 2, "c"), text("text", 0, "abc")],
            vec!["a", "bc"],
        ),
        (
            vec![text("token_delta", 0, "é"), text("text", 0, "éè"), text("text", 4, "x")],
            vec!["é", "è", "x"],
        ),
    ] {
        assert_eq!(displayed(&events), expected, "{events:?}");
    }
}

#[test]
fn output_of_running_command_is_displayed_until_its_result() {
    let mut displayed = Displayed::default();
    let mut update = |value| updates_for(&evt(value), &mut displayed, "/r");
    let output =
        |text: &str| json!({"type": "command_output", "callId": "c1", "text": text, "dropped": 0});
    assert!(update(output("early")).is_empty(), "a call that is not known");
    update(json!({"type": "tool_call", "callId": "c1", "name": "run_shell", "arguments": {}}));
    update(output("one\n"));
    let latest = update(output("two\n"));
    assert_eq!(latest[0]["content"][0]["content"]["text"], "one\ntwo\n");
    assert!(latest[0].get("status").is_none());
    let latest = update(output(&"é".repeat(MAX_OUTPUT)));
    let text = latest[0]["content"][0]["content"]["text"].as_str().unwrap();
    assert!(text.len() <= MAX_OUTPUT && text.ends_with('é'));
}

fn approval(diff: &str) -> Approval {
    serde_json::from_value(json!({
        "approvalId": "apr_00000000000000000000000000000001", "sessionId": "ses_00000000000000000000000000000001",
        "tool": "edit_file", "arguments": {"path": "a.rs"}, "rule": "", "grants": ["edit_file(a.rs)"],
        "preview": {"summary": "edit a.rs", "diff": diff, "paths": ["a.rs"]},
        "createdAt": "2026-01-01T00:00:00.000Z", "expiresAt": "2026-01-01T00:05:00.000Z",
    }))
    .unwrap()
}

#[test]
fn diff_is_split_into_hunks() {
    let diff = "--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -9 +9,2 @@\n+new\n\\ No newline at end of file\n";
    assert_eq!(
        diffs(&approval(diff), "/r"),
        [
            json!({"type": "diff", "path": "/r/a.rs", "oldText": "one\ntwo\n", "newText": "one\n2\n"}),
            json!({"type": "diff", "path": "/r/a.rs", "oldText": null, "newText": "new\n"}),
        ]
    );
    assert_eq!(diffs(&approval(""), "/r"), Vec::<Value>::new());
}

#[test]
fn call_updates_follow_its_lifecycle() {
    let mut displayed = Displayed::default();
    let arguments = json!({"path": "a.rs", "old_text": "two", "new_text": "2"});
    let call = evt(
        json!({"type": "tool_call", "callId": "c1", "name": "edit_file", "arguments": arguments}),
    );
    let lines = updates_for(&call, &mut displayed, "/r");
    assert_eq!(
        (&lines[0]["toolCallId"], &lines[0]["kind"], &lines[0]["title"]),
        (&json!("c1"), &json!("edit"), &json!("edit_file a.rs"))
    );
    assert_eq!(lines[0]["locations"], json!([{"path": "/r/a.rs"}]));
    let approval = approval("@@ -1 +1 @@\n-two\n+2\n");
    assert_eq!(permission_call(&approval, &displayed, "/r")["toolCallId"], "c1");
    let pending = updates_for(
        &AgentEvt::ApprovalRequired { approval: Box::new(approval) },
        &mut displayed,
        "/r",
    );
    assert_eq!(pending[0]["status"], "pending");
    let result = json!({"type": "tool_result", "callId": "c1", "name": "edit_file", "output": {"ok": true}, "millis": 1});
    let update = updates_for(&evt(result), &mut displayed, "/r");
    assert_eq!(
        (&update[0]["status"], &update[0]["content"][0]["newText"]),
        (&json!("completed"), &json!("2\n"))
    );
    let failed = json!({
        "type": "tool_result", "callId": "c2", "name": "x", "millis": 1,
        "error": {"code": "tool_failed", "reason": "tool_failed", "message": "no", "retryable": false},
    });
    let update = updates_for(&evt(failed), &mut displayed, "/r");
    assert_eq!(
        (&update[0]["status"], &update[0]["content"][0]["content"]["text"]),
        (&json!("failed"), &json!("no"))
    );
}

#[test]
fn plan_and_user_text_are_converted() {
    let plan = evt(json!({"type": "plan_update", "items": [{"text": "a", "status": "done"}]}));
    let mut displayed = Displayed::default();
    assert_eq!(
        updates_for(&plan, &mut displayed, "/r")[0]["entries"],
        json!([{"content": "a", "priority": "medium", "status": "completed"}])
    );
    let turn = json!({"type": "turn_accepted", "runId": RUN, "turnId": "t", "input": [{"type": "text", "text": "hi"}]});
    assert_eq!(
        updates_for(&evt(turn), &mut displayed, "/r")[0]["sessionUpdate"],
        "user_message_chunk"
    );
    assert_eq!((relative("/r/a", "/r"), relative("/rest", "/r")), ("a", "/rest"));
    assert_eq!(truncate("abc", 2), "ab…");
}
