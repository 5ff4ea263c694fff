//! Splits text into words for lexical search and for the embedding table, and caches what is derived from them.
#![expect(missing_docs, reason = "an internal crate: only what is not obvious is documented")]

pub mod run_table;
mod simd;
pub mod words;

pub use simd::prefetch;
