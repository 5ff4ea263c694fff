//! Splits text into words for lexical search and for the embedding table, and caches what is
//! derived from them.

pub mod model_tokens;
pub mod run_table;
pub mod scripts;
mod simd;
pub mod words;

pub use simd::prefetch;
