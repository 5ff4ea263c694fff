//! The record log: sessions, their numbered records, receipts, artifacts, blobs and the audit.
//!
//! **Invariant**: a record is committed before any client sees it. [`Trace::append`] returns after
//! the commit and publishes from the writer thread in commit order; a [`Follower`] that falls
//! behind the records in memory continues from the database. Sequence numbers of a session are 1,
//! 2, 3, … without gaps: the number is assigned inside the transaction that stores the record.

mod append;
mod approval;
mod audit;
mod blob;
mod changed;
mod checksum;
mod error;
mod export;
mod follow;
mod fork;
mod history;
mod import;
mod integrity;
mod interrupt;
mod line;
mod live;
mod meaning;
mod read;
mod receipt;
mod reclaim;
mod records;
mod rescue;
mod retention;
mod roots;
mod schema;
mod session;

use std::{
    path::Path,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use cairn_store::{StoreError, Writer, rusqlite::Connection};
use tokio::sync::oneshot;

pub use append::{Append, Appended, NewRecord};
pub use audit::{AuditIntent, AuditOutcome, INTERRUPTED};
pub use changed::{Changes, SessionHead};
pub use error::TraceError;
pub use export::RUN_PARAMS;
pub use follow::{Follower, Step};
pub use fork::ForkCut;
pub use line::Line;
pub use meaning::TextEmbedder;
pub use receipt::digest;
pub use rescue::{Rescue, inspect, rescue};
pub use retention::Retention;
pub use session::{LatestRun, NewSession};

/// Version of the tables that this build creates and reads.
pub const SCHEMA_VERSION: u32 = schema::MIGRATIONS[schema::MIGRATIONS.len() - 1].version;

/// The migrations before records were shared and packed, for tests of that.
#[doc(hidden)]
pub const FORMER_MIGRATIONS: &[cairn_store::Migration] = schema::MIGRATIONS.split_at(4).0;

/// Maximum records of one page.
pub const PAGE: u32 = 500;

/// The log of a data root, shared by all clones.
#[derive(Clone)]
pub struct Trace {
    inner: Arc<Inner>,
}

/// A read of the log that keeps its own result.
type ReadJob = Box<dyn FnOnce(&Connection) + Send>;

struct Inner {
    writer: Writer,
    readers: Readers,
    live: live::LiveSessions,
    roots: roots::Roots,
    appended: AtomicU64,
    changes: OnceLock<Changes>,
    embedder: OnceLock<Arc<dyn TextEmbedder>>,
    /// Held while garbage is deleted or sessions are packed.
    reclaiming: tokio::sync::Mutex<()>,
    /// Number of changes of the audit since the log was opened.
    audit_writes: tokio::sync::watch::Sender<u64>,
}

/// Pool of idle read-only connections; new ones are opened when it is empty.
struct Readers {
    path: std::path::PathBuf,
    idle: Mutex<Vec<Connection>>,
}

/// Maximum number of idle read connections.
const MAX_IDLE_READERS: usize = 2;

impl Trace {
    /// Opens or creates the log at `path`.
    ///
    /// # Errors
    /// Fails for a database that is newer, damaged or unusable.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let mut conn = cairn_store::open_shrinking(path, schema::MIGRATIONS)?;
        integrity::complete(&mut conn)?;
        let readers = Readers { path: path.to_owned(), idle: Mutex::default() };
        let inner = Inner {
            writer: Writer::start("trace-writer", conn)?,
            readers,
            live: live::LiveSessions::default(),
            roots: roots::Roots::default(),
            appended: AtomicU64::new(0),
            changes: OnceLock::new(),
            embedder: OnceLock::new(),
            reclaiming: tokio::sync::Mutex::default(),
            audit_writes: tokio::sync::watch::Sender::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Sets the model by which the history is also searched by meaning. Only the first call counts.
    pub fn set_embedder(&self, embedder: Arc<dyn TextEmbedder>) {
        let _already_set = self.inner.embedder.set(embedder);
    }

    /// Runs `job` on a read connection, outside the async threads.
    async fn read<T, F>(&self, job: F) -> Result<T, TraceError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, TraceError> + Send + 'static,
    {
        let (sender, outcome) = oneshot::channel();
        self.read_boxed(Box::new(move |conn| drop(sender.send(job(conn))))).await?;
        // A job that panicked is an error of the line before.
        outcome.await.unwrap_or_else(|error| Err(TraceError::ReaderFailed(error.to_string())))
    }

    /// Runs a job that keeps its own result, so that one instance of this serves all of them.
    async fn read_boxed(&self, job: ReadJob) -> Result<(), TraceError> {
        let this = self.clone();
        tokio::task::spawn_blocking(move || this.read_blocking(job))
            .await
            .unwrap_or_else(|error| Err(TraceError::ReaderFailed(error.to_string())))
    }

    fn read_blocking(&self, job: ReadJob) -> Result<(), TraceError> {
        let readers = &self.inner.readers;
        let pooled = readers.idle.lock().ok().and_then(|mut idle| idle.pop());
        let conn = match pooled {
            Some(conn) => conn,
            None => cairn_store::open_read_only(&readers.path)?,
        };
        job(&conn);
        if let Ok(mut idle) = readers.idle.lock()
            && idle.len() < MAX_IDLE_READERS
        {
            idle.push(conn);
        }
        Ok(())
    }

    /// Returns the number of records appended since this log was opened.
    pub fn appended(&self) -> u64 {
        self.inner.appended.load(Ordering::Relaxed)
    }

    /// Returns the number of jobs waiting for the writer.
    pub fn queued(&self) -> u64 {
        self.inner.writer.queued() as u64
    }

    /// Returns the bytes of the database and its write-ahead log.
    pub fn bytes(&self) -> u64 {
        let path = &self.inner.readers.path;
        let wal = path.with_extension("db-wal");
        [path, &wal].iter().filter_map(|p| p.metadata().ok()).map(|m| m.len()).sum()
    }

    /// Returns `ok`, or the problems found by SQLite's integrity check.
    ///
    /// # Errors
    /// Fails when the check cannot run.
    pub async fn integrity_check(&self) -> Result<String, TraceError> {
        self.read(|conn| Ok(cairn_store::integrity_check(conn)?)).await
    }
}
