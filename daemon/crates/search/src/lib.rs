//! The search engine: chunking, embedding, indexing, queries, rank fusion, grep and symbols.
//!
//! [`Indexes`] owns one index folder per root and the threads that keep the indexes up to date;
//! queries are blocking methods on it.

mod base_index;
mod budget;
mod calls;
mod candidates;
mod db;
mod digest;
mod enrich;
mod filters;
mod flow;
mod graph;
mod grep;
mod hidden;
mod hits;
mod indexes;
mod ingest;
mod lexical;
mod named;
mod overview;
mod parsed;
mod query;
mod rank;
mod ranking;
mod reading;
mod rebuild;
mod references;
mod rescore;
mod root_index;
mod scripts;
mod search;
mod sharing;
pub mod symbols;
mod sync;
mod text;
mod uses;
mod worker;

pub use cairn_index_base::CancelFlag;
pub use cairn_vectors::{Embedder, unpack as stored_vector};
pub use flow::FlowStart;
pub use grep::{OnLines, cursor_after};
pub use indexes::{IndexOptions, Indexes, Until};
pub use overview::FileStats;
pub use rank::Mode;
pub use rescore::{RescoreLimits, Rescorer};
pub use search::{OnPartial, RankedLines};
