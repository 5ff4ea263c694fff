//! Trigrams to a segment, and several segments to one.

use super::Gram;
use super::segment::{Damaged, Doc, Segment, Writer};

/// Files of one builder at most: a document's number has so many bits beside half a trigram.
pub const MAX_DOCS: usize = 1 << 16;
const DIGIT: u32 = 12;
const DIGITS: usize = 1 << DIGIT;

/// Gathers files and their trigrams, then writes them as a segment.
#[derive(Default)]
pub struct Builder {
    docs: Vec<Doc>,
    /// The trigrams of all documents one after the other; `ends` says where each document's end.
    grams: Vec<Gram>,
    ends: Vec<usize>,
}

impl Builder {
    /// Adds a file, whose id is above all before, with its distinct trigrams. At most [`MAX_DOCS`].
    pub fn add(&mut self, doc: Doc, grams: &[Gram]) {
        self.docs.push(doc);
        self.grams.extend_from_slice(grams);
        self.ends.push(self.grams.len());
    }

    /// Files so far.
    pub fn docs(&self) -> &[Doc] {
        &self.docs
    }

    /// Pairs of a trigram and a file so far.
    pub fn len(&self) -> usize {
        self.grams.len()
    }

    /// The files and the segment's bytes.
    pub fn finish(mut self) -> (Vec<Doc>, Vec<u8>) {
        let mut writer = Writer::new();
        self.docs.iter().for_each(|doc| writer.doc(doc));
        // Two passes that keep the order of equals: by the low digit, then by the high one; each drops its digit for
        // the document's number, as the place says it.
        let low = |gram: Gram| gram as usize % DIGITS;
        let (by_low, starts) = {
            let starts = starts(self.grams.iter().map(|gram| low(*gram)));
            let (mut next, mut out, mut from) = (starts.clone(), vec![0u32; self.grams.len()], 0);
            for (doc, end) in (0u32..).zip(&self.ends) {
                for gram in &self.grams[from..*end] {
                    let at = &mut next[low(*gram)];
                    out[*at] = gram >> DIGIT << 16 | doc;
                    *at += 1;
                }
                from = *end;
            }
            (out, starts)
        };
        let high = self::starts(by_low.iter().map(|posting| (posting >> 16) as usize));
        let mut next = high.clone();
        for (low, range) in (0u32..).zip(starts.windows(2)) {
            for posting in &by_low[range[0]..range[1]] {
                let at = &mut next[(posting >> 16) as usize];
                self.grams[*at] = low << 16 | (posting & 0xFFFF);
                *at += 1;
            }
        }
        drop(by_low);
        let mut docs = Vec::new();
        for (high, range) in (0u32..).zip(high.windows(2)) {
            for group in self.grams[range[0]..range[1]].chunk_by(|a, b| a >> 16 == b >> 16) {
                docs.clear();
                docs.extend(group.iter().map(|posting| posting & 0xFFFF));
                writer.list(high << DIGIT | group[0] >> 16, &docs);
            }
        }
        (self.docs, writer.finish())
    }
}

/// Where those with each digit begin, and where the last end.
fn starts(digits: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut starts = vec![0; DIGITS + 1];
    digits.for_each(|digit| starts[digit + 1] += 1);
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    starts
}

/// Merges segments to the bytes of one without what is dead; `None` when nothing is alive.
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
    let mut names: Vec<Vec<u32>> = segments.iter().map(|s| vec![u32::MAX; s.docs() as usize]).collect();
    for (name, (doc, n, old)) in (0..).zip(&docs) {
        writer.doc(doc);
        names[*n][*old as usize] = name;
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
            let names = &names[n];
            old.each(|doc| list.extend(names.get(doc as usize).filter(|name| **name != u32::MAX)))?;
            heads[n] = walks[n].next(segments[n])?;
        }
        if !list.is_sorted() {
            list.sort_unstable();
        }
        writer.list(gram, &list);
    }
    Ok(Some(writer.finish()))
}
