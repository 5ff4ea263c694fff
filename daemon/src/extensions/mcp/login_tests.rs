//! Logins to servers with hostile or broken metadata.

use std::{sync::Arc, time::Duration};

use cairn_protocol::error::Reason;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

use super::{login, logins::Logins};

/// Documents of a server by path; an answer is a status and a body.
type Documents = Arc<dyn Fn(&str) -> (&'static str, String) + Send + Sync>;

/// Serves documents; `documents` receives the server's own address.
async fn serve(documents: impl Fn(&str) -> Documents) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let documents = documents(&base);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, Arc::clone(&documents)));
        }
    });
    base
}

async fn answer(stream: TcpStream, documents: Documents) {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).await.unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.unwrap();
    let path = first.split(' ').nth(1).unwrap_or("/").to_owned();
    let (status, body) = documents(&path);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _closed = reader.get_mut().write_all((head + &body).as_bytes()).await;
}

/// Metadata of a resource and its authorization server, which `change` modifies.
fn documents(
    change: impl Fn(&str, &mut Value, &mut Value) + Send + Sync + 'static,
) -> impl Fn(&str) -> Documents {
    let change = Arc::new(change);
    move |base: &str| {
        let (base, change) = (base.to_owned(), Arc::clone(&change));
        Arc::new(move |path: &str| {
            let mut resource =
                json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]});
            let mut server = json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            });
            change(&base, &mut resource, &mut server);
            match path {
                "/.well-known/oauth-protected-resource/mcp" => ("200 OK", resource.to_string()),
                "/.well-known/oauth-authorization-server" => ("200 OK", server.to_string()),
                "/register" => {
                    let client = json!({"client_id": "c", "redirect_uris": []});
                    ("201 Created", client.to_string())
                }
                _ => ("404 Not Found", String::new()),
            }
        })
    }
}

fn logins(dir: &tempfile::TempDir) -> Arc<Logins> {
    Logins::new(dir.path().join("mcp-logins.json"))
}

/// Starts a login and returns the text of its failure; `None` if it waits for the user.
async fn refusal(documents: impl Fn(&str) -> Documents) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("{}/mcp", serve(documents).await);
    let limit = Duration::from_secs(60);
    match login::start(&logins(&dir), ("s", &url), limit, || {}).await {
        Ok(_) => None,
        Err(failure) => {
            assert_eq!(failure.reason, Reason::LoginFailed);
            Some(failure.message)
        }
    }
}

#[tokio::test]
async fn hostile_metadata_is_refused() {
    assert_eq!(refusal(documents(|_, _, _| {})).await, None, "control");
    type Change = fn(&str, &mut Value, &mut Value);
    let cases: [(&str, Change); 7] = [
        ("mismatch", |_, _, server| server["issuer"] = json!("http://127.0.0.1:1")),
        ("issuer", |_, _, server| drop(server["issuer"].take())),
        ("https", |_, _, server| server["authorization_endpoint"] = json!("javascript:alert(1)")),
        ("https", |_, _, server| server["authorization_endpoint"] = json!("file:///etc/passwd")),
        ("https", |_, _, server| server["token_endpoint"] = json!("http://192.0.2.1/token")),
        ("https", |_, _, server| server["registration_endpoint"] = json!("http://10.0.0.1/r")),
        ("PKCE", |_, _, server| server["code_challenge_methods_supported"] = json!(["plain"])),
    ];
    for (text, change) in cases {
        let refused = refusal(documents(change)).await;
        assert!(refused.as_ref().is_some_and(|r| r.contains(text)), "{text}: {refused:?}");
    }
    // Authorization servers at private addresses, and none at all.
    let metadata = |_: &str, resource: &mut Value, _: &mut Value| {
        resource["authorization_servers"] = json!(["http://169.254.169.254/", "http://10.0.0.1"]);
    };
    assert!(refusal(documents(metadata)).await.is_some());
    let nothing = |_: &str| -> Documents { Arc::new(|_| ("404 Not Found", String::new())) };
    assert!(refusal(nothing).await.unwrap().contains("no metadata"));
}

#[tokio::test]
async fn metadata_is_not_read_from_private_addresses() {
    // Status lines with a location: the redirect is followed for pages of the same server alone.
    let elsewhere = |location: &'static str| {
        move |_: &str| -> Documents {
            Arc::new(move |path| match path {
                "/.well-known/oauth-protected-resource/mcp" => (location, String::new()),
                _ => ("404 Not Found", String::new()),
            })
        }
    };
    for location in [
        "302 Found\r\nLocation: http://169.254.169.254/latest",
        "302 Found\r\nLocation: http://10.0.0.1/x",
        "302 Found\r\nLocation: file:///etc/passwd",
    ] {
        assert!(refusal(elsewhere(location)).await.is_some(), "{location}");
    }
}

#[tokio::test]
async fn addresses_without_tls_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for url in ["http://192.0.2.1/mcp", "ftp://127.0.0.1/mcp", "nonsense"] {
        let started = login::start(&logins(&dir), ("s", url), Duration::ZERO, || {}).await;
        assert_eq!(started.err().unwrap().reason, Reason::LoginFailed, "{url}");
    }
}

#[tokio::test]
async fn login_that_is_not_finished_ends_with_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("{}/mcp", serve(documents(|_, _, _| {})).await);
    let limit = Duration::from_millis(100);
    let stored = || panic!("nothing was stored");
    let pending = login::start(&logins(&dir), ("s", &url), limit, stored).await.unwrap();
    let port = login_port(&pending.login.url);
    // A connection that sends nothing does not delay the end.
    let silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let mut outcome = pending.outcome.clone();
    let finished = outcome.wait_for(Option::is_some).await.unwrap().clone().unwrap();
    assert!(finished.unwrap_err().message.contains("nobody logged in within 0 s"));
    drop((silent, pending));
    // The port is closed with the login.
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
    assert!(!logins(&dir).has("s", &url));
}

fn login_port(url: &str) -> u16 {
    let (_, rest) = url.split_once("redirect_uri=http%3A%2F%2F127.0.0.1%3A").unwrap();
    rest.split('%').next().unwrap().parse().unwrap()
}
