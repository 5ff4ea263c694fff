//! Changes outside the daemon between two calls: the programs of its configuration, the working
//! folder, and the server of the model.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
};

use serde_json::{Value, json};

use crate::{
    chat::{calls, scripted, text_answer},
    sealed::{Daemon, logged, missing, program, tree, wait_for},
};

fn script(file: &Path, text: &str) {
    program(file, &format!("#!/bin/sh\n{text}\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_adds_replaces_and_removes_configured_programs() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    let (root, bin) = (dir.path().join("root"), dir.path().join("bin"));
    tree(&root, &[("a.txt", "a\n")]);
    script(&bin.join("good"), r#"echo '{"said": 1}'"#);
    script(&bin.join("other"), r#"echo '{"said": 2}'"#);
    script(&bin.join("garbage"), "echo no JSON");
    script(&bin.join("broken"), "echo it broke >&2; exit 3");
    let mut raw = daemon.client().await;
    if raw.ok("sandbox.probe", json!({})).await["tier"] != "full" {
        return missing("a full sandbox");
    }
    let session = raw.open_session(&root).await;
    let tool = |name: &str, file: &str| json!({"name": name, "path": bin.join(file), "description": "Says something."});
    let take = |tools: Value| {
        let before = logged(&daemon.home).matches("configuration reloaded").count();
        let config = json!({"tools": {"external": tools}, "permissions": {"allow": ["*"]}});
        tree(&daemon.home, &[("config/config.json", &config.to_string())]);
        daemon.hang_up();
        wait_for("the new configuration", || {
            (logged(&daemon.home).matches("configuration reloaded").count() > before).then_some(())
        });
    };
    let none = raw
        .call("tool.call", json!({"sessionId": session, "name": "teller", "arguments": {}}))
        .await;
    assert!(none.to_string().contains("unknown_tool"), "{none}");
    take(json!([tool("teller", "good"), tool("noise", "garbage"), tool("wreck", "broken")]));
    assert_eq!(raw.call_tool(&session, "teller", json!({})).await["output"]["said"], 1);
    let noise = raw.call_tool(&session, "noise", json!({})).await;
    assert_eq!(noise["error"]["reason"], "tool_failed", "{noise}");
    assert!(
        noise["error"]["message"]
            .as_str()
            .unwrap()
            .contains("printed 'no JSON', which is not JSON"),
        "{noise}"
    );
    let wreck = raw.call_tool(&session, "wreck", json!({})).await;
    assert!(
        wreck["error"]["message"].as_str().unwrap().contains("exited with 3: it broke"),
        "{wreck}"
    );
    // One program was replaced, another one removed.
    take(json!([tool("teller", "other")]));
    assert_eq!(raw.call_tool(&session, "teller", json!({})).await["output"]["said"], 2);
    let removed = raw
        .call("tool.call", json!({"sessionId": session, "name": "noise", "arguments": {}}))
        .await;
    assert!(removed.to_string().contains("unknown_tool"), "{removed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_requires_one_approval_with_complete_preview() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path(), &[("a.txt", "one\n"), ("b.txt", "two\n"), ("c.txt", "three\n")]);
    let mut raw = daemon.approver().await;
    let session = raw.open_session(dir.path()).await;
    for decision in ["deny", "once"] {
        let ops = json!([
            {"action": "write", "path": "new.txt", "content": "fresh words\n"},
            {"action": "write", "path": "a.txt", "content": "other words\n"},
            {"action": "delete", "path": "b.txt"},
            {"action": "read", "path": "c.txt"},
        ]);
        let params = json!({"sessionId": session, "name": "fs", "arguments": {"ops": ops}});
        raw.send_json(
            &json!({"jsonrpc": "2.0", "id": decision, "method": "tool.call", "params": params}),
        )
        .await;
        let approval = loop {
            let list = raw.ok("approval.list", json!({"sessionId": session})).await;
            if let Some(first) = list["data"].as_array().unwrap().first() {
                assert_eq!(list["data"].as_array().unwrap().len(), 1, "{list}");
                break first.clone();
            }
        };
        let preview = approval["preview"].to_string();
        for part in ["new.txt", "fresh words", "a.txt", "other words", "b.txt"] {
            assert!(preview.contains(part), "{part}: {preview}");
        }
        let answer = json!({"approvalId": approval["approvalId"], "decision": decision});
        raw.ok("approval.resolve", answer).await;
        let outcome = raw.answer(&json!(decision)).await;
        let there = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap_or_default();
        let files = (there("new.txt"), there("a.txt"), there("b.txt"));
        let changed = ("fresh words\n".to_owned(), "other words\n".to_owned(), String::new());
        let before = (String::new(), "one\n".to_owned(), "two\n".to_owned());
        assert_eq!(files, if decision == "once" { changed } else { before }, "{outcome}");
    }
}

#[test]
fn missing_root_is_reported_and_used_once_restored() {
    let list = || calls("read_file", &json!({"path": "src/a.rs"}));
    let cairn = scripted(&json!([
        list(),
        text_answer("first"),
        list(),
        text_answer("second"),
        list(),
        text_answer("third")
    ]));
    let ask = |text: &str| cairn.chat(&["-p", text], None);
    let (code, out, err) = ask("one");
    assert!(code == 0 && out.contains("first"), "{code} {out}{err}");
    let away = cairn.folder.with_extension("away");
    std::fs::rename(&cairn.folder, &away).unwrap();
    std::fs::create_dir(&cairn.folder).unwrap();
    // The turn continues: the model receives the error that the file does not exist.
    let (code, out, err) = ask("two");
    assert!(code == 0 && out.contains("second"), "{code} {out}{err}");
    let (_, log, _) = cairn.cairn(&["audit", "--tool", "read_file"]);
    assert!(
        log.contains("path_not_found") || log.contains("root_gone") || log.contains("io_failed"),
        "{log}"
    );
    std::fs::remove_dir_all(&cairn.folder).unwrap();
    std::fs::rename(&away, &cairn.folder).unwrap();
    let (code, out, err) = ask("three");
    assert!(code == 0 && out.contains("third"), "{code} {out}{err}");
}

/// Starts a model server that refuses every request with `status`, but lists its models.
fn refusing(status: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream: TcpStream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).to_lowercase();
            let length =
                head.lines().find_map(|l| l.strip_prefix("content-length: ")?.parse::<u64>().ok());
            let _read =
                std::io::copy(&mut (&mut stream).take(length.unwrap_or(0)), &mut std::io::sink());
            let models = r#"{"object": "list", "data": [{"id": "m-small"}, {"id": "m-large"}]}"#;
            let (status, body) =
                if head.starts_with("get") { ("200 OK", models) } else { (status, body) };
            let _ignored = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    url
}

#[test]
fn wrong_key_and_missing_model_are_reported_with_a_hint() {
    let cairn = scripted(&json!([text_answer("x")]));
    let ask = |endpoint: &str| {
        cairn.chat(
            &["-p", "x", "--provider", "openai-compatible", "-m", "m-huge", "--endpoint", endpoint],
            None,
        )
    };
    let missing =
        r#"{"error": {"message": "The model 'm-huge' does not exist", "code": "model_not_found"}}"#;
    let (code, _, err) = ask(&refusing("404 Not Found", missing));
    assert!(
        code == 1 && err.contains("m-huge") && err.contains("it has m-small, m-large"),
        "{code} {err}"
    );
    let key = r#"{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}"#;
    let (code, _, err) = ask(&refusing("401 Unauthorized", key));
    assert!(code == 1 && err.contains("OPENAI_COMPATIBLE_API_KEY"), "{code} {err}");
    // Down from the start: nothing listens on the port.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (code, _, err) = ask(&format!("http://{address}"));
    assert!(
        code == 1 && err.contains(&address.to_string()) && err.contains("hint: start"),
        "{code} {err}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn switched_tool_is_off_without_a_restart() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    let mut raw = daemon.client().await;
    let session = raw.open_session(dir.path()).await;
    assert!(raw.call_tool(&session, "datetime", json!({})).await["error"].is_null());
    let switch = json!({"datetime": {"enabled": false}}).to_string();
    tree(&daemon.home, &[("config/context/tool-access.json", &switch)]);
    let params = json!({"sessionId": session, "name": "datetime", "arguments": {}});
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while std::time::Instant::now() < until {
        let got = raw.call("tool.call", params.clone()).await;
        if got.to_string().contains("tool-access.json") {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the tool is still on");
}
