//! Rendering of search results.

use std::time::Duration;

use cairn_protocol::{id::RootId, search::SymbolRef};

use super::*;

fn page(terminal: bool, colours: bool) -> Page<'static> {
    Page {
        root: "/r",
        here: Path::new("/r"),
        limit: 3,
        columns: WIDE,
        terminal,
        colours,
        explain: false,
        painter: colours.then(|| Painter::load(Duration::MAX)),
    }
}

/// A function whose fourth line matches.
fn item() -> SearchItem {
    let text = "fn show() {\n    // first\n    let n = 1;\n    emit(\"slow\");\n}";
    let at = text.find("slow").unwrap() as u32;
    SearchItem {
        path: "src/a.rs".into(),
        root: RootId("root_1".into()),
        start_line: 7,
        end_line: 11,
        score: 1.25,
        explain: [("meaning", 0.5), ("name", 0.4), ("definition", -0.3)]
            .map(|(feature, share)| Share { feature: feature.into(), value: 1.0, share })
            .to_vec(),
        lang: Some("rust".into()),
        symbol: Some(SymbolRef { name: "show".into(), kind: "function".into() }),
        text: Some(text.into()),
        text_start_line: None,
        highlights: vec![[3, 7], [at, at + 4]],
        content_hash: String::new(),
        clock: 1,
        changed: false,
    }
}

#[test]
fn terminal_output_shows_passage_and_reasons() {
    let expected = " 1. src/a.rs:7-11  function show
    by meaning and name
      7 fn show() {
      8     // first
      9     let n = 1;
      … 2 more lines

";
    assert_eq!(page(true, false).text(&[item()]), expected);
}

#[test]
fn results_of_a_file_follow_its_best_one_on_a_terminal() {
    let plain = SearchItem { text: None, explain: Vec::new(), symbol: None, ..item() };
    let other = SearchItem { path: "src/b.rs".into(), ..plain.clone() };
    let later = SearchItem { start_line: 30, end_line: 34, ..plain.clone() };
    let elsewhere = SearchItem { root: RootId("root_2".into()), ..plain.clone() };
    let all = [plain, other, later, elsewhere];
    let grouped = " 1. src/a.rs:7-11\n 3. src/a.rs:30-34\n 2. src/b.rs:7-11\n 4. src/a.rs:7-11\n";
    assert_eq!(page(true, false).text(&all), grouped);
    // A pipe has the order of the ranks, with complete paths.
    let lines = page(false, false).text(&all);
    assert_eq!(lines.lines().nth(2), Some("src/a.rs:30-34  1.250"));
}

#[test]
fn explain_displays_score_shares() {
    let explained = Page { explain: true, ..page(true, false) }.text(&[item()]);
    let expected = " 1. src/a.rs:7-11  function show  1.250
    by meaning and name
        meaning +0.500  name +0.400  definition -0.300
";
    assert!(explained.starts_with(expected), "{explained}");
}

#[test]
fn pipe_output_has_one_line_per_result() {
    let without_text = SearchItem { text: None, explain: Vec::new(), ..item() };
    let changed = SearchItem { changed: true, symbol: None, ..without_text.clone() };
    assert_eq!(
        page(false, false).text(&[without_text, changed]),
        "src/a.rs:7-11  function show  1.250\nsrc/a.rs:7-11  1.250  (changed since)\n"
    );
    let complete = Page { limit: usize::MAX, explain: true, ..page(false, false) }.text(&[item()]);
    let expected = "src/a.rs:7-11  function show  1.250
        meaning +0.500  name +0.400  definition -0.300
      7 fn show() {
      8     // first
      9     let n = 1;
     10     emit(\"slow\");
     11 }

";
    assert_eq!(complete, expected);
}

#[test]
fn code_is_highlighted_and_matches_are_marked() {
    let text = Page { limit: 9, ..page(true, true) }.text(&[item()]).replace('\u{1b}', "ESC");
    let expected = "\
ESC[2m 1.ESC[0m ESC[32msrc/a.rsESC[0m:7-11ESC[36m  function showESC[0m
    ESC[2mby meaning and nameESC[0m
  ESC[2m    7ESC[0m ESC[35mfnESC[0m ESC[31mESC[1mshowESC[0m() {
  ESC[2m    8ESC[0m     ESC[38;5;8m// firstESC[0m
  ESC[2m    9ESC[0m     ESC[35mletESC[0m n = ESC[36m1ESC[0m;
  ESC[2m   10ESC[0m     ESC[34memitESC[0m(ESC[32m\"ESC[0mESC[31mESC[1mslowESC[0mESC[32m\"ESC[0m);
  ESC[2m   11ESC[0m }

";
    assert_eq!(text, expected);
}

#[test]
fn lines_are_cut_at_the_width_of_the_terminal() {
    for (line, columns, expected) in [
        ("abcdef", 6, 6),
        ("abcdefg", 6, 5),
        ("\tab", 10, 3),
        ("\tabc", 10, 2),
        ("関係関係", 8, 12),
        ("関係関係x", 8, 9),
        ("", 0, 0),
        ("a", 0, 0),
    ] {
        assert_eq!(fitting(line, columns), expected, "{line:?} {columns}");
    }
    let narrow = Page { columns: 20, ..page(true, false) }.text(&[item()]);
    assert!(narrow.contains("      7 fn show() {\n"), "{narrow}");
    let wide = SearchItem { text: Some("let value = compute();".into()), ..item() };
    let cut = Page { columns: 20, ..page(true, false) }.text(&[wide]);
    assert!(cut.contains("      7 let value =…\n"), "{cut}");
}

#[test]
fn control_characters_are_escaped() {
    let wild =
        SearchItem { path: "a\u{1b}[2J.rs".into(), text: Some("\u{1b}[2J".into()), ..item() };
    assert!(!page(true, false).text(&[wild]).contains('\u{1b}'));
}

#[test]
fn invalid_ranges_are_ignored() {
    for ranges in [
        vec![],
        vec![[0, 2]],
        vec![[5, 1]],
        vec![[1, 3]],
        vec![[0, 900]],
        vec![[4, 6], [2, 5]],
        vec![[900, 901]],
    ] {
        for pieces in [
            vec![],
            vec![(0..2, CodeClass::Text), (2..90, CodeClass::Keyword)],
            vec![(Range { start: 5, end: 3 }, CodeClass::Type)],
        ] {
            for start in [0, 3] {
                let marked = page(true, false).marked("añb cd", start, &ranges, &pieces);
                assert_eq!(marked, "añb cd", "{ranges:?} {pieces:?}");
            }
        }
    }
}

#[test]
fn lines_with_most_matches_are_selected() {
    let lines = ["a", "b b", "", "c", "d"];
    let starts = [0, 2, 6, 7, 9];
    for (highlights, limit, expected) in [
        (vec![], 2, 0..2),
        (vec![[7, 8], [9, 10]], 2, 3..5),
        (vec![[2, 3], [4, 5], [9, 10]], 2, 0..2),
        (vec![[9, 10]], 9, 0..5),
        (vec![[9, 10]], 1, 4..5),
    ] {
        assert_eq!(
            best_lines(&starts, &lines, &highlights, limit),
            expected,
            "{highlights:?} {limit}"
        );
    }
    assert_eq!(best_lines(&[], &[], &[], 3), 0..0);
}
