//! `run_agent`: a task for another agent, in a session of its own. The turn that calls it receives
//! the final answer only, so that what the agent read does not fill its context.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use cairn_harness::{Output, Permit, Tool, ToolSpec, arguments};
use cairn_protocol::{
    envelope::{Body, Envelope},
    error::{Failure, Reason},
    event::AgentEvt,
    id::SessionId,
    plugin::HookEvent,
    session::{After, ArchiveParams, SessionCreateParams},
    turn::{ExecutionPolicy, Input, RunResult, RunStartParams, TurnRef},
};
use cairn_trace::{Append, Step};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Engine, engine::Inner};

/// Name of the tool.
pub(crate) const NAME: &str = "run_agent";
/// Most bytes of a task.
const MAX_TASK: usize = 64 * 1024;
/// Tokens that an agent may use unless the call names a number.
const DEFAULT_TOKENS: u64 = 300_000;
/// Most tokens that a call can give to an agent.
const MAX_TOKENS: u64 = 2_000_000;
/// Longest duration of an agent, in seconds, and the duration unless the call names one.
const MAX_SECONDS: u64 = 30 * 60;
const DEFAULT_SECONDS: u64 = 10 * 60;
/// Characters of the task in the title of the session.
const TITLE: usize = 60;
/// Most agents of one session at once.
const MAX_AGENTS: usize = 4;

/// Introduction to the task, which the agent reads before it.
const INTRODUCTION: &str = "You work on one task for another agent, which sees only your last \
message. Do the task without asking back, and end with a complete and concise report: findings \
with the paths and lines that support them, and what you could not find or do.";

/// Rights of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Access {
    /// It reads and searches.
    #[default]
    Read,
    /// It also edits and runs commands, as far as the rules of this session allow it.
    Edit,
}

/// Arguments of the tool `run_agent`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunAgent {
    /// The complete task: the agent knows nothing of this conversation.
    task: String,
    /// `read` (default): read and search only; `edit`: also edit files and run commands.
    #[serde(default)]
    access: Access,
    /// Most tokens of all its requests and answers; 300,000 by default.
    #[serde(default)]
    max_tokens: Option<u64>,
    /// Most seconds; 600 by default, at most 1,800.
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

/// The tool. It fails once its engine has been dropped.
struct AgentRunner {
    engine: Weak<Inner>,
}

/// Creates the tool for the registry of `engine`.
pub fn tool(engine: &Arc<Inner>) -> Arc<dyn Tool> {
    Arc::new(AgentRunner { engine: Arc::downgrade(engine) })
}

#[async_trait::async_trait]
impl Tool for AgentRunner {
    fn spec(&self) -> ToolSpec {
        let text = "Gives a task to another agent with a context of its own and returns its report. \
            Use it for searches that read much, and call it several times at once for independent \
            tasks.";
        ToolSpec {
            paths: &[],
            // Each call of the agent passes the gate with its own effect.
            own_state: true,
            delegates: true,
            timeout: Duration::from_secs(MAX_SECONDS + 60),
            ..ToolSpec::writing::<RunAgent>(NAME, text)
        }
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let call: RunAgent = arguments(value)?;
        let refuse = |text: String| Err(Failure::new(Reason::InvalidParams, text));
        if call.task.trim().is_empty() || call.task.len() > MAX_TASK {
            return refuse(format!("task must have 1 to {MAX_TASK} bytes"));
        }
        let closed = || Failure::new(Reason::ShuttingDown, "the engine has shut down");
        let engine = Engine { inner: self.engine.upgrade().ok_or_else(closed)? };
        let parent = permit.session().clone();
        let Some(turn) = engine.inner.sessions.view(&parent).turn else {
            return refuse(format!("{NAME} runs inside a turn only"));
        };
        let _slot = AgentSlot::take(&engine.inner, &parent)?;
        let policy = policy(&engine, &parent, &call).await?;
        let child = engine.child_session(&permit, &call.task).await?;
        let params = RunStartParams {
            session_id: child.clone(),
            turn_id: "task".into(),
            input: Input::Text(call.task),
            context: Some(INTRODUCTION.to_owned().into()),
            policy: Some(policy),
            metadata: [
                ("parentSession".to_owned(), parent.to_string()),
                ("parentTurn".to_owned(), turn.turn_id.clone()),
            ]
            .into(),
        };
        let running = Running { engine: engine.clone(), session: child.clone() };
        let approvals = engine.inner.harness.approvals();
        let _waiting = approvals.is_unattended(&parent).then(|| approvals.join_session(&child));
        let receipt = engine.start_run(params, None).await?;
        let result = engine.follow_child(&permit, &child, receipt.seq.saturating_sub(1)).await;
        drop(running);
        let (session_id, agent) = (parent.clone(), child.clone());
        engine.notify_plugins(|| HookEvent::SubagentStop { session_id, agent }).await;
        report(&child, &result?)
    }
}

/// Returns the report of an agent for the model, with its budget's use.
fn report(child: &SessionId, result: &RunResult) -> Result<Output, Failure> {
    let value = json!({
        "report": result.final_output,
        "status": result.status,
        "error": result.error.as_ref().map(|error| error.message.as_str()),
        "calls": result.tool_trace.len(),
        "usage": result.usage,
        "sessionId": child,
    });
    Output::of("agent_report", &value, false)
}

/// Returns the policy of an agent: that of the turn that calls it, with fewer tools and a budget of
/// its own.
async fn policy(
    engine: &Engine,
    parent: &SessionId,
    call: &RunAgent,
) -> Result<ExecutionPolicy, Failure> {
    let latest = engine.inner.trace.latest_run(parent).await?;
    let params = latest.and_then(|run| serde_json::from_str::<RunStartParams>(&run.params).ok());
    let turn = params.and_then(|params| params.policy).unwrap_or_default();
    let specs = engine.inner.harness.registry().specs();
    let allowed = |spec: &&ToolSpec| {
        let listed = match &turn.ops {
            Some(ops) => ops.iter().any(|op| *op == spec.name),
            None => !spec.hidden && (!spec.network || turn.network),
        };
        // An agent that starts agents could start them without end.
        let fits = spec.read_only || call.access == Access::Edit;
        listed && fits && spec.name != NAME
    };
    let ops = specs.iter().filter(allowed).map(|spec| spec.name.to_string()).collect();
    let tokens = call.max_tokens.unwrap_or(DEFAULT_TOKENS).clamp(1, MAX_TOKENS);
    Ok(ExecutionPolicy {
        ops: Some(ops),
        max_tokens: Some(turn.max_tokens.map_or(tokens, |most| most.min(tokens))),
        timeout_seconds: Some(
            call.timeout_seconds.unwrap_or(DEFAULT_SECONDS).clamp(1, MAX_SECONDS),
        ),
        ..turn
    })
}

impl Engine {
    /// Creates the session of an agent, with the root and the model of its parent.
    async fn child_session(&self, permit: &Permit, task: &str) -> Result<SessionId, Failure> {
        let line = task.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        let title = format!("agent: {}", line.chars().take(TITLE).collect::<String>());
        let root = permit.root().map(|root| root.id.to_string());
        let params = SessionCreateParams { title: Some(title), root, ..Default::default() };
        let child = self.create_session(params).await?.session_id;
        let model = self.model_choice(permit.session()).await?;
        self.inner.trace.append(Append::new(&child, vec![]).model(model)).await?;
        Ok(child)
    }

    /// Follows an agent to its end. Its requests for approval appear in the parent's session too,
    /// live, so that the parent's client can answer them.
    async fn follow_child(
        &self,
        permit: &Permit,
        child: &SessionId,
        after: u64,
    ) -> Result<RunResult, Failure> {
        let (mut follower, _) = self.inner.trace.follow(child, &After::Seq(after)).await?;
        loop {
            let step = tokio::select! {
                biased;
                () = permit.cancel().cancelled() => {
                    return Err(Failure::new(Reason::Cancelled, "the agent was cancelled"));
                }
                step = follower.step() => step?,
            };
            let lines = match step {
                Step::Records(lines) => lines,
                Step::Deleted => {
                    return Err(Failure::new(
                        Reason::SessionNotFound,
                        "the agent's session was deleted",
                    ));
                }
                Step::Ephemeral(_) | Step::Synced(_) | Step::Lagged(_) => continue,
            };
            for line in lines {
                let unreadable = |e: serde_json::Error| {
                    Failure::new(Reason::StorageFailed, format!("a record of the agent: {e}"))
                };
                let record: Envelope = serde_json::from_str(&line).map_err(unreadable)?;
                let Body::Evt { evt } = record.body else { continue };
                match evt {
                    AgentEvt::ApprovalRequired { .. } | AgentEvt::ApprovalResolved { .. } => {
                        self.inner.trace.pass(permit.session(), None, permit.command(), &evt);
                    }
                    AgentEvt::RunCompleted { result } => return Ok(*result),
                    _ => {}
                }
            }
        }
    }
}

/// Sessions with the numbers of their running agents.
pub(crate) type AgentCounts = Mutex<HashMap<SessionId, usize>>;

/// One of the agents that a session may run at once.
struct AgentSlot {
    engine: Arc<Inner>,
    session: SessionId,
}

impl AgentSlot {
    fn take(engine: &Arc<Inner>, session: &SessionId) -> Result<Self, Failure> {
        let mut counts = engine.agent_counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(session.clone()).or_insert(0);
        if *count >= MAX_AGENTS {
            let text = format!("{MAX_AGENTS} agents of this session run already; wait for one");
            return Err(Failure::new(Reason::Overloaded, text));
        }
        *count += 1;
        Ok(Self { engine: Arc::clone(engine), session: session.clone() })
    }
}

impl Drop for AgentSlot {
    fn drop(&mut self) {
        let mut counts = self.engine.agent_counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.session);
            }
        }
    }
}

/// An agent's turn, which is cancelled and whose session is archived when its caller goes.
struct Running {
    engine: Engine,
    session: SessionId,
}

impl Drop for Running {
    fn drop(&mut self) {
        let (engine, session) = (self.engine.clone(), self.session.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(self.engine.inner.tasks.track_future(async move {
            let turn = TurnRef { session_id: session.clone(), turn_id: None };
            let archive = ArchiveParams { session_id: session.clone(), archived: true };
            for outcome in [
                engine.cancel_run(turn).await.map(drop),
                engine.archive_session(archive).await.map(drop),
            ] {
                if let Err(failure) = outcome {
                    tracing::warn!(%session, %failure, "an agent's session is not archived");
                }
            }
        }));
    }
}
