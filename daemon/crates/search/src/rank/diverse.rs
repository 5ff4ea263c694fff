//! Re-ordering of results for diversity of files or of content.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Scored;
use cairn_tokenizer::words::{Stem, query_stems};

/// The penalty of further results of the same file.
#[derive(Debug, Clone, Copy)]
pub struct Repeat {
    /// Factor per preceding result of the file.
    factor: f32,
    /// Number of results after which the factor no longer decreases.
    max_repeats: i32,
}

impl Repeat {
    /// The default, which prefers other files of similar quality.
    pub const DEFAULT: Self = Self { factor: 0.94, max_repeats: 3 };
    /// For the text of an issue, whose words are in many passages of one file.
    pub const ISSUE: Self = Self { factor: 0.92, max_repeats: 3 };
    /// For requests for results from many files.
    pub const DIVERSE: Self = Self { factor: 0.8, max_repeats: i32::MAX };
}

/// Re-orders passages so that further results of the same file count less; `file` identifies a
/// passage's file.
pub fn diversify(scored: &mut [Scored], repeat: Repeat, file: impl Fn(usize) -> (usize, u32)) {
    let mut seen: FxHashMap<(usize, u32), i32> = FxHashMap::default();
    for (i, score) in scored.iter_mut() {
        let n = seen.entry(file(*i)).or_default();
        // A factor below 1 would improve negative scores.
        if *score > 0.0 {
            *score *= repeat.factor.powi((*n).min(repeat.max_repeats));
        }
        *n += 1;
    }
    scored.sort_by(|a, b| b.1.total_cmp(&a.1));
}

/// Maximal marginal relevance over the first passages of `scored`, whose texts are given.
/// Similarity is the share of common words.
pub fn mmr(scored: &mut [Scored], texts: &[Vec<u8>], lambda: f32) {
    let depth = texts.len().min(scored.len());
    let top = scored.first().map_or(1.0, |s| s.1).max(f32::MIN_POSITIVE);
    let bags: Vec<FxHashSet<Stem>> = texts[..depth]
        .iter()
        .map(|text| query_stems(&String::from_utf8_lossy(text)).into_iter().collect())
        .collect();
    let mut similarity = vec![0f32; depth];
    let mut remaining: Vec<usize> = (0..depth).collect();
    let mut order = Vec::with_capacity(depth);
    while !remaining.is_empty() {
        let value = |n: usize| lambda * scored[n].1 / top - (1.0 - lambda) * similarity[n];
        let best = remaining
            .iter()
            .enumerate()
            .max_by(|a, b| value(*a.1).total_cmp(&value(*b.1)).then(b.0.cmp(&a.0)));
        let Some(at) = best.map(|(at, _)| at) else { break };
        let chosen = remaining.remove(at);
        for other in &remaining {
            let both = bags[chosen].intersection(&bags[*other]).count() as f32;
            let any = (bags[chosen].len() + bags[*other].len()) as f32 - both;
            similarity[*other] = similarity[*other].max(both / any.max(1.0));
        }
        order.push(scored[chosen]);
    }
    scored[..depth].copy_from_slice(&order);
}
