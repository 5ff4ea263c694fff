//! Definitions that are read from tokens: compared with Universal Ctags, and of arbitrary text.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use cairn_symbols::extract::{Symbol, extract};
use cairn_workspace::language_of;

/// A sample with the kinds of Ctags that are compared, and its errors there: it reads strings as
/// code, and lines as definitions that only begin like one.
const SAMPLES: &[(&str, &[&str], &[&str])] = &[
    ("Mail.kt", &["class", "object", "interface", "method", "typealias"], &["<lambda>", "Mail.kt"]),
    (
        "mail.ex",
        &[
            "module",
            "protocol",
            "implementation",
            "function",
            "macro",
            "guard",
            "delegate",
            "callback",
            "test",
            "type",
        ],
        &["not_code", "unquote", "#{generated} name"],
    ),
    (
        "Mail.hs",
        &["function", "type", "constructor"],
        &["class", "family", "infixr", "letters", "makeLenses", "outcomeId", "to", "xs"],
    ),
    ("schema.sql", &["table", "view", "function", "procedure", "trigger", "domain"], &[]),
];
const LANGUAGES: &[&str] = &["kotlin", "scala", "dart", "elixir", "haskell", "sql"];

fn symbols(lang: &str, text: &[u8]) -> Vec<Symbol> {
    extract(lang, "x", text, &AtomicBool::new(false)).unwrap().symbols
}

/// Name, kind and line of the definitions that Ctags finds; `None` without that program.
fn by_ctags(file: &Path) -> Option<Vec<(String, String, u32)>> {
    let out = Command::new("ctags")
        .args(["--output-format=json", "--fields=+nK", "-f", "-"])
        .arg(file)
        .output()
        .ok()?;
    let tags = String::from_utf8_lossy(&out.stdout).into_owned();
    let tag = |line: &str| {
        let tag: serde_json::Value = serde_json::from_str(line).ok()?;
        let text = |field: &str| Some(tag.get(field)?.as_str()?.to_owned());
        Some((text("name")?, text("kind")?, u32::try_from(tag.get("line")?.as_u64()?).ok()?))
    };
    Some(tags.lines().filter_map(tag).collect())
}

#[test]
fn definitions_agree_with_ctags() {
    for (file, kinds, errors) in SAMPLES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/symbols").join(file);
        let Some(tags) = by_ctags(&path).filter(|tags| !tags.is_empty()) else {
            eprintln!("note: skipped: Universal Ctags is missing");
            return;
        };
        let found = symbols(language_of(file).unwrap(), &std::fs::read(&path).unwrap());
        let mut compared = 0;
        for (name, kind, line) in tags {
            // Names with spaces are other bytes in its output.
            let is_spaced = |s: &Symbol| s.start_line == line && s.name.contains(' ');
            if !kinds.contains(&kind.as_str())
                || errors.contains(&name.as_str())
                || found.iter().any(is_spaced)
            {
                continue;
            }
            compared += 1;
            let is_same =
                |s: &Symbol| s.name == name && (s.start_line..=s.end_line).contains(&line);
            assert!(found.iter().any(is_same), "{file}:{line}: {kind} {name}");
        }
        assert!(compared > 2, "{file}: {compared}");
    }
}

/// Pieces that start, end and interrupt definitions, strings and comments.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    "\"",
    "\"\"\"",
    "'",
    "`",
    "/*",
    "*/",
    "//",
    "--",
    "{-",
    "-}",
    "#",
    "\n",
    "\n  ",
    "${",
    "#{",
    "$$",
    "~s(",
    "?",
    "class A",
    "fun f",
    "def g",
    "do",
    "end",
    "enum E",
    "data T",
    "where",
    "::",
    "=",
    "=>",
    ";",
    ",",
    ".",
    "@type t",
    "create table t",
    "begin",
    "as",
    "val v",
    "object",
    "extension",
    "given x:",
    "é",
    "\\",
    "\r\n",
    "\u{0}",
];

#[test]
fn definitions_of_arbitrary_text_have_valid_lines() {
    let mut rng = cairn_test_support::random("arbitrary_outlines");
    for _ in 0..3_000 {
        let pieces: Vec<&str> =
            (0..rng.usize(1..60)).map(|_| PIECES[rng.usize(..PIECES.len())]).collect();
        let text = pieces.join(if rng.bool() { " " } else { "" });
        let lines = text.split('\n').count() as u32;
        for lang in LANGUAGES {
            for s in symbols(lang, text.as_bytes()) {
                assert!(
                    1 <= s.start_line && s.start_line <= s.end_line && s.end_line <= lines,
                    "{lang} {text:?} {s:?}"
                );
            }
        }
    }
}

#[test]
fn unfinished_text_does_not_hide_definitions_before_it() {
    for (lang, text, expected) in [
        ("kotlin", "fun a() {}\nclass B {\n  fun c() = \"${", "a B c"),
        ("scala", "def a = 1\nclass B {\n  def c = s\"${", "a B c"),
        ("dart", "int a() => 1;\nclass B {\n  int c() { '${", "a B c"),
        ("elixir", "defmodule A do\n  def c do\n    \"#{", "A c"),
        ("haskell", "a :: Int\na = 1\nc = {- ", "a c"),
        ("sql", "create table a (x int);\ncreate view c as select '", "a c"),
    ] {
        let names: Vec<String> =
            symbols(lang, text.as_bytes()).into_iter().map(|s| s.name).collect();
        assert_eq!(names.join(" "), expected, "{lang}");
    }
}
