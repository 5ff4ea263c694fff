//! Answers are short and bounded and state how to continue.

use cairn_protocol::search::{GrepItem, SymbolItem, SymbolRef};
use serde_json::json;

use super::*;

fn item(n: usize) -> SearchItem {
    serde_json::from_value(json!({
        "path": format!("src/f{n}.rs"), "root": "root_1", "startLine": n, "endLine": n + 3, "score": 1.0,
        "text": "{\n    let first = 1;\n    let wanted = 2;\n}", "highlights": [[27, 33]],
        "contentHash": "", "clock": 1,
    }))
    .unwrap()
}

fn answer(n: usize) -> SearchAnswer {
    SearchAnswer { items: (1..=n).map(item).collect(), complete: true, ..SearchAnswer::default() }
}

#[test]
fn passages_show_location_and_best_line() {
    let mut one = answer(1);
    one.items[0].symbol = Some(SymbolRef { name: "go".into(), kind: "function".into() });
    let text = passages(&one, &LocationStyle::Relative, 0, 10, false);
    assert_eq!(text, "1. src/f1.rs:1-4  function go\n   let wanted = 2;\n");
    let text = passages(&one, &LocationStyle::Relative, 0, 10, true);
    assert!(text.contains("\n     2|     let first = 1;\n"), "{text}");
}

#[test]
fn truncated_answer_states_cursor() {
    let text = passages(&answer(11), &LocationStyle::Relative, 0, 10, false);
    assert!(text.contains("10. src/f10.rs") && !text.contains("f11.rs"), "{text}");
    assert!(text.ends_with("[more: the same call with cursor=\"10\"]\n"), "{text}");
    let text = passages(&answer(11), &LocationStyle::Relative, 10, 10, false);
    assert!(text.starts_with("11. src/f11.rs") && !text.contains("more"), "{text}");
    assert!(
        passages(&answer(0), &LocationStyle::Relative, 0, 10, false).contains("nothing was found")
    );
    let late = SearchAnswer { complete: false, ..answer(1) };
    assert!(passages(&late, &LocationStyle::Relative, 0, 10, false).contains("still being built"));
}

#[test]
fn answers_are_bounded() {
    let mut many = answer(50);
    many.items.iter_mut().for_each(|i| i.text = Some(("y".repeat(150) + "\n").repeat(2000)));
    let text = passages(&many, &LocationStyle::Relative, 0, 50, true);
    assert!(text.len() < MAX_ANSWER + 200 && text.contains("cursor="), "{}", text.len());
    let line = GrepItem {
        path: "a".into(),
        root: RootId("root_1".into()),
        line: 3,
        text: "z".repeat(2000),
        ranges: vec![],
        before: vec!["b".into()],
        after: vec!["c".into()],
    };
    let one = GrepAnswer {
        items: vec![line.clone()],
        next_cursor: Some("C".into()),
        complete: true,
        ..GrepAnswer::default()
    };
    let text = lines(&one, &LocationStyle::Relative);
    assert!(text.starts_with("a-2- b\na:3: zzz") && text.contains("…\na-4- c\n[more: "), "{text}");
    let all = GrepAnswer { items: vec![line; 500], complete: true, ..GrepAnswer::default() };
    let text = lines(&all, &LocationStyle::Relative);
    assert!(text.len() < MAX_ANSWER + 200 && text.contains("of 500 lines"), "{}", text.len());
}

#[test]
fn control_characters_are_removed() {
    let mut one = answer(1);
    one.items[0].path = "a\u{1b}[31m\nb".into();
    one.items[0].text = Some("evil \u{1b}]0;x\u{7} text".into());
    for text in [true, false] {
        let text = passages(&one, &LocationStyle::Relative, 0, 1, text);
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{7}') && text.starts_with("1. a[31mb:"),
            "{text:?}"
        );
    }
}

#[test]
fn span_states_where_it_continues() {
    let of = |text: &str, start, end, total| Span {
        path: "a.rs".into(),
        start_line: start,
        end_line: end,
        total_lines: total,
        text: text.into(),
        truncated: false,
        content_hash: None,
        changed: None,
    };
    let text = span(&of("x\ny\n", 1, 2, Some(2)), true);
    assert_eq!(text, "a.rs:1-2 of 2\n     1| x\n     2| y\n");
    assert!(
        span(&of("x\ny\n", 1, 2, Some(9)), true).ends_with("[more: the same call with start=3]\n")
    );
    assert!(!span(&of("x\ny\n", 1, 2, Some(9)), false).contains("more"));
    assert!(span(&of("", 5, 4, Some(2)), true).contains("has no line 5, it has 2"));
    let long = span(&of(&"w".repeat(1000).add_lines(100), 1, 100, Some(100)), false);
    assert!(long.len() < MAX_ANSWER + 100 && long.contains("start="), "{}", long.len());
}

trait Lines {
    fn add_lines(&self, n: usize) -> String;
}

impl Lines for String {
    fn add_lines(&self, n: usize) -> String {
        format!("{self}\n").repeat(n)
    }
}

#[test]
fn definitions_are_rendered_as_lists() {
    let item: SymbolItem = serde_json::from_value(json!({
        "name": "go", "kind": "function", "container": "Thing", "path": "a.rs", "root": "root_1",
        "startLine": 1, "endLine": 2, "lang": "rust", "score": 1.0,
    }))
    .unwrap();
    let one = SymbolsAnswer { items: vec![item], complete: true, ..SymbolsAnswer::default() };
    assert_eq!(symbols(&one, &LocationStyle::Relative, 9), "a.rs:1-2 function go in Thing\n");
    assert!(symbols(&one, &LocationStyle::Relative, 1).contains("larger k"));
}

fn definition() -> SymbolItem {
    serde_json::from_value(json!({
        "name": "go\u{1b}[2J", "kind": "function", "path": "a.rs", "root": "root_1", "startLine": 1,
        "endLine": 9, "lang": "rust", "score": 1.0,
    }))
    .unwrap()
}

#[test]
fn calls_state_steps_certainty_and_what_was_left_out() {
    let item = |n: usize, via: Option<u32>| {
        json!({
            "name": format!("f{n}"), "kind": "function", "path": "b.rs", "line": n, "steps": 1, "via": via,
            "confidence": if n == 2 { "ambiguous" } else { "exact" }, "lines": [3, 4],
        })
    };
    let mut answer: cairn_protocol::calls::CallsAnswer = serde_json::from_value(json!({
        "definition": definition(), "items": [item(1, None), item(2, Some(0))], "unresolved": 7,
        "truncated": false, "complete": true, "tookUs": 1, "others": [definition()],
    }))
    .unwrap();
    let text = calls(&answer);
    assert_eq!(
        text,
        "function go[2J  a.rs:1-9\n1. b.rs:1 function f1  calls at 3, 4\n\
         1. b.rs:2 function f2  via f1  calls at 3, 4  (ambiguous)\n\
         [7 more calls lead out of the repository, or to any of many definitions]\n\
         [1 more definitions have this name; choose by path:\n  a.rs:1 function\n]\n"
    );
    answer.items = vec![answer.items[0].clone(); 5_000];
    let text = calls(&answer);
    assert!(text.len() < MAX_ANSWER + 400 && text.contains("there are more"), "{}", text.len());
}

#[test]
fn uses_and_dependents_are_bounded() {
    let item = json!({
        "path": "a.rs", "line": 3, "column": 0, "text": "go();", "kind": "call", "confidence": "likely",
        "enclosing": {"name": "f", "kind": "function"},
    });
    let answer: cairn_protocol::search::ReferencesAnswer = serde_json::from_value(json!({
        "definition": definition(), "items": vec![item; 5_000], "truncated": false, "complete": false, "tookUs": 1,
    }))
    .unwrap();
    let text = references(&answer);
    assert!(text.contains("a.rs:3 call in f  (likely): go();\n"), "{}", &text[..200]);
    assert!(text.len() < MAX_ANSWER + 400 && text.contains("there are more"));
    let none: cairn_protocol::search::ImpactAnswer = serde_json::from_value(json!({
        "path": "a.rs", "items": [], "truncated": false, "complete": true, "tookUs": 1,
    }))
    .unwrap();
    assert_eq!(impact(&none), "no file imports a.rs\n");
}
