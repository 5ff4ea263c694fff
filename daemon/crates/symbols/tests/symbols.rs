//! Definitions of small sources in each language compared with `tests/symbols/*.golden`
//! (`CAIRN_UPDATE=1` rewrites them), and with and without reducing the text before parsing.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use cairn_symbols::extract::{
    Extracted, ParseInput, Symbol, extract, extract_from, has_definitions, ident_hash,
};
use cairn_workspace::language_of;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/symbols")
}

/// The sources by name.
fn sources() -> Vec<(String, String)> {
    let mut all: Vec<_> = std::fs::read_dir(folder())
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_none_or(|e| e != "golden"))
        .map(|p| {
            (
                p.file_name().unwrap().to_str().unwrap().to_owned(),
                std::fs::read_to_string(&p).unwrap(),
            )
        })
        .collect();
    all.sort();
    all
}

fn extracted(extent: ParseInput, name: &str, text: &str) -> Extracted {
    extract_from(extent, language_of(name).unwrap(), name, text.as_bytes(), &AtomicBool::new(false))
        .unwrap()
}

fn render(symbols: &[Symbol]) -> String {
    let mut out = String::new();
    for s in symbols {
        let inside = s.container.as_ref().map(|c| format!("{c} > ")).unwrap_or_default();
        writeln!(out, "{}-{} {} {inside}{}", s.start_line, s.end_line, s.kind, s.name).unwrap();
    }
    out
}

#[test]
fn definitions_match_the_golden_files() {
    for (name, text) in sources() {
        let actual = render(&extracted(ParseInput::Reduced, &name, &text).symbols);
        let golden = folder().join(format!("{name}.golden"));
        if std::env::var_os("CAIRN_UPDATE").is_some() {
            std::fs::write(&golden, &actual).unwrap();
        }
        assert_eq!(actual, std::fs::read_to_string(&golden).unwrap_or_default(), "{name}");
    }
}

#[test]
fn reduced_text_has_the_same_definitions() {
    for (name, text) in sources() {
        let (reduced, complete) = (
            extracted(ParseInput::Reduced, &name, &text),
            extracted(ParseInput::Complete, &name, &text),
        );
        assert_eq!(render(&reduced.symbols), render(&complete.symbols), "{name}");
        for s in &complete.symbols {
            let simple = s.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            let hash = ident_hash(s.name.as_bytes());
            if simple && complete.idents.contains(&hash) {
                assert!(reduced.idents.contains(&hash), "{name}: {}", s.name);
            }
        }
    }
}

/// A language of generated sources: a file's name, statements of a body, and a function with
/// `{name}` and `{body}`.
struct Generated {
    file: &'static str,
    function: &'static str,
    /// A type around methods, with `{name}` and `{methods}`.
    container: &'static str,
    statements: &'static [&'static str],
}

/// Statements that a lexer can misread: brackets and quotes in strings, comments, characters and
/// regular expressions.
const GENERATED: &[Generated] = &[
    Generated {
        file: "a.rs",
        function: "fn {name}(a: u8) -> u8 {\n{body}    0\n}\n",
        container: "impl {name} {\n{methods}}\n",
        statements: &[
            "    let s = \"} { \\\" }\";\n",
            "    let r = r#\"} \" {\"#;\n",
            "    // } { ' \"\n",
            "    /* } /* { */ \" */\n",
            "    let c = '{';\n    let d = '\\'';\n",
            "    if a > 1 { g(a); } else { h(|x| { x }); }\n",
            "    let x: &'static str = b\"}\";\n",
            "    match a { 1 => {} _ => { k!{ } } }\n",
        ],
    },
    Generated {
        file: "a.go",
        function: "func {name}(a int) int {\n{body}\treturn 0\n}\n",
        container: "type {name} struct {\n\tA int\n}\n{methods}",
        statements: &[
            "\ts := \"} { \\\" }\"\n",
            "\tr := `} \" {\n}`\n",
            "\t// } { ' `\n",
            "\t/* } { \" */\n",
            "\tc := '{'\n\td := '\\''\n",
            "\tif a > 1 { g(a) } else { h(func() { k() }) }\n",
            "\tfor i := range x {\n\t\tm[i] = T{A: 1}\n\t}\n",
        ],
    },
    Generated {
        file: "a.c",
        function: "int {name}(int a)\n{\n{body}\treturn 0;\n}\n",
        container: "struct {name} {\n\tint a;\n};\n{methods}",
        statements: &[
            "\tchar *s = \"} { \\\" }\";\n",
            "\t// } { ' \"\n",
            "\t/* } { \" \n } */\n",
            "\tchar c = '{', d = '\\'', e = '\"';\n",
            "\tif (a) { g(a); } else { h(); }\n",
            "\tstruct t x = { .a = 1 };\n",
            "#ifdef A\n\tg(1);\n#else\n\tg(2);\n#endif\n",
        ],
    },
    Generated {
        file: "A.java",
        function: "    int {name}(int a) {\n{body}        return 0;\n    }\n",
        container: "class {name} {\n{methods}}\n",
        statements: &[
            "        String s = \"} { \\\" }\";\n",
            "        String t = \"\"\"\n            } \" {\n            \"\"\";\n",
            "        // } { ' \"\n",
            "        /* } { \" */\n",
            "        char c = '{', d = '\\'';\n",
            "        if (a > 1) { g(a); } else { h(() -> { k(); }); }\n",
            "        int[] x = {1, 2};\n",
        ],
    },
    Generated {
        file: "a.ts",
        function: "function {name}(a: number): number {\n{body}  return 0;\n}\n",
        container: "interface {name} {\n  a: number;\n}\n{methods}",
        statements: &[
            "  const s = \"} { \\\" }\";\n",
            "  const t = `} ${a ? `}${b}` : '{'} {`;\n",
            "  const r = /[}/\"]{2}/.test(s);\n",
            "  // } { ' `\n",
            "  /* } { \" ` */\n",
            "  if (a > 1) { g(a); } else { h(() => { k(); }); }\n",
            "  const o = { a: 1, b: { c: 2 } };\n",
            "  const q = a / b / c;\n",
        ],
    },
    Generated {
        file: "a.py",
        function: "def {name}(a):\n{body}    return 0\n\n",
        container: "class {name}:\n    a = 1\n\n{methods}",
        statements: &[
            "    s = \") ( [ \\\" {\"\n",
            "    t = \"\"\"\ndef no(): ( ' \n\"\"\"\n",
            "    # ) ( ' \"\n",
            "    x = [\n        1,\n    ]\n",
            "    if a:\n        g(a)\n    else:\n        h(lambda: {1: 2})\n",
            "    u = r'\\''\n",
            "    v = f\"{a['b']} }}\"\n",
            "    w = a \\\n        + 1\n",
        ],
    },
];

#[test]
fn generated_functions_have_the_definitions_of_the_complete_parse() {
    let mut rng = cairn_test_support::random("generated_functions");
    for language in GENERATED {
        for _ in 0..200 {
            let mut count = 0;
            let mut function = |rng: &mut cairn_test_support::Rng| {
                let body: String = (0..rng.usize(0..6))
                    .map(|_| language.statements[rng.usize(..language.statements.len())])
                    .collect();
                count += 1;
                language
                    .function
                    .replace("{name}", &format!("name{count}"))
                    .replace("{body}", &body)
            };
            let mut text = String::new();
            for part in 0..rng.usize(1..5) {
                let functions: String = (0..rng.usize(1..4)).map(|_| function(&mut rng)).collect();
                let container = language.container.replace("{name}", &format!("Type{part}"));
                text.push_str(&container.replace("{methods}", &functions));
            }
            let reduced = extracted(ParseInput::Reduced, language.file, &text);
            let complete = extracted(ParseInput::Complete, language.file, &text);
            assert_eq!(
                render(&reduced.symbols),
                render(&complete.symbols),
                "{}:\n{text}",
                language.file
            );
        }
    }
}

#[test]
fn body_split_by_conditions_does_not_lose_definitions() {
    let torn = "int run(int argc) {\n#ifdef DEBUG\n\tif (argc) {\n#else\n\tif (!argc) {\n#endif\n\t\treturn 1;\n\t}\n\treturn 0;\n}\nint next(void)\n{\n\treturn 2;\n}\n";
    for (name, run) in [("a.c", "1-10 function run\n"), ("a.cpp", "1-10 function run\n")] {
        assert_eq!(
            render(&extracted(ParseInput::Reduced, name, torn).symbols),
            format!("{run}11-14 function next\n"),
            "{name}"
        );
    }
    // A condition that starts before a body and ends inside it.
    let crossed = "#ifdef A\nint f(int a) {\n#else\nint f(void) {\n#endif\n    return 1;\n}\nint g() { return 22; }\n";
    let names: Vec<String> = extracted(ParseInput::Reduced, "a.cpp", crossed)
        .symbols
        .into_iter()
        .map(|s| s.name)
        .collect();
    assert!(names.contains(&"f".to_owned()) && names.contains(&"g".to_owned()), "{names:?}");
}

#[test]
fn body_with_an_indented_end_does_not_swallow_definitions() {
    let text = "int f(void) {\n\treturn 1;\n }\n\nint g(void)\n{\n\treturn 2;\n}\nint h(void) {\n\treturn 3;\n}\n";
    let expected = "1-3 function f\n5-8 function g\n9-11 function h\n";
    assert_eq!(render(&extracted(ParseInput::Reduced, "a.c", text).symbols), expected);
}

#[test]
fn header_language_follows_its_text() {
    let class = "#pragma once\nclass Window {\n  void show() { visible = true; }\n};\n";
    assert_eq!(
        render(&extracted(ParseInput::Reduced, "w.h", class).symbols),
        "2-4 class Window\n3-3 method Window > show\n"
    );
    let plain = "struct point { int class; };\n";
    assert_eq!(render(&extracted(ParseInput::Reduced, "p.h", plain).symbols), "1-1 struct point\n");
}

#[test]
fn arbitrary_text_does_not_crash() {
    let words = [
        "{", "}", "(", ")", "\"", "'", "`", "/*", "*/", "//", "\n", "#if", "fn f", "class A ",
        "${", "=>", "\\", "r#\"", "é", ";",
    ];
    let mut rng = cairn_test_support::Rng::with_seed(7);
    for _ in 0..400 {
        let mut text = String::new();
        for _ in 0..40 {
            text.push_str(words[rng.usize(..words.len())]);
        }
        for lang in [
            "rust",
            "python",
            "typescript",
            "go",
            "c",
            "cpp",
            "java",
            "markdown",
            "zig",
            "vue",
            "svelte",
        ] {
            let lines = text.split('\n').count() as u32;
            let extracted = extract(lang, "x", text.as_bytes(), &AtomicBool::new(false)).unwrap();
            for s in extracted.symbols {
                assert!(
                    1 <= s.start_line && s.start_line <= s.end_line && s.end_line <= lines,
                    "{lang} {text:?} {s:?}"
                );
            }
        }
    }
}

#[test]
fn all_languages_of_the_table_are_supported() {
    for name in [
        "a.rs", "a.py", "a.js", "a.ts", "a.tsx", "a.go", "a.c", "a.cpp", "a.java", "a.rb",
        "a.swift", "a.cs", "a.php", "a.sh", "a.lua", "a.md", "a.zig", "a.vue", "a.svelte", "a.kt",
        "a.scala", "a.dart", "a.ex", "a.hs", "a.sql",
    ] {
        assert!(has_definitions(language_of(name).unwrap()), "{name}");
    }
    assert!(!has_definitions("cobol"));
}
