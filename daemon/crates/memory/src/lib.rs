//! The knowledge store: what agents learnt and people may read. An entry is a Markdown file, named
//! by its keywords.
//!
//! ```text
//! memory/
//!   async_python_sockets.md      keywords async, python, sockets
//!   fix-licence_headers.md       fixed: never changed or deleted from here
//! ```

mod error;
mod name;
mod rank;
mod store;
mod vocabulary;

pub use error::{MemoryError, NameError};
pub use name::Name;
pub use store::Store;

/// Maximum bytes of an entry's text.
pub const MAX_ENTRY: usize = 256 * 1024;
/// Maximum entries of a store.
pub const MAX_ENTRIES: usize = 10_000;
