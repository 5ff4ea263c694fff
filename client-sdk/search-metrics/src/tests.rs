//! Metrics computed by hand.

use super::*;

fn ranked(all: &[(&str, u32, u32)]) -> Vec<ResultSpan> {
    all.iter()
        .map(|(path, start, end)| ResultSpan { path: (*path).into(), lines: (*start, *end) })
        .collect()
}

fn files(all: &[&str]) -> Vec<Expected> {
    all.iter().map(|path| Expected { path: (*path).into(), lines: None }).collect()
}

fn span(path: &str, start: u32, end: u32) -> Expected {
    Expected { path: path.into(), lines: Some((start, end)) }
}

#[track_caller]
fn near(got: Figures, answer: [f64; 7]) {
    for ((got, answer), name) in got.all().into_iter().zip(answer).zip(NAMES) {
        assert!((got - answer).abs() < 5e-4, "{name}: {got}, not {answer}");
    }
}

/// Results, relevant paths, expected metrics.
type Case<'a> = (&'a [(&'a str, u32, u32)], &'a [&'a str], [f64; 7]);

#[test]
fn files_count_once_and_lines_use_the_budget() {
    let two = 1.0 / 3f64.log2();
    let cases: &[Case<'_>] = &[
        (&[], &["a"], [0.0; 7]),
        (&[("a", 1, 40)], &["a"], [1.0; 7]),
        // Two results of one file take one rank.
        (&[("b", 1, 40), ("b", 41, 80), ("a", 1, 9)], &["a"], [0.0, 1.0, 1.0, 0.5, two, 1.0, 1.0]),
        // Recall is relative to the reachable maximum: one rank can contain only one of two
        // answers.
        (
            &[("a", 1, 9), ("c", 1, 9)],
            &["a", "b"],
            [1.0, 0.5, 0.5, 1.0, 1.0 / (1.0 + two), 1.0, 1.0],
        ),
        // An answer may cross the budget but must start within it.
        (&[("b", 1, 199), ("a", 1, 900)], &["a"], [0.0, 1.0, 1.0, 0.5, two, 1.0, 1.0]),
        (&[("b", 1, 200), ("a", 1, 9)], &["a"], [0.0, 1.0, 1.0, 0.5, two, 0.0, 1.0]),
        (&[("b", 1, 400), ("a", 1, 9)], &["a"], [0.0, 1.0, 1.0, 0.5, two, 0.0, 0.0]),
        // The same expected file twice counts once.
        (&[("a", 1, 9)], &["a", "a"], [1.0; 7]),
    ];
    for (results, expected, answer) in cases {
        near(score(&ranked(results), &files(expected)).file, *answer);
    }
}

#[test]
fn ranks_beyond_ten_count_only_for_lines() {
    let mut results: Vec<(String, u32, u32)> = (0..10).map(|n| (format!("f{n}"), 1, 10)).collect();
    results.push(("a".into(), 1, 10));
    let results: Vec<ResultSpan> = results
        .into_iter()
        .map(|(path, start, end)| ResultSpan { path, lines: (start, end) })
        .collect();
    let got = score(&results, &files(&["a", "z"]));
    near(got.file, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
    assert_eq!((got.file_ranks.clone(), got.is_hit()), (vec![Some(11), None], false));
    // The 101st result is not scored.
    let mut many = ranked(&vec![("b", 1, 1); DEPTH]);
    many.extend(ranked(&[("a", 1, 1)]));
    near(score(&many, &files(&["a"])).file, [0.0; 7]);
}

#[test]
fn spans_overlap_by_half_and_have_bounded_length() {
    for (results, expected, answer) in [
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
        assert_eq!(overlaps(results, expected), answer, "{results:?} {expected:?}");
    }
}

#[test]
fn spans_are_scored_in_rank_order() {
    let two = 1.0 / 3f64.log2();
    // Another location in the correct file is a file hit but no span hit; a second hit of a span
    // counts nothing.
    let results = ranked(&[("a", 1, 9), ("a", 50, 60), ("a", 52, 60), ("b", 1, 5)]);
    let got = score(&results, &[span("a", 50, 60)]);
    near(got.file, [1.0; 7]);
    near(got.span.unwrap(), [0.0, 1.0, 1.0, 0.5, two, 1.0, 1.0]);
    assert_eq!((got.file_ranks.clone(), got.span_ranks.clone()), (vec![Some(1)], vec![Some(2)]));
    assert!(got.is_hit());
    let both = score(&results, &[span("a", 50, 60), span("b", 1, 5)]);
    let ideal = 1.0 + two;
    near(both.span.unwrap(), [0.0, 1.0, 1.0, 0.5, (two + 1.0 / 5f64.log2()) / ideal, 1.0, 1.0]);
    // A file hit without the expected lines is a miss.
    let miss = score(&ranked(&[("a", 1, 9)]), &[span("a", 50, 60)]);
    assert!(!miss.is_hit() && miss.span_ranks == [None] && miss.file_ranks == [Some(1)]);
    assert!(score(&results, &files(&["a"])).span.is_none());
}

fn hit(is: bool) -> Scored {
    score(&ranked(if is { &[("a", 1, 9)] } else { &[] }), &files(&["a"]))
}

#[test]
fn repositories_and_kinds_have_equal_weight() {
    let yes = hit(true);
    let no = hit(false);
    let mut rows: Vec<(&str, &str, &Scored)> = Vec::new();
    rows.extend([("big", "commit", &yes); 30]);
    rows.extend([("small", "commit", &no); 10]);
    rows.extend([("big", "doc", &no); 10]);
    rows.extend([("small", "doc", &yes); 9]);
    let cells = cells(rows);
    let level_name: Vec<String> = cells
        .iter()
        .map(|c| {
            format!("{} {} {} {} {}", c.repo, c.kind, c.queries, c.counts, c.figures.recall_at1)
        })
        .collect();
    assert_eq!(
        level_name,
        [
            "big commit 30 true 1",
            "big doc 10 true 0",
            "small commit 10 true 0",
            "small doc 9 false 1"
        ]
    );
    let overall: Vec<(Option<String>, f64)> =
        overall(&cells).into_iter().map(|o| (o.kind, o.figures.recall_at10)).collect();
    // Nine queries do not form a mean; thirty count as one.
    assert_eq!(overall, [(Some("commit".into()), 0.5), (Some("doc".into()), 0.0), (None, 0.25)]);
}

#[test]
fn all_groups_count_when_all_are_small() {
    let yes = hit(true);
    let no = hit(false);
    let cells = cells([("r", "q", &yes), ("r", "q", &no)]);
    assert!(cells.len() == 1 && cells[0].counts);
    assert_eq!(overall(&cells).iter().map(|o| o.figures.mrr_at10).collect::<Vec<_>>(), [0.5, 0.5]);
    assert!(overall(&super::cells([])).is_empty());
}

#[test]
fn expected_range_counts_if_half_of_it_is_printed() {
    let expected = [span("a", 11, 20), span("b", 1, 3)];
    for (printed, recall) in [
        (&[][..], 0.0),
        // Five of ten lines are half; one of three is not.
        (&[("a", 1, 15), ("b", 3, 9)][..], 0.5),
        (&[("a", 1, 14), ("b", 2, 3)][..], 0.5),
        (&[("a", 12, 13), ("a", 17, 30), ("b", 1, 2)][..], 1.0),
        // Lines that are printed twice count once.
        (&[("a", 11, 13), ("a", 12, 13), ("a", 11, 12)][..], 0.0),
        (&[("c", 11, 20), ("b", 1, 3)][..], 0.5),
    ] {
        assert_eq!(packed_recall(&ranked(printed), &expected), Some(recall), "{printed:?}");
    }
    assert_eq!(packed_recall(&[], &files(&["a"])), None);
    assert_eq!(packed_recall(&[], &[]), None);
}

#[test]
fn budgets_are_means_of_repositories_and_kinds() {
    let spans = [span("a", 1, 2)];
    let one = |budgets: &[f64]| Scored { budgets: budgets.to_vec(), ..score(&[], &spans) };
    let (none, half, all) = (one(&[0.0, 0.0]), one(&[0.0, 1.0]), one(&[1.0, 1.0]));
    let unmeasured = score(&[], &files(&["a"]));
    let cells = cells([
        ("r", "doc", &none),
        ("r", "doc", &half),
        ("s", "doc", &all),
        ("s", "use", &all),
        ("s", "commit", &unmeasured),
    ]);
    let overall = overall(&cells);
    let of = |kind: Option<&str>, level: Level| {
        let row = overall.iter().find(|o| o.kind.as_deref() == kind && o.level == level).unwrap();
        row.budgets.clone()
    };
    // `doc`: the mean of 0 and 0.5 for `r`, and of 1 and 1 for `s`.
    assert_eq!(of(Some("doc"), Level::Span), [0.5, 0.75]);
    assert_eq!(of(None, Level::Span), [0.75, 0.875]);
    assert!(of(Some("commit"), Level::File).is_empty() && of(None, Level::File).is_empty());
}
