//! Compares segments with a brute-force computation over the same words.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::merge::merge;
use super::segment::{Doc, Segment};
use super::*;
use cairn_index_base::CancelFlag;

fn doc(chunk: u64) -> Doc {
    Doc {
        chunk,
        file: (chunk % 7) as u32,
        start_line: 1,
        end_line: 9,
        tokens: 0,
        fingerprint: chunk * 3,
    }
}

fn segment(texts: &[String], first: u64) -> Segment {
    let mut builder = Builder::default();
    let path = builder.path("src/pathword.rs");
    for text in texts {
        builder.add(doc(builder.len() as u64), &path, text.as_bytes());
    }
    builder.finish(first).unwrap()
}

/// Scores of all live windows with a query word, computed by definition.
fn brute_force(segments: &[Arc<Segment>], terms: &[Term<'_>]) -> Vec<(u64, f32)> {
    let mut scores: BTreeMap<u64, f32> = BTreeMap::new();
    for segment in segments {
        for term in terms {
            let Some(term_number) = segment.term(term.word) else { continue };
            let mut cursor = segment.cursor(term_number);
            while cursor.doc() != u32::MAX {
                if !segment.is_dead(cursor.doc()) {
                    let part = term.weight * segment.score(cursor.payload(), cursor.doc());
                    *scores.entry(segment.doc(cursor.doc()).chunk).or_default() += part;
                }
                cursor.advance();
            }
        }
    }
    let mut all: Vec<_> = scores.into_iter().collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    all
}

fn check(segments: &[Arc<Segment>], words: &[&str], k: usize) {
    let snapshot = Snapshot { segments: segments.to_vec() };
    let terms: Vec<Term<'_>> = words
        .iter()
        .map(|w| Term {
            word: w.as_bytes(),
            weight: rarity(snapshot.frequency(w.as_bytes()), snapshot.docs()),
        })
        .collect();
    let expected = brute_force(segments, &terms);
    let found = search_top(segments, &terms, k, None, &CancelFlag::default()).unwrap();
    assert_eq!(found.len(), expected.len().min(k));
    for (hit, (_, score)) in found.iter().zip(&expected) {
        assert!((hit.score - score).abs() < 1e-3, "{} is not {score}", hit.score);
    }
}

/// Texts whose words have very different frequencies: `wordax` is common, `wordzx` is rare.
fn texts(seed: u64, count: usize) -> Vec<String> {
    let mut rng = cairn_test_support::Rng::with_seed(seed);
    let mut next = move || rng.f64();
    let word = |x: f64| format!("word{}x", char::from(b'a' + (x * x * x * 26.0) as u8));
    (0..count)
        .map(|_| {
            let words: Vec<String> = (0..(next() * 30.0) as usize).map(|_| word(next())).collect();
            let def =
                if next() < 0.1 { format!("\nfn {}() {{", word(next())) } else { String::new() };
            words.join(" ") + &def
        })
        .collect()
}

#[test]
fn segment_returns_the_windows_that_were_added() {
    let segment =
        segment(&["fn read_file(path) { readFile(); }".into(), "naïve Größe utf8".into()], 100);
    assert_eq!((segment.docs(), segment.range()), (2, (100, 101)));
    let term_number = segment.term(b"read").unwrap();
    let cursor = segment.cursor(term_number);
    assert_eq!((cursor.doc(), cursor.payload().body(), cursor.payload().names()), (0, 2, 1));
    let path = segment.cursor(segment.term(b"pathword").unwrap());
    assert!(path.payload().in_path() && path.payload().body() == 0);
    assert!(segment.term("größe".as_bytes()).is_some() && segment.term(b"utf8").is_some());
    assert_eq!(segment.doc(1).fingerprint, 3);
    assert!(segment.doc(0).tokens >= 6);
}

#[test]
fn top_k_equals_brute_force_over_many_blocks_and_ranges() {
    let all: Vec<Arc<Segment>> = [(1, 9000), (2, 300), (3, 1), (4, 5000)]
        .iter()
        .scan(1, |first, (seed, count)| {
            let segment = segment(&texts(*seed, *count), *first);
            *first += *count as u64;
            Some(Arc::new(segment))
        })
        .collect();
    for words in [
        &["wordax"][..],
        &["wordax", "wordbx", "wordzx"],
        &["wordyx", "wordzx"],
        &["wordax", "wordbx", "wordcx", "worddx", "pathword"],
        &["missing"],
    ] {
        for k in [1, 10, 200] {
            check(&all, words, k);
        }
    }
    for chunk in (1..14_000).step_by(3) {
        assert!(all.iter().any(|s| s.mark_dead(chunk)));
    }
    check(&all, &["wordax", "wordmx", "wordzx"], 50);
    let merged = merge(&all.iter().map(|s| &**s).collect::<Vec<_>>())
        .and_then(|parts| Segment::from_bytes(parts.joined()))
        .unwrap();
    assert_eq!(merged.docs(), all.iter().map(|s| s.docs() - s.dead()).sum::<u32>());
    let merged = [Arc::new(merged)];
    check(&merged, &["wordax", "wordmx", "wordzx"], 50);
    let terms = [Term { word: b"wordmx", weight: 1.0 }];
    assert_eq!(brute_force(&all, &terms), brute_force(&merged, &terms));
}

#[test]
fn damaged_bytes_are_refused_or_read_within_bounds() {
    let good = segment(&texts(5, 700), 1).bytes().to_vec();
    assert!(Segment::from_bytes(good[..good.len() - 1].to_vec()).is_none());
    assert!(Segment::from_bytes(b"CAIRNPO1".to_vec()).is_none());
    for at in (64..good.len()).step_by(13) {
        let mut bad = good.clone();
        bad[at] ^= 0x5a;
        let Some(segment) = Segment::from_bytes(bad) else { continue };
        for term in 0..segment.terms() {
            let mut cursor = segment.cursor(term);
            (0..2000).for_each(|_| cursor.advance());
        }
        let segments = [Arc::new(segment)];
        let terms = [Term { word: b"wordax", weight: 1.0 }, Term { word: b"wordbx", weight: 2.0 }];
        let _ = search_top(&segments, &terms, 10, None, &CancelFlag::default());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn top_k_of_random_texts_equals_brute_force(seed in any::<u64>(), count in 1usize..600, k in 1usize..40, dead in 0u64..5) {
        let segment = Arc::new(segment(&texts(seed, count), 7));
        (0..dead).for_each(|d| { segment.mark_dead(7 + d * 3); });
        check(&[segment], &["wordax", "wordcx", "wordkx", "wordzx"], k);
    }
}
