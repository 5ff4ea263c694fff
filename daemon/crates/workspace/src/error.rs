//! Errors of roots and of their files, and the single place that maps them to reasons of the
//! protocol.

use std::{io, path::PathBuf};

use cairn_protocol::error::{Failure, Reason};

use crate::root::display_text;

/// A failed operation on a root, or on a path of one.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The path is empty.
    #[error("a path is empty")]
    EmptyPath,
    /// The path contains a NUL byte, which no system call accepts.
    #[error("a path contains a NUL byte")]
    NulByte,
    /// The path exceeds the limit of this crate.
    #[error("a path is over {limit} bytes")]
    PathTooLong { limit: usize },
    /// The path exceeds the limit of the system.
    #[error("the path '{}' is too long", display_text(.path))]
    NameTooLong { path: String },
    /// The root's path is not UTF-8, so the protocol cannot express it.
    #[error("a root's path is not valid UTF-8")]
    RootNotUtf8,
    /// The target of the path is not UTF-8, so the protocol cannot express it.
    #[error("'{}' resolves to a name that is not UTF-8", display_text(.path))]
    TargetNotUtf8 { path: String },
    /// The path of a new root is not absolute.
    #[error("root '{}' is not an absolute path", display_text(.path))]
    RootNotAbsolute { path: String },
    /// The folder cannot be a root.
    #[error("'{}' {why}", display_text(.path))]
    UnfitRoot {
        path: String,
        /// The rest of the sentence.
        why: &'static str,
    },
    /// The folder was replaced by another while it was declared.
    #[error("'{}' was replaced while it was being declared", display_text(.path))]
    RootReplaced { path: String },
    /// No root has this id or path.
    #[error("'{}' is not a declared root", display_text(.root))]
    UnknownRoot { root: String },
    /// No root is declared.
    #[error("no root is declared")]
    NoRoots,
    /// The path is relative and there are several roots.
    #[error("'{}' is relative and {roots} roots are declared", display_text(.path))]
    AmbiguousRoot { path: String, roots: usize },
    /// The folder of a root does not exist any more.
    #[error("root {} no longer exists", .root.display())]
    RootRemoved { root: PathBuf },
    /// The folder of a root cannot be opened.
    #[error("root {}: {source}", .root.display())]
    RootUnreadable { root: PathBuf, source: io::Error },
    /// The path is in no root.
    #[error("'{}' is not in a declared root", display_text(.path))]
    OutsideRoots { path: String },
    /// The path, or a symlink on it, leaves its root.
    #[error("'{}' leads outside its root", display_text(.path))]
    LeavesRoot { path: String },
    /// The user's configuration blocks the path.
    #[error("'{}' is a blocked path", display_text(.path))]
    Blocked { path: String },
    /// The path is in a folder that may not be written to.
    #[error("'{}' is in {folder}, which is never written to", display_text(.path))]
    WriteProtected { path: String, folder: String },
    /// Cairn itself runs or reads the file: only the user changes it.
    #[error("'{}' is run or read by Cairn itself: only the user changes it", display_text(.path))]
    OwnFile { path: String },
    /// A rule hides the path.
    #[error("'{}' may not be read: {rule}", display_text(.path))]
    Hidden {
        path: String,
        /// The rule, or the reason in words.
        rule: String,
    },
    /// The path does not exist.
    #[error("'{}' does not exist", display_text(.path))]
    NotFound { path: String },
    /// The path is a symlink without a target, or in a loop.
    #[error("'{}' is a symlink without a target, or one that did not exist before", display_text(.path))]
    DanglingLink { path: String },
    /// The path is a file, but a folder is required.
    #[error("'{}' is not a folder", display_text(.path))]
    NotADirectory { path: String },
    /// The path is no regular file, but one is required.
    #[error("'{}' is not a regular file", display_text(.path))]
    NotAFile { path: String },
    /// The system denies reading or writing.
    #[error("'{}': {source}", display_text(.path))]
    Unreadable { path: String, source: io::Error },
    /// The disk is full.
    #[error("'{}': {source}", display_text(.path))]
    DiskFull { path: String, source: io::Error },
    /// The file exceeds the limit of its reader.
    #[error("'{}' has more than {limit} bytes", display_text(.path))]
    FileTooLarge { path: String, limit: u64 },
    /// The content exceeds the limit of writing.
    #[error("'{}' would have more than {limit} bytes", display_text(.path))]
    ContentTooLarge { path: String, limit: u64 },
    /// The line is too far into the file.
    #[error("'{}' line {line}: more than 2 GiB into the file", display_text(.path))]
    LineTooFar { path: String, line: u32 },
    /// The range of lines is invalid.
    #[error(transparent)]
    BadRange(#[from] RangeError),
    /// The depth of a listing is out of range.
    #[error("depth {depth} is not between 1 and {limit}")]
    BadDepth { depth: u32, limit: u32 },
    /// An exclusion is an invalid glob.
    #[error("exclusion '{glob}': {cause}")]
    BadExclusion { glob: String, cause: globset::ErrorKind },
    /// The thread of a watch cannot be started.
    #[error("watching {}: {source}", .root.display())]
    Watch { root: PathBuf, source: io::Error },
}

/// An invalid range of lines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// Lines count from 1.
    #[error("start is 0; lines count from 1")]
    StartIsZero,
    /// The end precedes the start.
    #[error("start {start} is after end {end}")]
    Reversed { start: u32, end: u32 },
    /// Too many context lines.
    #[error("context {context} is over {limit}")]
    Context { context: u32, limit: u32 },
}

/// A path of a rule that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The path is empty.
    #[error("a path is empty")]
    Empty,
    /// The path contains `..`.
    #[error("'{0}' contains '..': write the path relative to the root")]
    Climbs(String),
    /// The parser rejects the glob.
    #[error("'{text}' is not a valid glob: {cause}")]
    Glob { text: String, cause: globset::ErrorKind },
}

impl WorkspaceError {
    /// Returns true if the path does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::DanglingLink { .. } | Self::RootRemoved { .. })
    }

    /// Returns true if the path is in no root, or leaves its own.
    pub fn is_outside(&self) -> bool {
        matches!(
            self,
            Self::OutsideRoots { .. } | Self::LeavesRoot { .. } | Self::RootReplaced { .. }
        )
    }

    /// Returns true if the system denies reading it.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Unreadable { .. } | Self::RootUnreadable { .. })
    }

    /// Returns the reason in the protocol.
    pub fn reason(&self) -> Reason {
        match self {
            Self::EmptyPath
            | Self::NulByte
            | Self::PathTooLong { .. }
            | Self::NameTooLong { .. }
            | Self::RootNotUtf8
            | Self::TargetNotUtf8 { .. }
            | Self::RootNotAbsolute { .. }
            | Self::BadRange(_)
            | Self::BadDepth { .. } => Reason::InvalidParams,
            Self::UnfitRoot { .. }
            | Self::Blocked { .. }
            | Self::WriteProtected { .. }
            | Self::OwnFile { .. }
            | Self::Hidden { .. } => Reason::PathBlocked,
            Self::RootReplaced { .. } | Self::OutsideRoots { .. } | Self::LeavesRoot { .. } => {
                Reason::PathOutsideRoots
            }
            Self::UnknownRoot { .. } => Reason::RootNotFound,
            Self::NoRoots => Reason::NoRoots,
            Self::AmbiguousRoot { .. } => Reason::RootAmbiguous,
            Self::RootRemoved { .. } | Self::NotFound { .. } | Self::DanglingLink { .. } => {
                Reason::PathNotFound
            }
            Self::RootUnreadable { .. } | Self::Unreadable { .. } => Reason::PathUnreadable,
            Self::NotADirectory { .. } => Reason::NotADirectory,
            Self::NotAFile { .. } => Reason::NotAFile,
            Self::DiskFull { .. } => Reason::DiskFull,
            Self::FileTooLarge { .. } | Self::ContentTooLarge { .. } | Self::LineTooFar { .. } => {
                Reason::TooLarge
            }
            Self::BadExclusion { .. } => Reason::BadPattern,
            Self::Watch { .. } => Reason::IndexFailed,
        }
    }
}

impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Self {
        Failure::new(error.reason(), error.to_string())
    }
}
