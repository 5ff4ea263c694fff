//! Live news: progress that is told and not kept.

use cairn_protocol::{
    error::{Failure, Reason},
    git::GitProgress,
    index::IndexProgress,
};
use crossbeam_channel::Receiver;

use crate::Engine;

/// One piece of news.
#[derive(Debug, Clone)]
pub enum Notice {
    /// About an index.
    Index(IndexProgress),
    /// About a clone.
    Git(GitProgress),
}

impl Engine {
    /// Passes the indexes' progress on to whoever listens. The thread ends with the indexes.
    pub(crate) fn forward_progress(&self, progress: Receiver<IndexProgress>) -> Result<(), Failure> {
        let notices = self.inner.notices.clone();
        let forward = move || {
            for progress in progress {
                // Nobody listens: fine.
                let _listeners = notices.send(Notice::Index(progress));
            }
        };
        let started = std::thread::Builder::new().name("index-progress".into()).spawn(forward);
        started
            .map(drop)
            .map_err(|e| Failure::new(Reason::Internal, format!("no thread for index progress: {e}")))
    }
}
