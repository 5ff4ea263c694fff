//! Chunk, embed, index, query, fuse, rank, grep, symbols: everything that finds.
//!
//! [`Indexes`] owns one index folder for each root and all threads that keep them fresh; queries are blocking
//! functions on it.

mod chunk;
mod embed;
mod simd;
mod words;

pub use embed::Embedder;
