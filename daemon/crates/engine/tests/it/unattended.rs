//! Unattended runs, schedules and the board: without clients, over restarts, within their limits.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{Arc, Mutex},
};

use cairn_engine::{
    Engine, EngineOptions, Rule, Rules, RunEvent,
    tool::{Output, Permit, Tool, ToolSpec},
};
use cairn_protocol::{
    approval::{ApprovalDecision, ApprovalListParams, ApprovalResolveParams},
    board::BoardParams,
    error::{Failure, Reason},
    event::AgentEvt,
    id::{ScheduleId, SessionId},
    model::Part,
    schedule::{
        MissedRuns, Schedule, ScheduleAddParams, ScheduleOutcome, ScheduleRef, ScheduledJob,
    },
    session::SessionCreateParams,
    time::Timestamp,
    turn::RunStartParams,
    unattended::{UnattendedRun, UnattendedStartParams, UnattendedStatus},
};
use cairn_test_support::engine::{deps, options};
use serde_json::{Value, json};

use crate::{
    schedules::kill,
    stage::{Robot, Setup, World, act_tools, records, turn_params},
};

#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct ShellArguments {
    command: String,
    timeout_seconds: u64,
}

/// A shell whose commands exit with these codes in order, then with the last one.
#[derive(Clone, Default)]
struct Shell {
    exits: Arc<Mutex<VecDeque<i32>>>,
    commands: Arc<Mutex<Vec<String>>>,
}

#[async_trait::async_trait]
impl Tool for Shell {
    fn spec(&self) -> ToolSpec {
        ToolSpec { paths: &[], ..ToolSpec::writing::<ShellArguments>("run_shell", "Runs.") }
    }

    async fn run(&self, _: Permit, arguments: Value) -> Result<Output, Failure> {
        self.commands.lock().unwrap().push(arguments["command"].as_str().unwrap().to_owned());
        let mut exits = self.exits.lock().unwrap();
        let code = if exits.len() > 1 { exits.pop_front() } else { exits.front().copied() };
        let code = code.unwrap_or(0);
        let output = json!({"exit_code": code, "stdout": format!("test {code} failed"), "stderr": "", "timed_out": false});
        Output::of("process", &output, false)
    }
}

/// An engine without any client.
struct Alone {
    engine: Engine,
    world: World,
    shell: Shell,
    events: Arc<Mutex<Vec<RunEvent>>>,
}

impl Alone {
    async fn open(dir: &Path, world: &World, exits: &[i32]) -> Self {
        let shell = Shell::default();
        shell.exits.lock().unwrap().extend(exits);
        let deps = deps(dir, Setup::new().index_options);
        act_tools(&deps.registry, world);
        deps.registry.add(Arc::new(shell.clone())).unwrap();
        let allowed = ["note", "run_shell"].map(|rule| rule.parse::<Rule>().unwrap());
        let rules = Rules { allow: allowed.into(), ..Rules::default() };
        let engine = Engine::open(deps, EngineOptions { rules, ..options(dir) }).await.unwrap();
        engine.set_turn_agent(Arc::new(Robot(world.clone())));
        let events = Arc::<Mutex<Vec<RunEvent>>>::default();
        let received = Arc::clone(&events);
        engine.set_run_observer(Arc::new(move |event| received.lock().unwrap().push(event)));
        Self { engine, world: world.clone(), shell, events }
    }

    async fn session(&self) -> SessionId {
        let created = self.engine.create_session(SessionCreateParams::default()).await;
        created.unwrap().session_id
    }

    async fn start(&self, session: &SessionId, program: &str, own: Value) -> Result<(), Failure> {
        let turn = turn_params(session, "first", program);
        self.engine.start_unattended(params(turn, own), Some("test".into())).await.map(drop)
    }

    async fn run(&self, session: &SessionId) -> UnattendedRun {
        let all = self.engine.unattended_runs().await.unwrap().data;
        all.into_iter().find(|run| run.session_id == *session).unwrap()
    }

    async fn until(&self, session: &SessionId, status: UnattendedStatus) -> UnattendedRun {
        loop {
            let run = self.run(session).await;
            if run.status == status {
                return run;
            }
            assert!(!run.status.is_final(), "{run:?} instead of {status:?}");
            tokio::task::yield_now().await;
        }
    }

    async fn answer(&self, session: &SessionId, decision: ApprovalDecision) {
        let params = ApprovalListParams { session_id: Some(session.clone()), ..Default::default() };
        let approval = self.engine.approvals(params).await.unwrap().remove(0);
        let params = ApprovalResolveParams {
            approval_id: approval.approval_id,
            decision,
            reason: None,
            pattern: None,
            values: Default::default(),
        };
        self.engine.resolve_approval(params, "phone").await.unwrap();
    }
}

fn params(turn: RunStartParams, own: Value) -> UnattendedStartParams {
    let mut all = json!({"turn": turn});
    all.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

#[tokio::test]
async fn output_of_failed_check_is_next_request_until_it_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let alone = Alone::open(dir.path(), &World::default(), &[3, 1, 0]).await;
    let session = alone.session().await;
    alone.start(&session, "note a", json!({"until": "make test"})).await.unwrap();
    let run = alone.until(&session, UnattendedStatus::Completed).await;
    assert_eq!((run.turns, run.check_exit_code), (3, Some(0)));
    assert_eq!(*alone.shell.commands.lock().unwrap(), ["make test"; 3]);
    let records = records(alone.engine.trace(), &session).await.unwrap();
    let inputs: Vec<String> = records
        .iter()
        .filter_map(|record| match record.body.evt() {
            Some(AgentEvt::TurnAccepted { input, .. }) => match &input[0] {
                Part::Text { text } => Some(text.clone()),
                Part::Image { .. } => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(inputs.len(), 3);
    assert!(
        inputs[1].contains("exit status 3") && inputs[1].ends_with("test 3 failed"),
        "{inputs:?}"
    );
    assert!(inputs[2].contains("exit status 1"), "{inputs:?}");
    let events = alone.events.lock().unwrap();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].run.status, UnattendedStatus::Completed);
}

#[tokio::test]
async fn number_of_turns_ends_a_run_whose_check_fails() {
    let dir = tempfile::tempdir().unwrap();
    let alone = Alone::open(dir.path(), &World::default(), &[1]).await;
    let session = alone.session().await;
    alone.start(&session, "note a", json!({"until": "false", "maxTurns": 2})).await.unwrap();
    let run = alone.until(&session, UnattendedStatus::Exhausted).await;
    assert_eq!(run.turns, 2);
    assert!(run.reason.unwrap().contains("after 2 turns"));
    // A turn that fails ends the run; its check does not run.
    let session = alone.session().await;
    alone.start(&session, "fail", json!({"until": "false"})).await.unwrap();
    let run = alone.until(&session, UnattendedStatus::Failed).await;
    assert_eq!((run.turns, run.check_exit_code), (1, None));
}

#[tokio::test]
async fn question_waits_for_an_answer_from_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let alone = Alone::open(dir.path(), &World::default(), &[]).await;
    // Control: without a client that answers, the call of an ordinary turn is denied at once.
    let ordinary = alone.session().await;
    let turn = turn_params(&ordinary, "first", "act x");
    alone.engine.start_run(turn, None).await.unwrap();
    while alone.engine.run_status(&ordinary).await.unwrap().state.as_str() == "running" {
        tokio::task::yield_now().await;
    }
    assert!(alone.world.acts().get("x").is_none());
    let session = alone.session().await;
    alone.start(&session, "act y", json!({})).await.unwrap();
    let run = alone.until(&session, UnattendedStatus::Waiting).await;
    let waits = ApprovalListParams { session_id: Some(session.clone()), ..Default::default() };
    let approval = alone.engine.approvals(waits).await.unwrap().remove(0);
    assert_eq!(approval.expires_at.0 - approval.created_at.0, DAY, "a person may be away");
    // It does not let the calls of other sessions wait.
    let turn = turn_params(&ordinary, "second", "act x");
    alone.engine.start_run(turn, None).await.unwrap();
    while alone.engine.run_status(&ordinary).await.unwrap().state.as_str() == "running" {
        tokio::task::yield_now().await;
    }
    assert!(alone.world.acts().get("x").is_none());
    assert_eq!(run.finished_at, None);
    let board = alone.engine.board(BoardParams::default()).await.unwrap();
    assert_eq!(board.rows[0].session.session_id, session, "who waits comes first");
    assert_eq!(board.rows[0].waiting.len(), 1);
    assert_eq!(board.rows[0].request.as_deref(), Some("do act y"));
    let questions: Vec<_> =
        alone.events.lock().unwrap().iter().map(|e| e.question.clone()).collect();
    assert!(matches!(&questions[..], [Some(_)]), "{questions:?}");
    alone.answer(&session, ApprovalDecision::Once).await;
    alone.until(&session, UnattendedStatus::Completed).await;
    assert_eq!(alone.world.acts()["y"], 1);
    let last = alone.events.lock().unwrap().last().unwrap().run.status;
    assert_eq!(last, UnattendedStatus::Completed);
}

#[tokio::test]
async fn stopped_run_ends_and_starts_no_other_turn() {
    let dir = tempfile::tempdir().unwrap();
    let alone = Alone::open(dir.path(), &World::default(), &[1]).await;
    let session = alone.session().await;
    alone.start(&session, "note a; gate never", json!({"until": "false"})).await.unwrap();
    alone.world.acted("a").await;
    assert!(!alone.engine.is_idle());
    alone.engine.stop_unattended(&session).await.unwrap();
    let run = alone.until(&session, UnattendedStatus::Cancelled).await;
    assert_eq!(run.turns, 1);
    assert!(alone.shell.commands.lock().unwrap().is_empty());
    // Stopping it again has no effect; a session without a run has none to stop.
    alone.engine.stop_unattended(&session).await.unwrap();
    let other = alone.session().await;
    let failure = alone.engine.stop_unattended(&other).await.unwrap_err();
    assert_eq!(failure.reason, Reason::RunNotFound);
}

#[test]
fn run_continues_after_the_daemon_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (world, path) = (World::default(), dir.path().to_owned());
    let killed = world.clone();
    let (session, trace) = kill(|| async move {
        let alone = Alone::open(&path, &killed, &[1, 0]).await;
        let session = alone.session().await;
        alone.start(&session, "note a; gate g", json!({"until": "test"})).await.unwrap();
        alone.world.acted("a").await;
        (session, alone.engine.trace().clone())
    });
    drop(trace);
    world.open("g");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let alone = Alone::open(dir.path(), &world, &[1, 0]).await;
        assert_eq!(alone.run(&session).await.status, UnattendedStatus::Running);
        alone.engine.resume_unattended().await;
        let run = alone.until(&session, UnattendedStatus::Completed).await;
        assert_eq!(run.turns, 2);
        // Both turns follow the program; the note of the interrupted one is not repeated.
        assert_eq!(alone.world.acts()["a"], 2);
    });
}

#[tokio::test]
async fn wrong_limits_and_second_runs_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let alone = Alone::open(dir.path(), &World::default(), &[]).await;
    let session = alone.session().await;
    for own in [
        json!({"until": " "}),
        json!({"until": "x".repeat(5000)}),
        json!({"maxTurns": 2}),
        json!({"until": "true", "maxTurns": 0}),
        json!({"until": "true", "maxTurns": 101}),
        json!({"maxUsd": 0.0}),
        json!({"maxUsd": -1.0}),
    ] {
        let failure = alone.start(&session, "note a", own.clone()).await.unwrap_err();
        assert_eq!(failure.reason, Reason::InvalidParams, "{own}");
    }
    let long = "x".repeat(200 * 1024);
    assert_eq!(alone.start(&session, &long, json!({})).await.unwrap_err().reason, Reason::TooLarge);
    assert!(alone.engine.unattended_runs().await.unwrap().data.is_empty());
    alone.start(&session, "gate never", json!({})).await.unwrap();
    let failure = alone.start(&session, "note a", json!({})).await.unwrap_err();
    assert_eq!(failure.reason, Reason::SessionBusy);
    // An absent session leaves no run behind.
    let failure = alone.start(&SessionId::new(), "note a", json!({})).await.unwrap_err();
    assert_eq!(failure.reason, Reason::SessionNotFound);
    assert_eq!(alone.engine.unattended_runs().await.unwrap().data.len(), 1);
}

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;
/// 1 January 2026, 7:00 UTC.
const SEVEN: i64 = 1_767_250_800_000;

/// An engine with a declared root for schedules.
async fn with_root(dir: &Path, world: &World) -> (Alone, String) {
    let alone = Alone::open(dir, world, &[]).await;
    let root = dir.join("repo");
    std::fs::create_dir_all(&root).unwrap();
    let params = json!({"path": root.to_string_lossy()});
    let added = alone.engine.add_root(serde_json::from_value(params).unwrap()).await.unwrap();
    (alone, added.path)
}

fn daily(root: &str, program: &str, missed: MissedRuns) -> ScheduleAddParams {
    let job = ScheduledJob {
        request: format!("do {program}"),
        root: root.to_owned(),
        ..ScheduledJob::default()
    };
    ScheduleAddParams { when: "every day 7:00".into(), timezone: None, job, missed }
}

impl Alone {
    async fn schedule(&self, id: &ScheduleId, now: i64) -> Schedule {
        let all = self.engine.schedules(Timestamp(now)).await.unwrap().data;
        all.into_iter().find(|schedule| schedule.schedule_id == *id).unwrap()
    }

    async fn entries(&self, id: &ScheduleId, count: usize) -> Schedule {
        loop {
            let schedule = self.schedule(id, SEVEN).await;
            if schedule.history.len() >= count {
                return schedule;
            }
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn schedule_runs_at_its_time_and_never_overlaps_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (alone, root) = with_root(dir.path(), &World::default()).await;
    let params = daily(&root, "note a; gate g", MissedRuns::Once);
    let added =
        alone.engine.add_schedule(params, Some("test".into()), Timestamp(SEVEN)).await.unwrap();
    assert_eq!(added.cron, "0 7 * * *");
    assert_eq!((added.timezone.as_str(), added.next_at), ("UTC", Some(Timestamp(SEVEN + DAY))));
    assert!(alone.engine.has_schedules());
    let id = added.schedule_id;
    // Not yet.
    let next = alone.engine.check_schedules(Timestamp(SEVEN + DAY - 1));
    assert_eq!(next, Some(Timestamp(SEVEN + DAY)));
    assert!(alone.schedule(&id, SEVEN).await.history.is_empty());
    let next = alone.engine.check_schedules(Timestamp(SEVEN + DAY + 10));
    assert_eq!(next, Some(Timestamp(SEVEN + 2 * DAY)));
    // The same time is handled once, also if the clock is set back.
    alone.engine.check_schedules(Timestamp(SEVEN + DAY + 20));
    alone.engine.check_schedules(Timestamp(SEVEN + DAY - MINUTE));
    let schedule = alone.entries(&id, 1).await;
    let started = schedule.history[0].clone();
    assert_eq!((started.outcome, started.missed), (ScheduleOutcome::Started, None));
    let session = started.session_id.unwrap();
    alone.world.acted("a").await;
    assert_eq!(alone.run(&session).await.schedule, Some(id.clone()));
    // The run is active a day later.
    alone.engine.check_schedules(Timestamp(SEVEN + 2 * DAY));
    let schedule = alone.entries(&id, 2).await;
    assert_eq!(schedule.history[0].outcome, ScheduleOutcome::Overlapped);
    let now = Timestamp(SEVEN + 2 * DAY + MINUTE);
    let reference = ScheduleRef { schedule_id: id.clone() };
    let failure = alone.engine.run_schedule(reference.clone(), now).await.unwrap_err();
    assert_eq!(failure.reason, Reason::SessionBusy);
    alone.world.open("g");
    alone.until(&session, UnattendedStatus::Completed).await;
    while alone.engine.run_schedule(reference.clone(), now).await.is_err() {
        // The supervisor is about to end.
        tokio::task::yield_now().await;
    }
    let schedule = alone.entries(&id, 3).await;
    assert_eq!(schedule.history[0].outcome, ScheduleOutcome::Started);
    while alone.world.acts()["a"] < 2 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn times_that_passed_while_the_daemon_was_off_run_once_or_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let world = World::default();
    let (once, skip) = {
        let (alone, root) = with_root(dir.path(), &world).await;
        let add = |params| alone.engine.add_schedule(params, None, Timestamp(SEVEN));
        let once = add(daily(&root, "note once", MissedRuns::Once)).await.unwrap().schedule_id;
        let skip = add(daily(&root, "note skip", MissedRuns::Skip)).await.unwrap().schedule_id;
        alone.engine.close().await;
        (once, skip)
    };
    let (alone, _) = with_root(dir.path(), &world).await;
    alone.engine.check_schedules(Timestamp(SEVEN + 3 * DAY + 60 * MINUTE));
    let entry = alone.entries(&once, 1).await.history.remove(0);
    assert_eq!((entry.outcome, entry.missed), (ScheduleOutcome::Started, Some(3)));
    let entry = alone.entries(&skip, 1).await.history.remove(0);
    assert_eq!((entry.outcome, entry.missed), (ScheduleOutcome::Missed, Some(3)));
    alone.world.acted("once").await;
    assert!(alone.world.acts().get("skip").is_none());
}

#[tokio::test]
async fn failed_start_is_listed_and_wrong_schedules_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (alone, root) = with_root(dir.path(), &World::default()).await;
    let add = |params| alone.engine.add_schedule(params, None, Timestamp(SEVEN));
    let valid = || daily(&root, "note a", MissedRuns::Once);
    let mut wrong = [valid(), valid(), valid(), valid(), valid()];
    wrong[0].when = "soon".into();
    wrong[1].timezone = Some("Mars/Olympus".into());
    wrong[2].job.request = " ".into();
    wrong[3].job.max_turns = Some(3);
    wrong[4].job.max_usd = Some(f64::NAN);
    for params in wrong {
        let failure = add(params.clone()).await.unwrap_err();
        assert_eq!(failure.reason, Reason::InvalidParams, "{params:?}");
    }
    let failure = add(daily("/no/such/root", "x", MissedRuns::Once)).await.unwrap_err();
    assert_eq!(failure.reason, Reason::RootNotFound);
    // The folder is no repository, so that no work tree can be created.
    let mut params = valid();
    params.job.worktree = true;
    let id = add(params).await.unwrap().schedule_id;
    alone.engine.check_schedules(Timestamp(SEVEN + DAY));
    let entry = alone.entries(&id, 1).await.history.remove(0);
    assert_eq!(entry.outcome, ScheduleOutcome::Failed);
    assert!(entry.reason.unwrap().contains("repository"));
    let reference = ScheduleRef { schedule_id: id };
    alone.engine.remove_schedule(reference.clone()).await.unwrap();
    let failure = alone.engine.remove_schedule(reference).await.unwrap_err();
    assert_eq!(failure.reason, Reason::PathNotFound);
    for _ in 0..100 {
        add(valid()).await.unwrap();
    }
    assert_eq!(add(valid()).await.unwrap_err().reason, Reason::Overloaded);
}

#[tokio::test]
async fn board_has_branches_requests_and_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let (alone, root) = with_root(dir.path(), &World::default()).await;
    let params = SessionCreateParams { root: Some(root), ..SessionCreateParams::default() };
    let session = alone.engine.create_session(params).await.unwrap().session_id;
    alone.start(&session, "note a", json!({})).await.unwrap();
    alone.until(&session, UnattendedStatus::Completed).await;
    let board = alone.engine.board(BoardParams { limit: Some(1) }).await.unwrap();
    let row = &board.rows[0];
    assert_eq!((row.branch.as_deref(), row.cost_micro_usd, row.queued), (None, None, 0));
    assert_eq!(row.unattended.as_ref().unwrap().status, UnattendedStatus::Completed);
    for limit in [0, 101] {
        let failure = alone.engine.board(BoardParams { limit: Some(limit) }).await.unwrap_err();
        assert_eq!(failure.reason, Reason::InvalidParams);
    }
}
