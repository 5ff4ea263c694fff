//! The inverted index of lexical search: immutable segments of compressed postings. Each block has
//! its maximum score, so that a query skips blocks that cannot reach the top results.
//!
//! The database remains the source of truth: a segment is a derived file, listed in the table
//! `segment` by the same transaction that adds its chunks. Chunks after the last file are indexed
//! in memory only, and again from their text when the index is opened.

mod build;
mod encode;
mod merge;
mod segment;
mod set;
mod store;
#[cfg(test)]
mod tests;
mod top;

pub use build::Builder;
pub use segment::{Doc, Segment};
pub use set::{Position, Postings, Snapshot};
pub use store::{Pending, removed_chunks};
pub use top::{Hit, Term, search_top};

/// The counts of a posting, packed in seven bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload(pub u8);

impl Payload {
    /// Maximum stored count of the body; higher counts saturate.
    pub const MAX_BODY: u8 = 15;
    /// Maximum stored count of names.
    pub const MAX_NAMES: u8 = 3;

    /// Occurrences of the word in the window's text, 0 to 15.
    pub fn body(self) -> u8 {
        self.0 & 15
    }

    /// True if the word is in the file's path.
    pub fn in_path(self) -> bool {
        self.0 & 16 != 0
    }

    /// Number of names with the word that the window appears to define, 0 to 3.
    pub fn names(self) -> u8 {
        self.0 >> 5 & 3
    }
}

/// Weights of a posting's score. The score only selects candidates; the ranker orders them with
/// weights of its own. The stored block maxima depend on these weights, so a change requires a new
/// `FORMAT`.
const DEFS: f32 = 3.0;
const PATH: f32 = 1.0;
const K1: f32 = 1.2;
const B: f32 = 0.6;
/// Words of an average window.
const AVERAGE_LENGTH: f32 = 160.0;
/// Number of classes of window lengths, four per doubling.
const CLASSES: usize = 64;

/// The length class of a window of `tokens` words.
fn length_class(tokens: u32) -> u8 {
    ((tokens.max(1) as f32).log2() * 4.0).round().min(CLASSES as f32 - 1.0) as u8
}

/// The BM25 term of each payload in each length class without the word's weight, in 0..1.
struct Impacts(Box<[[f32; CLASSES]; 128]>);

impl Impacts {
    fn get() -> &'static Self {
        static TABLE: std::sync::OnceLock<Impacts> = std::sync::OnceLock::new();
        TABLE.get_or_init(|| {
            let mut table = Box::new([[0.0; CLASSES]; 128]);
            for (bits, row) in table.iter_mut().enumerate() {
                let payload = Payload(bits as u8);
                for (class, value) in row.iter_mut().enumerate() {
                    let length = 1.0 - B + B * 2f32.powf(class as f32 / 4.0) / AVERAGE_LENGTH;
                    let count = f32::from(payload.body()) / length
                        + DEFS * f32::from(payload.names())
                        + if payload.in_path() { PATH } else { 0.0 };
                    *value = count / (count + K1);
                }
            }
            Self(table)
        })
    }

    #[inline]
    fn score(&self, payload: u8, class: u8) -> f32 {
        self.0[(payload & 127) as usize][(class as usize) & (CLASSES - 1)]
    }
}

/// The BM25 weight of a word that `n` of `all` windows contain.
pub fn rarity(n: u64, all: u64) -> f32 {
    let (n, all) = (n as f32, all.max(n) as f32);
    ((all - n + 0.5) / (n + 0.5) + 1.0).ln()
}
