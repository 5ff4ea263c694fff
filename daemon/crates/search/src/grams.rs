//! The trigram index of grep: which files hold which three bytes, letters of ASCII folded to lower case.
//!
//! Immutable segments in mapped files (`grams-<id>.tri`), listed in the database's `gram_segment`; `file.grams` says of
//! which files the trigrams are those of the text. The rule is that a file is passed over by a grep only when its
//! trigrams speak for it: what is new, changed or in doubt is read. Nothing is held in memory beside the files: a few
//! changed files are read by each grep until they are enough for a segment.

mod extract;
mod merge;
mod query;
mod segment;
mod set;
mod store;
#[cfg(test)]
mod tests;

pub use query::{Flags, NEST_LIMIT, Query};
pub use set::{Grams, Skips};
pub use store::{batch, kill_paths, open, tidy, verify};

/// Lower case for ASCII letters; all other bytes, those of UTF-8 among them, as they are.
const FOLD: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).to_ascii_lowercase();
        byte += 1;
    }
    table
};

/// Three bytes as a number, first byte highest.
type Gram = u32;

/// Trigrams there can be.
const GRAMS: usize = 1 << 24;
