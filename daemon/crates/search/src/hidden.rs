//! Hidden files on request. Each root may have a second index of the files that its walk leaves out
//! because they are hidden. It is created by the first request that includes them, brought up to
//! date by each further one, without a watch of its own, and deleted with the root.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_index_base::{CancelFlag, lock};
use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::id::RootId;

use crate::filters::Filters;
use crate::indexes::{IndexOptions, Indexes, Running, request};
use crate::root_index::RootIndex;
use crate::worker::{self, Job};

/// Time that a request waits for the index of hidden files; later it answers with what is there.
const UPDATE_LIMIT: Duration = Duration::from_secs(10);

impl Indexes {
    /// The indexes that the filters name; with hidden files also theirs, after all others.
    ///
    /// # Errors
    /// `root_not_found`, `no_roots`, `cancelled`, or the failure of an index of hidden files.
    pub(crate) fn in_scope(
        &self,
        filters: &Filters,
        cancel: &CancelFlag,
    ) -> Result<Vec<Arc<RootIndex>>, Failure> {
        let mut indexes = self.named(&filters.roots)?;
        if filters.hidden {
            let of_hidden: Result<Vec<_>, _> =
                indexes.iter().map(|index| self.hidden_files(index, cancel)).collect();
            indexes.extend(of_hidden?);
        }
        Ok(indexes)
    }

    /// The folder of the index of a root's hidden files, which may not exist.
    pub fn hidden_folder(&self, id: &RootId) -> PathBuf {
        self.folders.of_hidden(id)
    }

    /// The index of a root's hidden files, up to date unless that takes longer than
    /// [`UPDATE_LIMIT`].
    fn hidden_files(
        &self,
        index: &RootIndex,
        cancel: &CancelFlag,
    ) -> Result<Arc<RootIndex>, Failure> {
        let (hidden, ticket) = {
            let mut all = lock(&self.hidden);
            if !all.contains_key(&index.root.id) {
                all.insert(index.root.id.clone(), self.start_hidden(index)?);
            }
            request(&all[&index.root.id], Job::Scan)
        };
        // A root that was removed meanwhile must not have such an index for ever.
        if self.index(&index.root.id).is_err() {
            self.remove_hidden(&index.root.id);
            return Err(Failure::new(Reason::RootNotFound, "the root was removed"));
        }
        let until = Instant::now() + UPDATE_LIMIT;
        hidden.wait(cancel, |p| ticket <= p.all_done || Instant::now() >= until)?;
        Ok(hidden)
    }

    fn start_hidden(&self, index: &RootIndex) -> Result<Running, Failure> {
        let opts = IndexOptions {
            hidden_only: true,
            watch: false,
            sweep_seconds: 0,
            ..(*self.opts).clone()
        };
        let folder = self.folders.of_hidden(&index.root.id);
        let hidden = RootIndex::new(index.root.clone(), folder, Arc::new(opts), None, None);
        let hidden = Arc::new(hidden);
        let (jobs, thread) = worker::start(Arc::clone(&hidden)).map_err(|e| {
            Failure::new(Reason::Internal, format!("cannot start a thread for the index: {e}"))
        })?;
        Ok(Running { index: hidden, jobs, thread: Some(thread) })
    }

    /// Stops and deletes the index of a root's hidden files.
    pub(crate) fn remove_hidden(&self, id: &RootId) {
        let running = lock(&self.hidden).remove(id);
        let folder = self.folders.of_hidden(id);
        let deleted = match running {
            Some(running) => self.folders.retire(running),
            None if folder.exists() => std::fs::remove_dir_all(&folder).map_err(|e| {
                Failure::new(Reason::StorageFailed, format!("{}: {e}", folder.display()))
            }),
            None => Ok(()),
        };
        if let Err(error) = deleted {
            tracing::warn!(%error, "the index of hidden files of a removed root was not deleted");
        }
    }
}
