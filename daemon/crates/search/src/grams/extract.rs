//! The distinct trigrams of a text. One bit for each of the 2^24 says which were seen; they are cleared by the list of
//! those found, so that a small file costs little.

use super::{FOLD, GRAMS, Gram};

/// Distinct trigrams of a file at most: one with more is hardly text, and would be found by nearly every pattern.
pub const MAX_GRAMS: usize = 1 << 16;

/// Finds the trigrams of one text after the other.
pub struct Extractor {
    seen: Box<[u64]>,
    found: Vec<Gram>,
    /// The last bytes, and how many of them follow each other without a line's end.
    key: Gram,
    run: usize,
}

impl Extractor {
    /// With 2 MB of bits.
    pub fn new() -> Self {
        Self { seen: vec![0; GRAMS / 64].into(), found: Vec::new(), key: 0, run: 0 }
    }

    /// Takes the next piece of a text. No trigram has a line's end in it: a pattern is cut there as well.
    pub fn add(&mut self, text: &[u8]) {
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', text) {
            self.add_in_line(&text[from..end]);
            (self.run, from) = (0, end + 1);
        }
        self.add_in_line(&text[from..]);
    }

    fn add_in_line(&mut self, text: &[u8]) {
        // The first two bytes of a line end no trigram.
        let lead = text.len().min(2usize.saturating_sub(self.run));
        let (first, rest) = text.split_at(lead);
        let mut key = self.key;
        for byte in first {
            key = key << 8 | Gram::from(FOLD[usize::from(*byte)]);
        }
        for byte in rest {
            key = (key << 8 | Gram::from(FOLD[usize::from(*byte)])) & (GRAMS as Gram - 1);
            let (word, bit) = (&mut self.seen[key as usize / 64], 1 << (key % 64));
            if *word & bit == 0 {
                *word |= bit;
                self.found.push(key);
            }
        }
        self.key = key;
        self.run = (self.run + text.len()).min(2);
    }

    /// Whether it is too many to be kept.
    pub fn is_too_rich(&self) -> bool {
        self.found.len() > MAX_GRAMS
    }

    /// The distinct trigrams of the text, in no order; then another text may begin.
    pub fn take(&mut self) -> Vec<Gram> {
        for key in &self.found {
            self.seen[*key as usize / 64] = 0;
        }
        (self.key, self.run) = (0, 0);
        let found = self.found.clone();
        self.found.clear();
        found
    }
}
