//! Live news: progress that is told and not kept.

use cairn_protocol::{git::GitProgress, index::IndexProgress};

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
    /// Passes the indexes' progress on to whoever listens.
    pub(crate) fn forward_progress(&self) {
        let notices = self.inner.notices.clone();
        self.inner.indexes.on_progress(Box::new(move |progress| {
            // Nobody listens: fine.
            let _listeners = notices.send(Notice::Index(progress));
        }));
    }
}
