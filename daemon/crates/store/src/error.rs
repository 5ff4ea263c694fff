//! Errors of database operations.

use std::path::PathBuf;

use cairn_protocol::error::{Failure, Reason};
use rusqlite::{Connection, ErrorCode};

/// A failed database operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A newer build has written the database.
    #[error(
        "database {path} has version {found}, this build supports up to {known}: use a newer cairn, or \
        move the file away"
    )]
    Newer {
        path: PathBuf,
        /// Version of the file.
        found: u32,
        /// The newest version that this build supports.
        known: u32,
    },
    /// The disk is full.
    #[error("no space left on the disk: {0}")]
    DiskFull(String),
    /// A file could not grow or be synchronised: the disk is full or has failed. The writer knows
    /// which, by [`StoreError::with_cause`].
    #[error("the database's file cannot be written, because the disk is full or has failed: {0}")]
    Unwritable(String),
    /// The disk has failed.
    #[error("the database's file cannot be written: {0}")]
    Device(String),
    /// The file is damaged or not a database.
    #[error("database is damaged: {0}; 'cairn doctor --repair' shows what can be rescued")]
    Corrupt(String),
    /// A part of the log does not match its checksum, or is missing.
    #[error(
        "{} is damaged: {what}; 'cairn doctor --repair' shows what can be rescued",
        part_of(session, *seq)
    )]
    DamagedRecord {
        session: String,
        /// Number of the record; `None` for the session itself.
        seq: Option<u64>,
        what: String,
    },
    /// The writer has stopped.
    #[error("the database's writer has stopped")]
    Closed,
    /// The job panicked, and its writes were rolled back.
    #[error("a job of the database's writer panicked")]
    Panicked,
    /// The writer's queue is full.
    #[error("the database's queue is full")]
    Busy,
    /// The folder or file cannot be used.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Any other failure of SQLite.
    #[error("database: {0}")]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::DiskFull(error.to_string()),
            // On a full file system SQLite reports an I/O error if the write-ahead log or its index
            // cannot grow.
            Some(ErrorCode::SystemIoFailure) if may_be_no_space(&error) => {
                StoreError::Unwritable(error.to_string())
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                StoreError::Corrupt(error.to_string())
            }
            _ if has_foreign_value(&error) => StoreError::Corrupt(error.to_string()),
            _ => StoreError::Sqlite(error),
        }
    }
}

/// True if a value has a type or range that is never written to its column.
fn has_foreign_value(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error,
    };
    matches!(
        error,
        FromSqlConversionFailure(..)
            | IntegralValueOutOfRange(..)
            | InvalidColumnType(..)
            | Utf8Error(..)
    )
}

fn part_of(session: &str, seq: Option<u64>) -> String {
    match seq {
        Some(seq) => format!("record {seq} of session {session}"),
        None => format!("session {session}"),
    }
}

fn may_be_no_space(error: &rusqlite::Error) -> bool {
    // SQLITE_IOERR_WRITE, _FSYNC, _TRUNCATE, _SHMSIZE, _SHMMAP, which a full disk causes in WAL
    // mode.
    const GROWING: [i32; 5] = [778, 1034, 1546, 4874, 5386];
    error.sqlite_error().is_some_and(|e| GROWING.contains(&e.extended_code))
}

/// Returns the error code of the last system call that failed in this connection.
#[expect(unsafe_code, reason = "rusqlite has no function for it")]
fn system_errno(conn: &Connection) -> i32 {
    // SAFETY: the handle is that of an open connection, and the function only reads it.
    unsafe { rusqlite::ffi::sqlite3_system_errno(conn.handle()) }
}

impl StoreError {
    /// The reason on the wire.
    pub fn reason(&self) -> Reason {
        match self {
            StoreError::DiskFull(_) | StoreError::Unwritable(_) => Reason::DiskFull,
            StoreError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                Reason::DiskFull
            }
            StoreError::Busy => Reason::Overloaded,
            StoreError::Closed => Reason::ShuttingDown,
            _ => Reason::StorageFailed,
        }
    }

    /// Decides by the system's latest error code of the connection whether a file could not be
    /// written because the disk is full.
    pub(crate) fn with_cause(self, conn: &Connection) -> StoreError {
        let StoreError::Unwritable(text) = self else { return self };
        let cause = std::io::Error::from_raw_os_error(system_errno(conn));
        match cause.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                StoreError::DiskFull(text)
            }
            _ => StoreError::Device(format!("{text}: {cause}")),
        }
    }

    /// Copies the error, because an error of a shared commit is returned to every waiting caller.
    pub(crate) fn duplicate(&self) -> StoreError {
        match self {
            StoreError::DiskFull(m) => StoreError::DiskFull(m.clone()),
            StoreError::Unwritable(m) => StoreError::Unwritable(m.clone()),
            StoreError::Device(m) => StoreError::Device(m.clone()),
            StoreError::Closed => StoreError::Closed,
            StoreError::Busy => StoreError::Busy,
            StoreError::Corrupt(m) => StoreError::Corrupt(m.clone()),
            StoreError::DamagedRecord { session, seq, what } => StoreError::DamagedRecord {
                session: session.clone(),
                seq: *seq,
                what: what.clone(),
            },
            other => StoreError::Sqlite(rusqlite::Error::ToSqlConversionFailure(
                other.to_string().into(),
            )),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::new(error.reason(), error.to_string())
    }
}
