//! Embedding many texts: each thread remembers which rows a run of letters and digits means, so that most of a text is
//! one look-up a run.

use std::cell::RefCell;

use crate::embed::{Embedder, MAX_WORDS};
use crate::table::{Table, hash};
use crate::words;

/// Longest run that is remembered, in bytes.
const MAX_RUN: usize = 48;
/// Runs a thread remembers before it begins anew.
const MAX_KNOWN: usize = 40_000;

/// What [`Embedder::embed`] gives, by a thread that embeds many texts with the same model.
pub fn embed(model: &Embedder, text: &[&[u8]]) -> Vec<f32> {
    thread_local!(static MEMORY: RefCell<Option<Memory>> = const { RefCell::new(None) });
    MEMORY.with_borrow_mut(|memory| {
        let fits = |m: &Memory| m.model == *model.hash() && m.ends.len() <= MAX_KNOWN;
        if !memory.as_ref().is_some_and(fits) {
            *memory = Some(Memory::new(model));
        }
        memory.as_mut().map_or_else(Vec::new, |memory| memory.embed(model, text))
    })
}

struct Memory {
    model: [u8; 32],
    table: Table,
    /// Where each run's bytes, rows and words end, all counted from the first.
    ends: Vec<(u32, u32, u32)>,
    bytes: Vec<u8>,
    rows: Vec<(u32, f32)>,
    /// The weight of each row in the text at work, and the rows it has.
    sums: Vec<f32>,
    touched: Vec<u32>,
}

impl Memory {
    fn new(model: &Embedder) -> Self {
        Self {
            model: *model.hash(),
            table: Table::new(1 << 12),
            ends: vec![(0, 0, 0)],
            bytes: Vec::new(),
            rows: Vec::new(),
            sums: vec![0.0; model.row_count()],
            touched: Vec::new(),
        }
    }

    fn embed(&mut self, model: &Embedder, text: &[&[u8]]) -> Vec<f32> {
        let mut left = MAX_WORDS;
        for piece in text {
            words::runs(piece, |run, _| {
                if left > 0 {
                    left -= self.add(model, run, left);
                }
            });
        }
        self.touched.sort_unstable();
        let take = |row: &u32| (*row, std::mem::take(&mut self.sums[*row as usize]));
        let bag: Vec<(u32, f32)> = self.touched.iter().map(take).collect();
        self.touched.clear();
        model.of_bag(&bag)
    }

    /// Adds the rows of a run, of at most `left` words; returns how many words it had.
    fn add(&mut self, model: &Embedder, run: &[u8], left: usize) -> usize {
        if run.len() <= MAX_RUN {
            let entry = self.entry(model, run);
            let (from, to) = (self.ends[entry], self.ends[entry + 1]);
            let words = (to.2 - from.2) as usize;
            if words <= left {
                for at in from.1..to.1 {
                    let (row, weight) = self.rows[at as usize];
                    self.put(row, weight);
                }
                return words;
            }
        }
        let (rows, words) = model.rows_of(run, left);
        rows.into_iter().for_each(|(row, weight)| self.put(row, weight));
        words
    }

    #[inline]
    fn put(&mut self, row: u32, weight: f32) {
        let sum = &mut self.sums[row as usize];
        if *sum == 0.0 {
            self.touched.push(row);
        }
        *sum += weight;
    }

    fn entry(&mut self, model: &Embedder, run: &[u8]) -> usize {
        let of = hash(run);
        let (ends, bytes) = (&self.ends, &self.bytes);
        let known = |e: u32| &bytes[ends[e as usize].0 as usize..ends[e as usize + 1].0 as usize];
        match self.table.find(of, |e| known(e) == run) {
            Ok(entry) => entry as usize,
            Err(slot) => {
                let entry = self.ends.len() - 1;
                let (rows, words) = model.rows_of(run, MAX_WORDS);
                self.rows.extend(rows);
                self.bytes.extend_from_slice(run);
                let before = self.ends[entry].2;
                self.ends.push((self.bytes.len() as u32, self.rows.len() as u32, before + words as u32));
                let (ends, bytes) = (&self.ends, &self.bytes);
                self.table.put(slot, of, entry as u32, |e| {
                    hash(&bytes[ends[e as usize].0 as usize..ends[e as usize + 1].0 as usize])
                });
                entry
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn bulk_gives_the_same_vectors(texts in proptest::collection::vec("[a-zA-Z0-9_ é日]{0,400}", 1..4)) {
            let model = Embedder::builtin().unwrap();
            for text in &texts {
                let long = text.repeat(6);
                let pieces: [&[u8]; 2] = [b"src/some_path.rs ", long.as_bytes()];
                let (a, b) = (embed(&model, &pieces), model.embed(&pieces));
                assert!(a.iter().zip(&b).all(|(x, y)| (x - y).abs() < 1e-5));
            }
        }
    }
}
