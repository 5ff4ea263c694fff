//! Texts that exhaust a parser. This file has a single test, so that its process measures only the
//! memory of that test.

use std::{
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use cairn_symbols::extract::extract;

/// Each is repeated to half a megabyte. `=> (` in C overflowed the stack, `a<` in Java took all
/// memory there was.
const PIECES: &[&str] = &[
    "(",
    "[",
    "{",
    "a(",
    "f({",
    "if(a){",
    "a<",
    "a?b:",
    "x=",
    "fn a(){",
    "class A{",
    "-",
    "*",
    "a,",
    "a.b",
    "(a)",
    "((a)b)",
    "a<b>(c)",
    "<a>",
    "${",
    "`${",
    "\"#{",
    "\n a:",
    "lambda:",
    "=> (",
    "*a&",
    "a b ",
    "fn f(){}\n",
    "def f:\n ",
    "a*b;",
    "a(b)*c;",
    "{a:",
    "\\",
    "'",
    "/*",
    "try{",
    "a<(",
    "[]",
    "(){",
    "}",
    "--->",
    "$a$ ",
    "fun a()=",
    "class a\n@b ",
    "def a do\n",
    "\na :: ",
    "create type a ",
    "~s(",
];
const LANGUAGES: &[&str] = &[
    "rust",
    "python",
    "javascript",
    "typescript",
    "tsx",
    "go",
    "c",
    "cpp",
    "java",
    "ruby",
    "swift",
    "csharp",
    "php",
    "lua",
    "zig",
    "vue",
];
/// Languages that are read from tokens, without a limit of time: they must take linear time.
const OUTLINED: &[&str] = &["kotlin", "scala", "dart", "elixir", "haskell", "sql"];
const BYTES: usize = 512 * 1024;
/// Memory of the whole process at its height: parsers may have 128 MiB, and a text and a stack for
/// each.
const MAX_RESIDENT: u64 = 400 * 1024 * 1024;

#[test]
fn hostile_texts_stay_within_memory_stack_and_time_limits() {
    // The long form covers every language.
    let all = std::env::var_os("CAIRN_LONG").is_some();
    let chosen: &[&str] = if all { LANGUAGES } else { &["c", "cpp", "java"] };
    let mut aborted = 0;
    let pieces = PIECES
        .iter()
        .filter(|piece| all || ["=> (", "a<", "(", "a(", "fn f(){}\n"].contains(piece));
    for piece in pieces {
        let text = piece.repeat(BYTES / piece.len());
        for lang in chosen {
            let started = Instant::now();
            let extracted = extract(lang, "x", text.as_bytes(), &AtomicBool::new(false));
            aborted += usize::from(extracted.is_none());
            // Twice the limits of a parse and of its thread, for a busy machine.
            assert!(started.elapsed() < Duration::from_secs(24), "{lang} {piece:?}");
        }
    }
    for piece in PIECES {
        let text = piece.repeat(BYTES / piece.len());
        for lang in OUTLINED {
            let started = Instant::now();
            assert!(extract(lang, "x", text.as_bytes(), &AtomicBool::new(false)).is_some());
            assert!(started.elapsed() < Duration::from_secs(24), "{lang} {piece:?}");
        }
    }
    assert!(aborted > 0, "no text reached its limit");
    // Control: an ordinary text is still parsed afterwards.
    let text = "int f(void) { return 1; }\n".repeat(20_000);
    let extracted = extract("c", "x.c", text.as_bytes(), &AtomicBool::new(false)).unwrap();
    assert_eq!(extracted.symbols.len(), 20_000);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(line) = status.lines().find(|line| line.starts_with("VmHWM:")) {
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(kib * 1024 < MAX_RESIDENT, "{line}; {aborted} texts were given up");
        eprintln!("{line}; {aborted} texts were given up");
    }
}
