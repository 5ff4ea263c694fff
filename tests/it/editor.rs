//! A third-party editor: the ACP client of PyPI's `agent-client-protocol`, over `cairn acp`.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use crate::{
    chat::{Scripted, calls, said, scripted},
    sealed::{Daemon, binary, program, python, tree},
};

fn write() -> Value {
    calls("write_file", &json!({"path": "notes.txt", "content": "new\n"}))
}

fn read() -> Value {
    calls("read_file", &json!({"path": "notes.txt"}))
}

/// Runs a scenario and returns the editor's report; `None` if the editor is not installed.
fn play(cairn: &Scripted, scenario: &str, more: &[&str]) -> Option<Value> {
    let python = python("acp")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/editor.py");
    let mut editor = Command::new(python);
    editor.arg(script).args([binary(), &cairn.folder]).arg(scenario).args(more);
    let output = editor.env("CAIRN_HOME", &cairn.daemon.home).output().unwrap();
    assert!(output.status.success(), "{scenario}: {}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn notes(cairn: &Scripted) -> String {
    std::fs::read_to_string(cairn.folder.join("notes.txt")).unwrap()
}

/// Returns the updates of a kind.
fn updates<'a>(told: &'a Value, kind: &str) -> Vec<&'a Value> {
    told["updates"].as_array().unwrap().iter().filter(|u| u["sessionUpdate"] == kind).collect()
}

#[test]
fn a_whole_turn_with_a_question_and_its_past() {
    let cairn = scripted(&json!([read(), write(), said("done"), said("still here")]));
    let Some(told) = play(&cairn, "turn", &[]) else { return };
    assert_eq!(
        (&told["version"], &told["stop"], &told["said"]),
        (&json!(1), &json!("end_turn"), &json!("done"))
    );
    assert_eq!((&told["models"], &told["modes"]), (&json!("script"), &json!(["default", "dry-run"])));
    assert_eq!(notes(&cairn), "new\n");
    let path = cairn.folder.canonicalize().unwrap().join("notes.txt");
    let diff = json!({"type": "diff", "path": path, "oldText": "old\n", "newText": "new\n"});
    let asked = &told["asked"][0];
    assert_eq!(asked["toolCall"]["content"], json!([diff]));
    assert_eq!(
        asked["options"],
        json!([
            ["once", "allow_once"],
            ["session", "allow_always"],
            ["always", "allow_always"],
            ["deny", "reject_once"]
        ])
    );
    let calls = updates(&told, "tool_call");
    assert_eq!(calls.iter().map(|c| c["kind"].as_str().unwrap()).collect::<Vec<_>>(), ["read", "edit"]);
    assert_eq!(calls[1]["toolCallId"], asked["toolCall"]["toolCallId"]);
    let ends = updates(&told, "tool_call_update");
    let last = ends.last().unwrap();
    assert_eq!((&last["status"], &last["content"]), (&json!("completed"), &json!([diff])));

    let session = told["session"].as_str().unwrap();
    let again = play(&cairn, "load", &[session]).unwrap();
    assert_eq!(again["listed"], json!([session]));
    assert_eq!(
        (&again["words"], &again["said"], &again["stop"]),
        (&json!("write it"), &json!("done"), &json!("end_turn"))
    );
    assert_eq!(updates(&again, "tool_call").len(), 2);
    assert_eq!(again["asked"], json!([]));
}

#[test]
fn images_are_offered_where_the_model_can_be_sent_them() {
    let cairn = scripted(&json!([]));
    let Some(told) = play(&cairn, "hello", &[]) else { return };
    assert_eq!(told["images"], true, "{told}");
    // A command-line agent accepts text only.
    let agent = cairn.daemon.home.join("agent");
    program(&agent, "#!/bin/sh\n");
    let config = json!({"llm": {"provider": "claudeCode", "agents": {"claudeCode": {"path": agent}}}});
    let home = cairn.daemon.home.join("other");
    tree(&home, &[("config/config.json", &config.to_string())]);
    let daemon = Daemon::start_in(&home, &[]);
    let other = Scripted { daemon, folder: cairn.folder.clone(), _dir: tempfile::tempdir().unwrap() };
    assert_eq!(play(&other, "hello", &[]).unwrap()["images"], false);
}

#[test]
fn no_is_told_to_the_model_and_nothing_is_changed() {
    for scenario in ["reject", "dismiss"] {
        let cairn = scripted(&json!([write(), said("as you like")]));
        let Some(told) = play(&cairn, scenario, &[]) else { return };
        assert_eq!((&told["stop"], &told["said"]), (&json!("end_turn"), &json!("as you like")), "{scenario}");
        assert_eq!(
            (updates(&told, "tool_call_update").last().unwrap()["status"].as_str(), &*notes(&cairn)),
            (Some("failed"), "old\n")
        );
    }
}

#[test]
fn a_turn_is_cancelled_with_its_question() {
    let cairn = scripted(&json!([write(), said("never said")]));
    let Some(told) = play(&cairn, "cancel", &[]) else { return };
    assert_eq!((&told["stop"], &told["said"], &*notes(&cairn)), (&json!("cancelled"), &json!(""), "old\n"));
}

#[test]
fn modes_commands_and_the_model() {
    let cairn = scripted(&json!([write(), said("dry")]));
    let Some(told) = play(&cairn, "modes", &[]) else { return };
    assert_eq!((&told["stop"], &told["asked"], &*notes(&cairn)), (&json!("end_turn"), &json!([]), "old\n"));
    assert_eq!(
        (&told["cleared"], &told["model"], &told["refused"]),
        (&json!("end_turn"), &json!("script"), &json!(-32602))
    );
    let commands = updates(&told, "available_commands_update");
    assert_eq!(commands[0]["availableCommands"][0]["name"], "clear");
}

#[test]
fn a_second_prompt_waits_for_the_first() {
    let cairn = scripted(&json!([said("one"), said("two")]));
    let Some(told) = play(&cairn, "busy", &[]) else { return };
    assert_eq!((&told["stop"], &told["said"]), (&json!(["end_turn", "end_turn"]), &json!("onetwo")));
}

#[tokio::test]
async fn an_editor_that_vanishes_leaves_the_question_to_others() {
    let cairn = scripted(&json!([write(), said("done")]));
    // Another client that may answer: without an approver no approval would be requested.
    let headers = format!("Bearer {}", cairn.daemon.token());
    let mut other =
        crate::sealed::Raw::connect(&cairn.daemon.address(), &[("authorization", &headers)]).await.unwrap();
    let hello = json!({"protocolVersions": ["1"], "client": {"name": "other", "version": "0"}, "capabilities": {"approvals": true}});
    other.ok("initialize", hello).await;
    let Some(told) = play(&cairn, "vanish", &[]) else { return };
    let session = &told["session"];
    let open = other.ok("approval.list", json!({"sessionId": session})).await;
    let approval = &open["data"][0]["approvalId"];
    assert_eq!((open["data"].as_array().unwrap().len(), &*notes(&cairn)), (1, "old\n"));
    other.ok("approval.resolve", json!({"approvalId": approval, "decision": "once"})).await;
    other.ok("orchestrate.subscribe", json!({"sessionId": session})).await;
    loop {
        let evt = other.told("orchestrate.event").await["evt"].clone();
        if evt["type"] == "run_completed" {
            assert_eq!(evt["result"]["status"], "completed", "{evt}");
            break;
        }
    }
    assert_eq!(notes(&cairn), "new\n");
}
