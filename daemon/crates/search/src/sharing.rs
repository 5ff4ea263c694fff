//! Roots with mostly equal content share an index: the one that exists is frozen and becomes the
//! base of both, see [`crate::base_index`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use cairn_index_base::{FileTable, lock};
use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::id::RootId;
use cairn_protocol::index::IndexState;
use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;
use cairn_workspace::Root;
use cairn_workspace::git::{GitStamp, git_stamps};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::base_index::{self, Adoption, BaseIndex, BlobTable, are_mostly_equal};
use crate::indexes::{Indexes, Running};
use crate::root_index::{RootIndex, freezing};
use crate::worker::{self, Job};

/// Number of paths that are compared before all are.
const SAMPLE: usize = 64;
/// Time that the worker of an index has to end before it is left running.
const FREEZE_LIMIT: Duration = Duration::from_secs(2);
/// Interval at which the worker is polled.
const POLL: Duration = Duration::from_millis(2);

/// The folder of a root's index and its base.
pub struct IndexLocation {
    pub folder: PathBuf,
    pub base: Option<Arc<BaseIndex>>,
    /// Of a new root.
    pub adoption: Option<Adoption>,
}

/// The bases of all indexes.
#[derive(Default)]
pub struct Bases {
    open: Mutex<FxHashMap<String, Weak<BaseIndex>>>,
    /// Locked while an index becomes a base, which must not be removed or rebuilt meanwhile.
    pub freezing: Mutex<()>,
}

impl Indexes {
    /// The folder of a root's index and its base. An index whose base cannot be read is rebuilt.
    ///
    /// # Errors
    /// `storage_failed`, `disk_full`.
    pub(crate) fn locate(&self, root: &Root) -> Result<IndexLocation, Failure> {
        let folder = self.folders.choose(&root.id);
        if folder.exists() {
            let Some(name) = base_index::name_in(&folder) else {
                return Ok(IndexLocation { folder, base: None, adoption: None });
            };
            match self.open_base(&name) {
                Ok(base) => return Ok(IndexLocation { folder, base: Some(base), adoption: None }),
                Err(error) => {
                    tracing::warn!(root = %root.path.display(), %error, "the shared part of an index cannot be read, rebuilding it");
                    std::fs::remove_dir_all(&folder)
                        .map_err(|source| StoreError::Io { path: folder.clone(), source })?;
                }
            }
        }
        let _guard = self.folders.lock_bases();
        let Some((base, adoption)) = self.find_base(root) else {
            return Ok(IndexLocation { folder, base: None, adoption: None });
        };
        crate::db::make_private(&folder)?;
        base_index::write_name(&folder, &base.name)?;
        Ok(IndexLocation { folder, base: Some(base), adoption: Some(adoption) })
    }

    /// Folders of the bases of declared roots, with the ids of those roots.
    pub fn shared_folders(&self) -> Vec<(PathBuf, Vec<RootId>)> {
        let mut folders: BTreeMap<PathBuf, Vec<RootId>> = BTreeMap::new();
        for index in self.all() {
            if let Some(base) = &index.base {
                let folder = self.folders.of_base(&base.name);
                folders.entry(folder).or_default().push(index.root.id.clone());
            }
        }
        folders.into_iter().collect()
    }

    fn open_base(&self, name: &str) -> Result<Arc<BaseIndex>, StoreError> {
        let mut open = lock(&self.bases.open);
        open.retain(|_, base| base.strong_count() > 0);
        if let Some(base) = open.get(name).and_then(Weak::upgrade) {
            return Ok(base);
        }
        let base = Arc::new(BaseIndex::open(&self.folders.of_base(name), &self.opts.embedder)?);
        open.insert(name.to_owned(), Arc::downgrade(&base));
        Ok(base)
    }

    /// The base for a new root: at least half of its files are in it. The index of another root
    /// becomes a base if it is complete.
    fn find_base(&self, root: &Root) -> Option<(Arc<BaseIndex>, Adoption)> {
        let candidates: Vec<_> = self
            .all()
            .into_iter()
            .filter(|index| index.progress().state == Some(IndexState::Ready))
            .collect();
        if candidates.is_empty() {
            return None;
        }
        let stamps = git_stamps(root).filter(|s| s.len() >= self.opts.min_shared_files)?;
        let mut seen = FxHashSet::default();
        for index in candidates {
            let table = index.file_table().ok();
            if !table.is_some_and(|table| resembles(&table, &stamps)) {
                continue;
            }
            let base = match &index.base {
                Some(base) if seen.insert(base.name.clone()) => Some(Arc::clone(base)),
                Some(_) => None,
                None => self.freeze_if_similar(&index, &stamps),
            };
            let Some(base) = base else { continue };
            let Ok(blobs) = BlobTable::read(&self.folders.of_base(&base.name)) else { continue };
            if are_mostly_equal(&stamps, |path| blobs.blob(path)) {
                let stamps = stamps.into_iter().collect();
                return Some((base, Adoption { blobs, stamps }));
            }
        }
        None
    }

    fn freeze_if_similar(
        &self,
        index: &Arc<RootIndex>,
        stamps: &[(String, GitStamp)],
    ) -> Option<Arc<BaseIndex>> {
        let own = git_stamps(&index.root)?;
        let blobs: FxHashMap<&str, [u8; 20]> =
            own.iter().map(|(path, stamp)| (path.as_str(), stamp.blob)).collect();
        if !are_mostly_equal(stamps, |path| blobs.get(path).copied()) {
            return None;
        }
        match self.freeze(index, &own) {
            Ok(base) => base,
            Err(error) => {
                tracing::warn!(root = %index.root.path.display(), error = error.message, "the index cannot be shared");
                None
            }
        }
    }

    /// Makes the index of a root a base and gives the root a new index upon it. `None` if the index
    /// is being written. Searches continue all the time.
    ///
    /// # Errors
    /// Any failure of storage; the root continues with its index.
    fn freeze(
        &self,
        old: &Arc<RootIndex>,
        stamps: &[(String, GitStamp)],
    ) -> Result<Option<Arc<BaseIndex>>, Failure> {
        let _only_one = lock(&self.bases.freezing);
        let id = &old.root.id;
        if lock(&self.rebuilds).get(id).is_some_and(|rebuild| !rebuild.thread.is_finished()) {
            return Ok(None);
        }
        let is_current = |running: &Running| Arc::ptr_eq(&running.index, old);
        let Some(jobs) =
            lock(&self.roots).get(id).filter(|r| is_current(r)).map(|r| r.jobs.clone())
        else {
            return Ok(None);
        };
        old.freezing.store(freezing::REQUESTED, Ordering::SeqCst);
        let _full = jobs.try_send(Job::Wake);
        if !wait_until_frozen(old) {
            return Ok(None);
        }
        let joinable =
            lock(&self.roots).get_mut(id).filter(|r| is_current(r)).and_then(|r| r.thread.take());
        if let Some(thread) = joinable {
            let _panicked = thread.join();
        }
        let started = self.start_upon(old, stamps);
        let mut roots = lock(&self.roots);
        let Some(running) = roots.get_mut(id).filter(|r| is_current(r)) else {
            // The indexes were closed in the meantime.
            drop(roots);
            if let Ok((mut fresh, _)) = started {
                fresh.stop();
            }
            return Ok(None);
        };
        match started {
            Ok((fresh, base)) => {
                *running = fresh;
                drop(roots);
                old.stop.store(true, Ordering::Relaxed);
                old.changed.notify_all();
                old.readers.clear();
                Ok(Some(base))
            }
            Err(error) => {
                old.freezing.store(freezing::NO, Ordering::SeqCst);
                let (jobs, thread) = worker::start(Arc::clone(old)).map_err(no_thread)?;
                (running.jobs, running.thread) = (jobs, Some(thread));
                Err(error)
            }
        }
    }

    /// Starts a new index of a root upon `old`, which is not written any more.
    fn start_upon(
        &self,
        old: &Arc<RootIndex>,
        stamps: &[(String, GitStamp)],
    ) -> Result<(Running, Arc<BaseIndex>), Failure> {
        let mut conn = crate::db::open(&old.folder, None)?;
        base_index::write_blobs(&mut conn, stamps)?;
        let _busy = conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
        drop(conn);
        let name = old.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let base = self.open_base(&name)?;
        let folder = self.folders.begin(&old.root.id)?;
        let started = self.prepare(old, &base, &folder);
        if started.is_err() {
            let _unfinished = std::fs::remove_dir_all(&folder);
        }
        started.map(|running| (running, base))
    }

    fn prepare(
        &self,
        old: &Arc<RootIndex>,
        base: &Arc<BaseIndex>,
        folder: &Path,
    ) -> Result<Running, Failure> {
        base_index::write_name(folder, &base.name)?;
        let index = Arc::new(RootIndex::new(
            old.root.clone(),
            folder.to_owned(),
            Arc::clone(&self.opts),
            Some(Arc::clone(base)),
            self.notify.clone(),
        ));
        let mut conn = index.open_database()?;
        copy_files(&mut conn)?;
        index.postings.open(&conn)?;
        index.refresh_base(&conn)?;
        drop(conn);
        *lock(&index.progress) = old.progress();
        lock(&index.progress).requested += 1;
        self.folders.finish(folder)?;
        let (jobs, thread) = worker::start(Arc::clone(&index)).map_err(no_thread)?;
        Ok(Running { index, jobs, thread: Some(thread) })
    }
}

/// Copies the table of files of the base.
fn copy_files(conn: &mut Connection) -> Result<(), StoreError> {
    let tx = conn.transaction()?;
    tx.execute_batch(
        "INSERT INTO main.file SELECT * FROM base.file;
         INSERT OR REPLACE INTO main.meta SELECT key, value FROM base.meta
             WHERE key IN ('clock', 'model', 'invalid_names', 'unreadable');",
    )?;
    Ok(tx.commit()?)
}

fn wait_until_frozen(index: &RootIndex) -> bool {
    let until = Instant::now() + FREEZE_LIMIT;
    while index.freezing.load(Ordering::SeqCst) != freezing::DONE {
        let (from, to, order) = (freezing::REQUESTED, freezing::NO, Ordering::SeqCst);
        let is_late = Instant::now() >= until || index.is_stopping();
        if is_late && index.freezing.compare_exchange(from, to, order, order).is_ok() {
            return false;
        }
        std::thread::sleep(POLL);
    }
    true
}

/// True if most of a sample of paths are in a table of files.
fn resembles(table: &FileTable, stamps: &[(String, GitStamp)]) -> bool {
    let sample = stamps.iter().step_by((stamps.len() / SAMPLE).max(1));
    let (mut all, mut found) = (0, 0);
    for (path, _) in sample {
        all += 1;
        found += usize::from(table.files.binary_search_by(|f| (*f.path).cmp(path)).is_ok());
    }
    all > 0 && 2 * found >= all
}

fn no_thread(error: std::io::Error) -> Failure {
    Failure::new(Reason::Internal, format!("cannot start a thread for the index: {error}"))
}
