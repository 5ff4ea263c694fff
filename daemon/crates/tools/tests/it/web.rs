//! The web tools, against a server of the test's own.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
};

use cairn_harness::{Grants, Rules};
use cairn_protocol::error::Reason;
use cairn_tools::{Deps, SearchBackend, WebOptions};
use serde_json::json;

use crate::fixture::Fixture;

fn network() -> Grants {
    Grants { network: true, ..Grants::default() }
}

async fn fixture(near: bool, rules: Rules) -> Fixture {
    let web = WebOptions { near, ..WebOptions::default() };
    Fixture::with_deps(&[], rules, |deps| Deps { web, ..deps }).await
}

/// Starts a server that answers each connection with the next of these, and returns its address.
fn server(answers: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for (stream, answer) in listener.incoming().zip(answers) {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            assert!(lines.map_while(Result::ok).any(|line| line.is_empty()));
            // A client that has read enough disconnects.
            let _result = stream.write_all(answer.as_bytes());
        }
    });
    address
}

fn answer(status: &str, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn web_fetch_returns_page_as_text() {
    let fixture = fixture(true, Rules::default()).await;
    let page =
        "<html><body><h1>Title</h1><script>no()</script><p>Some <b>text</b></p></body></html>";
    let url = server(vec![answer("200 OK", "text/html; charset=utf-8", page)]);
    let value = fixture.with("web_fetch", json!({"url": url}), network()).await.unwrap();
    let text = value["content"].as_str().unwrap();
    assert!(text.contains("Title") && text.contains("text") && !text.contains("no()"), "{text}");
    let url = server(vec![answer("200 OK", "text/plain", "ääää")]);
    let value = fixture
        .with("web", json!({"action": "fetch", "url": url, "max_chars": 3}), network())
        .await
        .unwrap();
    assert_eq!(
        (value["content"].as_str(), value["truncated"].as_bool()),
        (Some("äää"), Some(true))
    );
    for (given, want) in [
        (answer("200 OK", "image/png", "x"), "is image/png, not text"),
        (answer("404 Not Found", "text/html", "x"), "answered 404"),
        (
            answer("302 Found\r\nLocation: http://127.0.0.1/", "text/html", ""),
            "redirects, which is not followed",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nx".to_owned(),
            "was interrupted",
        ),
    ] {
        let error = fixture
            .with("web_fetch", json!({"url": server(vec![given])}), network())
            .await
            .unwrap_err();
        assert!(
            error.reason == Reason::ToolFailed && error.message.contains(want),
            "{want}: {error}"
        );
    }
    let large = answer("200 OK", "text/plain", &"x".repeat(5 * 1024 * 1024));
    let value =
        fixture.with("web_fetch", json!({"url": server(vec![large])}), network()).await.unwrap();
    assert_eq!(
        (value["truncated"].as_bool(), value["content"].as_str().unwrap().len()),
        (Some(true), 20_000)
    );
}

#[tokio::test]
async fn web_fetch_requires_network_grant_and_public_address() {
    let url = server(vec![answer("200 OK", "text/plain", "secret")]);
    let local = fixture(true, Rules::default()).await;
    let error = local.call("web_fetch", json!({"url": url})).await.unwrap_err();
    assert_eq!(error.reason, Reason::NetworkDenied, "{error}");
    let error = local.call("web", json!({"action": "fetch", "url": url})).await.unwrap_err();
    assert_eq!(error.reason, Reason::NetworkDenied, "{error}");
    let strict = fixture(false, Rules::default()).await;
    let port = url.rsplit(':').next().unwrap();
    let closed = "is no domain name";
    for (url, why) in [
        (url.clone(), closed),
        (format!("http://localhost:{port}"), "of localhost is refused"),
        (format!("http://[::1]:{port}"), closed),
        (format!("http://0x7f.1:{port}"), closed),
        (format!("http://2130706433:{port}"), closed),
        (format!("http://[::ffff:127.0.0.1]:{port}"), closed),
        ("http://169.254.169.254/latest".into(), closed),
    ] {
        let error = strict.with("web_fetch", json!({"url": url}), network()).await.unwrap_err();
        assert!(
            error.reason == Reason::NetworkDenied && error.message.contains(why),
            "{url}: {error}"
        );
    }
    let error = strict
        .with("web_fetch", json!({"url": "file:///etc/passwd"}), network())
        .await
        .unwrap_err();
    assert_eq!(error.reason, Reason::InvalidParams);
    // A rule for the split tool applies to the other name.
    let denied = Rules { deny: vec!["web_fetch".parse().unwrap()], ..Rules::default() };
    let refusing = fixture(true, denied).await;
    let error =
        refusing.with("web", json!({"action": "fetch", "url": url}), network()).await.unwrap_err();
    assert!(error.message.contains("deny: web_fetch"), "{error}");
    // Control: the server was reachable.
    assert_eq!(
        local.with("web_fetch", json!({"url": url}), network()).await.unwrap()["content"],
        "secret"
    );
}

#[tokio::test]
async fn web_search_uses_configured_engine() {
    let body = r#"{"results": [{"title": "T", "url": "u", "content": "c"}]}"#;
    let endpoint = Some(server(vec![answer("200 OK", "application/json", body)]));
    let web = WebOptions { backend: SearchBackend::Searxng, endpoint, ..WebOptions::default() };
    let fixture = Fixture::with_deps(&[], Rules::default(), |deps| Deps { web, ..deps }).await;
    let value = fixture.with("web_search", json!({"query": "x"}), network()).await.unwrap();
    assert_eq!(value["results"], json!([{"title": "T", "url": "u", "snippet": "c"}]));
    let error = fixture.with("web_search", json!({"query": " "}), network()).await.unwrap_err();
    assert_eq!(error.reason, Reason::InvalidParams);
}

#[tokio::test]
async fn web_search_names_memory_where_there_is_one() {
    for has_memory in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let memory = has_memory.then(|| cairn_memory::Memory::single(dir.path()));
        let fixture =
            Fixture::with_deps(&[], Rules::default(), |deps| Deps { memory, ..deps }).await;
        let specs = fixture.harness.registry().specs();
        for (name, expected) in
            [("web_search", has_memory), ("web", has_memory), ("web_fetch", false)]
        {
            let spec = specs.iter().find(|spec| spec.name == name).unwrap();
            assert_eq!(spec.description.contains("Search memory first"), expected, "{name}");
        }
    }
}
