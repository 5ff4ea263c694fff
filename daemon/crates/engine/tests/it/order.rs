//! The order of turns, and their records in the log.

use std::path::Path;

use cairn_protocol::{
    approval::{ApprovalDecision, ApprovalListParams, ApprovalResolveParams},
    error::Reason,
    event::AgentEvt,
    explore::RunState,
    session::ForkParams,
    turn::{ExecutionPolicy, Input, Outcome, RunStartParams, TurnRef},
};

use crate::stage::{Setup, Stage, World, ends, turn_params};

async fn stage(dir: &Path, setup: &Setup) -> Stage {
    Stage::open(dir, &World::default(), setup).await
}

// S1
#[tokio::test]
async fn queued_turn_that_cannot_start_fails_and_queue_continues() {
    let dir = tempfile::tempdir().unwrap();
    let stage = stage(dir.path(), &Setup { max_runs: 1, ..Setup::new() }).await;
    let root = stage.root(&dir.path().join("repo")).await;
    let session = stage.session(Some(&root)).await;
    stage.start(&session, "a", "gate go").await.unwrap();
    stage.start(&session, "b", "note b").await.unwrap();
    stage.start(&session, "c", "note c").await.unwrap();
    stage.remove_root(&root).await;
    stage.world.open("go");
    assert_eq!(stage.wait_for_end(&session, "a").await.0, Outcome::Completed);
    for turn in ["b", "c"] {
        let failed = (Outcome::Failed, Some(Reason::RootNotFound.as_str().to_owned()));
        assert_eq!(stage.wait_for_end(&session, turn).await, failed, "{turn}");
    }
    assert_eq!(ends(&stage.records(&session).await), ["a", "b", "c"]);
    assert_eq!(stage.state(&session).await, RunState::Failed);
    // The single permit is returned.
    stage.root(&root).await;
    stage.start(&session, "d", "note d").await.unwrap();
    assert_eq!(stage.wait_for_end(&session, "d").await.0, Outcome::Completed);
    assert_eq!(stage.world.acts().get("b"), None);
}

#[tokio::test]
async fn session_queue_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let stage = stage(dir.path(), &Setup::new()).await;
    let session = stage.session(None).await;
    let mut accepted = 0;
    for n in 0..50 {
        match stage.start(&session, &format!("t{n}"), "gate go").await {
            Ok(()) => accepted += 1,
            Err(failure) => assert_eq!(failure.reason, Reason::Overloaded),
        }
    }
    // One is active, 32 wait.
    assert_eq!(accepted, 33);
    assert_eq!(stage.engine.run_status(&session).await.unwrap().queued, 32);
    stage.world.open("go");
    stage.wait_for_end(&session, "t32").await;
    let expected: Vec<String> = (0..33).map(|n| format!("t{n}")).collect();
    assert_eq!(ends(&stage.records(&session).await), expected);
}

// S2
#[tokio::test]
async fn rejected_turn_leaves_no_record() {
    let dir = tempfile::tempdir().unwrap();
    let stage = stage(dir.path(), &Setup::new()).await;
    let root = stage.root(&dir.path().join("repo")).await;
    let session = stage.session(Some(&root)).await;
    stage.remove_root(&root).await;
    for _ in 0..2 {
        let failure = stage.start(&session, "a", "note a").await.unwrap_err();
        assert_eq!(failure.reason, Reason::RootNotFound);
        assert_eq!(stage.records(&session).await.len(), 0);
    }
    let bad = Input::Parts(vec![
        serde_json::from_value(
            serde_json::json!({"type": "image", "mime": "image/png", "data": "!!!"}),
        )
        .unwrap(),
    ]);
    // P13
    let params = RunStartParams { input: bad, ..turn_params(&session, "a", "") };
    assert_eq!(
        stage.engine.start_run(params, None).await.unwrap_err().reason,
        Reason::InvalidParams
    );
    stage.root(&root).await;
    stage.start(&session, "a", "note a").await.unwrap();
    assert_eq!(stage.wait_for_end(&session, "a").await.0, Outcome::Completed);
    let unknown = stage.start(&cairn_protocol::id::SessionId::new(), "a", "").await.unwrap_err();
    assert_eq!(unknown.reason, Reason::SessionNotFound);
}

// S3
#[tokio::test]
async fn no_run_starts_between_queued_turns() {
    let dir = tempfile::tempdir().unwrap();
    let stage = stage(dir.path(), &Setup::new()).await;
    let root = stage.root(&dir.path().join("repo")).await;
    let session = stage.session(Some(&root)).await;
    stage.start(&session, "a", "gate a").await.unwrap();
    stage.start(&session, "b", "gate b").await.unwrap();
    stage.world.open("a");
    stage.wait_for_end(&session, "a").await;
    // At any look after the end of `a`, the session is not idle.
    assert_eq!(stage.state(&session).await, RunState::Running);
    let explore = stage.explore(Some(&session), &root, &[]);
    assert_eq!(
        stage.engine.start_explore(explore, None).await.unwrap_err().reason,
        Reason::SessionBusy
    );
    stage.world.open("b");
    stage.wait_for_end(&session, "b").await;
    assert_eq!(stage.state(&session).await, RunState::Completed);
    let kinds: Vec<String> = stage.records(&session).await.iter().filter_map(kind).collect();
    assert_eq!(
        kinds,
        [
            "turn_accepted",
            "run_started",
            "turn_accepted",
            "run_completed",
            "run_started",
            "run_completed"
        ]
    );
}

fn kind(record: &cairn_protocol::envelope::Envelope) -> Option<String> {
    let value = serde_json::to_value(record.body.evt()?).unwrap();
    value["type"].as_str().map(str::to_owned)
}

// S3
#[tokio::test]
async fn resume_runs_turns_queued_at_shutdown_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup { drain: std::time::Duration::from_secs(60), ..Setup::new() };
    let first = stage(dir.path(), &setup).await;
    let session = first.session(None).await;
    first.start(&session, "a", "gate a").await.unwrap();
    for turn in ["b", "c"] {
        first.start(&session, turn, "note x").await.unwrap();
    }
    let engine = first.engine.clone();
    let closing = tokio::spawn(async move { engine.close().await });
    while first.start(&session, "late", "").await.err().map(|e| e.reason)
        != Some(Reason::ShuttingDown)
    {
        tokio::task::yield_now().await;
    }
    // `a` finishes within the drain; `b` does not start.
    first.world.open("a");
    closing.await.unwrap();
    assert_eq!(ends(&first.records(&session).await), ["a"]);
    assert_eq!(first.state(&session).await, RunState::Interrupted);
    let world = first.world.clone();
    drop(first);
    let next = Stage::open(dir.path(), &world, &setup).await;
    next.engine.resume_session(&session).await.unwrap();
    assert_eq!(next.wait_for_end(&session, "c").await.0, Outcome::Completed);
    let records = next.records(&session).await;
    let done: Vec<String> = ends(&records).into_iter().filter(|turn| turn != "late").collect();
    assert_eq!(done, ["a", "b", "c"]);
    // The data that clients sent with a turn is there after a restart.
    let of = |evt: &AgentEvt| match evt {
        AgentEvt::RunCompleted { result } if result.turn_id == "c" => {
            result.metadata.get("of").cloned()
        }
        _ => None,
    };
    assert_eq!(records.iter().filter_map(|r| r.body.evt()).find_map(of).as_deref(), Some("c"));
}

#[tokio::test]
async fn turn_for_interrupted_session_is_queued_last() {
    let dir = tempfile::tempdir().unwrap();
    let first = stage(dir.path(), &Setup::new()).await;
    let session = first.session(None).await;
    first.start(&session, "a", "note one; gate a; note two").await.unwrap();
    first.start(&session, "b", "note b").await.unwrap();
    first.world.acted("one").await;
    first.engine.close().await;
    let world = first.world.clone();
    drop(first);
    let next = Stage::open(dir.path(), &world, &Setup::new()).await;
    next.start(&session, "c", "note c").await.unwrap();
    next.world.open("a");
    next.wait_for_end(&session, "c").await;
    assert_eq!(ends(&next.records(&session).await), ["a", "b", "c"]);
    assert_eq!(next.world.acts().get("one"), Some(&1), "what was done is not done again");
}

#[tokio::test]
async fn turns_of_interrupted_session_can_be_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    let first = stage(dir.path(), &Setup::new()).await;
    let session = first.session(None).await;
    first.start(&session, "a", "act a").await.unwrap();
    first.start(&session, "b", "note b").await.unwrap();
    first.until(&session, |e| matches!(e, AgentEvt::ApprovalRequired { .. }).then_some(())).await;
    first.engine.close().await;
    drop(first);
    let next = stage(dir.path(), &Setup::new()).await;
    let turn = |id: &str| TurnRef { session_id: session.clone(), turn_id: Some(id.into()) };
    next.engine.cancel_run(turn("b")).await.unwrap();
    assert_eq!(next.state(&session).await, RunState::Interrupted);
    next.engine.cancel_run(turn("a")).await.unwrap();
    assert_eq!(next.state(&session).await, RunState::Stopped);
    assert_eq!(
        next.engine.resume_session(&session).await.unwrap_err().reason,
        Reason::NotResumable
    );
    // The approval request of a turn that does not resume is closed.
    assert_eq!(next.engine.approvals(ApprovalListParams::default()).await.unwrap(), []);
}

// S4
#[tokio::test]
async fn fork_before_queued_turn_copies_all_earlier_turns() {
    let dir = tempfile::tempdir().unwrap();
    let stage = stage(dir.path(), &Setup::new()).await;
    let session = stage.session(None).await;
    stage.start(&session, "a", "gate a; note one").await.unwrap();
    stage.start(&session, "b", "note two").await.unwrap();
    stage.start(&session, "c", "note three").await.unwrap();
    let turn = TurnRef { session_id: session.clone(), turn_id: Some("c".into()) };
    stage.engine.cancel_run(turn).await.unwrap();
    stage.world.open("a");
    stage.wait_for_end(&session, "b").await;
    let fork = |before: &str| {
        let (session_id, before_turn_id) = (session.clone(), Some(before.to_owned()));
        stage.engine.fork_session(ForkParams { session_id, before_turn_id, title: None })
    };
    for (before, expected) in [("b", vec!["a"]), ("c", vec!["a", "b"]), ("a", vec![])] {
        let forked = fork(before).await.unwrap();
        let records = stage.records(&forked.session_id).await;
        assert_eq!(ends(&records), expected, "before {before}");
        let accepted =
            records.iter().filter(|r| kind(r).as_deref() == Some("turn_accepted")).count();
        assert_eq!(accepted, expected.len(), "before {before}");
        let results = records.iter().filter(|r| kind(r).as_deref() == Some("tool_result")).count();
        assert_eq!(
            results,
            expected.len(),
            "before {before}: answers of the turns before are there"
        );
        let seqs: Vec<u64> = records.iter().map(|r| r.seq).collect();
        assert_eq!(seqs, (1..=forked.head_seq).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn fork_of_interrupted_session_has_no_open_turn() {
    let dir = tempfile::tempdir().unwrap();
    let first = stage(dir.path(), &Setup::new()).await;
    let session = first.session(None).await;
    first.start(&session, "a", "note one; gate a").await.unwrap();
    first.start(&session, "b", "note b").await.unwrap();
    first.world.acted("one").await;
    first.engine.close().await;
    drop(first);
    let next = stage(dir.path(), &Setup::new()).await;
    let params = ForkParams { session_id: session.clone(), before_turn_id: None, title: None };
    let forked = next.engine.fork_session(params).await.unwrap().session_id;
    assert_eq!(ends(&next.records(&forked).await), ["a"]);
    assert_eq!(next.engine.resume_session(&forked).await.unwrap_err().reason, Reason::NotResumable);
    next.start(&forked, "n", "note n").await.unwrap();
    assert_eq!(next.wait_for_end(&forked, "n").await.0, Outcome::Completed);
}

// S6
#[tokio::test]
async fn automatic_commit_belongs_to_its_turn() {
    let dir = tempfile::tempdir().unwrap();
    let stage = stage(dir.path(), &Setup { auto_commit: true, ..Setup::new() }).await;
    let root = stage.root(&dir.path().join("repo")).await;
    let session = stage.session(Some(&root)).await;
    let params = |turn: &str, ops: &[&str]| RunStartParams {
        policy: Some(ExecutionPolicy {
            ops: Some(ops.iter().map(|&op| op.to_owned()).collect()),
            ..ExecutionPolicy::default()
        }),
        ..turn_params(&session, turn, &format!("write {turn}.txt"))
    };
    stage.engine.start_run(params("a", &["note", "git_commit"]), None).await.unwrap();
    stage.wait_for_end(&session, "a").await;
    stage.engine.start_run(params("b", &["note"]), None).await.unwrap();
    stage.wait_for_end(&session, "b").await;
    let kinds: Vec<String> = stage.records(&session).await.iter().filter_map(kind).collect();
    let tail = |turn: usize| {
        let end =
            kinds.iter().enumerate().filter(|(_, k)| *k == "run_completed").nth(turn).unwrap().0;
        kinds[end - 2..=end].to_vec()
    };
    assert_eq!(tail(0), ["turn_diff", "git_commit", "run_completed"]);
    // A turn that may not commit does not commit at its end either.
    assert_eq!(tail(1), ["turn_diff", "warning", "run_completed"]);
    assert_eq!(stage.world.acts().get("git_commit"), Some(&1));
}

// P12
#[tokio::test]
async fn cancelled_turn_leaves_no_open_approval() {
    let dir = tempfile::tempdir().unwrap();
    let stage = stage(dir.path(), &Setup::new()).await;
    let session = stage.session(None).await;
    stage.start(&session, "a", "act a").await.unwrap();
    stage.until(&session, |e| matches!(e, AgentEvt::ApprovalRequired { .. }).then_some(())).await;
    let turn = TurnRef { session_id: session.clone(), turn_id: None };
    stage.engine.cancel_run(turn).await.unwrap();
    assert_eq!(stage.wait_for_end(&session, "a").await.0, Outcome::Cancelled);
    let by = stage
        .until(&session, |e| match e {
            AgentEvt::ApprovalResolved { resolution, .. } => Some(resolution.by.clone()),
            _ => None,
        })
        .await;
    assert_eq!(by, "cancelled");
}

#[tokio::test]
async fn approval_after_restart_resumes_turn() {
    let dir = tempfile::tempdir().unwrap();
    let first = stage(dir.path(), &Setup::new()).await;
    let session = first.session(None).await;
    first.start(&session, "a", "act a").await.unwrap();
    first.start(&session, "b", "note b").await.unwrap();
    let pending = first
        .until(&session, |e| match e {
            AgentEvt::ApprovalRequired { approval } => Some(approval.approval_id.clone()),
            _ => None,
        })
        .await;
    first.engine.close().await;
    drop(first);
    let next = stage(dir.path(), &Setup::new()).await;
    let params = ApprovalResolveParams {
        approval_id: pending,
        decision: ApprovalDecision::Once,
        reason: None,
        pattern: None,
        values: Default::default(),
    };
    next.engine.resolve_approval(params, "me").await.unwrap();
    assert_eq!(next.wait_for_end(&session, "b").await.0, Outcome::Completed);
    assert_eq!(ends(&next.records(&session).await), ["a", "b"]);
    assert_eq!(next.world.acts().get("a"), Some(&1));
}
