//! Misuse by clients, full disks and users: the log and the state agree after it.

use std::collections::BTreeMap;

use cairn_protocol::{
    approval::{ApprovalDecision, ApprovalListParams, ApprovalResolveParams},
    envelope::Envelope,
    error::Reason,
    event::AgentEvt,
    explore::RunState,
    id::{ApprovalId, SessionId},
    session::ForkParams,
    turn::{Outcome, TurnRef},
};
use cairn_store::rusqlite::Connection;

use crate::stage::{Setup, Stage, World, ends};

/// Makes every append to the log in `dir` fail, as on a full disk, until it is dropped.
struct FullDisk(Connection);

impl FullDisk {
    fn new(dir: &std::path::Path) -> Self {
        let other = Connection::open(dir.join("trace.db")).unwrap();
        other
            .execute_batch(
                "CREATE TRIGGER full BEFORE INSERT ON record BEGIN SELECT RAISE(FAIL, 'no room'); END",
            )
            .unwrap();
        Self(other)
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        self.0.execute_batch("DROP TRIGGER full").unwrap();
    }
}

fn accepted(records: &[Envelope]) -> Vec<String> {
    let accepted = |r: &Envelope| match r.body.evt() {
        Some(AgentEvt::TurnAccepted { turn_id, .. }) => Some(turn_id.clone()),
        _ => None,
    };
    records.iter().filter_map(accepted).collect()
}

async fn question(stage: &Stage, session: &SessionId) -> ApprovalId {
    let id = |evt: &AgentEvt| match evt {
        AgentEvt::ApprovalRequired { approval } => Some(approval.approval_id.clone()),
        _ => None,
    };
    stage.until(session, id).await
}

fn approve(id: &ApprovalId) -> ApprovalResolveParams {
    let (approval_id, decision) = (id.clone(), ApprovalDecision::Once);
    ApprovalResolveParams {
        approval_id,
        decision,
        reason: None,
        pattern: None,
        values: Default::default(),
    }
}

#[tokio::test]
async fn unstorable_resolution_is_refused_and_can_be_retried() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::open(dir.path(), &World::default(), &Setup::new()).await;
    let session = stage.session(None).await;
    stage.start(&session, "a", "act x").await.unwrap();
    let pending = question(&stage, &session).await;
    let full = FullDisk::new(dir.path());
    for _ in 0..3 {
        let refused = stage.engine.resolve_approval(approve(&pending), "t").await.unwrap_err();
        assert!(matches!(refused.reason, Reason::StorageFailed | Reason::DiskFull), "{refused}");
    }
    assert!(stage.world.acts().is_empty(), "nothing is done on an answer that is in no log");
    drop(full);
    stage.engine.resolve_approval(approve(&pending), "t").await.unwrap();
    assert_eq!(stage.wait_for_end(&session, "a").await.0, Outcome::Completed);
    assert_eq!(stage.world.acts().get("x"), Some(&1));
    let second = stage.engine.resolve_approval(approve(&pending), "t").await.unwrap_err();
    assert_eq!(second.reason, Reason::ApprovalResolved);
}

#[tokio::test]
async fn approval_expiry_on_full_disk_wakes_call_and_state_matches_log() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::default();
    let session = {
        let stage = Stage::open(dir.path(), &world, &Setup::new()).await;
        let session = stage.session(None).await;
        stage.start(&session, "a", "act x").await.unwrap();
        question(&stage, &session).await;
        let _full = FullDisk::new(dir.path());
        let turn = TurnRef { session_id: session.clone(), turn_id: Some("a".into()) };
        // The turn stops although none of its records can be stored.
        let _unstored = stage.engine.cancel_run(turn).await;
        while stage.engine.running() > 0 {
            tokio::task::yield_now().await;
        }
        session
    };
    let stage = Stage::open(dir.path(), &world, &Setup::new()).await;
    let records = stage.records(&session).await;
    let state = stage.state(&session).await;
    assert!(world.acts().is_empty());
    match ends(&records).len() {
        0 => {
            assert_eq!(state, RunState::Interrupted);
            // It resumes where it was: the approval request is open again, and its answer counts.
            stage.engine.resume_session(&session).await.unwrap();
            let open =
                ApprovalListParams { session_id: Some(session.clone()), ..Default::default() };
            let id = loop {
                let waiting = stage.engine.approvals(open.clone()).await.unwrap();
                if let Some(one) = waiting.into_iter().find(|a| a.resolution.is_none()) {
                    break one.approval_id;
                }
                tokio::task::yield_now().await;
            };
            stage.engine.resolve_approval(approve(&id), "t").await.unwrap();
            assert_eq!(stage.wait_for_end(&session, "a").await.0, Outcome::Completed);
            assert_eq!(world.acts().get("x"), Some(&1));
        }
        1 => assert_ne!(state, RunState::Running),
        more => panic!("{more} ends of one turn"),
    }
}

#[tokio::test]
async fn ten_thousand_starts_fill_queue_and_finish_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::open(dir.path(), &World::default(), &Setup::new()).await;
    let session = stage.session(None).await;
    let mut refused = 0;
    for turn in 0..10_000 {
        if let Err(failure) = stage.start(&session, &format!("t{turn}"), "gate go").await {
            assert_eq!(failure.reason, Reason::Overloaded, "{failure}");
            refused += 1;
        }
    }
    // One is active, and the queue has 32 slots.
    assert_eq!(refused, 10_000 - 33);
    stage.world.open("go");
    stage.wait_for_end(&session, "t32").await;
    let records = stage.records(&session).await;
    assert_eq!(accepted(&records).len(), 33);
    assert_eq!(ends(&records), accepted(&records));
    assert_eq!(stage.state(&session).await, RunState::Completed);
}

#[tokio::test]
async fn removed_root_ends_each_turn_once() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::open(dir.path(), &World::default(), &Setup::new()).await;
    let root = stage.root(&dir.path().join("repo")).await;
    let session = stage.session(Some(&root)).await;
    stage.start(&session, "runs", "gate go; write a.txt").await.unwrap();
    stage.start(&session, "waits", "write b.txt").await.unwrap();
    stage.remove_root(&root).await;
    stage.world.open("go");
    stage.wait_for_end(&session, "waits").await;
    let records = stage.records(&session).await;
    assert_eq!(ends(&records), ["runs", "waits"]);
    let (status, reason) = stage.wait_for_end(&session, "waits").await;
    assert_eq!((status, reason.as_deref()), (Outcome::Failed, Some("root_not_found")));
    assert!(!root.join("b.txt").exists());
    assert_eq!(stage.engine.running(), 0);
    // The session is usable again once its root is declared.
    stage.root(&root).await;
    stage.start(&session, "later", "write c.txt").await.unwrap();
    assert_eq!(stage.wait_for_end(&session, "later").await.0, Outcome::Completed);
    assert!(root.join("c.txt").exists());
}

/// Starts, cancels and forks a session; returns how often each request was accepted.
async fn disturb(stage: &Stage, session: &SessionId, name: &str) -> BTreeMap<&'static str, u32> {
    let mut done = BTreeMap::new();
    for n in 0..60 {
        let turn = format!("{name}{n}");
        if stage.start(session, &turn, "yield 3; note n; yield 2").await.is_ok() {
            *done.entry("started").or_default() += 1;
        }
        if n % 3 == 0 {
            let turn_id = (n % 2 == 0).then(|| turn.clone());
            let turn = TurnRef { session_id: session.clone(), turn_id };
            if stage.engine.cancel_run(turn).await.is_ok() {
                *done.entry("cancelled").or_default() += 1;
            }
        }
        if n % 5 == 0 {
            let (session_id, before) =
                (session.clone(), (n > 0).then(|| format!("{name}{}", n - 1)));
            let fork = ForkParams { session_id, before_turn_id: before, title: None };
            match stage.engine.fork_session(fork).await {
                Ok(created) => {
                    *done.entry("forked").or_default() += 1;
                    let records = stage.records(&created.session_id).await;
                    let pending = accepted(&records).len() - ends(&records).len();
                    assert_eq!(pending, 0, "a fork has a turn without an end: {records:?}");
                }
                Err(failure) => {
                    assert!(
                        matches!(failure.reason, Reason::SessionBusy | Reason::RunNotFound),
                        "{failure}"
                    )
                }
            }
        }
        for _ in 0..n % 7 {
            tokio::task::yield_now().await;
        }
    }
    done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_clients_of_one_session_lose_no_turn() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::open(dir.path(), &World::default(), &Setup::new()).await;
    let session = stage.session(None).await;
    let (one, two) = tokio::join!(disturb(&stage, &session, "a"), disturb(&stage, &session, "b"));
    while stage.engine.run_status(&session).await.unwrap().queued > 0 || stage.engine.running() > 0
    {
        tokio::task::yield_now().await;
    }
    let records = stage.records(&session).await;
    let started = one["started"] + two["started"];
    assert_eq!(accepted(&records).len() as u32, started);
    let (mut all, mut finished) = (accepted(&records), ends(&records));
    all.sort();
    finished.sort();
    assert_eq!(finished, all, "each accepted turn has one end");
    assert!(one["cancelled"] + two["cancelled"] > 0, "{one:?} {two:?}");
    let idle = [RunState::Completed, RunState::Stopped, RunState::Failed];
    assert!(idle.contains(&stage.state(&session).await));
}
