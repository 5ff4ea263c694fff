//! Rebuilding: a new index is built beside the current one and replaces it once it is complete.
//!
//! A root's index is in the folder named after the root's id, optionally with a number appended. A
//! marker file shows that an index is unfinished; among the finished ones the highest number wins.
//! A daemon that dies at any moment therefore finds exactly one complete index when it starts.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::id::RootId;
use cairn_protocol::index::{IndexProgress, IndexState};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::indexes::Running;
use crate::root_index::{Reporting, RootIndex};
use crate::worker;
use crate::{base_index, db};
use cairn_index_base::{CancelFlag, lock};

/// Marker file in the folder of an index that is not complete yet.
const UNFINISHED: &str = "unfinished";
/// Time that searches have to finish reading an index before its folder is deleted.
const READERS_LIMIT: Duration = Duration::from_secs(60);
/// Interval at which those readers are polled.
const POLL: Duration = Duration::from_millis(5);

/// The current index of each root.
pub type Roots = Arc<Mutex<FxHashMap<RootId, Running>>>;

/// The folders of all indexes, and those that are being deleted.
#[derive(Clone)]
pub struct Folders {
    dir: PathBuf,
    retiring: Arc<Mutex<FxHashSet<PathBuf>>>,
    /// Locked between the choice of a base and the file that names it, and while an unused one is
    /// deleted.
    choosing: Arc<Mutex<()>>,
}

impl Folders {
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, retiring: Arc::default(), choosing: Arc::default() }
    }

    /// Chooses the folder of a root's index and deletes leftovers of a crashed daemon.
    pub fn choose(&self, id: &RootId) -> PathBuf {
        let retiring = lock(&self.retiring).clone();
        let bases = self.bases();
        let is_base = |folder: &Path| {
            folder.file_name().is_some_and(|name| bases.contains(&*name.to_string_lossy()))
        };
        let mut all = self.existing(id);
        let is_free = |folder: &PathBuf| !retiring.contains(folder) && !is_base(folder);
        all.retain(|(_, folder)| is_free(folder));
        let best = all
            .iter()
            .filter(|(_, folder)| !folder.join(UNFINISHED).exists())
            .map(|(n, _)| *n)
            .max();
        for (_, folder) in all.iter().filter(|(n, _)| Some(*n) != best) {
            delete(folder);
        }
        let base = self.dir.join(&*id.0);
        match best {
            Some(best) => self.numbered(id, best),
            None if is_free(&base) => base,
            None => self.next_folder(id),
        }
    }

    /// Names of the folders that complete indexes have as their base.
    fn bases(&self) -> FxHashSet<String> {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let complete = entries.map(|e| e.path()).filter(|folder| !folder.join(UNFINISHED).exists());
        complete.filter_map(|folder| base_index::name_in(&folder)).collect()
    }

    /// Creates the next folder of a root, which does not count until [`Folders::finish`].
    ///
    /// # Errors
    /// `storage_failed`, `disk_full`.
    pub fn begin(&self, id: &RootId) -> Result<PathBuf, Failure> {
        let folder = self.next_folder(id);
        db::make_private(&folder)?;
        cairn_index_base::write_file(&folder.join(UNFINISHED), &[])?;
        Ok(folder)
    }

    /// Makes a folder of [`Folders::begin`] the current one of its root.
    ///
    /// # Errors
    /// `storage_failed`.
    pub fn finish(&self, folder: &Path) -> Result<(), Failure> {
        let unfinished = folder.join(UNFINISHED);
        std::fs::remove_file(&unfinished).map_err(|e| {
            Failure::new(Reason::StorageFailed, format!("{}: {e}", unfinished.display()))
        })
    }

    /// The folder of a base.
    pub fn of_base(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The folder of the index of a root's hidden files; its name is that of no other index.
    pub fn of_hidden(&self, id: &RootId) -> PathBuf {
        self.dir.join(format!("{}.hidden", id.0))
    }

    /// No base is deleted until the guard is dropped.
    pub fn lock_bases(&self) -> MutexGuard<'_, ()> {
        lock(&self.choosing)
    }

    /// Deletes the folder of a base that no index has any more.
    fn delete_unused_base(&self, name: &str) {
        let _not_being_chosen = lock(&self.choosing);
        if !self.bases().contains(name) {
            delete(&self.of_base(name));
        }
    }

    /// A new folder for a root's next index.
    fn next_folder(&self, id: &RootId) -> PathBuf {
        let last = self.existing(id).into_iter().map(|(n, _)| n).max();
        self.numbered(id, last.map_or(0, |last| last.saturating_add(1)))
    }

    fn numbered(&self, id: &RootId, n: u32) -> PathBuf {
        match n {
            0 => self.dir.join(&*id.0),
            n => self.dir.join(format!("{}.{n}", id.0)),
        }
    }

    /// The existing folders of a root with their numbers.
    fn existing(&self, id: &RootId) -> Vec<(u32, PathBuf)> {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let number = |name: &str| match name.strip_prefix(&*id.0)? {
            "" => Some(0),
            rest => rest.strip_prefix('.')?.parse().ok(),
        };
        entries.filter_map(|e| Some((number(e.file_name().to_str()?)?, e.path()))).collect()
    }

    /// Stops an index, waits for its readers and deletes its folder.
    ///
    /// # Errors
    /// `storage_failed` when it cannot be deleted.
    pub fn retire(&self, mut running: Running) -> Result<(), Failure> {
        let folder = running.index.folder.clone();
        lock(&self.retiring).insert(folder.clone());
        running.stop();
        let until = Instant::now() + READERS_LIMIT;
        while Arc::strong_count(&running.index) > 1 && Instant::now() < until {
            std::thread::sleep(POLL);
        }
        running.index.readers.clear();
        let base = base_index::name_in(&folder);
        let deleted = match std::fs::remove_dir_all(&folder) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                let text = format!(
                    "index folder of {} was not deleted: {e}",
                    running.index.root.path.display()
                );
                Err(Failure::new(Reason::StorageFailed, text))
            }
            _ => Ok(()),
        };
        if let Some(base) = base {
            self.delete_unused_base(&base);
        }
        lock(&self.retiring).remove(&folder);
        deleted
    }
}

fn delete(folder: &Path) {
    if let Err(error) = std::fs::remove_dir_all(folder) {
        tracing::warn!(folder = %folder.display(), %error, "an unused index folder was not deleted");
    }
}

/// A running rebuild. It refers to the new index weakly, so that an unused index can be dropped.
pub struct Rebuild {
    index: Weak<RootIndex>,
    pub thread: JoinHandle<()>,
}

impl Rebuild {
    /// True until the new index has replaced `current`, or the rebuild has failed.
    pub fn is_running(&self, current: Option<&Arc<RootIndex>>) -> bool {
        let replaced = current.is_some_and(|index| Arc::as_ptr(index) == self.index.as_ptr());
        !self.thread.is_finished() && !replaced
    }

    pub fn stop(&self) {
        if let Some(index) = self.index.upgrade() {
            index.stop.store(true, Ordering::Relaxed);
            index.changed.notify_all();
        }
    }
}

/// Starts to build a new index of the root of `old` beside it.
///
/// # Errors
/// `storage_failed`, `disk_full`; `internal` without a thread.
pub fn start(folders: &Folders, roots: &Roots, old: Arc<RootIndex>) -> Result<Rebuild, Failure> {
    let folder = folders.begin(&old.root.id)?;
    let new_index =
        RootIndex::new(old.root.clone(), folder, Arc::clone(&old.opts), None, old.notify.clone());
    let index = Arc::new(new_index);
    index.set_reporting(Reporting::Steps);
    // The worker's first pass answers this request.
    lock(&index.progress).requested = 1;
    let no_thread =
        |e| Failure::new(Reason::Internal, format!("cannot start a thread for the index: {e}"));
    let (jobs, thread) = worker::start(Arc::clone(&index)).map_err(no_thread)?;
    old.set_reporting(Reporting::Nothing);
    let running = Running { index: Arc::clone(&index), jobs, thread: Some(thread) };
    let task = {
        let folders = folders.clone();
        let roots = Arc::clone(roots);
        let old = Arc::clone(&old);
        move || replace(&folders, &roots, old, running)
    };
    match std::thread::Builder::new().name("cairn-rebuild".into()).spawn(task) {
        Ok(thread) => Ok(Rebuild { index: Arc::downgrade(&index), thread }),
        Err(e) => {
            old.set_reporting(Reporting::Everything);
            index.stop.store(true, Ordering::Relaxed);
            Err(no_thread(e))
        }
    }
}

/// Waits until the new index is complete, then swaps it in for the old one.
fn replace(folders: &Folders, roots: &Roots, old: Arc<RootIndex>, new_index: Running) {
    let index = Arc::clone(&new_index.index);
    let id = old.root.id.clone();
    let complete = index
        .wait(&CancelFlag::new(), |p| p.all_done >= 1)
        .and_then(|()| folders.finish(&index.folder));
    if let Err(cause) = complete {
        tracing::warn!(root = %old.root.path.display(), %cause, "rebuild failed, using the old index");
        old.set_reporting(Reporting::Everything);
        report_failure(&old);
        drop((old, index));
        retire(folders, new_index);
        return;
    }
    let mut running_indexes = lock(roots);
    let swapped = match running_indexes.get_mut(&id) {
        Some(running) if Arc::ptr_eq(&running.index, &old) => {
            Ok(std::mem::replace(running, new_index))
        }
        // The root was removed in the meantime.
        _ => Err(new_index),
    };
    drop(running_indexes);
    drop(old);
    match swapped {
        Ok(replaced) => {
            index.set_reporting(Reporting::Everything);
            index.update(|_| ());
            drop(index);
            retire(folders, replaced);
        }
        Err(new_index) => {
            drop(index);
            retire(folders, new_index);
        }
    }
}

fn retire(folders: &Folders, running: Running) {
    if let Err(error) = folders.retire(running) {
        tracing::warn!(%error, "an unused index folder was not deleted");
    }
}

/// Emits the event that the rebuild has failed.
fn report_failure(old: &RootIndex) {
    let progress_event = IndexProgress {
        state: IndexState::Failed,
        done: true,
        index: String::new(),
        ..old.progress_event()
    };
    if let Some(notify) = &old.notify {
        let _full = notify.send_timeout(progress_event, Duration::from_secs(1));
    }
}
