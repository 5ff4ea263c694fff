//! Extraction of import statements by hand-written scanners: one pass over the bytes that stops
//! only at bytes which can begin a comment, a string or a statement of interest.

mod c;
mod collect;
mod csharp;
mod dynamic;
mod elixir;
mod go;
mod jvm;
mod php;
mod python;
mod read;
mod rust;
mod script;
mod swift;
mod types;

use crate::import::FileImports;
use collect::Collector;

/// Maximum bytes of a file that are scanned.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// True if imports of this language are extracted.
pub fn has_imports(lang: &str) -> bool {
    LANGUAGES.contains(&lang)
}

/// Languages with a scanner.
const LANGUAGES: &[&str] = &[
    "c",
    "cpp",
    "csharp",
    "elixir",
    "go",
    "groovy",
    "java",
    "javascript",
    "kotlin",
    "lua",
    "objc",
    "php",
    "python",
    "ruby",
    "rust",
    "scala",
    "svelte",
    "swift",
    "tsx",
    "typescript",
    "vue",
];

/// The imports of a file, in time linear in its size. A language without a scanner has none.
pub fn extract_imports(lang: &str, path: &str, text: &[u8]) -> FileImports {
    let text = &text[..text.len().min(MAX_BYTES)];
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut out = Collector::new(text);
    match lang {
        "rust" => rust::scan(text, &mut out),
        "python" => python::scan(text, &mut out),
        "javascript" | "typescript" | "tsx" => script::scan(text, &mut out),
        "vue" | "svelte" => script::scan_markup(text, &mut out),
        "go" => go::scan(text, &mut out),
        "java" | "kotlin" | "groovy" | "scala" => jvm::scan(lang, text, &mut out),
        "c" | "cpp" | "objc" => c::scan(text, &mut out),
        "ruby" => dynamic::scan_ruby(text, &mut out),
        "elixir" => elixir::scan(text, &mut out),
        "lua" => dynamic::scan_lua(text, &mut out),
        "csharp" => csharp::scan(text, &mut out),
        "php" => php::scan(text, &mut out),
        "swift" => swift::scan(path, text, &mut out),
        _ => {}
    }
    out.finish()
}
