//! The inverted index of lexical search: immutable segments of compressed postings with the highest score of each
//! block, so that a query skips what cannot be among the best.
//!
//! The database stays the record: a segment is a derived file beside it, listed in its `segment` table in the same
//! transaction as the chunks it covers. Chunks behind the last file are held in memory and made again from their text
//! at the next opening.

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
pub use encode::leb128;
pub use segment::Doc;
use segment::Segment;
pub use set::{Place, Postings, Snapshot};
pub use store::{Pending, add, gone, heal, open, settle, tidy, verify};
pub use top::{Hit, Term, best};

/// What a posting says of its word, packed in seven bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload(pub u8);

impl Payload {
    /// Highest count of the body that is kept; more count as this many.
    pub const MAX_BODY: u8 = 15;
    /// Highest count of names that is kept.
    pub const MAX_NAMES: u8 = 3;

    /// How often the word is in the window's text, 0 to 15.
    pub fn body(self) -> u8 {
        self.0 & 15
    }

    /// Whether it is in the file's path.
    pub fn in_path(self) -> bool {
        self.0 & 16 != 0
    }

    /// In how many names that the window seems to define, 0 to 3.
    pub fn names(self) -> u8 {
        self.0 >> 5 & 3
    }
}

/// Weights of a posting's score, which chooses the candidates that [`rank`](crate::rank) then orders by weights of its own.
/// The blocks' highest scores are made with them, so that a change asks for a new `FORMAT`.
const DEFS: f32 = 3.0;
const PATH: f32 = 1.0;
const K1: f32 = 1.2;
const B: f32 = 0.6;
/// Words of a usual window.
const USUAL: f32 = 160.0;
/// Classes of window lengths, four for each doubling.
const CLASSES: usize = 64;

/// The class of a window of `tokens` words.
fn length_class(tokens: u32) -> u8 {
    ((tokens.max(1) as f32).log2() * 4.0).round().min(CLASSES as f32 - 1.0) as u8
}

/// BM25's part of each payload in a window of each class, 0 to below 1, before the word's rarity.
struct Impacts(Box<[[f32; CLASSES]; 128]>);

impl Impacts {
    fn get() -> &'static Self {
        static TABLE: std::sync::OnceLock<Impacts> = std::sync::OnceLock::new();
        TABLE.get_or_init(|| {
            let mut table = Box::new([[0.0; CLASSES]; 128]);
            for (bits, row) in table.iter_mut().enumerate() {
                let payload = Payload(bits as u8);
                for (class, value) in row.iter_mut().enumerate() {
                    let length = 1.0 - B + B * 2f32.powf(class as f32 / 4.0) / USUAL;
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
    fn of(&self, payload: u8, class: u8) -> f32 {
        self.0[(payload & 127) as usize][(class as usize) & (CLASSES - 1)]
    }
}

/// A word's weight when `n` of `all` windows have it (BM25's).
pub fn rarity(n: u64, all: u64) -> f32 {
    let (n, all) = (n as f32, all.max(n) as f32);
    ((all - n + 0.5) / (n + 0.5) + 1.0).ln()
}
