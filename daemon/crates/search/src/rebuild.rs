//! Rebuilding: a second index is made beside the one that answers, and takes its place when it is complete.
//!
//! A root's index lies in the folder of its id, or in one with a number behind it. While one is being made, a file in it says
//! so; of the others the one with the highest number counts. So a daemon that dies at any moment finds one complete index.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::id::RootId;
use cairn_protocol::index::{IndexProgress, IndexState};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::db;
use crate::indexes::Running;
use crate::live::{Live, Telling};
use crate::sync::{CancelFlag, lock};
use crate::worker;

/// In the folder of an index that is not complete yet.
const UNFINISHED: &str = "unfinished";
/// How long searches that still read an index are waited for before its folder is deleted, and how often they are looked at.
const READERS_LIMIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);

/// The indexes that answer, by root.
pub type Roots = Arc<Mutex<FxHashMap<RootId, Running>>>;

/// The folders of all indexes, and which of them are on their way out.
#[derive(Clone)]
pub struct Folders {
    dir: PathBuf,
    leaving: Arc<Mutex<FxHashSet<PathBuf>>>,
}

impl Folders {
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, leaving: Arc::default() }
    }

    /// The folder of a root's index. What a daemon that died left beside it is deleted.
    pub fn choose(&self, id: &RootId) -> PathBuf {
        let leaving = lock(&self.leaving).clone();
        let mut all = self.of(id);
        all.retain(|(_, folder)| !leaving.contains(folder));
        let best = all.iter().filter(|(_, folder)| !folder.join(UNFINISHED).exists()).map(|(n, _)| *n).max();
        for (_, folder) in all.iter().filter(|(n, _)| Some(*n) != best) {
            delete(folder);
        }
        let base = self.dir.join(&*id.0);
        match best {
            Some(best) => self.numbered(id, best),
            None if leaving.contains(&base) => self.next(id),
            None => base,
        }
    }

    /// A folder for a root's next index.
    fn next(&self, id: &RootId) -> PathBuf {
        let last = self.of(id).into_iter().map(|(n, _)| n).max();
        self.numbered(id, last.map_or(0, |last| last.saturating_add(1)))
    }

    fn numbered(&self, id: &RootId, n: u32) -> PathBuf {
        match n {
            0 => self.dir.join(&*id.0),
            n => self.dir.join(format!("{}.{n}", id.0)),
        }
    }

    /// Those there are, with their numbers.
    fn of(&self, id: &RootId) -> Vec<(u32, PathBuf)> {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let number = |name: &str| match name.strip_prefix(&*id.0)? {
            "" => Some(0),
            rest => rest.strip_prefix('.')?.parse().ok(),
        };
        entries.filter_map(|e| Some((number(e.file_name().to_str()?)?, e.path()))).collect()
    }

    /// Stops an index, waits for those that still read it, and deletes its folder.
    ///
    /// # Errors
    /// `storage_failed` when it cannot be deleted.
    pub fn retire(&self, mut running: Running) -> Result<(), Failure> {
        let folder = running.live.folder.clone();
        lock(&self.leaving).insert(folder.clone());
        running.stop();
        let until = Instant::now() + READERS_LIMIT;
        while Arc::strong_count(&running.live) > 1 && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
        running.live.readers.clear();
        let deleted = match std::fs::remove_dir_all(&folder) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                let text =
                    format!("index folder of {} was not deleted: {e}", running.live.root.path.display());
                Err(Failure::new(Reason::StorageFailed, text))
            }
            _ => Ok(()),
        };
        lock(&self.leaving).remove(&folder);
        deleted
    }
}

fn delete(folder: &Path) {
    if let Err(error) = std::fs::remove_dir_all(folder) {
        tracing::warn!(folder = %folder.display(), %error, "an index that is no longer used was not deleted");
    }
}

/// A rebuild at work. It keeps nothing: an index that nobody uses any more can go.
pub struct Rebuild {
    live: Weak<Live>,
    pub thread: JoinHandle<()>,
}

impl Rebuild {
    /// True if it still goes on, with `answering` as the index of its root.
    pub fn is_at_work(&self, answering: Option<&Arc<Live>>) -> bool {
        let replaced = answering.is_some_and(|live| Arc::as_ptr(live) == self.live.as_ptr());
        !self.thread.is_finished() && !replaced
    }

    /// Lets it end without a result.
    pub fn stop(&self) {
        if let Some(live) = self.live.upgrade() {
            live.stop.store(true, Ordering::Relaxed);
            live.changed.notify_all();
        }
    }
}

/// Starts to make a root's index anew beside `old`.
///
/// # Errors
/// `storage_failed`, `disk_full`; `internal` without a thread.
pub fn start(folders: &Folders, roots: &Roots, old: Arc<Live>) -> Result<Rebuild, Failure> {
    let folder = folders.next(&old.root.id);
    db::make_private(&folder)?;
    db::write_file(&folder.join(UNFINISHED), &[])?;
    let fresh = Live::new(old.root.clone(), folder, Arc::clone(&old.opts), old.notify.clone());
    let live = Arc::new(fresh);
    live.tell(Telling::Steps);
    // Its first pass answers the first request.
    lock(&live.progress).asked = 1;
    let no_thread = |e| Failure::new(Reason::Internal, format!("no thread for the index: {e}"));
    let (jobs, thread) = worker::start(Arc::clone(&live)).map_err(no_thread)?;
    old.tell(Telling::Nothing);
    let running = Running { live: Arc::clone(&live), jobs, thread: Some(thread) };
    let (folders, roots, before) = (folders.clone(), Arc::clone(roots), Arc::clone(&old));
    let work = move || replace(&folders, &roots, before, running);
    match std::thread::Builder::new().name("cairn-rebuild".into()).spawn(work) {
        Ok(thread) => Ok(Rebuild { live: Arc::downgrade(&live), thread }),
        Err(e) => {
            old.tell(Telling::Everything);
            live.stop.store(true, Ordering::Relaxed);
            Err(no_thread(e))
        }
    }
}

/// Waits until the new index is complete, and puts it in the place of the old one.
fn replace(folders: &Folders, roots: &Roots, old: Arc<Live>, fresh: Running) {
    let (live, id) = (Arc::clone(&fresh.live), old.root.id.clone());
    let complete = live.wait(&CancelFlag::new(), |p| p.all_done >= 1).and_then(|()| {
        let unfinished = live.folder.join(UNFINISHED);
        std::fs::remove_file(&unfinished)
            .map_err(|e| Failure::new(Reason::StorageFailed, format!("{}: {e}", unfinished.display())))
    });
    if let Err(cause) = complete {
        tracing::warn!(root = %old.root.path.display(), %cause, "the index was not rebuilt: the old one stays");
        old.tell(Telling::Everything);
        failed(&old);
        drop((old, live));
        retire(folders, fresh);
        return;
    }
    let mut held = lock(roots);
    let taken = match held.get_mut(&id) {
        Some(running) if Arc::ptr_eq(&running.live, &old) => Ok(std::mem::replace(running, fresh)),
        // The root was removed meanwhile.
        _ => Err(fresh),
    };
    drop(held);
    drop(old);
    match taken {
        Ok(before) => {
            live.tell(Telling::Everything);
            live.update(|_| ());
            drop(live);
            retire(folders, before);
        }
        Err(fresh) => {
            drop(live);
            retire(folders, fresh);
        }
    }
}

fn retire(folders: &Folders, running: Running) {
    if let Err(error) = folders.retire(running) {
        tracing::warn!(%error, "an index that is no longer used was not deleted");
    }
}

/// Tells that the rebuild has ended and how.
fn failed(old: &Live) {
    let note = IndexProgress { state: IndexState::Failed, done: true, index: String::new(), ..old.note() };
    if let Some(notify) = &old.notify {
        let _full = notify.send_timeout(note, Duration::from_secs(1));
    }
}
