//! Several segments to one, without what is dead.

use super::Segment;
use super::encode::{Parts, Writer};

/// Merges segments, given by ascending chunk ids; `None` when nothing of them is alive.
pub fn merge(segments: &[&Segment]) -> Option<Parts> {
    let mut renamed: Vec<Vec<u32>> = Vec::with_capacity(segments.len());
    let alive = |s: &Segment, doc: &u32| !s.is_dead(*doc);
    let first = segments.iter().find_map(|s| (0..s.docs()).find(|d| alive(s, d)).map(|d| s.doc(d).chunk))?;
    let mut writer = Writer::new(first);
    for segment in segments {
        let mut names = vec![u32::MAX; segment.docs() as usize];
        // A document that dies while this runs must be in both passes or in none.
        for (doc, name) in (0..).zip(&mut names) {
            if alive(segment, &doc) {
                *name = writer.docs();
                writer.doc(&segment.doc(doc));
            }
        }
        renamed.push(names);
    }
    let mut next: Vec<u32> = vec![0; segments.len()];
    let (mut docs, mut payloads) = (Vec::new(), Vec::new());
    loop {
        let words = segments.iter().zip(&next).filter(|(s, n)| **n < s.terms()).map(|(s, n)| s.word(*n));
        let Some(word) = words.min() else { break };
        docs.clear();
        payloads.clear();
        for ((segment, next), names) in segments.iter().zip(&mut next).zip(&renamed) {
            if *next >= segment.terms() || segment.word(*next) != word {
                continue;
            }
            let mut cursor = segment.cursor(*next);
            while cursor.doc() != u32::MAX {
                if let Some(name) = names.get(cursor.doc() as usize).filter(|n| **n != u32::MAX) {
                    docs.push(*name);
                    payloads.push(u32::from(cursor.payload().0));
                }
                cursor.advance();
            }
            *next += 1;
        }
        writer.term(word, &docs, &payloads);
    }
    Some(writer.finish())
}
