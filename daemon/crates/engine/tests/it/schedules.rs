//! Many schedules: requests of several clients in random order, the engine closed or killed at
//! random points and opened again over the same folder, and at the end the invariants of
//! `src/session/step.rs` checked on the log alone.
//!
//! `CAIRN_SEED` selects one schedule. The long form:
//! `cargo test --release -p cairn-engine --test it long_schedules -- --ignored --nocapture`;
//! most of its time is waiting for the disk, which `TMPDIR=/dev/shm` avoids.

use cairn_test_support::Rng;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    future::Future,
    path::Path,
    time::Duration,
};

use cairn_engine::record::Trace;
use cairn_protocol::{
    approval::{ApprovalDecision, ApprovalListParams, ApprovalResolveParams},
    envelope::Envelope,
    error::{Failure, Reason},
    event::AgentEvt,
    explore::RunState,
    id::{ApprovalId, RunId, SessionId},
    session::{ArchiveParams, ForkParams},
    turn::{SteerParams, TurnRef},
};

use crate::stage::{Setup, Stage, World, records};

/// Schedules of the short and of the long form.
const SHORT: u64 = 40;
const LONG: u64 = 2000;
/// Time limit of one schedule, which takes a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(120);
const SESSIONS: usize = 2;

/// Runs `life` in a separate runtime and then kills that runtime: every task stops at its current
/// await point, as in a daemon that crashes. Records already sent to the log's thread are written,
/// then nothing more.
pub fn kill<T, F: Future<Output = (T, Trace)>>(life: impl FnOnce() -> F) -> (T, Trace) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (created, trace) = runtime.block_on(life());
    runtime.shutdown_timeout(Duration::from_secs(20));
    // Behind all queued records.
    let after = tokio::runtime::Runtime::new().unwrap();
    let _no_such_session = after.block_on(trace.archive(&SessionId::new(), false));
    (created, trace)
}

/// Knowledge of the clients.
#[derive(Default)]
struct Known {
    sessions: Vec<SessionId>,
    /// Turns whose start was acknowledged, by session.
    acknowledged: BTreeMap<SessionId, BTreeSet<String>>,
    deleted: BTreeSet<SessionId>,
    turns: usize,
    counts: HashMap<&'static str, u32>,
}

struct Client<'a> {
    seed: u64,
    random: &'a mut Rng,
    known: &'a mut Known,
    stage: &'a Stage,
    root: &'a Path,
}

impl Client<'_> {
    fn some_session(&mut self) -> SessionId {
        let at = self.random.usize(..self.known.sessions.len().max(1));
        self.known.sessions[at].clone()
    }

    /// Checks that a request failed only with the errors allowed for it.
    fn allow<T>(
        &mut self,
        what: &'static str,
        outcome: Result<T, Failure>,
        reasons: &[Reason],
    ) -> Option<T> {
        match outcome {
            Ok(value) => {
                *self.known.counts.entry(what).or_default() += 1;
                Some(value)
            }
            Err(failure) => {
                assert!(
                    reasons.contains(&failure.reason),
                    "seed {}: {what}: {failure:?}",
                    self.seed
                );
                None
            }
        }
    }

    async fn one_step(&mut self) {
        match self.random.usize(..20) {
            0..=5 => self.start().await,
            6..=7 => self.cancel().await,
            8..=10 => self.answer().await,
            11 => self.steer().await,
            12..=13 => self.resume().await,
            14 => self.fork_or_archive().await,
            15 if self.random.usize(..3) == 0 => self.delete().await,
            16 => self.explore().await,
            17 => self.root_goes_or_comes().await,
            _ => {
                for _ in 0..self.random.usize(..200) {
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    async fn start(&mut self) {
        let session = self.some_session();
        let name = format!("t{}", self.known.turns);
        self.known.turns += 1;
        let step = |random: &mut Rng, n: usize| match random.usize(..5) {
            0 | 1 => format!("act {name}-{n}"),
            2 => format!("note {name}-{n}"),
            3 => format!("yield {}", random.usize(..300)),
            _ => "fail".to_owned(),
        };
        let program: Vec<String> =
            (0..=self.random.usize(..3)).map(|n| step(self.random, n)).collect();
        let outcome = self.stage.start(&session, &name, &program.join(";")).await;
        let reasons = [Reason::SessionBusy, Reason::Overloaded, Reason::RootNotFound];
        if self.allow("start", outcome, &reasons).is_some() {
            self.known.acknowledged.entry(session).or_default().insert(name);
        }
    }

    async fn cancel(&mut self) {
        let session_id = self.some_session();
        let pick = self.random.usize(..(self.known.turns + 1));
        let turn_id = (self.random.usize(..2) == 0).then(|| format!("t{pick}"));
        let outcome = self.stage.engine.cancel_run(TurnRef { session_id, turn_id }).await;
        self.allow("cancel", outcome, &[]);
    }

    /// One or two clients answer the same request at once.
    async fn answer(&mut self) {
        let open = self.stage.engine.approvals(ApprovalListParams::default()).await.unwrap();
        let Some(approval) = open.get(self.random.usize(..open.len().max(1))) else { return };
        let decision = self.decision(&approval.rule);
        let params = ApprovalResolveParams {
            approval_id: approval.approval_id.clone(),
            decision,
            reason: None,
            pattern: None,
            values: Default::default(),
        };
        let reasons = [Reason::ApprovalResolved, Reason::ApprovalNotFound, Reason::SessionNotFound];
        if self.random.usize(..2) == 0 {
            let (one, two) = tokio::join!(
                self.stage.engine.resolve_approval(params.clone(), "one"),
                self.stage.engine.resolve_approval(params, "two"),
            );
            let both = one.is_ok() && two.is_ok();
            assert!(!both, "seed {}: an approval was answered twice", self.seed);
            self.allow("answer", one, &reasons);
            self.allow("answer", two, &reasons);
        } else {
            let outcome = self.stage.engine.resolve_approval(params, "one").await;
            self.allow("answer", outcome, &reasons);
        }
    }

    /// Does not repeat an action that may have happened: each action then happens at most once.
    fn decision(&mut self, rule: &str) -> ApprovalDecision {
        if rule.contains("may have taken effect") || self.random.usize(..3) == 0 {
            ApprovalDecision::Deny
        } else {
            ApprovalDecision::Once
        }
    }

    async fn steer(&mut self) {
        let params = SteerParams { session_id: self.some_session(), text: "be brief".into() };
        let outcome = self.stage.engine.steer(params, None).await;
        self.allow("steer", outcome, &[Reason::RunNotFound]);
    }

    async fn resume(&mut self) {
        let session = self.some_session();
        let outcome = self.stage.engine.resume_session(&session).await;
        let reasons =
            [Reason::NotResumable, Reason::Overloaded, Reason::RootNotFound, Reason::SessionBusy];
        self.allow("resume", outcome, &reasons);
    }

    async fn fork_or_archive(&mut self) {
        let session_id = self.some_session();
        if self.random.usize(..2) == 0 {
            let archived = self.random.usize(..2) == 0;
            let outcome =
                self.stage.engine.archive_session(ArchiveParams { session_id, archived }).await;
            self.allow("archive", outcome, &[]);
            return;
        }
        let params = ForkParams { session_id, before_turn_id: None, title: None };
        let outcome = self.stage.engine.fork_session(params).await;
        if let Some(forked) = self.allow("fork", outcome, &[Reason::SessionBusy]) {
            let all = self.stage.records(&forked.session_id).await;
            check(self.seed, &all, true);
        }
    }

    async fn delete(&mut self) {
        let session = self.some_session();
        let outcome = self.stage.engine.delete_session(&session).await;
        if self.allow("delete", outcome, &[Reason::SessionBusy]).is_some() {
            self.known.sessions.retain(|id| *id != session);
            self.known.deleted.insert(session);
            let root = (self.random.usize(..2) == 0).then_some(self.root);
            if let Some(root) = root {
                self.stage.root(root).await;
            }
            let fresh = self.stage.session(root).await;
            self.known.sessions.push(fresh);
        }
    }

    async fn explore(&mut self) {
        self.stage.root(self.root).await;
        let session = self.some_session();
        let params = self.stage.explore(Some(&session), self.root, &["one", "missing", "two"]);
        let outcome = self.stage.engine.start_explore(params, None).await;
        self.allow("explore", outcome, &[Reason::SessionBusy, Reason::Overloaded]);
    }

    async fn root_goes_or_comes(&mut self) {
        if self.random.usize(..2) == 0 {
            self.stage.root(self.root).await;
        } else {
            let params = serde_json::json!({"root": self.root.to_string_lossy()});
            let outcome =
                self.stage.engine.remove_root(serde_json::from_value(params).unwrap()).await;
            self.allow("remove root", outcome, &[Reason::RootNotFound]);
        }
    }

    /// Runs all pending turns to their end.
    async fn finish(&mut self) {
        self.stage.root(self.root).await;
        loop {
            for session in self.known.sessions.clone() {
                if self.stage.state(&session).await == RunState::Interrupted {
                    let outcome = self.stage.engine.resume_session(&session).await;
                    self.allow("resume", outcome, &[Reason::NotResumable, Reason::SessionBusy]);
                }
            }
            for approval in
                self.stage.engine.approvals(ApprovalListParams::default()).await.unwrap()
            {
                let decision = self.decision(&approval.rule);
                let approval_id = approval.approval_id;
                let params = ApprovalResolveParams {
                    approval_id,
                    decision,
                    reason: None,
                    pattern: None,
                    values: Default::default(),
                };
                let outcome = self.stage.engine.resolve_approval(params, "last").await;
                self.allow("answer", outcome, &[Reason::ApprovalResolved]);
            }
            let mut pending = false;
            for session in &self.known.sessions {
                pending |= matches!(
                    self.stage.state(session).await,
                    RunState::Running | RunState::Interrupted
                );
            }
            if !pending && self.stage.engine.running() == 0 {
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Checks the invariants on the records of one session. In a fork, open approval requests stay
/// behind.
fn check(seed: u64, records: &[Envelope], is_fork: bool) {
    let mut accepted: Vec<RunId> = Vec::new();
    let mut started: BTreeSet<String> = BTreeSet::new();
    let mut finished: Vec<RunId> = Vec::new();
    let mut open: Option<RunId> = None;
    let mut requested: BTreeSet<ApprovalId> = BTreeSet::new();
    let mut resolved: BTreeSet<ApprovalId> = BTreeSet::new();
    for (at, record) in (1..).zip(records) {
        assert_eq!(record.seq, at, "seed {seed}: a gap in the log");
        let Some(evt) = record.body.evt() else { continue };
        let run = record.origin.as_ref().and_then(|o| o.run_id.clone());
        match evt {
            AgentEvt::TurnAccepted { run_id, .. } => {
                assert!(!accepted.contains(run_id), "seed {seed}: accepted twice");
                accepted.push(run_id.clone());
            }
            AgentEvt::RunStarted { run_id, .. } => {
                assert_eq!(
                    open, None,
                    "seed {seed}: {run_id} starts beside another run, record {at}"
                );
                assert!(started.insert(run_id.to_string()), "seed {seed}: {run_id} started twice");
                open = Some(run_id.clone());
            }
            AgentEvt::Started { op, .. } if op == "explore" => {
                assert_eq!(open, None, "seed {seed}: an explore starts beside a run, record {at}");
                open = run;
            }
            AgentEvt::Resumed { .. } => {
                assert_eq!(open, None, "seed {seed}: a run is resumed beside another, record {at}");
                open = run;
            }
            AgentEvt::RunCompleted { result } => {
                assert!(
                    !finished.contains(&result.run_id),
                    "seed {seed}: {} ended twice",
                    result.run_id
                );
                finished.push(result.run_id.clone());
                open = open.filter(|other| *other != result.run_id);
            }
            AgentEvt::Interrupted { .. } => open = None,
            evt if evt.ends("explore") => open = open.filter(|other| Some(other) != run.as_ref()),
            AgentEvt::ApprovalRequired { approval } => {
                requested.insert(approval.approval_id.clone());
            }
            AgentEvt::ApprovalResolved { approval_id, .. } => {
                assert!(
                    resolved.insert(approval_id.clone()),
                    "seed {seed}: an approval was resolved twice"
                );
            }
            _ => {}
        }
    }
    let mut all = finished.clone();
    all.sort_by_key(|run| accepted.iter().position(|a| a == run));
    assert_eq!(all, accepted, "seed {seed}: a turn has no end, or one that was not accepted has");
    let order: Vec<&RunId> = finished.iter().filter(|run| started.contains(run.as_str())).collect();
    assert!(
        order.is_sorted_by_key(|run| accepted.iter().position(|a| a == *run)),
        "seed {seed}: turns ended out of order"
    );
    assert!(is_fork || requested == resolved, "seed {seed}: an approval is open at the end");
}

fn schedule(seed: u64, setup: &Setup, counts: &mut HashMap<&'static str, u32>) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repo");
    std::fs::create_dir(&root).unwrap();
    let root = root.canonicalize().unwrap();
    let mut random = Rng::with_seed(seed);
    let mut known = Known::default();
    let world = World::default();
    let lives = 2 + random.usize(..4);
    for life in 0..=lives {
        let last = life == lives;
        let is_killed = !last && random.usize(..3) > 0;
        kill(|| async {
            let stage = Stage::open(dir.path(), &world, setup).await;
            let trace = stage.engine.trace().clone();
            while known.sessions.len() < SESSIONS {
                let has_root = !known.sessions.is_empty();
                if has_root {
                    stage.root(&root).await;
                }
                known.sessions.push(stage.session(has_root.then_some(root.as_path())).await);
            }
            let steps = random.usize(..25);
            let mut client =
                Client { seed, random: &mut random, known: &mut known, stage: &stage, root: &root };
            for _ in 0..steps {
                client.one_step().await;
            }
            if last {
                client.finish().await;
                finished(seed, &stage, &known, &world).await;
            } else if !is_killed {
                stage.engine.close().await;
            }
            *known.counts.entry(if is_killed { "kill" } else { "close" }).or_default() += 1;
            ((), trace)
        });
    }
    for (what, n) in known.counts {
        *counts.entry(what).or_default() += n;
    }
}

async fn finished(seed: u64, stage: &Stage, known: &Known, world: &World) {
    assert_eq!(stage.engine.running(), 0, "seed {seed}");
    for session in &known.sessions {
        let all = records(stage.engine.trace(), session).await.unwrap();
        check(seed, &all, false);
        let turns: BTreeSet<String> = all
            .iter()
            .filter_map(|r| match r.body.evt() {
                Some(AgentEvt::TurnAccepted { turn_id, .. }) => Some(turn_id.clone()),
                _ => None,
            })
            .collect();
        let acknowledged = known.acknowledged.get(session).cloned().unwrap_or_default();
        assert!(
            acknowledged.is_subset(&turns),
            "seed {seed}: lost {:?}",
            acknowledged.difference(&turns).collect::<Vec<_>>()
        );
    }
    for (action, times) in world.acts().iter() {
        let is_read = matches!(action.as_str(), "one" | "two" | "missing");
        // A note needs no approval, so one that may have happened needs one as well.
        assert!(is_read || *times == 1, "seed {seed}: {action} was made {times} times");
    }
}

fn run(seeds: std::ops::Range<u64>) {
    let only = std::env::var("CAIRN_SEED").ok().and_then(|s| s.parse::<u64>().ok());
    let began = std::time::Instant::now();
    let (setup, mut counts) = (Setup::new(), HashMap::new());
    let seeds = only.map_or(seeds, |seed| seed..seed + 1);
    for seed in seeds.clone() {
        let (done, completion) = std::sync::mpsc::channel::<()>();
        let watch = std::thread::spawn(move || {
            if completion.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                eprintln!("seed {seed}: something waits for ever");
                std::process::abort();
            }
        });
        schedule(seed, &setup, &mut counts);
        drop(done);
        watch.join().unwrap();
        if seed % 100 == 99 {
            println!("schedules: {} hold, {:.0} s", seed + 1, began.elapsed().as_secs_f64());
        }
    }
    let counts: BTreeMap<_, _> = counts.into_iter().collect();
    println!("schedules: seeds {seeds:?} hold, {counts:?}, {:.1} s", began.elapsed().as_secs_f64());
}

#[test]
fn no_turn_is_lost_or_duplicated_in_any_schedule() {
    run(0..SHORT);
}

#[test]
#[ignore = "takes minutes: run it by name, in a release build"]
fn long_schedules() {
    run(0..LONG);
}
