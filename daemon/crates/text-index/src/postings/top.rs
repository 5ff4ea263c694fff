//! Top-k retrieval over all segments with the MaxScore algorithm: within a range of documents,
//! words whose maximum scores together cannot lift a window into the top k are only looked up in
//! windows that other words have found.

use std::sync::Arc;

use super::segment::{Cursor, Segment};
use super::set::Position;
use cairn_index_base::CancelFlag;
use cairn_index_base::FileSet;

/// Number of documents in one range.
const RANGE: u32 = 4096;

/// A stem of a query with its weight.
#[derive(Debug, Clone, Copy)]
pub struct Term<'a> {
    pub word: &'a [u8],
    pub weight: f32,
}

/// A window of the result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Position of its segment in the snapshot.
    pub segment: u32,
    /// Number of its document in the segment.
    pub doc: u32,
    pub score: f32,
}

impl From<&Hit> for Position {
    fn from(hit: &Hit) -> Self {
        Self { segment: hit.segment, doc: hit.doc }
    }
}

/// The `k` windows with the highest scores, best first, restricted to `files` if given.
///
/// # Errors
/// `cancelled`.
pub fn search_top(
    segments: &[Arc<Segment>],
    terms: &[Term<'_>],
    k: usize,
    files: Option<&FileSet>,
    cancel: &CancelFlag,
) -> Result<Vec<Hit>, cairn_protocol::error::Failure> {
    let mut top = Top { k: k.max(1), hits: Vec::with_capacity(4 * k.max(1)), threshold: 0.0 };
    for (n, segment) in (0u32..).zip(segments) {
        let mut search = Search::new(n, segment, terms, files);
        let mut from = 0;
        while from < segment.docs() && !search.words.is_empty() {
            cancel.check()?;
            let to = from.saturating_add(RANGE);
            search.range(from, to, &mut top);
            from = to.max(search.next_doc(to));
        }
    }
    top.truncate();
    Ok(top.hits)
}

struct Top {
    k: usize,
    hits: Vec<Hit>,
    /// The score that a window must exceed.
    threshold: f32,
}

impl Top {
    fn push(&mut self, hit: Hit) {
        self.hits.push(hit);
        if self.hits.len() >= 4 * self.k {
            self.truncate();
        }
    }

    fn truncate(&mut self) {
        let order = |a: &Hit, b: &Hit| {
            b.score.total_cmp(&a.score).then((a.segment, a.doc).cmp(&(b.segment, b.doc)))
        };
        self.hits.sort_unstable_by(order);
        self.hits.truncate(self.k);
        if self.hits.len() == self.k {
            self.threshold = self.hits[self.k - 1].score;
        }
    }
}

struct Word<'a> {
    cursor: Cursor<'a>,
    weight: f32,
    /// Upper bound of its score in the current range.
    max_score: f32,
}

struct Search<'a> {
    n: u32,
    segment: &'a Segment,
    words: Vec<Word<'a>>,
    files: Option<&'a FileSet>,
    sums: Box<[f32; RANGE as usize]>,
    touched: [u64; RANGE as usize / 64],
}

impl<'a> Search<'a> {
    fn new(n: u32, segment: &'a Segment, terms: &[Term<'_>], files: Option<&'a FileSet>) -> Self {
        let word = |t: &Term<'_>| {
            let term_number = segment.term(t.word)?;
            Some(Word { cursor: segment.cursor(term_number), weight: t.weight, max_score: 0.0 })
        };
        let words = terms.iter().filter_map(word).collect();
        let sums = Box::new([0.0; RANGE as usize]);
        Self { n, segment, words, files, sums, touched: [0; RANGE as usize / 64] }
    }

    /// The next document at or after `to` that any word may have, which skips ranges without
    /// documents.
    fn next_doc(&self, to: u32) -> u32 {
        self.words.iter().map(|w| w.cursor.doc()).min().unwrap_or(u32::MAX).max(to)
    }

    fn range(&mut self, from: u32, to: u32, top: &mut Top) {
        for word in &mut self.words {
            // Stored maxima are rounded up but sums are not; the factor absorbs their rounding
            // errors.
            word.max_score = word.cursor.max_score(from, to) * word.weight * 1.0001;
        }
        self.words.sort_by(|a, b| a.max_score.total_cmp(&b.max_score));
        let (mut optional_max, mut optional) = (0.0, 0);
        while optional < self.words.len()
            && optional_max + self.words[optional].max_score <= top.threshold
        {
            optional_max += self.words[optional].max_score;
            optional += 1;
        }
        let (optional, required) = self.words.split_at_mut(optional);
        if required.is_empty() {
            return;
        }
        for word in required {
            word.cursor.seek(from);
            while word.cursor.doc() < to {
                let doc = word.cursor.doc();
                let at = (doc - from) as usize;
                self.sums[at] += word.weight * self.segment.score(word.cursor.payload(), doc);
                self.touched[at / 64] |= 1 << (at % 64);
                word.cursor.advance();
            }
        }
        for group in 0..self.touched.len() {
            let mut bits = std::mem::take(&mut self.touched[group]);
            while bits != 0 {
                let at = group * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let sum = std::mem::take(&mut self.sums[at]);
                finish_doc(
                    self.n,
                    self.segment,
                    self.files,
                    from + at as u32,
                    sum,
                    optional,
                    optional_max,
                    top,
                );
            }
        }
    }
}

/// Adds the optional words to a document's sum while the document can still reach the top k.
#[expect(
    clippy::too_many_arguments,
    reason = "the state of the inner loop, borrowed field by field"
)]
fn finish_doc(
    n: u32,
    segment: &Segment,
    files: Option<&FileSet>,
    doc: u32,
    mut sum: f32,
    optional: &mut [Word<'_>],
    mut optional_max: f32,
    top: &mut Top,
) {
    for word in optional.iter_mut().rev() {
        if sum + optional_max <= top.threshold {
            return;
        }
        optional_max -= word.max_score;
        word.cursor.seek(doc);
        if word.cursor.doc() == doc {
            sum += word.weight * segment.score(word.cursor.payload(), doc);
        }
    }
    if sum <= top.threshold || segment.is_dead(doc) || doc >= segment.docs() {
        return;
    }
    if files.is_none_or(|files| files.contains(&segment.doc(doc).file)) {
        top.push(Hit { segment: n, doc, score: sum });
    }
}
