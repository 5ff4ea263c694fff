//! Permission to act once: what a tool may touch.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cairn_protocol::{
    approval::Preview,
    error::{Failure, Reason},
    id::SessionId,
};
use cairn_workspace::{ResolvedPath, Root, Roots, View};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    Call, CallPaths, FetchRequest, Fetched, ToolSpec, Verdict,
    gate::decide::Judge,
    paths::Resolver,
    sandbox::{Confined, Ended, Sandbox, Stream, Wake},
    snapshot::Snapshots,
};

/// What a caller brings to a call beyond the rules: the limits of its run.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    /// Whether the network may be used.
    pub network: bool,
    /// The only tools that may be called; any when `None`.
    pub ops: Option<Vec<String>>,
    /// The only paths that may be named, relative to the root; any when `None`.
    pub paths: Option<Vec<String>>,
    /// Runs processes outside the sandbox, as somebody with the right to said.
    pub unconfined: bool,
}

/// Files that calls changed, in order, with what they held. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Whether what commands change is looked for as well.
    watched: bool,
    seen: Arc<Mutex<SeenChanges>>,
}

#[derive(Debug, Default)]
struct SeenChanges {
    all: Vec<Change>,
    left_out: Option<String>,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Relative to the root.
    pub path: String,
    /// What it held; `None` when it was not there.
    pub before: Option<Vec<u8>>,
    /// What it holds; `None` when it was deleted.
    pub after: Option<Vec<u8>>,
    /// Whether it was there and what it held was not kept.
    pub lost: bool,
}

impl Changes {
    /// Those of tools that write files themselves and those of the commands that are run, which costs a look at every
    /// file of the workspace.
    pub fn watched() -> Self {
        Self { watched: true, ..Self::default() }
    }

    fn seen(&self) -> MutexGuard<'_, SeenChanges> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a change.
    pub fn push(&self, change: Change) {
        self.seen().all.push(change);
    }

    /// Notes that there may be others, and why they are not known.
    pub(crate) fn leave_out(&self, why: String) {
        self.seen().left_out = Some(why);
    }

    /// Why there may be others.
    pub fn left_out(&self) -> Option<String> {
        self.seen().left_out.clone()
    }

    /// All of them; none are left.
    pub fn take(&self) -> Vec<Change> {
        std::mem::take(&mut self.seen().all)
    }
}

/// Ends a run that nobody waits for any more.
struct EndOnDrop(Wake);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Permission for one call. Only the gate makes it: nothing else can, which these would be wrong about.
///
/// ```compile_fail,E0624
/// fn forge(call: &cairn_harness::Call, sandbox: std::sync::Arc<cairn_harness::Sandbox>) -> cairn_harness::Permit {
///     cairn_harness::Permit::grant(call, loop {}, sandbox, Default::default())
/// }
/// ```
/// ```compile_fail,E0451
/// fn widen(permit: cairn_harness::Permit) -> cairn_harness::Permit {
///     cairn_harness::Permit { network: true, ..permit }
/// }
/// ```
/// ```compile_fail,E0599
/// fn keep(permit: &cairn_harness::Permit) -> cairn_harness::Permit {
///     permit.clone()
/// }
/// ```
/// ```compile_fail,E0616
/// fn take(registry: &cairn_harness::Registry) {
///     let _tools = &registry.tools;
/// }
/// ```
/// What does compile: a tool that is handed one.
/// ```
/// async fn act(permit: cairn_harness::Permit) -> bool {
///     permit.need_network().is_ok()
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
    /// Whether the user has accepted less than the full sandbox for this call.
    accepted: bool,
}

/// How the gate let a call through.
pub(crate) struct Admission {
    /// The preview that a person approved.
    pub approved: Option<Preview>,
    /// The paths that were judged.
    pub paths: CallPaths,
    /// The rules, for paths that no argument named.
    pub judge: Judge,
    pub roots: Option<Arc<Roots>>,
    pub spec: ToolSpec,
}

impl Permit {
    /// Made by the gate, after policy and audit.
    pub(crate) fn grant(
        call: &Call,
        admission: Admission,
        sandbox: Arc<Sandbox>,
        snapshots: Arc<Snapshots>,
    ) -> Self {
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
        }
    }

    /// What somebody was shown and said yes to, when they were asked: nothing else may be done.
    pub fn approved(&self) -> Option<&Preview> {
        self.admission.approved.as_ref()
    }

    /// Paths in the arguments.
    pub fn paths(&self) -> &CallPaths {
        &self.admission.paths
    }

    /// The path that an argument holds, all of which may be read.
    ///
    /// # Errors
    /// Errors of resolving it; `path_blocked` or `tool_denied` with the rule for one that may not be read.
    pub fn place(&self, path: &str, root: Option<&str>) -> Result<ResolvedPath, Failure> {
        let found = self.judged(path, root)?;
        self.require_path(&found)?;
        Ok(found)
    }

    /// The same for a tool that narrows: with the parts of it that may be read, where that is not all of it.
    ///
    /// # Errors
    /// As [`Permit::place`].
    pub fn wide_place(
        &self,
        path: &str,
        root: Option<&str>,
    ) -> Result<(ResolvedPath, Option<Vec<String>>), Failure> {
        let found = self.judged(path, root)?;
        self.require_own(&found)?;
        self.view_of(found.root()).require(&found, self.accepted)?;
        let parts = self.reach(found.real())?;
        Ok((found, parts))
    }

    /// The same in the session's own root.
    ///
    /// # Errors
    /// As [`Permit::place`], `no_roots`, `path_outside_roots`.
    pub fn own_place(&self, path: &str) -> Result<ResolvedPath, Failure> {
        let found = crate::tool::own_path(self.root(), &self.admission.paths, path)?;
        self.judge(&found)?;
        self.require_path(&found)?;
        Ok(found)
    }

    /// A path as the gate judged it, or, when no argument named it, judged now.
    fn judged(&self, path: &str, root: Option<&str>) -> Result<ResolvedPath, Failure> {
        if let Some(found) = self.admission.paths.find(path, root) {
            return Ok(found.clone());
        }
        let resolver = Resolver { roots: self.admission.roots.as_ref(), own: self.root.as_ref() };
        let found = resolver.locate(path, root)?;
        self.judge(&found)?;
        Ok(found)
    }

    fn judge(&self, path: &ResolvedPath) -> Result<(), Failure> {
        // The root itself is what a call is about that names nothing.
        if path.requested() == "."
            || self.admission.paths.iter().any(|p| p.root().id == path.root().id && p.real() == path.real())
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

    /// Refuses a path of another root in a run that keeps to paths of its own.
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

    /// The session's root without the paths that rules hide.
    fn view(&self) -> Option<&View> {
        let root = self.root.as_ref()?;
        Some(self.view.get_or_init(|| self.own_view(root).unwrap_or_else(|| root.view())))
    }

    fn own_view(&self, root: &Root) -> Option<View> {
        self.admission.judge.view_for(&self.admission.spec.name, root)
    }

    /// Paths that rules hide from this tool and not from every other: those a search knows itself.
    ///
    /// # Errors
    /// `tool_failed` when there is more of it than can be named.
    pub fn hidden_paths(&self) -> Result<Vec<String>, Failure> {
        let Some(root) = &self.root else { return Ok(vec![]) };
        let Some(masked) = self.own_view(root).map(|view| view.masked(root)) else { return Ok(vec![]) };
        if masked.cut {
            return Err(Failure::new(Reason::ToolFailed, "rules hide more than can be left out of a search"));
        }
        Ok(masked.paths)
    }

    fn view_of(&self, root: &Root) -> View {
        match (self.view(), &self.root) {
            (Some(view), Some(own)) if own.id == root.id => view.clone(),
            _ => self.own_view(root).unwrap_or_else(|| root.view()),
        }
    }

    /// True if the file at `rel` (resolved, in the session's root) may be shown in a list of many.
    pub fn shows(&self, rel: &str) -> bool {
        self.require_path_of_run(rel).is_ok() && self.view().is_none_or(|view| view.shows(rel))
    }

    /// True if everything in the session's root may be shown.
    pub fn shows_all(&self) -> bool {
        self.paths.is_none() && self.view().is_none_or(View::is_complete)
    }

    /// True if rules hide something of the session's root, for answers that say so.
    pub fn hides(&self) -> bool {
        self.view().is_some_and(|view| !view.is_complete())
    }

    /// Runs a process in the sandbox, to the end of all that it starts. The workspace is the session's root and, of it,
    /// the paths of this run; the network is there only if both the wish and the permit have it. What it changes there is noted
    /// where the call's changes are watched. `output` is shown what
    /// it writes as it comes. Ends when the permit is cancelled, or when the answer is no longer waited for.
    ///
    /// # Errors
    /// `no_roots`, `network_denied`, and those of [`Sandbox::run`].
    pub async fn run(
        &self,
        mut confined: Confined,
        mut output: impl FnMut(Stream, &[u8]) + Send + 'static,
    ) -> Result<Ended, Failure> {
        let root = self.need_root()?;
        if confined.network {
            self.need_network()?;
        }
        self.mount(root, &mut confined)?;
        let (sandbox, wake) = (Arc::clone(&self.sandbox), Wake::new()?);
        let running = wake.clone();
        let _ends_with_this = EndOnDrop(wake.clone());
        let (snapshots, changes) = (Arc::clone(&self.snapshots), self.changes.clone());
        let watched = (changes.watched && confined.writable).then(|| root.clone());
        let job = tokio::task::spawn_blocking(move || {
            let mut run = || sandbox.run(&confined, &running, &mut output);
            match watched {
                Some(root) => snapshots.around(&root, &changes, run),
                None => run(),
            }
        });
        tokio::pin!(job);
        let joined = tokio::select! {
            joined = &mut job => joined,
            () = self.cancel.cancelled() => {
                wake.end();
                job.await
            }
        };
        joined.unwrap_or_else(|e| {
            Err(Failure::new(Reason::Internal, format!("the process could not be followed: {e}")))
        })
    }

    /// The workspace of a process: which folders it is to see, each with what it must turn out to be once it is mounted, and what
    /// of them rules hide.
    fn mount(&self, root: &Root, confined: &mut Confined) -> Result<(), Failure> {
        confined.root = Some(root.path.clone());
        confined.parts.clone_from(&self.paths);
        confined.accepted = self.accepted;
        confined.write_paths = self.admission.judge.write_paths(root);
        for path in confined.write_paths.clone().unwrap_or_default() {
            let rel = path.strip_prefix(&root.path).unwrap_or(&path).to_string_lossy().into_owned();
            confined.expect(root, if rel.is_empty() { "." } else { &rel })?;
        }
        match &self.paths {
            None => confined.expect(root, ".")?,
            Some(paths) => {
                for rel in paths {
                    confined.expect(root, rel)?;
                }
            }
        }
        for other in std::mem::take(&mut confined.roots) {
            confined.expect(&other, ".")?;
            confined.mask(&other, &other.view())?;
            confined.readable.push(other.path.clone());
        }
        confined.mask(root, &self.view_of(root))
    }

    /// Reads a page of the web.
    ///
    /// # Errors
    /// `network_denied` when the network is not granted or the address is not public, `cancelled`, `invalid_params`,
    /// `tool_timed_out`, `tool_failed`.
    pub async fn fetch(&self, request: &FetchRequest) -> Result<Fetched, Failure> {
        self.need_network()?;
        tokio::select! {
            fetched = crate::fetch::fetch(request) => fetched,
            () = self.cancel.cancelled() => Err(Failure::new(Reason::Cancelled, "the call was cancelled")),
        }
    }

    /// The session that acts.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The record that caused the call, when there is one.
    pub fn command(&self) -> Option<Uuid> {
        self.command
    }

    /// The root the session works in, if it has one.
    pub fn root(&self) -> Option<&Root> {
        self.root.as_ref()
    }

    /// The root, for tools that cannot do without.
    ///
    /// # Errors
    /// `no_roots`.
    pub fn need_root(&self) -> Result<&Root, Failure> {
        self.root().ok_or_else(|| Failure::new(Reason::NoRoots, "the session has no root to work in"))
    }

    /// Leave to use the network.
    ///
    /// # Errors
    /// `network_denied`.
    pub fn need_network(&self) -> Result<(), Failure> {
        let denied = || Failure::new(Reason::NetworkDenied, "the network is not allowed here");
        self.network.then_some(()).ok_or_else(denied)
    }

    /// Leave to read `rel` (relative to the root).
    ///
    /// # Errors
    /// `tool_denied` when the run's own policy leaves it out.
    pub fn require_path_of_run(&self, rel: &str) -> Result<(), Failure> {
        let inside = |p: &String| crate::policy::beneath(rel, p);
        if self.paths.as_ref().is_none_or(|paths| paths.iter().any(inside)) {
            return Ok(());
        }
        Err(Failure::new(Reason::ToolDenied, format!("path '{rel}' is outside the paths of this run")))
    }

    /// The parts of `rel` that may be read, none of them within another; `None` for all of it.
    ///
    /// # Errors
    /// `tool_denied` when that is nothing.
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
        // Sorted, a folder comes before what lies in it.
        let mut outer: Vec<String> = Vec::new();
        for part in parts {
            if !outer.iter().any(|o| crate::policy::beneath(&part, o)) {
                outer.push(part);
            }
        }
        Ok(Some(outer))
    }

    /// The file as it is, of at most `limit` bytes; `None` when there is none.
    ///
    /// # Errors
    /// `tool_denied` outside the run's paths, and those of opening it.
    pub fn read_file(&self, path: &ResolvedPath, limit: u64) -> Result<Option<Vec<u8>>, Failure> {
        self.require_path(path)?;
        Ok(path.root().read_whole(path.real(), limit)?)
    }

    /// Writes a file whole, when it still holds `before`; the change is noted. Blocks.
    ///
    /// # Errors
    /// `file_changed`; `tool_denied` outside the run's paths, and those of writing it.
    pub fn write_file(
        &self,
        path: &ResolvedPath,
        before: Option<Vec<u8>>,
        after: Vec<u8>,
    ) -> Result<(), Failure> {
        self.need_unchanged(path, before.as_deref())?;
        path.root().write_whole(path.real(), &after)?;
        self.changes.push(Change { path: path.real().to_owned(), before, after: Some(after), lost: false });
        Ok(())
    }

    /// Removes a file, a symlink itself, when it still holds `before`; the change is noted. Blocks.
    ///
    /// # Errors
    /// As [`Permit::write_file`].
    pub fn remove_file(&self, path: &ResolvedPath, before: Vec<u8>) -> Result<(), Failure> {
        self.need_unchanged(path, Some(&before))?;
        path.root().remove_file(path.entry())?;
        let change = Change { path: path.entry().to_owned(), before: Some(before), after: None, lost: false };
        self.changes.push(change);
        Ok(())
    }

    fn need_unchanged(&self, path: &ResolvedPath, before: Option<&[u8]>) -> Result<(), Failure> {
        let now = self.read_file(path, cairn_workspace::MAX_WRITTEN_BYTES)?;
        if now.as_deref() == before {
            return Ok(());
        }
        let text = format!("'{}' changed while the call was under way", path.requested());
        Err(Failure::new(Reason::FileChanged, text))
    }

    /// Cancelled when the caller gives up or the time is over.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }
}
