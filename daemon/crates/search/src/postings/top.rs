//! The best windows for some words, over all segments: in ranges of documents, words whose highest scores together
//! cannot lift a window among the best are looked up only where others have already (the MaxScore idea).

use std::sync::Arc;

use super::segment::{Cursor, Segment};
use crate::dense::FileSet;
use crate::sync::CancelFlag;

/// Documents of one range.
const RANGE: u32 = 4096;

/// A word of a query and its weight.
#[derive(Debug, Clone, Copy)]
pub struct Term<'a> {
    /// Its stem.
    pub word: &'a [u8],
    /// Its rarity.
    pub weight: f32,
}

/// A window found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Its segment's place in the snapshot, and the document there.
    pub segment: u32,
    pub doc: u32,
    /// Sum of its words' scores.
    pub score: f32,
}

/// The `k` best windows, best first; in `files` only, when given.
///
/// # Errors
/// `cancelled`.
pub fn best(
    segments: &[Arc<Segment>],
    terms: &[Term<'_>],
    k: usize,
    files: Option<&FileSet>,
    cancel: &CancelFlag,
) -> Result<Vec<Hit>, cairn_protocol::error::Failure> {
    let mut top = Top { k: k.max(1), hits: Vec::with_capacity(4 * k.max(1)), floor: 0.0 };
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
    top.cut();
    Ok(top.hits)
}

struct Top {
    k: usize,
    hits: Vec<Hit>,
    /// What a score must exceed.
    floor: f32,
}

impl Top {
    fn push(&mut self, hit: Hit) {
        self.hits.push(hit);
        if self.hits.len() >= 4 * self.k {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let by =
            |a: &Hit, b: &Hit| b.score.total_cmp(&a.score).then((a.segment, a.doc).cmp(&(b.segment, b.doc)));
        self.hits.sort_unstable_by(by);
        self.hits.truncate(self.k);
        if self.hits.len() == self.k {
            self.floor = self.hits[self.k - 1].score;
        }
    }
}

struct Word<'a> {
    cursor: Cursor<'a>,
    weight: f32,
    /// The most it gives in the range.
    most: f32,
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
            let place = segment.term(t.word)?;
            Some(Word { cursor: segment.cursor(place), weight: t.weight, most: 0.0 })
        };
        let words = terms.iter().filter_map(word).collect();
        let sums = Box::new([0.0; RANGE as usize]);
        Self { n, segment, words, files, sums, touched: [0; RANGE as usize / 64] }
    }

    /// The first document at or after `to` that a word stands at or before; ranges without any are jumped over.
    fn next_doc(&self, to: u32) -> u32 {
        self.words.iter().map(|w| w.cursor.doc()).min().unwrap_or(u32::MAX).max(to)
    }

    fn range(&mut self, from: u32, to: u32, top: &mut Top) {
        for word in &mut self.words {
            // Rounded up in storage; the sums are not, so leave room for their rounding.
            word.most = word.cursor.most_in(from, to) * word.weight * 1.0001;
        }
        self.words.sort_by(|a, b| a.most.total_cmp(&b.most));
        let (mut below, mut optional) = (0.0, 0);
        while optional < self.words.len() && below + self.words[optional].most <= top.floor {
            below += self.words[optional].most;
            optional += 1;
        }
        let (optional, needed) = self.words.split_at_mut(optional);
        if needed.is_empty() {
            return;
        }
        for word in needed {
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
                finish(self.n, self.segment, self.files, from + at as u32, sum, optional, below, top);
            }
        }
    }
}

/// Adds the optional words to a document's sum as long as it may be among the best.
#[expect(clippy::too_many_arguments, reason = "the inner loop's state, borrowed apart")]
fn finish(
    n: u32,
    segment: &Segment,
    files: Option<&FileSet>,
    doc: u32,
    mut sum: f32,
    optional: &mut [Word<'_>],
    mut below: f32,
    top: &mut Top,
) {
    for word in optional.iter_mut().rev() {
        if sum + below <= top.floor {
            return;
        }
        below -= word.most;
        word.cursor.seek(doc);
        if word.cursor.doc() == doc {
            sum += word.weight * segment.score(word.cursor.payload(), doc);
        }
    }
    if sum <= top.floor || segment.is_dead(doc) || doc >= segment.docs() {
        return;
    }
    if files.is_none_or(|files| files.contains(&segment.doc(doc).file)) {
        top.push(Hit { segment: n, doc, score: sum });
    }
}
