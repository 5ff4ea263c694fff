//! Access to the viewer: links that work once, and a secret that is valid for the viewer alone.

use serde_json::json;
use tokio_tungstenite::tungstenite;

use crate::{
    http::send,
    sealed::{Daemon, Raw, hello},
};

const OWN: (&str, &str) = ("Origin", "http://localhost");
const NO_TOKEN: (&str, &str) = ("Authorization", "");

#[tokio::test]
async fn viewer_page_has_strict_headers_and_contains_no_data() {
    let daemon = Daemon::start();
    let mut page = send(&daemon, "GET /viewer", &[NO_TOKEN], b"").await;
    assert_eq!(page.status, 200);
    let policy = page.headers["content-security-policy"].clone();
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "frame-ancestors 'none'",
        "trusted-types 'none'",
    ] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
    let text = page.text().await;
    assert!(!text.contains(" style=") && !text.contains("<style"), "{text}");
    let handler =
        |rest: &str| rest.split([' ', '<', '>']).next().is_some_and(|word| word.contains('='));
    assert!(!text.split(" on").skip(1).any(handler), "{text}");
    let assets: Vec<&str> = text.split('"').filter(|part| part.starts_with("/viewer/")).collect();
    assert!(assets.len() >= 2 && text.matches("<script").count() == 1, "{text}");
    // Every file of the folder is served, whatever imports it.
    let files = files_of_the_page();
    assert!(files.len() > 30 && files.contains(&"/viewer/session.js".to_owned()), "{files:?}");
    for asset in assets.into_iter().chain(files.iter().map(String::as_str)) {
        let mut answer = send(&daemon, &format!("GET {asset}"), &[NO_TOKEN], b"").await;
        assert_eq!(answer.status, 200, "{asset}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{asset}");
        if !asset.ends_with(".js") || asset.contains("/vendor/") {
            continue;
        }
        let code = answer.text().await;
        assert!(!code.contains("innerHTML") && !code.contains("insertAdjacentHTML"), "{asset}");
    }
}

/// Lists the addresses of the files in the folder of the page.
fn files_of_the_page() -> Vec<String> {
    let base = crate::sdks::project().join("daemon/crates/transport/src/http/viewer");
    let mut folders = vec![base.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let name = path.strip_prefix(&base).unwrap().to_str().unwrap().to_owned();
            match path.is_dir() {
                true => folders.push(path),
                false if name.contains("LICENSE") || name == "index.html" => {}
                false => found.push(format!("/viewer/{name}")),
            }
        }
    }
    found
}

#[tokio::test]
async fn unchanged_file_of_the_page_is_not_sent_again() {
    let daemon = Daemon::start();
    let first = send(&daemon, "GET /viewer/app.js", &[NO_TOKEN], b"").await;
    let tag = first.headers["etag"].clone();
    let mut again =
        send(&daemon, "GET /viewer/app.js", &[NO_TOKEN, ("If-None-Match", &tag)], b"").await;
    assert_eq!((again.status, again.text().await.as_str()), (304, ""));
    let other =
        send(&daemon, "GET /viewer/app.js", &[NO_TOKEN, ("If-None-Match", "\"0\"")], b"").await;
    assert_eq!(other.status, 200);
}

#[tokio::test]
async fn root_address_redirects_to_the_viewer() {
    let daemon = Daemon::start();
    let answer = send(&daemon, "GET /", &[NO_TOKEN], b"").await;
    assert_eq!((answer.status, answer.headers["location"].as_str()), (303, "/viewer"));
}

#[tokio::test]
async fn viewer_link_is_valid_once_and_for_the_viewer_only() {
    let daemon = Daemon::start();
    let mut raw = daemon.client().await;
    let link = raw.ok("viewer.link", json!({})).await;
    let (path, code) = link["path"].as_str().unwrap().split_once('#').unwrap();
    assert_eq!((path, link["expiresInSeconds"].as_u64()), ("/viewer", Some(60)));
    let exchange = async |origin: &[(&str, &str)], code: &str| {
        let headers = [&[NO_TOKEN], origin].concat();
        let mut answer = send(&daemon, "POST /viewer/session", &headers, code.as_bytes()).await;
        (answer.status, answer.text().await)
    };
    // Another page can neither use a link up nor guess one.
    for elsewhere in [&[][..], &[("Origin", "http://localhost:8000")], &[("Origin", "null")]] {
        assert_eq!(exchange(elsewhere, code).await.0, 403, "{elsewhere:?}");
    }
    assert_eq!(exchange(&[OWN], &"0".repeat(64)).await.0, 401);
    assert_eq!(exchange(&[OWN], &daemon.token()).await.0, 401);
    assert_eq!(exchange(&[OWN], &"0".repeat(4096)).await.0, 413);
    let (status, secret) = exchange(&[OWN], code).await;
    assert_eq!(status, 200);
    let (status, body) = exchange(&[OWN], code).await;
    assert!(status == 401 && body.contains("already used"), "{status} {body}");

    let address = daemon.address();
    let (bearer, own) = (format!("cairn.v1, bearer.{secret}"), format!("http://{address}"));
    let endpoint = format!("{address}/viewer/rpc");
    let refused = async |endpoint: &str, headers: &[(&'static str, &str)]| match Raw::connect_at(
        endpoint, headers,
    )
    .await
    {
        Err(tungstenite::Error::Http(response)) => response.status().as_u16(),
        other => panic!("{:?}", other.err()),
    };
    let protocol = "sec-websocket-protocol";
    assert_eq!(refused(&endpoint, &[(protocol, &bearer)]).await, 403);
    assert_eq!(
        refused(&endpoint, &[(protocol, &bearer), ("origin", "http://127.0.0.1:1")]).await,
        403
    );
    let daemons = format!("cairn.v1, bearer.{}", daemon.token());
    assert_eq!(refused(&endpoint, &[(protocol, &daemons), ("origin", &own)]).await, 401);
    // The page's secret is not accepted in place of the daemon's token.
    assert_eq!(refused(&format!("{address}/rpc"), &[(protocol, &bearer)]).await, 401);
    let mut page =
        Raw::connect_at(&endpoint, &[(protocol, &bearer), ("origin", &own)]).await.unwrap();
    page.ok("initialize", hello()).await;
    assert!(page.ok("session.list", json!({})).await["data"].is_array());
    assert!(page.ok("approval.list", json!({})).await["data"].is_array());
    for method in ["daemon.stop", "viewer.link"] {
        assert_eq!(page.refused(method, json!({})).await, "right_missing", "{method}");
    }
}
