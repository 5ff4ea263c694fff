//! Shutdown of the daemon: active runs get time, interrupted calls get a final record, resumed ones
//! are not repeated.

use std::{
    collections::HashMap,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use cairn_engine::record::Trace;
use cairn_protocol::{
    envelope::{Body, Envelope},
    event::AgentEvt,
    explore::RunState,
    id::SessionId,
    trace::AuditQueryParams,
    turn::Outcome,
};

use crate::stage::{Setup, Stage, World, records};

fn interrupted(records: &[Envelope]) -> usize {
    let is = |r: &&Envelope| {
        matches!(r.body.evt(), Some(AgentEvt::Error { reason: Some(reason), .. }) if reason == "interrupted")
            && r.parent_id.is_some()
    };
    records.iter().filter(is).count()
}

async fn audit(trace: &Trace, session: &SessionId) -> Vec<Option<String>> {
    let query =
        AuditQueryParams { session_id: Some(session.clone()), ..AuditQueryParams::default() };
    trace.audit_query(query).await.unwrap().into_iter().map(|row| row.outcome).collect()
}

// R5
#[tokio::test]
async fn shutdown_waits_for_running_work() {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup { drain: Duration::from_secs(60), ..Setup::new() };
    let stage = Stage::open(dir.path(), &World::default(), &setup).await;
    let session = stage.session(None).await;
    stage.start(&session, "a", "hold a").await.unwrap();
    stage.world.acted("a").await;
    let engine = stage.engine.clone();
    let closing = tokio::spawn(async move { engine.close().await });
    while !stage
        .start(&session, "late", "")
        .await
        .is_err_and(|e| e.reason.as_str() == "shutting_down")
    {
        tokio::task::yield_now().await;
    }
    stage.world.open("a");
    closing.await.unwrap();
    assert_eq!(stage.wait_for_end(&session, "a").await.0, Outcome::Completed);
}

// R5
#[tokio::test]
async fn unanswered_approval_does_not_delay_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let setup = Setup { drain: Duration::from_secs(600), ..Setup::new() };
    let stage = Stage::open(dir.path(), &World::default(), &setup).await;
    let session = stage.session(None).await;
    stage.start(&session, "a", "act a").await.unwrap();
    stage.until(&session, |e| matches!(e, AgentEvt::ApprovalRequired { .. }).then_some(())).await;
    stage.engine.close().await;
    assert_eq!(stage.state(&session).await, RunState::Interrupted);
}

// R5
#[tokio::test]
async fn call_interrupted_by_shutdown_has_end_record() {
    let dir = tempfile::tempdir().unwrap();
    let stage = Stage::open(dir.path(), &World::default(), &Setup::new()).await;
    let session = stage.session(None).await;
    stage.start(&session, "a", "hold a").await.unwrap();
    stage.world.acted("a").await;
    stage.engine.close().await;
    assert_eq!(interrupted(&stage.records(&session).await), 1);
    assert_eq!(audit(stage.engine.trace(), &session).await, [Some("interrupted".to_owned())]);
}

// R5
#[test]
fn call_interrupted_by_crash_gets_end_record_at_restart() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::default();
    // One thread: with another, the first dropped value would cancel work that still runs there.
    let first = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (session, trace) = first.block_on(async {
        let stage = Stage::open(dir.path(), &world, &Setup::new()).await;
        let session = stage.session(None).await;
        stage.start(&session, "a", "hold a").await.unwrap();
        stage.world.acted("a").await;
        (session, stage.engine.trace().clone())
    });
    drop(first);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let before = records(&trace, &session).await.unwrap();
        assert_eq!((interrupted(&before), audit(&trace, &session).await), (0, vec![None]));
        let next = Stage::open(dir.path(), &world, &Setup::new()).await;
        assert_eq!(interrupted(&next.records(&session).await), 1);
        assert_eq!(audit(&trace, &session).await, [Some("interrupted".to_owned())]);
        assert_eq!(next.state(&session).await, RunState::Interrupted);
        // It is written once.
        drop(next);
        let reopened = Stage::open(dir.path(), &world, &Setup::new()).await;
        assert_eq!(interrupted(&reopened.records(&session).await), 1);
    });
}

fn commands(records: &[Envelope]) -> HashMap<String, u32> {
    let mut counts = HashMap::new();
    for record in records {
        if let Body::Cmd { cmd } = &record.body {
            let call = cmd.clone().into_call();
            *counts.entry(format!("{} {}", call.name, call.arguments)).or_default() += 1;
        }
    }
    counts
}

// R5
#[tokio::test]
async fn resumed_explore_repeats_no_recorded_call() {
    let dir = tempfile::tempdir().unwrap();
    let first = Stage::open(dir.path(), &World::default(), &Setup::new()).await;
    let root = repo(dir.path());
    let goals = ["one", "missing two", "three", "gate go", "four"];
    let params = first.explore(None, &root, &goals);
    let session = first.engine.start_explore(params, None).await.unwrap().session_id;
    first.world.acted("three").await;
    first
        .until(&session, |e| matches!(e, AgentEvt::Result { op, .. } if op == "read").then_some(()))
        .await;
    while first.records(&session).await.iter().filter(|r| r.parent_id.is_some()).count() < 6 {
        tokio::task::yield_now().await;
    }
    first.engine.close().await;
    let world = first.world.clone();
    drop(first);
    let next = Stage::open(dir.path(), &world, &Setup::new()).await;
    world.open("go");
    next.engine.resume_session(&session).await.unwrap();
    next.until(&session, |e| matches!(e, AgentEvt::Completed { .. }).then_some(())).await;
    let counts = commands(&next.records(&session).await);
    assert_eq!(counts.len(), 4, "{counts:?}");
    assert!(counts.values().all(|n| *n == 1), "{counts:?}");
}

fn repo(dir: &Path) -> std::path::PathBuf {
    let root = dir.join("repo");
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("a.txt"), "text\n").unwrap();
    root.canonicalize().unwrap()
}

/// Set while the thread of an index must hang, and once it does.
static HANGS: AtomicBool = AtomicBool::new(false);
static HUNG: AtomicBool = AtomicBool::new(false);

// S13
#[tokio::test(flavor = "multi_thread")]
async fn close_does_not_wait_for_hanging_index() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = Setup::new();
    setup.index_options.trim_memory = || {
        while HANGS.load(Ordering::SeqCst) {
            HUNG.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    HANGS.store(true, Ordering::SeqCst);
    let stage = Stage::open(dir.path(), &World::default(), &setup).await;
    let repo = dir.path().join("repo");
    std::fs::create_dir(&repo).unwrap();
    // Its symbols are extracted by a parse that is large enough to trim memory after it.
    std::fs::write(repo.join("a.c"), "int f(void) { return 1; }\n".repeat(30_000)).unwrap();
    stage.root(&repo).await;
    while !HUNG.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let started = Instant::now();
    stage.engine.close().await;
    let took = started.elapsed();
    HANGS.store(false, Ordering::SeqCst);
    assert!(took >= Duration::from_secs(1), "the index did not hang: {took:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
}
