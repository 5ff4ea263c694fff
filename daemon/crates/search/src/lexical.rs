//! Lexical candidates: the terms of a query and the windows with the best scores for them.

use cairn_protocol::error::Failure;

use cairn_index_base::CancelFlag;
use cairn_index_base::FileSet;
use cairn_text_index::{Hit, Snapshot, rarity};
use cairn_tokenizer::words::{Stem, is_stop_word};

use crate::parsed::{MAX_WORDS, Words};
use crate::scripts::without_joints;

/// Maximum words whose frequencies are read, the heaviest ones.
const MAX_COMPARED: usize = 400;

/// A word of the query with its frequency.
#[derive(Debug, Clone)]
pub struct Term {
    pub stem: Stem,
    /// Number of chunks with the word.
    pub chunks: u64,
    /// BM25 weight for that frequency, times the word's weight in the query.
    pub rarity: f32,
}

/// The selective words of a query in order, with their frequencies; all words if none is selective.
/// Of a long query the words with the greatest weights.
pub fn terms(snapshot: &Snapshot, words: &Words) -> Vec<Term> {
    let mut chosen: Vec<(usize, &(Stem, f32))> =
        words.iter().enumerate().filter(|(_, (stem, _))| !is_stop_word(stem)).collect();
    if chosen.is_empty() {
        chosen = words.iter().enumerate().collect();
    }
    if chosen.len() > MAX_COMPARED {
        chosen.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
        chosen.truncate(MAX_COMPARED);
    }
    let all = snapshot.docs();
    let mut terms: Vec<(usize, Term)> = chosen
        .into_iter()
        .map(|(at, (stem, weight))| {
            let chunks = snapshot.frequency(stem.as_bytes());
            (at, Term { stem: *stem, chunks, rarity: weight * rarity(chunks, all) })
        })
        .collect();
    if terms.len() > MAX_WORDS {
        // A word that no chunk has would only take the place of others.
        terms.retain(|(_, term)| term.chunks > 0);
        terms.sort_by(|a, b| b.1.rarity.total_cmp(&a.1.rarity));
        terms.truncate(MAX_WORDS);
        terms.sort_by_key(|(at, _)| *at);
    }
    without_joints(terms.into_iter().map(|(_, term)| term).collect())
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
