//! Unattended runs: turns that go on without a client until they are complete, a check succeeds,
//! or a limit ends them. Each has one supervisor, a task that follows its session's log, starts
//! the next turn and publishes when the run waits or ends. The list in the state file is the
//! owner of what a supervisor must know after a restart.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use cairn_harness::UnattendedSession;
use cairn_protocol::{
    error::{Failure, Reason},
    event::AgentEvt,
    explore::{RunReceipt, RunState},
    id::{ScheduleId, SessionId},
    session::{After, Page},
    time::Timestamp,
    turn::{Input, Outcome, RunResult, RunStartParams, TurnRef},
    unattended::{UnattendedRun, UnattendedStartParams, UnattendedStatus},
};
use cairn_trace::{Follower, Step};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::{Engine, confined, detach_on_drop::DetachOnDrop};

/// Most unattended runs at once.
const MAX_ACTIVE: usize = 64;
/// Finished runs that remain listed.
const MAX_FINISHED: usize = 100;
/// Most turns of a run.
const MAX_TURNS: u32 = 100;
/// Turns of a run with a check, unless it names a number.
const DEFAULT_TURNS: u32 = 10;
/// Most bytes of the first turn's parameters, which the state file stores.
const MAX_TURN: usize = 128 * 1024;
/// Characters of the request in lists.
const MAX_LINE: usize = 200;

/// An unattended run as the state file stores it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredRun {
    pub run: UnattendedRun,
    /// The current turn; absent once the run has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<RunStartParams>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    /// Cost of the session before the run, in millionths of a dollar.
    #[serde(default)]
    cost_before: u64,
}

/// Something that a person wants to know of an unattended run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEvent {
    /// The run with its status: `waiting`, or one that is final.
    pub run: UnattendedRun,
    /// Effect of the call that waits for an answer.
    pub question: Option<String>,
    /// Time of the event.
    pub at: Timestamp,
}

/// Receiver of events of unattended runs. It must not block.
pub type RunObserver = dyn Fn(RunEvent) + Send + Sync;

/// The supervisors that run.
#[derive(Default)]
pub(crate) struct UnattendedRuns {
    active: Mutex<HashMap<SessionId, CancellationToken>>,
    observer: OnceLock<Arc<RunObserver>>,
}

/// Removes a supervisor from the active ones at its end.
struct ActiveRun {
    engine: Engine,
    session: SessionId,
    /// Requests for approval wait for a person instead of being denied.
    _waiting: UnattendedSession,
}

impl Drop for ActiveRun {
    fn drop(&mut self) {
        let active = &self.engine.inner.unattended.active;
        active.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.session);
        // A schedule may wait for the end of its run.
        self.engine.inner.schedule_changes.notify_one();
    }
}

/// A record, or an ephemeral event, which has no number; commands have no event.
#[derive(Deserialize)]
struct EventLine {
    evt: Option<AgentEvt>,
}

/// End of a turn, as its supervisor sees it.
enum TurnEnd {
    Result(Box<RunResult>),
    /// The run was stopped.
    Stopped,
    /// The daemon stops: its next start continues.
    Shutdown,
}

impl Engine {
    /// Registers the receiver of events. Later calls have no effect.
    pub fn set_run_observer(&self, observer: Arc<RunObserver>) {
        if self.inner.unattended.observer.set(observer).is_err() {
            tracing::warn!("an observer of runs is already registered");
        }
    }

    /// Starts a turn that goes on without the client, and what follows it.
    ///
    /// # Errors
    /// As [`Engine::start_run`]; `invalid_params` for limits out of range; `session_busy` if the
    /// session has an unattended run already; `overloaded`.
    pub async fn start_unattended(
        &self,
        params: UnattendedStartParams,
        client: Option<String>,
    ) -> Result<RunReceipt, Failure> {
        self.start_unattended_of(params, client, None).await
    }

    pub(crate) async fn start_unattended_of(
        &self,
        params: UnattendedStartParams,
        client: Option<String>,
        schedule: Option<ScheduleId>,
    ) -> Result<RunReceipt, Failure> {
        self.require_open()?;
        check_limits(&params)?;
        let session = params.turn.session_id.clone();
        let stop = self.inner.shutdown.child_token();
        let active = self.register_run(&session, &stop)?;
        let cost_before = self.cost_of(&session).await?;
        let run = UnattendedRun {
            session_id: session.clone(),
            request: first_line(&params.turn.input.text()),
            status: UnattendedStatus::Running,
            reason: None,
            turns: 1,
            max_turns: params.max_turns.unwrap_or(default_turns(&params)),
            until: params.until,
            check_exit_code: None,
            max_usd: params.max_usd,
            schedule,
            started_at: Timestamp::now(),
            finished_at: None,
        };
        let mut turn = params.turn;
        limit_cost(&mut turn, params.max_usd);
        let stored =
            StoredRun { run, turn: Some(turn.clone()), client: client.clone(), cost_before };
        // Stored first: a crash in between must not leave a turn without its supervisor.
        self.store_run(&stored)?;
        let supervised = self.clone();
        let started = DetachOnDrop::new(&self.inner.tasks, async move {
            let receipt = supervised.start_run(turn, client).await;
            match &receipt {
                Ok(receipt) => supervised.spawn_supervisor(stored, receipt.seq, (active, stop)),
                Err(_) => supervised.remove_run(&session),
            }
            receipt
        });
        started.await
    }

    fn register_run(
        &self,
        session: &SessionId,
        stop: &CancellationToken,
    ) -> Result<ActiveRun, Failure> {
        let all = &self.inner.unattended.active;
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.contains_key(session) {
            let text = format!("session {session} has an unattended run already");
            return Err(Failure::new(Reason::SessionBusy, text));
        }
        if all.len() >= MAX_ACTIVE {
            let text = format!("{MAX_ACTIVE} unattended runs are active already");
            return Err(Failure::new(Reason::Overloaded, text));
        }
        all.insert(session.clone(), stop.clone());
        let waiting = self.inner.harness.approvals().join_session(session);
        Ok(ActiveRun { engine: self.clone(), session: session.clone(), _waiting: waiting })
    }

    /// Starts the supervisor of a run whose turn was accepted with the record `seq`.
    fn spawn_supervisor(
        &self,
        stored: StoredRun,
        seq: u64,
        (active, stop): (ActiveRun, CancellationToken),
    ) {
        let engine = self.clone();
        self.inner.tasks.spawn(async move {
            engine.supervise(stored, seq, &stop).await;
            drop(active);
        });
    }

    /// Continues the unattended runs that the daemon's stop interrupted. The agent and the models
    /// must be registered.
    pub async fn resume_unattended(&self) {
        let stored = self.inner.state.get().unattended;
        for run in stored.into_iter().filter(|stored| !stored.run.status.is_final()) {
            let session = run.run.session_id.clone();
            let stop = self.inner.shutdown.child_token();
            match self.resume_run(&run, &stop).await {
                Ok((active, seq)) => self.spawn_supervisor(run, seq, (active, stop)),
                Err(failure) => {
                    tracing::warn!(%session, %failure, "an unattended run cannot continue");
                    self.end_run(run, UnattendedStatus::Failed, Some(failure.message));
                }
            }
        }
    }

    async fn resume_run(
        &self,
        run: &StoredRun,
        stop: &CancellationToken,
    ) -> Result<(ActiveRun, u64), Failure> {
        let session = &run.run.session_id;
        let active = self.register_run(session, stop)?;
        let lost = || Failure::new(Reason::Internal, "its turn is not stored");
        let turn = run.turn.clone().ok_or_else(lost)?;
        if self.session(session).await?.state == RunState::Interrupted {
            self.resume_session(session).await?;
        }
        // A turn that was accepted already is not started again: its id is its retry key.
        let receipt = self.start_run(turn, run.client.clone()).await?;
        Ok((active, receipt.seq))
    }

    /// Lists the unattended runs, newest first.
    ///
    /// # Errors
    /// None at present; the signature is that of other lists.
    pub async fn unattended_runs(&self) -> Result<Page<UnattendedRun>, Failure> {
        let all = self.inner.state.get().unattended;
        let data = all.into_iter().rev().map(|stored| stored.run).collect();
        Ok(Page { data, next_cursor: None })
    }

    /// Returns the latest unattended run of a session.
    pub(crate) fn unattended_run(&self, session: &SessionId) -> Option<UnattendedRun> {
        let all = self.inner.state.get().unattended;
        let mut all = all.into_iter().rev();
        all.find(|stored| stored.run.session_id == *session).map(|stored| stored.run)
    }

    /// Stops an unattended run: its turn is cancelled and no other follows. Has no effect on one
    /// that has ended.
    ///
    /// # Errors
    /// `run_not_found` if the session has none.
    pub async fn stop_unattended(&self, session: &SessionId) -> Result<UnattendedRun, Failure> {
        let known = self.unattended_run(session).ok_or_else(|| {
            let text = format!("session {session} has no unattended run");
            Failure::new(Reason::RunNotFound, text)
        })?;
        let active = &self.inner.unattended.active;
        let stop = active.lock().unwrap_or_else(PoisonError::into_inner).get(session).cloned();
        if let Some(stop) = stop {
            stop.cancel();
        }
        Ok(known)
    }

    /// Returns true if a session's unattended run is active.
    pub fn is_unattended(&self, session: &SessionId) -> bool {
        let active = &self.inner.unattended.active;
        active.lock().unwrap_or_else(PoisonError::into_inner).contains_key(session)
    }

    /// Returns true if unattended runs are active.
    pub(crate) fn has_unattended_runs(&self) -> bool {
        let active = &self.inner.unattended.active;
        !active.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    async fn supervise(&self, mut stored: StoredRun, seq: u64, stop: &CancellationToken) {
        let (status, reason) = match self.drive_run(&mut stored, seq, stop).await {
            Ok(Some(end)) => end,
            Ok(None) => return,
            Err(_) if self.is_draining() => return,
            Err(failure) => (UnattendedStatus::Failed, Some(failure.message)),
        };
        self.end_run(stored, status, reason);
    }

    /// Follows the turns of a run to its end; `None` if the daemon's stop interrupts it.
    async fn drive_run(
        &self,
        stored: &mut StoredRun,
        seq: u64,
        stop: &CancellationToken,
    ) -> Result<Option<(UnattendedStatus, Option<String>)>, Failure> {
        let session = stored.run.session_id.clone();
        let after = After::Seq(seq.saturating_sub(1));
        let (mut follower, _) = self.inner.trace.follow(&session, &after).await?;
        loop {
            let result = match self.turn_end(stored, &mut follower, stop).await? {
                TurnEnd::Result(result) => result,
                TurnEnd::Shutdown => return Ok(None),
                TurnEnd::Stopped => {
                    self.cancel_run(TurnRef { session_id: session, turn_id: None }).await?;
                    return Ok(Some((UnattendedStatus::Cancelled, None)));
                }
            };
            if let Some(end) = end_of(&result, stored.run.until.is_some()) {
                return Ok(Some(end));
            }
            let Some(command) = stored.run.until.clone() else {
                return Ok(Some((UnattendedStatus::Completed, None)));
            };
            let check = self.run_confined(&session, &command, stored.client.clone(), stop).await;
            if self.inner.shutdown.is_cancelled() {
                return Ok(None);
            }
            if stop.is_cancelled() {
                return Ok(Some((UnattendedStatus::Cancelled, None)));
            }
            let check = match check {
                Ok(check) => check,
                Err(failure) => {
                    let text = format!("the check could not run: {}", failure.message);
                    return Ok(Some((UnattendedStatus::Failed, Some(text))));
                }
            };
            stored.run.check_exit_code = Some(check.exit_code);
            if check.exit_code == 0 {
                return Ok(Some((UnattendedStatus::Completed, None)));
            }
            if let Some(reason) = self.exhausted(stored).await? {
                return Ok(Some((UnattendedStatus::Exhausted, Some(reason))));
            }
            self.next_turn(stored, &command, &check).await?;
        }
    }

    /// Returns the limit that ends a run whose check failed.
    async fn exhausted(&self, stored: &StoredRun) -> Result<Option<String>, Failure> {
        let run = &stored.run;
        if run.turns >= run.max_turns {
            return Ok(Some(format!("the check failed after {} turns", run.turns)));
        }
        let remaining = self.remaining_usd(stored).await?;
        let limit = run.max_usd.unwrap_or_default();
        Ok(remaining
            .filter(|remaining| *remaining <= 0.0)
            .map(|_| format!("the check failed, and the budget of {limit} USD is used")))
    }

    async fn remaining_usd(&self, stored: &StoredRun) -> Result<Option<f64>, Failure> {
        let Some(limit) = stored.run.max_usd else { return Ok(None) };
        let cost = self.cost_of(&stored.run.session_id).await?;
        let spent = cost.saturating_sub(stored.cost_before);
        Ok(Some(limit - spent as f64 / 1e6))
    }

    /// Starts the turn that receives the output of a failed check.
    async fn next_turn(
        &self,
        stored: &mut StoredRun,
        command: &str,
        check: &confined::CommandEnd,
    ) -> Result<(), Failure> {
        let lost = || Failure::new(Reason::Internal, "the turn of the run is not stored");
        let mut turn = stored.turn.clone().ok_or_else(lost)?;
        stored.run.turns += 1;
        let text = format!(
            "The check `{command}` failed with exit status {}. Correct the cause. Its output ends \
             with:\n\n{}",
            check.exit_code, check.output
        );
        turn.input = Input::Text(text);
        turn.context = None;
        turn.turn_id = format!("unattended-{}", uuid::Uuid::now_v7().simple());
        limit_cost(&mut turn, self.remaining_usd(stored).await?);
        stored.turn = Some(turn.clone());
        self.store_run(stored)?;
        self.start_run(turn, stored.client.clone()).await.map(drop)
    }

    /// Waits for the end of the current turn, and publishes when it waits for an answer.
    async fn turn_end(
        &self,
        stored: &mut StoredRun,
        follower: &mut Follower,
        stop: &CancellationToken,
    ) -> Result<TurnEnd, Failure> {
        let turn_id = stored.turn.as_ref().map(|turn| turn.turn_id.clone()).unwrap_or_default();
        loop {
            let step = tokio::select! {
                biased;
                () = stop.cancelled() => {
                    let shutdown = self.inner.shutdown.is_cancelled();
                    return Ok(if shutdown { TurnEnd::Shutdown } else { TurnEnd::Stopped });
                }
                step = follower.step() => step?,
            };
            let lines = match step {
                Step::Records(lines) | Step::Ephemeral(lines) => lines,
                Step::Deleted => {
                    let text = "the session was deleted";
                    return Err(Failure::new(Reason::SessionNotFound, text));
                }
                Step::Synced(_) | Step::Lagged(_) => continue,
            };
            for line in lines {
                let unreadable = |e: serde_json::Error| {
                    Failure::new(Reason::StorageFailed, format!("a record of the run: {e}"))
                };
                let line: EventLine = serde_json::from_str(&line).map_err(unreadable)?;
                let Some(evt) = line.evt else { continue };
                match evt {
                    AgentEvt::ApprovalRequired { approval } => {
                        let is_pending = self.is_pending(&approval.approval_id).await?;
                        if is_pending {
                            self.set_status(stored, UnattendedStatus::Waiting)?;
                            self.publish(&stored.run, Some(approval.preview.summary.clone()));
                        }
                    }
                    AgentEvt::ApprovalResolved { .. }
                        if stored.run.status == UnattendedStatus::Waiting =>
                    {
                        self.set_status(stored, UnattendedStatus::Running)?;
                    }
                    AgentEvt::RunCompleted { result } if result.turn_id == turn_id => {
                        return Ok(TurnEnd::Result(result));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Returns true if an approval is not answered; the backlog contains answered ones.
    async fn is_pending(&self, id: &cairn_protocol::id::ApprovalId) -> Result<bool, Failure> {
        Ok(self.inner.trace.approval(id).await?.resolution.is_none())
    }

    fn set_status(&self, stored: &mut StoredRun, status: UnattendedStatus) -> Result<(), Failure> {
        if stored.run.status == status {
            return Ok(());
        }
        stored.run.status = status;
        self.store_run(stored)
    }

    fn end_run(&self, mut stored: StoredRun, status: UnattendedStatus, reason: Option<String>) {
        stored.run.status = status;
        stored.run.reason = reason;
        stored.run.finished_at = Some(Timestamp::now());
        stored.turn = None;
        if let Err(failure) = self.store_run(&stored) {
            tracing::error!(session = %stored.run.session_id, %failure, "the end of an unattended run is not stored");
        }
        self.publish(&stored.run, None);
    }

    fn publish(&self, run: &UnattendedRun, question: Option<String>) {
        if let Some(observer) = self.inner.unattended.observer.get() {
            observer(RunEvent { run: run.clone(), question, at: Timestamp::now() });
        }
    }

    /// Stores a run, in place of an earlier state of it, and removes the oldest ended ones.
    fn store_run(&self, stored: &StoredRun) -> Result<(), Failure> {
        let stored = stored.clone();
        self.inner.state.change(|state| {
            let all = &mut state.unattended;
            let is_same = |known: &StoredRun| {
                known.run.session_id == stored.run.session_id
                    && known.run.started_at == stored.run.started_at
            };
            match all.iter_mut().find(|known| is_same(known)) {
                Some(known) => *known = stored,
                None => all.push(stored),
            }
            let finished = all.iter().filter(|known| known.run.status.is_final()).count();
            let mut surplus = finished.saturating_sub(MAX_FINISHED);
            all.retain(|known| {
                let is_removed = surplus > 0 && known.run.status.is_final();
                surplus -= usize::from(is_removed);
                !is_removed
            });
        })
    }

    /// Removes a run whose first turn was refused.
    fn remove_run(&self, session: &SessionId) {
        let removed = self.inner.state.change(|state| {
            let is_refused = |known: &StoredRun| {
                known.run.session_id == *session && !known.run.status.is_final()
            };
            state.unattended.retain(|known| !is_refused(known));
        });
        if let Err(failure) = removed {
            tracing::error!(%session, %failure, "a refused run remains in the list");
        }
    }
}

/// Returns the end of a run by the result of a turn; `None` if its check decides.
fn end_of(result: &RunResult, has_check: bool) -> Option<(UnattendedStatus, Option<String>)> {
    let error = result.error.as_ref();
    let is_reason = |reason: Reason| error.is_some_and(|error| error.reason == reason.as_str());
    let message = error.map(|error| error.message.clone());
    match result.status {
        Outcome::Completed => None,
        Outcome::Cancelled => Some((UnattendedStatus::Cancelled, message)),
        // The model may have done its work in the answers that it had.
        Outcome::Failed if has_check && is_reason(Reason::TurnLimit) => None,
        Outcome::Failed if is_reason(Reason::BudgetExceeded) => {
            Some((UnattendedStatus::Exhausted, message))
        }
        Outcome::Failed | Outcome::Denied | Outcome::TimedOut => {
            Some((UnattendedStatus::Failed, message))
        }
    }
}

fn default_turns(params: &UnattendedStartParams) -> u32 {
    if params.until.is_some() { DEFAULT_TURNS } else { 1 }
}

/// Rejects limits and commands out of range.
///
/// # Errors
/// `invalid_params` that names the parameter; `too_large`.
pub(crate) fn check_limits(params: &UnattendedStartParams) -> Result<(), Failure> {
    let bad = |text: String| Err(Failure::new(Reason::InvalidParams, text));
    if let Some(command) = &params.until {
        confined::check_command("until", command)?;
    }
    let turns = params.max_turns.unwrap_or(1);
    if !(1..=MAX_TURNS).contains(&turns) {
        return bad(format!("maxTurns must be 1 to {MAX_TURNS}"));
    }
    if params.until.is_none() && turns > 1 {
        return bad("maxTurns needs until: without a check one turn is the run".to_owned());
    }
    if params.max_usd.is_some_and(|limit| !(limit > 0.0 && limit.is_finite())) {
        return bad("maxUsd must be greater than 0".to_owned());
    }
    let size = serde_json::to_string(&params.turn).map_or(usize::MAX, |text| text.len());
    if size > MAX_TURN {
        let text = format!("the turn has {size} bytes; the limit is {MAX_TURN}");
        return Err(Failure::new(Reason::TooLarge, text));
    }
    Ok(())
}

/// Lowers the cost limit of a turn to what remains of the run's budget.
fn limit_cost(turn: &mut RunStartParams, remaining: Option<f64>) {
    let Some(remaining) = remaining else { return };
    let policy = turn.policy.get_or_insert_default();
    policy.max_usd = Some(policy.max_usd.map_or(remaining, |own| own.min(remaining)));
}

/// Returns the first line of a text that is not empty.
pub(crate) fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(MAX_LINE).collect()
}
