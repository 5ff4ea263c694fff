//! Embeds many texts. Each thread caches the rows of runs of letters and digits, so that most of a
//! text costs one look-up per run.

use std::cell::RefCell;

use crate::embed::{MAX_WORDS, Table};
use cairn_tokenizer::run_table::{MAX_RUN, RunTable};
use cairn_tokenizer::words;

/// Number of cached runs at which a thread's cache is cleared.
const MAX_RUNS: usize = 80_000;

/// Computes the same as [`Table::embed`], for threads that embed many texts with one model.
pub fn embed(model: &Table, text: &[&[u8]]) -> Vec<f32> {
    thread_local!(static CACHE: RefCell<Option<RunCache>> = const { RefCell::new(None) });
    CACHE.with_borrow_mut(|cache| {
        let fits = |m: &RunCache| m.model == *model.hash() && m.runs.len() <= MAX_RUNS;
        if !cache.as_ref().is_some_and(fits) {
            *cache = Some(RunCache::new(model));
        }
        cache.as_mut().map_or_else(Vec::new, |cache| cache.embed(model, text))
    })
}

/// The rows of a run as a range of `rows`, and its number of words. Most runs have a single row of
/// weight 1; it is stored as `from`, with [`ONE_ROW`] as `to`.
#[derive(Clone, Copy)]
struct RunRows {
    from: u32,
    to: u32,
    words: u32,
}

const ONE_ROW: u32 = u32::MAX;
/// Number of runs that are prefetched ahead.
const PREFETCH: usize = 6;

struct RunCache {
    model: [u8; 32],
    runs: RunTable<RunRows>,
    rows: Vec<(u32, f32)>,
    /// The weight of each row in the current text.
    sums: Vec<f32>,
    /// The rows of the current text.
    touched: Vec<u32>,
}

impl RunCache {
    fn new(model: &Table) -> Self {
        Self {
            model: *model.hash(),
            runs: RunTable::default(),
            rows: Vec::new(),
            sums: vec![0.0; model.row_count()],
            touched: Vec::new(),
        }
    }

    fn embed(&mut self, model: &Table, text: &[&[u8]]) -> Vec<f32> {
        // Look-ups in the cache miss the processor's caches: slots are prefetched before the first
        // is read.
        let mut runs: Vec<(&[u8], u128, u64)> = Vec::with_capacity(MAX_WORDS);
        for piece in text {
            words::runs(piece, |run, key| {
                if runs.len() < MAX_WORDS {
                    runs.push((run, key, self.runs.prefetch_slot(run, key)));
                }
            });
        }
        let mut remaining = MAX_WORDS;
        for (n, (run, key, of)) in runs.iter().enumerate() {
            if let Some((_, _, later)) = runs.get(n + PREFETCH) {
                self.runs.prefetch_entry(*later);
            }
            if remaining == 0 {
                break;
            }
            remaining -= self.add(model, run, (*key, *of), remaining);
        }
        let drain_row = |row: &u32| (*row, std::mem::take(&mut self.sums[*row as usize]));
        let bag: Vec<(u32, f32)> = self.touched.iter().map(drain_row).collect();
        self.touched.clear();
        model.embed_bag(&bag)
    }

    /// Adds the rows of a run with at most `remaining` words; returns its number of words.
    #[inline]
    fn add(&mut self, model: &Table, run: &[u8], key: (u128, u64), remaining: usize) -> usize {
        if run.len() <= MAX_RUN {
            let all = &mut self.rows;
            let run_rows = self.runs.get(run, key, || {
                let (rows, words) = model.rows_of(run, MAX_WORDS);
                if let [(row, 1.0)] = rows[..] {
                    return RunRows { from: row, to: ONE_ROW, words: words as u32 };
                }
                let from = all.len() as u32;
                all.extend(rows);
                RunRows { from, to: all.len() as u32, words: words as u32 }
            });
            if run_rows.words as usize <= remaining {
                if run_rows.to == ONE_ROW {
                    self.add_row(run_rows.from, 1.0);
                } else {
                    for at in run_rows.from..run_rows.to {
                        let (row, weight) = self.rows[at as usize];
                        self.add_row(row, weight);
                    }
                }
                return run_rows.words as usize;
            }
        }
        let (rows, words) = model.rows_of(run, remaining);
        rows.into_iter().for_each(|(row, weight)| self.add_row(row, weight));
        words
    }

    #[inline]
    fn add_row(&mut self, row: u32, weight: f32) {
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
        fn bulk_embedding_equals_the_table(texts in proptest::collection::vec("[a-zA-Z0-9_ é日]{0,400}", 1..4)) {
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
