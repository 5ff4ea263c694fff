//! The file tools through complete turns: writes, previews, refusals, records and undo.

use std::{
    os::unix::fs::symlink,
    path::Path,
    sync::{Arc, Mutex},
};

use cairn::{
    ApprovalDecision, Rules, Scripted, ScriptedAnswer, Session, Step,
    protocol::{event::AgentEvt, tool::ToolCallParams},
};
use futures_util::StreamExt as _;
use proptest::{prelude::*, strategy::ValueTree as _};
use serde_json::{Value, json};

use crate::script::{allow_all, call, text_answer};

async fn session(
    root: &Path,
    rules: Rules,
    steps: Vec<Vec<Step>>,
    prompts: &Arc<Mutex<Vec<String>>>,
) -> Session {
    let mut answers: Vec<ScriptedAnswer> = steps.into_iter().map(ScriptedAnswer::new).collect();
    answers.push(text_answer("done"));
    let prompts = Arc::clone(prompts);
    Session::provider(Arc::new(Scripted::new(answers)))
        .root(root)
        .rules(rules)
        .on_approval(move |a| {
            prompts.lock().unwrap().push(a.rule.clone());
            ApprovalDecision::Once
        })
        .init()
        .await
        .unwrap()
}

async fn tool(session: &Session, name: &str, arguments: Value) -> Result<Value, String> {
    let params = ToolCallParams { session_id: session.id().clone(), name: name.into(), arguments };
    let result = session.engine().call_tool(params, None).await.unwrap();
    match result.error {
        None => Ok(result.output),
        Some(error) => Err(format!("{}: {}", error.reason, error.message)),
    }
}

#[tokio::test]
async fn turn_edits_files_records_its_diff_and_is_undone() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.txt"), "one\ntwo\nthree\n").unwrap();
    let prompts = Arc::default();
    let steps = vec![
        vec![call("read_file", json!({"path": "a.txt"}))],
        vec![
            call("edit_file", json!({"path": "a.txt", "old_text": "two", "new_text": "TWO"})),
            call("write_file", json!({"path": "new/b.txt", "content": "fresh\n"})),
        ],
    ];
    let session = session(dir.path(), allow_all(), steps, &prompts).await;
    let result = session.run("go").await.unwrap();
    assert!(result.tool_trace.iter().all(|t| t.outcome == "ok"), "{result:?}");
    assert_eq!(std::fs::read_to_string(dir.path().join("a.txt")).unwrap(), "one\nTWO\nthree\n");
    let records = session.engine().trace().records(session.id(), 0, 500).await.unwrap();
    let diff = records.iter().find_map(|r| match r.body.evt() {
        Some(AgentEvt::TurnDiff { diff, paths, .. }) => Some((diff.clone(), paths.clone())),
        _ => None,
    });
    let (diff, paths) = diff.unwrap();
    assert!(diff.contains("-two\n+TWO\n") && diff.contains("+fresh"), "{diff}");
    assert_eq!(paths, ["a.txt", "new/b.txt"]);
    let undone = tool(&session, "undo_turn", json!({"turnId": result.turn_id})).await.unwrap();
    assert_eq!(undone["restored"].as_array().unwrap().len(), 2);
    assert_eq!(std::fs::read_to_string(dir.path().join("a.txt")).unwrap(), "one\ntwo\nthree\n");
    assert!(!dir.path().join("new/b.txt").exists());
    let second_undo =
        tool(&session, "undo_turn", json!({"turnId": result.turn_id})).await.unwrap_err();
    assert!(second_undo.contains("changed since"), "{second_undo}");
}

#[tokio::test]
async fn unread_file_requires_approval_and_concurrent_change_prevents_the_write() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.txt");
    std::fs::write(&path, "one two").unwrap();
    let prompts: Arc<Mutex<Vec<String>>> = Arc::default();
    let edit =
        |new: &str| call("edit_file", json!({"path": "a.txt", "old_text": "one", "new_text": new}));
    let session1 = session(dir.path(), allow_all(), vec![vec![edit("ONE")]], &prompts).await;
    session1.chat("go").await.unwrap();
    assert_eq!(
        prompts.lock().unwrap().as_slice(),
        ["it edits a file that was not read, or has changed since it was read"]
    );
    // Another process changes the file between the request and the approval.
    std::fs::write(&path, "one two").unwrap();
    let behind = path.clone();
    let session2 = Session::provider(Arc::new(Scripted::new(vec![
        ScriptedAnswer::new(vec![edit("ONE")]),
        text_answer("done"),
    ])))
    .root(dir.path())
    .on_approval(move |_| {
        std::fs::write(&behind, "one two and more").unwrap();
        ApprovalDecision::Once
    })
    .init()
    .await
    .unwrap();
    let result = session2.run("go").await.unwrap();
    assert_eq!(result.tool_trace[0].outcome, "file_changed");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one two and more");
}

#[tokio::test]
async fn version_control_paths_are_blocked_and_rules_allow_deletion() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.txt"), "x").unwrap();
    let prompts: Arc<Mutex<Vec<String>>> = Arc::default();
    let steps = vec![vec![
        call("delete_file", json!({"path": "a.txt"})),
        call("write_file", json!({"path": ".envrc", "content": "x"})),
        call("write_file", json!({"path": ".git/hooks/pre-commit", "content": "x"})),
    ]];
    let session = session(dir.path(), allow_all(), steps, &prompts).await;
    let result = session.run("go").await.unwrap();
    // A call that cannot succeed requires no approval: version control is closed. A rule allows
    // deleting (P8).
    assert_eq!(prompts.lock().unwrap().len(), 1, "{prompts:?}");
    let outcomes: Vec<_> = result.tool_trace.iter().map(|t| t.outcome.as_str()).collect();
    assert_eq!(outcomes, ["ok", "ok", "path_blocked"]);
    assert!(!dir.path().join("a.txt").exists() && !dir.path().join(".git").exists());
}

/// Paths that try to escape: dots, links, absolute ones, dots of other scripts, long ones.
fn escape() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => Just("..".to_owned()),
        2 => Just("out".to_owned()),
        2 => Just("in".to_owned()),
        1 => Just(".".to_owned()),
        1 => Just(String::new()),
        1 => Just("．．".to_owned()),
        1 => Just("..\u{0}".to_owned()),
        1 => Just("file".to_owned()),
        1 => Just(".git".to_owned()),
        1 => Just("a".repeat(300)),
        1 => "[ -~]{1,8}".prop_map(|s| s),
    ];
    let head = prop_oneof![3 => Just(String::new()), 1 => Just("/".to_owned()), 1 => Just("ROOT/".to_owned()), 1 => Just("~/".to_owned())];
    (head, prop::collection::vec(part, 1..7)).prop_map(|(head, parts)| head + &parts.join("/"))
}

/// Approves every deletion, which always requires an approval.
fn approve_all(runtime: &tokio::runtime::Runtime, session: &Session) {
    let (engine, id) = (session.engine().clone(), session.id().clone());
    runtime.spawn(async move {
        let (mut follower, _) =
            engine.trace().follow(&id, &cairn::protocol::session::After::Seq(0)).await.unwrap();
        while let Ok(step) = follower.step().await {
            let cairn::record::Step::Records(lines) = step else { continue };
            for line in lines {
                let record: cairn::protocol::envelope::Envelope =
                    serde_json::from_str(&line).unwrap();
                if let Some(AgentEvt::ApprovalRequired { approval }) = record.body.evt() {
                    let params = cairn::protocol::approval::ApprovalResolveParams {
                        approval_id: approval.approval_id.clone(),
                        decision: ApprovalDecision::Once,
                        reason: None,
                        pattern: None,
                        values: Default::default(),
                    };
                    engine.resolve_approval(params, "test").await.unwrap();
                }
            }
        }
    });
}

#[test]
fn no_path_escapes_the_root() {
    let dir = tempfile::tempdir().unwrap();
    let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
    for folder in [&root, &outside, &root.join("in")] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(outside.join("file"), "SECRET outside").unwrap();
    std::fs::write(dir.path().join("file"), "SECRET above").unwrap();
    symlink(&outside, root.join("out")).unwrap();
    symlink("../outside/file", root.join("file")).unwrap();
    symlink("..", root.join("in/up")).unwrap();
    let snapshot = |at: &Path| {
        let mut all: Vec<_> = std::fs::read_dir(at).unwrap().map(|e| e.unwrap().path()).collect();
        all.sort();
        all.iter().map(|p| (p.clone(), std::fs::read(p).ok())).collect::<Vec<_>>()
    };
    let before = (snapshot(&outside), snapshot(dir.path()).len());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let prompts = Arc::default();
    let session = runtime.block_on(session(&root, allow_all(), vec![], &prompts));
    approve_all(&runtime, &session);
    let mut runner = proptest::test_runner::TestRunner::default();
    let mut ran = 0;
    for _ in 0..30 {
        let paths: Vec<String> = (0..28)
            .map(|_| {
                escape()
                    .new_tree(&mut runner)
                    .unwrap()
                    .current()
                    .replace("ROOT", root.to_str().unwrap())
            })
            .collect();
        let work = futures_util::stream::iter(paths.iter().flat_map(|path| {
            let calls = [
                ("read_file", json!({"path": path})),
                ("write_file", json!({"path": path, "content": "ESCAPED"})),
                ("edit_file", json!({"path": path, "old_text": "SECRET", "new_text": "ESCAPED"})),
                ("delete_file", json!({"path": path})),
                ("list_files", json!({"pattern": "*", "path": path})),
                ("search_files", json!({"pattern": "SECRET", "path": path})),
            ];
            let session = &session;
            calls.map(|(name, arguments)| async move {
                (name, path, tool(session, name, arguments).await)
            })
        }));
        for (name, path, answer) in runtime.block_on(work.buffer_unordered(32).collect::<Vec<_>>())
        {
            ran += 1;
            let output = answer.map(|v| v.to_string()).unwrap_or_default();
            assert!(!output.contains("SECRET"), "{name} {path}: {output}");
        }
        // Links inside the root that a call replaced are restored.
        let _exists = symlink(&outside, root.join("out"));
        let _exists = symlink("../outside/file", root.join("file"));
    }
    assert!(ran >= 5000, "{ran}");
    assert_eq!((snapshot(&outside), snapshot(dir.path()).len()), before);
    // Positive control: the same calls succeed inside the root.
    std::fs::write(root.join("in/x"), "SECRET inside").unwrap();
    let read = runtime.block_on(tool(&session, "read_file", json!({"path": "in/x"}))).unwrap();
    assert!(read.to_string().contains("SECRET inside"));
}
