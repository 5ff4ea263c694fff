//! The wire: authentication, refusals, batches, limits and receipts.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::{
    contents::index,
    sealed::{Daemon, Raw, hello, tree},
};

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

async fn status(daemon: &Daemon, headers: &[(&'static str, &str)]) -> u16 {
    match Raw::connect(&daemon.address(), headers).await {
        Ok(_) => 101,
        Err(Error::Http(response)) => response.status().as_u16(),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn connection_requires_token_host_and_origin() {
    let daemon = Daemon::start();
    let good = bearer(&daemon.token());
    for (headers, want) in [
        (vec![], 401),
        (vec![("authorization", "Bearer wrong")], 401),
        (vec![("authorization", good.as_str()), ("origin", "https://evil.example")], 403),
        (vec![("authorization", good.as_str()), ("host", "evil.example")], 403),
        (vec![("authorization", good.as_str())], 101),
    ] {
        assert_eq!(status(&daemon, &headers).await, want, "{headers:?}");
    }
}

#[tokio::test]
async fn health_needs_no_token_and_metrics_do() {
    let daemon = Daemon::start();
    let get = |path: &'static str, token: Option<String>| {
        let address = daemon.address();
        async move {
            use tokio::io::{AsyncReadExt, AsyncWriteExt};
            let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
            let token = token.map(|t| format!("Authorization: Bearer {t}\r\n")).unwrap_or_default();
            let request = format!(
                "GET {path} HTTP/1.1\r\nHost: {address}\r\n{token}Connection: close\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            text
        }
    };
    assert!(get("/healthz", None).await.contains("200 OK"));
    assert!(get("/readyz", None).await.contains("200 OK"));
    assert!(get("/metrics", None).await.contains("401"));
    assert!(get("/metrics", Some(daemon.token())).await.contains("cairn_connections 0"));
}

#[tokio::test]
async fn handshake_is_first_alone_and_once() {
    let daemon = Daemon::start();
    let good = bearer(&daemon.token());
    let mut raw = Raw::connect(&daemon.address(), &[("authorization", &good)]).await.unwrap();
    assert_eq!(raw.refused("daemon.status", json!({})).await, "not_initialized");
    let answer = raw
        .call(
            "initialize",
            json!({"protocolVersions": ["99"], "client": {"name": "x", "version": "1"}}),
        )
        .await;
    assert_eq!(answer["error"]["data"]["reason"], "incompatible_version");
    assert_eq!(answer["error"]["data"]["details"], json!({"client": ["99"], "server": ["1"]}));
    raw.send_json(
        &json!([{"jsonrpc": "2.0", "id": "b", "method": "initialize", "params": hello()}]),
    )
    .await;
    assert_eq!(raw.json().await[0]["error"]["data"]["reason"], "invalid_request");
    let result = raw.ok("initialize", hello()).await;
    assert_eq!(result["protocolVersion"], "1");
    assert!(result["limits"]["maxMessageBytes"].as_u64().unwrap() > 0);
    assert_eq!(raw.refused("initialize", hello()).await, "already_initialized");
}

#[tokio::test]
async fn invalid_messages_get_their_documented_error() {
    let daemon = Daemon::start();
    let mut raw = daemon.client().await;
    raw.send(Message::text("{\"jsonrpc\"")).await;
    assert_eq!(raw.json().await["error"]["code"], -32700);
    for (message, code) in [
        (json!({"id": 1, "method": "daemon.status"}), -32600),
        (json!({"jsonrpc": "2.0", "id": 1}), -32600),
        (json!([]), -32600),
        (json!("text"), -32600),
        (json!({"jsonrpc": "2.0", "id": 1, "method": "no.such"}), -32601),
        (json!({"jsonrpc": "2.0", "id": 1, "method": "search.lexical", "params": ["q"]}), -32602),
    ] {
        raw.send_json(&message).await;
        assert_eq!(raw.json().await["error"]["code"], code, "{message}");
    }
    let answer = raw.call("search.lexical", json!({"query": "x", "k": "many"})).await;
    assert_eq!(answer["error"]["data"]["details"]["path"], "k", "{answer}");
    let answer = raw.call("search.lexical", json!({"query": "x", "kk": 3})).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("kk"), "{answer}");
    // After all of these the connection continues to work.
    raw.ok("daemon.status", json!({})).await;
}

#[tokio::test]
async fn oversized_and_binary_frames_close_the_connection() {
    let daemon = Daemon::start();
    let mut raw = daemon.client().await;
    raw.send(Message::binary(vec![1, 2, 3])).await;
    assert_eq!(raw.closed().await, Some(1003));
    let mut raw = daemon.client().await;
    raw.send_in_vain(Message::text("x".repeat(5 * 1024 * 1024))).await;
    assert_eq!(raw.closed().await, Some(1009));
}

#[tokio::test]
async fn client_that_writes_before_reading_gets_the_close_frame() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let daemon = Daemon::start();
    let mut stream = tokio::net::TcpStream::connect(daemon.address()).await.unwrap();
    let upgrade = format!(
        "GET /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        bearer(&daemon.token())
    );
    stream.write_all(upgrade.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    // One text frame of 32 MiB, masked with zeros.
    let size: u64 = 32 * 1024 * 1024;
    let mut frame = vec![0x81, 0xff];
    frame.extend(size.to_be_bytes());
    frame.extend([0; 4]);
    stream.write_all(&frame).await.unwrap();
    for _ in 0..512 {
        stream.write_all(&[b'x'; 64 * 1024]).await.unwrap();
    }
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!((rest[0], u16::from_be_bytes([rest[2], rest[3]])), (0x88, 1009), "{rest:?}");
}

#[tokio::test]
async fn batches_are_answered_together_in_order() {
    let daemon = Daemon::start();
    let mut raw = daemon.client().await;
    let one =
        |id: u32, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}});
    raw.send_json(&json!([one(1, "daemon.status"), one(2, "no.such"), {"jsonrpc": "2.0", "method": "x"}, one(3, "tool.list")])).await;
    let answers = raw.json().await;
    let ids: Vec<Value> = answers.as_array().unwrap().iter().map(|a| a["id"].clone()).collect();
    assert_eq!(ids, [json!(1), json!(2), json!(3)]);
    assert_eq!(answers[1]["error"]["code"], -32601);
    let many: Vec<Value> = (0..65).map(|id| one(id, "tool.list")).collect();
    raw.send_json(&json!(many)).await;
    assert_eq!(raw.json().await["error"]["data"]["reason"], "too_large");
}

#[tokio::test]
async fn retry_returns_the_first_receipt_and_changed_content_is_refused() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path(), &[("a.py", "def alpha():\n    return 1\n"), ("b/b.py", "x = 1\n")]);
    let mut raw = daemon.client().await;
    let params = json!({"root": dir.path(), "requestId": "r1"});
    let first = raw.ok("orchestrate.explore.start", params.clone()).await;
    assert_eq!(raw.ok("orchestrate.explore.start", params).await, first);
    let other = json!({"root": dir.path().join("b"), "requestId": "r1"});
    assert_eq!(raw.refused("orchestrate.explore.start", other).await, "request_conflict");
    let session = json!({"title": "t", "requestId": "s1"});
    let created = raw.ok("session.create", session.clone()).await;
    assert_eq!(raw.ok("session.create", session).await["sessionId"], created["sessionId"]);
}

#[tokio::test]
async fn line_search_is_streamed_in_parts() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    tree(
        dir.path(),
        &[("a.txt", &"ledger\n".repeat(40)), ("b/b.txt", &"the ledger\n".repeat(400))],
    );
    let mut raw = daemon.client().await;
    index(&mut raw, dir.path()).await;
    let plain = raw.ok("search.grep", json!({"pattern": "ledger", "k": 300})).await;
    raw.backlog.clear();
    let answer =
        raw.ok("search.grep", json!({"pattern": "ledger", "k": 300, "requestId": "g"})).await;
    for field in ["items", "truncated", "nextCursor", "complete"] {
        assert_eq!(answer[field], plain[field], "{field}");
    }
    let parts: Vec<&Value> =
        raw.backlog.iter().filter(|m| m["method"] == "search.partial").collect();
    assert!(parts.len() > 1, "{}", parts.len());
    let done: Vec<bool> = parts.iter().map(|p| p["params"]["done"] == true).collect();
    assert_eq!(done.iter().filter(|d| **d).count(), 1);
    assert!(done[done.len() - 1]);
    let mut lines = Vec::new();
    for part in &parts {
        assert_eq!(
            (&part["params"]["requestId"], &part["params"]["corpus"]),
            (&json!("g"), &json!("grep"))
        );
        lines.extend(part["params"]["items"].as_array().unwrap().iter().cloned());
    }
    assert_eq!(Value::from(lines), answer["items"]);
    // Without a name no partial results are sent.
    raw.backlog.clear();
    raw.ok("search.grep", json!({"pattern": "ledger"})).await;
    assert!(raw.backlog.iter().all(|m| m["method"] != "search.partial"));
}

#[tokio::test]
async fn late_reader_receives_all_lines() {
    // The api crate tests the case of a full connection queue.
    const LINES: u64 = 150_000;
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    let row = format!("ledger {}\n", "-".repeat(60));
    let (first, second) = (row.repeat(1000), row.repeat(LINES as usize - 1000));
    tree(dir.path(), &[("a.txt", &first), ("b.txt", &second), ("c.txt", "ledger\n")]);
    let (mut raw, mut other) = (daemon.client().await, daemon.client().await);
    index(&mut raw, dir.path()).await;
    raw.backlog.clear();
    let params = json!({"requestId": "g", "pattern": "ledger", "k": LINES});
    raw.send_json(
        &json!({"jsonrpc": "2.0", "id": "all", "method": "search.grepStream", "params": params}),
    )
    .await;
    // The search is running, and other calls are answered meanwhile.
    let first = raw.json().await;
    for _ in 0..20 {
        other.ok("search.lexical", json!({"query": "ledger", "k": 1})).await;
    }
    let end = raw.answer(&json!("all")).await;
    assert_eq!(
        (&end["result"]["total"], &end["result"]["truncated"]),
        (&json!(LINES), &json!(true)),
        "{end}"
    );
    let parts =
        std::iter::once(&first).chain(&raw.backlog).filter(|m| m["method"] == "search.partial");
    let mut seen = 0;
    for file in parts.flat_map(|part| part["params"]["files"].as_array().unwrap()) {
        for line in file["lines"].as_array().unwrap() {
            seen += 1;
            let expected = if seen <= 1000 { ("a.txt", seen) } else { ("b.txt", seen - 1000) };
            assert_eq!((&file["path"], line), (&json!(expected.0), &json!(expected.1)));
        }
        let texts: Vec<&str> = file["text"].as_str().unwrap().split('\n').collect();
        assert_eq!(texts.len(), file["lines"].as_array().unwrap().len());
        assert!(texts.iter().all(|text| *text == "ledger" || format!("{text}\n") == row));
    }
    assert_eq!(seen, LINES);
    let bad = json!({"requestId": "g", "pattern": "(", "isRegex": true});
    assert_eq!(raw.refused("search.grepStream", bad).await, "bad_pattern");
}

#[tokio::test]
async fn invalid_subscriptions_are_refused_with_reasons() {
    let daemon = Daemon::start();
    let mut raw = daemon.client().await;
    let id = raw.ok("session.create", json!({})).await["sessionId"].clone();
    let missing = format!("ses_{}", "0".repeat(32));
    for (params, want) in [
        (json!({"sessionId": missing}), "session_not_found"),
        (json!({"sessionId": "nonsense"}), "invalid_params"),
        (json!({"sessionId": id, "after": 7}), "after_beyond_head"),
        (json!({"sessionId": id, "after": "yesterday"}), "invalid_params"),
    ] {
        assert_eq!(raw.refused("orchestrate.subscribe", params.clone()).await, want, "{params}");
    }
    let given = raw.ok("orchestrate.subscribe", json!({"sessionId": id, "after": "live"})).await;
    assert_eq!(raw.notification("orchestrate.synced").await["seq"], 0);
    raw.ok("session.delete", json!({"sessionId": id})).await;
    assert_eq!(
        raw.notification("orchestrate.gone").await["subscriptionId"],
        given["subscriptionId"]
    );
    let subscription = json!({"subscriptionId": given["subscriptionId"]});
    assert_eq!(
        raw.refused("orchestrate.unsubscribe", subscription).await,
        "subscription_not_found"
    );
}
