//! The web tools, against a server of the test's own.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
};

use cairn_harness::{Grants, Rules};
use cairn_protocol::error::Reason;
use cairn_tools::{Deps, SearchBackend, WebOptions};
use serde_json::json;

use crate::place::Place;

fn network() -> Grants {
    Grants { network: true, ..Grants::default() }
}

async fn place(near: bool, rules: Rules) -> Place {
    let web = WebOptions { near, ..WebOptions::default() };
    Place::with_deps(&[], rules, |deps| Deps { web, ..deps }).await
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
            let _gone = stream.write_all(answer.as_bytes());
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
async fn a_page_is_read_as_text() {
    let place = place(true, Rules::default()).await;
    let page = "<html><body><h1>Title</h1><script>no()</script><p>Some <b>text</b></p></body></html>";
    let url = server(vec![answer("200 OK", "text/html; charset=utf-8", page)]);
    let told = place.with("web_fetch", json!({"url": url}), network()).await.unwrap();
    let text = told["content"].as_str().unwrap();
    assert!(text.contains("Title") && text.contains("text") && !text.contains("no()"), "{text}");
    let url = server(vec![answer("200 OK", "text/plain", "ääää")]);
    let told =
        place.with("web", json!({"action": "fetch", "url": url, "max_chars": 3}), network()).await.unwrap();
    assert_eq!((told["content"].as_str(), told["truncated"].as_bool()), (Some("äää"), Some(true)));
    for (given, want) in [
        (answer("200 OK", "image/png", "x"), "is image/png, not text"),
        (answer("404 Not Found", "text/html", "x"), "answered 404"),
        (
            answer("302 Found\r\nLocation: http://127.0.0.1/", "text/html", ""),
            "leads elsewhere, which is not followed",
        ),
        ("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nx".to_owned(), "broke off"),
    ] {
        let error =
            place.with("web_fetch", json!({"url": server(vec![given])}), network()).await.unwrap_err();
        assert!(error.reason == Reason::ToolFailed && error.message.contains(want), "{want}: {error}");
    }
    let large = answer("200 OK", "text/plain", &"x".repeat(5 * 1024 * 1024));
    let told = place.with("web_fetch", json!({"url": server(vec![large])}), network()).await.unwrap();
    assert_eq!((told["truncated"].as_bool(), told["content"].as_str().unwrap().len()), (Some(true), 20_000));
}

#[tokio::test]
async fn the_network_is_granted_and_public() {
    let url = server(vec![answer("200 OK", "text/plain", "secret")]);
    let place_near = place(true, Rules::default()).await;
    let error = place_near.call("web_fetch", json!({"url": url})).await.unwrap_err();
    assert_eq!(error.reason, Reason::NetworkDenied, "{error}");
    let error = place_near.call("web", json!({"action": "fetch", "url": url})).await.unwrap_err();
    assert_eq!(error.reason, Reason::NetworkDenied, "{error}");
    let strict = place(false, Rules::default()).await;
    let port = url.rsplit(':').next().unwrap();
    for url in [
        url.clone(),
        format!("http://localhost:{port}"),
        format!("http://[::1]:{port}"),
        format!("http://0x7f.1:{port}"),
        format!("http://2130706433:{port}"),
        format!("http://[::ffff:127.0.0.1]:{port}"),
        "http://169.254.169.254/latest".into(),
    ] {
        let error = strict.with("web_fetch", json!({"url": url}), network()).await.unwrap_err();
        assert!(
            error.reason == Reason::NetworkDenied && error.message.contains("no public"),
            "{url}: {error}"
        );
    }
    let error = strict.with("web_fetch", json!({"url": "file:///etc/passwd"}), network()).await.unwrap_err();
    assert_eq!(error.reason, Reason::InvalidParams);
    // A rule for the split tool applies to the other name.
    let denied = Rules { deny: vec!["web_fetch".parse().unwrap()], ..Rules::default() };
    let refusing = place(true, denied).await;
    let error = refusing.with("web", json!({"action": "fetch", "url": url}), network()).await.unwrap_err();
    assert!(error.message.contains("deny: web_fetch"), "{error}");
    // Control: the server was reachable.
    assert_eq!(
        place_near.with("web_fetch", json!({"url": url}), network()).await.unwrap()["content"],
        "secret"
    );
}

#[tokio::test]
async fn the_configured_engine_is_asked() {
    let body = r#"{"results": [{"title": "T", "url": "u", "content": "c"}]}"#;
    let endpoint = Some(server(vec![answer("200 OK", "application/json", body)]));
    let web = WebOptions { backend: SearchBackend::Searxng, endpoint, ..WebOptions::default() };
    let place = Place::with_deps(&[], Rules::default(), |deps| Deps { web, ..deps }).await;
    let told = place.with("web_search", json!({"query": "x"}), network()).await.unwrap();
    assert_eq!(told["results"], json!([{"title": "T", "url": "u", "snippet": "c"}]));
    let error = place.with("web_search", json!({"query": " "}), network()).await.unwrap_err();
    assert_eq!(error.reason, Reason::InvalidParams);
}
