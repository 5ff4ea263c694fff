//! Chunk, embed, index, query, fuse, rank, grep, symbols: everything that finds.
//!
//! [`Indexes`] owns one index folder for each root and all threads that keep them fresh; queries are blocking
//! functions on it.

mod bulk;
mod chunk;
mod db;
mod dense;
mod digest;
mod embed;
mod enrich;
mod filters;
mod gather;
mod grams;
mod grep;
mod hits;
mod indexes;
mod ingest;
mod lexical;
mod live;
mod mapped;
mod overview;
mod packed;
mod postings;
mod rank;
mod reading;
mod rebuild;
mod rescore;
mod search;
mod simd;
pub mod symbols;
mod sync;
mod table;
mod text;
mod vector;
mod words;
mod worker;

pub use embed::Embedder;
pub use grep::{OnLines, cursor_after};
pub use indexes::{IndexOptions, Indexes, Until};
pub use overview::{FileStats, Folder};
pub use rank::Mode;
pub use rescore::{RescoreLimits, Rescorer};
pub use search::{OnPartial, RankedLines};
pub use sync::CancelFlag;
pub use vector::unpack as stored_vector;
