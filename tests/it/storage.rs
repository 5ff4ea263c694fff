//! The size of the log: `cairn du`, `cairn gc`, packing and removal of old sessions.

use std::{path::Path, process::Stdio};

use cairn_store::rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::sealed::{Daemon, command, tree};

const DAY_MS: i64 = 24 * 3600 * 1000;

fn cairn(home: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = command(home);
    let output = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Starts a daemon with three explored folders, stops it, makes the sessions older by these days
/// and starts it again with `retention`. Returns it with the sessions, oldest first.
async fn aged(dir: &Path, days: [i64; 3], retention: &Value) -> (Daemon, [String; 3]) {
    let home = dir.join("home");
    let mut sessions = Vec::new();
    let mut daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    for n in 0..3 {
        let folder = dir.join(format!("project-{n}"));
        tree(&folder, &[("a.py", "def first():\n    return 1\n"), ("README.md", "# A project\n")]);
        let records = raw.explore(&folder.canonicalize().unwrap(), &[]).await;
        sessions.push(records[0]["sessionId"].as_str().unwrap().to_owned());
    }
    daemon.stop();
    let conn = Connection::open(home.join("trace.db")).unwrap();
    for (id, days) in sessions.iter().zip(days) {
        let query = "UPDATE session SET updated_ms = updated_ms - ?2 WHERE id = ?1";
        assert_eq!(conn.execute(query, params![id, days * DAY_MS]).unwrap(), 1);
    }
    drop(conn);
    let config = json!({"retention": retention});
    tree(&home, &[("config/config.json", &config.to_string())]);
    (Daemon::start_in(&home, &[]), sessions.try_into().unwrap())
}

#[tokio::test]
async fn old_sessions_are_packed_and_removed_as_configured() {
    let dir = tempfile::tempdir().unwrap();
    let retention = json!({"maxAgeDays": 30, "keep": 1, "packAfterDays": 7});
    let (daemon, [old, idle, recent]) = aged(dir.path(), [60, 10, 0], &retention).await;
    let home = &daemon.home;
    let (code, page, err) = cairn(home, &["du"]);
    assert_eq!(code, 0, "{err}");
    let beyond = page.lines().find(|line| line.starts_with("1 sessions (")).unwrap();
    assert!(beyond.contains("the daemon removes them from 20"), "{page}");
    assert!(page.contains(&old[30..]) && page.contains("in 3 sessions"), "{page}");
    let (_, plan, _) = cairn(home, &["gc", "--dry-run"]);
    assert!(plan.contains(&old[30..]) && !plan.contains(&idle[30..]), "{plan}");
    let show = |id: &str| cairn(home, &["--json", "trace", "show", id]);
    let before = show(&idle);
    assert!(before.0 == 0 && before.1.lines().count() > 10, "{before:?}");
    // There is no terminal to confirm it.
    let (code, _, err) = cairn(home, &["gc"]);
    assert!(code == 2 && err.contains("--yes"), "{err}");
    assert_eq!(show(&old).0, 0);
    let (code, done, err) = cairn(home, &["gc", "--yes"]);
    assert_eq!(code, 0, "{err}");
    assert!(done.starts_with("removed 1 sessions, packed 1;"), "{done}");
    assert_eq!(show(&old).0, 3);
    assert_eq!(show(&idle), before, "packed records are shown as before");
    assert_eq!(show(&recent).0, 0);
    let usage: Value = serde_json::from_str(&cairn(home, &["--json", "du"]).1).unwrap();
    let log = &usage["log"];
    assert!(log["packedBytes"].as_u64() < log["unpackedBytes"].as_u64(), "{usage}");
    assert_eq!((&log["sessions"], &usage["expired"]["sessions"]), (&json!(2), &json!(0)));
    assert_eq!(usage["indexes"].as_array().unwrap().len(), 3);
    let (_, done, _) = cairn(home, &["gc", "--yes"]);
    assert!(done.starts_with("removed 0 sessions, packed 0;"), "{done}");
    let (code, out, err) = cairn(home, &["trace", "replay", &idle]);
    assert_eq!(code, 0, "{out}{err}");
}

/// `retention.maxBytes` with sessions of any age; a repository's own limits have no effect.
#[tokio::test]
async fn size_of_the_log_is_limited_as_configured() {
    let dir = tempfile::tempdir().unwrap();
    let retention = json!({"maxAgeDays": 0, "maxBytes": 1, "keep": 2, "packAfterDays": 0});
    let (daemon, [old, idle, _]) = aged(dir.path(), [2, 1, 0], &retention).await;
    let folder = dir.path().join("project-1");
    tree(&folder, &[(".cairn.json", r#"{"retention": {"keep": 0}}"#)]);
    let (_, plan, _) = cairn(&daemon.home, &["gc", "--dry-run"]);
    assert!(plan.contains(&old[30..]) && !plan.contains(&idle[30..]), "{plan}");
    let (_, done, _) = cairn(&daemon.home, &["gc", "--yes"]);
    assert!(done.starts_with("removed 1 sessions, packed 0;"), "{done}");
}
