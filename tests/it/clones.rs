//! Clones reach only addresses that their caller may reach, and their credentials are stored
//! nowhere.

use std::{path::Path, process::Stdio, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::{mpsc, oneshot},
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

use crate::{
    sealed::{Daemon, Raw, command, commit_all, tree},
    terminal::Terminal,
};

/// Password in a URL that must not occur anywhere else.
const PASSWORD: &str = "hunter2hunter2";

/// Head of a request, and the sender for its answer.
type GitRequest = (String, oneshot::Sender<&'static str>);

/// Starts a git server behind TLS that answers as the test specifies.
async fn tls_server() -> (u16, mpsc::Receiver<GitRequest>) {
    let certificate = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key =
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certificate.signing_key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.cert.der().clone()], key);
    let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, requests) = mpsc::channel(8);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut request = vec![0; 16 * 1024];
            let Ok(n) = stream.read(&mut request).await else { continue };
            let (tx, rx) = oneshot::channel();
            let head = String::from_utf8_lossy(&request[..n]).into_owned();
            if sender.send((head, tx)).await.is_err() {
                return;
            }
            let status = rx.await.unwrap_or("500 Gone");
            let answer = format!(
                "HTTP/1.1 {status}\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            let _ignored = stream.write_all(answer.as_bytes()).await;
            let _ignored = stream.shutdown().await;
        }
    });
    (port, requests)
}

/// Returns the next request of git; panics if none arrives.
async fn next(requests: &mut mpsc::Receiver<GitRequest>) -> GitRequest {
    tokio::time::timeout(Duration::from_secs(60), requests.recv()).await.unwrap().unwrap()
}

/// Connects a client that answers approvals.
async fn approver(daemon: &Daemon) -> Raw {
    let authorization = format!("Bearer {}", daemon.token());
    let mut raw =
        Raw::connect(&daemon.address(), &[("authorization", &authorization)]).await.unwrap();
    let hello = json!({"protocolVersions": ["1"], "client": {"name": "approver", "version": "0"},
        "capabilities": {"approvals": true}});
    raw.ok("initialize", hello).await;
    raw
}

/// Lists programs with the password among their arguments.
fn programs_that_show(secret: &str) -> Vec<String> {
    let lines = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = lines.filter_map(|p| std::fs::read(p.path().join("cmdline")).ok());
    lines
        .map(|l| String::from_utf8_lossy(&l).replace('\0', " "))
        .filter(|l| l.contains(secret))
        .collect()
}

/// Lists files below a folder that contain a text.
fn files_containing(folder: &Path, text: &str) -> Vec<std::path::PathBuf> {
    let (mut folders, mut matches) = (vec![folder.to_path_buf()], vec![]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file()
                && std::fs::read(entry.path())
                    .unwrap()
                    .windows(text.len())
                    .any(|w| w == text.as_bytes())
            {
                matches.push(entry.path());
            }
        }
    }
    matches
}

/// Returns the approval that an explore of a URL requests.
async fn question(raw: &mut Raw) -> Value {
    let until = tokio::time::Instant::now() + Duration::from_secs(60);
    while tokio::time::Instant::now() < until {
        let open = raw.ok("approval.list", json!({})).await;
        if open["data"][0].is_object() {
            return open["data"][0].clone();
        }
    }
    panic!("nobody was asked");
}

// G3, G4
#[tokio::test]
async fn credentials_are_sent_to_the_server_only() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let mut daemon = Daemon::start_with(&home, &[("GIT_SSL_NO_VERIFY", "1")]);
    let (port, mut requests) = tls_server().await;
    let mut raw = approver(&daemon).await;
    let url = format!("https://me:{PASSWORD}@localhost:{port}/a/r.git");
    // The method cannot request an approval, so it does not reach servers of this machine.
    assert_eq!(raw.refused("git.clone", json!({"remoteURL": url})).await, "network_denied");
    let start = json!({"remoteURL": url, "policy": {"network": true}, "requestId": "one"});
    let receipt = raw.ok("orchestrate.explore.start", start).await;
    let approval = question(&mut raw).await;
    assert!(!approval.to_string().contains(PASSWORD), "{approval}");
    let warning = approval["preview"]["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("localhost") && warning.contains("address of this machine"),
        "{approval}"
    );
    raw.ok("approval.resolve", json!({"approvalId": approval["approvalId"], "decision": "once"}))
        .await;
    let (first, answer) = next(&mut requests).await;
    assert!(
        first.contains("GET /a/r.git/info/refs") && !first.to_lowercase().contains("authorization"),
        "{first}"
    );
    answer.send("401 Unauthorized").unwrap();
    let (second, answer) = next(&mut requests).await;
    // me:hunter2hunter2
    assert!(second.contains("Authorization: Basic bWU6aHVudGVyMmh1bnRlcjI="), "{second}");
    assert_eq!(programs_that_show(PASSWORD), Vec::<String>::new());
    assert!(
        !programs_that_show(&format!("https://localhost:{port}/a/r.git")).is_empty(),
        "the control"
    );
    answer.send("404 Not Found").unwrap();
    let session = receipt["sessionId"].as_str().unwrap().to_owned();
    let records = raw.follow(&session, 0).await;
    let end = &records[records.len() - 1];
    assert_eq!(end["evt"]["type"], "error", "{end}");
    let export = raw.ok("session.export", json!({"sessionId": session})).await;
    assert!(!export.to_string().contains(PASSWORD));
    // A refused URL is recorded without its password too.
    for bad in [format!("https://h/x?token={PASSWORD}"), format!("ssh://git:{PASSWORD}@h/x")] {
        let start = json!({"remoteURL": bad, "policy": {"network": true}});
        let refused = raw.call("orchestrate.explore.start", start).await;
        assert_eq!(refused["error"]["data"]["reason"], "bad_url");
        assert!(!refused.to_string().contains(PASSWORD), "{refused}");
        raw.call_tool(&json!(session), "git_clone", json!({"remoteURL": bad})).await;
    }
    let audit = raw.ok("audit.query", json!({})).await;
    assert!(!audit.to_string().contains(PASSWORD));
    assert!(daemon.stop().success());
    assert_eq!(files_containing(&home, PASSWORD), Vec::<std::path::PathBuf>::new());
    assert!(
        !files_containing(&home, &format!("https://localhost:{port}/a/r.git")).is_empty(),
        "the control"
    );
}

// G4
#[tokio::test]
async fn local_addresses_require_an_approver() {
    let daemon = Daemon::start();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut raw = daemon.client().await;
    for host in ["127.0.0.1", "0x7f000001", "2130706433", "localhost"] {
        for scheme in ["https", "git", "ssh"] {
            let url = format!("{scheme}://{host}:{port}/r.git");
            assert_eq!(
                raw.refused("git.clone", json!({"remoteURL": url})).await,
                "network_denied",
                "{url}"
            );
        }
        let start = json!({"remoteURL": format!("https://{host}:{port}/r.git"), "policy": {"network": true}});
        let receipt = raw.ok("orchestrate.explore.start", start).await;
        let records = raw.follow(receipt["sessionId"].as_str().unwrap(), 0).await;
        let end = &records[records.len() - 1]["evt"];
        assert_eq!(
            (end["type"].as_str(), end["reason"].as_str()),
            (Some("error"), Some("no_approver")),
            "{end}"
        );
    }
    for host in ["[::1]", "169.254.169.254", "10.0.0.1", "[::ffff:127.0.0.1]"] {
        let url = format!("https://{host}/r.git");
        assert_eq!(
            raw.refused("git.clone", json!({"remoteURL": url})).await,
            "network_denied",
            "{url}"
        );
    }
    assert!(listener.accept().is_err(), "somebody came");
    // Control: the address can be reached.
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
}

// G1, A3
#[tokio::test]
async fn explore_of_file_url_requires_a_declared_root() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let home = base.join("home");
    for name in ["home/.password-store", "other", "declared"] {
        let at = base.join(name);
        tree(&at, &[("a.txt", "treasure\n")]);
        commit_all(&at);
    }
    let daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    raw.ok("index.addRoot", json!({"path": base.join("declared")})).await;
    let start = |path: &Path| json!({"remoteURL": format!("file://{}", path.display()), "policy": {"network": true}});
    for closed in ["other", "home/.password-store", "declared/../other"] {
        let refused = raw.refused("orchestrate.explore.start", start(&base.join(closed))).await;
        assert_eq!(refused, "path_outside_roots", "{closed}");
    }
    let workspaces = std::fs::read_dir(home.join("workspaces")).map_or(0, |w| w.count());
    assert_eq!(workspaces, 0, "something was copied");
    let receipt = raw.ok("orchestrate.explore.start", start(&base.join("declared"))).await;
    let records = raw.follow(receipt["sessionId"].as_str().unwrap(), 0).await;
    assert_eq!(records[records.len() - 1]["evt"]["type"], "completed", "the control");
}

/// The approval of `cairn explore URL` is requested from the user at the terminal; without one the
/// reason and advice are printed.
#[test]
fn explore_of_local_address_prompts_in_a_terminal_and_fails_without_one() {
    let daemon = Daemon::start();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}/r.git", listener.local_addr().unwrap().port());
    let output =
        command(&daemon.home).args(["explore", &url]).stderr(Stdio::piped()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(
        text.contains("hint: run it in a terminal") && text.contains("clone it with git"),
        "{text}"
    );
    let answer = |key: &str, want: &str| {
        let Some(mut terminal) = Terminal::start(&daemon.home, &daemon.home, &["explore", &url])
        else {
            return false;
        };
        let prompt_text = terminal.see("y once");
        assert!(
            prompt_text.contains("git_clone") && prompt_text.contains("an address of this machine"),
            "{prompt_text}"
        );
        terminal.key(key);
        if key == "n" {
            terminal.line("");
        }
        terminal.see(want);
        true
    };
    if answer("n", "denied") {
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "somebody came although it was denied");
        listener.set_nonblocking(false).unwrap();
        // The server closes the connection, so that the approved clone fails.
        let reached = std::thread::spawn(move || drop(listener.accept().unwrap()));
        assert!(answer("y", "error"));
        reached.join().unwrap();
    }
}
