//! Permission to act once: what a tool may touch.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_protocol::{
    approval::Preview,
    error::{Failure, Reason},
    id::SessionId,
};
use cairn_workspace::Root;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    Call, FetchRequest, Fetched,
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
///     cairn_harness::Permit::grant(call, None, sandbox, Default::default())
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
    approved: Option<Preview>,
    changes: Changes,
    sandbox: Arc<Sandbox>,
    snapshots: Arc<Snapshots>,
    /// Whether the user has accepted less than the full sandbox for this call.
    accepted: bool,
}

impl Permit {
    /// Made by the gate, after policy and audit.
    pub(crate) fn grant(
        call: &Call,
        approved: Option<Preview>,
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
            accepted: approved.is_some(),
            approved,
            sandbox,
            snapshots,
            changes: call.changes.clone(),
        }
    }

    /// What somebody was shown and said yes to, when they were asked: nothing else may be done.
    pub fn approved(&self) -> Option<&Preview> {
        self.approved.as_ref()
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
        confined.root = Some(root.path.clone());
        confined.parts.clone_from(&self.paths);
        confined.accepted = self.accepted;
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
    pub fn need_path(&self, rel: &str) -> Result<(), Failure> {
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
        if self.need_path(rel).is_ok() {
            return Ok(None);
        }
        let mut parts: Vec<String> = paths
            .iter()
            .filter(|p| crate::policy::beneath(p, rel))
            .map(|p| crate::policy::plain(p))
            .collect();
        if parts.is_empty() {
            return self.need_path(rel).map(|()| None);
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

    /// The file at `rel` in the root as it is, of at most `limit` bytes; `None` when there is none.
    ///
    /// # Errors
    /// `no_roots`, `tool_denied` outside the run's paths, and those of opening it.
    pub fn read_file(&self, rel: &str, limit: u64) -> Result<Option<Vec<u8>>, Failure> {
        self.need_path(rel)?;
        self.need_root()?.read_whole(rel, limit)
    }

    /// Writes the file at `rel` whole, when it still holds `before`; the change is noted. Blocks.
    ///
    /// # Errors
    /// `file_changed`; `no_roots`, `tool_denied` outside the run's paths, and those of writing it.
    pub fn write_file(&self, rel: &str, before: Option<Vec<u8>>, after: Vec<u8>) -> Result<(), Failure> {
        self.need_unchanged(rel, before.as_deref())?;
        self.need_root()?.write_whole(rel, &after)?;
        self.changes.push(Change { path: rel.to_owned(), before, after: Some(after), lost: false });
        Ok(())
    }

    /// Removes the file at `rel`, when it still holds `before`; the change is noted. Blocks.
    ///
    /// # Errors
    /// As [`Permit::write_file`].
    pub fn remove_file(&self, rel: &str, before: Vec<u8>) -> Result<(), Failure> {
        self.need_unchanged(rel, Some(&before))?;
        self.need_root()?.remove_file(rel)?;
        self.changes.push(Change { path: rel.to_owned(), before: Some(before), after: None, lost: false });
        Ok(())
    }

    fn need_unchanged(&self, rel: &str, before: Option<&[u8]>) -> Result<(), Failure> {
        let now = self.read_file(rel, cairn_workspace::MAX_WRITTEN_BYTES)?;
        if now.as_deref() == before {
            return Ok(());
        }
        Err(Failure::new(Reason::FileChanged, format!("'{rel}' changed while the call was under way")))
    }

    /// Cancelled when the caller gives up or the time is over.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }
}
