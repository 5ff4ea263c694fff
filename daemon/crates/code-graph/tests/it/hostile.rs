//! Malicious and damaged texts: no panic, bounded results, linear time.

use cairn_code_graph::{FileImports, extract_imports};
use proptest::prelude::*;

const LANGUAGES: &[&str] = &[
    "rust",
    "python",
    "javascript",
    "typescript",
    "tsx",
    "vue",
    "go",
    "java",
    "kotlin",
    "c",
    "cpp",
    "ruby",
    "csharp",
    "elixir",
    "php",
    "swift",
    "lua",
    "unknown",
];

/// Pieces whose combinations reach most branches of the scanners.
const PIECES: &[&str] = &[
    "import ",
    "from ",
    "use ",
    "mod ",
    "require",
    "include",
    "using ",
    "namespace ",
    "package ",
    "export ",
    "autoload ",
    "extern crate ",
    "type ",
    "as ",
    "#include ",
    "#if 0\n",
    "#endif\n",
    "{",
    "}",
    "(",
    ")",
    ";",
    ",",
    "*",
    "::",
    ".",
    "..",
    "/",
    "\\",
    "'",
    "\"",
    "`",
    "\"\"\"",
    "<<A\n",
    "<<<A\n",
    "R\"(",
    "r#\"",
    "/*",
    "*/",
    "//",
    "#",
    "#[path = ",
    "[[",
    "]]",
    "--",
    "=",
    "${",
    "$",
    "a",
    "b.c",
    "\n",
    " ",
    "\t",
    "é",
    "class X",
    "TYPE_CHECKING:",
    "__END__",
    "=begin\n",
    "<script>",
    "</script>",
    "static ",
    "import_module",
];

fn extract_all(text: &[u8]) {
    for lang in LANGUAGES {
        let file = extract_imports(lang, "x.h", text);
        assert!(file.imports.len() <= 4_000 && file.imports.iter().all(|i| i.line >= 1));
        let lines = text.iter().filter(|b| **b == b'\n').count() as u32 + 1;
        assert!(file.imports.iter().all(|i| i.line <= lines && i.specifier.len() <= 300));
        assert_eq!(FileImports::decode(&file.encode()).as_ref(), Some(&file));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_scanned(text in proptest::collection::vec(any::<u8>(), 0..400)) {
        extract_all(&text);
    }

    #[test]
    fn any_combination_of_pieces_is_scanned(pieces in proptest::collection::vec(0..PIECES.len(), 0..60)) {
        let text: String = pieces.iter().map(|i| PIECES[*i]).collect();
        extract_all(text.as_bytes());
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _ = FileImports::decode(&bytes);
    }
}

#[test]
fn repeated_pieces_take_bounded_time_and_memory() {
    for piece in PIECES {
        extract_all(piece.repeat(100_000 / piece.len()).as_bytes());
    }
    for first in [
        "use {a,",
        "import {a,",
        "from x import (a,",
        "x = <<A ",
        "require x = ",
        "a = /[",
        "use a\\{b,",
    ] {
        extract_all(first.repeat(20_000).as_bytes());
    }
}

#[test]
fn texts_that_are_not_utf8_have_imports() {
    let file = extract_imports("python", "x", b"# \xff\xfe\nimport a\nfrom \xff import b\n");
    assert_eq!(file.imports.len(), 1);
    let file = extract_imports("rust", "x", b"\xff use a::\xff; use b::C;");
    assert_eq!(file.imports.last().map(|i| i.specifier.as_str()), Some("b"));
}

#[test]
fn numbers_of_imports_and_names_are_limited() {
    let file = extract_imports("python", "x", "import a\n".repeat(10_000).as_bytes());
    assert_eq!(file.imports.len(), 4_000);
    let long = format!("import {}\n", "a".repeat(1_000));
    assert!(extract_imports("python", "x", long.as_bytes()).imports.is_empty());
}
