//! Answers are short and bounded and state how to continue.

use cairn_protocol::{
    content::Span,
    search::{GrepItem, Omitted, PackedText, SearchAnswer, SymbolItem},
};
use serde_json::json;

use super::*;

fn answer(text: &str) -> SearchAnswer {
    let item = json!({
        "path": "src/f1.rs", "root": "root_1", "startLine": 1, "endLine": 4, "score": 1.0,
        "contentHash": "", "clock": 1,
    });
    SearchAnswer {
        items: vec![serde_json::from_value(item).unwrap()],
        complete: true,
        packed: Some(PackedText { text: text.into(), ..PackedText::default() }),
        ..SearchAnswer::default()
    }
}

#[test]
fn passages_are_the_packed_text_with_notes() {
    let text = "src/f1.rs:1-4 function go\n{\n… 2 lines (2-3)\n}\n";
    let mut one = answer(text);
    assert_eq!(passages(&one, None), text);
    assert_eq!(passages(&one, Some(8)), format!("{text}[more results: cursor=\"8\"]\n"));
    one.omitted = Some(Omitted { items: 5, lines: 2, next_offset: Some(3), hint: String::new() });
    let notes = "[… marks lines left out: read has them]\n[more results: cursor=\"3\"]\n";
    assert_eq!(passages(&one, Some(8)), format!("{text}{notes}"));
    one.complete = false;
    assert!(passages(&one, None).contains("still being built"));
    let empty = SearchAnswer { complete: true, ..SearchAnswer::default() };
    assert!(passages(&empty, Some(8)).starts_with("nothing was found"));
    assert!(!passages(&empty, Some(8)).contains("cursor"));
}

#[test]
fn answers_fit_into_their_budget() {
    assert_eq!(Budget::tokens(Some(0)).token_count(), 200);
    assert_eq!(Budget::tokens(None).token_count(), 3000);
    assert_eq!(Budget::tokens(Some(1_000_000)).token_count(), 8000);
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
    let budget = Budget::tokens(None);
    let text = lines(&one, &LocationStyle::Relative, budget);
    assert!(text.starts_with("a-2- b\na:3: zzz") && text.contains("…\na-4- c\n[more "), "{text}");
    let all = GrepAnswer { items: vec![line; 500], complete: true, ..GrepAnswer::default() };
    let fitting = fitting_lines(&all, &LocationStyle::Relative, budget);
    let text = lines(&all, &LocationStyle::Relative, budget);
    assert!(text.len() < budget.bytes() + 200 && fitting < 100, "{fitting}, {}", text.len());
    assert_eq!(text.matches("a:3:").count(), fitting);
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
    let budget = Budget::tokens(None);
    let text = span(&of("x\ny\n", 1, 2, Some(2)), false, budget);
    assert_eq!(text, "a.rs:1-2 of 2\n1|x\n2|y\n");
    let open = span(&of("x\ny\n", 1, 2, Some(9)), false, budget);
    assert!(open.ends_with("[more: the same call with line=3]\n"), "{open}");
    assert!(!span(&of("x\ny\n", 1, 2, Some(9)), true, budget).contains("more"));
    let past = span(&of("", 5, 4, Some(2)), false, budget);
    assert_eq!(past, "a.rs has no line 5; it has 2\n");
    let long = of(&"w".repeat(1000).add_lines(100), 1, 100, Some(100));
    let long = span(&long, true, budget);
    assert!(long.len() < budget.bytes() + 200 && long.contains("line="), "{}", long.len());
}

#[test]
fn registered_result_of_a_file_is_formatted_like_a_span() {
    let of = |output: serde_json::Value| {
        let meta = cairn_protocol::tool::ToolMeta::default();
        let result = cairn_protocol::tool::ToolResult { ok: true, output, error: None, meta };
        file("a.rs", result, 2, false, Budget::tokens(None)).unwrap()
    };
    let output = json!({"content": "2|x|y\n3|\tz\n", "path": "a.rs", "start_line": 2, "end_line": 3,
        "total_lines": 9, "truncated": true});
    assert_eq!(of(output), "a.rs:2-3 of 9\n2|x|y\n3|\tz\n[more: the same call with line=4]\n");
    let binary = json!({"path": "a.rs", "binary": true, "bytes": 12});
    assert_eq!(of(binary), "a.rs is binary, 12 bytes\n");
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
    let of = |answer: &SymbolsAnswer, k| {
        symbols(answer, &LocationStyle::Relative, k, Budget::tokens(Some(200)))
    };
    assert_eq!(of(&one, 9), "a.rs:1-2 function go in Thing\n");
    assert!(of(&one, 1).contains("raise k"));
    let many = SymbolsAnswer { items: vec![one.items[0].clone(); 100], ..one };
    let text = of(&many, 200);
    assert!(text.len() < 1000 && text.contains("left out: narrow"), "{text}");
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
    let budget = Budget::tokens(None);
    let text = calls(&answer, budget);
    assert_eq!(
        text,
        "a.rs:1-9 function go[2J\nb.rs:1 function f1  calls at 3, 4\n\
         b.rs:2 function f2  via f1  calls at 3, 4  (ambiguous)\n\
         [7 more calls lead out of the repository, or to any of many definitions]\n\
         [1 more definitions have this name; choose by path:\n  a.rs:1 function\n]\n"
    );
    answer.items = vec![answer.items[0].clone(); 5_000];
    let text = calls(&answer, budget);
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
    let text = references(&answer, Budget::tokens(None));
    assert!(text.contains("a.rs:3 call in f  (likely): go();\n"), "{}", &text[..200]);
    assert!(text.len() < MAX_ANSWER + 400 && text.contains("there are more"));
    let none: cairn_protocol::search::ImpactAnswer = serde_json::from_value(json!({
        "path": "a.rs", "items": [], "truncated": false, "complete": true, "tookUs": 1,
    }))
    .unwrap();
    assert_eq!(impact(&none, Budget::tokens(None)), "no file imports a.rs\n");
}

#[test]
fn weak_answers_begin_with_a_note() {
    let text = passages(&SearchAnswer { weak: true, ..answer("src/f1.rs:1-4\n") }, None);
    assert!(text.starts_with("[no good match: only the nearest; "), "{text}");
    assert!(text.contains("\nsrc/f1.rs:1-4"), "{text}");
}

#[test]
fn answers_by_words_alone_begin_with_a_note() {
    let by_words = SearchAnswer { degraded: vec!["script".into()], ..answer("src/f1.rs:1-4\n") };
    let text = passages(&by_words, None);
    assert!(text.starts_with("[this script is searched by words only"), "{text}");
    assert!(text.contains("\nsrc/f1.rs:1-4"), "{text}");
}
