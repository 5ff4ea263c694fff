//! `git.autoCommit` commits the changes of a turn, and nothing else.

use std::{path::Path, process::Command, sync::Arc};

use cairn::{
    Scripted, Session, TurnSettings,
    protocol::{event::AgentEvt, turn::Outcome},
};
use serde_json::json;

use crate::script::{allow_all, call_answer, text_answer};

fn git(at: &Path, args: &[&str]) -> String {
    let out = Command::new("git").args(args).current_dir(at).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

fn script() -> Scripted {
    let write =
        |text: &str| call_answer("write_file", json!({"path": "made.txt", "content": text}));
    let done = || text_answer("done");
    Scripted::new(vec![write("one\n"), done(), done(), write("two\n"), done()])
}

async fn commits(session: &Session) -> Vec<(String, Vec<String>)> {
    let records = session.engine().trace().records(session.id(), 0, 500).await.unwrap();
    let one = |evt: &AgentEvt| match evt {
        AgentEvt::GitCommit { message, paths, .. } => Some((message.clone(), paths.clone())),
        AgentEvt::Warning { op, message } if op == "git_commit" => Some((message.clone(), vec![])),
        _ => None,
    };
    records.iter().filter_map(|r| r.body.evt().and_then(one)).collect()
}

async fn session(root: &Path, prefix: Option<&str>) -> Session {
    let settings =
        TurnSettings { auto_commit: prefix.map(str::to_owned), ..TurnSettings::default() };
    Session::provider(Arc::new(script()))
        .root(root)
        .rules(allow_all())
        .turn_settings(settings)
        .init()
        .await
        .unwrap()
}

#[tokio::test]
async fn only_turns_with_changes_are_committed() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    git(at, &["init", "-q", "-b", "main"]);
    std::fs::write(at.join("mine.txt"), "not for the commit").unwrap();
    let session = session(at, Some("[cairn]")).await;
    session.run("\n  Make the file\nand more words").await.unwrap();
    session.run("just talk").await.unwrap();
    let want = vec![("[cairn] Make the file".to_owned(), vec!["made.txt".to_owned()])];
    assert_eq!(commits(&session).await, want);
    assert_eq!(
        git(at, &["log", "--format=%s", "--name-only"]),
        "[cairn] Make the file\n\nmade.txt\n"
    );
    assert_eq!(git(at, &["status", "--porcelain"]), "?? mine.txt\n");
    // During a merge of the user's nothing is committed, and the turn still succeeds.
    std::fs::write(at.join(".git/MERGE_HEAD"), git(at, &["rev-parse", "HEAD"])).unwrap();
    let result = session.run("change it").await.unwrap();
    assert_eq!(result.status, Outcome::Completed);
    assert!(commits(&session).await[1].0.contains("in progress"));
    assert_eq!(std::fs::read_to_string(at.join("made.txt")).unwrap(), "two\n");
}

#[tokio::test]
async fn nothing_is_committed_by_default() {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q"]);
    let session = session(dir.path(), None).await;
    session.run("Make the file").await.unwrap();
    assert!(commits(&session).await.is_empty());
    assert_eq!(git(dir.path(), &["status", "--porcelain"]), "?? made.txt\n");
}
