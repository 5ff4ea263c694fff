//! Trigrams to a segment, and several segments to one.

use super::Gram;
use super::segment::{Damaged, Doc, Segment, Writer};

/// Gathers files and their trigrams, then writes them as a segment.
#[derive(Default)]
pub struct Builder {
    docs: Vec<Doc>,
    /// Trigram above, document below.
    postings: Vec<u64>,
}

const DIGIT: u32 = 12;

impl Builder {
    /// Adds a file, whose id is above all before, with its distinct trigrams.
    pub fn add(&mut self, doc: Doc, grams: &[Gram]) {
        let n = self.docs.len() as u64;
        self.docs.push(doc);
        self.postings.extend(grams.iter().map(|gram| u64::from(*gram) << 32 | n));
    }

    /// Files so far.
    pub fn docs(&self) -> &[Doc] {
        &self.docs
    }

    /// Pairs of a trigram and a file so far.
    pub fn len(&self) -> usize {
        self.postings.len()
    }

    /// The segment's bytes.
    pub fn finish(mut self) -> (Vec<Doc>, Vec<u8>) {
        let mut writer = Writer::new();
        self.docs.iter().for_each(|doc| writer.doc(doc));
        // Two passes that keep the order of equals: documents stay ascending.
        let mut other = vec![0; self.postings.len()];
        distribute(&self.postings, &mut other, 32);
        distribute(&other, &mut self.postings, 32 + DIGIT);
        drop(other);
        let mut docs = Vec::new();
        for group in self.postings.chunk_by(|a, b| a >> 32 == b >> 32) {
            docs.clear();
            docs.extend(group.iter().map(|posting| *posting as u32));
            writer.list((group[0] >> 32) as Gram, &docs);
        }
        (self.docs, writer.finish())
    }
}

/// Orders by the digit at `shift`.
fn distribute(from: &[u64], to: &mut [u64], shift: u32) {
    let digit = |posting: &u64| (posting >> shift) as usize & ((1 << DIGIT) - 1);
    let mut starts = vec![0usize; (1 << DIGIT) + 1];
    for posting in from {
        starts[digit(posting) + 1] += 1;
    }
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    for posting in from {
        let at = &mut starts[digit(posting)];
        to[*at] = *posting;
        *at += 1;
    }
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
