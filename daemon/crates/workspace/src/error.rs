//! Errors of roots and of the files in them, and the one place that maps them to reasons of the wire.

use std::{io, path::PathBuf};

use cairn_protocol::error::{Failure, Reason};

use crate::root::shown;

/// A failed operation on a root, or on a path of one.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// A path without a character.
    #[error("a path is empty")]
    EmptyPath,
    /// A path that no system call takes.
    #[error("a path holds a NUL byte")]
    NulByte,
    /// A path over the limit of this crate.
    #[error("a path is over {limit} bytes")]
    PathTooLong {
        /// The limit.
        limit: usize,
    },
    /// A path over the limit of the system.
    #[error("'{}' is too long a path", shown(.path))]
    NameTooLong {
        /// The path.
        path: String,
    },
    /// A root that cannot be named on the wire.
    #[error("a root's path is not valid UTF-8")]
    RootNotUtf8,
    /// A path whose target cannot be named on the wire.
    #[error("'{}' leads to a name that is not UTF-8", shown(.path))]
    TargetNotUtf8 {
        /// The path.
        path: String,
    },
    /// A root is declared by an absolute path.
    #[error("root '{}' is not an absolute path", shown(.path))]
    RootNotAbsolute {
        /// The path.
        path: String,
    },
    /// A folder that cannot be a root.
    #[error("'{}' {why}", shown(.path))]
    UnfitRoot {
        /// The path.
        path: String,
        /// The rest of the sentence.
        why: &'static str,
    },
    /// Another folder stood at the path while it was declared.
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
    /// A relative path does not tell its root.
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
    /// A path in no root.
    #[error("'{}' is in no declared root", shown(.path))]
    OutsideRoots {
        /// The path.
        path: String,
    },
    /// A path, or a symlink on it, that leaves its root.
    #[error("'{}' leads out of its root", shown(.path))]
    LeavesRoot {
        /// The path.
        path: String,
    },
    /// A path that the user's configuration closes.
    #[error("'{}' is a blocked path", shown(.path))]
    Blocked {
        /// The path.
        path: String,
    },
    /// A path of a folder that nothing is written to.
    #[error("'{}' lies in {folder}, where nothing is written", shown(.path))]
    WriteProtected {
        /// The path.
        path: String,
        /// The folder's name.
        folder: String,
    },
    /// A path that a rule hides.
    #[error("'{}' may not be read: {rule}", shown(.path))]
    Hidden {
        /// The path.
        path: String,
        /// The rule, or the reason in words.
        rule: String,
    },
    /// Nothing is there.
    #[error("'{}' does not exist", shown(.path))]
    NotFound {
        /// The path.
        path: String,
    },
    /// A symlink without a target, or in a loop.
    #[error("'{}' is a symlink that leads nowhere or was not there before", shown(.path))]
    DanglingLink {
        /// The path.
        path: String,
    },
    /// A file where a folder is needed.
    #[error("'{}' is not a folder", shown(.path))]
    NotADirectory {
        /// The path.
        path: String,
    },
    /// Something else where a file is needed.
    #[error("'{}' is not a regular file", shown(.path))]
    NotAFile {
        /// The path.
        path: String,
    },
    /// The system does not let it be read or written.
    #[error("'{}': {source}", shown(.path))]
    Unreadable {
        /// The path.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// No room on the disk.
    #[error("'{}': {source}", shown(.path))]
    DiskFull {
        /// The path.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A file over the limit of its reader.
    #[error("'{}' has more than {limit} bytes", shown(.path))]
    FileTooLarge {
        /// The path.
        path: String,
        /// The limit.
        limit: u64,
    },
    /// A content over the limit of writing.
    #[error("'{}' would have more than {limit} bytes", shown(.path))]
    ContentTooLarge {
        /// The path.
        path: String,
        /// The limit.
        limit: u64,
    },
    /// A line too far into a file.
    #[error("'{}' line {line}: more than 2 GiB into the file", shown(.path))]
    LineTooFar {
        /// The path.
        path: String,
        /// The line.
        line: u32,
    },
    /// A range of lines that is none.
    #[error(transparent)]
    BadRange(#[from] RangeError),
    /// A depth of a listing over its limits.
    #[error("depth {depth} is not 1 to {limit}")]
    BadDepth {
        /// The depth.
        depth: u32,
        /// The limit.
        limit: u32,
    },
    /// An exclusion that is no glob.
    #[error("exclusion '{glob}': {cause}")]
    BadExclusion {
        /// The glob.
        glob: String,
        /// The parser's reason.
        cause: globset::ErrorKind,
    },
    /// No thread for a watch.
    #[error("watching {}: {source}", .root.display())]
    Watch {
        /// The root.
        root: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// A range of lines that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// Lines count from 1.
    #[error("start is 0; lines count from 1")]
    StartIsZero,
    /// The end comes first.
    #[error("start {start} is after end {end}")]
    Reversed {
        /// First line.
        start: u32,
        /// Last line.
        end: u32,
    },
    /// More lines around the range than there may be.
    #[error("context {context} is over {limit}")]
    Context {
        /// The number of lines.
        context: u32,
        /// The limit.
        limit: u32,
    },
}

/// A path of a rule that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// No path.
    #[error("a path is empty")]
    Empty,
    /// A path that climbs.
    #[error("'{0}' holds '..': write the path from the root on")]
    Climbs(String),
    /// A glob that the parser refuses.
    #[error("'{text}' is no glob: {cause}")]
    Glob {
        /// The pattern.
        text: String,
        /// The parser's reason.
        cause: globset::ErrorKind,
    },
}

impl WorkspaceError {
    /// True if nothing is there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::DanglingLink { .. } | Self::RootGone { .. })
    }

    /// True if the path lies in no root, or leaves the one that it began in.
    pub fn is_outside(&self) -> bool {
        matches!(self, Self::OutsideRoots { .. } | Self::LeavesRoot { .. } | Self::RootReplaced { .. })
    }

    /// True if the system does not let it be read.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Unreadable { .. } | Self::RootUnreadable { .. })
    }

    /// The reason on the wire.
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
