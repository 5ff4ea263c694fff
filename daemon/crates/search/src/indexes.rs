//! The owner of all indexes: adds, removes, rebuilds and closes them, and waits for them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::id::RootId;
use cairn_protocol::index::{IndexProgress, IndexState, RootStatus};
use cairn_workspace::{Root, WalkOptions};
use crossbeam_channel::Sender;
use rustc_hash::FxHashMap;

use crate::db;
use crate::embed::Embedder;
use crate::grams;
use crate::live::Live;
use crate::postings;
use crate::rebuild::{self, Folders, Rebuild, Roots};
use crate::rescore::Rescorer;
use crate::sync::{CancelFlag, Shared, lock};
use crate::worker::{self, Job};

/// How indexes are made and kept.
#[derive(Clone)]
pub struct IndexOptions {
    /// Globs of paths to leave out.
    pub exclude: Vec<String>,
    /// Bytes over which a file's text is not indexed (grep still reads it).
    pub max_file_bytes: u64,
    /// Threads that read, embed and parse, and that one grep uses.
    pub threads: usize,
    /// The model of the vectors.
    pub embedder: Arc<Embedder>,
    /// What judges the best answers of a hybrid search once more; nothing unless set.
    pub rescorer: Option<Arc<Rescorer>>,
    /// Whether to notice changes.
    pub watch: bool,
    /// Seconds between two sweeps that find what the watch missed; 0 for none.
    pub sweep_seconds: u64,
    /// Called while much is indexed, whenever memory was freed that the allocator may keep: a host that can, gives it back
    /// to the system. Takes some milliseconds at most; does nothing unless set.
    pub give_back: fn(),
    /// Longest time for the lines of one page of a grep.
    pub grep_limit: Duration,
    /// The threads for embedding and parsing, shared by all roots.
    pub(crate) pool: Arc<rayon::ThreadPool>,
    /// The threads that help searches to read what they found.
    pub(crate) helpers: Arc<rayon::ThreadPool>,
    /// The threads of all greps, so that many of them leave room for other calls.
    pub(crate) greps: Arc<Shared>,
    /// How many roots are being indexed at this moment.
    pub(crate) at_work: Arc<AtomicUsize>,
}

/// Greps that have their threads at the same time: a quick one need not wait for a slow one, and many leave room for
/// other calls.
const GREPS: usize = 4;
/// Longest time for a page of a grep, unless a host sets another.
const GREP_LIMIT: Duration = Duration::from_secs(60);
/// Most threads that help searches.
const MAX_HELPERS: usize = 8;

impl IndexOptions {
    /// The defaults: 1 MiB, two threads at most, watching, a sweep every ten minutes.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn new(embedder: Embedder) -> Result<Self, Failure> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = processors.min(2);
        let helpers = rayon::ThreadPoolBuilder::new()
            .num_threads(processors.min(MAX_HELPERS))
            .thread_name(|n| format!("cairn-search-{n}"))
            .build();
        Ok(Self {
            helpers: helpers.map(Arc::new).map_err(|e| no_threads(&e))?,
            greps: Arc::new(Shared::new(GREPS * threads)),
            at_work: Arc::default(),
            exclude: Vec::new(),
            max_file_bytes: 1024 * 1024,
            threads,
            embedder: Arc::new(embedder),
            rescorer: None,
            watch: true,
            sweep_seconds: 600,
            give_back: || {},
            grep_limit: GREP_LIMIT,
            pool: pool(threads)?,
        })
    }

    /// The same with another number of threads, 1 to 64.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn with_threads(mut self, threads: usize) -> Result<Self, Failure> {
        self.threads = threads.clamp(1, 64);
        self.pool = pool(self.threads)?;
        self.greps = Arc::new(Shared::new(GREPS * self.threads));
        Ok(self)
    }

    pub(crate) fn walk_options(&self) -> WalkOptions {
        WalkOptions { exclude: self.exclude.clone(), threads: self.threads }
    }
}

fn pool(threads: usize) -> Result<Arc<rayon::ThreadPool>, Failure> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|n| format!("cairn-enrich-{n}"))
        .start_handler(|_| cairn_workspace::background_thread())
        .build();
    pool.map(Arc::new).map_err(|e| no_threads(&e))
}

fn no_threads(error: &rayon::ThreadPoolBuildError) -> Failure {
    Failure::new(Reason::Internal, format!("no threads for the index: {error}"))
}

/// An index and its thread.
pub(crate) struct Running {
    pub(crate) live: Arc<Live>,
    pub(crate) jobs: Sender<Job>,
    pub(crate) thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Ends its thread; waits for it, within about a second.
    pub(crate) fn stop(&mut self) {
        self.live.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let _ = self.jobs.try_send(Job::Wake);
        self.live.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How far [`Indexes::build_and_wait`] waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The text of all files is searchable.
    Lexical,
    /// Vectors too.
    Vectors,
    /// Trigrams and symbols too.
    Everything,
}

/// How long the removal of a root is waited for, and how often a rebuild is looked at.
const REMOVE_WAIT: Duration = Duration::from_secs(2);
const REBUILD_LOOK: Duration = Duration::from_millis(10);

/// All indexes: one folder and one thread for each root.
pub struct Indexes {
    folders: Folders,
    opts: Arc<IndexOptions>,
    notify: Option<Sender<IndexProgress>>,
    roots: Roots,
    rebuilds: Mutex<FxHashMap<RootId, Rebuild>>,
    /// Roots that are being added just now.
    adding: Mutex<HashSet<RootId>>,
    added: Condvar,
}

impl Indexes {
    /// Indexes in folders below `dir`. Opens none yet. `notify` receives progress; what it has no room for is lost.
    pub fn open(dir: PathBuf, opts: IndexOptions, notify: Option<Sender<IndexProgress>>) -> Self {
        let (folders, opts) = (Folders::new(dir), Arc::new(opts));
        let (roots, rebuilds, adding, added) = Default::default();
        Self { folders, opts, notify, roots, rebuilds, adding, added }
    }

    pub(crate) fn options(&self) -> &IndexOptions {
        &self.opts
    }

    /// Opens or begins the index of `root` and returns; work goes on in the background. A root that is there stays.
    ///
    /// # Errors
    /// When the system gives no thread. A database that cannot be used shows in the status.
    pub fn add_root(&self, root: Root) -> Result<(), Failure> {
        let mut adding = lock(&self.adding);
        while adding.contains(&root.id) {
            adding = self.added.wait(adding).unwrap_or_else(PoisonError::into_inner);
        }
        if lock(&self.roots).contains_key(&root.id) {
            return Ok(());
        }
        adding.insert(root.id.clone());
        drop(adding);
        // Outside all locks: a database on a slow disk delays nobody but those who add the same root.
        let started = self.start(&root);
        let outcome = started.map(|running| drop(lock(&self.roots).insert(root.id.clone(), running)));
        lock(&self.adding).remove(&root.id);
        self.added.notify_all();
        outcome
    }

    fn start(&self, root: &Root) -> Result<Running, Failure> {
        let folder = self.folders.choose(&root.id);
        let live = Arc::new(Live::new(root.clone(), folder, Arc::clone(&self.opts), self.notify.clone()));
        // So that searches find an existing index at once; a failure is met again, and told, by the worker.
        if let Ok(conn) = db::open(&live.folder) {
            let _ = postings::open(&live, &conn);
        }
        let started = worker::start(Arc::clone(&live));
        let (jobs, thread) =
            started.map_err(|e| Failure::new(Reason::Internal, format!("no thread for the index: {e}")))?;
        Ok(Running { live, jobs, thread: Some(thread) })
    }

    /// Stops the index of a root and deletes its folder. False when there is none. What takes longer than [`REMOVE_WAIT`] goes
    /// on in the background.
    ///
    /// # Errors
    /// When the folder cannot be deleted.
    pub fn remove_root(&self, id: &RootId) -> Result<bool, Failure> {
        let Some(running) = lock(&self.roots).remove(id) else { return Ok(false) };
        if let Some(rebuild) = lock(&self.rebuilds).remove(id) {
            rebuild.stop();
        }
        running.live.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let (folders, (ended, end)) = (self.folders.clone(), crossbeam_channel::bounded(1));
        let work = move || {
            let deleted = folders.retire(running);
            if let Err(error) = &deleted {
                tracing::warn!(%error, "the index of a removed root stays");
            }
            let _gone = ended.send(deleted);
        };
        let thread = std::thread::Builder::new().name("cairn-remove".into()).spawn(work);
        thread
            .map_err(|e| Failure::new(Reason::Internal, format!("no thread for removing an index: {e}")))?;
        end.recv_timeout(REMOVE_WAIT).unwrap_or(Ok(())).map(|()| true)
    }

    /// Makes the index of a root anew in the background. The old one answers until the new one is complete, and only then is
    /// the end told. A rebuild that is at work already is that one.
    ///
    /// # Errors
    /// `root_not_found`, `storage_failed`, `disk_full`.
    pub fn rebuild(&self, id: &RootId) -> Result<(), Failure> {
        let mut rebuilds = lock(&self.rebuilds);
        rebuilds.retain(|_, rebuild| !rebuild.thread.is_finished());
        let live = self.live(id)?;
        if rebuilds.get(id).is_some_and(|rebuild| rebuild.is_at_work(Some(&live))) {
            return Ok(());
        }
        let rebuild = rebuild::start(&self.folders, &self.roots, live)?;
        rebuilds.insert(id.clone(), rebuild);
        Ok(())
    }

    /// Waits until no rebuild of a root is at work.
    fn wait_for_rebuild(&self, id: &RootId, cancel: &CancelFlag) -> Result<(), Failure> {
        loop {
            let live = self.live(id).ok();
            let at_work = lock(&self.rebuilds).get(id).is_some_and(|r| r.is_at_work(live.as_ref()));
            drop(live);
            if !at_work {
                return Ok(());
            }
            cancel.check()?;
            std::thread::sleep(REBUILD_LOOK);
        }
    }

    /// The folder of the index that answers for a root.
    ///
    /// # Errors
    /// `root_not_found`.
    pub fn folder(&self, id: &RootId) -> Result<PathBuf, Failure> {
        Ok(self.live(id)?.folder.clone())
    }

    /// Looks for changes in the background, whatever the watch has seen.
    ///
    /// # Errors
    /// `root_not_found`, `overloaded`.
    pub fn rescan(&self, id: &RootId) -> Result<(), Failure> {
        self.ask(id, Job::Scan).map(drop)
    }

    /// The ids of the `k` chunks of a root that are nearest to a text by their vectors, best first: what `search.semantic`
    /// ranks, for measuring what the scan finds.
    ///
    /// # Errors
    /// `root_not_found`; `internal` when a transformer fails.
    pub fn nearest_chunks(&self, id: &RootId, text: &str, k: usize) -> Result<Vec<i64>, Failure> {
        let roots = lock(&self.roots);
        let live = Arc::clone(&roots.get(id).ok_or_else(|| not_found(&id.0))?.live);
        drop(roots);
        let vector = live.opts.embedder.embed(&[text.as_bytes()])?;
        Ok(live.dense.nearest(&vector, k, None).into_iter().map(|(chunk, _)| chunk).collect())
    }

    /// Brings the index of a root up to date and waits for it.
    ///
    /// # Errors
    /// `root_not_found`, `cancelled`, `shutting_down`, or why the index failed.
    pub fn build_and_wait(
        &self,
        id: &RootId,
        until: Until,
        cancel: &CancelFlag,
    ) -> Result<RootStatus, Failure> {
        loop {
            self.wait_for_rebuild(id, cancel)?;
            let (live, ticket) = self.ask(id, Job::Scan)?;
            let waited = live.wait(cancel, |p| match until {
                Until::Lexical => ticket <= p.text_done,
                Until::Vectors => ticket <= p.text_done && p.counts.vectors >= p.counts.chunks,
                Until::Everything => ticket <= p.all_done,
            });
            match waited {
                // Another was put in its place meanwhile.
                Err(e) if e.reason == Reason::ShuttingDown && self.live(id).is_ok_and(|l| !l.stopping()) => {}
                waited => return waited.map(|()| live.status()),
            }
        }
    }

    fn ask(&self, id: &RootId, job: Job) -> Result<(Arc<Live>, u64), Failure> {
        let roots = lock(&self.roots);
        let running = roots.get(id).ok_or_else(|| not_found(&id.0))?;
        let ticket = {
            let mut progress = lock(&running.live.progress);
            progress.asked += 1;
            // Waiting for an answer to this request must not end with the failure of an earlier one.
            if progress.state == Some(IndexState::Failed) {
                progress.state = Some(IndexState::Indexing);
            }
            progress.asked
        };
        // A full queue holds a scan already, and one scan answers all who asked before it.
        let _full = running.jobs.try_send(job);
        Ok((Arc::clone(&running.live), ticket))
    }

    /// The state of one root's index, or of all, by path.
    ///
    /// # Errors
    /// `root_not_found`.
    pub fn status(&self, id: Option<&RootId>) -> Result<Vec<RootStatus>, Failure> {
        let mut all: Vec<RootStatus> = match id {
            Some(id) => vec![self.live(id)?.status()],
            None => self.all().iter().map(|l| l.status()).collect(),
        };
        all.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(all)
    }

    /// The progress of those indexes that are at their end and are not being made anew.
    pub fn ends(&self) -> Vec<IndexProgress> {
        let rebuilt: Vec<RootId> = {
            let rebuilds = lock(&self.rebuilds);
            rebuilds.iter().filter(|(_, r)| !r.thread.is_finished()).map(|(id, _)| id.clone()).collect()
        };
        let all = self.all();
        let idle = all.iter().filter(|live| !rebuilt.contains(&live.root.id));
        idle.map(|live| live.note()).filter(|note| note.done).collect()
    }

    /// Looks for differences between a root's files and chunks and its indexes of trigrams and words; one line for each kind, none when all is
    /// well. Differences while the index is being written mean nothing.
    ///
    /// # Errors
    /// `root_not_found`, or when the database cannot be read.
    pub fn verify(&self, id: &RootId) -> Result<Vec<String>, Failure> {
        let live = self.live(id)?;
        let conn = live.readers.get()?;
        let mut found = postings::verify(&live, &conn)?;
        found.extend(grams::verify(&live, &conn)?);
        Ok(found)
    }

    /// Stops all threads, within about a second. What is indexed stays.
    pub fn close(&self) {
        let rebuilds = std::mem::take(&mut *lock(&self.rebuilds));
        rebuilds.values().for_each(Rebuild::stop);
        let all = std::mem::take(&mut *lock(&self.roots));
        for running in all.values() {
            running.live.stop.store(true, std::sync::atomic::Ordering::Relaxed);
            let _ = running.jobs.try_send(Job::Wake);
        }
        for mut running in all.into_values() {
            running.stop();
            running.live.readers.clear();
        }
        for rebuild in rebuilds.into_values().filter(|r| !r.thread.is_finished()) {
            let _ended = rebuild.thread.join();
        }
    }

    pub(crate) fn live(&self, id: &RootId) -> Result<Arc<Live>, Failure> {
        lock(&self.roots).get(id).map(|r| Arc::clone(&r.live)).ok_or_else(|| not_found(&id.0))
    }

    /// All roots, by path.
    pub(crate) fn all(&self) -> Vec<Arc<Live>> {
        let mut all: Vec<_> = lock(&self.roots).values().map(|r| Arc::clone(&r.live)).collect();
        all.sort_by(|a, b| a.root.path.cmp(&b.root.path));
        all
    }

    /// The roots named by id or absolute path; all when none is named.
    ///
    /// # Errors
    /// `root_not_found`, `no_roots`.
    pub(crate) fn named(&self, names: &[String]) -> Result<Vec<Arc<Live>>, Failure> {
        let all = self.all();
        if all.is_empty() {
            return Err(Failure::new(Reason::NoRoots, "no root is declared"));
        }
        let is = |live: &Live, name: &str| {
            *live.root.id.0 == *name || live.root.path.as_os_str() == name.trim_end_matches('/')
        };
        for name in names {
            if !all.iter().any(|l| is(l, name)) {
                return Err(not_found(name));
            }
        }
        Ok(all.into_iter().filter(|l| names.is_empty() || names.iter().any(|n| is(l, n))).collect())
    }
}

impl Drop for Indexes {
    fn drop(&mut self) {
        self.close();
    }
}

fn not_found(name: &str) -> Failure {
    Failure::new(Reason::RootNotFound, format!("root '{}' is not declared", name.escape_default()))
}
