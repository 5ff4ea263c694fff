//! Lexical candidates: the terms of a query and the windows with the best scores for them.

use cairn_protocol::error::Failure;

use cairn_index_base::CancelFlag;
use cairn_index_base::FileSet;
use cairn_text_index::{Hit, Snapshot, rarity};
use cairn_tokenizer::words::{Stem, is_stop_word};

use crate::scripts::without_joints;

/// Maximum number of query words that are used.
const MAX_STEMS: usize = 64;

/// A word of the query with its frequency.
#[derive(Debug, Clone)]
pub struct Term {
    pub stem: Stem,
    /// Number of chunks with the word.
    pub chunks: u64,
    /// BM25 weight for that frequency.
    pub rarity: f32,
}

/// The selective words of a query in order, with their frequencies; all words if none is selective.
pub fn terms(snapshot: &Snapshot, stems: &[Stem]) -> Vec<Term> {
    let selective: Vec<Stem> = stems.iter().copied().filter(|s| !is_stop_word(s)).collect();
    let chosen = if selective.is_empty() { stems } else { &selective };
    let all = snapshot.docs();
    let term = |stem: &Stem| {
        let chunks = snapshot.frequency(stem.as_bytes());
        Term { stem: *stem, chunks, rarity: rarity(chunks, all) }
    };
    without_joints(chosen.iter().take(MAX_STEMS).map(term).collect())
}

/// The chunks that match the terms, best first, at most `limit`, restricted to `files` if given.
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
    let words: Vec<_> = known
        .map(|t| cairn_text_index::Term { word: t.stem.as_bytes(), weight: t.rarity })
        .collect();
    cairn_text_index::search_top(&snapshot.segments, &words, limit, files, cancel)
}
