//! Permission for one call: the resources that a tool may access.

mod process;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cairn_protocol::{
    approval::Preview,
    error::{Failure, Reason},
    id::SessionId,
    turn::ExecutionMode,
};
use cairn_workspace::{ResolvedPath, Root, Roots, View};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    Approvals, Call, CallPaths, FetchRequest, Fetched, OutputSink, ToolSpec, UserInput, Verdict,
    WaitClock, autorun::AutorunGate, background::Background, egress::DomainGate,
    gate::decide::Judge, paths::Resolver, sandbox::Sandbox, service::ServiceRunner,
    snapshot::Snapshots,
};

/// Limits of the calling run, in addition to the rules.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    /// True if the network may be used.
    pub network: bool,
    /// True if the domains that rules allow, or an approver, may be reached.
    pub domains: bool,
    /// The only tools that may be called; any when `None`.
    pub ops: Option<Vec<String>>,
    /// The only paths that may be named, relative to the root; any when `None`.
    pub paths: Option<Vec<String>>,
    /// Runs processes outside the sandbox, as a user with the right to it chose.
    pub unconfined: bool,
    /// Mode of the run.
    pub mode: ExecutionMode,
}

/// Files that calls changed, in order, with their former contents. Clones share the list.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// True if changes by commands are detected as well.
    watched: bool,
    seen: Arc<Mutex<SeenChanges>>,
}

#[derive(Debug, Default)]
struct SeenChanges {
    all: Vec<Change>,
    incomplete_reason: Option<String>,
}

/// One file that a call changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Path relative to the root.
    pub path: String,
    /// Former contents; `None` when the file did not exist.
    pub before: Option<Vec<u8>>,
    /// New contents; `None` when the file was deleted.
    pub after: Option<Vec<u8>>,
    /// True if the file existed and its former contents were not stored.
    pub lost: bool,
}

impl Changes {
    /// Creates a list of changes by tools that write files themselves and by commands; the latter
    /// cost a look at every file of the workspace.
    pub fn watched() -> Self {
        Self { watched: true, ..Self::default() }
    }

    fn seen(&self) -> MutexGuard<'_, SeenChanges> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a change of a file.
    pub fn push(&self, change: Change) {
        self.seen().all.push(change);
    }

    /// Records that there may be further changes, and why they are not known.
    pub(crate) fn mark_incomplete(&self, why: String) {
        self.seen().incomplete_reason = Some(why);
    }

    /// Returns the reason why there may be further changes.
    pub fn incomplete_reason(&self) -> Option<String> {
        self.seen().incomplete_reason.clone()
    }

    /// Removes and returns all changes.
    pub fn take(&self) -> Vec<Change> {
        std::mem::take(&mut self.seen().all)
    }

    /// Removes the changes of files that are as before again.
    pub(crate) fn forget(&self, paths: &[String]) {
        self.seen().all.retain(|change| !paths.contains(&change.path));
    }
}

/// Permission for one call. Only the gate creates it; the examples below prove that nothing else
/// can.
///
/// ```compile_fail,E0624
/// fn forge(call: &cairn_harness::Call) -> cairn_harness::Permit {
///     cairn_harness::Permit::grant(call, loop {}, loop {})
/// }
/// ```
/// ```compile_fail,E0451
/// fn widen(permit: cairn_harness::Permit) -> cairn_harness::Permit {
///     cairn_harness::Permit { network: true, ..permit }
/// }
/// ```
/// ```compile_fail,E0599
/// fn duplicate(permit: &cairn_harness::Permit) -> cairn_harness::Permit {
///     permit.clone()
/// }
/// ```
/// ```compile_fail,E0616
/// fn take(registry: &cairn_harness::Registry) {
///     let _tools = &registry.tools;
/// }
/// ```
/// This compiles: a tool that receives one.
/// ```
/// async fn act(permit: cairn_harness::Permit) -> bool {
///     permit.require_network().is_ok()
/// }
/// ```
pub struct Permit {
    session: SessionId,
    command: Option<Uuid>,
    root: Option<Root>,
    network: bool,
    paths: Option<Vec<String>>,
    cancel: CancellationToken,
    admission: Admission,
    /// The session's root without the paths that rules hide.
    view: OnceLock<View>,
    changes: Changes,
    sandbox: Arc<Sandbox>,
    snapshots: Arc<Snapshots>,
    /// True if the user has accepted less than the full sandbox for this call.
    accepted: bool,
    /// Present if domains may be reached.
    domains: Option<Arc<DomainGate>>,
    /// Decides about files that run later and that its processes changed.
    autorun: Arc<AutorunGate>,
    background: Arc<Background>,
    /// The sandbox of services, which serve other runs too: no choice of this run lifts it.
    service_sandbox: Arc<Sandbox>,
    runner: Arc<ServiceRunner>,
    sink: Option<OutputSink>,
    input: Arc<UserInput>,
    /// Time that the call waits for approvers.
    wait_clock: Arc<WaitClock>,
}

/// Parts of the gate that permits use.
pub(crate) struct Services {
    pub sandbox: Arc<Sandbox>,
    pub snapshots: Arc<Snapshots>,
    pub background: Arc<Background>,
    pub service_sandbox: Arc<Sandbox>,
    pub runner: Arc<ServiceRunner>,
    pub domains: Option<Arc<DomainGate>>,
    pub approvals: Arc<Approvals>,
    pub autorun: Arc<AutorunGate>,
}

/// Result of the gate's checks on a call.
pub(crate) struct Admission {
    /// The preview that an approver accepted.
    pub approved: Option<Preview>,
    /// The paths that were judged.
    pub paths: CallPaths,
    /// The rules, for paths that no argument named.
    pub judge: Judge,
    pub roots: Option<Arc<Roots>>,
    pub spec: ToolSpec,
}

fn network_denied() -> Failure {
    Failure::new(Reason::NetworkDenied, "the network is not allowed here")
}

impl Permit {
    /// Creates a permit; called by the gate after policy and audit.
    pub(crate) fn grant(call: &Call, admission: Admission, services: Services) -> Self {
        let Services {
            sandbox,
            snapshots,
            background,
            service_sandbox,
            runner,
            domains,
            approvals,
            autorun,
        } = services;
        let wait_clock = domains.as_ref().map(|gate| Arc::clone(&gate.clock)).unwrap_or_default();
        // Its forms are no answer to the call itself, and its arguments were shown before.
        let caller = Call {
            origin: call.origin.clone(),
            command: call.command,
            cancel: call.cancel.clone(),
            clock: Arc::clone(&call.clock),
            ..Call::new(call.session.clone(), &call.name, serde_json::json!({}))
        };
        let input = Arc::new(UserInput::new(approvals, caller, Arc::clone(&wait_clock)));
        Self {
            session: call.session.clone(),
            command: call.command,
            root: call.root.clone(),
            network: call.grants.network,
            paths: call.grants.paths.clone(),
            cancel: call.cancel.child_token(),
            accepted: admission.approved.is_some(),
            admission,
            view: OnceLock::new(),
            sandbox,
            snapshots,
            changes: call.changes.clone(),
            domains,
            autorun,
            background,
            service_sandbox,
            runner,
            sink: call.sink.clone(),
            input,
            wait_clock,
        }
    }

    /// Returns the preview that the approver accepted, if there was a request: nothing else may be
    /// done.
    pub fn approved(&self) -> Option<&Preview> {
        self.admission.approved.as_ref()
    }

    /// Returns the paths in the arguments.
    pub fn paths(&self) -> &CallPaths {
        &self.admission.paths
    }

    /// Returns the path of an argument, all of which may be read.
    ///
    /// # Errors
    /// Errors of resolving it; `path_blocked` or `tool_denied` with the rule for one that may not
    /// be read.
    pub fn resolve(&self, path: &str, root: Option<&str>) -> Result<ResolvedPath, Failure> {
        let target = self.judged(path, root)?;
        self.require_path(&target)?;
        Ok(target)
    }

    /// Returns a path for a tool that narrows: with the parts of it that may be read, if that is
    /// not all of it.
    ///
    /// # Errors
    /// As [`Permit::resolve`].
    /// As [`Permit::resolve`].
    pub fn resolve_with_parts(
        &self,
        path: &str,
        root: Option<&str>,
    ) -> Result<(ResolvedPath, Option<Vec<String>>), Failure> {
        let target = self.judged(path, root)?;
        self.require_own(&target)?;
        self.view_of(target.root()).require(&target, self.accepted)?;
        let parts = self.reach(target.real())?;
        Ok((target, parts))
    }

    /// Returns a path as [`Permit::resolve`] does, in the session's own root.
    ///
    /// # Errors
    /// As [`Permit::resolve`], `no_roots`, `path_outside_roots`.
    pub fn resolve_own(&self, path: &str) -> Result<ResolvedPath, Failure> {
        let target = crate::tool::own_path(self.root(), &self.admission.paths, path)?;
        self.judge(&target)?;
        self.require_path(&target)?;
        Ok(target)
    }

    /// Returns a path as the gate judged it; a path that no argument named is judged now.
    fn judged(&self, path: &str, root: Option<&str>) -> Result<ResolvedPath, Failure> {
        if let Some(target) = self.admission.paths.find(path, root) {
            return Ok(target.clone());
        }
        let resolver = Resolver { roots: self.admission.roots.as_ref(), own: self.root.as_ref() };
        let target = resolver.locate(path, root)?;
        self.judge(&target)?;
        Ok(target)
    }

    fn judge(&self, path: &ResolvedPath) -> Result<(), Failure> {
        // A call that names no path concerns the root itself.
        if path.requested() == "."
            || self
                .admission
                .paths
                .iter()
                .any(|p| p.root().id == path.root().id && p.real() == path.real())
        {
            return Ok(());
        }
        let decision = self.admission.judge.path(&self.admission.spec, None, path);
        match decision.verdict {
            Verdict::Allow => Ok(()),
            Verdict::Ask if self.accepted => Ok(()),
            _ => {
                let text = format!("'{}' is not allowed by {}", path.requested(), decision.by);
                Err(Failure::new(Reason::ToolDenied, text))
            }
        }
    }

    /// Rejects a path of another root in a run that is limited to paths of its own.
    fn require_own(&self, path: &ResolvedPath) -> Result<(), Failure> {
        let own = self.root.as_ref().is_some_and(|root| root.id == path.root().id);
        if self.paths.is_none() || own {
            return Ok(());
        }
        Err(Failure::new(
            Reason::ToolDenied,
            format!("'{}' is outside the paths of this run", path.requested()),
        ))
    }

    fn require_path(&self, path: &ResolvedPath) -> Result<(), Failure> {
        self.require_own(path)?;
        self.view_of(path.root()).require(path, self.accepted)?;
        self.require_path_of_run(path.real())
    }

    /// Returns the session's root without the paths that rules hide.
    fn view(&self) -> Option<&View> {
        let root = self.root.as_ref()?;
        Some(self.view.get_or_init(|| self.own_view(root).unwrap_or_else(|| root.view())))
    }

    fn own_view(&self, root: &Root) -> Option<View> {
        self.admission.judge.view_for(&self.admission.spec.name, root)
    }

    /// Returns the paths that rules hide from this tool and not from every other: a search already
    /// knows the latter.
    ///
    /// # Errors
    /// `tool_failed` when there are more than can be listed.
    pub fn hidden_paths(&self) -> Result<Vec<String>, Failure> {
        let Some(root) = &self.root else { return Ok(vec![]) };
        let Some(masked) = self.own_view(root).map(|view| view.masked(root)) else {
            return Ok(vec![]);
        };
        if masked.cut {
            return Err(Failure::new(
                Reason::ToolFailed,
                "rules hide more paths than can be excluded from a search",
            ));
        }
        Ok(masked.paths)
    }

    fn view_of(&self, root: &Root) -> View {
        match (self.view(), &self.root) {
            (Some(view), Some(own)) if own.id == root.id => view.clone(),
            _ => self.own_view(root).unwrap_or_else(|| root.view()),
        }
    }

    /// Returns true if the file at `rel` (resolved, in the session's root) may appear in a list.
    pub fn shows(&self, rel: &str) -> bool {
        self.require_path_of_run(rel).is_ok() && self.view().is_none_or(|view| view.shows(rel))
    }

    /// Returns true if every file of the session's root may appear.
    pub fn shows_all(&self) -> bool {
        self.paths.is_none() && self.view().is_none_or(View::is_complete)
    }

    /// Returns true if rules hide part of the session's root, for answers that say so.
    pub fn hides(&self) -> bool {
        self.view().is_some_and(|view| !view.is_complete())
    }

    /// Fetches a web page.
    ///
    /// # Errors
    /// `network_denied` when the network is not granted or the address is not public, `cancelled`,
    /// `invalid_params`, `tool_timed_out`, `tool_failed`.
    pub async fn fetch(&self, request: &FetchRequest) -> Result<Fetched, Failure> {
        // The rules about domains are judged whatever network the run has.
        let domains = self.domains.as_deref().ok_or_else(network_denied)?;
        tokio::select! {
            fetched = crate::fetch::fetch(request, domains) => fetched,
            () = self.cancel.cancelled() => Err(Failure::new(Reason::Cancelled, "the call was cancelled")),
        }
    }

    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the record that caused the call, if there is one.
    pub fn command(&self) -> Option<Uuid> {
        self.command
    }

    /// Returns the session's root, if it has one.
    pub fn root(&self) -> Option<&Root> {
        self.root.as_ref()
    }

    /// Returns the root, for tools that need one.
    ///
    /// # Errors
    /// `no_roots`.
    pub fn require_root(&self) -> Result<&Root, Failure> {
        self.root()
            .ok_or_else(|| Failure::new(Reason::NoRoots, "the session has no root to work in"))
    }

    /// Checks that the network may be used.
    ///
    /// # Errors
    /// `network_denied`.
    pub fn require_network(&self) -> Result<(), Failure> {
        self.network.then_some(()).ok_or_else(network_denied)
    }

    /// Checks that the network may be used, and that no rule denies the host that another program
    /// connects to.
    ///
    /// # Errors
    /// `network_denied`.
    pub async fn require_host(&self, host: &str) -> Result<(), Failure> {
        self.require_network()?;
        let gate = self.domains.as_deref().ok_or_else(network_denied)?;
        Ok(gate.require_host(host).await?)
    }

    /// Returns true if the call may reach the domains that rules allow.
    pub fn reaches_domains(&self) -> bool {
        self.domains.is_some()
    }

    /// Checks that `rel` (relative to the root) may be read.
    ///
    /// # Errors
    /// `tool_denied` when the run's own policy excludes it.
    pub fn require_path_of_run(&self, rel: &str) -> Result<(), Failure> {
        let inside = |p: &String| crate::policy::beneath(rel, p);
        if self.paths.as_ref().is_none_or(|paths| paths.iter().any(inside)) {
            return Ok(());
        }
        Err(Failure::new(
            Reason::ToolDenied,
            format!("path '{rel}' is outside the paths of this run"),
        ))
    }

    /// Returns the parts of `rel` that may be read, none of them within another; `None` for all of
    /// it.
    ///
    /// # Errors
    /// `tool_denied` when there are none.
    pub fn reach(&self, rel: &str) -> Result<Option<Vec<String>>, Failure> {
        let Some(paths) = &self.paths else { return Ok(None) };
        if self.require_path_of_run(rel).is_ok() {
            return Ok(None);
        }
        let mut parts: Vec<String> = paths
            .iter()
            .filter(|p| crate::policy::beneath(p, rel))
            .map(|p| crate::policy::plain(p))
            .collect();
        if parts.is_empty() {
            return self.require_path_of_run(rel).map(|()| None);
        }
        parts.sort();
        // In sorted order a folder precedes its contents.
        let mut outer: Vec<String> = Vec::new();
        for part in parts {
            if !outer.iter().any(|o| crate::policy::beneath(&part, o)) {
                outer.push(part);
            }
        }
        Ok(Some(outer))
    }

    /// Reads a file of at most `limit` bytes; `None` when there is none.
    ///
    /// # Errors
    /// `tool_denied` outside the run's paths, and errors of opening it.
    pub fn read_file(&self, path: &ResolvedPath, limit: u64) -> Result<Option<Vec<u8>>, Failure> {
        self.require_path(path)?;
        Ok(path.root().read_file(path.real(), limit)?)
    }

    /// Writes a complete file if it still contains `before`; the change is recorded. Blocks.
    ///
    /// # Errors
    /// `file_changed`; `tool_denied` outside the run's paths, and errors of writing it.
    pub fn write_file(
        &self,
        path: &ResolvedPath,
        before: Option<Vec<u8>>,
        after: Vec<u8>,
    ) -> Result<(), Failure> {
        self.write_file_as(path, before, after, None)
    }

    /// Writes as [`Permit::write_file`] does, and makes the file executable or not; `None` retains
    /// the mode. Blocks.
    ///
    /// # Errors
    /// As [`Permit::write_file`].
    pub fn write_file_as(
        &self,
        path: &ResolvedPath,
        before: Option<Vec<u8>>,
        after: Vec<u8>,
        executable: Option<bool>,
    ) -> Result<(), Failure> {
        self.require_unchanged(path, before.as_deref())?;
        path.root().write_file_as(path.real(), &after, executable)?;
        self.autorun.watch.expect(path.root(), path.real(), Some(&after));
        self.changes.push(Change {
            path: path.real().to_owned(),
            before,
            after: Some(after),
            lost: false,
        });
        Ok(())
    }

    /// Removes a file (a symlink itself) if it still contains `before`; the change is recorded.
    /// Blocks.
    ///
    /// # Errors
    /// As [`Permit::write_file`].
    pub fn remove_file(&self, path: &ResolvedPath, before: Vec<u8>) -> Result<(), Failure> {
        self.require_unchanged(path, Some(&before))?;
        path.root().remove_file(path.entry())?;
        self.autorun.watch.expect(path.root(), path.entry(), None);
        let change = Change {
            path: path.entry().to_owned(),
            before: Some(before),
            after: None,
            lost: false,
        };
        self.changes.push(change);
        Ok(())
    }

    fn require_unchanged(&self, path: &ResolvedPath, before: Option<&[u8]>) -> Result<(), Failure> {
        let now = self.read_file(path, cairn_workspace::MAX_WRITTEN_BYTES)?;
        if now.as_deref() == before {
            return Ok(());
        }
        let text = format!("'{}' changed during the call", path.requested());
        Err(Failure::new(Reason::FileChanged, text))
    }

    /// Returns the clock of the time that the call waits for approvers.
    pub(crate) fn wait_clock(&self) -> Arc<WaitClock> {
        Arc::clone(&self.wait_clock)
    }

    /// Returns the means to request values from the user.
    pub fn user_input(&self) -> &Arc<UserInput> {
        &self.input
    }

    /// Returns the token that is cancelled when the caller gives up or the time limit expires.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }
}
