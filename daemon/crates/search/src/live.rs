//! One root's index as everyone shares it: its readers, matrix, counts and progress.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::index::{IndexProgress, IndexState, RootStatus};
use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;
use cairn_workspace::{Root, language_of};
use crossbeam_channel::Sender;
use rustc_hash::FxHashMap;

use crate::db::Readers;
use crate::dense::Dense;
use crate::grams::Grams;
use crate::indexes::IndexOptions;
use crate::postings::Postings;
use crate::symbols::names::NameCache;
use crate::sync::{CancelFlag, lock};

/// How long the end of a pass waits for a place in the queue of progress.
const END_WAIT: Duration = Duration::from_secs(5);
/// Batches after which free memory is given back.
pub const EASE: usize = 32;

/// What the threads of one root share.
pub struct Live {
    pub root: Root,
    pub folder: PathBuf,
    pub opts: Arc<IndexOptions>,
    pub readers: Readers,
    pub dense: Dense,
    pub postings: Postings,
    pub grams: Grams,
    pub progress: Mutex<Progress>,
    pub changed: Condvar,
    pub stop: AtomicBool,
    /// Grows when files come or go.
    pub files_version: AtomicU64,
    files: Mutex<Option<(u64, Arc<FileTable>)>>,
    /// The names of all definitions, for queries by name.
    pub names: NameCache,
    pub notify: Option<Sender<IndexProgress>>,
    telling: AtomicU8,
}

/// What of its progress an index tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Telling {
    Everything,
    /// Not the end: it does not answer yet.
    Steps,
    /// Another is being made in its place.
    Nothing,
}

/// How far the index is.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    pub state: Option<IndexState>,
    pub counts: Counts,
    pub clock: u64,
    pub pending: u64,
    pub error: Option<Failure>,
    pub watch: &'static str,
    /// Passes asked for, done to the end of the text, done whole.
    pub asked: u64,
    pub text_done: u64,
    pub all_done: u64,
    pub walked_once: bool,
}

/// Sums over an index.
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
    /// Counts by the database.
    pub fn read(conn: &Connection) -> Result<Self, StoreError> {
        let mut counts = Counts::default();
        let mut groups = conn.prepare_cached(
            "SELECT skipped, lang, due, count(*), sum(size_bytes) FROM file GROUP BY skipped, lang, due",
        )?;
        let mut rows = groups.query([])?;
        while let Some(row) = rows.next()? {
            let (skipped, lang): (Option<String>, Option<String>) = (row.get(0)?, row.get(1)?);
            let (due, files, bytes): (i64, u64, u64) = (row.get(2)?, row.get(3)?, row.get(4)?);
            if let Some(why) = skipped {
                *counts.skipped.entry(why).or_default() += files;
                continue;
            }
            if due & crate::db::due::TEXT != 0 {
                continue;
            }
            counts.files += files;
            counts.bytes += bytes;
            if let Some(lang) = lang {
                *counts.languages.entry(lang).or_default() += files;
            }
            if due & crate::db::due::SYMBOLS == 0 {
                counts.symbol_files += files;
            }
        }
        let one = |sql: &str| conn.query_row(sql, [], |r| r.get::<_, u64>(0));
        counts.chunks = one("SELECT count(*) FROM chunk")?;
        counts.symbols = one("SELECT count(*) FROM symbol")?;
        let waiting = one(
            "SELECT count(*) FROM chunk WHERE file_id IN (SELECT id FROM file WHERE due <> 0 AND due & 2)",
        )?;
        counts.vectors = counts.chunks.saturating_sub(waiting);
        Ok(counts)
    }
}

/// A file as queries need it.
#[derive(Debug)]
pub struct FileEntry {
    pub id: u32,
    pub path: Box<str>,
}

impl FileEntry {
    /// The language by its name.
    pub fn lang(&self) -> Option<&'static str> {
        language_of(&self.path)
    }
}

/// All files of the walk, by path.
#[derive(Debug, Default)]
pub struct FileTable {
    pub files: Vec<FileEntry>,
    by_id: FxHashMap<u32, u32>,
}

impl FileTable {
    /// The file with this id.
    pub fn get(&self, id: u32) -> Option<&FileEntry> {
        self.by_id.get(&id).and_then(|i| self.files.get(*i as usize))
    }

    fn read(conn: &Connection) -> Result<Self, StoreError> {
        let mut table = FileTable::default();
        let mut all = conn.prepare_cached("SELECT id, path FROM file ORDER BY path")?;
        let mut rows = all.query([])?;
        while let Some(row) = rows.next()? {
            let path = row.get_ref(1)?.as_str().unwrap_or("").into();
            table.files.push(FileEntry { id: row.get(0)?, path });
        }
        table.by_id = table.files.iter().map(|f| f.id).zip(0..).collect();
        Ok(table)
    }
}

impl Live {
    /// The shared state of a root's index in `folder`.
    pub fn new(
        root: Root,
        folder: PathBuf,
        opts: Arc<IndexOptions>,
        notify: Option<Sender<IndexProgress>>,
    ) -> Self {
        let embedder = &opts.embedder;
        Self {
            readers: Readers::new(&folder),
            postings: Postings::new(&folder),
            grams: Grams::new(&folder),
            dense: Dense::new(&folder, embedder.dim(), *embedder.hash()),
            root,
            folder,
            progress: Mutex::new(Progress {
                state: Some(IndexState::Indexing),
                watch: "off",
                ..Progress::default()
            }),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            files_version: AtomicU64::new(1),
            files: Mutex::new(None),
            names: NameCache::default(),
            notify,
            telling: AtomicU8::new(Telling::Everything as u8),
            opts,
        }
    }

    /// The files now.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn files(&self, conn: &Connection) -> Result<Arc<FileTable>, StoreError> {
        let version = self.files_version.load(Ordering::Acquire);
        if let Some((at, table)) = &*lock(&self.files)
            && *at == version
        {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(FileTable::read(conn)?);
        *lock(&self.files) = Some((version, Arc::clone(&table)));
        Ok(table)
    }

    /// The files now, by a connection of its own.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn file_table(&self) -> Result<Arc<FileTable>, Failure> {
        let conn = self.readers.get()?;
        Ok(self.files(&conn)?)
    }

    /// Called after each of many batches: now and then, gives back what they freed.
    pub fn ease(&self, batches: usize) {
        if batches.is_multiple_of(EASE) {
            (self.opts.give_back)();
        }
    }

    /// Leaves chunks that are gone out of all answers from now on.
    pub fn forget(&self, gone: Vec<i64>) {
        self.postings.kill(&gone);
        self.dense.forget(gone);
    }

    /// Whether its threads should end.
    pub fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sets what of its progress it tells from now on.
    pub fn tell(&self, what: Telling) {
        self.telling.store(what as u8, Ordering::Release);
    }

    /// Changes the progress, wakes who waits for it, and tells the world.
    pub fn update(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = lock(&self.progress);
        change(&mut progress);
        let note = self.note_of(&progress);
        // Read under the lock: whoever sees this change and sets another value does not change what is sent for it.
        let telling = self.telling.load(Ordering::Acquire);
        drop(progress);
        self.changed.notify_all();
        let told = telling == Telling::Everything as u8 || (telling == Telling::Steps as u8 && !note.done);
        if let Some(notify) = self.notify.as_ref().filter(|_| told) {
            // Progress is live only: a full queue loses a step, never the daemon's time. The end is what clients wait for:
            // it waits for its place.
            let longest = if note.done { END_WAIT } else { Duration::ZERO };
            let _ = notify.send_timeout(note, longest);
        }
    }

    /// The progress as clients are told it.
    pub fn note(&self) -> IndexProgress {
        self.note_of(&lock(&self.progress))
    }

    fn note_of(&self, progress: &Progress) -> IndexProgress {
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

    /// The progress now.
    pub fn now(&self) -> Progress {
        lock(&self.progress).clone()
    }

    /// The status as clients see it.
    pub fn status(&self) -> RootStatus {
        let p = self.now();
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

    /// Waits until `reached` or the index fails or stops.
    ///
    /// # Errors
    /// `cancelled`, `shutting_down`, or why the index failed.
    pub fn wait(&self, cancel: &CancelFlag, reached: impl Fn(&Progress) -> bool) -> Result<(), Failure> {
        let mut progress = lock(&self.progress);
        loop {
            if reached(&progress) {
                return Ok(());
            }
            if self.stopping() {
                return Err(Failure::new(Reason::ShuttingDown, "the index was closed"));
            }
            if progress.state == Some(IndexState::Failed) {
                let why = progress.error.clone();
                return Err(why.unwrap_or_else(|| Failure::new(Reason::IndexFailed, "the index failed")));
            }
            cancel.check()?;
            // The flag has no bell: look at it now and then.
            let waited = self.changed.wait_timeout(progress, Duration::from_millis(50));
            progress = waited.unwrap_or_else(|e| e.into_inner()).0;
        }
    }
}

/// Whether the symbols of all these are whole. An answer asks before it looks and again behind it: what was being made while
/// it looked was not seen, though it may be whole by then.
pub fn symbols_are_whole(lives: &[Arc<Live>]) -> bool {
    lives.iter().all(|l| {
        let p = l.now();
        p.state == Some(IndexState::Ready) && p.counts.symbol_files == p.counts.files
    })
}
