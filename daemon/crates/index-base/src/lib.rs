//! Shared parts of the indexes: files, locks, cancellation and the file table.

mod context;
mod encoding;
mod file_table;
mod files;
mod sync;
mod transaction;

pub use context::IndexContext;
pub use encoding::leb128;
pub use file_table::{FileEntry, FileSet, FileTable};
pub use files::{Mapped, private_options, write_file};
pub use sync::{CancelFlag, CancelOnDrop, lock};
pub use transaction::write_without_clock;
