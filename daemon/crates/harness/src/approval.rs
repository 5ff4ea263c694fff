//! Approvals: a call whose rules require one waits until an approver answers.
//!
//! The request is durable before any client sees it, and its answer before any call acts on it; the
//! first answer counts. The wait ends with an answer of any client, with the deadline (denied) or
//! with the end of the run (denied). A stop of the daemon leaves the request of a call that is
//! repeated after the next start open until its deadline, and closes the others. A client that disconnects changes nothing for an open request;
//! a request for which no approver is connected when it is created is denied at once.

mod check;
mod log;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use cairn_protocol::{
    approval::{Approval, ApprovalDecision, ApprovalNotice, ApprovalResolveParams, Resolution},
    envelope::Body,
    error::{Failure, Reason},
    event::AgentEvt,
    id::{ApprovalId, SessionId},
    time::Timestamp,
};
use cairn_trace::{Append, NewRecord, Trace, TraceError};
use cairn_workspace::Root;
use tokio::sync::{broadcast, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use check::{check_form, check_pattern, check_project, rules, texts};
use log::{ApprovalLog, already_resolved, denial, remaining, time_to_answer};

use crate::{Call, FormValues, Intent, Rule, Verdict, grants::Grants};

/// Sessions whose decisions are cached; those of other sessions are read from the log.
const MAX_SESSIONS: usize = 1024;
/// Time that a request of an unattended session waits, unless the configured one is longer: a
/// person may answer the next day.
const UNATTENDED_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// Notices that a slow subscriber can be behind; older ones are dropped for it.
const NOTICE_CAPACITY: usize = 256;

/// Returns the folder of the repository of which a root is a work tree; `None` for other roots.
pub type RepositoryOf = dyn Fn(&Path) -> Option<PathBuf> + Send + Sync;

/// An answer with the values of its form, which are not recorded.
pub(crate) type Answer = (Resolution, FormValues);

/// Open approval requests, and the decisions of sessions and for good.
pub struct Approvals {
    log: ApprovalLog,
    grants: Grants,
    waiting: Mutex<HashMap<ApprovalId, oneshot::Sender<Answer>>>,
    memory: Mutex<HashMap<SessionId, SessionRules>>,
    /// Count of answers that changed the decisions of a session.
    answers: AtomicU64,
    approvers: Arc<AtomicUsize>,
    /// Sessions whose requests wait without a connected client, with the number of their guards.
    unattended: Arc<Mutex<HashMap<SessionId, usize>>>,
    timeout_ms: AtomicU64,
    stopping: CancellationToken,
    repositories: OnceLock<Arc<RepositoryOf>>,
}

/// An open request while its call waits. Dropped without an answer, as by a cancelled future, it is
/// denied in the log, since no call waits for it any more. A stop of the daemon leaves it open if
/// its call is repeated.
struct OpenQuestion<'a> {
    approvals: &'a Approvals,
    approval: Approval,
    /// True if the call has an id, by which a resumed turn finds the request again.
    is_repeated: bool,
    closed: bool,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        locked(&self.approvals.waiting).remove(&self.approval.approval_id);
        if self.closed || (self.is_repeated && self.approvals.stopping.is_cancelled()) {
            return;
        }
        let log = self.approvals.log.clone();
        let approval = self.approval.clone();
        // Without a runtime the request stays open until the next start.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let resolution = denial("cancelled", "the call ended");
            match log.record_resolution(&approval, &resolution).await {
                Ok(()) | Err(TraceError::ApprovalResolved) => {}
                Err(error) => {
                    tracing::warn!(approval = %approval.approval_id, %error, "an approval could not be resolved");
                }
            }
        });
    }
}

/// Rules and verdicts decided for one session.
pub(crate) type SessionRules = Arc<Vec<(Rule, Verdict)>>;

/// A connected approver; it is counted until this value is dropped.
pub struct Approver(Arc<AtomicUsize>);

impl Drop for Approver {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Lets the requests of one session wait although no client is connected, until it is dropped.
pub struct UnattendedSession {
    all: Arc<Mutex<HashMap<SessionId, usize>>>,
    session: SessionId,
}

impl Drop for UnattendedSession {
    fn drop(&mut self) {
        let mut all = locked(&self.all);
        if let Some(count) = all.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.session);
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Approvals {
    /// Creates a store without requests. `stopping` is cancelled when the daemon stops.
    pub(crate) fn new(
        trace: Trace,
        grants: Grants,
        timeout: Duration,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            log: ApprovalLog { trace, notices: broadcast::Sender::new(NOTICE_CAPACITY) },
            grants,
            waiting: Mutex::default(),
            memory: Mutex::default(),
            answers: AtomicU64::new(0),
            approvers: Arc::default(),
            unattended: Arc::default(),
            timeout_ms: AtomicU64::new(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
            stopping,
            repositories: OnceLock::new(),
        }
    }

    /// Sets the source of the repositories of work trees. Later calls have no effect.
    pub fn set_repositories(&self, repositories: Arc<RepositoryOf>) {
        let _already_set = self.repositories.set(repositories);
    }

    /// Returns the folder of a root's project: rules that are granted in a work tree hold for its
    /// repository and the other work trees of it.
    fn project_of(&self, root: Option<&Root>) -> Option<PathBuf> {
        let root = root?;
        let repository = self.repositories.get().and_then(|of| of(&root.path));
        Some(repository.unwrap_or_else(|| root.path.clone()))
    }

    /// Returns the rules granted for good that apply to calls in a root.
    pub(crate) fn granted_in(&self, root: Option<&Root>) -> Vec<Rule> {
        self.grants.rules_in(self.project_of(root).as_deref())
    }

    /// Registers an approver until the returned value is dropped.
    pub fn join(&self) -> Approver {
        self.approvers.fetch_add(1, Ordering::SeqCst);
        Approver(Arc::clone(&self.approvers))
    }

    /// Subscribes to requests that are pending and to answers, of all sessions.
    pub fn notices(&self) -> broadcast::Receiver<ApprovalNotice> {
        self.log.notices.subscribe()
    }

    /// Lets the requests of a session wait without a client, until the returned value is dropped.
    pub fn join_session(&self, session: &SessionId) -> UnattendedSession {
        *locked(&self.unattended).entry(session.clone()).or_default() += 1;
        UnattendedSession { all: Arc::clone(&self.unattended), session: session.clone() }
    }

    /// Returns true if the requests of a session wait without a client.
    pub fn is_unattended(&self, session: &SessionId) -> bool {
        locked(&self.unattended).contains_key(session)
    }

    /// Returns true if a request of a session can be answered: now, or later if it waits.
    pub fn has_approver(&self, session: &SessionId) -> bool {
        self.approvers.load(Ordering::SeqCst) > 0 || self.is_unattended(session)
    }

    /// Sets the time that new requests wait.
    pub fn set_timeout(&self, timeout: Duration) {
        self.timeout_ms
            .store(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns true if a call of this daemon waits for the answer now. After a restart a request is
    /// open before its call has resumed.
    pub fn is_awaited(&self, id: &ApprovalId) -> bool {
        locked(&self.waiting).contains_key(id)
    }

    /// Returns the rules that were granted for good.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Answers a request. The answer is durable, and published to every client, when this returns.
    ///
    /// # Errors
    /// `approval_not_found`; `approval_resolved` with the first answer; `storage_failed` when a
    /// rule could not be stored for good (the call itself is approved then).
    pub async fn resolve(
        &self,
        params: ApprovalResolveParams,
        by: &str,
    ) -> Result<Approval, Failure> {
        let mut approval = self.log.trace.approval(&params.approval_id).await?;
        self.require_call(&approval).await?;
        check_pattern(&approval, params.decision, params.pattern.as_ref())?;
        check_project(&approval, params.decision)?;
        check_form(&approval, &params, self.is_awaited(&approval.approval_id))?;
        let reason = params.reason.map(|r| r.chars().take(2000).collect());
        let values = params.values;
        let resolution = Resolution {
            decision: params.decision,
            by: by.to_owned(),
            reason,
            pattern: params.pattern,
            at: Timestamp::now(),
        };
        if let Err(error) = self.log.record_resolution(&approval, &resolution).await {
            if !matches!(error, TraceError::ApprovalResolved) {
                return Err(error.into());
            }
            let first = self.log.trace.approval(&params.approval_id).await?.resolution;
            return Err(already_resolved(first));
        }
        let session = approval.session_id.clone();
        let granted = resolution.pattern.as_ref().unwrap_or(&approval.grants);
        let granted = rules(granted);
        approval.resolution = Some(resolution);
        let mut unstored = None;
        match params.decision {
            ApprovalDecision::Session => {
                // A concurrent read of the log may lack this answer: its result is not cached.
                self.answers.fetch_add(1, Ordering::SeqCst);
                locked(&self.memory).remove(&session);
            }
            ApprovalDecision::Always | ApprovalDecision::Everywhere => {
                let project = approval.project.as_ref().map(PathBuf::from);
                let project = project.filter(|_| params.decision == ApprovalDecision::Always);
                let stored = match granted {
                    Ok(granted) => self.grants.add(granted, project, by).await,
                    Err(failure) => Err(failure),
                };
                unstored = stored.err();
            }
            ApprovalDecision::Once | ApprovalDecision::Deny => {}
        }
        // The call may proceed only now: calls after it must find the rule.
        if let Some(resolution) = &approval.resolution
            && let Some(waiter) = locked(&self.waiting).remove(&approval.approval_id)
        {
            let _result = waiter.send((resolution.clone(), values));
        }
        // The call is approved nevertheless; the approver gets an error that says it was approved
        // once only.
        match unstored {
            Some(Failure { reason, message, details }) => {
                let message = format!(
                    "the call is approved, but the rule is not granted permanently: {message}"
                );
                Err(Failure { reason, message, details })
            }
            None => Ok(approval),
        }
    }

    /// Rejects an answer for a call that can no longer act on it, and closes its request.
    async fn require_call(&self, approval: &Approval) -> Result<(), Failure> {
        if approval.resolution.is_some() || self.is_awaited(&approval.approval_id) {
            return Ok(());
        }
        let denial = if approval.expires_at <= Timestamp::now() {
            denial("deadline", "no answer in time")
        } else if approval.run_id.is_none() && approval.form.is_none() {
            // A direct call ends with the daemon that runs it.
            denial("cancelled", "the call ended")
        } else {
            return Ok(());
        };
        match self.log.record_resolution(approval, &denial).await {
            Ok(()) => Err(already_resolved(Some(denial))),
            Err(TraceError::ApprovalResolved) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Denies the open requests past their time that no call waits for: those of interrupted turns.
    ///
    /// # Errors
    /// Errors of the log.
    pub async fn close_overdue(&self, listed: &[Approval]) -> Result<bool, Failure> {
        let now = Timestamp::now();
        let mut has_closed = false;
        for approval in listed {
            let is_open = approval.resolution.is_none() && approval.expires_at <= now;
            if !is_open || self.is_awaited(&approval.approval_id) {
                continue;
            }
            let denial = denial("deadline", "no answer in time");
            match self.log.record_resolution(approval, &denial).await {
                Ok(()) | Err(TraceError::ApprovalResolved) => has_closed = true,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(has_closed)
    }

    /// Denies an open request whose run finished while no call waited for the answer.
    ///
    /// # Errors
    /// Errors of the log.
    pub async fn withdraw(&self, approval: &Approval) -> Result<(), Failure> {
        match self.log.record_resolution(approval, &denial("cancelled", "the run ended")).await {
            Ok(()) | Err(TraceError::ApprovalResolved) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the rules decided for a session.
    pub(crate) async fn memory(&self, session: &SessionId) -> Result<SessionRules, Failure> {
        if let Some(rules) = locked(&self.memory).get(session) {
            return Ok(Arc::clone(rules));
        }
        let before = self.answers.load(Ordering::SeqCst);
        let texts = self.log.trace.session_grants(session).await?;
        // A rule that this version cannot read allows nothing: its calls need an answer again.
        let rules = texts.iter().filter_map(|text| Some((text.parse().ok()?, Verdict::Allow)));
        let rules: SessionRules = Arc::new(rules.collect());
        let mut memory = locked(&self.memory);
        if memory.len() >= MAX_SESSIONS {
            memory.clear();
        }
        if self.answers.load(Ordering::SeqCst) == before {
            memory.insert(session.clone(), Arc::clone(&rules));
        }
        Ok(rules)
    }

    /// Requests an approval for `call` and waits. `ignore_resolved` ignores earlier answers.
    ///
    /// # Errors
    /// `no_approver`; `cancelled` when the run is cancelled or the daemon stops; errors of the log.
    pub(crate) async fn ask(
        &self,
        call: &Call,
        intent: &Intent,
        rule: &str,
        ignore_resolved: bool,
    ) -> Result<Resolution, Failure> {
        let (resolution, _) = self.request(call, intent, rule, ignore_resolved).await?;
        Ok(resolution)
    }

    /// Requests the values of the intent's form for `call`, whose process cannot survive a restart.
    ///
    /// # Errors
    /// As [`Approvals::ask`].
    pub(crate) async fn request_values(
        &self,
        call: &Call,
        intent: &Intent,
        rule: &str,
    ) -> Result<Answer, Failure> {
        self.request(call, intent, rule, true).await
    }

    async fn request(
        &self,
        call: &Call,
        intent: &Intent,
        rule: &str,
        ignore_resolved: bool,
    ) -> Result<Answer, Failure> {
        let known = match &call.call_id {
            Some(id) if call.resumed => self.log.trace.approval_of_call(&call.session, id).await?,
            _ => None,
        };
        let known = known.filter(|k| !ignore_resolved || k.resolution.is_none());
        // An answer, or a request, was of the folder, the scripts and the targets that it named.
        let known = match known {
            Some(known) if known.preview.bound != intent.preview.bound => {
                self.withdraw(&known).await?;
                None
            }
            known => known,
        };
        if let Some(resolution) = known.as_ref().and_then(|k| k.resolution.clone()) {
            return Ok((resolution, FormValues::new()));
        }
        let (sender, receiver) = oneshot::channel();
        if known.is_none() && !self.has_approver(&call.session) {
            // The request is recorded nevertheless, with its denial.
            let mut question = self.pose(call, intent, rule, sender).await?;
            question.closed = true;
            let resolution = denial("no_approver", "no approver is connected");
            self.log.record_resolution(&question.approval, &resolution).await?;
            let text = format!(
                "tool {} needs an approval ({rule}), but no approver is connected",
                call.name
            );
            return Err(Failure::new(Reason::NoApprover, text));
        }
        let is_repeated = call.call_id.is_some();
        let remaining = known.as_ref().map(remaining);
        let mut question = match known {
            Some(known) => {
                locked(&self.waiting).insert(known.approval_id.clone(), sender);
                let mut question =
                    OpenQuestion { approvals: self, approval: known, is_repeated, closed: false };
                // An answer may have been recorded between the look-up of the request and the start
                // of the wait.
                question.closed = true;
                let now = self.log.trace.approval(&question.approval.approval_id).await?;
                if let Some(resolution) = now.resolution {
                    return Ok((resolution, FormValues::new()));
                }
                question.closed = false;
                question
            }
            None => self.pose(call, intent, rule, sender).await?,
        };
        self.log.publish(&question.approval, None);
        // The wall clock may jump during the wait; the time to answer stays the same.
        let remaining = remaining.unwrap_or_else(|| time_to_answer(&question.approval));
        let outcome = self.wait(call, &question.approval, receiver, remaining).await;
        // A request that could not be closed in the log, as on a full disk, stays open: a second
        // attempt would fail as well.
        question.closed = true;
        outcome
    }

    async fn pose(
        &self,
        call: &Call,
        intent: &Intent,
        rule: &str,
        waiter: oneshot::Sender<Answer>,
    ) -> Result<OpenQuestion<'_>, Failure> {
        let now = Timestamp::now();
        let configured = self.timeout_ms.load(Ordering::Relaxed);
        let is_unattended = self.is_unattended(&call.session);
        let timeout = if is_unattended { configured.max(UNATTENDED_MILLIS) } else { configured };
        let timeout = i64::try_from(timeout).unwrap_or(i64::MAX);
        let approval = Approval {
            approval_id: ApprovalId::new(),
            session_id: call.session.clone(),
            run_id: call.origin.as_ref().and_then(|o| o.run_id.clone()),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            preview: intent.preview.clone(),
            rule: rule.to_owned(),
            project: self
                .project_of(call.root.as_ref())
                .map(|folder| folder.to_string_lossy().into_owned()),
            grants: texts(&intent.grants),
            patterns: intent.patterns.iter().map(|rules| texts(rules)).collect(),
            form: intent.form.clone(),
            created_at: now,
            expires_at: Timestamp(now.0.saturating_add(timeout)),
            resolution: None,
            shortened: false,
        };
        locked(&self.waiting).insert(approval.approval_id.clone(), waiter);
        let evt = AgentEvt::ApprovalRequired { approval: Box::new(approval.clone()) };
        let origin = call.origin.clone();
        let record = NewRecord {
            id: Uuid::now_v7(),
            parent_id: call.command,
            origin,
            body: Body::Evt { evt },
        };
        let append =
            Append::new(&call.session, vec![record]).ask(&approval, call.call_id.as_deref());
        // Created before the append: if this is dropped during it, the request may be in the log,
        // and its denial is appended after it.
        let is_repeated = call.call_id.is_some();
        let mut question = OpenQuestion { approvals: self, approval, is_repeated, closed: false };
        if let Err(error) = self.log.trace.append(append).await {
            question.closed = true;
            return Err(error.into());
        }
        Ok(question)
    }

    async fn wait(
        &self,
        call: &Call,
        approval: &Approval,
        answer: oneshot::Receiver<Answer>,
        remaining: Duration,
    ) -> Result<Answer, Failure> {
        let (by, why) = tokio::select! {
            biased;
            answer = answer => {
                return answer.map_err(|_| Failure::new(Reason::Internal, "an approval was dropped"));
            }
            () = call.cancel.cancelled() => ("cancelled", "the run ended"),
            () = tokio::time::sleep(remaining) => ("deadline", "no answer in time"),
        };
        let cancelled =
            || Failure::new(Reason::Cancelled, format!("tool {} was cancelled", call.name));
        if by == "cancelled" && call.call_id.is_some() && self.stopping.is_cancelled() {
            return Err(cancelled());
        }
        let resolution = denial(by, why);
        match self.log.record_resolution(approval, &resolution).await {
            Ok(()) if by == "cancelled" => Err(cancelled()),
            Ok(()) => Ok((resolution, FormValues::new())),
            // A client answered first.
            Err(error @ TraceError::ApprovalResolved) => {
                let stored = self.log.trace.approval(&approval.approval_id).await?;
                let resolution = stored.resolution.ok_or(error)?;
                Ok((resolution, FormValues::new()))
            }
            Err(error) => Err(error.into()),
        }
    }
}
