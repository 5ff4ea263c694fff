//! Search in the log.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use cairn_protocol::{
    envelope::Body,
    event::AgentEvt,
    history::{HistoryAnswer, HistoryKind, HistoryParams},
    id::{RunId, SessionId},
    model::Part,
    time::Timestamp,
};
use cairn_trace::{Append, ForkCut, NewRecord, NewSession, Trace};
use serde_json::json;
use uuid::Uuid;

fn record(evt: AgentEvt) -> NewRecord {
    NewRecord { id: Uuid::now_v7(), parent_id: None, origin: None, body: Body::Evt { evt } }
}

fn question(text: &str) -> NewRecord {
    record(AgentEvt::TurnAccepted {
        run_id: RunId::new(),
        turn_id: "t".into(),
        input: vec![Part::Text { text: text.into() }],
        policy: None,
        metadata: Default::default(),
    })
}

fn command(line: &str) -> NewRecord {
    let arguments = json!({"command": line});
    record(AgentEvt::ToolCall { call_id: "c".into(), name: "run_shell".into(), arguments })
}

fn changed(paths: &[&str]) -> NewRecord {
    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
    record(AgentEvt::TurnDiff { turn_id: "t".into(), diff: String::new(), paths })
}

async fn session(trace: &Trace, root: &str, records: Vec<NewRecord>) -> SessionId {
    let new = NewSession { title: "t".into(), root: Some(root.into()), ..NewSession::default() };
    let id = trace.create_session(new).await.unwrap().session_id;
    trace.append(Append::new(&id, records)).await.unwrap();
    id
}

fn query(words: &str) -> HistoryParams {
    HistoryParams { query: words.into(), ..HistoryParams::default() }
}

fn found(answer: &HistoryAnswer) -> Vec<(&str, u64)> {
    assert_eq!(answer.pending, 0);
    answer.data.iter().map(|entry| (entry.kind.as_str(), entry.seq)).collect()
}

#[tokio::test]
async fn entries_are_found_by_words_kind_root_and_file() {
    let dir = tempfile::tempdir().unwrap();
    let trace = Trace::open(&dir.path().join("trace.db")).unwrap();
    let records = vec![
        question("Why does the retry backoff overflow?"),
        command("cargo test backoff -- --nocapture"),
        changed(&["src/retry.rs", "src/deep/queue.rs"]),
        record(AgentEvt::Steered { run_id: RunId::new(), text: "größer, bitte".into() }),
    ];
    let one = session(&trace, "/work/a", records).await;
    session(&trace, "/work/b", vec![question("queue the backoff work")]).await;
    let search = |params: HistoryParams| trace.search_history(params);
    for (words, expected) in [
        ("backoff overflow", &[("question", 1)][..]),
        ("BACKOFF nocap", &[("command", 2)]),
        ("grosser größer", &[("question", 4)]),
        ("overflow absent", &[("question", 1)]),
        ("absent", &[]),
        ("\" OR text:* (NEAR", &[]),
    ] {
        assert_eq!(found(&search(query(words)).await.unwrap()), expected, "{words}");
    }
    let kinds = Some(vec![HistoryKind::Command]);
    let commands = search(HistoryParams { kinds, ..query("backoff") }).await.unwrap();
    assert_eq!(found(&commands), [("command", 2)]);
    let root = Some("/work/b".to_owned());
    let there = search(HistoryParams { root, ..query("backoff") }).await.unwrap();
    assert_eq!(found(&there), [("question", 1)]);
    assert_ne!(there.data[0].session_id, one);
    for (file, words, expected) in [
        ("src/deep/queue.rs", "", &[("file", 3)][..]),
        ("queue.rs", "", &[("file", 3)]),
        ("./src/retry.rs", "overflow", &[("question", 1)]),
        ("ueue.rs", "", &[]),
        ("queue.rs", "work", &[]),
    ] {
        let params = HistoryParams { file: Some(file.into()), ..query(words) };
        assert_eq!(found(&search(params).await.unwrap()), expected, "{file} {words}");
    }
    let newest = search(query(" ?! ")).await.unwrap();
    assert_eq!(found(&newest).len(), 5);
    assert_eq!(newest.data[0].text, "queue the backoff work");
    let long = search(query(&"x".repeat(1001))).await;
    assert_eq!(long.unwrap_err().reason().as_str(), "invalid_params");
    let limited = search(HistoryParams { limit: Some(1), ..query("backoff") }).await.unwrap();
    assert_eq!(limited.data.len(), 1);
}

#[tokio::test]
async fn forks_are_found_once_and_deleted_sessions_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let trace = Trace::open(&dir.path().join("trace.db")).unwrap();
    let id = session(&trace, "/work/a", vec![question("needle"), changed(&["a.rs"])]).await;
    let cut = ForkCut { upto: 2, ..ForkCut::default() };
    let fork = trace.fork(&id, cut, "fork".into()).await.unwrap().session_id;
    trace.append(Append::new(&fork, vec![question("another needle")])).await.unwrap();
    let answer = trace.search_history(query("needle")).await.unwrap();
    assert_eq!(answer.data.len(), 2, "{answer:?}");
    // Packed records have their text as before.
    trace.pack(Timestamp(i64::MAX / 2)).await.unwrap();
    let packed = trace.search_history(query("needle")).await.unwrap();
    assert_eq!(packed, answer);
    trace.delete_session(&id).await.unwrap();
    let rest = trace.search_history(query("needle")).await.unwrap();
    assert!(rest.data.iter().all(|entry| entry.session_id == fork), "{rest:?}");
    assert_eq!(rest.data.len(), 2);
    trace.delete_session(&fork).await.unwrap();
    trace.reclaim().await.unwrap();
    let conn = cairn_store::open_read_only(&dir.path().join("trace.db")).unwrap();
    for table in ["history", "history_file", "history_text_docsize"] {
        let query = format!("SELECT count(*) FROM {table}");
        let count: i64 = conn.query_row(&query, [], |row| row.get(0)).unwrap();
        assert_eq!(count, 0, "{table}");
    }
    assert!(trace.search_history(query("needle")).await.unwrap().data.is_empty());
}
