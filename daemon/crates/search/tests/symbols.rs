//! Definitions of small sources in each language, beside what is written in `tests/symbols/*.golden`
//! (`CAIRN_UPDATE=1` writes them anew), and that leaving bodies out of the parse changes nothing.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use cairn_search::symbols::extract::{
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
        .map(|p| (p.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(&p).unwrap()))
        .collect();
    all.sort();
    all
}

fn found(extent: ParseInput, name: &str, text: &str) -> Extracted {
    extract_from(extent, language_of(name).unwrap(), name, text.as_bytes(), &AtomicBool::new(false)).unwrap()
}

fn shown(symbols: &[Symbol]) -> String {
    let mut out = String::new();
    for s in symbols {
        let inside = s.container.as_ref().map(|c| format!("{c} > ")).unwrap_or_default();
        writeln!(out, "{}-{} {} {inside}{}", s.start_line, s.end_line, s.kind, s.name).unwrap();
    }
    out
}

#[test]
fn each_language_has_its_definitions() {
    for (name, text) in sources() {
        let have = shown(&found(ParseInput::Reduced, &name, &text).symbols);
        let golden = folder().join(format!("{name}.golden"));
        if std::env::var_os("CAIRN_UPDATE").is_some() {
            std::fs::write(&golden, &have).unwrap();
        }
        assert_eq!(have, std::fs::read_to_string(&golden).unwrap_or_default(), "{name}");
    }
}

#[test]
fn what_is_left_out_of_the_parse_defines_nothing() {
    for (name, text) in sources() {
        let (short, complete_) =
            (found(ParseInput::Reduced, &name, &text), found(ParseInput::Complete, &name, &text));
        assert_eq!(shown(&short.symbols), shown(&complete_.symbols), "{name}");
        for s in &complete_.symbols {
            let simple = s.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            let hash = ident_hash(s.name.as_bytes());
            if simple && complete_.idents.contains(&hash) {
                assert!(short.idents.contains(&hash), "{name}: {}", s.name);
            }
        }
    }
}

#[test]
fn a_body_that_conditions_tear_apart_spoils_nothing() {
    let torn = "int run(int argc) {\n#ifdef DEBUG\n\tif (argc) {\n#else\n\tif (!argc) {\n#endif\n\t\treturn 1;\n\t}\n\treturn 0;\n}\nint next(void)\n{\n\treturn 2;\n}\n";
    for (name, run) in [("a.c", "1-10 function run\n"), ("a.cpp", "1-10 function run\n")] {
        assert_eq!(
            shown(&found(ParseInput::Reduced, name, torn).symbols),
            format!("{run}11-14 function next\n"),
            "{name}"
        );
    }
    // The end of a condition in a body, and its beginning before it.
    let crossed =
        "#ifdef A\nint f(int a) {\n#else\nint f(void) {\n#endif\n    return 1;\n}\nint g() { return 22; }\n";
    let names: Vec<String> =
        found(ParseInput::Reduced, "a.cpp", crossed).symbols.into_iter().map(|s| s.name).collect();
    assert!(names.contains(&"f".to_owned()) && names.contains(&"g".to_owned()), "{names:?}");
}

#[test]
fn a_body_that_ends_indented_takes_nothing_with_it() {
    let text =
        "int f(void) {\n\treturn 1;\n }\n\nint g(void)\n{\n\treturn 2;\n}\nint h(void) {\n\treturn 3;\n}\n";
    let wanted = "1-3 function f\n5-8 function g\n9-11 function h\n";
    assert_eq!(shown(&found(ParseInput::Reduced, "a.c", text).symbols), wanted);
}

#[test]
fn a_header_is_what_its_text_says() {
    let class = "#pragma once\nclass Window {\n  void show() { visible = true; }\n};\n";
    assert_eq!(
        shown(&found(ParseInput::Reduced, "w.h", class).symbols),
        "2-4 class Window\n3-3 method Window > show\n"
    );
    let plain = "struct point { int class; };\n";
    assert_eq!(shown(&found(ParseInput::Reduced, "p.h", plain).symbols), "1-1 struct point\n");
}

#[test]
fn any_text_is_survived() {
    let words = [
        "{", "}", "(", ")", "\"", "'", "`", "/*", "*/", "//", "\n", "#if", "fn f", "class A ", "${", "=>",
        "\\", "r#\"", "é", ";",
    ];
    let mut state = 7u64;
    for _ in 0..400 {
        let mut text = String::new();
        for _ in 0..40 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(words[(state >> 33) as usize % words.len()]);
        }
        for lang in ["rust", "python", "typescript", "go", "c", "cpp", "java", "markdown"] {
            let lines = text.split('\n').count() as u32;
            let found = extract(lang, "x", text.as_bytes(), &AtomicBool::new(false)).unwrap();
            for s in found.symbols {
                assert!(
                    1 <= s.start_line && s.start_line <= s.end_line && s.end_line <= lines,
                    "{lang} {text:?} {s:?}"
                );
            }
        }
    }
}

#[test]
fn all_languages_of_the_table_are_known() {
    for name in [
        "a.rs", "a.py", "a.js", "a.ts", "a.tsx", "a.go", "a.c", "a.cpp", "a.java", "a.rb", "a.swift", "a.cs",
        "a.php", "a.sh", "a.lua", "a.md",
    ] {
        assert!(has_definitions(language_of(name).unwrap()), "{name}");
    }
    assert!(!has_definitions("cobol"));
}
