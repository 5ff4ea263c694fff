//! The knowledge store: what agents learnt and people may read. An entry is a Markdown file, named
//! by its keywords.
//!
//! ```text
//! memory/
//!   async_python_sockets.md      keywords async, python, sockets
//!   fix-licence_headers.md       fixed: never changed or deleted from here
//!   projects/site-0f3c…/         the entries of one project
//! ```

mod error;
mod name;
mod projects;
mod rank;
mod store;
mod view;
mod vocabulary;

pub use error::{MemoryError, NameError};
pub use name::Name;
pub use projects::{Memory, RepositoryOf};
pub(crate) use store::Store;
pub use view::MemoryView;

/// Maximum bytes of an entry's text.
pub const MAX_ENTRY: usize = 256 * 1024;
/// Maximum entries of a store.
pub const MAX_ENTRIES: usize = 10_000;
