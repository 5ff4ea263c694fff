//! No path escapes a declared root, and no program named by a repository or a URL runs.

use std::{
    os::unix::fs::symlink,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use serde_json::{Value, json};

use crate::{
    contents::{count, index},
    sealed::{Daemon, PATIENCE, Raw, commit_all, git, tree},
};

const SECRET: &str = "text that no client may read";

/// A root with a harmless file, and a folder beside it with a secret.
struct Fixture {
    _dir: tempfile::TempDir,
    root: std::path::PathBuf,
    outside: std::path::PathBuf,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    let (root, outside) = (top.join("root"), top.join("root-outside"));
    tree(&root, &[("good.txt", "harmless\n"), ("sub/good.txt", "harmless\n")]);
    tree(&outside, &[("secret.txt", SECRET), ("good.txt", SECRET)]);
    Fixture { _dir: dir, root, outside }
}

async fn open(daemon: &Daemon, root: &Path) -> Raw {
    let mut raw = daemon.client().await;
    index(&mut raw, root).await;
    raw
}

#[tokio::test]
async fn no_path_escapes_a_root() {
    let (daemon, fixture) = (Daemon::start(), fixture());
    let (root, outside) = (&fixture.root, &fixture.outside);
    symlink(outside, root.join("link")).unwrap();
    symlink(outside.join("secret.txt"), root.join("file-link")).unwrap();
    symlink("../../root-outside/secret.txt", root.join("sub/relative-link")).unwrap();
    let mut raw = open(&daemon, root).await;
    let session = raw.ok("session.create", json!({"root": root})).await["sessionId"].clone();
    let attacks = [
        "../root-outside/secret.txt".to_owned(),
        "sub/../../root-outside/secret.txt".to_owned(),
        "link/secret.txt".to_owned(),
        "file-link".to_owned(),
        "sub/relative-link".to_owned(),
        outside.join("secret.txt").display().to_string(),
        format!("{}/../root-outside/secret.txt", root.display()),
        format!("{}/link/secret.txt", root.display()),
        format!("/proc/self/root{}", outside.join("secret.txt").display()),
    ];
    for path in &attacks {
        // Control: without the protection this path leads to the secret.
        assert_eq!(std::fs::read_to_string(root.join(path)).unwrap(), SECRET, "{path}");
        let span = json!({"path": path, "root": root, "start": 1, "end": 9});
        let answer = raw.call("content.getSpan", span.clone()).await;
        let reason = answer["error"]["data"]["reason"].as_str().unwrap_or_default();
        assert!(["path_outside_roots", "path_not_found"].contains(&reason), "{path}: {answer}");
        assert!(!answer.to_string().contains(SECRET));
        let call = json!({"sessionId": session, "name": "content_get_span", "arguments": span});
        let result = raw.call("tool.call", call).await;
        assert!(
            result["result"]["ok"] != true && !result.to_string().contains(SECRET),
            "{path}: {result}"
        );
    }
    for path in ["link", "..", "../root-outside", "/", outside.to_str().unwrap()] {
        let answer = raw.call("fs.listDir", json!({"path": path, "root": root})).await;
        assert!(
            answer["error"].is_object() && !answer.to_string().contains("secret.txt"),
            "{path}: {answer}"
        );
    }
    for method in ["search.grep", "search.lexical"] {
        let word = if method == "search.grep" { "pattern" } else { "query" };
        let results = raw.ok(method, json!({(word): "secret"})).await;
        assert_eq!(results["items"], json!([]), "{method}");
        let results = raw.ok(method, json!({(word): "harmless"})).await;
        assert_eq!(results["items"].as_array().unwrap().len(), 2, "{method}: {results}");
    }
    for path in [
        "good.txt".to_owned(),
        "sub/../good.txt".to_owned(),
        root.join("good.txt").display().to_string(),
    ] {
        let span = raw
            .ok("content.getSpan", json!({"path": path, "root": root, "start": 1, "end": 9}))
            .await;
        assert_eq!(span["text"].as_str().unwrap().trim_end(), "harmless", "{path}");
    }
}

#[tokio::test]
async fn symlink_swapped_during_a_call_does_not_escape() {
    let (daemon, fixture) = (Daemon::start(), fixture());
    let (root, outside) = (fixture.root.clone(), fixture.outside.clone());
    let mut raw = open(&daemon, &root).await;
    symlink(&outside, root.join("other")).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let (root, over) = (root.clone(), over.clone());
        move || {
            let (a, b, spare) = (root.join("sub"), root.join("other"), root.join("spare"));
            while !over.load(Ordering::Relaxed) {
                std::fs::rename(&a, &spare).unwrap();
                std::fs::rename(&b, &a).unwrap();
                std::fs::rename(&spare, &b).unwrap();
            }
        }
    });
    let (mut good, mut naive) = (0, 0);
    let began = Instant::now();
    let calls = count("CAIRN_SWAPS", 2_000);
    let mut attempts = 0;
    while (attempts < calls || good == 0 || naive == 0) && began.elapsed() < PATIENCE {
        attempts += 1;
        let answer = raw
            .call(
                "content.getSpan",
                json!({"path": "sub/good.txt", "root": root, "start": 1, "end": 1}),
            )
            .await;
        assert!(!answer.to_string().contains(SECRET), "{answer}");
        good += usize::from(
            answer["result"]["text"].as_str().is_some_and(|t| t.starts_with("harmless")),
        );
        naive += usize::from(
            std::fs::read_to_string(root.join("sub/good.txt")).is_ok_and(|t| t == SECRET),
        );
    }
    over.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(good > 0 && naive > 0, "the race was not run: {good} good, {naive} naive");
}

#[tokio::test]
async fn wrong_file_types_are_reported() {
    let (daemon, fixture) = (Daemon::start(), fixture());
    let fifo = fixture.root.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut raw = open(&daemon, &fixture.root).await;
    let span = json!({"path": "fifo", "root": fixture.root, "start": 1, "end": 1});
    assert_eq!(raw.refused("content.getSpan", span).await, "not_a_file");
    let results = raw.ok("search.grep", json!({"pattern": "harmless"})).await;
    assert_eq!(results["items"].as_array().unwrap().len(), 2);
    std::fs::create_dir_all(daemon.home.join(".ssh/keys")).unwrap();
    symlink(daemon.home.join(".ssh"), fixture.root.join("keys")).unwrap();
    for (path, want) in [
        (fixture.root.join("nowhere"), "path_not_found"),
        (fixture.root.join("good.txt"), "not_a_directory"),
        (daemon.home.join(".ssh"), "path_blocked"),
        (daemon.home.join(".ssh/keys"), "path_blocked"),
        (fixture.root.join("keys/keys"), "path_blocked"),
    ] {
        assert_eq!(
            raw.refused("index.addRoot", json!({"path": path})).await,
            want,
            "{}",
            path.display()
        );
        let start = json!({"root": path});
        assert_eq!(
            raw.refused("orchestrate.explore.start", start).await,
            want,
            "{}",
            path.display()
        );
    }
}

#[tokio::test]
async fn hostile_git_config_runs_no_program() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("root");
    tree(&root, &[("a.txt", "one\n"), (".gitattributes", "*.txt filter=evil diff=evil\n")]);
    commit_all(&root);
    let mark = dir.path().join("mark");
    let run = format!("touch {}", mark.display());
    for key in [
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.textconv",
        "diff.external",
        "core.pager",
        "core.sshCommand",
    ] {
        git(&root, &["config", key, &run]);
    }
    std::fs::write(root.join("a.txt"), "two\n").unwrap();
    let mut raw = daemon.client().await;
    let records = raw.explore(&root, &[]).await;
    assert_eq!(records[records.len() - 1]["evt"]["type"], "completed");
    let status = raw.ok("git.status", json!({"path": root})).await;
    assert_eq!(status["changes"][0]["path"], "a.txt", "{status}");
    assert!(!mark.exists(), "a program of the repository was run");
    let _failed = Command::new("git").arg("-C").arg(&root).arg("status").output().unwrap();
    assert!(mark.exists(), "the control: git itself runs it");
}

/// Clones a repository and returns the final notification.
async fn cloned(raw: &mut Raw, url: &str) -> Value {
    let receipt = raw.call("git.clone", json!({"remoteURL": url})).await;
    if receipt["error"].is_object() {
        return receipt["error"].clone();
    }
    loop {
        let progress = raw.notification("git.progress").await;
        if progress["requestId"] == receipt["result"]["requestId"] && progress["done"] == true {
            return progress;
        }
    }
}

#[tokio::test]
async fn clone_urls_are_checked_and_local_clones_require_a_root() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("mark");
    let mut raw = daemon.client().await;
    let shell = format!("ext::sh -c touch% {}", mark.display());
    for url in [
        "-oX",
        "http://h/x.git",
        "--upload-pack=touch x",
        shell.as_str(),
        "ssh://-oProxyCommand=x/y",
        "fd::17",
        "",
        "https://",
    ] {
        assert_eq!(raw.refused("git.clone", json!({"remoteURL": url})).await, "bad_url", "{url}");
    }
    assert!(!mark.exists());
    let workspaces = || {
        std::fs::read_dir(daemon.home.join("workspaces"))
            .unwrap()
            .flatten()
            .map(|e| e.path())
            .collect::<Vec<_>>()
    };
    assert_eq!(workspaces(), Vec::<std::path::PathBuf>::new());
    let origin = dir.path().join("origin");
    tree(&origin, &[("a.txt", "one\n")]);
    commit_all(&origin);
    let url = format!("file://{}", origin.display());
    // G1: a folder that was not declared cannot be read through a clone of it either.
    assert_eq!(raw.refused("git.clone", json!({"remoteURL": url})).await, "no_roots");
    raw.ok("index.addRoot", json!({"path": origin})).await;
    let end = cloned(&mut raw, &url).await;
    let path = end["result"]["path"].as_str().unwrap_or_else(|| panic!("{end}"));
    assert_eq!(end["result"]["head"], git(&origin, &["rev-parse", "HEAD"]));
    assert!(Path::new(path).join("a.txt").exists());
    assert_eq!(workspaces().len(), 1);
}
