//! Figures worked out by hand.

use super::*;

fn found(all: &[(&str, u32, u32)]) -> Vec<Found> {
    all.iter().map(|(path, start, end)| Found { path: (*path).into(), lines: (*start, *end) }).collect()
}

fn files(all: &[&str]) -> Vec<Wanted> {
    all.iter().map(|path| Wanted { path: (*path).into(), lines: None }).collect()
}

fn span(path: &str, start: u32, end: u32) -> Wanted {
    Wanted { path: path.into(), lines: Some((start, end)) }
}

#[track_caller]
fn near(got: Figures, want: [f64; 7]) {
    for ((got, want), name) in got.all().into_iter().zip(want).zip(NAMES) {
        assert!((got - want).abs() < 5e-4, "{name}: {got}, not {want}");
    }
}

/// Answers, relevant paths, and the figures.
type Case<'a> = (&'a [(&'a str, u32, u32)], &'a [&'a str], [f64; 7]);

#[test]
fn files_are_counted_once_and_lines_are_paid_for() {
    let two = 1.0 / 3f64.log2();
    let cases: &[Case<'_>] = &[
        (&[], &["a"], [0.0; 7]),
        (&[("a", 1, 40)], &["a"], [1.0; 7]),
        // Two results of one file take one rank.
        (&[("b", 1, 40), ("b", 41, 80), ("a", 1, 9)], &["a"], [0.0, 1.0, 1.0, 0.5, two, 1.0, 1.0]),
        // Recall is a share of what could be there: one of two is all that one rank can hold.
        (&[("a", 1, 9), ("c", 1, 9)], &["a", "b"], [1.0, 0.5, 0.5, 1.0, 1.0 / (1.0 + two), 1.0, 1.0]),
        // An answer may cross the budget, and begins at most where it ends.
        (&[("b", 1, 199), ("a", 1, 900)], &["a"], [0.0, 1.0, 1.0, 0.5, two, 1.0, 1.0]),
        (&[("b", 1, 200), ("a", 1, 9)], &["a"], [0.0, 1.0, 1.0, 0.5, two, 0.0, 1.0]),
        (&[("b", 1, 400), ("a", 1, 9)], &["a"], [0.0, 1.0, 1.0, 0.5, two, 0.0, 0.0]),
        // The same file wanted twice is one file.
        (&[("a", 1, 9)], &["a", "a"], [1.0; 7]),
    ];
    for (results, wanted, want) in cases {
        near(score(&found(results), &files(wanted)).file, *want);
    }
}

#[test]
fn ranks_beyond_the_tenth_count_for_lines_alone() {
    let mut results: Vec<(String, u32, u32)> = (0..10).map(|n| (format!("f{n}"), 1, 10)).collect();
    results.push(("a".into(), 1, 10));
    let results: Vec<Found> =
        results.into_iter().map(|(path, start, end)| Found { path, lines: (start, end) }).collect();
    let got = score(&results, &files(&["a", "z"]));
    near(got.file, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
    assert_eq!((got.file_ranks.clone(), got.is_hit()), (vec![Some(11), None], false));
    // And the hundred and first not at all.
    let mut many = found(&vec![("b", 1, 1); DEPTH]);
    many.extend(found(&[("a", 1, 1)]));
    near(score(&many, &files(&["a"])).file, [0.0; 7]);
}

#[test]
fn spans_overlap_by_half_of_the_shorter_and_are_not_too_long() {
    for (found, wanted, want) in [
        ((1, 10), (1, 10), true),
        ((1, 10), (6, 20), true),
        ((1, 10), (7, 20), false),
        ((1, 10), (11, 20), false),
        ((5, 5), (1, 400), true),
        ((1, 120), (60, 60), true),
        ((1, 121), (60, 60), false),
        ((1, 160), (1, 80), true),
        ((1, 161), (1, 80), false),
        ((4, 3), (1, 10), false),
    ] {
        assert_eq!(overlaps(found, wanted), want, "{found:?} {wanted:?}");
    }
}

#[test]
fn spans_are_scored_as_they_are_ranked() {
    let two = 1.0 / 3f64.log2();
    // Another place in the right file is a file hit and no span hit; the second hit of a span counts for nothing.
    let results = found(&[("a", 1, 9), ("a", 50, 60), ("a", 52, 60), ("b", 1, 5)]);
    let got = score(&results, &[span("a", 50, 60)]);
    near(got.file, [1.0; 7]);
    near(got.span.unwrap(), [0.0, 1.0, 1.0, 0.5, two, 1.0, 1.0]);
    assert_eq!((got.file_ranks.clone(), got.span_ranks.clone()), (vec![Some(1)], vec![Some(2)]));
    assert!(got.is_hit());
    let both = score(&results, &[span("a", 50, 60), span("b", 1, 5)]);
    let ideal = 1.0 + two;
    near(both.span.unwrap(), [0.0, 1.0, 1.0, 0.5, (two + 1.0 / 5f64.log2()) / ideal, 1.0, 1.0]);
    // A file hit whose lines were not met is a miss.
    let miss = score(&found(&[("a", 1, 9)]), &[span("a", 50, 60)]);
    assert!(!miss.is_hit() && miss.span_ranks == [None] && miss.file_ranks == [Some(1)]);
    assert!(score(&results, &files(&["a"])).span.is_none());
}

fn hit(is: bool) -> Scored {
    score(&found(if is { &[("a", 1, 9)] } else { &[] }), &files(&["a"]))
}

#[test]
fn repositories_and_kinds_weigh_alike() {
    let (yes, no) = (hit(true), hit(false));
    let mut rows: Vec<(&str, &str, &Scored)> = Vec::new();
    rows.extend([("big", "commit", &yes); 30]);
    rows.extend([("small", "commit", &no); 10]);
    rows.extend([("big", "doc", &no); 10]);
    rows.extend([("small", "doc", &yes); 9]);
    let cells = cells(rows);
    let shown: Vec<String> = cells
        .iter()
        .map(|c| format!("{} {} {} {} {}", c.repo, c.kind, c.queries, c.counts, c.figures.recall_at1))
        .collect();
    assert_eq!(
        shown,
        ["big commit 30 true 1", "big doc 10 true 0", "small commit 10 true 0", "small doc 9 false 1"]
    );
    let overall: Vec<(Option<String>, f64)> =
        overall(&cells).into_iter().map(|o| (o.kind, o.figures.recall_at10)).collect();
    // Nine queries do not make a mean; thirty count as one.
    assert_eq!(overall, [(Some("commit".into()), 0.5), (Some("doc".into()), 0.0), (None, 0.25)]);
}

#[test]
fn when_all_groups_are_small_all_count() {
    let (yes, no) = (hit(true), hit(false));
    let cells = cells([("r", "q", &yes), ("r", "q", &no)]);
    assert!(cells.len() == 1 && cells[0].counts);
    assert_eq!(overall(&cells).iter().map(|o| o.figures.mrr_at10).collect::<Vec<_>>(), [0.5, 0.5]);
    assert!(overall(&super::cells([])).is_empty());
}
