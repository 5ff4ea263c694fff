//! Permission to act once: what a tool may touch.

use cairn_protocol::{
    error::{Failure, Reason},
    id::SessionId,
};
use cairn_workspace::Root;
use tokio_util::sync::CancellationToken;

/// What a caller brings to a call beyond the rules: the limits of its run.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    /// Whether the network may be used.
    pub network: bool,
    /// The only tools that may be called; any when `None`.
    pub ops: Option<Vec<String>>,
    /// The only paths that may be named, relative to the root; any when `None`.
    pub paths: Option<Vec<String>>,
}

/// Permission for one call. Only the gate makes it.
pub struct Permit {
    session: SessionId,
    root: Option<Root>,
    network: bool,
    paths: Option<Vec<String>>,
    cancel: CancellationToken,
}

impl Permit {
    /// Made by the gate, after policy and audit.
    pub(crate) fn grant(
        session: SessionId,
        root: Option<Root>,
        grants: &Grants,
        cancel: CancellationToken,
    ) -> Self {
        Self { session, root, network: grants.network, paths: grants.paths.clone(), cancel }
    }

    /// The session that acts.
    pub fn session(&self) -> &SessionId {
        &self.session
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

    /// Cancelled when the caller gives up or the time is over.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }
}
