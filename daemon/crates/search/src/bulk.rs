//! Embedding many texts: each thread remembers which rows a run of letters and digits means, so that most of a text is
//! one look-up a run.

use std::cell::RefCell;

use crate::embed::{MAX_WORDS, Table};
use crate::table::{MAX_RUN, RunTable};
use crate::words;

/// Runs a thread remembers before it begins anew.
const MAX_KNOWN: usize = 80_000;

/// What [`Table::embed`] gives, by a thread that embeds many texts with the same model.
pub fn embed(model: &Table, text: &[&[u8]]) -> Vec<f32> {
    thread_local!(static MEMORY: RefCell<Option<Memory>> = const { RefCell::new(None) });
    MEMORY.with_borrow_mut(|memory| {
        let fits = |m: &Memory| m.model == *model.hash() && m.runs.len() <= MAX_KNOWN;
        if !memory.as_ref().is_some_and(fits) {
            *memory = Some(Memory::new(model));
        }
        memory.as_mut().map_or_else(Vec::new, |memory| memory.embed(model, text))
    })
}

/// The rows of a run, as a range of `rows`, and its words. A run of one row that counts whole, as most are, has the row
/// as `from` and [`ONE_ROW`] as `to`.
#[derive(Clone, Copy)]
struct Meaning {
    from: u32,
    to: u32,
    words: u32,
}

const ONE_ROW: u32 = u32::MAX;
/// How many words ahead are asked for.
const AHEAD: usize = 6;

struct Memory {
    model: [u8; 32],
    runs: RunTable<Meaning>,
    rows: Vec<(u32, f32)>,
    /// The weight of each row in the text at work, and the rows it has.
    sums: Vec<f32>,
    touched: Vec<u32>,
}

impl Memory {
    fn new(model: &Table) -> Self {
        Self {
            model: *model.hash(),
            runs: RunTable::new(),
            rows: Vec::new(),
            sums: vec![0.0; model.row_count()],
            touched: Vec::new(),
        }
    }

    fn embed(&mut self, model: &Table, text: &[&[u8]]) -> Vec<f32> {
        // What is known of words lies all over the memory: some are looked for before the first is needed.
        let mut found: Vec<(&[u8], u128, u64)> = Vec::with_capacity(MAX_WORDS);
        for piece in text {
            words::runs(piece, |run, key| {
                if found.len() < MAX_WORDS {
                    found.push((run, key, self.runs.prefetch_slot(run, key)));
                }
            });
        }
        let mut left = MAX_WORDS;
        for (n, (run, key, of)) in found.iter().enumerate() {
            if let Some((_, _, later)) = found.get(n + AHEAD) {
                self.runs.prefetch_entry(*later);
            }
            if left == 0 {
                break;
            }
            left -= self.add(model, run, (*key, *of), left);
        }
        let take = |row: &u32| (*row, std::mem::take(&mut self.sums[*row as usize]));
        let bag: Vec<(u32, f32)> = self.touched.iter().map(take).collect();
        self.touched.clear();
        model.of_bag(&bag)
    }

    /// Adds the rows of a run, of at most `left` words; returns how many words it had.
    #[inline]
    fn add(&mut self, model: &Table, run: &[u8], key: (u128, u64), left: usize) -> usize {
        if run.len() <= MAX_RUN {
            let all = &mut self.rows;
            let known = self.runs.get(run, key, || {
                let (rows, words) = model.rows_of(run, MAX_WORDS);
                if let [(row, 1.0)] = rows[..] {
                    return Meaning { from: row, to: ONE_ROW, words: words as u32 };
                }
                let from = all.len() as u32;
                all.extend(rows);
                Meaning { from, to: all.len() as u32, words: words as u32 }
            });
            if known.words as usize <= left {
                if known.to == ONE_ROW {
                    self.put(known.from, 1.0);
                } else {
                    for at in known.from..known.to {
                        let (row, weight) = self.rows[at as usize];
                        self.put(row, weight);
                    }
                }
                return known.words as usize;
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
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn bulk_gives_the_same_vectors(texts in proptest::collection::vec("[a-zA-Z0-9_ é日]{0,400}", 1..4)) {
            let model = Table::builtin().unwrap();
            for text in &texts {
                let long = text.repeat(6);
                let pieces: [&[u8]; 2] = [b"src/some_path.rs ", long.as_bytes()];
                let (a, b) = (embed(&model, &pieces), model.embed(&pieces));
                assert!(a.iter().zip(&b).all(|(x, y)| (x - y).abs() < 1e-5));
            }
        }
    }
}
