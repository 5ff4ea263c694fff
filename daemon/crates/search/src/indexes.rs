//! The registry of all indexes: it adds, removes, rebuilds, awaits and closes them.

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

use crate::rebuild::{self, Folders, Rebuild, Roots};
use crate::rescore::Rescorer;
use crate::root_index::RootIndex;
use crate::sharing::{Bases, IndexLocation};
use cairn_index_base::{CancelFlag, lock};
use cairn_vectors::Embedder;

use crate::sync::ThreadBudget;
use crate::worker::{self, Job};

/// Settings of all indexes.
#[derive(Clone)]
pub struct IndexOptions {
    /// Globs of paths that are not indexed.
    pub exclude: Vec<String>,
    /// Size in bytes above which a file's text is not indexed (grep still reads it).
    pub max_file_bytes: u64,
    /// Number of files in git from which a root shares the index of a similar one.
    pub min_shared_files: usize,
    /// Number of threads that read, embed and parse; also the limit of one grep.
    pub threads: usize,
    /// The model that computes the vectors.
    pub embedder: Arc<Embedder>,
    /// A second model that re-scores the best results of a hybrid search; off unless set.
    pub rescorer: Option<Arc<Rescorer>>,
    /// Index the hidden files that a walk leaves out, and no others.
    pub(crate) hidden_only: bool,
    /// Watch the file system for changes.
    pub watch: bool,
    /// Seconds between two full walks, which find changes that the watch missed; 0 disables them.
    pub sweep_seconds: u64,
    /// Called during heavy indexing after memory was freed that the allocator may retain, so that
    /// a host can trim its heap. It must return within some milliseconds. The default does
    /// nothing.
    pub trim_memory: fn(),
    /// Time limit for one page of a grep.
    pub grep_limit: Duration,
    /// Threads for embedding and parsing, shared by all roots.
    pub(crate) pool: Arc<rayon::ThreadPool>,
    /// Threads that help searches to read their candidates.
    pub(crate) helpers: Arc<rayon::ThreadPool>,
    /// Threads of all greps together, so that many greps leave room for other calls.
    pub(crate) greps: Arc<ThreadBudget>,
    /// Number of roots that are being indexed right now.
    pub(crate) active_passes: Arc<AtomicUsize>,
}

/// Greps that run at full width at the same time: a quick grep does not wait for a slow one, and
/// many greps still leave room for other calls.
const GREPS: usize = 4;
/// Default time limit for a page of a grep.
const GREP_LIMIT: Duration = Duration::from_secs(60);
/// Maximum number of helper threads of searches.
const MAX_HELPERS: usize = 8;

impl IndexOptions {
    /// The defaults: files up to 1 MiB, at most two threads, watching, a sweep every ten minutes.
    ///
    /// # Errors
    /// `internal` when no thread can be started.
    pub fn new(embedder: Embedder) -> Result<Self, Failure> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = processors.min(2);
        let helpers = rayon::ThreadPoolBuilder::new()
            .num_threads(processors.min(MAX_HELPERS))
            .thread_name(|n| format!("cairn-search-{n}"))
            .build();
        Ok(Self {
            helpers: helpers.map(Arc::new).map_err(|e| no_threads(&e))?,
            greps: Arc::new(ThreadBudget::new(GREPS * threads)),
            active_passes: Arc::default(),
            exclude: Vec::new(),
            hidden_only: false,
            max_file_bytes: 1024 * 1024,
            min_shared_files: 256,
            threads,
            embedder: Arc::new(embedder),
            rescorer: None,
            watch: true,
            sweep_seconds: 600,
            trim_memory: || {},
            grep_limit: GREP_LIMIT,
            pool: pool(threads)?,
        })
    }

    /// Sets the number of threads, clamped to 1..=64.
    ///
    /// # Errors
    /// `internal` when no thread can be started.
    pub fn with_threads(mut self, threads: usize) -> Result<Self, Failure> {
        self.threads = threads.clamp(1, 64);
        self.pool = pool(self.threads)?;
        self.greps = Arc::new(ThreadBudget::new(GREPS * self.threads));
        Ok(self)
    }

    pub(crate) fn walk_options(&self) -> WalkOptions {
        WalkOptions {
            exclude: self.exclude.clone(),
            threads: self.threads,
            hidden_only: self.hidden_only,
        }
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
    Failure::new(Reason::Internal, format!("cannot start threads for the index: {error}"))
}

/// An index and the thread that writes it.
pub(crate) struct Running {
    pub(crate) index: Arc<RootIndex>,
    pub(crate) jobs: Sender<Job>,
    pub(crate) thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Stops its thread and joins it, which takes about a second at most.
    pub(crate) fn stop(&mut self) {
        self.index.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let _ = self.jobs.try_send(Job::Wake);
        self.index.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The stage that [`Indexes::build_and_wait`] waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The text of all files is searchable.
    Lexical,
    /// Text and vectors are searchable.
    Vectors,
    /// Trigrams and symbols are complete as well.
    Everything,
}

/// Time that [`Indexes::remove_root`] waits for the removal.
const REMOVE_WAIT: Duration = Duration::from_secs(2);
/// Interval at which a waiting caller checks a rebuild.
const REBUILD_POLL: Duration = Duration::from_millis(10);

/// All indexes: one folder and one thread for each root.
pub struct Indexes {
    pub(crate) folders: Folders,
    pub(crate) opts: Arc<IndexOptions>,
    pub(crate) notify: Option<Sender<IndexProgress>>,
    pub(crate) roots: Roots,
    pub(crate) rebuilds: Mutex<FxHashMap<RootId, Rebuild>>,
    pub(crate) bases: Bases,
    /// Indexes of hidden files, by [`crate::hidden`].
    pub(crate) hidden: Mutex<FxHashMap<RootId, Running>>,
    /// Roots that are being added by another thread.
    adding: Mutex<HashSet<RootId>>,
    add_finished: Condvar,
}

impl Indexes {
    /// Creates a registry of indexes in folders below `dir` without opening any. `notify` receives
    /// progress; steps are dropped while it is full.
    pub fn open(dir: PathBuf, opts: IndexOptions, notify: Option<Sender<IndexProgress>>) -> Self {
        Self {
            folders: Folders::new(dir),
            opts: Arc::new(opts),
            notify,
            roots: Roots::default(),
            rebuilds: Mutex::default(),
            bases: Bases::default(),
            hidden: Mutex::default(),
            adding: Mutex::default(),
            add_finished: Condvar::new(),
        }
    }

    pub(crate) fn options(&self) -> &IndexOptions {
        &self.opts
    }

    /// Opens or creates the index of `root` and returns; indexing continues in the background.
    /// Adding a root twice is a no-op.
    ///
    /// # Errors
    /// `internal` when no thread can be started. An unusable database is reported by the status
    /// instead.
    pub fn add_root(&self, root: Root) -> Result<(), Failure> {
        let mut adding = lock(&self.adding);
        while adding.contains(&root.id) {
            adding = self.add_finished.wait(adding).unwrap_or_else(PoisonError::into_inner);
        }
        if lock(&self.roots).contains_key(&root.id) {
            return Ok(());
        }
        adding.insert(root.id.clone());
        drop(adding);
        // Outside all locks: a database on a slow disk delays only callers that add the same root.
        let started = self.start(&root);
        let outcome =
            started.map(|running| drop(lock(&self.roots).insert(root.id.clone(), running)));
        lock(&self.adding).remove(&root.id);
        self.add_finished.notify_all();
        outcome
    }

    fn start(&self, root: &Root) -> Result<Running, Failure> {
        let IndexLocation { folder, base, adoption } = self.locate(root)?;
        let index = Arc::new(RootIndex::new(
            root.clone(),
            folder,
            Arc::clone(&self.opts),
            base,
            self.notify.clone(),
        ));
        *lock(&index.adoption) = adoption;
        // Searches use an existing index at once; the worker meets any failure again and reports
        // it.
        if let Ok(conn) = index.open_database() {
            let _ = index.postings.open(&conn).and_then(|()| index.refresh_base(&conn));
        }
        let started = worker::start(Arc::clone(&index));
        let (jobs, thread) = started.map_err(|e| {
            Failure::new(Reason::Internal, format!("cannot start a thread for the index: {e}"))
        })?;
        Ok(Running { index, jobs, thread: Some(thread) })
    }

    /// Stops the index of a root and deletes its folders. Returns false when the root has no index.
    /// A removal that takes longer than [`REMOVE_WAIT`] continues in the background.
    ///
    /// # Errors
    /// `storage_failed` when the folder cannot be deleted.
    pub fn remove_root(&self, id: &RootId) -> Result<bool, Failure> {
        let freezing = lock(&self.bases.freezing);
        let Some(running) = lock(&self.roots).remove(id) else { return Ok(false) };
        drop(freezing);
        self.remove_hidden(id);
        let rebuild = lock(&self.rebuilds).remove(id);
        if let Some(rebuild) = &rebuild {
            rebuild.stop();
        }
        running.index.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let folders = self.folders.clone();
        let (done, finished_signal) = crossbeam_channel::bounded(1);
        let work = move || {
            let deleted = folders.retire(running);
            if let Err(error) = &deleted {
                tracing::warn!(%error, "the index folder of a removed root was not deleted");
            }
            // The rebuild deletes the folder of the index that it replaced, or its own.
            let _panicked = rebuild.map(|rebuild| rebuild.thread.join());
            let _no_receiver = done.send(deleted);
        };
        let thread = std::thread::Builder::new().name("cairn-remove".into()).spawn(work);
        thread.map_err(|e| {
            Failure::new(Reason::Internal, format!("cannot start a thread to remove an index: {e}"))
        })?;
        finished_signal.recv_timeout(REMOVE_WAIT).unwrap_or(Ok(())).map(|()| true)
    }

    /// Rebuilds the index of a root in the background. The old index answers until the new one is
    /// complete, and only then is the end reported. If a rebuild is already running, this joins
    /// it.
    ///
    /// # Errors
    /// `root_not_found`, `storage_failed`, `disk_full`.
    pub fn rebuild(&self, id: &RootId) -> Result<(), Failure> {
        let _no_freezing = lock(&self.bases.freezing);
        let mut rebuilds = lock(&self.rebuilds);
        rebuilds.retain(|_, rebuild| !rebuild.thread.is_finished());
        let index = self.index(id)?;
        if rebuilds.get(id).is_some_and(|rebuild| rebuild.is_running(Some(&index))) {
            return Ok(());
        }
        let rebuild = rebuild::start(&self.folders, &self.roots, index)?;
        rebuilds.insert(id.clone(), rebuild);
        Ok(())
    }

    /// Starts a rebuild of every index that is damaged.
    fn rebuild_damaged(&self) {
        let is_damaged =
            |index: &RootIndex| index.damaged.swap(false, std::sync::atomic::Ordering::SeqCst);
        for index in self.all().into_iter().filter(|index| is_damaged(index)) {
            tracing::warn!(root = %index.root.path.display(), "the index is damaged and is rebuilt");
            if let Err(error) = self.rebuild(&index.root.id) {
                tracing::warn!(root = %index.root.path.display(), %error, "no rebuild was started");
            }
        }
    }

    /// Waits until no rebuild of a root is running.
    fn wait_for_rebuild(&self, id: &RootId, cancel: &CancelFlag) -> Result<(), Failure> {
        loop {
            let index = self.index(id).ok();
            let is_running =
                lock(&self.rebuilds).get(id).is_some_and(|r| r.is_running(index.as_ref()));
            drop(index);
            if !is_running {
                return Ok(());
            }
            cancel.check()?;
            std::thread::sleep(REBUILD_POLL);
        }
    }

    /// The folder of a root's current index.
    ///
    /// # Errors
    /// `root_not_found`.
    pub fn folder(&self, id: &RootId) -> Result<PathBuf, Failure> {
        Ok(self.index(id)?.folder.clone())
    }

    /// Schedules a walk of the root, regardless of what the watch has reported.
    ///
    /// # Errors
    /// `root_not_found`, `overloaded`.
    pub fn rescan(&self, id: &RootId) -> Result<(), Failure> {
        self.request(id, Job::Scan).map(drop)
    }

    /// The ids of the `k` chunks of a root whose vectors are nearest to a text, best first: the
    /// candidates that `search.semantic` ranks, for measuring the recall of the scan.
    ///
    /// # Errors
    /// `root_not_found`; `internal` when a transformer fails.
    pub fn nearest_chunks(&self, id: &RootId, text: &str, k: usize) -> Result<Vec<i64>, Failure> {
        let roots = lock(&self.roots);
        let index = Arc::clone(&roots.get(id).ok_or_else(|| not_found(&id.0))?.index);
        drop(roots);
        let vector = index.opts.embedder.embed(&[text.as_bytes()])?;
        Ok(index.dense.nearest(&vector, k, None).into_iter().map(|(chunk, _)| chunk).collect())
    }

    /// The vector of a text in the static table of words, for texts that are not in an index.
    pub fn embed_text(&self, text: &str) -> Vec<f32> {
        self.opts.embedder.table().embed(&[text.as_bytes()])
    }

    /// A number that identifies the table of [`Indexes::embed_text`].
    pub fn table_id(&self) -> i64 {
        crate::base_index::model_number(self.opts.embedder.table().hash())
    }

    /// Brings the index of a root up to date and waits for it.
    ///
    /// # Errors
    /// `root_not_found`, `cancelled`, `shutting_down`, or the failure of the index.
    pub fn build_and_wait(
        &self,
        id: &RootId,
        until: Until,
        cancel: &CancelFlag,
    ) -> Result<RootStatus, Failure> {
        self.rebuild_damaged();
        loop {
            self.wait_for_rebuild(id, cancel)?;
            let (index, ticket) = self.request(id, Job::Scan)?;
            let waited = index.wait(cancel, |p| match until {
                Until::Lexical => ticket <= p.text_done,
                Until::Vectors => ticket <= p.text_done && p.counts.vectors >= p.counts.chunks,
                Until::Everything => ticket <= p.all_done,
            });
            match waited {
                // A rebuilt index has replaced this one meanwhile.
                Err(e)
                    if e.reason == Reason::ShuttingDown
                        && self.index(id).is_ok_and(|l| !l.is_stopping()) => {}
                waited => return waited.map(|()| index.status()),
            }
        }
    }

    fn request(&self, id: &RootId, job: Job) -> Result<(Arc<RootIndex>, u64), Failure> {
        let roots = lock(&self.roots);
        let running = roots.get(id).ok_or_else(|| not_found(&id.0))?;
        Ok(request(running, job))
    }

    /// The status of one root's index, or of all sorted by path.
    ///
    /// # Errors
    /// `root_not_found`.
    pub fn status(&self, id: Option<&RootId>) -> Result<Vec<RootStatus>, Failure> {
        self.rebuild_damaged();
        let mut all: Vec<RootStatus> = match id {
            Some(id) => vec![self.index(id)?.status()],
            None => self.all().iter().map(|l| l.status()).collect(),
        };
        all.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(all)
    }

    /// The last progress event of each index that is complete or failed and is not being rebuilt.
    pub fn finished(&self) -> Vec<IndexProgress> {
        let rebuilt: Vec<RootId> = {
            let rebuilds = lock(&self.rebuilds);
            rebuilds
                .iter()
                .filter(|(_, r)| !r.thread.is_finished())
                .map(|(id, _)| id.clone())
                .collect()
        };
        let all = self.all();
        let idle = all.iter().filter(|index| !rebuilt.contains(&index.root.id));
        idle.map(|index| index.progress_event())
            .filter(|progress_event| progress_event.done)
            .collect()
    }

    /// Compares a root's files and chunks with its trigram and word indexes. Returns one line per
    /// kind of difference, none when they agree. Differences while the index is being written
    /// mean nothing.
    ///
    /// # Errors
    /// `root_not_found`, or when the database cannot be read.
    pub fn verify(&self, id: &RootId) -> Result<Vec<String>, Failure> {
        let index = self.index(id)?;
        let conn = index.readers.get()?;
        let mut problems = index.postings.verify(&conn)?;
        problems.extend(index.grams.verify(&conn)?);
        Ok(problems)
    }

    /// Stops all threads, within about a second. The index folders remain.
    pub fn close(&self) {
        let rebuilds = std::mem::take(&mut *lock(&self.rebuilds));
        rebuilds.values().for_each(Rebuild::stop);
        let hidden = std::mem::take(&mut *lock(&self.hidden));
        let all = std::mem::take(&mut *lock(&self.roots));
        let all: Vec<Running> = all.into_values().chain(hidden.into_values()).collect();
        for running in &all {
            running.index.stop.store(true, std::sync::atomic::Ordering::Relaxed);
            let _ = running.jobs.try_send(Job::Wake);
        }
        for mut running in all {
            running.stop();
            running.index.readers.clear();
        }
        for rebuild in rebuilds.into_values().filter(|r| !r.thread.is_finished()) {
            let _panicked = rebuild.thread.join();
        }
    }

    pub(crate) fn index(&self, id: &RootId) -> Result<Arc<RootIndex>, Failure> {
        lock(&self.roots).get(id).map(|r| Arc::clone(&r.index)).ok_or_else(|| not_found(&id.0))
    }

    /// All indexes, sorted by path.
    pub(crate) fn all(&self) -> Vec<Arc<RootIndex>> {
        let mut all: Vec<_> = lock(&self.roots).values().map(|r| Arc::clone(&r.index)).collect();
        all.sort_by(|a, b| a.root.path.cmp(&b.root.path));
        all
    }

    /// The indexes of the roots named by id or absolute path; all indexes when `names` is empty.
    ///
    /// # Errors
    /// `root_not_found`, `no_roots`.
    pub(crate) fn named(&self, names: &[String]) -> Result<Vec<Arc<RootIndex>>, Failure> {
        self.rebuild_damaged();
        let all = self.all();
        if all.is_empty() {
            return Err(Failure::new(Reason::NoRoots, "no root is declared"));
        }
        let matches = |index: &RootIndex, name: &str| {
            *index.root.id.0 == *name || index.root.path.as_os_str() == name.trim_end_matches('/')
        };
        for name in names {
            if !all.iter().any(|l| matches(l, name)) {
                return Err(not_found(name));
            }
        }
        Ok(all
            .into_iter()
            .filter(|l| names.is_empty() || names.iter().any(|n| matches(l, n)))
            .collect())
    }
}

/// Passes a job to the worker of an index; returns the number of the pass that answers it.
pub(crate) fn request(running: &Running, job: Job) -> (Arc<RootIndex>, u64) {
    let ticket = {
        let mut progress = lock(&running.index.progress);
        progress.requested += 1;
        // Waiting for an answer to this request must not end with the failure of an earlier one.
        if progress.state == Some(IndexState::Failed) {
            progress.state = Some(IndexState::Indexing);
        }
        progress.requested
    };
    // A full queue already contains a scan, and one scan answers all earlier requests.
    let _full = running.jobs.try_send(job);
    (Arc::clone(&running.index), ticket)
}

impl Drop for Indexes {
    fn drop(&mut self) {
        self.close();
    }
}

fn not_found(name: &str) -> Failure {
    Failure::new(Reason::RootNotFound, format!("root '{}' is not declared", name.escape_default()))
}
