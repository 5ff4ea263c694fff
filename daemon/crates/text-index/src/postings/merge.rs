//! Merges several segments into one without dead documents.

use super::Segment;
use super::encode::{Parts, Writer};

/// Merges segments, which must be ordered by chunk ids; `None` if all documents are dead.
pub fn merge(segments: &[&Segment]) -> Option<Parts> {
    let mut new_ids: Vec<Vec<u32>> = Vec::with_capacity(segments.len());
    let is_alive = |s: &Segment, doc: &u32| !s.is_dead(*doc);
    let first = segments
        .iter()
        .find_map(|s| (0..s.docs()).find(|d| is_alive(s, d)).map(|d| s.doc(d).chunk))?;
    let mut writer = Writer::new(first);
    for segment in segments {
        let mut ids = vec![u32::MAX; segment.docs() as usize];
        // A document that is marked dead during the merge must be in both passes or in neither.
        for (doc, id) in (0..).zip(&mut ids) {
            if is_alive(segment, &doc) {
                *id = writer.docs();
                writer.doc(&segment.doc(doc));
            }
        }
        new_ids.push(ids);
    }
    let mut next: Vec<u32> = vec![0; segments.len()];
    let (mut docs, mut payloads) = (Vec::new(), Vec::new());
    loop {
        let words =
            segments.iter().zip(&next).filter(|(s, n)| **n < s.terms()).map(|(s, n)| s.word(*n));
        let Some(word) = words.min() else { break };
        docs.clear();
        payloads.clear();
        for ((segment, next), ids) in segments.iter().zip(&mut next).zip(&new_ids) {
            if *next >= segment.terms() || segment.word(*next) != word {
                continue;
            }
            let mut cursor = segment.cursor(*next);
            while cursor.doc() != u32::MAX {
                if let Some(id) = ids.get(cursor.doc() as usize).filter(|n| **n != u32::MAX) {
                    docs.push(*id);
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
