//! The one way to act.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Instant,
};

use cairn_protocol::{
    error::{Failure, Reason},
    id::SessionId,
};
use cairn_trace::{AuditIntent, AuditOutcome, Trace};
use cairn_workspace::Root;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    Grants, Output, Permit, Registry, Rules, Sandbox, Subject, Verdict, command::CommandLine, registry::Entry,
};

/// Most bytes of an output's JSON.
const MAX_OUTPUT: usize = 8 * 1024 * 1024;

/// A tool call that wants to pass.
#[derive(Debug, Clone)]
pub struct Call {
    /// The session that acts.
    pub session: SessionId,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Value,
    /// The root the session works in.
    pub root: Option<Root>,
    /// What its run may do.
    pub grants: Grants,
    /// Ends the call early.
    pub cancel: CancellationToken,
}

/// The gate with all it needs.
pub struct Harness {
    registry: Registry,
    /// A decision is made by one set of rules, whatever takes its place meanwhile.
    rules: RwLock<Arc<Rules>>,
    trace: Trace,
    sandbox: Arc<Sandbox>,
}

impl Harness {
    /// A gate over `registry` under `rules`, recording in `trace`.
    pub fn new(registry: Registry, rules: Rules, trace: Trace) -> Self {
        let sandbox = Arc::new(Sandbox::new(None));
        Self { registry, rules: RwLock::new(Arc::new(rules)), trace, sandbox }
    }

    /// The same with a sandbox for processes; without one none is started.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: Arc<Sandbox>) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// The sandbox for processes.
    pub fn sandbox(&self) -> &Arc<Sandbox> {
        &self.sandbox
    }

    /// Takes other rules for the calls that come.
    pub fn set_rules(&self, rules: Rules) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The tools there are.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Look-up → schema → policy → audit → permit → run → bounds → audit.
    ///
    /// # Errors
    /// `unknown_tool`, `invalid_params`, `tool_denied`, `audit_failed` (nothing was done), `tool_timed_out`,
    /// `cancelled`, or the tool's own.
    pub async fn call(&self, call: Call) -> Result<Output, Failure> {
        let entry = self.registry.find(&call.name)?;
        entry.check(&call.arguments)?;
        let audit = self.admit(entry, &call).await?;
        let cancel = call.cancel.child_token();
        let sandbox = Arc::clone(&self.sandbox);
        // Nobody is asked for less than the full sandbox ([`Sandbox::consent`]), so that it is refused.
        let permit =
            Permit::grant(call.session.clone(), call.root.clone(), &call.grants, cancel, sandbox, false);
        let started = Instant::now();
        let outcome = run(entry, permit, call.arguments).await.and_then(|output| bounded(&call.name, output));
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let done = AuditOutcome {
            millis,
            outcome: outcome.as_ref().map_or_else(|e| e.reason.as_str(), |_| "ok").to_owned(),
            exit_code: outcome.as_ref().ok().and_then(|o| o.exit_code),
            truncated: outcome.as_ref().is_ok_and(|o| o.truncated),
        };
        self.trace.audit_outcome(audit, done).await.map_err(|e| unrecorded(&call.name, &e))?;
        outcome
    }

    /// Decides and records the decision; the answer is the audit's id.
    async fn admit(&self, entry: &Entry, call: &Call) -> Result<u64, Failure> {
        let paths = named_paths(entry, call);
        let command = command_line(entry, call, &paths);
        let subject = Subject {
            tool: entry.spec.name,
            paths: &paths,
            command: command.as_ref(),
            read_only: entry.spec.read_only,
            network: entry.spec.network,
            narrows: entry.spec.narrows,
            grants: &call.grants,
            memory: &[],
        };
        let decision = self.rules().decide(&subject);
        let allowed = decision.verdict == Verdict::Allow;
        let intent = AuditIntent {
            session: call.session.clone(),
            tool: call.name.clone(),
            args_digest: cairn_trace::digest(&call.arguments),
            decision: if allowed { "allow" } else { "deny" },
            rule: decision.rule.clone(),
        };
        let id = self.trace.audit_intent(intent).await.map_err(|e| unrecorded(&call.name, &e))?;
        if allowed {
            return Ok(id);
        }
        let why = if decision.verdict == Verdict::Ask { " and nobody can be asked" } else { "" };
        let reason = if decision.rule.starts_with("policy.network") {
            Reason::NetworkDenied
        } else {
            Reason::ToolDenied
        };
        Err(Failure::new(reason, format!("tool {} is not allowed by {}{why}", call.name, decision.rule)))
    }
}

async fn run(entry: &Entry, permit: Permit, arguments: Value) -> Result<Output, Failure> {
    let limit = entry.spec.timeout;
    let cancel = permit.cancel().clone();
    tokio::select! {
        // A call that is cancelled and ends at once counts as cancelled.
        biased;
        () = cancel.cancelled() => {
            Err(Failure::new(Reason::Cancelled, format!("tool {} was cancelled", entry.spec.name)))
        }
        outcome = entry.tool.run(permit, arguments) => outcome,
        () = tokio::time::sleep(limit) => {
            cancel.cancel();
            let text = format!("tool {} took longer than {} s", entry.spec.name, limit.as_secs());
            Err(Failure::new(Reason::ToolTimedOut, text))
        }
    }
}

fn bounded(name: &str, output: Output) -> Result<Output, Failure> {
    let size = output.value.to_string().len();
    if size <= MAX_OUTPUT {
        return Ok(output);
    }
    Err(Failure::new(Reason::TooLarge, format!("tool {name} made {size} bytes, {MAX_OUTPUT} are allowed")))
}

/// Paths in the arguments, relative to the session's root where they lie in it.
fn named_paths(entry: &Entry, call: &Call) -> Vec<String> {
    let base = call.root.as_ref().map(|root| root.path.to_string_lossy().into_owned());
    let relative = |text: &str| match &base {
        Some(base) if crate::policy::beneath(text, base) && text.starts_with('/') => {
            text.get(base.len()..).unwrap_or("").trim_start_matches('/').to_owned()
        }
        _ => text.to_owned(),
    };
    entry.spec.paths.iter().filter_map(|key| call.arguments.get(*key)?.as_str().map(relative)).collect()
}

/// The command line in the arguments, read once for all rules.
fn command_line(entry: &Entry, call: &Call, paths: &[String]) -> Option<CommandLine> {
    let text = call.arguments.get(entry.spec.command?)?.as_str()?;
    Some(CommandLine::parse(text).within(paths.first().map_or("", String::as_str)))
}

fn unrecorded(tool: &str, cause: &Failure) -> Failure {
    tracing::error!(tool, %cause, "audit cannot be written");
    let reason = if cause.reason == Reason::DiskFull { Reason::DiskFull } else { Reason::AuditFailed };
    Failure::new(reason, format!("tool {tool}: the call could not be recorded: {cause}"))
}
