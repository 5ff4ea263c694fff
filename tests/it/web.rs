//! Use and misuse of HTTP by an external client.

use serde_json::{Value, json};

use crate::{
    http::send,
    sealed::{Daemon, hello, tree},
};

fn call(method: &str, params: &Value) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string().into_bytes()
}

const ONCE: (&str, &str) = ("Cairn-Protocol", "1");
const EVENTS: (&str, &str) = ("Accept", "text/event-stream");

/// Opens a connection that later requests refer to.
async fn begin(daemon: &Daemon) -> String {
    let answer = send(daemon, "POST /rpc", &[], &call("initialize", &hello())).await;
    assert_eq!(answer.status, 200);
    answer.headers["cairn-connection"].clone()
}

#[tokio::test]
async fn unauthenticated_requests_are_refused() {
    let daemon = Daemon::start();
    let token = format!("Bearer {}", daemon.token());
    let status = call("daemon.status", &json!({}));
    for line in [
        "POST /rpc",
        "DELETE /rpc",
        "GET /events",
        "GET /sessions/ses_1/events",
        "GET /acp",
        "GET /rpc",
    ] {
        let mut upgrade = vec![ONCE];
        if line == "GET /acp" || line == "GET /rpc" {
            upgrade.extend([
                ("Connection", "Upgrade"),
                ("Upgrade", "websocket"),
                ("Sec-WebSocket-Version", "13"),
                ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
            ]);
        }
        for (wrong, want) in [
            (vec![("Authorization", "Bearer wrong")], 401),
            (vec![("Authorization", "")], 401),
            (vec![("Authorization", &*token), ("Origin", "https://evil.example")], 403),
        ] {
            let answer = send(&daemon, line, &[&wrong[..], &upgrade].concat(), &status).await;
            assert_eq!(answer.status, want, "{line} {wrong:?}");
        }
        // The same request from an allowed origin passes this check.
        let answer = send(&daemon, line, &upgrade, &status).await;
        assert!(![401, 403].contains(&answer.status), "{line} {}", answer.status);
    }
}

#[tokio::test]
async fn call_succeeds_in_one_request() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path(), &[("a.txt", "ledger\n")]);
    let mut answer = send(&daemon, "POST /rpc", &[ONCE], &call("index.list", &json!({}))).await;
    assert_eq!((answer.status, &answer.json().await["result"]), (200, &json!({"data": []})));
    // Without a version there is no handshake; with a wrong one it fails.
    let mut answer = send(&daemon, "POST /rpc", &[], &call("index.list", &json!({}))).await;
    assert_eq!(answer.json().await["error"]["data"]["reason"], "not_initialized");
    let mut answer =
        send(&daemon, "POST /rpc", &[("Cairn-Protocol", "9")], &call("index.list", &json!({})))
            .await;
    assert_eq!(
        (answer.status, &answer.json().await["error"]["data"]["reason"]),
        (400, &json!("incompatible_version"))
    );
    let note = br#"{"jsonrpc":"2.0","method":"x"}"#;
    assert_eq!(send(&daemon, "POST /rpc", &[ONCE], note).await.status, 202);
    // As a stream, progress is reported until the work ends, and then the stream ends.
    let add = call("index.addRoot", &json!({"path": dir.path()}));
    let mut answer = send(&daemon, "POST /rpc", &[ONCE, EVENTS], &add).await;
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    assert!(answer.event().await.unwrap().1["result"]["path"].is_string());
    let mut last = Value::Null;
    while let Some((_, message)) = answer.event().await {
        assert_eq!(message["method"], "index.progress");
        last = message["params"]["done"].clone();
    }
    assert_eq!(last, true);
    let grep = call("search.grep", &json!({"pattern": "ledger", "requestId": "g"}));
    let mut answer = send(&daemon, "POST /rpc", &[ONCE, EVENTS], &grep).await;
    assert_eq!(answer.event().await.unwrap().1["method"], "search.partial");
    assert_eq!(answer.event().await.unwrap().1["result"]["items"][0]["path"], "a.txt");
    assert!(answer.event().await.is_none());
    // Lines that no answer repeats require a reader.
    let grep = call("search.grepStream", &json!({"pattern": "ledger", "requestId": "g"}));
    let mut answer = send(&daemon, "POST /rpc", &[ONCE, EVENTS], &grep).await;
    assert_eq!(answer.event().await.unwrap().1["params"]["files"][0]["path"], "a.txt");
    assert_eq!(answer.event().await.unwrap().1["result"]["total"], 1);
    let mut answer = send(&daemon, "POST /rpc", &[ONCE], &grep).await;
    let error = answer.json().await["error"]["message"].to_string();
    assert!(error.contains("search.partial"), "{error}");
}

#[tokio::test]
async fn connection_has_an_id_and_is_closed() {
    let daemon = Daemon::start();
    let id = begin(&daemon).await;
    let named = [("Cairn-Connection", id.as_str())];
    let status = call("daemon.status", &json!({}));
    let mut answer = send(&daemon, "POST /rpc", &named, &status).await;
    assert!(answer.json().await["result"].is_object());
    for wrong in ["", "0", &"0".repeat(32)] {
        let mut answer = send(&daemon, "POST /rpc", &[("Cairn-Connection", wrong)], &status).await;
        assert_eq!(
            (answer.status, &answer.json().await["error"]["data"]["reason"]),
            (404, &json!("not_initialized"))
        );
        assert_eq!(
            send(&daemon, "GET /events", &[("Cairn-Connection", wrong)], b"").await.status,
            404
        );
    }
    let mut events = send(&daemon, "GET /events", &named, b"").await;
    assert_eq!(events.status, 200);
    // A second reader replaces the first.
    let second = send(&daemon, "GET /events", &named, b"").await;
    assert_eq!((second.status, events.event().await.is_none()), (200, true));
    let (mut events, end) = (second, send(&daemon, "DELETE /rpc", &named, b"").await);
    assert_eq!((end.status, events.event().await.is_none()), (204, true));
    assert_eq!(send(&daemon, "POST /rpc", &named, &status).await.status, 404);
    assert_eq!(send(&daemon, "DELETE /rpc", &named, b"").await.status, 404);
}

#[tokio::test]
async fn stream_resumes_after_the_last_event() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path(), &[("a.py", "def alpha():\n    return 1\n")]);
    let mut raw = daemon.client().await;
    let records = raw.explore(dir.path(), &[]).await;
    let session = records[0]["sessionId"].as_str().unwrap();
    let head = records.len() as u64;
    // Without a connection.
    for (line, headers, first) in [
        (format!("GET /sessions/{session}/events"), vec![], 1),
        (format!("GET /sessions/{session}/events?after=2"), vec![], 3),
        (format!("GET /sessions/{session}/events?after=0"), vec![("Last-Event-ID", "3")], 4),
    ] {
        let mut events = send(&daemon, &line, &headers, b"").await;
        for seq in first..=head {
            let (id, record) = events.event().await.unwrap();
            assert_eq!((id.unwrap(), &record["seq"]), (seq.to_string(), &json!(seq)), "{line}");
            assert_eq!(record["evt"], records[seq as usize - 1]["evt"]);
        }
        assert_eq!(events.event().await.unwrap().1["seq"], head, "synced");
    }
    for (line, status) in [
        (format!("GET /sessions/ses_{}/events", "0".repeat(32)), 404),
        ("GET /sessions/nonsense/events".into(), 400),
        (format!("GET /sessions/{session}/events?after=99"), 400),
        (format!("GET /sessions/{session}/events?after=x"), 400),
    ] {
        assert_eq!(send(&daemon, &line, &[], b"").await.status, status, "{line}");
    }
    // Among other streams, on a connection.
    let id = begin(&daemon).await;
    let named = ("Cairn-Connection", id.as_str());
    let mut events = send(&daemon, "GET /events", &[named], b"").await;
    let follow = call("orchestrate.subscribe", &json!({"sessionId": session}));
    let mut given = send(&daemon, "POST /rpc", &[named], &follow).await;
    let first = given.json().await["result"]["subscriptionId"].clone();
    let cut = loop {
        let (id, message) = events.event().await.unwrap();
        assert_eq!(message["params"]["subscriptionId"], first);
        if message["params"]["seq"] == 2 {
            break id.unwrap();
        }
    };
    assert_eq!(cut, format!("{session}:2"));
    drop(events);
    let mut events = send(&daemon, "GET /events", &[named, ("Last-Event-ID", &cut)], b"").await;
    for seq in 3..=head {
        let (id, message) = events.event().await.unwrap();
        assert_eq!(
            (id.unwrap(), &message["params"]["seq"]),
            (format!("{session}:{seq}"), &json!(seq))
        );
        assert_ne!(message["params"]["subscriptionId"], first);
    }
}

#[tokio::test]
async fn oversized_body_is_refused_before_it_is_read() {
    let daemon = Daemon::start();
    let body = vec![b' '; 64 * 1024 * 1024];
    let mut answer = send(&daemon, "POST /rpc", &[ONCE], &body).await;
    assert_eq!(
        (answer.status, &answer.json().await["error"]["data"]["reason"]),
        (413, &json!("too_large"))
    );
    let mut answer = send(&daemon, "POST /rpc", &[ONCE], b"\xff").await;
    assert_eq!(
        (answer.status, &answer.json().await["error"]["data"]["reason"]),
        (400, &json!("parse_error"))
    );
    let mut answer = send(&daemon, "POST /rpc", &[ONCE], &call("daemon.status", &json!({}))).await;
    assert!(answer.json().await["result"].is_object());
}

#[tokio::test]
async fn slow_reader_is_notified_of_lag_and_loses_no_record() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    let line = "all work and no play makes a dull log, ".repeat(3);
    std::fs::write(dir.path().join("long.txt"), format!("{line}\n").repeat(500)).unwrap();
    let mut raw = daemon.client().await;
    let session = raw.open_session(dir.path()).await;
    let line = format!("GET /sessions/{}/events", session.as_str().unwrap());
    let mut slow = send(&daemon, &line, &[], b"").await;
    let span = json!({"path": "long.txt", "root": dir.path(), "start": 1, "end": 500});
    for _ in 0..400 {
        raw.call_tool(&session, "content_get_span", span.clone()).await;
    }
    let head =
        raw.ok("session.get", json!({"sessionId": session})).await["headSeq"].as_u64().unwrap();
    let (mut seen, mut lagged) = (0, 0);
    while seen < head {
        let (id, record) = slow.event().await.unwrap();
        match id {
            Some(id) => {
                seen += 1;
                assert_eq!((id, &record["seq"]), (seen.to_string(), &json!(seen)));
            }
            None if record.get("fromSeq").is_some() => lagged += 1,
            None => assert!(record.get("seq").is_some(), "{record}"),
        }
    }
    assert!(lagged > 0, "{head} records fit into what lies between");
    raw.ok("daemon.status", json!({})).await;
}
