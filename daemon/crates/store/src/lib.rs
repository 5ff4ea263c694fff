//! SQLite for everyone: open, migrate, one writer thread. Knows no table.
//!
//! Each crate that owns tables passes its own numbered [`Migration`]s; the version reached is kept in
//! `user_version`. A database from a newer build is refused, never touched.

mod error;
mod open;
mod writer;

pub use error::StoreError;
pub use open::{Migration, integrity_check, limit_memory, open, open_read_only};
pub use rusqlite;
pub use writer::{Writer, WriterStats};
