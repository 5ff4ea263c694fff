//! Driving a turn to its end.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use cairn_harness::{Call, is_final};
use cairn_protocol::{
    error::{Failure, Reason},
    event::AgentEvt,
    explore::RunState,
    id::SessionId,
    model::Message,
    turn::{ModelChoice, Outcome, RunError, RunResult},
};
use cairn_trace::Append;

use tracing::Instrument as _;

use super::{OP, Taken, TurnAgent, TurnContext};
use crate::{Engine, span};

/// Time that a cancelled turn has to write down what came.
const GRACE: Duration = Duration::from_millis(60);
/// Characters of the user's words in a commit's subject.
const MAX_SUBJECT: usize = 60;

/// The failure of a turn that was told to stop.
pub(crate) fn cancelled() -> Failure {
    Failure::new(Reason::Cancelled, "the turn was cancelled")
}

/// A provider and its model by name.
pub(super) fn choice(provider: &dyn cairn_llm::Provider) -> ModelChoice {
    ModelChoice { provider: provider.name().into(), model: provider.model().into(), endpoint: None }
}

impl Engine {
    /// Drives a turn in the background, and the ones that wait behind it.
    pub(super) fn spawn_turn(&self, cx: TurnContext, taken: Taken) {
        let engine = self.clone();
        // Here, where the request that starts it is still at work. Those behind it are of requests long gone.
        let span = span_of(&cx, &taken);
        self.inner.tasks.spawn(async move {
            let session = cx.session().clone();
            let mut next = Some((cx, taken));
            let mut first = Some(span);
            while let Some((cx, taken)) = next.take() {
                let span = first.take().unwrap_or_else(|| span_of(&cx, &taken));
                engine.drive_turn(&cx, &taken).instrument(span).await;
                next = engine.next_turn(&session).await;
            }
        });
    }

    pub(super) async fn drive_turn(&self, cx: &TurnContext, taken: &Taken) {
        let agent = self.inner.turn_agent.get().cloned();
        let outcome = match agent {
            None => Err(Failure::new(Reason::NotSupported, "no agent is registered")),
            Some(agent) => {
                // A panic in an agent ends its turn, not the daemon.
                let work = cx.clone();
                let work = async move { work_on(&*agent, &work).await };
                let task = tokio::spawn(work.in_current_span());
                let ended = task.await;
                ended
                    .unwrap_or_else(|e| Err(Failure::new(Reason::Internal, format!("the agent failed: {e}"))))
            }
        };
        self.end_turn(cx, taken, outcome).await;
    }

    async fn end_turn(&self, cx: &TurnContext, taken: &Taken, outcome: Result<String, Failure>) {
        let aborted = cx.inside.handle.aborted.load(Ordering::SeqCst);
        if self.inner.shutdown.is_cancelled() && !aborted && outcome.is_err() {
            let evt = AgentEvt::Interrupted { op: OP.into() };
            let append =
                Append::new(cx.session(), vec![cx.record(None, None, evt)]).state(RunState::Interrupted);
            if let Err(cause) = self.inner.trace.append(append).await {
                Engine::log_lost(cx.session(), &cause);
            }
            return;
        }
        // From here on nobody is heard any more.
        self.inner.turns.close(cx.session());
        let last = match &outcome {
            Ok(text) => Some(text.clone()),
            Err(_) => self.last_words(cx).await,
        };
        let failure = outcome.err();
        let status = status(failure.as_ref(), aborted);
        let error = failure.map(|f| RunError {
            reason: f.reason.as_str().to_owned(),
            retryable: f.reason.retryable(),
            hint: f.reason.hint().to_owned(),
            message: f.message,
        });
        let result = RunResult {
            session_id: cx.session().clone(),
            turn_id: taken.params.turn_id.clone(),
            run_id: taken.run.clone(),
            status,
            final_output: last.filter(|text| !text.is_empty()),
            usage: cx.usage(),
            tool_trace: cx.tool_trace(),
            error,
            metadata: taken.params.metadata.clone(),
        };
        span::turn_ended(&tracing::Span::current(), &result);
        let state = match status {
            Outcome::Completed => RunState::Completed,
            Outcome::Cancelled => RunState::Stopped,
            Outcome::Failed | Outcome::Denied | Outcome::TimedOut => RunState::Failed,
        };
        let mut evts = vec![AgentEvt::RunCompleted { result: Box::new(result) }];
        if let Some(diff) = self.turn_diff(cx).await {
            let committed = self.auto_commit(cx, taken, &diff, status).await;
            evts.splice(0..0, std::iter::once(diff).chain(committed));
        }
        let records = evts.into_iter().map(|evt| cx.record(None, None, evt)).collect();
        let append = Append::new(cx.session(), records).state(state);
        if let Err(cause) = self.inner.trace.append(append).await {
            // The session stays `running` in the log; the next start marks it interrupted.
            Engine::log_lost(cx.session(), &cause);
        }
    }

    /// What the turn changed in files. That it cannot be told is no reason for a turn to fail.
    async fn turn_diff(&self, cx: &TurnContext) -> Option<AgentEvt> {
        let root = cx.inside.root.as_ref().filter(|_| !cx.tool_trace().is_empty())?;
        let handle = &cx.inside.handle;
        let trace = &self.inner.trace;
        match super::changes::event(trace, cx.session(), &handle.run, &handle.turn_id, root).await {
            Ok(evt) => evt,
            Err(cause) => {
                tracing::warn!(session = %cx.session(), %cause, "the turn's diff cannot be told");
                None
            }
        }
    }

    /// Commits what the turn changed, where the settings say so, through the gate as any action. That it cannot be done is
    /// told, and no reason for a turn to fail.
    async fn auto_commit(
        &self,
        cx: &TurnContext,
        taken: &Taken,
        diff: &AgentEvt,
        status: Outcome,
    ) -> Option<AgentEvt> {
        let prefix = cx.settings().auto_commit.as_ref().filter(|_| status == Outcome::Completed)?;
        let AgentEvt::TurnDiff { turn_id, paths, .. } = diff else { return None };
        if cx.feed().is_some() {
            return None;
        }
        let asked = taken.params.input.text();
        let line = asked.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("changes of a turn");
        let message =
            format!("{prefix} {}", line.chars().take(MAX_SUBJECT).collect::<String>()).trim().to_owned();
        let arguments = serde_json::json!({"paths": paths, "message": message});
        let call = Call {
            root: cx.inside.root.clone(),
            origin: cx.origin(Some("git_commit")),
            ..Call::new(cx.session().clone(), "git_commit", arguments)
        };
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

    /// What the model said last in this turn.
    async fn last_words(&self, cx: &TurnContext) -> Option<String> {
        let (talk, _) = super::Conversation::read(&self.inner.trace, cx.session()).await.ok()?;
        let this_turn = talk.messages.iter().rev().take_while(|m| !matches!(m, Message::User { .. }));
        this_turn.into_iter().find_map(|m| match m {
            Message::Assistant { text, .. } if !text.is_empty() => Some(text.clone()),
            _ => None,
        })
    }

    /// The turn that waits next, begun.
    async fn next_turn(&self, session: &SessionId) -> Option<(TurnContext, Taken)> {
        loop {
            let taken = self.inner.turns.end(session)?;
            if self.inner.shutdown.is_cancelled() {
                return None;
            }
            match self.begin_turn(session, &taken).await {
                Ok(cx) => return Some((cx, taken)),
                Err(cause) => Engine::log_lost(session, &cause),
            }
        }
    }
}

fn span_of(cx: &TurnContext, taken: &Taken) -> tracing::Span {
    span::run(OP, cx.session(), &taken.run, taken.resumed)
}

/// Lets the agent work until it is done, cancelled or out of time.
async fn work_on(agent: &dyn TurnAgent, cx: &TurnContext) -> Result<String, Failure> {
    let work = agent.turn(cx);
    tokio::pin!(work);
    tokio::select! {
        biased;
        outcome = &mut work => outcome,
        late = out_of_time(cx) => {
            cx.cancel().cancel();
            let _rest = tokio::time::timeout(GRACE, &mut work).await;
            Err(late)
        }
        () = cx.cancel().cancelled() => {
            tokio::time::timeout(GRACE, &mut work).await.unwrap_or_else(|_| Err(cancelled()))
        }
    }
}

/// Ends when the turn's time is over; the time that people took is not counted.
async fn out_of_time(cx: &TurnContext) -> Failure {
    let limit = cx.policy().timeout_seconds.map(Duration::from_secs).or(cx.settings().timeout);
    let Some(limit) = limit else { return std::future::pending().await };
    let began = Instant::now();
    let clock = Arc::clone(&cx.inside.clock);
    loop {
        let used = began.elapsed().saturating_sub(Duration::from_millis(clock.waited_ms()));
        let left = limit.saturating_sub(used);
        if left.is_zero() && !clock.is_waiting() {
            let text = format!("the turn took longer than {} s", limit.as_secs());
            return Failure::new(Reason::BudgetExceeded, text);
        }
        tokio::time::sleep(left.max(Duration::from_millis(50))).await;
    }
}

fn status(failure: Option<&Failure>, aborted: bool) -> Outcome {
    match failure {
        None => Outcome::Completed,
        Some(_) if aborted => Outcome::Cancelled,
        Some(f) if f.reason == Reason::Cancelled => Outcome::Cancelled,
        Some(f) if f.reason == Reason::BudgetExceeded => Outcome::TimedOut,
        Some(f) if is_final(f) || f.reason == Reason::ExternalDenied => Outcome::Denied,
        Some(_) => Outcome::Failed,
    }
}
