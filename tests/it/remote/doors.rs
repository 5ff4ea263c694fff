//! A device with only the right to observe, at each endpoint for devices: none grants more than
//! another.

use std::{
    io::{BufRead as _, Write as _},
    process::Stdio,
};

use cairn_pairing::Identity;
use cairn_protocol::{remote::Right, session::Empty};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::{client_async, tungstenite};

use super::{
    attack::{dial, receive_message, send_message},
    machine::{Den, Laptop},
};
use crate::sealed::{command, tree};

/// Returns a call that an observer may make, and calls that each require another right, with that
/// right.
fn calls(root: &str) -> Vec<(&'static str, Value, Option<&'static str>)> {
    let session = "ses_00000000000000000000000000000000";
    let turn = json!({"sessionId": session, "turnId": "t", "input": "hi"});
    let tool = json!({"sessionId": session, "name": "run_shell", "arguments": {"command": "id"}});
    let answer = json!({"approvalId": "apr_00000000000000000000000000000000", "decision": "once"});
    vec![
        ("index.list", json!({}), None),
        ("session.create", json!({"root": root}), Some("prompt")),
        ("orchestrate.explore.start", json!({"root": root}), Some("prompt")),
        ("orchestrate.run.start", turn, Some("prompt")),
        ("tool.call", tool, Some("prompt")),
        ("approval.resolve", answer, Some("approve")),
        ("index.addRoot", json!({"path": "/etc"}), Some("admin")),
        ("config.reload", json!({}), Some("admin")),
        ("daemon.stop", json!({}), Some("admin")),
    ]
}

fn request(id: usize, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn check(door: &str, method: &str, needs: Option<&str>, answer: &Value) {
    let error = &answer["error"];
    match needs {
        None => assert!(answer["result"].is_object(), "{door} {method}: {answer}"),
        Some(right) => {
            assert_eq!(error["data"]["reason"], "right_missing", "{door} {method}: {answer}");
            let text = error["message"].as_str().unwrap();
            assert!(text.contains(&format!("'{right}'")), "{door} {method}: {text}");
        }
    }
}

/// Returns status and body of the answer to one request of a device.
async fn http(den: &Den, own: &Identity, head: &str, body: &str) -> (u16, String) {
    let mut tls = dial(&den.lan, own).await;
    let text = format!(
        "{head} HTTP/1.1\r\nHost: den\r\nConnection: close\r\nCairn-Protocol: 1\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    tls.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A peer that closes without a TLS close notification has still sent its complete answer.
    let _end = tls.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn observer_rights_are_equal_on_every_endpoint() {
    let den = Den::start().await;
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path(), &[("a.rs", "fn ledger() {}\n")]);
    let root = dir.path().canonicalize().unwrap().to_string_lossy().into_owned();
    den.ok(&["index", "add", &root]);
    let laptop = Laptop::new();
    laptop.pair(&den, &[Right::Observe], "den").await;
    let own = Identity::load_or_make(&laptop.root().client_key()).unwrap();

    // Calls over the WebSocket.
    let client = laptop.connect("den").await.unwrap();
    for (method, params, needs) in calls(&root) {
        let answer = match client.call::<_, Value>(method, &params).await {
            Ok(result) => json!({"result": result}),
            Err(cairn_client_sdk::ClientError::Rpc { message, data, .. }) => {
                json!({"error": {"message": message, "data": {"reason": data.reason}}})
            }
            Err(error) => panic!("{method}: {error}"),
        };
        check("ws", method, needs, &answer);
    }
    // Calls over HTTP, one request each.
    for (id, (method, params, needs)) in calls(&root).into_iter().enumerate() {
        let body = request(id, method, &params).to_string();
        let (status, body) = http(&den, &own, "POST /rpc", &body).await;
        assert_eq!(status, 200, "{method}: {body}");
        check("http", method, needs, &serde_json::from_str(&body).unwrap());
    }
    // Calls over standard input and output.
    let mut stdio = command(laptop.home());
    let mut stdio = stdio
        .args(["--host", "den", "stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let hello = json!({"protocolVersions": ["1"], "client": {"name": "t", "version": "0"}});
    let mut lines = vec![request(100, "initialize", &hello).to_string()];
    let all = calls(&root);
    lines.extend(
        all.iter()
            .enumerate()
            .map(|(id, (method, params, _))| request(id, method, params).to_string()),
    );
    stdio.stdin.take().unwrap().write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    let mut answered = 0;
    for line in std::io::BufReader::new(stdio.stdout.take().unwrap()).lines() {
        let answer: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let Some(id) = answer["id"].as_u64().filter(|id| *id < 100) else { continue };
        let (method, _, needs) = &all[usize::try_from(id).unwrap()];
        check("stdio", method, *needs, &answer);
        answered += 1;
    }
    assert_eq!(answered, all.len());
    assert!(stdio.wait().unwrap().success());
    assert!(den.client().await.daemon_status(&Empty {}).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_of_other_protocols_require_the_same_rights() {
    let den = Den::start().await;
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path(), &[("a.rs", "fn ledger() {}\n")]);
    let root = dir.path().canonicalize().unwrap().to_string_lossy().into_owned();
    den.ok(&["index", "add", &root]);
    let pair = async |rights: &[Right]| {
        let laptop = Laptop::new();
        laptop.pair(&den, rights, "den").await;
        Identity::load_or_make(&laptop.root().client_key()).unwrap()
    };
    let looker = pair(&[Right::Observe]).await;
    let approver = pair(&[Right::Approve]).await;
    let worker = pair(&[Right::Observe, Right::Prompt, Right::Approve]).await;

    // The Agent Client Protocol: a new session requires 'prompt', and 'admin' in a folder that is
    // not a root.
    for (own, cwd, needs) in [
        (&looker, root.as_str(), Some("prompt")),
        (&looker, "/etc", Some("admin")),
        (&worker, "/etc", Some("admin")),
        (&worker, &root, None),
    ] {
        let (mut ws, _) =
            client_async(format!("ws://{}/acp", den.lan), dial(&den.lan, own).await).await.unwrap();
        send_message(&mut ws, &request(1, "initialize", &json!({"protocolVersion": 1}))).await;
        while receive_message(&mut ws).await["id"] != 1 {}
        send_message(&mut ws, &request(2, "session/new", &json!({"cwd": cwd, "mcpServers": []})))
            .await;
        let answer = loop {
            let message = receive_message(&mut ws).await;
            assert!(!message.is_null(), "the editor's connection ended");
            if message["id"] == 2 {
                break message;
            }
        };
        check("acp", cwd, needs, &answer);
    }
    // MCP: its clients observe, prompt and approve.
    for (own, want) in [(&looker, Some(403)), (&approver, Some(403)), (&worker, None)] {
        let upgraded =
            client_async(format!("ws://{}/mcp/ws", den.lan), dial(&den.lan, own).await).await;
        let status = match upgraded {
            Ok(_) => None,
            Err(tungstenite::Error::Http(answer)) => Some(answer.status().as_u16()),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(status, want);
    }
    // Plain HTTP: metrics and the records of a session require the right to observe.
    let session = "/sessions/ses_00000000000000000000000000000000/events";
    assert_eq!(http(&den, &looker, "GET /metrics", "").await.0, 200);
    assert_eq!(http(&den, &approver, "GET /metrics", "").await.0, 403);
    assert_eq!(http(&den, &looker, &format!("GET {session}"), "").await.0, 404);
    let (status, body) = http(&den, &approver, &format!("GET {session}"), "").await;
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        (status, &answer["error"]["data"]["reason"]),
        (400, &json!("right_missing")),
        "{body}"
    );
    // MCP over HTTP is for this machine alone, and so is the link of the viewer here.
    for (request, status) in [("GET /mcp", 404), ("POST /viewer/session", 404)] {
        assert_eq!(http(&den, &worker, request, "").await.0, status, "{request}");
    }
}
