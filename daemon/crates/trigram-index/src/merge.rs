//! Builds a segment from trigrams, and merges several segments into one.

use super::Gram;
use super::segment::{Damaged, Doc, Segment, Writer};

/// Maximum files of one builder: a document's number shares a u32 with half a trigram.
pub const MAX_DOCS: usize = 1 << 16;
const DIGIT: u32 = 12;
const DIGITS: usize = 1 << DIGIT;

/// Collects files with their trigrams and builds a segment from them.
#[derive(Default)]
pub struct Builder {
    docs: Vec<Doc>,
    /// The trigrams of all documents, grouped by document.
    grams: Vec<Gram>,
    /// End of each document's trigrams.
    ends: Vec<usize>,
}

impl Builder {
    /// Adds a file with its distinct trigrams. File ids must ascend; at most [`MAX_DOCS`] files are
    /// allowed.
    pub fn add(&mut self, doc: Doc, grams: &[Gram]) {
        self.docs.push(doc);
        self.grams.extend_from_slice(grams);
        self.ends.push(self.grams.len());
    }

    pub fn docs(&self) -> &[Doc] {
        &self.docs
    }

    /// Number of pairs of a trigram and a file.
    pub fn len(&self) -> usize {
        self.grams.len()
    }

    /// Returns the files and the bytes of the segment.
    pub fn finish(mut self) -> (Vec<Doc>, Vec<u8>) {
        let mut writer = Writer::new();
        self.docs.iter().for_each(|doc| writer.doc(doc));
        // A radix sort with two stable passes, by the low digit and then by the high one. Each pass
        // replaces its digit by the document's number, since the digit follows from the
        // bucket.
        let low_digit = |gram: Gram| gram as usize % DIGITS;
        let (by_low, starts) = {
            let starts = starts(self.grams.iter().map(|gram| low_digit(*gram)));
            let (mut next, mut out, mut from) = (starts.clone(), vec![0u32; self.grams.len()], 0);
            for (doc, end) in (0u32..).zip(&self.ends) {
                for gram in &self.grams[from..*end] {
                    let at = &mut next[low_digit(*gram)];
                    out[*at] = gram >> DIGIT << 16 | doc;
                    *at += 1;
                }
                from = *end;
            }
            (out, starts)
        };
        let high_digit = self::starts(by_low.iter().map(|posting| (posting >> 16) as usize));
        let mut next = high_digit.clone();
        for (low_digit, range) in (0u32..).zip(starts.windows(2)) {
            for posting in &by_low[range[0]..range[1]] {
                let at = &mut next[(posting >> 16) as usize];
                self.grams[*at] = low_digit << 16 | (posting & 0xFFFF);
                *at += 1;
            }
        }
        drop(by_low);
        let mut docs = Vec::new();
        for (high_digit, range) in (0u32..).zip(high_digit.windows(2)) {
            for group in self.grams[range[0]..range[1]].chunk_by(|a, b| a >> 16 == b >> 16) {
                docs.clear();
                docs.extend(group.iter().map(|posting| posting & 0xFFFF));
                writer.list(high_digit << DIGIT | group[0] >> 16, &docs);
            }
        }
        (self.docs, writer.finish())
    }
}

/// The start of each digit's bucket, and the end of the last one.
fn starts(digits: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut starts = vec![0; DIGITS + 1];
    digits.for_each(|digit| starts[digit + 1] += 1);
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    starts
}

/// Merges segments into the bytes of one without dead documents; `None` if all documents are dead.
pub fn merge(segments: &[&Segment]) -> Result<Option<Vec<u8>>, Damaged> {
    let mut docs: Vec<(Doc, usize, u32)> = Vec::new();
    for (n, segment) in segments.iter().enumerate() {
        docs.extend(segment.alive().map(|doc| (segment.doc(doc), n, doc)));
    }
    if docs.is_empty() {
        return Ok(None);
    }
    docs.sort_unstable_by_key(|(doc, ..)| doc.file);
    let mut writer = Writer::new();
    let mut new_ids: Vec<Vec<u32>> =
        segments.iter().map(|s| vec![u32::MAX; s.docs() as usize]).collect();
    for (new_id, (doc, n, old)) in (0..).zip(&docs) {
        writer.doc(doc);
        new_ids[*n][*old as usize] = new_id;
    }
    drop(docs);
    let mut walks: Vec<_> = segments.iter().map(|s| s.lists()).collect();
    let mut heads = Vec::with_capacity(segments.len());
    for (walk, segment) in walks.iter_mut().zip(segments) {
        heads.push(walk.next(segment)?);
    }
    let mut list = Vec::new();
    while let Some(gram) = heads.iter().flatten().map(|(gram, _)| *gram).min() {
        list.clear();
        for n in 0..segments.len() {
            let Some((_, old)) = heads[n].as_ref().filter(|(at, _)| *at == gram) else { continue };
            let new_ids = &new_ids[n];
            old.each(|doc| {
                list.extend(new_ids.get(doc as usize).filter(|new_id| **new_id != u32::MAX))
            })?;
            heads[n] = walks[n].next(segments[n])?;
        }
        if !list.is_sorted() {
            list.sort_unstable();
        }
        writer.list(gram, &list);
    }
    Ok(Some(writer.finish()))
}
