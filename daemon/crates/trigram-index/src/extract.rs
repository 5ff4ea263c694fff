//! Extracts the distinct trigrams of a text. A bitmap of all 2^24 trigrams marks those seen; it is
//! cleared through the list of results, so that a small file costs little.

use super::{FOLD, GRAMS, Gram};

/// Maximum distinct trigrams of a file: one with more is hardly text, and nearly every pattern
/// would match its trigrams.
pub const MAX_GRAMS: usize = 1 << 16;

/// A reusable extractor of trigrams.
pub struct Extractor {
    bits: Box<[u64]>,
    trigrams: Vec<Gram>,
    key: Gram,
    /// Number of bytes since the last line end, up to 2.
    run: usize,
}

impl Extractor {
    /// Allocates the bitmap of 2 MB.
    pub fn new() -> Self {
        Self { bits: vec![0; GRAMS / 64].into(), trigrams: Vec::new(), key: 0, run: 0 }
    }

    /// Adds the next piece of a text. No trigram contains a line end; patterns are split there as
    /// well.
    pub fn add(&mut self, text: &[u8]) {
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', text) {
            self.add_in_line(&text[from..end]);
            self.run = 0;
            from = end + 1;
        }
        self.add_in_line(&text[from..]);
    }

    fn add_in_line(&mut self, text: &[u8]) {
        // The first two bytes of a line complete no trigram.
        let prefix = text.len().min(2usize.saturating_sub(self.run));
        let (first, rest) = text.split_at(prefix);
        let mut key = self.key;
        for byte in first {
            key = key << 8 | Gram::from(FOLD[usize::from(*byte)]);
        }
        for byte in rest {
            key = (key << 8 | Gram::from(FOLD[usize::from(*byte)])) & (GRAMS as Gram - 1);
            let (word, bit) = (&mut self.bits[key as usize / 64], 1 << (key % 64));
            if *word & bit == 0 {
                *word |= bit;
                self.trigrams.push(key);
            }
        }
        self.key = key;
        self.run = (self.run + text.len()).min(2);
    }

    /// True if the text has more than [`MAX_GRAMS`] trigrams so far.
    pub fn is_over_limit(&self) -> bool {
        self.trigrams.len() > MAX_GRAMS
    }

    /// Returns the distinct trigrams of the text, unordered, and resets the extractor.
    pub fn take(&mut self) -> Vec<Gram> {
        for key in &self.trigrams {
            self.bits[*key as usize / 64] = 0;
        }
        self.key = 0;
        self.run = 0;
        let trigrams = self.trigrams.clone();
        self.trigrams.clear();
        trigrams
    }
}
