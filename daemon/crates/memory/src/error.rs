//! Errors of the knowledge store, and the one place that maps them to reasons of the wire.

use std::{io, path::PathBuf};

use cairn_protocol::error::{Failure, Reason};

use crate::{MAX_ENTRIES, MAX_ENTRY};

/// A failed operation on the store.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// Keywords that name no entry.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A query without a word.
    #[error("the query needs a word of letters or digits")]
    EmptyQuery,
    /// A cursor of another list.
    #[error("the cursor is none of this list's")]
    BadCursor,
    /// An entry without text.
    #[error("an entry needs text")]
    EmptyText,
    /// An entry that nothing changes.
    #[error("\"{file}\" is immutable: it cannot be {change}; save what is new under other keywords")]
    Immutable {
        /// Its file.
        file: String,
        /// The change, as a participle.
        change: &'static str,
    },
    /// No entry has this name.
    #[error("there is no entry \"{file}\"; memory_search finds those there are")]
    NotFound {
        /// Its file.
        file: String,
    },
    /// Something else lies where the entry should.
    #[error("\"{file}\" is no plain file")]
    NotAFile {
        /// Its file.
        file: String,
    },
    /// A stored entry over the limit.
    #[error("\"{file}\" has {bytes} bytes, {MAX_ENTRY} are allowed")]
    StoredTooLarge {
        /// Its file.
        file: String,
        /// Its size.
        bytes: u64,
    },
    /// A new text over the limit.
    #[error("\"{file}\" would have {bytes} bytes, {MAX_ENTRY} are allowed")]
    TextTooLarge {
        /// Its file.
        file: String,
        /// Its size.
        bytes: usize,
    },
    /// As many entries as there may be.
    #[error("the store has {MAX_ENTRIES} entries, as many as it may; delete some first")]
    Full,
    /// The system does not let a file be read or changed.
    #[error("\"{file}\" cannot be {change}: {source}")]
    File {
        /// Its file.
        file: String,
        /// The operation, as a participle.
        change: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The folder of the store cannot be read.
    #[error("{} cannot be read: {source}", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// An answer that is no JSON.
    #[error("the answer cannot be written: {0}")]
    Answer(serde_json::Error),
}

/// Keywords that name no entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No keyword.
    #[error("an entry needs a keyword of letters or digits")]
    Empty,
    /// More keywords than an entry has.
    #[error("an entry has at most {limit} keywords, not {found}")]
    TooMany {
        /// The limit.
        limit: usize,
        /// Their number.
        found: usize,
    },
    /// A keyword over the limit.
    #[error("the keyword '{start}…' has more than {limit} characters")]
    KeywordTooLong {
        /// Its beginning.
        start: String,
        /// The limit.
        limit: usize,
    },
    /// Keywords over the limit together.
    #[error("the keywords have {bytes} bytes together, {limit} are allowed")]
    TooLong {
        /// Their size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
}

impl MemoryError {
    /// The reason on the wire.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Name(_)
            | Self::EmptyQuery
            | Self::BadCursor
            | Self::EmptyText
            | Self::Immutable { .. }
            | Self::NotAFile { .. } => Reason::InvalidParams,
            Self::NotFound { .. } => Reason::PathNotFound,
            Self::StoredTooLarge { .. } | Self::TextTooLarge { .. } | Self::Full => Reason::TooLarge,
            Self::File { .. } | Self::Folder { .. } => Reason::StorageFailed,
            Self::Answer(_) => Reason::Internal,
        }
    }
}

impl From<MemoryError> for Failure {
    fn from(error: MemoryError) -> Self {
        Failure::new(error.reason(), error.to_string())
    }
}
