//! A third-party editor: the ACP client of PyPI's `agent-client-protocol`, over `cairn acp`.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use crate::{
    chat::{Scripted, calls, scripted, text_answer},
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
fn updates<'a>(report: &'a Value, kind: &str) -> Vec<&'a Value> {
    report["updates"].as_array().unwrap().iter().filter(|u| u["sessionUpdate"] == kind).collect()
}

#[test]
fn turn_with_approval_completes_and_session_loads() {
    let cairn = scripted(&json!([read(), write(), text_answer("done"), text_answer("still here")]));
    let Some(report) = play(&cairn, "turn", &[]) else { return };
    assert_eq!(
        (&report["version"], &report["stop"], &report["said"]),
        (&json!(1), &json!("end_turn"), &json!("done"))
    );
    assert_eq!(
        (&report["models"], &report["modes"]),
        (&json!("script"), &json!(["default", "dry-run"]))
    );
    assert_eq!(notes(&cairn), "new\n");
    let path = cairn.folder.canonicalize().unwrap().join("notes.txt");
    let diff = json!({"type": "diff", "path": path, "oldText": "old\n", "newText": "new\n"});
    let request = &report["asked"][0];
    assert_eq!(request["toolCall"]["content"], json!([diff]));
    assert_eq!(
        request["options"],
        json!([
            ["once", "allow_once"],
            ["session", "allow_always"],
            ["always", "allow_always"],
            ["everywhere", "allow_always"],
            ["deny", "reject_once"]
        ])
    );
    let calls = updates(&report, "tool_call");
    assert_eq!(
        calls.iter().map(|c| c["kind"].as_str().unwrap()).collect::<Vec<_>>(),
        ["read", "edit"]
    );
    assert_eq!(calls[1]["toolCallId"], request["toolCall"]["toolCallId"]);
    let ends = updates(&report, "tool_call_update");
    let last = ends.last().unwrap();
    assert_eq!((&last["status"], &last["content"]), (&json!("completed"), &json!([diff])));

    let session = report["session"].as_str().unwrap();
    let reloaded = play(&cairn, "load", &[session]).unwrap();
    assert_eq!(reloaded["listed"], json!([session]));
    assert_eq!(
        (&reloaded["words"], &reloaded["said"], &reloaded["stop"]),
        (&json!("write it"), &json!("done"), &json!("end_turn"))
    );
    assert_eq!(updates(&reloaded, "tool_call").len(), 2);
    assert_eq!(reloaded["asked"], json!([]));
}

#[test]
fn images_are_offered_if_the_model_supports_them() {
    let cairn = scripted(&json!([]));
    let Some(report) = play(&cairn, "hello", &[]) else { return };
    assert_eq!(report["images"], true, "{report}");
    // A command-line agent accepts text only.
    let agent = cairn.daemon.home.join("agent");
    program(&agent, "#!/bin/sh\n");
    let config =
        json!({"llm": {"provider": "claudeCode", "agents": {"claudeCode": {"path": agent}}}});
    let home = cairn.daemon.home.join("other");
    tree(&home, &[("config/config.json", &config.to_string())]);
    let daemon = Daemon::start_in(&home, &[]);
    let other =
        Scripted { daemon, folder: cairn.folder.clone(), _dir: tempfile::tempdir().unwrap() };
    assert_eq!(play(&other, "hello", &[]).unwrap()["images"], false);
}

#[test]
fn denied_call_is_reported_to_the_model_and_changes_nothing() {
    for scenario in ["reject", "dismiss"] {
        let cairn = scripted(&json!([write(), text_answer("as you like")]));
        let Some(report) = play(&cairn, scenario, &[]) else { return };
        assert_eq!(
            (&report["stop"], &report["said"]),
            (&json!("end_turn"), &json!("as you like")),
            "{scenario}"
        );
        assert_eq!(
            (
                updates(&report, "tool_call_update").last().unwrap()["status"].as_str(),
                &*notes(&cairn)
            ),
            (Some("failed"), "old\n")
        );
    }
}

#[test]
fn cancelling_a_turn_cancels_its_approval() {
    let cairn = scripted(&json!([write(), text_answer("never said")]));
    let Some(report) = play(&cairn, "cancel", &[]) else { return };
    assert_eq!(
        (&report["stop"], &report["said"], &*notes(&cairn)),
        (&json!("cancelled"), &json!(""), "old\n")
    );
}

#[test]
fn modes_commands_and_models_are_set() {
    let cairn = scripted(&json!([write(), text_answer("dry")]));
    let Some(report) = play(&cairn, "modes", &[]) else { return };
    assert_eq!(
        (&report["stop"], &report["asked"], &*notes(&cairn)),
        (&json!("end_turn"), &json!([]), "old\n")
    );
    assert_eq!(
        (&report["cleared"], &report["model"], &report["refused"]),
        (&json!("end_turn"), &json!("script"), &json!(-32602))
    );
    let commands = updates(&report, "available_commands_update");
    assert_eq!(commands[0]["availableCommands"][0]["name"], "clear");
}

#[test]
fn second_prompt_is_queued() {
    let cairn = scripted(&json!([text_answer("one"), text_answer("two")]));
    let Some(report) = play(&cairn, "busy", &[]) else { return };
    assert_eq!(
        (&report["stop"], &report["said"]),
        (&json!(["end_turn", "end_turn"]), &json!("onetwo"))
    );
}

#[tokio::test]
async fn approval_survives_the_disconnect_of_its_editor() {
    let cairn = scripted(&json!([write(), text_answer("done")]));
    // Another client that may answer: without an approver no approval would be requested.
    let headers = format!("Bearer {}", cairn.daemon.token());
    let mut other =
        crate::sealed::Raw::connect(&cairn.daemon.address(), &[("authorization", &headers)])
            .await
            .unwrap();
    let hello = json!({"protocolVersions": ["1"], "client": {"name": "other", "version": "0"}, "capabilities": {"approvals": true}});
    other.ok("initialize", hello).await;
    let Some(report) = play(&cairn, "vanish", &[]) else { return };
    let session = &report["session"];
    let open = other.ok("approval.list", json!({"sessionId": session})).await;
    let approval = &open["data"][0]["approvalId"];
    assert_eq!((open["data"].as_array().unwrap().len(), &*notes(&cairn)), (1, "old\n"));
    other.ok("approval.resolve", json!({"approvalId": approval, "decision": "once"})).await;
    other.ok("orchestrate.subscribe", json!({"sessionId": session})).await;
    loop {
        let evt = other.notification("orchestrate.event").await["evt"].clone();
        if evt["type"] == "run_completed" {
            assert_eq!(evt["result"]["status"], "completed", "{evt}");
            break;
        }
    }
    assert_eq!(notes(&cairn), "new\n");
}

#[test]
fn servers_of_the_editor_are_tools_of_its_session_alone() {
    let add = calls("mcp_peer_add", &json!({"a": 40, "b": 2}));
    let environment = calls("mcp_peer_environment", &json!({}));
    let cairn = scripted(&json!([
        add,
        environment,
        text_answer("one"),
        add,
        text_answer("two"),
        add,
        text_answer("three")
    ]));
    let Some(python) = python("mcp") else { return };
    let further = cairn.folder.parent().unwrap().join("further");
    tree(&further, &[("a.txt", "a\n")]);
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/mcp_server.py");
    let more = [&*python, &*server.to_string_lossy(), &*further.to_string_lossy()];
    let Some(report) = play(&cairn, "servers", &more) else { return };
    let ends: Vec<(&str, String)> = updates(&report, "tool_call_update")
        .iter()
        .filter(|update| update["status"] == "completed" || update["status"] == "failed")
        .map(|update| (update["status"].as_str().unwrap(), update["content"].to_string()))
        .collect();
    let states: Vec<&str> = ends.iter().map(|(state, _)| *state).collect();
    // The first session has the tools; the other has not, nor has the first after it was closed,
    // whose first two calls are replayed before.
    let expected = ["completed", "completed", "failed", "completed", "completed", "failed"];
    assert_eq!(states, expected, "{report:#}");
    assert!(ends[0].1.contains("42"), "{ends:?}");
    assert!(ends[1].1.contains("OWN") && !ends[1].1.contains("CAIRN_HOME"), "{ends:?}");
    assert!(ends[2].1.contains("there is no tool"), "{ends:?}");
    // Each call passed the gate: a server's claim that it only reads is not trusted.
    assert_eq!(report["asked"].as_array().unwrap().len(), 2, "{report:#}");
    let problems = updates(&report, "agent_thought_chunk");
    assert!(problems.iter().any(|p| p["content"]["text"].as_str().unwrap().contains("'broken'")));
    assert_eq!((&report["sse"], &report["nameless"]), (&json!(-32602), &json!(-32602)));
    let roots = cairn.cairn(&["index", "--json"]).1;
    assert!(roots.contains("further"), "{roots}");
}

#[test]
fn usage_and_session_info_are_reported_and_a_session_is_deleted() {
    let cairn = scripted(&json!([text_answer("hello")]));
    let Some(report) = play(&cairn, "delete", &[]) else { return };
    assert_eq!(
        (&report["stop"], &report["listed"]),
        (&json!("end_turn"), &json!([])),
        "{report:#}"
    );
    assert_eq!((&report["methods"], &report["refused"]), (&json!(["cairn"]), &json!(-32602)));
    let usage = updates(&report, "usage_update");
    assert_eq!((&usage[0]["used"], &usage[0]["size"]), (&json!(120), &json!(16384)));
    let info = updates(&report, "session_info_update");
    assert!(info[0]["title"].is_string() && info[0]["updatedAt"].is_string(), "{info:?}");
}

#[test]
fn registry_entry_names_the_release() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("packaging/acp-registry/agent.json")).unwrap();
    let entry: Value = serde_json::from_str(&text).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(entry["version"], version);
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let repository = entry["repository"].as_str().unwrap();
    assert!(manifest.contains(&format!("repository = \"{repository}\"")), "{repository}");
    for (platform, name) in [
        ("darwin-aarch64", "aarch64-macos"),
        ("darwin-x86_64", "x86_64-macos"),
        ("linux-aarch64", "aarch64-linux"),
        ("linux-x86_64", "x86_64-linux"),
    ] {
        let binary = &entry["distribution"]["binary"][platform];
        let folder = format!("cairn-{version}-{name}");
        let archive = format!("{repository}/releases/download/v{version}/{folder}.tar.gz");
        assert_eq!(binary["archive"], archive);
        assert_eq!(
            (&binary["cmd"], &binary["args"]),
            (&json!(format!("./{folder}/bin/cairn")), &json!(["acp"]))
        );
    }
    let npx = &entry["distribution"]["npx"];
    assert_eq!(npx, &json!({"package": format!("cairn-agent@{version}"), "args": ["acp"]}));
}
