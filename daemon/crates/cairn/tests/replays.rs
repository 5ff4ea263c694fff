//! Stored traces of Cairn's own runs are replayed: inputs and effects of a turn, results of an
//! explore.
//!
//! When the system text or a tool's text changes on purpose, `CAIRN_UPDATE=1` records them again.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use cairn::{
    Engine, Rules, Scripted, ScriptedAnswer, ScriptedCall, Session, Step, Verdict,
    protocol::{
        explore::ExploreStartParams,
        index::AddRootParams,
        session::After,
        trace::{ReplayParams, ReplayReport},
    },
    record,
};
use serde_json::{Value, json};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Copies the project into a folder with a new name.
fn project(dir: &Path) -> PathBuf {
    let to = dir.canonicalize().unwrap().join("project");
    for file in ["README.md", "Cargo.toml", "src/lib.rs"] {
        std::fs::create_dir_all(to.join(file).parent().unwrap()).unwrap();
        std::fs::copy(fixtures().join("project").join(file), to.join(file)).unwrap();
    }
    to
}

/// Creates a session in a folder, whose model returns these answers.
async fn session(root: &Path, answers: Vec<ScriptedAnswer>) -> Session {
    let rules =
        Rules { allow: vec!["*".parse().unwrap()], default: Verdict::Allow, ..Rules::default() };
    Session::provider(Arc::new(Scripted::new(answers)))
        .root(root)
        .rules(rules)
        .init()
        .await
        .unwrap()
}

async fn exported(engine: &Engine, id: &cairn::protocol::id::SessionId) -> String {
    let (mut jsonl, mut cursor) = (String::new(), None);
    loop {
        let part = engine.trace().export(id, cursor.as_deref()).await.unwrap();
        jsonl.push_str(&part.jsonl);
        cursor = part.next_cursor;
        if cursor.is_none() {
            return jsonl;
        }
    }
}

async fn wait_completed(engine: &Engine, id: &cairn::protocol::id::SessionId) {
    let (mut follower, _) = engine.trace().follow(id, &After::Seq(0)).await.unwrap();
    loop {
        if let record::Step::Records(lines) = follower.step().await.unwrap() {
            let ends = |line: &record::Line| line.contains(r#""type":"completed""#);
            if lines.iter().any(ends) {
                return;
            }
        }
    }
}

fn call(name: &str, arguments: Value) -> ScriptedAnswer {
    let step = Step::Call(ScriptedCall { id: None, name: name.into(), arguments });
    ScriptedAnswer::new(vec![Step::Text(format!("Next: {name}.")), step])
}

/// Records a turn that searches, reads and changes a file, and one that only reads.
async fn recorded_turn() -> String {
    let dir = tempfile::tempdir().unwrap();
    let root = project(dir.path());
    let answers = vec![
        call("search_files", json!({"pattern": "partition_point"})),
        call("read_file", json!({"path": "src/lib.rs"})),
        call(
            "edit_file",
            json!({"path": "src/lib.rs", "old_text": "A book.", "new_text": "A book on the shelf."}),
        ),
        ScriptedAnswer::new(vec![Step::Text("The comment says more now.".into())]),
        call("read_file", json!({"path": "README.md"})),
        ScriptedAnswer::new(vec![Step::Text("It keeps books in order.".into())]),
    ];
    let session = session(&root, answers).await;
    session.run("Where are books put in order? Say more in the comment.").await.unwrap();
    session.run("What is this?").await.unwrap();
    exported(session.engine(), session.id()).await
}

async fn recorded_explore() -> String {
    let dir = tempfile::tempdir().unwrap();
    let root = project(dir.path());
    let session = session(&root, vec![]).await;
    let params = ExploreStartParams {
        root: Some(root.to_string_lossy().into_owned()),
        goals: vec!["how are books kept in order".into()],
        ..ExploreStartParams::default()
    };
    let receipt = session.engine().start_explore(params, None).await.unwrap();
    wait_completed(session.engine(), &receipt.session_id).await;
    exported(session.engine(), &receipt.session_id).await
}

/// Returns the stored trace of that name, recorded again if `CAIRN_UPDATE` is set.
async fn stored_trace(name: &str, record: impl Future<Output = String>) -> String {
    let file = fixtures().join(name);
    if std::env::var_os("CAIRN_UPDATE").is_some() {
        std::fs::write(&file, record.await).unwrap();
    }
    std::fs::read_to_string(&file).unwrap()
}

/// Replays a trace in a copy of the project after `change` was applied.
async fn replayed(jsonl: &str, change: impl FnOnce(&Path)) -> ReplayReport {
    let dir = tempfile::tempdir().unwrap();
    let root = project(dir.path());
    change(&root);
    let session = session(&root, vec![]).await;
    let engine = session.engine();
    let trace_id = engine.trace().import(jsonl).await.unwrap().session_id;
    let path = root.to_string_lossy().into_owned();
    engine.add_root(AddRootParams { path: path.clone(), request_id: None }).await.unwrap();
    engine.replay(ReplayParams { trace_id, root: Some(path) }).await.unwrap()
}

#[tokio::test]
async fn stored_turn_replays_identically_and_a_changed_file_is_reported() {
    let jsonl = stored_trace("turn.jsonl", recorded_turn()).await;
    let report = replayed(&jsonl, |_| {}).await;
    assert!(report.identical, "{report:?}");
    assert!(report.compared > 10, "{report:?}");
    let report =
        replayed(&jsonl, |root| std::fs::write(root.join("README.md"), "# Another\n").unwrap())
            .await;
    let first = report.first.unwrap();
    assert!(first.what.contains("read_file"), "{first:?}");
}

#[tokio::test]
async fn stored_explore_replays_identically_and_a_changed_file_is_reported() {
    let jsonl = stored_trace("explore.jsonl", recorded_explore()).await;
    let report = replayed(&jsonl, |_| {}).await;
    assert!(report.identical, "{report:?}");
    assert!(report.compared > 5, "{report:?}");
    let report =
        replayed(&jsonl, |root| std::fs::write(root.join("README.md"), "# Another\n").unwrap())
            .await;
    assert!(!report.identical && report.first.is_some(), "{report:?}");
}
