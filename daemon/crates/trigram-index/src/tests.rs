//! Compares trigrams with their definition, segments with their input, and queries with the
//! matcher.

use std::collections::{BTreeMap, BTreeSet};

use cairn_workspace::Facts;
use grep_matcher::Matcher;
use proptest::prelude::*;

use super::extract::Extractor;
use super::merge::{Builder, merge};
use super::query::{Flags, Query};
use super::segment::{Doc, Segment};
use super::store::open_bytes;
use super::*;

/// The distinct trigrams of a text.
fn trigrams_by_definition(text: &[u8]) -> BTreeSet<Gram> {
    let folded: Vec<u8> = text.to_ascii_lowercase();
    let windows = folded.windows(3).filter(|w| !w.contains(&b'\n'));
    windows.map(|w| w.iter().fold(0, |key, b| key << 8 | Gram::from(*b))).collect()
}

fn doc(file: u32) -> Doc {
    Doc {
        file,
        flags: file % 4,
        facts: Facts { size: u64::from(file) << 33, changed_ns: -5, inode: u64::MAX },
    }
}

/// A segment of files with the given trigrams.
fn segment(
    files: &BTreeMap<u32, BTreeSet<Gram>>,
    folder: &std::path::Path,
) -> std::sync::Arc<Segment> {
    let mut builder = Builder::default();
    for (file, grams) in files {
        // The builder accepts trigrams in any order.
        let grams: Vec<Gram> = grams.iter().rev().copied().collect();
        builder.add(doc(*file), &grams);
    }
    open_bytes(&builder.finish().1, folder)
}

/// The trigrams of each live file of a segment.
fn files_of(segment: &Segment) -> BTreeMap<u32, BTreeSet<Gram>> {
    let mut all: BTreeMap<_, BTreeSet<Gram>> =
        segment.alive().map(|doc| (segment.file(doc), BTreeSet::new())).collect();
    let mut lists = segment.lists();
    while let Some((gram, list)) = lists.next(segment).unwrap() {
        let mut count = 0;
        list.each(|doc| {
            count += 1;
            if !segment.is_dead(doc) {
                all.get_mut(&segment.file(doc)).unwrap().insert(gram);
            }
        })
        .unwrap();
        assert_eq!(count, list.count);
        assert!(segment.list(gram).unwrap().is_some_and(|found| found.count == count));
    }
    all
}

/// Files with trigrams of very different frequencies.
fn random_files(seed: u64, ids: impl Iterator<Item = u32>) -> BTreeMap<u32, BTreeSet<Gram>> {
    let mut rng = cairn_test_support::Rng::with_seed(seed);
    let mut next = move || rng.u32(..1 << 24);
    let file =
        |id| (id, (0..40).map(|n| if n < 30 { next() % (1 << (n / 2)) } else { next() }).collect());
    ids.map(file).collect()
}

#[test]
fn segment_returns_the_files_that_were_added() {
    let dir = tempfile::tempdir().unwrap();
    for (seed, count) in [(1, 0), (2, 1), (3, 127), (4, 128), (5, 129), (6, 1000)] {
        let files = random_files(seed, (0..count).map(|n| n * 3));
        let built = segment(&files, dir.path());
        assert_eq!(files_of(&built), files, "{count}");
        let docs: Vec<Doc> = (0..built.docs()).map(|n| built.doc(n)).collect();
        assert_eq!(docs, files.keys().map(|id| doc(*id)).collect::<Vec<_>>());
        assert!(
            built.list(0xFF_FFFF).unwrap().is_none()
                || files.values().any(|f| f.contains(&0xFF_FFFF))
        );
        assert_eq!(built.find_file(1), None);
    }
}

#[test]
fn merge_contains_the_live_documents() {
    let (a, b, c) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut first = random_files(7, (0..500).map(|n| n * 2));
    let mut second = random_files(8, (0..300).map(|n| n * 3 + 1).filter(|n| n % 2 == 1));
    let (one, two) = (segment(&first, a.path()), segment(&second, b.path()));
    for file in [0, 8, 10] {
        one.mark_dead(one.find_file(file).unwrap());
        first.remove(&file);
    }
    two.mark_dead(two.find_file(7).unwrap());
    second.remove(&7);
    assert_eq!((one.dead(), two.dead()), (3, 1));
    let merged = open_bytes(&merge(&[&two, &one]).unwrap().unwrap(), c.path());
    first.extend(second);
    assert_eq!(files_of(&merged), first);
    (0..merged.docs()).for_each(|doc| merged.mark_dead(doc));
    assert!(merge(&[&merged]).unwrap().is_none());
}

#[test]
fn damaged_segments_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tri");
    let mut builder = Builder::default();
    for (file, grams) in random_files(9, 0..40) {
        builder.add(doc(file), &grams.into_iter().collect::<Vec<_>>());
    }
    let (_, bytes) = builder.finish();
    let opens = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Segment::mapped(&path, 1).is_ok_and(|s| s.is_some())
    };
    assert!(opens(&bytes));
    for at in (0..48).chain((64..bytes.len()).step_by(37)) {
        let mut other = bytes.clone();
        other[at] ^= 4;
        assert!(!opens(&other), "byte {at}");
    }
    for length in [0, 10, 63, 64, bytes.len() / 2, bytes.len() - 1] {
        assert!(!opens(&bytes[..length]), "{length} bytes");
    }
}

fn query(pattern: &str) -> Query {
    Query::parse(pattern, Flags::default())
}

fn gram(text: &str) -> Query {
    Query::Gram(text.bytes().fold(0, |key, b| key << 8 | Gram::from(b)))
}

#[test]
fn patterns_become_the_trigrams_that_a_match_must_contain() {
    let and = |grams: &[&str]| {
        let mut all: Vec<Query> = grams.iter().map(|g| gram(g)).collect();
        all.sort();
        Query::And(all)
    };
    assert_eq!(query("abc"), gram("abc"));
    assert_eq!(query("ABCd"), and(&["abc", "bcd"]));
    for nothing in [
        "",
        "ab",
        "a*",
        ".*",
        r"\w+",
        "(abc)?",
        "abc|d",
        "[^a]",
        "a.b",
        r"^\s*$",
        "(",
        "(abc){0,3}",
        "x{0}",
    ] {
        assert_eq!(query(nothing), Query::All, "{nothing}");
    }
    assert_eq!(query(r"^\bfoo\b$"), gram("foo"));
    assert_eq!(query(r"(?R)^foo$"), gram("foo"));
    assert_eq!(query("foo|bar"), Query::Or(vec![gram("bar"), gram("foo")]));
    assert_eq!(query("foo.*bar"), and(&["bar", "foo"]));
    assert_eq!(query("fo[op]"), Query::Or(vec![gram("foo"), gram("fop")]));
    assert_eq!(query(r"fn\s+\w+_with_\w+"), and(&["_wi", "ith", "th_", "wit"]));
    assert_eq!(query("(abc)+x"), and(&["abc", "bcx"]));
    assert_eq!(query("a{5}"), gram("aaa"));
    assert_eq!(query("ab?c?d"), Query::All, "`ad` matches");
    assert_eq!(query("abc\ndef"), and(&["abc", "def"]), "no trigram contains a line end");
    assert_eq!(query("x\ny"), Query::All);
    assert!(matches!(query("[A-Z]{3,}_[0-9]{2,}"), Query::Or(all) if all.len() == 100));
    let any_case = |pattern| Query::parse(pattern, Flags { any_case: true, dot_all: false });
    assert_eq!(any_case("Mutex"), query("mutex"));
    // The Kelvin sign folds to k, and the long s to s.
    let kilo = any_case("kil");
    assert!(kilo.accepts(&|g| trigrams_by_definition("KIL".as_bytes()).contains(&g)));
    assert!(kilo.accepts(&|g| trigrams_by_definition("\u{212A}il".as_bytes()).contains(&g)));
    assert!(!kilo.accepts(&|g| trigrams_by_definition("pil".as_bytes()).contains(&g)));
    assert!(any_case("éa").accepts(&|g| trigrams_by_definition("ÉA".as_bytes()).contains(&g)));
    assert!(!query("éa").accepts(&|g| trigrams_by_definition("ÉA".as_bytes()).contains(&g)));
}

#[test]
fn queries_of_large_patterns_are_bounded() {
    let words: Vec<String> = (0..3000).map(|n| format!("word{n}of{n}")).collect();
    assert_eq!(query(&words.join("|")), Query::All);
    let few = query(&words[..60].join("|"));
    assert!(
        few.accepts(&|g| trigrams_by_definition(b"word59of59").contains(&g))
            && !few.accepts(&|g| trigrams_by_definition(b"sword").contains(&g))
    );
    let long = "abcdefgh_0123456789".repeat(200);
    assert!(matches!(query(&long), Query::And(all) if all.len() <= 64));
    for heavy in [
        "(a|b|c|d|e|f){40}",
        "[a-z]{100}x",
        "((((a?b?c?){4}){4}){4}){4}",
        r"(?i)[ks]{9}\w{50}[ks]{9}",
    ] {
        query(heavy);
    }
}

/// Patterns over a small alphabet, so that they match often.
fn patterns() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[abkKsS]{1,4}",
        Just(r"\s".to_owned()),
        Just(r"\w".to_owned()),
        Just(".".to_owned()),
        Just("[ab]".to_owned()),
        Just("[^a]".to_owned()),
        Just(r"\bk".to_owned()),
        Just("^".to_owned()),
        Just("$".to_owned()),
        Just("é".to_owned()),
        Just("\\n".to_owned()),
        Just("(?-u:\\xff)".to_owned()),
        Just("(?i:sk)".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 2..4).prop_map(|all| all.concat()),
            proptest::collection::vec(inner.clone(), 2..4)
                .prop_map(|all| format!("(?:{})", all.join("|"))),
            (
                inner,
                prop_oneof![
                    Just("*"),
                    Just("+"),
                    Just("?"),
                    Just("{2}"),
                    Just("{2,}"),
                    Just("{1,3}")
                ]
            )
                .prop_map(|(one, times)| format!("(?:{one}){times}")),
        ]
    })
}

fn texts() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        "[abkKsS é\n]{0,6}".prop_map(String::into_bytes),
        Just("\u{212A}\u{17F}".into()),
        Just(b"\xff\r\n".to_vec()),
        Just("É".into()),
    ];
    proptest::collection::vec(piece, 0..6).prop_map(|all| all.concat())
}

proptest! {
    #[test]
    fn extracted_trigrams_match_the_definition(text in texts(), cut in 0usize..40) {
        let mut extractor = Extractor::new();
        for _ in 0..2 {
            let (a, b) = text.split_at(cut.min(text.len()));
            extractor.add(a);
            extractor.add(b);
            let found = extractor.take();
            assert_eq!(found.len(), found.iter().collect::<BTreeSet<_>>().len());
            assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), trigrams_by_definition(&text));
        }
    }

    #[test]
    fn matching_text_satisfies_the_query(pattern in patterns(), text in texts(), case in 0..3u8, dot_all: bool) {
        let mut build = grep_regex::RegexMatcherBuilder::new();
        build.multi_line(true).dot_matches_new_line(dot_all);
        build.case_insensitive(case == 1).case_smart(case == 2);
        let Ok(matcher) = build.build(&pattern) else { return Ok(()) };
        if matcher.is_match(&text).unwrap() {
            let has = trigrams_by_definition(&text);
            let query = Query::parse(&pattern, Flags { any_case: case > 0, dot_all });
            prop_assert!(query.accepts(&|g| has.contains(&g)), "{pattern:?} in {text:?}: {query:?}");
        }
    }
}
