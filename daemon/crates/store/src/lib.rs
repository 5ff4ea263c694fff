//! Shared SQLite code: opening, migrations and a writer thread. It does not know any table.
//!
//! Each crate that owns tables passes its own numbered [`Migration`]s; the current version is
//! stored in `user_version`. A database of a newer build is refused and never modified.

mod error;
mod open;
mod writer;

pub use error::StoreError;
pub use open::{
    Migration, check_length, integrity_check, limit_memory, open, open_read_only, open_shrinking,
    shrink,
};
pub use rusqlite;
pub use writer::{Writer, WriterStats};
