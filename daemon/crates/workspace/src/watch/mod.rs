//! Noticing changes of a root: events are gathered on the notifier's thread, made sense of on a thread of ours, and
//! sent as sets of paths once it is quiet. What cannot be told path by path becomes a rescan, never a gap.

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
/// Changes are sent when there was none for this long …
pub const QUIET: Duration = Duration::from_millis(30);
/// … or when the first of them is this old.
pub const LATEST: Duration = Duration::from_millis(200);
/// How often a root is swept when the system has no watches left.
pub const POLL: Duration = Duration::from_secs(5);
/// How often a watched root is swept all the same, in case something was missed.
pub const SWEEP: Duration = Duration::from_secs(600);

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Paths relative to the root, as in [`crate::Walked::rel`]. Each names a file to look at again, or something that
    /// is gone (or is no regular file any more): a file, or a folder with everything that was below it. Only paths
    /// that a walk could yield are named.
    Paths(BTreeSet<String>),
    /// Too much or something unknown changed: walk again, with ignore rules read afresh.
    Rescan,
}

/// Watches a root until it is dropped; dropping it ends its threads.
pub struct Watch {
    inbox: Arc<Inbox>,
    worker: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts watching the folders that [`crate::walk`] goes into. When this returns, every change from now on will be
    /// reported: start it first, then walk. `tx` should be bounded: while it is full, changes are kept and merged.
    ///
    /// # Errors
    /// `IndexFailed` when no thread can be started.
    pub fn start(root: &Root, opts: &WalkOptions, tx: Sender<Change>) -> Result<Watch, WorkspaceError> {
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

    /// How far it is, now and later.
    pub fn ticks(&self) -> Ticks {
        Ticks(self.inbox.clone())
    }

    /// `watching`, or `polling` when the system has no watches left.
    pub fn mode(&self) -> &'static str {
        if self.inbox.is_polling() { "polling" } else { "watching" }
    }
}

/// How far a watch is, for who must know whether a change is on its way.
#[derive(Clone)]
pub struct Ticks(Arc<Inbox>);

impl Ticks {
    /// How many changes were sent, when they tell of every event that came until now; `None` while one is on its way,
    /// or when events do not tell of everything: changes are found by sweeps, or another computer may make them.
    pub fn settled(&self) -> Option<u64> {
        self.0.settled()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.inbox.stop();
        if let Some(thread) = self.worker.take() {
            // It waits on nothing but the inbox, so it ends within one step.
            let _ = thread.join();
        }
    }
}
