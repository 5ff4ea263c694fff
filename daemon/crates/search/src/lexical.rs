//! Candidates by words: the terms of a query and the windows that hold the most telling of them.

use cairn_protocol::error::Failure;

use crate::dense::FileSet;
use crate::postings::{self, Hit, Snapshot, rarity};
use crate::sync::CancelFlag;
use crate::words::{Stem, is_stop};

/// Words of a query that count.
const MAX_STEMS: usize = 64;

/// A word of the query and how many chunks have it.
#[derive(Debug, Clone)]
pub struct Term {
    pub stem: Stem,
    pub chunks: u64,
    /// Its weight by that.
    pub rarity: f32,
}

/// The words of a query that say something, in order, with their frequencies.
pub fn terms(snapshot: &Snapshot, stems: &[Stem]) -> Vec<Term> {
    let telling: Vec<Stem> = stems.iter().copied().filter(|s| !is_stop(s)).collect();
    let chosen = if telling.is_empty() { stems } else { &telling };
    let all = snapshot.docs();
    let term = |stem: &Stem| {
        let chunks = snapshot.frequency(stem.as_bytes());
        Term { stem: *stem, chunks, rarity: rarity(chunks, all) }
    };
    chosen.iter().take(MAX_STEMS).map(term).collect()
}

/// Chunks that match the terms, best first, at most `limit`, in `files` only when given.
///
/// # Errors
/// `cancelled`.
pub fn candidates(
    snapshot: &Snapshot,
    terms: &[Term],
    limit: usize,
    files: Option<&FileSet>,
    cancel: &CancelFlag,
) -> Result<Vec<Hit>, Failure> {
    let known = terms.iter().filter(|t| t.chunks > 0);
    let words: Vec<_> = known.map(|t| postings::Term { word: t.stem.as_bytes(), weight: t.rarity }).collect();
    postings::best(&snapshot.segments, &words, limit, files, cancel)
}
