//! The text of an index: windows of files, their compressed form in the database, and the inverted
//! index of their words.

pub mod chunk;
pub mod packed;
mod postings;

pub use postings::{
    Builder, Doc, Hit, Payload, Pending, Position, Postings, Segment, Snapshot, Term, rarity,
    removed_chunks, search_top,
};
