//! Declared roots and their files: race-free opening, walking by the ignore rules, reading spans,
//! listing, watching for changes, counting lines, and git.
//!
//! This crate prints nothing, and only a clone reads the environment (for the ssh command of the
//! user); every path from outside passes [`Roots::resolve`] and is opened beneath its root by the
//! kernel, so that a symlink swapped in between leads nowhere.

mod autorun;
mod autorun_state;
mod background;
mod beneath;
mod blocked;
mod error;
pub mod git;
mod guard;
mod languages;
mod lines;
mod linked_files;
mod listing;
mod pattern;
mod private_file;
mod resolved;
mod root;
mod roots;
mod sockets;
mod span;
mod text_form;
mod visibility;
mod walk;
mod watch;
mod write;

pub use autorun::{
    Autorun, AutorunClass, NamedPrograms, autorun, autorun_examples, autorun_table,
    is_version_control,
};
pub use autorun_state::{AutorunChange, AutorunState, PLACEHOLDER_MODE};
pub use background::background_thread;
pub use error::{PatternError, RangeError, WorkspaceError};
pub use languages::{language_named, language_of};
pub use lines::{MAX_COUNTED_BYTES, count_languages};
pub use listing::{Examined, find_files, list_dir, list_parts};
pub use pattern::PathPattern;
pub use private_file::replace_private_file;
pub use resolved::ResolvedPath;
pub use root::{Facts, FileStat, Opener, Root};
pub use roots::{MAX_PATH_BYTES, Roots};
pub use span::{MAX_HASHED_BYTES, MAX_SCANNED_BYTES, read_span};
pub use text_form::{
    Encoding, Indent, Letters, LineEnd, TextFile, TextLine, composed, decode_text, decomposed,
    joins_previous, letters_of,
};
pub use visibility::{Masked, ReadRule, ReadRules, Reading, View, Visibility};
pub use walk::{Ignore, MAX_UNREADABLE, WalkOptions, WalkReport, Walked, walk};
pub use watch::{Change, MAX_PENDING, QUIET, Ticks, Watch};
pub use write::MAX_WRITTEN_BYTES;
