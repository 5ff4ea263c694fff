//! A third-party editor: the ACP client of npm's `@agentclientprotocol/sdk`, over `cairn acp`, with
//! the schemas of that package.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    chat::{Scripted, calls, scripted, text_answer},
    sdks::{node, node_script},
    sealed::{missing, python},
};

fn write() -> Value {
    calls("write_file", &json!({"path": "notes.txt", "content": "new\n"}))
}

/// Runs a scenario and returns the editor's report; `None` if the package is not installed.
fn play(cairn: &Scripted, scenario: &str, more: &[&str]) -> Option<Value> {
    let node = node()?;
    if !node.1.join("@agentclientprotocol/sdk").exists() {
        missing("npm's @agentclientprotocol/sdk");
        return None;
    }
    let mut editor = node_script(&node, "editor", &cairn.daemon.home);
    editor.arg(crate::sealed::binary()).arg(&cairn.folder).arg(scenario).args(more);
    let output = editor.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{scenario}: {errors}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn notes(cairn: &Scripted) -> String {
    std::fs::read_to_string(cairn.folder.join("notes.txt")).unwrap()
}

#[test]
fn typescript_editor_runs_a_turn_and_continues_its_session() {
    let add = calls("mcp_peer_add", &json!({"a": 40, "b": 2}));
    let answers = json!([add, write(), text_answer("done"), text_answer("still here")]);
    let cairn = scripted(&answers);
    let Some(python) = python("mcp") else { return };
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/mcp_server.py");
    let more = [&*python, &*server.to_string_lossy()];
    let Some(report) = play(&cairn, "turn", &more) else { return };
    assert_eq!(
        (&report["version"], &report["methods"], &report["wrongMethod"]),
        (&json!(1), &json!(["cairn"]), &json!(-32602)),
        "{report:#}"
    );
    assert_eq!(
        (&report["modes"], &report["models"]),
        (&json!(["default", "dry-run"]), &json!("script"))
    );
    assert_eq!((&report["stop"], &report["said"]), (&json!("end_turn"), &json!("done")));
    assert_eq!(notes(&cairn), "new\n");
    // The tool of the editor's own server, and the edit: each had its question.
    let requests = report["asked"].as_array().unwrap();
    assert_eq!(requests.len(), 2, "{report:#}");
    assert_eq!(requests[1]["toolCall"]["content"][0]["oldText"], "old\n");
    let options = json!([
        ["once", "allow_once"],
        ["session", "allow_always"],
        ["always", "allow_always"],
        ["everywhere", "allow_always"],
        ["deny", "reject_once"]
    ]);
    assert_eq!(requests[1]["options"], options);
    let updates = report["updates"].as_array().unwrap();
    assert!(updates.iter().any(|u| u.to_string().contains("42")), "{report:#}");

    let session = report["session"].as_str().unwrap();
    let reloaded = play(&cairn, "load", &[session]).unwrap();
    assert_eq!(reloaded["listed"], json!([session]), "{reloaded:#}");
    assert_eq!(
        (&reloaded["words"], &reloaded["said"], &reloaded["stop"]),
        (&json!("write it"), &json!("done"), &json!("end_turn"))
    );
    assert_eq!(reloaded["left"], json!([]));
    assert!(reloaded["gone"].is_i64(), "{reloaded:#}");
}

#[test]
fn refusal_mode_and_cancel_of_a_typescript_editor_are_respected() {
    for (scenario, stop, text, requests) in [
        ("reject", "end_turn", "as you like", 1),
        ("modes", "end_turn", "as you like", 0),
        ("cancel", "cancelled", "", 1),
    ] {
        let cairn = scripted(&json!([write(), text_answer("as you like")]));
        let Some(report) = play(&cairn, scenario, &[]) else { return };
        assert_eq!(
            (&report["stop"], &report["said"], report["asked"].as_array().unwrap().len()),
            (&json!(stop), &json!(text), requests),
            "{scenario}: {report:#}"
        );
        assert_eq!(notes(&cairn), "old\n", "{scenario}");
        if scenario == "modes" {
            assert_eq!(report["wrongMode"], -32602);
        }
    }
}
