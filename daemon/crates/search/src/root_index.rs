//! The shared state of one root's index: its readers, indexes, counts and progress.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use cairn_index_base::{CancelFlag, FileTable, IndexContext, lock};
use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::index::{IndexProgress, IndexState, RootStatus};
use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;
use cairn_workspace::Root;
use crossbeam_channel::Sender;

use crate::base_index::{self, Adoption, BaseIndex};
use crate::db::Readers;
use crate::graph::GraphCache;
use crate::indexes::IndexOptions;
use crate::symbols::names::NameCache;
use cairn_text_index::Postings;
use cairn_trigram_index::TrigramIndex;
use cairn_vectors::DenseIndex;

/// Time that the end of a pass waits for space in the progress queue.
const END_WAIT: Duration = Duration::from_secs(5);
/// Number of batches after which free memory is trimmed.
pub const TRIM_INTERVAL: usize = 32;

/// The state that the threads of one root share.
pub struct RootIndex {
    pub root: Root,
    pub folder: PathBuf,
    pub opts: Arc<IndexOptions>,
    /// The frozen index that it shares with others.
    pub base: Option<Arc<BaseIndex>>,
    /// The files of a new root to compare with its base, until its first walk.
    pub adoption: Mutex<Option<Adoption>>,
    pub readers: Readers,
    pub dense: DenseIndex,
    pub postings: Postings,
    pub grams: TrigramIndex,
    pub progress: Mutex<Progress>,
    /// Its database is damaged, and no rebuild was started yet.
    pub damaged: AtomicBool,
    pub changed: Condvar,
    pub stop: Arc<AtomicBool>,
    /// Incremented when files are added or removed.
    pub files_version: AtomicU64,
    files: Mutex<Option<(u64, Arc<FileTable>)>>,
    /// Incremented when imports of files are written.
    pub imports_version: AtomicU64,
    /// Imports resolved to files.
    pub graph: GraphCache,
    /// Names of all definitions, for queries by name.
    pub names: NameCache,
    pub notify: Option<Sender<IndexProgress>>,
    reporting: AtomicU8,
    /// Progress of becoming a base, which ends the worker.
    pub freezing: AtomicU8,
}

/// Steps of an index that becomes a base: values of [`RootIndex::freezing`].
pub mod freezing {
    pub const NO: u8 = 0;
    pub const REQUESTED: u8 = 1;
    /// The worker has ended or is about to, without further writes.
    pub const DONE: u8 = 2;
}

/// The progress events that an index emits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reporting {
    Everything,
    /// All but the final one: the index does not answer queries yet.
    Steps,
    /// None: a replacement is being built.
    Nothing,
}

/// The progress of indexing.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    pub state: Option<IndexState>,
    pub counts: Counts,
    pub clock: u64,
    pub pending: u64,
    pub error: Option<Failure>,
    pub watch: &'static str,
    /// Number of the last requested pass.
    pub requested: u64,
    /// Number of the last pass whose text is indexed.
    pub text_done: u64,
    /// Number of the last complete pass.
    pub all_done: u64,
    pub walked_once: bool,
}

/// Totals over an index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    pub files: u64,
    pub bytes: u64,
    pub chunks: u64,
    pub vectors: u64,
    pub symbol_files: u64,
    pub symbols: u64,
    pub skipped: BTreeMap<String, u64>,
    pub languages: BTreeMap<String, u64>,
}

impl Counts {
    /// Computes the totals from the database, to which that of a base is attached if `has_base`.
    pub fn read(conn: &Connection, has_base: bool) -> Result<Self, StoreError> {
        let mut counts = Counts::default();
        let mut groups = conn.prepare_cached(
            "SELECT skipped, lang, pending_stages, count(*), sum(size_bytes) FROM file
             GROUP BY skipped, lang, pending_stages",
        )?;
        let mut rows = groups.query([])?;
        while let Some(row) = rows.next()? {
            let (skipped, lang): (Option<String>, Option<String>) = (row.get(0)?, row.get(1)?);
            let pending: i64 = row.get(2)?;
            let files: u64 = row.get(3)?;
            let bytes: u64 = row.get(4)?;
            if let Some(reason) = skipped {
                *counts.skipped.entry(reason).or_default() += files;
                continue;
            }
            if pending & crate::db::pending::TEXT != 0 {
                continue;
            }
            counts.files += files;
            counts.bytes += bytes;
            if let Some(lang) = lang {
                *counts.languages.entry(lang).or_default() += files;
            }
            if pending & crate::db::pending::SYMBOLS == 0 {
                counts.symbol_files += files;
            }
        }
        let count_rows = |sql: &str| conn.query_row(sql, [], |r| r.get::<_, u64>(0));
        counts.chunks = count_rows("SELECT count(*) FROM main.chunk")?;
        counts.symbols = count_rows("SELECT count(*) FROM main.symbol")?;
        let without_vectors = count_rows(
            "SELECT count(*) FROM main.chunk WHERE file_id IN
             (SELECT id FROM file WHERE pending_stages <> 0 AND pending_stages & 2)",
        )?;
        if has_base {
            let of_base = |table: &str| {
                let sql = format!(
                    "SELECT count(*) FROM base.{table} WHERE file_id IN (SELECT id FROM main.file)"
                );
                count_rows(&sql)
            };
            counts.chunks += of_base("chunk")?;
            counts.symbols += of_base("symbol")?;
        }
        counts.vectors = counts.chunks.saturating_sub(without_vectors);
        Ok(counts)
    }
}

impl RootIndex {
    /// Creates the shared state of a root's index in `folder`.
    pub fn new(
        root: Root,
        folder: PathBuf,
        opts: Arc<IndexOptions>,
        base: Option<Arc<BaseIndex>>,
        notify: Option<Sender<IndexProgress>>,
    ) -> Self {
        let embedder = &opts.embedder;
        let context = IndexContext {
            folder: folder.clone(),
            root: root.path.clone(),
            stop: Arc::new(AtomicBool::new(false)),
        };
        let dense = DenseIndex::new(&folder, embedder.dim(), *embedder.hash());
        let dense = match &base {
            Some(base) => dense.with_shared(Arc::clone(&base.dense), base.limits.chunk),
            None => dense,
        };
        Self {
            readers: Readers::new(&folder, db_base(&folder, base.as_deref())),
            stop: Arc::clone(&context.stop),
            postings: Postings::new(context.clone()),
            grams: TrigramIndex::new(context),
            dense,
            base,
            adoption: Mutex::default(),
            root,
            folder,
            progress: Mutex::new(Progress {
                state: Some(IndexState::Indexing),
                watch: "off",
                ..Progress::default()
            }),
            damaged: AtomicBool::new(false),
            changed: Condvar::new(),
            files_version: AtomicU64::new(1),
            files: Mutex::new(None),
            imports_version: AtomicU64::new(1),
            graph: GraphCache::default(),
            names: NameCache::default(),
            notify,
            reporting: AtomicU8::new(Reporting::Everything as u8),
            freezing: AtomicU8::new(freezing::NO),
            opts,
        }
    }

    /// The present bytes of a file, up to the size that is indexed. `None` if it cannot be read.
    pub fn read_file(&self, path: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = self.root.open_file(path).ok()?;
        file.take(self.opts.max_file_bytes).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The current file table.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn files(&self, conn: &Connection) -> Result<Arc<FileTable>, StoreError> {
        let version = self.files_version.load(Ordering::Acquire);
        if let Some((read_at, table)) = &*lock(&self.files)
            && *read_at == version
        {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(FileTable::read(conn)?);
        *lock(&self.files) = Some((version, Arc::clone(&table)));
        Ok(table)
    }

    /// The current file table, read with a pooled connection.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn file_table(&self) -> Result<Arc<FileTable>, Failure> {
        let conn = self.readers.get()?;
        Ok(self.files(&conn)?)
    }

    /// Reads caches again whose entries depend on the ids of files.
    pub fn forget_files(&self) {
        self.files_version.fetch_add(1, Ordering::Release);
        self.imports_version.fetch_add(1, Ordering::Release);
        self.names.clear();
    }

    /// Trims memory after every [`TRIM_INTERVAL`]th batch.
    pub fn maybe_trim(&self, batches: usize) {
        if batches.is_multiple_of(TRIM_INTERVAL) {
            (self.opts.trim_memory)();
        }
    }

    /// Opens its database for writing.
    ///
    /// # Errors
    /// As [`crate::db::open`].
    pub fn open_database(&self) -> Result<Connection, StoreError> {
        crate::db::open(&self.folder, db_base(&self.folder, self.base.as_deref()).as_ref())
    }

    /// Selects the words and vectors of the base that the index sees, after rows of files have
    /// changed.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn refresh_base(&self, conn: &Connection) -> Result<(), StoreError> {
        let Some(base) = &self.base else { return Ok(()) };
        let visible = base_index::visible_files(conn, &base.limits)?;
        let hidden = self.postings.set_shared(&base.words, &|file| visible.contains(&file));
        self.dense.set_hidden(hidden);
        self.grams.refresh_shared(conn, &base.grams)
    }

    /// Greatest id of a file of its base; 0 without one.
    pub fn last_base_file(&self) -> i64 {
        self.base.as_ref().map_or(0, |base| base.limits.file)
    }

    /// Hides removed chunks from all queries from now on.
    pub fn remove_chunks(&self, chunks: Vec<i64>) {
        self.postings.mark_dead(&chunks);
        self.dense.mark_dead(chunks);
    }

    /// True if its threads should stop.
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Selects the progress events that are emitted from now on.
    pub fn set_reporting(&self, reporting: Reporting) {
        self.reporting.store(reporting as u8, Ordering::Release);
    }

    /// Changes the progress, wakes its waiters and emits an event.
    pub fn update(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = lock(&self.progress);
        change(&mut progress);
        let progress_event = self.event_of(&progress);
        // Read under the lock: a thread that sees this change and then sets another value does not
        // affect its event.
        let reporting = self.reporting.load(Ordering::Acquire);
        drop(progress);
        self.changed.notify_all();
        let is_reported = reporting == Reporting::Everything as u8
            || (reporting == Reporting::Steps as u8 && !progress_event.done);
        if let Some(notify) = self.notify.as_ref().filter(|_| is_reported) {
            // Progress is best effort: a full queue drops a step and never blocks the worker.
            // Clients wait for the end, so the end waits for space.
            let longest = if progress_event.done { END_WAIT } else { Duration::ZERO };
            let _ = notify.send_timeout(progress_event, longest);
        }
    }

    /// The progress as an event for clients.
    pub fn progress_event(&self) -> IndexProgress {
        self.event_of(&lock(&self.progress))
    }

    fn event_of(&self, progress: &Progress) -> IndexProgress {
        let state = progress.state.unwrap_or(IndexState::Indexing);
        IndexProgress {
            request_id: None,
            path: self.root.path.to_string_lossy().into_owned(),
            files_indexed: progress.counts.files,
            chunks: progress.counts.chunks,
            state,
            done: matches!(state, IndexState::Ready | IndexState::Failed),
            index: self
                .folder
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
        }
    }

    /// A copy of the current progress.
    pub fn progress(&self) -> Progress {
        lock(&self.progress).clone()
    }

    /// The status of `index.status`.
    pub fn status(&self) -> RootStatus {
        let p = self.progress();
        let state = p.state.unwrap_or(IndexState::Indexing);
        RootStatus {
            root: self.root.id.clone(),
            path: self.root.path.to_string_lossy().into_owned(),
            state,
            complete: state == IndexState::Ready,
            clock: p.clock,
            files: p.counts.files,
            bytes: p.counts.bytes,
            chunks: p.counts.chunks,
            vectors: p.counts.vectors,
            symbol_files: p.counts.symbol_files,
            symbols: p.counts.symbols,
            pending: p.pending,
            skipped: p.counts.skipped,
            languages: p.counts.languages,
            watch: p.watch.into(),
            embedder: self.opts.embedder.name().into(),
            error: p.error.map(|e| e.message),
        }
    }

    /// Waits until `reached` returns true, or the index fails or stops.
    ///
    /// # Errors
    /// `cancelled`, `shutting_down`, or the failure of the index.
    pub fn wait(
        &self,
        cancel: &CancelFlag,
        reached: impl Fn(&Progress) -> bool,
    ) -> Result<(), Failure> {
        let mut progress = lock(&self.progress);
        loop {
            if reached(&progress) {
                return Ok(());
            }
            if self.is_stopping() {
                return Err(Failure::new(Reason::ShuttingDown, "the index was closed"));
            }
            if progress.state == Some(IndexState::Failed) {
                let reason = progress.error.clone();
                return Err(
                    reason.unwrap_or_else(|| Failure::new(Reason::IndexFailed, "the index failed"))
                );
            }
            cancel.check()?;
            // Cancelling does not signal the condition variable, so the flag is polled.
            let waited = self.changed.wait_timeout(progress, Duration::from_millis(50));
            progress = waited.unwrap_or_else(|e| e.into_inner()).0;
        }
    }
}

/// The base of the index in `folder`, for its database.
fn db_base(folder: &std::path::Path, base: Option<&BaseIndex>) -> Option<crate::db::Base> {
    base.map(|base| crate::db::Base {
        folder: folder.with_file_name(&base.name),
        limits: base.limits,
    })
}

/// True if the symbols of all `indexes` are complete. A query checks this before and after it
/// reads: symbols that were added in between were not seen, although the index may be complete by
/// the second check.
pub fn symbols_are_complete(indexes: &[Arc<RootIndex>]) -> bool {
    indexes.iter().all(|l| {
        let p = l.progress();
        p.state == Some(IndexState::Ready) && p.counts.symbol_files == p.counts.files
    })
}
