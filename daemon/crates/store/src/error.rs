//! Errors of database operations.

use std::path::PathBuf;

use cairn_protocol::error::{Failure, Reason};
use rusqlite::ErrorCode;

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
    /// The file is damaged or not a database.
    #[error("database is damaged: {0}")]
    Corrupt(String),
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
            Some(ErrorCode::SystemIoFailure) if is_no_space(&error) => {
                StoreError::DiskFull(error.to_string())
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                StoreError::Corrupt(error.to_string())
            }
            _ => StoreError::Sqlite(error),
        }
    }
}

fn is_no_space(error: &rusqlite::Error) -> bool {
    // SQLITE_IOERR_WRITE, _FSYNC, _TRUNCATE, _SHMSIZE, _SHMMAP, which a full disk causes in WAL
    // mode.
    const GROWING: [i32; 5] = [778, 1034, 1546, 4874, 5386];
    error.sqlite_error().is_some_and(|e| GROWING.contains(&e.extended_code))
}

impl StoreError {
    /// The reason on the wire.
    pub fn reason(&self) -> Reason {
        match self {
            StoreError::DiskFull(_) => Reason::DiskFull,
            StoreError::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                Reason::DiskFull
            }
            StoreError::Busy => Reason::Overloaded,
            StoreError::Closed => Reason::ShuttingDown,
            _ => Reason::StorageFailed,
        }
    }

    /// Copies the error, because an error of a shared commit is returned to every waiting caller.
    pub(crate) fn duplicate(&self) -> StoreError {
        match self {
            StoreError::DiskFull(m) => StoreError::DiskFull(m.clone()),
            StoreError::Closed => StoreError::Closed,
            StoreError::Busy => StoreError::Busy,
            StoreError::Corrupt(m) => StoreError::Corrupt(m.clone()),
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
