//! Errors of roots and of their files, and the single place that maps them to reasons of the
//! protocol.

use std::{io, path::PathBuf};

use cairn_protocol::error::{Failure, Reason};

use crate::root::shown;

/// A failed operation on a root, or on a path of one.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The path is empty.
    #[error("a path is empty")]
    EmptyPath,
    /// The path contains a NUL byte, which no system call accepts.
    #[error("a path holds a NUL byte")]
    NulByte,
    /// The path exceeds the limit of this crate.
    #[error("a path is over {limit} bytes")]
    PathTooLong {
        /// The limit.
        limit: usize,
    },
    /// The path exceeds the limit of the system.
    #[error("'{}' is too long a path", shown(.path))]
    NameTooLong {
        /// The path.
        path: String,
    },
    /// The root's path is not UTF-8, so the protocol cannot express it.
    #[error("a root's path is not valid UTF-8")]
    RootNotUtf8,
    /// The target of the path is not UTF-8, so the protocol cannot express it.
    #[error("'{}' leads to a name that is not UTF-8", shown(.path))]
    TargetNotUtf8 {
        /// The path.
        path: String,
    },
    /// The path of a new root is not absolute.
    #[error("root '{}' is not an absolute path", shown(.path))]
    RootNotAbsolute {
        /// The path.
        path: String,
    },
    /// The folder cannot be a root.
    #[error("'{}' {why}", shown(.path))]
    UnfitRoot {
        /// The path.
        path: String,
        /// The rest of the sentence.
        why: &'static str,
    },
    /// The folder was replaced by another while it was declared.
    #[error("'{}' was replaced while it was declared", shown(.path))]
    RootReplaced {
        /// The path.
        path: String,
    },
    /// No root has this id or path.
    #[error("'{}' is not a declared root", shown(.root))]
    UnknownRoot {
        /// The id or the path.
        root: String,
    },
    /// No root is declared.
    #[error("no root is declared")]
    NoRoots,
    /// The path is relative and there are several roots.
    #[error("'{}' is relative and {roots} roots are declared", shown(.path))]
    AmbiguousRoot {
        /// The path.
        path: String,
        /// The number of roots.
        roots: usize,
    },
    /// The folder of a root does not exist any more.
    #[error("root {} is gone", .root.display())]
    RootGone {
        /// The root.
        root: PathBuf,
    },
    /// The folder of a root cannot be opened.
    #[error("root {}: {source}", .root.display())]
    RootUnreadable {
        /// The root.
        root: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The path is in no root.
    #[error("'{}' is in no declared root", shown(.path))]
    OutsideRoots {
        /// The path.
        path: String,
    },
    /// The path, or a symlink on it, leaves its root.
    #[error("'{}' leads out of its root", shown(.path))]
    LeavesRoot {
        /// The path.
        path: String,
    },
    /// The user's configuration blocks the path.
    #[error("'{}' is a blocked path", shown(.path))]
    Blocked {
        /// The path.
        path: String,
    },
    /// The path is in a folder that may not be written to.
    #[error("'{}' lies in {folder}, where nothing is written", shown(.path))]
    WriteProtected {
        /// The path.
        path: String,
        /// The folder's name.
        folder: String,
    },
    /// A rule hides the path.
    #[error("'{}' may not be read: {rule}", shown(.path))]
    Hidden {
        /// The path.
        path: String,
        /// The rule, or the reason in words.
        rule: String,
    },
    /// The path does not exist.
    #[error("'{}' does not exist", shown(.path))]
    NotFound {
        /// The path.
        path: String,
    },
    /// The path is a symlink without a target, or in a loop.
    #[error("'{}' is a symlink that leads nowhere or was not there before", shown(.path))]
    DanglingLink {
        /// The path.
        path: String,
    },
    /// The path is a file, but a folder is required.
    #[error("'{}' is not a folder", shown(.path))]
    NotADirectory {
        /// The path.
        path: String,
    },
    /// The path is no regular file, but one is required.
    #[error("'{}' is not a regular file", shown(.path))]
    NotAFile {
        /// The path.
        path: String,
    },
    /// The system denies reading or writing.
    #[error("'{}': {source}", shown(.path))]
    Unreadable {
        /// The path.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The disk is full.
    #[error("'{}': {source}", shown(.path))]
    DiskFull {
        /// The path.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The file exceeds the limit of its reader.
    #[error("'{}' has more than {limit} bytes", shown(.path))]
    FileTooLarge {
        /// The path.
        path: String,
        /// The limit.
        limit: u64,
    },
    /// The content exceeds the limit of writing.
    #[error("'{}' would have more than {limit} bytes", shown(.path))]
    ContentTooLarge {
        /// The path.
        path: String,
        /// The limit.
        limit: u64,
    },
    /// The line is too far into the file.
    #[error("'{}' line {line}: more than 2 GiB into the file", shown(.path))]
    LineTooFar {
        /// The path.
        path: String,
        /// The line.
        line: u32,
    },
    /// The range of lines is invalid.
    #[error(transparent)]
    BadRange(#[from] RangeError),
    /// The depth of a listing is out of range.
    #[error("depth {depth} is not 1 to {limit}")]
    BadDepth {
        /// The depth.
        depth: u32,
        /// The limit.
        limit: u32,
    },
    /// An exclusion is an invalid glob.
    #[error("exclusion '{glob}': {cause}")]
    BadExclusion {
        /// The glob.
        glob: String,
        /// The parser's reason.
        cause: globset::ErrorKind,
    },
    /// The thread of a watch cannot be started.
    #[error("watching {}: {source}", .root.display())]
    Watch {
        /// The root.
        root: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// An invalid range of lines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// Lines count from 1.
    #[error("start is 0; lines count from 1")]
    StartIsZero,
    /// The end precedes the start.
    #[error("start {start} is after end {end}")]
    Reversed {
        /// First line.
        start: u32,
        /// Last line.
        end: u32,
    },
    /// Too many context lines.
    #[error("context {context} is over {limit}")]
    Context {
        /// The number of lines.
        context: u32,
        /// The limit.
        limit: u32,
    },
}

/// A path of a rule that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The path is empty.
    #[error("a path is empty")]
    Empty,
    /// The path contains `..`.
    #[error("'{0}' holds '..': write the path from the root on")]
    Climbs(String),
    /// The parser rejects the glob.
    #[error("'{text}' is no glob: {cause}")]
    Glob {
        /// The pattern.
        text: String,
        /// The parser's reason.
        cause: globset::ErrorKind,
    },
}

impl WorkspaceError {
    /// Returns true if the path does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::DanglingLink { .. } | Self::RootGone { .. })
    }

    /// Returns true if the path is in no root, or leaves its own.
    pub fn is_outside(&self) -> bool {
        matches!(self, Self::OutsideRoots { .. } | Self::LeavesRoot { .. } | Self::RootReplaced { .. })
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
            | Self::Hidden { .. } => Reason::PathBlocked,
            Self::RootReplaced { .. } | Self::OutsideRoots { .. } | Self::LeavesRoot { .. } => {
                Reason::PathOutsideRoots
            }
            Self::UnknownRoot { .. } => Reason::RootNotFound,
            Self::NoRoots => Reason::NoRoots,
            Self::AmbiguousRoot { .. } => Reason::RootAmbiguous,
            Self::RootGone { .. } | Self::NotFound { .. } | Self::DanglingLink { .. } => Reason::PathNotFound,
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
