//! Which entries fit a query: words that their keywords or text share with it, rare ones counting more.

use rustc_hash::FxHashMap;

use crate::{MemoryError, Name};

/// Words of a query that count.
const MAX_WORDS: usize = 32;
/// How much more a keyword says than a word of the text.
const KEYWORD: f64 = 3.0;
/// Where further repetitions of a word stop to matter (the `k1` of BM25).
const SATURATION: f64 = 1.2;
/// Characters of an excerpt.
const EXCERPT: usize = 160;

/// An entry that fits.
pub struct Hit {
    /// Its place among those given.
    pub at: usize,
    /// The line with most of the query's words, shortened.
    pub excerpt: String,
}

/// Entries that share a word with `query`, the best first; equal ones by name.
///
/// # Errors
/// `invalid_params` when the query has no word.
pub fn rank<'a>(
    query: &str,
    entries: impl Iterator<Item = (&'a Name, String)>,
) -> Result<Vec<Hit>, MemoryError> {
    let mut wanted: Vec<String> = words(query).collect();
    wanted.sort_unstable();
    wanted.dedup();
    wanted.truncate(MAX_WORDS);
    if wanted.is_empty() {
        return Err(MemoryError::EmptyQuery);
    }
    let mut found = Vec::new();
    let mut spread = vec![0_usize; wanted.len()];
    let mut total = 0_usize;
    for (at, (name, text)) in entries.enumerate() {
        total += 1;
        let weights = weights(&wanted, name, &text);
        for (count, _) in spread.iter_mut().zip(&weights).filter(|(_, w)| **w > 0.0) {
            *count += 1;
        }
        if weights.iter().any(|w| *w > 0.0) {
            found.push((at, weights, excerpt(&wanted, &text)));
        }
    }
    let rarity = |count: usize| ((total as f64 + 1.0) / (count as f64 + 0.5)).ln();
    let score = |weights: &[f64]| weights.iter().zip(&spread).map(|(w, c)| w * rarity(*c)).sum::<f64>();
    let mut hits: Vec<(f64, Hit)> =
        found.into_iter().map(|(at, w, excerpt)| (score(&w), Hit { at, excerpt })).collect();
    hits.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.at.cmp(&b.1.at)));
    Ok(hits.into_iter().map(|(_, hit)| hit).collect())
}

/// How much each word says for an entry.
fn weights(wanted: &[String], name: &Name, text: &str) -> Vec<f64> {
    let mut counts = FxHashMap::<String, f64>::default();
    for word in words(text) {
        *counts.entry(word).or_default() += 1.0;
    }
    let in_name = |word: &str| name.keywords().flat_map(words).any(|k| k == word);
    let one = |word: &String| {
        let times = counts.get(word).copied().unwrap_or_default();
        times / (times + SATURATION) + if in_name(word) { KEYWORD } else { 0.0 }
    };
    wanted.iter().map(one).collect()
}

fn excerpt(wanted: &[String], text: &str) -> String {
    let fits = |line: &&str| words(line).filter(|w| wanted.binary_search(w).is_ok()).count();
    // The first of equal ones.
    let best = text.lines().filter(|l| !l.trim().is_empty()).rev().max_by_key(fits).unwrap_or_default();
    let line = best.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Words in lower case, letters and digits.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase)
}
