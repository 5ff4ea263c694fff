//! The trigram index of grep: which files contain which three bytes, with ASCII letters folded to
//! lower case.
//!
//! Its immutable segments are mapped files (`grams-<id>.tri`), listed in the table `gram_segment`;
//! `file.grams` is 1 for files whose trigrams are current. A grep skips a file only if a segment
//! covers it: new, changed and uncertain files are read. There is no index in memory beside the
//! files: a few changed files are read by each grep until they are enough for a segment.

mod extract;
mod merge;
mod query;
mod segment;
mod set;
mod store;
#[cfg(test)]
mod tests;

pub use query::{Flags, NEST_LIMIT, Query};
pub use segment::Segment;
pub use set::{SkipSet, TrigramIndex};

/// Maps ASCII letters to lower case and all other bytes, including those of UTF-8 sequences, to
/// themselves.
const FOLD: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).to_ascii_lowercase();
        byte += 1;
    }
    table
};

/// Three bytes as a number, the first byte highest.
type Gram = u32;

/// Number of possible trigrams.
const GRAMS: usize = 1 << 24;
