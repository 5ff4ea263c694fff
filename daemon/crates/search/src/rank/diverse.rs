//! Orders that spread the answers: over files, or over what they say.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Scored;
use crate::words::{Stem, query_stems};

/// How much less further results of one file count.
#[derive(Debug, Clone, Copy)]
pub struct Repeat {
    /// The factor for each.
    factor: f32,
    /// After how many it does not become less.
    most: i32,
}

impl Repeat {
    /// When nothing else was asked for: enough to let another file come first that is as good.
    pub const USUAL: Self = Self { factor: 0.96, most: 3 };
    /// When answers from many files are asked for.
    pub const DIVERSE: Self = Self { factor: 0.8, most: i32::MAX };
}

/// Orders anew so that further results of one file count less; `file` tells which file an entry is of.
pub fn diversify(scored: &mut [Scored], repeat: Repeat, file: impl Fn(usize) -> (usize, u32)) {
    let mut seen: FxHashMap<(usize, u32), i32> = FxHashMap::default();
    for (i, score) in scored.iter_mut() {
        let n = seen.entry(file(*i)).or_default();
        // What counts against an answer must not become less by it.
        if *score > 0.0 {
            *score *= repeat.factor.powi((*n).min(repeat.most));
        }
        *n += 1;
    }
    scored.sort_by(|a, b| b.1.total_cmp(&a.1));
}

/// Maximal marginal relevance over the first of `scored`, whose texts these are: likeness is the share of words in
/// common.
pub fn mmr(scored: &mut [Scored], texts: &[Vec<u8>], lambda: f32) {
    let depth = texts.len().min(scored.len());
    let top = scored.first().map_or(1.0, |s| s.1).max(f32::MIN_POSITIVE);
    let bags: Vec<FxHashSet<Stem>> = texts[..depth]
        .iter()
        .map(|text| query_stems(&String::from_utf8_lossy(text)).into_iter().collect())
        .collect();
    let mut likeness = vec![0f32; depth];
    let mut left: Vec<usize> = (0..depth).collect();
    let mut order = Vec::with_capacity(depth);
    while !left.is_empty() {
        let value = |n: usize| lambda * scored[n].1 / top - (1.0 - lambda) * likeness[n];
        let best =
            left.iter().enumerate().max_by(|a, b| value(*a.1).total_cmp(&value(*b.1)).then(b.0.cmp(&a.0)));
        let Some(at) = best.map(|(at, _)| at) else { break };
        let taken = left.remove(at);
        for other in &left {
            let both = bags[taken].intersection(&bags[*other]).count() as f32;
            let any = (bags[taken].len() + bags[*other].len()) as f32 - both;
            likeness[*other] = likeness[*other].max(both / any.max(1.0));
        }
        order.push(scored[taken]);
    }
    scored[..depth].copy_from_slice(&order);
}
