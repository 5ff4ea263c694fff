//! Live notices: progress that is published and not stored.

use cairn_protocol::{
    error::{Failure, Reason},
    git::GitProgress,
    index::IndexProgress,
};
use crossbeam_channel::Receiver;

use crate::Engine;

/// One live notice for subscribers.
#[derive(Debug, Clone)]
pub enum Notice {
    /// Progress of an index.
    Index(IndexProgress),
    /// Progress of a clone.
    Git(GitProgress),
}

impl Engine {
    /// Publishes the indexes' progress. The thread exits with the indexes.
    pub(crate) fn forward_progress(
        &self,
        progress: Receiver<IndexProgress>,
    ) -> Result<(), Failure> {
        let notices = self.inner.notices.clone();
        let forward = move || {
            for progress in progress {
                // An error means that there is no subscriber.
                let _listeners = notices.send(Notice::Index(progress));
            }
        };
        let started = std::thread::Builder::new().name("index-progress".into()).spawn(forward);
        started.map(drop).map_err(|e| {
            Failure::new(Reason::Internal, format!("cannot start a thread for index progress: {e}"))
        })
    }
}
