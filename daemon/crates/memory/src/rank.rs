//! Ranking of entries for a query: shared words, weighted by rarity and by where they occur.

use rustc_hash::FxHashMap;

use crate::{MemoryError, Name};

/// Further words of a query are ignored.
const MAX_WORDS: usize = 32;
/// A match in the keywords adds this much; a match in the text adds less than 1.
const KEYWORD_WEIGHT: f64 = 3.0;
/// The `k1` of BM25: it controls how fast repetitions of a word stop adding to the score.
const SATURATION: f64 = 1.2;
const MAX_EXCERPT: usize = 160;

pub struct Hit {
    /// Index of the entry in the input.
    pub index: usize,
    /// The line that shares most words with the query, shortened.
    pub excerpt: String,
}

/// Ranks the entries that share a word with `query`, best first; ties keep the input order.
///
/// # Errors
/// `invalid_params` when the query has no word.
pub fn rank<'a>(
    query: &str,
    entries: impl Iterator<Item = (&'a Name, String)>,
) -> Result<Vec<Hit>, MemoryError> {
    let mut query_words: Vec<String> = words(query).collect();
    query_words.sort_unstable();
    query_words.dedup();
    query_words.truncate(MAX_WORDS);
    if query_words.is_empty() {
        return Err(MemoryError::EmptyQuery);
    }
    let mut matching = Vec::new();
    let mut document_frequency = vec![0_usize; query_words.len()];
    let mut total = 0_usize;
    for (index, (name, text)) in entries.enumerate() {
        total += 1;
        let weights = weights(&query_words, name, &text);
        for (count, _) in document_frequency.iter_mut().zip(&weights).filter(|(_, w)| **w > 0.0) {
            *count += 1;
        }
        if weights.iter().any(|w| *w > 0.0) {
            matching.push((index, weights, excerpt(&query_words, &text)));
        }
    }
    let rarity = |count: usize| ((total as f64 + 1.0) / (count as f64 + 0.5)).ln();
    let score = |weights: &[f64]| {
        weights.iter().zip(&document_frequency).map(|(w, c)| w * rarity(*c)).sum::<f64>()
    };
    let mut hits: Vec<(f64, Hit)> = matching
        .into_iter()
        .map(|(index, w, excerpt)| (score(&w), Hit { index, excerpt }))
        .collect();
    hits.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.index.cmp(&b.1.index)));
    Ok(hits.into_iter().map(|(_, hit)| hit).collect())
}

/// Weight of each query word for one entry; 0 when the entry lacks it.
fn weights(query_words: &[String], name: &Name, text: &str) -> Vec<f64> {
    let mut counts = FxHashMap::<String, f64>::default();
    for word in words(text) {
        *counts.entry(word).or_default() += 1.0;
    }
    let in_name = |word: &str| name.keywords().flat_map(words).any(|k| k == word);
    let one = |word: &String| {
        let times = counts.get(word).copied().unwrap_or_default();
        times / (times + SATURATION) + if in_name(word) { KEYWORD_WEIGHT } else { 0.0 }
    };
    query_words.iter().map(one).collect()
}

fn excerpt(query_words: &[String], text: &str) -> String {
    let shared_words =
        |line: &&str| words(line).filter(|w| query_words.binary_search(w).is_ok()).count();
    // `rev` makes `max_by_key` return the first of equal lines.
    let best = text
        .lines()
        .filter(|l| !l.trim().is_empty())
        .rev()
        .max_by_key(shared_words)
        .unwrap_or_default();
    let line = best.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_EXCERPT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Lower-case runs of letters and digits.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase)
}
