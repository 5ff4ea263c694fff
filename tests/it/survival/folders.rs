//! Folders that change under the daemon: deleted work trees, moved repositories, two paths of one
//! folder, read-only and slow mounts.

use std::path::Path;

use serde_json::{Value, json};

use super::disk::Mount;
use crate::{
    chat::{calls, text_answer},
    contents::{complete, index, sources},
    fake_model::{Answer, FakeModel},
    sealed::{Daemon, Raw, commit_all, git, tree},
};

/// Returns the paths of the listed roots.
async fn roots(raw: &mut Raw) -> Vec<String> {
    let list = raw.ok("index.list", json!({})).await;
    let path = |root: &Value| root["path"].as_str().unwrap().to_owned();
    list["data"].as_array().unwrap().iter().map(path).collect()
}

async fn finds(raw: &mut Raw, query: &str) -> usize {
    let found = raw.ok("search.lexical", json!({"query": query})).await;
    found["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn worktree_deleted_under_a_running_turn_ends_the_turn_with_errors_for_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let (home, repository) = (dir.path().join("home"), dir.path().join("repository"));
    tree(&repository, &[("a.txt", "first\n")]);
    commit_all(&repository);
    let script = json!({"model": "script", "contextTokens": 16384, "answers": [
        calls("write_file", &json!({"path": "b.txt", "content": "x\n"})),
        calls("read_file", &json!({"path": "a.txt"})),
        text_answer("done"),
    ]});
    let config =
        json!({"llm": {"provider": "scripted", "endpoint": dir.path().join("script.json")}});
    tree(
        dir.path(),
        &[("script.json", &script.to_string()), ("home/config/config.json", &config.to_string())],
    );
    let daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.approver().await;
    raw.ok("index.addRoot", json!({"path": repository})).await;
    let worktree = raw.ok("worktree.create", json!({"root": repository})).await;
    let path = Path::new(worktree["path"].as_str().unwrap()).to_owned();
    let session = raw.start_turn(&path).await;
    let first = |open: &Value| Some(open["data"][0]["approvalId"].as_str()?.to_owned());
    let approval = raw.poll("approval.list", json!({"sessionId": session}), first).await;
    std::fs::remove_dir_all(&path).unwrap();
    raw.ok("approval.resolve", json!({"approvalId": approval, "decision": "once"})).await;
    let finished = |session: &Value| {
        let state = session["state"].as_str()?.to_owned();
        (!["running", "queued", "awaiting_approval"].contains(&&*state)).then_some(state)
    };
    let state = raw.poll("session.get", json!({"sessionId": session}), finished).await;
    assert_eq!(state, "completed");
    assert!(!path.exists(), "the folder is not created again");
    let failed: Vec<Value> = raw
        .records(&session)
        .await
        .into_iter()
        .filter(|r| r["evt"]["type"] == "tool_result")
        .map(|r| r["evt"]["error"]["reason"].clone())
        .collect();
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(failed.iter().all(Value::is_string), "each call has an error: {failed:?}");
    let list = raw.ok("worktree.list", json!({})).await;
    assert!(list["data"][0].get("uncommitted").is_none(), "{list}");
    raw.ok("worktree.remove", json!({"path": path})).await;
    assert_eq!(raw.ok("worktree.list", json!({})).await["data"], json!([]));
    assert_eq!(git(&repository, &["worktree", "list"]).lines().count(), 1);
}

#[tokio::test]
async fn moved_repository_can_be_removed_and_declared_at_its_new_path() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let (home, old, new) = (base.join("home"), base.join("old"), base.join("new"));
    sources(&old, 5);
    let mut daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    index(&mut raw, &old).await;
    std::fs::rename(&old, &new).unwrap();
    assert_eq!(roots(&mut raw).await, [old.to_str().unwrap()]);
    raw.ok("index.addRoot", json!({"path": new})).await;
    let is_complete = |status: &Value| {
        let all = status["roots"].as_array()?;
        let is_new = |root: &&Value| root["path"] == *new.to_str().unwrap();
        all.iter().find(is_new).filter(|root| root["complete"] == true).map(drop)
    };
    raw.poll("index.status", json!({}), is_complete).await;
    assert!(finds(&mut raw, "ledger3").await > 0);
    daemon.stop();
    let daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    raw.ok("index.removeRoot", json!({"root": old})).await;
    assert_eq!(roots(&mut raw).await, [new.to_str().unwrap()]);
    drop(daemon);
    let _daemon = Daemon::start_in(&home, &[]);
    assert_eq!(std::fs::read_dir(home.join("index")).unwrap().count(), 1, "its index is deleted");
}

#[tokio::test]
async fn symbolic_link_to_a_root_is_the_same_root() {
    let dir = tempfile::tempdir().unwrap();
    let (root, link) = (dir.path().join("root"), dir.path().join("link"));
    sources(&root, 5);
    std::os::unix::fs::symlink(&root, &link).unwrap();
    let daemon = Daemon::start_in(&dir.path().join("home"), &[]);
    let mut raw = daemon.client().await;
    index(&mut raw, &root).await;
    index(&mut raw, &link).await;
    assert_eq!(roots(&mut raw).await, [root.canonicalize().unwrap().to_str().unwrap()]);
    let before = finds(&mut raw, "ledger3").await;
    assert!(before > 0);
    // Removed by either name.
    raw.ok("index.removeRoot", json!({"root": link})).await;
    assert_eq!(roots(&mut raw).await, Vec::<String>::new());
}

/// A bind mount is another tree to every tool, so it is another root; each answers for itself.
#[tokio::test]
async fn bind_mount_of_a_root_is_a_root_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let (root, other) = (dir.path().join("root"), dir.path().join("other"));
    sources(&root, 5);
    let Some(mount) = Mount::bind(&root, &other) else { return };
    let daemon = Daemon::start_in(&dir.path().join("home"), &[]);
    let mut raw = daemon.client().await;
    index(&mut raw, &root).await;
    let alone = finds(&mut raw, "ledger3").await;
    raw.ok("index.addRoot", json!({"path": other})).await;
    let are_complete = |status: &Value| {
        let all = status["roots"].as_array()?;
        (all.len() == 2 && all.iter().all(|root| root["complete"] == true)).then_some(())
    };
    raw.poll("index.status", json!({}), are_complete).await;
    let params = |query: &str, root: &Path| json!({"query": query, "filters": {"roots": [root]}});
    let found = raw.ok("search.lexical", params("ledger3", &other)).await;
    assert_eq!(found["items"].as_array().unwrap().len(), alone, "{found}");
    // A change through one path is seen through both.
    tree(&root, &[("late.py", "def pangolin():\n    pass\n")]);
    for path in [&root, &other] {
        let is_found = |found: &Value| found["items"][0].is_object().then_some(());
        raw.poll("search.lexical", params("pangolin", path), is_found).await;
    }
    drop(mount);
    raw.ok("index.removeRoot", json!({"root": other})).await;
    assert_eq!(roots(&mut raw).await.len(), 1);
}

#[tokio::test]
async fn read_only_root_is_indexed_and_its_writes_fail_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    sources(&root, 5);
    let Some(_mount) = Mount::read_only(&root) else { return };
    let config = json!({"permissions": {"allow": ["*"]}});
    tree(dir.path(), &[("home/config/config.json", &config.to_string())]);
    let daemon = Daemon::start_in(&dir.path().join("home"), &[]);
    let mut raw = daemon.client().await;
    index(&mut raw, &root).await;
    assert!(finds(&mut raw, "ledger3").await > 0);
    let session = raw.open_session(&root).await;
    let arguments = json!({"path": "new.txt", "content": "x\n"});
    let outcome = raw.call_tool(&session, "write_file", arguments).await;
    assert_eq!(outcome["error"]["reason"], "path_unreadable", "{outcome}");
    let message = outcome["error"]["message"].as_str().unwrap();
    assert!(message.contains("new.txt") && message.contains("Read-only"), "{outcome}");
}

/// While a slow root is indexed, other calls and other roots are answered.
#[tokio::test]
async fn slow_mount_delays_only_its_own_index() {
    let dir = tempfile::tempdir().unwrap();
    let (tree, slow, quick) =
        (dir.path().join("tree"), dir.path().join("slow"), dir.path().join("quick"));
    sources(&tree, 60);
    sources(&quick, 5);
    let Some(_mount) = Mount::slow(&tree, &slow) else { return };
    let mut daemon = Daemon::start_in(&dir.path().join("home"), &[]);
    let mut raw = daemon.client().await;
    raw.ok("index.addRoot", json!({"path": slow})).await;
    let slow_status = |status: &Value| {
        let all = status["roots"].as_array().unwrap();
        all.iter().find(|root| root["path"] == *slow.to_str().unwrap()).unwrap().clone()
    };
    let mut other = daemon.client().await;
    other.ok("index.addRoot", json!({"path": quick})).await;
    let params = json!({"query": "ledger3", "filters": {"roots": [quick]}});
    let is_found = |found: &Value| found["items"][0].is_object().then_some(());
    other.poll("search.lexical", params, is_found).await;
    let status = slow_status(&other.ok("index.status", json!({})).await);
    assert_eq!(status["complete"], false, "the control: the mount is not slow: {status}");
    // It stops although a read is pending.
    assert!(daemon.stop().success());
}

/// A model whose clock or zone differs from the daemon's changes no order: times of records are
/// UTC, and their order is that of their numbers.
#[tokio::test]
async fn daemons_of_two_time_zones_continue_one_log() {
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("root"));
    sources(&root, 2);
    let model = FakeModel::start(|_, _| Answer::Text("yes"));
    let llm = json!({"provider": "openai-compatible", "model": "m", "endpoint": model.address});
    let config = json!({"llm": llm});
    tree(&home, &[("config/config.json", &config.to_string())]);
    let mut session = String::new();
    let mut times = Vec::new();
    for (n, zone) in ["Pacific/Kiritimati", "Pacific/Pago_Pago", "Asia/Kolkata"].iter().enumerate()
    {
        let mut daemon = Daemon::start_with(&home, &[("TZ", zone)]);
        let mut raw = daemon.client().await;
        if session.is_empty() {
            session = raw.open_session(&root).await.as_str().unwrap().to_owned();
        }
        let turn = format!("turn{n}");
        let params = json!({"sessionId": session, "turnId": turn, "input": "go"});
        raw.ok("orchestrate.run.start", params).await;
        let finished = |session: &Value| (session["state"] == "completed").then_some(());
        raw.poll("session.get", json!({"sessionId": session}), finished).await;
        let records = raw.records(&session).await;
        times = records.iter().map(|r| r["ts"].as_str().unwrap().to_owned()).collect();
        assert!(daemon.stop().success());
    }
    assert!(times.iter().all(|time| time.ends_with('Z')), "{times:?}");
    assert!(times.is_sorted(), "{times:?}");
    complete_list(&home, &session).await;
}

async fn complete_list(home: &Path, session: &str) {
    let daemon = Daemon::start_in(home, &[]);
    let mut raw = daemon.client().await;
    complete(&mut raw).await;
    let list = raw.ok("session.list", json!({})).await;
    assert_eq!(list["data"][0]["sessionId"], session, "{list}");
    assert_eq!(list["data"].as_array().unwrap().len(), 1, "{list}");
}

/// A follower of a session that the limits of the log remove has all of its records before its
/// subscription ends, or the error that the session is gone.
#[tokio::test]
async fn follower_of_a_removed_session_reads_no_gap() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let retention = json!({"maxAgeDays": 30, "keep": 0, "packAfterDays": 14});
    tree(&home, &[("config/config.json", &json!({"retention": retention}).to_string())]);
    let mut daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    let session = raw.ok("session.create", json!({})).await["sessionId"].clone();
    for _ in 0..40 {
        raw.call_tool(&session, "datetime", json!({})).await;
    }
    daemon.stop();
    let conn = cairn_store::rusqlite::Connection::open(home.join("trace.db")).unwrap();
    conn.execute("UPDATE session SET updated_ms = updated_ms - 40 * 86400000", []).unwrap();
    drop(conn);
    let daemon = Daemon::start_in(&home, &[]);
    let (mut raw, mut reader) = (daemon.client().await, daemon.client().await);
    let head = raw.ok("session.get", json!({"sessionId": session})).await["headSeq"].clone();
    let params = json!({"sessionId": session, "after": 0});
    reader.ok("orchestrate.subscribe", params.clone()).await;
    let collected = raw.ok("storage.collect", json!({})).await;
    assert_eq!(collected["removed"].as_array().unwrap().len(), 1, "{collected}");
    // The reader is behind: it has read nothing of its backlog yet.
    let mut last = 0;
    let end = loop {
        let message = if reader.backlog.is_empty() {
            match tokio::time::timeout(std::time::Duration::from_secs(20), reader.json()).await {
                Ok(message) => message,
                Err(_) => break json!("no further message"),
            }
        } else {
            reader.backlog.remove(0)
        };
        if message["method"] != "orchestrate.event" {
            break message;
        }
        let seq = message["params"]["seq"].as_u64().unwrap();
        assert_eq!(seq, last + 1, "{message}");
        last = seq;
    };
    let is_complete = last == head.as_u64().unwrap();
    assert!(is_complete || end["method"] == "orchestrate.gone", "{last} of {head}: {end}");
    assert_eq!(reader.refused("orchestrate.subscribe", params).await, "session_not_found");
}
