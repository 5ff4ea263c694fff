//! The first minute with an installed program: the overview, versions, manual pages, and a daemon of
//! an older version.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use cairn_protocol::location::DataRoot;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::{accept_async, tungstenite::Message};

use crate::sealed::{Daemon, cairn, git, hello, tree};

#[test]
fn overview_describes_the_project_of_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let (home, repo) = (dir.path().join("home"), dir.path().join("repo"));
    tree(&repo, &[("src/main.rs", "fn main() {}\n"), ("src/deep/a.py", "def a(): pass\n")]);
    std::fs::create_dir_all(&home).unwrap();
    // A folder that is no git repository is left alone: no daemon, no root.
    let (code, out, err) = cairn(&home, &repo, &[]);
    assert_eq!((code, out.contains("none here")), (0, true), "{out}{err}");
    assert!(!home.join("daemon.json").exists(), "{err}");

    git(&repo, &["init", "-q"]);
    let (code, out, err) = cairn(&home, &repo.join("src/deep"), &[]);
    assert_eq!((code, out.lines().count()), (0, 10), "{out}{err}");
    let top = repo.canonicalize().unwrap();
    for part in [&*format!("project    {}", top.display()), "rust 1", "2 files", "cairn explore ."]
    {
        assert!(out.contains(part), "{part}: {out}");
    }
    let (code, out, _) = cairn(&home, &repo, &["--json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["root"]["files"]), (0, &json!(2)), "{out}");
    assert_eq!(cairn(&home, &repo, &["stop"]).0, 0);
}

#[test]
fn version_is_printed_for_programs() {
    let dir = tempfile::tempdir().unwrap();
    let (code, out, _) = cairn(dir.path(), dir.path(), &["--version", "--json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["protocolVersions"]), (0, &json!(["1"])), "{out}");
    let (_, plain, _) = cairn(dir.path(), dir.path(), &["--version"]);
    assert_eq!(plain, format!("cairn {}\n", report["version"].as_str().unwrap()));
}

#[test]
fn manual_pages_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man/man1");
    let (code, _, err) = cairn(dir.path(), dir.path(), &["man", pages.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    for name in ["cairn.1", "cairn-search.1", "cairn-trace-export.1"] {
        let page = std::fs::read_to_string(pages.join(name)).unwrap();
        assert!(page.contains(".TH ") && page.contains(".SH NAME"), "{name}: {page}");
    }
    std::fs::write(dir.path().join("file"), "").unwrap();
    let (code, _, err) = cairn(dir.path(), dir.path(), &["man", "file/pages"]);
    assert_eq!((code, err.contains("file/pages")), (3, true), "{err}");
}

/// Serves as a daemon of version 0.0.1 in `home`: the handshake, its status, and `daemon.stop`,
/// after which it releases the data root. Returns the methods that were called.
async fn old_daemon(home: &Path, mode: &str) -> Arc<Mutex<Vec<String>>> {
    // The answers of a real daemon, with another version.
    let mut daemon = Daemon::start_in(home, &[]);
    let mut file: Value =
        serde_json::from_slice(&std::fs::read(home.join("daemon.json")).unwrap()).unwrap();
    let token = daemon.token();
    let bearer = format!("Bearer {token}");
    let mut raw = crate::sealed::Raw::connect(&daemon.address(), &[("authorization", &bearer)])
        .await
        .unwrap();
    let mut handshake = raw.ok("initialize", hello()).await;
    handshake["server"]["version"] = json!("0.0.1");
    let mut status = raw.ok("daemon.status", json!({})).await;
    status["version"] = json!("0.0.1");
    status["mode"] = json!(mode);
    daemon.stop();

    let root = DataRoot(home.to_owned());
    let lock = std::fs::File::open(root.lock()).unwrap();
    lock.lock().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    file["addresses"] = json!([listener.local_addr().unwrap().to_string()]);
    file["version"] = json!("0.0.1");
    std::fs::write(file["tokenPath"].as_str().unwrap(), token).unwrap();
    std::fs::write(root.daemon_json(), file.to_string()).unwrap();
    let methods = Arc::new(Mutex::new(Vec::new()));
    let called = Arc::clone(&methods);
    tokio::spawn(async move {
        // Dropped with this task, when the daemon has stopped.
        let _lock = lock;
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = accept_async(stream).await.unwrap();
            while let Some(Ok(message)) = socket.next().await {
                let Message::Text(text) = message else { continue };
                let request: Value = serde_json::from_str(&text).unwrap();
                let method = request["method"].as_str().unwrap_or_default().to_owned();
                called.lock().unwrap().push(method.clone());
                let result = match &*method {
                    "initialize" => handshake.clone(),
                    "daemon.status" => status.clone(),
                    "index.status" => json!({"roots": []}),
                    _ => json!({}),
                };
                let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
                socket.send(Message::text(answer.to_string())).await.unwrap();
                if method == "daemon.stop" {
                    std::fs::remove_file(root.daemon_json()).unwrap();
                    return;
                }
            }
        }
    });
    methods
}

#[tokio::test(flavor = "multi_thread")]
async fn older_daemon_on_demand_is_restarted() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let methods = old_daemon(&home, "on_demand").await;
    let run = |args: &'static [&'static str]| {
        let (home, folder) = (home.clone(), dir.path().to_owned());
        async move { tokio::task::spawn_blocking(move || cairn(&home, &folder, args)).await.unwrap() }
    };
    let (code, out, err) = run(&["--json", "index", "status"]).await;
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains("the daemon has version 0.0.1: restarting it"), "{err}");
    assert!(methods.lock().unwrap().contains(&"daemon.stop".to_owned()));
    let (_, status, _) = run(&["--json", "status"]).await;
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"), "{status}");
    // A daemon of the same version is left alone.
    let (_, _, err) = run(&["--json", "index", "status"]).await;
    assert!(!err.contains("restarting"), "{err}");
    assert_eq!(run(&["stop"]).await.0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn older_service_is_named_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let methods = old_daemon(&home, "service").await;
    let folder = dir.path().to_owned();
    let run = move || cairn(&home, &folder, &["--json", "index", "status"]);
    let (code, out, err) = tokio::task::spawn_blocking(run).await.unwrap();
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains("was not started on demand: restart it"), "{err}");
    assert!(!methods.lock().unwrap().contains(&"daemon.stop".to_owned()));
}

#[test]
fn uninstall_removes_what_it_lists_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let (home, repo) = (dir.path().join("home"), dir.path().join("repo"));
    tree(&repo, &[("main.rs", "fn main() {}\n")]);
    tree(&home, &[("letters/foreign.txt", "not of Cairn\n")]);
    assert_eq!(cairn(&home, &repo, &["index", "add", ".", "--wait"]).0, 0);
    assert!(home.join("trace.db").exists());
    // There is no terminal that could confirm it.
    let (code, out, err) = cairn(&home, &repo, &["uninstall", "--purge"]);
    assert_eq!((code, home.join("trace.db").exists()), (2, true), "{out}{err}");
    let (_, listed, _) = cairn(&home, &repo, &["uninstall", "--purge", "--dry-run"]);
    assert!(listed.contains("your data") && home.join("trace.db").exists(), "{listed}");
    let (code, out, err) = cairn(&home, &repo, &["uninstall"]);
    assert_eq!((code, out.is_empty()), (2, true), "{err}");
    let (code, out, err) = cairn(&home, &repo, &["uninstall", "--yes"]);
    assert!(code == 0 && out.contains("your data remains"), "{out}{err}");
    assert!(home.join("trace.db").exists() && !home.join("daemon.json").exists());
    let (code, out, err) = cairn(&home, &repo, &["uninstall", "--purge", "--yes", "--json"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["purged"]), (0, &json!(true)), "{out}{err}");
    assert!(home.join("letters/foreign.txt").exists() && !home.join("trace.db").exists());
    assert!(!home.join("token").exists() && !home.join("index").exists());
}

#[test]
fn update_is_refused_for_a_program_of_another_installer() {
    let dir = tempfile::tempdir().unwrap();
    let (code, out, err) = cairn(dir.path(), dir.path(), &["update"]);
    assert_eq!((code, out.as_str()), (3, ""), "{err}");
    assert!(err.contains("belongs to") && err.contains("update it:"), "{err}");
    let (code, _, err) = cairn(dir.path(), dir.path(), &["update", "--check"]);
    assert!(code == 1 && err.contains("--key"), "{err}");
}
