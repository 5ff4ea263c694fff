//! Driving a turn until it finishes.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use cairn_harness::{Call, is_final};
use cairn_protocol::{
    error::{Failure, Reason},
    event::AgentEvt,
    explore::RunState,
    model::Message,
    turn::{ModelChoice, Outcome, RunError, RunResult},
};
use tracing::Instrument as _;

use super::{QueuedTurn, TurnAgent, TurnContext};
use crate::{Engine, session::RunEnd, span};

/// Time that a cancelled turn has to record the partial answer.
const GRACE: Duration = Duration::from_millis(60);
/// Characters of the user's text in a commit's subject.
const MAX_SUBJECT: usize = 60;

/// Returns the failure of a cancelled turn.
pub(crate) fn cancelled() -> Failure {
    Failure::new(Reason::Cancelled, "the turn was cancelled")
}

/// Returns a provider and its model by name.
pub(super) fn choice(provider: &dyn cairn_llm::Provider) -> ModelChoice {
    ModelChoice { provider: provider.name().into(), model: provider.model().into(), endpoint: None }
}

impl Engine {
    /// Drives a turn until it finishes; the session's actor records its end.
    pub(crate) async fn drive_turn(&self, cx: &TurnContext, turn: &QueuedTurn) -> RunEnd {
        let agent = self.inner.turn_agent.get().cloned();
        let outcome = match agent {
            None => Err(Failure::new(Reason::NotSupported, "no agent is registered")),
            Some(agent) => {
                // A panic in an agent fails its turn, not the daemon.
                let (work, turn) = (cx.clone(), turn.clone());
                let work = async move { work_on(&*agent, &work, &turn).await };
                let task = tokio::spawn(work.in_current_span());
                let joined = task.await;
                joined.unwrap_or_else(|e| {
                    Err(Failure::new(Reason::Internal, format!("the agent failed: {e}")))
                })
            }
        };
        self.end_of(cx, turn, outcome).await
    }

    async fn end_of(
        &self,
        cx: &TurnContext,
        turn: &QueuedTurn,
        outcome: Result<String, Failure>,
    ) -> RunEnd {
        let aborted = cx.inner.handle.aborted.load(Ordering::SeqCst);
        if cx.core().is_cut_off() && !aborted && outcome.is_err() {
            let state = RunState::Interrupted;
            return RunEnd { interrupted: true, records: vec![], state, artifact: None };
        }
        let last = match &outcome {
            Ok(text) => Some(text.clone()),
            Err(_) => self.last_words(cx).await,
        };
        let failure = outcome.err();
        let status = status(failure.as_ref(), aborted, cx.inner.timed_out.load(Ordering::SeqCst));
        let mut evts = std::mem::take(&mut *super::context::locked(&cx.inner.closing));
        if evts.is_empty() {
            evts.extend(self.turn_diff(cx).await);
        }
        evts.extend(failure.as_ref().filter(|_| status != Outcome::Cancelled).map(super::error));
        let error = failure.map(|f| RunError {
            reason: f.reason.as_str().to_owned(),
            retryable: f.reason.retryable(),
            hint: f.reason.hint().to_owned(),
            message: f.message,
        });
        let result = RunResult {
            session_id: cx.session().clone(),
            turn_id: turn.params.turn_id.clone(),
            run_id: turn.run.clone(),
            status,
            final_output: last.filter(|text| !text.is_empty()),
            usage: cx.usage(),
            tool_trace: cx.tool_trace(),
            error,
            metadata: turn.params.metadata.clone(),
        };
        span::record_turn_result(&tracing::Span::current(), &result);
        let state = match status {
            Outcome::Completed => RunState::Completed,
            Outcome::Cancelled => RunState::Stopped,
            Outcome::Failed | Outcome::Denied | Outcome::TimedOut => RunState::Failed,
        };
        evts.push(AgentEvt::RunCompleted { result: Box::new(result) });
        let records = evts.into_iter().map(|evt| cx.record(None, None, evt)).collect();
        RunEnd { interrupted: false, records, state, artifact: None }
    }

    /// Records the changes of a turn that finished its work, and commits them where the settings
    /// require it.
    async fn close_changes(&self, cx: &TurnContext, turn: &QueuedTurn) {
        let Some(diff) = self.turn_diff(cx).await else { return };
        let committed = self.auto_commit(cx, turn, &diff).await;
        super::context::locked(&cx.inner.closing).extend(std::iter::once(diff).chain(committed));
    }

    /// Returns the turn's changes to files. An error here does not fail the turn.
    async fn turn_diff(&self, cx: &TurnContext) -> Option<AgentEvt> {
        let root = cx.root().filter(|_| !cx.tool_trace().is_empty())?;
        let handle = &cx.inner.handle;
        let trace = &self.inner.trace;
        match super::changes::event(trace, cx.session(), &handle.run, &handle.turn_id, root).await {
            Ok(evt) => evt,
            Err(cause) => {
                tracing::warn!(session = %cx.session(), %cause, "the turn's diff cannot be computed");
                None
            }
        }
    }

    /// Commits the turn's changes, where the settings require it, as an action of the turn: under
    /// its rights and before it finishes. An error is reported, and does not fail the turn.
    async fn auto_commit(
        &self,
        cx: &TurnContext,
        turn: &QueuedTurn,
        diff: &AgentEvt,
    ) -> Option<AgentEvt> {
        let prefix = cx.settings().auto_commit.as_ref()?;
        let AgentEvt::TurnDiff { turn_id, paths, .. } = diff else { return None };
        if cx.feed().is_some() {
            return None;
        }
        let input_text = turn.params.input.text();
        let line = input_text
            .lines()
            .map(str::trim)
            .find(|l| !l.is_empty())
            .unwrap_or("changes of a turn");
        let message = format!("{prefix} {}", line.chars().take(MAX_SUBJECT).collect::<String>())
            .trim()
            .to_owned();
        let arguments = serde_json::json!({"paths": paths, "message": message});
        let call = Call { clock: cx.clock(), ..cx.core().call(None, "git_commit", arguments) };
        match self.inner.harness.call(call).await {
            Ok(output) => {
                let commit = output.value.get("commit")?.as_str()?.to_owned();
                let paths = serde_json::from_value(output.value.get("paths")?.clone()).ok()?;
                Some(AgentEvt::GitCommit { turn_id: turn_id.clone(), commit, message, paths })
            }
            Err(failure) => {
                let message = format!("the changes are not committed: {}", failure.message);
                Some(AgentEvt::Warning { op: "git_commit".into(), message })
            }
        }
    }

    /// Returns the last text of the model in this turn.
    async fn last_words(&self, cx: &TurnContext) -> Option<String> {
        let (talk, _) = super::Conversation::read(&self.inner.trace, cx.session()).await.ok()?;
        let this_turn =
            talk.messages.iter().rev().take_while(|m| !matches!(m, Message::User { .. }));
        this_turn.into_iter().find_map(|m| match m {
            Message::Assistant { text, .. } if !text.is_empty() => Some(text.clone()),
            _ => None,
        })
    }
}

/// Runs the agent until it finishes, is cancelled or exceeds its time limit.
async fn work_on(
    agent: &dyn TurnAgent,
    cx: &TurnContext,
    turn: &QueuedTurn,
) -> Result<String, Failure> {
    let work = async {
        cx.settle_trust().await?;
        cx.notify_prompt(turn).await?;
        let text = agent.turn(cx).await?;
        cx.engine().close_changes(cx, turn).await;
        // Cancelled while its changes were committed.
        if cx.cancel().is_cancelled() { Err(cancelled()) } else { Ok(text) }
    };
    tokio::pin!(work);
    tokio::select! {
        biased;
        outcome = &mut work => outcome,
        late = out_of_time(cx) => {
            cx.inner.timed_out.store(true, Ordering::SeqCst);
            cx.cancel().cancel();
            let _rest = tokio::time::timeout(GRACE, &mut work).await;
            Err(late)
        }
        () = cx.cancel().cancelled() => {
            tokio::time::timeout(GRACE, &mut work).await.unwrap_or_else(|_| Err(cancelled()))
        }
    }
}

/// Returns when the turn's time limit expires; time spent waiting for approvers does not count.
async fn out_of_time(cx: &TurnContext) -> Failure {
    let limit = cx.policy().timeout_seconds.map(Duration::from_secs).or(cx.settings().timeout);
    let Some(limit) = limit else { return std::future::pending().await };
    let began = Instant::now();
    let clock = cx.clock();
    loop {
        let used = began.elapsed().saturating_sub(clock.waited());
        let remaining = limit.saturating_sub(used);
        if remaining.is_zero() && !clock.is_waiting() {
            let text = format!("the turn took longer than {} s", limit.as_secs());
            return Failure::new(Reason::BudgetExceeded, text);
        }
        tokio::time::sleep(remaining.max(Duration::from_millis(50))).await;
    }
}

fn status(failure: Option<&Failure>, aborted: bool, timed_out: bool) -> Outcome {
    match failure {
        None => Outcome::Completed,
        Some(_) if aborted => Outcome::Cancelled,
        Some(_) if timed_out => Outcome::TimedOut,
        Some(f) if f.reason == Reason::Cancelled => Outcome::Cancelled,
        Some(f) if is_final(f) || f.reason == Reason::ExternalDenied => Outcome::Denied,
        Some(_) => Outcome::Failed,
    }
}
