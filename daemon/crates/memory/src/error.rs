//! Errors of the knowledge store and their mapping to the protocol's reasons.

use std::{io, path::PathBuf};

use cairn_protocol::error::{Failure, Reason};

use crate::{MAX_ENTRIES, MAX_ENTRY};

#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("the query must contain a word of letters or digits")]
    EmptyQuery,
    /// The cursor belongs to another list.
    #[error("the cursor belongs to another list")]
    BadCursor,
    #[error("an entry needs text")]
    EmptyText,
    /// The entry is fixed (see [`crate::Name::is_fixed`]).
    #[error(
        "\"{file}\" is immutable: it cannot be {change}; save the new text under other keywords"
    )]
    Immutable {
        file: String,
        /// A past participle, completing the message.
        change: &'static str,
    },
    /// A project's call would delete an entry that holds in every project.
    #[error(
        "\"{file}\" is a general entry, which no project deletes; 'cairn memory delete --general' does"
    )]
    General { file: String },
    /// A change without a project, which entries belong to.
    #[error("a session without a folder has no project that an entry could belong to")]
    NoProject,
    #[error("there is no entry \"{file}\"; find entries with memory_search")]
    NotFound { file: String },
    /// A folder, link or special file has the entry's file name.
    #[error("\"{file}\" is not a regular file")]
    NotAFile { file: String },
    #[error("\"{file}\" has {bytes} bytes; the limit is {MAX_ENTRY}")]
    StoredTooLarge { file: String, bytes: u64 },
    #[error("\"{file}\" would have {bytes} bytes; the limit is {MAX_ENTRY}")]
    TextTooLarge { file: String, bytes: usize },
    /// The store already has [`MAX_ENTRIES`] entries.
    #[error("the store has {MAX_ENTRIES} entries, which is the limit; delete some first")]
    Full,
    #[error("\"{file}\" cannot be {change}: {source}")]
    File {
        file: String,
        /// A past participle, completing the message.
        change: &'static str,
        source: io::Error,
    },
    #[error("{} cannot be read: {source}", .folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error("the answer cannot be serialized: {0}")]
    Answer(serde_json::Error),
}

/// The keywords do not make a valid entry name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("an entry needs a keyword of letters or digits")]
    Empty,
    #[error("an entry has at most {limit} keywords, not {found}")]
    TooMany { limit: usize, found: usize },
    #[error("the keyword '{start}…' has more than {limit} characters")]
    KeywordTooLong { start: String, limit: usize },
    #[error("the keywords have {bytes} bytes in total; the limit is {limit}")]
    TooLong { bytes: usize, limit: usize },
}

impl MemoryError {
    pub fn reason(&self) -> Reason {
        match self {
            Self::Name(_)
            | Self::EmptyQuery
            | Self::BadCursor
            | Self::EmptyText
            | Self::Immutable { .. }
            | Self::General { .. }
            | Self::NotAFile { .. } => Reason::InvalidParams,
            Self::NoProject => Reason::NoRoots,
            Self::NotFound { .. } => Reason::PathNotFound,
            Self::StoredTooLarge { .. } | Self::TextTooLarge { .. } | Self::Full => {
                Reason::TooLarge
            }
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
