//! Watching a root for changes: events are collected on the notifier's thread, interpreted on a
//! thread of ours, and sent as sets of paths after a quiet period. Changes that cannot be reported
//! path by path become a rescan, never a gap.

mod inbox;
mod tree;
mod worker;

use std::{collections::BTreeSet, sync::Arc, thread::JoinHandle, time::Duration};

use crossbeam_channel::Sender;

use crate::{WorkspaceError, root::Root, walk::WalkOptions};
use inbox::Inbox;
use tree::Tree;
use worker::Worker;

/// Most paths of one [`Change::Paths`]; more become a [`Change::Rescan`].
pub const MAX_PENDING: usize = 20_000;
/// Quiet period after which changes are sent …
pub const QUIET: Duration = Duration::from_millis(30);
/// … and the age of the oldest change at which they are sent in any case.
pub const LATEST: Duration = Duration::from_millis(200);
/// Interval of sweeps when the system has no watches left.
pub const POLL: Duration = Duration::from_secs(5);
/// Interval of sweeps of a watched root, in case an event was missed.
pub const SWEEP: Duration = Duration::from_secs(600);

/// A set of changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Paths relative to the root, as in [`crate::Walked::rel`]. Each names a file to examine
    /// again, or an entry that was removed (or is no regular file any more): a file, or a folder
    /// with everything below it. Only paths that a walk could yield are named.
    Paths(BTreeSet<String>),
    /// Too many or unknown changes: walk again, with ignore rules reloaded.
    Rescan,
}

/// Watches a root; dropping it stops its threads.
pub struct Watch {
    inbox: Arc<Inbox>,
    worker: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts watching the folders that [`crate::walk`] enters. When this returns, every later
    /// change will be reported: start it first, then walk. `tx` should be bounded: while it is
    /// full, changes are buffered and merged.
    ///
    /// # Errors
    /// `IndexFailed` when no thread can be started.
    pub fn start(
        root: &Root,
        opts: &WalkOptions,
        tx: Sender<Change>,
    ) -> Result<Watch, WorkspaceError> {
        let inbox = Arc::new(Inbox::new(&root.path));
        let mut tree = Tree::new(root, opts, inbox.clone());
        tree.watch_all();
        let worker = Worker::new(tree, inbox.clone(), tx);
        let thread = std::thread::Builder::new()
            .name("watch".into())
            .spawn(move || worker.run())
            .map_err(|e| WorkspaceError::Watch { root: root.path.clone(), source: e })?;
        Ok(Watch { inbox, worker: Some(thread) })
    }

    /// Returns the progress of the watch, now and later.
    pub fn ticks(&self) -> Ticks {
        Ticks(self.inbox.clone())
    }

    /// Returns `watching`, or `polling` when the system has no watches left.
    pub fn mode(&self) -> &'static str {
        if self.inbox.is_polling() { "polling" } else { "watching" }
    }
}

/// Progress of a watch, for callers that must know if a change is pending.
#[derive(Clone)]
pub struct Ticks(Arc<Inbox>);

impl Ticks {
    /// Returns the number of changes sent, if they cover every event so far; `None` while one is
    /// pending, or when events do not cover everything: changes are found by sweeps, or another
    /// computer may make them.
    pub fn settled(&self) -> Option<u64> {
        self.0.settled()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.inbox.stop();
        if let Some(thread) = self.worker.take() {
            // It waits on nothing but the inbox, so it exits within one step.
            let _ = thread.join();
        }
    }
}
