//! Traces that are exported and imported again.

use std::{path::Path, process::Stdio};

use serde_json::json;

use crate::sealed::{Daemon, command, tree};

fn cairn(home: &Path, args: &[&str]) -> (bool, String) {
    let output =
        command(home).args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout) + &text(&output.stderr))
}

#[tokio::test]
async fn trace_larger_than_a_message_is_imported_unchanged() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    // Quotes and backslashes: the lines that grow most on the wire.
    tree(dir.path(), &[("a.txt", &"\"\\\n".repeat(20_000))]);
    let mut raw = daemon.client().await;
    let session = raw.open_session(dir.path()).await;
    let span = json!({"path": "a.txt", "start": 1, "end": 2000});
    for _ in 0..700 {
        assert_eq!(raw.call_tool(&session, "content_get_span", span.clone()).await["ok"], true);
    }
    let (id, file) = (session.as_str().unwrap(), dir.path().join("export.jsonl"));
    let path = file.to_str().unwrap();
    assert!(cairn(&daemon.home, &["trace", "export", id, "-o", path]).0);
    let size = file.metadata().unwrap().len();
    assert!(size > 5 * 1024 * 1024, "{size}");
    let (fine, records) = cairn(&daemon.home, &["--json", "trace", "show", id]);
    assert!(fine);
    let (fine, message) = cairn(&daemon.home, &["trace", "import", path]);
    assert!(!fine && message.contains("already exists"), "{message}");
    raw.ok("session.delete", json!({"sessionId": session})).await;
    let (fine, message) = cairn(&daemon.home, &["trace", "import", path]);
    assert!(fine && message.contains(id), "{message}");
    assert!(
        cairn(&daemon.home, &["--json", "trace", "show", id]) == (true, records),
        "it is not as it was"
    );
    let got = raw.ok("session.get", json!({"sessionId": session})).await;
    assert_eq!(got["headSeq"], 2100, "{got}");
}
