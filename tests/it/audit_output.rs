//! `cairn serve --audit-stdout`, with readers that read, stop reading, and leave.

use std::io::{BufRead as _, BufReader};

use serde_json::{Value, json};

use crate::sealed::{Daemon, Raw, cairn, tree};

async fn read_file(raw: &mut Raw, session: &Value) -> Value {
    raw.call_tool(session, "read_file", json!({"path": "a.txt"})).await
}

#[tokio::test]
async fn calls_are_printed_when_they_start_and_when_they_end() {
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("root"));
    tree(&root, &[("a.txt", "a\n")]);
    let (mut daemon, output) = Daemon::start_piped(&home, &["--audit-stdout"]);
    let mut raw = daemon.client().await;
    let session = raw.open_session(&root).await;
    read_file(&mut raw, &session).await;
    let denied = raw.call_tool(&session, "write_file", json!({"path": "b", "content": "b"})).await;
    assert_eq!(denied["error"]["reason"], "no_approver", "{denied}");
    let audit = raw.ok("audit.query", json!({})).await;
    assert!(daemon.stop().success());
    let lines: Vec<Value> = BufReader::new(output)
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    let of = |tool: &str| -> Vec<&Value> { lines.iter().filter(|l| l["tool"] == tool).collect() };
    let read = of("read_file");
    // A quick call may be complete when its first line is written.
    let last = read.last().unwrap();
    assert!(read.len() <= 2 && read.iter().all(|line| line["id"] == last["id"]), "{lines:#?}");
    assert_eq!((&last["decision"], &last["outcome"]), (&json!("allow"), &json!("ok")), "{last}");
    let refused = of("write_file");
    assert_eq!((refused.len(), &refused[0]["decision"]), (1, &json!("deny")), "{lines:#?}");
    // The lines are the rows of the audit.
    for row in audit["data"].as_array().unwrap() {
        assert!(lines.contains(row), "{row}");
    }
    // Rows of earlier starts are not printed again.
    let (mut daemon, output) = Daemon::start_piped(&home, &["--audit-stdout"]);
    assert!(daemon.stop().success());
    assert_eq!(BufReader::new(output).lines().count(), 0);
}

#[tokio::test]
async fn reader_that_stops_or_leaves_does_not_delay_the_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let (home, root) = (dir.path().join("home"), dir.path().join("root"));
    tree(&root, &[("a.txt", "a\n")]);
    for leaves in [false, true] {
        let (mut daemon, output) = Daemon::start_piped(&home, &["--audit-stdout"]);
        let output = (!leaves).then_some(output);
        let mut raw = daemon.client().await;
        let session = raw.open_session(&root).await;
        // More than a pipe and the queue of lines can store.
        for _ in 0..700 {
            let answer = read_file(&mut raw, &session).await;
            assert!(answer["error"].is_null(), "{answer}");
        }
        assert!(daemon.stop().success(), "it waits for its reader");
        drop(output);
    }
    let (code, _, errors) = cairn(&home, &root, &["serve", "--audit-stdout", "--on-demand"]);
    assert_eq!(code, 2, "{errors}");
}
