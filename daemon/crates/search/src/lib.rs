//! Chunk, embed, index, query, fuse, rank, grep, symbols: everything that finds.
//!
//! [`Indexes`] owns one index folder for each root and all threads that keep them fresh; queries are blocking
//! functions on it.

mod chunk;
mod db;
mod dense;
mod embed;
mod enrich;
mod indexes;
mod ingest;
mod live;
mod simd;
mod symbols;
mod sync;
mod words;
mod worker;

pub use embed::Embedder;
pub use indexes::{IndexOptions, Indexes, Until};
pub use sync::CancelFlag;
