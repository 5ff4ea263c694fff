//! The gate: the only way to run a tool.

mod audited;
mod consult;
pub(crate) mod decide;
mod granted;
mod limits;
mod outside;
mod setup;

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::Instant,
};

use cairn_protocol::{
    approval::{Approval, ApprovalDecision, ApprovalResolveParams, Preview, Resolution},
    error::{Failure, Reason},
    id::{RootId, SessionId},
};
use cairn_trace::{Append, AuditIntent, AuditOutcome, Trace, TraceError};
use cairn_workspace::{ReadRules, Root, Roots, Visibility};
use serde_json::Value;
use tracing::{Instrument as _, Span};

use crate::{
    Answered, Approvals, Call, CallPaths, Caller, DecidedBy, Decision, Fallback, Hooks, Intent,
    MustAsk, Output, Permit, Registry, Rule, Rules, Sandbox, Verdict,
    autorun::AutorunWatch,
    background::Background,
    egress::Egress,
    paths::Resolver,
    permit::{Admission, Services},
    registry::Entry,
    repair,
    service::ServiceRunner,
    snapshot::Snapshots,
    span,
};
use decide::Judge;

/// Longest JSON of an output, in bytes.
const MAX_OUTPUT: usize = 8 * 1024 * 1024;

/// The gate with its dependencies.
pub struct Harness {
    registry: Registry,
    /// One decision uses one set of rules, even if the rules are replaced meanwhile.
    rules: RwLock<RuleSets>,
    /// The declared roots, which store the paths that rules hide.
    roots: Option<Arc<Roots>>,
    hooks: Option<Arc<dyn Hooks>>,
    approvals: Arc<Approvals>,
    trace: Trace,
    sandbox: Arc<Sandbox>,
    snapshots: Arc<Snapshots>,
    background: Arc<Background>,
    services: Arc<ServiceRunner>,
    egress: Arc<Egress>,
    autorun: Arc<AutorunWatch>,
}

#[derive(Default)]
struct RuleSets {
    base: Arc<Rules>,
    /// Rules of single roots, which replace the base rules.
    by_root: HashMap<RootId, Arc<Rules>>,
    /// Denials and confirmations that skills add to every set.
    added: (Vec<Rule>, Vec<Rule>),
}

/// Result of admitting a call.
struct Admitted {
    audit: u64,
    approved: Option<Preview>,
    paths: CallPaths,
    judge: Judge,
    /// Texts of hooks for the model.
    context: Vec<String>,
}

/// Records that the log gets when a call finishes.
#[derive(Debug)]
pub enum Completion {
    /// These records, in the transaction of the audit row.
    Logged(Box<Append>),
    /// No records: the caller has no log.
    Unlogged,
    /// These records, with `interrupted` in the audit row: the daemon stops while the call runs,
    /// and a resumed run requests an approval before it acts a second time. A call that was not
    /// admitted yet gets no record: it is still pending.
    Interrupted(Option<Box<Append>>),
}

impl RuleSets {
    fn with_added(&self, rules: &Arc<Rules>) -> Arc<Rules> {
        let (deny, confirm) = &self.added;
        if deny.is_empty() && confirm.is_empty() {
            return Arc::clone(rules);
        }
        let mut all = Rules::clone(rules);
        all.deny.extend(deny.iter().cloned());
        all.confirm.extend(confirm.iter().cloned());
        Arc::new(all)
    }
}

impl Harness {
    /// Replaces the rules for later calls in every root without rules of its own.
    pub fn set_rules(&self, base: Rules) {
        self.rules.write().unwrap_or_else(PoisonError::into_inner).base = Arc::new(base);
        self.publish();
    }

    /// Sets rules for one root in place of the base rules; `None` restores the base rules.
    pub fn set_root_rules(&self, root: &RootId, rules: Option<Rules>) {
        {
            let mut sets = self.rules.write().unwrap_or_else(PoisonError::into_inner);
            match rules {
                Some(rules) => sets.by_root.insert(root.clone(), Arc::new(rules)),
                None => sets.by_root.remove(root),
            };
        }
        self.publish();
    }

    /// Returns true if the rules deny every call of a tool in `root`.
    pub fn rules_out(&self, tool: &str, root: Option<&Root>) -> bool {
        self.rules(root).rule_out(tool)
    }

    /// Replaces the additional denials and confirmations.
    pub fn tighten(&self, deny: Vec<Rule>, confirm: Vec<Rule>) {
        self.rules.write().unwrap_or_else(PoisonError::into_inner).added = (deny, confirm);
        self.publish();
    }

    /// Publishes the hidden paths to every reader of the roots.
    fn publish(&self) {
        let Some(roots) = &self.roots else { return };
        let sets = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        let of =
            |rules: &Arc<Rules>| -> ReadRules { Arc::new(sets.with_added(rules).read_rules()) };
        let by_root = sets.by_root.iter().map(|(id, rules)| (id.clone(), of(rules))).collect();
        roots.set_visibility(Visibility { base: of(&sets.base), by_root });
    }

    fn rules(&self, root: Option<&Root>) -> Arc<Rules> {
        let sets = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        sets.with_added(root.and_then(|root| sets.by_root.get(&root.id)).unwrap_or(&sets.base))
    }

    /// Returns the registry of tools.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the pending approvals and their approvers.
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// Answers an approval request.
    ///
    /// # Errors
    /// See [`Approvals::resolve`].
    pub async fn resolve(
        &self,
        params: ApprovalResolveParams,
        by: &str,
    ) -> Result<Approval, Failure> {
        self.approvals.resolve(params, by).await
    }

    /// Returns the arguments as the tool would receive them: parsed from nearly-JSON, converted to
    /// the types of its schema.
    pub fn repaired(&self, session: &SessionId, name: &str, arguments: Value) -> Value {
        let mut arguments = repair::object(arguments);
        if let Ok(entry) = self.registry.scoped(session).find(name) {
            repair::coerce(&mut arguments, &entry.spec.input_schema);
        }
        arguments
    }

    /// Removes secrets from the arguments of a call before they are recorded.
    pub fn withhold_secrets(&self, session: &SessionId, name: &str, arguments: &mut Value) {
        if let Ok(entry) = self.registry.scoped(session).find(name) {
            entry.tool.withhold_secrets(session, arguments);
        }
    }

    /// Runs a call: look-up → schema → policy → approval → audit → permit → run → bounds → audit.
    ///
    /// # Errors
    /// `unknown_tool`, `invalid_params`, `tool_denied`, `no_approver`, `denied_by_user`,
    /// `audit_failed` (nothing was done), `tool_timed_out`, `cancelled`, or errors of the tool.
    pub async fn call(&self, call: Call) -> Result<Output, Failure> {
        self.call_logged(call, None, |outcome| (Completion::Unlogged, outcome)).await?
    }

    /// Runs a call with its records: `opening` is written with the audit row before the action (or
    /// before the approval request), the result of `closing` with the row after it. So a call takes
    /// two commits, and the log and the audit always agree on its outcome.
    ///
    /// # Errors
    /// Errors of the log. A failure of the call is passed to `closing`.
    pub async fn call_logged<T>(
        &self,
        call: Call,
        mut opening: Option<Append>,
        closing: impl FnOnce(Result<Output, Failure>) -> (Completion, T),
    ) -> Result<T, Failure> {
        let (session_id, tool) = (call.session.clone(), call.name.clone());
        let arguments = self.listening().map(|_| call.arguments.clone()).unwrap_or_default();
        let entry = self.registry.scoped(&call.session).find(&call.name);
        let span =
            entry.as_ref().map_or_else(|_| Span::none(), |entry| span::tool(&entry.spec, &call));
        let passed = match entry {
            Ok(entry) => self.pass(&entry, call, &mut opening).instrument(span.clone()).await,
            Err(unknown) => Err(unknown),
        };
        let (passed, outcome) = match passed {
            Ok((audit, millis, outcome)) => (Some((audit, millis)), outcome),
            Err(failure) => (None, Err(failure)),
        };
        span::record_outcome(&span, &outcome);
        if let Some(opening) = opening {
            self.trace.append(opening).await?;
        }
        let Some((audit, millis)) = passed else {
            let (end, value) = closing(outcome);
            if let Completion::Logged(records) = end {
                self.trace.append(*records).await?;
            }
            return Ok(value);
        };
        // Before the records are written, because the model reads the texts of hooks with the
        // result.
        let about = (&session_id, tool.as_str(), arguments);
        let outcome = self.notify_after(about, millis, outcome).await;
        let done = AuditOutcome {
            millis,
            outcome: outcome.as_ref().map_or_else(|e| e.reason.as_str(), |_| "ok").to_owned(),
            exit_code: outcome.as_ref().ok().and_then(|o| o.exit_code),
            truncated: outcome.as_ref().is_ok_and(|o| o.truncated),
        };
        let (end, value) = closing(outcome);
        let (records, done) = match end {
            Completion::Logged(records) => (Some(*records), done),
            Completion::Unlogged => (None, done),
            Completion::Interrupted(records) => (
                records.map(|r| *r),
                AuditOutcome { outcome: cairn_trace::INTERRUPTED.into(), ..done },
            ),
        };
        self.trace.audit_outcome(audit, done, records).await.map_err(|e| unrecorded(&tool, e))?;
        Ok(value)
    }

    /// Admits a call and runs it. Returns the audit row, the duration in milliseconds and the
    /// outcome; the failure is that of a call that was not admitted.
    async fn pass(
        &self,
        entry: &Entry,
        mut call: Call,
        opening: &mut Option<Append>,
    ) -> Result<(u64, u64, Result<Output, Failure>), Failure> {
        call.arguments = self.repaired(&call.session, &call.name, call.arguments);
        entry.tool.withhold_secrets(&call.session, &mut call.arguments);
        entry.check(&call.arguments)?;
        if let Some(paths) = &call.grants.paths {
            call.grants.paths = Some(self.resolver(&call).run_paths(paths)?);
        }
        let admitted = self.admit(entry, &mut call, opening).await?;
        let started = Instant::now();
        let outcome = if call.dry_run {
            Ok(Output::dry_run(&call.name))
        } else {
            // Less than the full sandbox requires an approval whose preview carries the warning.
            let sandbox = if call.grants.unconfined {
                Arc::new(self.sandbox.off())
            } else {
                Arc::clone(&self.sandbox)
            };
            let Admitted { approved, paths, judge, context, .. } = admitted;
            let (roots, spec) = (self.roots.clone(), entry.spec.clone());
            let limits = judge.limits(&spec.name);
            let autorun = self.autorun_gate(&call, &judge);
            let services = Services {
                sandbox,
                snapshots: Arc::clone(&self.snapshots),
                background: Arc::clone(&self.background),
                service_sandbox: Arc::clone(&self.sandbox),
                runner: Arc::clone(&self.services),
                domains: self.domain_gate(&call, &judge),
                approvals: Arc::clone(&self.approvals),
                autorun: Arc::clone(&autorun),
            };
            let admission = Admission { approved, paths, judge, roots, spec };
            let permit = Permit::grant(&call, admission, services);
            let outcome = limits::run(entry, permit, call.arguments, limits).await;
            let outcome =
                outcome.and_then(|output| bounded(&call.name, limits::shortened(output, limits)));
            let texts = autorun.take_notes().into_iter().chain(context).collect();
            outcome.map(|output| consult::with_texts(output, texts))
        };
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok((admitted.audit, millis, outcome))
    }

    fn resolver<'a>(&'a self, call: &'a Call) -> Resolver<'a> {
        Resolver { roots: self.roots.as_ref(), own: call.root.as_ref() }
    }

    /// Returns the tool's intent, for an approver, and the decision that follows from it.
    async fn intend(
        &self,
        entry: &Entry,
        call: &Call,
        (paths, judge): (&CallPaths, &Judge),
        mut decision: Decision,
    ) -> Result<(Option<Intent>, Decision), Failure> {
        if decision.verdict == Verdict::Deny || entry.spec.read_only {
            return Ok((None, decision));
        }
        let caller = Caller { session: &call.session, root: call.root.as_ref(), paths };
        let mut intent = entry.tool.intent(&caller, &call.arguments).await?;
        if entry.spec.command.is_some() {
            self.warn_of_sandbox(call, judge, &mut intent)?;
        }
        match &intent.must_ask {
            Some(MustAsk::Closed(path)) => {
                decision =
                    Decision { verdict: Verdict::Deny, by: DecidedBy::OwnFile(path.clone()) };
            }
            Some(MustAsk::Always(why)) => decision = ask_decision(why),
            Some(MustAsk::Unread(why))
                if !(call.grants.mode.is_raised() && decision.verdict == Verdict::Allow) =>
            {
                decision = ask_decision(why)
            }
            // The user's rules and earlier answers take precedence.
            Some(MustAsk::Unruled(why)) if decision.by.is_fallback() => {
                decision = ask_decision(why)
            }
            None if intent.edits_read_content
                && decision.verdict == Verdict::Ask
                && decision.by == DecidedBy::Fallback(Fallback::Acts) =>
            {
                let by = DecidedBy::Fallback(Fallback::ContentRead);
                decision = Decision { verdict: Verdict::Allow, by };
            }
            _ => {}
        }
        Ok((Some(intent), decision))
    }

    /// Decides, requests an approval where the rules require one, and records the decision.
    async fn admit(
        &self,
        entry: &Entry,
        call: &mut Call,
        opening: &mut Option<Append>,
    ) -> Result<Admitted, Failure> {
        let memory = self.approvals.memory(&call.session).await?;
        let judge = self.judge(call, memory);
        let mut judged = self.decide(entry, call, &judge);
        let mut consulted = consult::Consulted::default();
        if judged.decision.verdict != Verdict::Deny {
            consulted = self.consult(entry, call).await?;
        }
        if consulted.is_changed {
            judged = self.decide(entry, call, &judge);
        }
        let call = &*call;
        let paths = CallPaths::new(judged.paths);
        // A refused call needs no intent, which may read files.
        let decision = match consulted.refusal {
            Some(_) => consulted.applied(judged.decision),
            None => judged.decision,
        };
        let (intent, decision) = self.intend(entry, call, (&paths, &judge), decision).await?;
        let mut decision = consulted.applied(decision);
        let mut unknown = false;
        if let (true, true, Some(id)) = (intent.is_some(), call.resumed, &call.call_id)
            && self.trace.audit_open(&call.session, id).await?
        {
            unknown = true;
            decision = Decision { verdict: Verdict::Ask, by: DecidedBy::Interrupted };
        }
        let (mut verdict, mut by) = (decision.verdict, decision.by);
        let mut refusal = consulted.refusal;
        let mut approved = None;
        if verdict == Verdict::Ask && !call.dry_run {
            // The call's record precedes the request, so that approvers can see the call.
            if let Some(opening) = opening.take() {
                self.trace.append(opening).await?;
            }
            // A tool that reads has no intent of its own.
            let grants = || Rule::for_paths(&call.name, &paths, call.root.as_ref());
            let intent =
                intent.clone().unwrap_or_else(|| Intent { grants: grants(), ..Intent::default() });
            let question = by.to_string();
            self.notify_approval(call).await;
            match call
                .clock
                .while_waiting(self.approvals.ask(call, &intent, &question, unknown))
                .await
            {
                Ok(answer) => {
                    (verdict, refusal) = match answer.decision {
                        ApprovalDecision::Deny => {
                            (Verdict::Deny, Some(denied_by_user(&call.name, &answer)))
                        }
                        _ => (Verdict::Allow, None),
                    };
                    approved = (verdict == Verdict::Allow).then_some(intent.preview);
                    let (decision, client) = (answer.decision, answer.by);
                    by = DecidedBy::Answered(Answered { decision, client, question: Box::new(by) });
                }
                Err(failure) if failure.reason == Reason::NoApprover => {
                    (verdict, refusal) = (Verdict::Deny, Some(failure));
                }
                Err(failure) => return Err(failure),
            }
        }
        let command = audited::subject(intent.as_ref(), (entry, call), &paths);
        if call.grants.unconfined {
            by = DecidedBy::Unconfined(Box::new(by));
        }
        let audit = self.record(call, verdict, &by, command, opening.take()).await?;
        if verdict == Verdict::Deny {
            return Err(refusal.unwrap_or_else(|| denied(&call.name, &by)));
        }
        Ok(Admitted { audit, approved, paths, judge, context: consulted.context })
    }

    async fn record(
        &self,
        call: &Call,
        verdict: Verdict,
        by: &DecidedBy,
        command: Option<String>,
        opening: Option<Append>,
    ) -> Result<u64, Failure> {
        let decision = match verdict {
            Verdict::Deny => "deny",
            _ if call.dry_run => "dry_run",
            _ => "allow",
        };
        let intent = AuditIntent {
            session: call.session.clone(),
            tool: call.name.clone(),
            args_digest: cairn_trace::digest(&call.arguments),
            decision,
            rule: by.to_string(),
            call: call.call_id.clone(),
            command,
        };
        self.trace.audit_intent(intent, opening).await.map_err(|e| unrecorded(&call.name, e))
    }
}

/// Returns true for a denial that neither a retry nor an approver can change: it ends the run.
pub fn is_final(failure: &Failure) -> bool {
    let flagged = failure.details.as_ref().and_then(|d| d.get("final")).and_then(Value::as_bool);
    failure.reason == Reason::NoApprover || flagged == Some(true)
}

fn ask_decision(why: &str) -> Decision {
    Decision { verdict: Verdict::Ask, by: DecidedBy::Tool(why.to_owned()) }
}

fn denied(tool: &str, by: &DecidedBy) -> Failure {
    let reason = if by.is_network_limit() { Reason::NetworkDenied } else { Reason::ToolDenied };
    let failure = Failure::new(reason, format!("tool {tool} is not allowed by {by}"));
    if by.is_final() {
        return failure.with_details(serde_json::json!({"final": true, "rule": by.to_string()}));
    }
    failure
}

fn denied_by_user(tool: &str, answer: &Resolution) -> Failure {
    let who = if answer.by == "deadline" {
        "no answer in time".to_owned()
    } else {
        "denied by user".to_owned()
    };
    let why = answer.reason.as_deref().filter(|_| answer.by != "deadline");
    let text = why
        .map_or_else(|| format!("tool {tool}: {who}"), |why| format!("tool {tool}: {who}: {why}"));
    Failure::new(Reason::DeniedByUser, text)
}

fn bounded(name: &str, output: Output) -> Result<Output, Failure> {
    let size = output.value.to_string().len();
    if size <= MAX_OUTPUT {
        return Ok(output);
    }
    Err(Failure::new(
        Reason::TooLarge,
        format!("tool {name} returned {size} bytes; the limit is {MAX_OUTPUT}"),
    ))
}

fn unrecorded(tool: &str, cause: TraceError) -> Failure {
    let reason = match cause.reason() {
        // The audit could be written, only the call's own records could not.
        Reason::SessionNotFound | Reason::SessionBusy => return cause.into(),
        Reason::DiskFull => Reason::DiskFull,
        _ => Reason::AuditFailed,
    };
    tracing::error!(tool, %cause, "the audit cannot be written");
    Failure::new(reason, format!("tool {tool}: the call could not be recorded: {cause}"))
}
