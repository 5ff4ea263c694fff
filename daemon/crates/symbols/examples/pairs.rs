//! Mines pairs of documentation and code for training the embedding table, with the grammars of the
//! index.
//!
//! `pairs FOLDER... [--each=N]`: each folder in a FOLDER is a package. Prints one JSON object per
//! line with `lang`, `package`, `path`, `name`, `doc` (null if there is none) and `code`, at most N
//! (3,000) per language and package with documentation, and as many without. Files are read in a
//! fixed order that differs from that of the tree. Copies of a definition are printed once, and a
//! sentence that documents many definitions at most twice.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use cairn_symbols::extract::{self, ParseInput, Symbol, ident_hash};
use cairn_symbols::languages::grammar;
use cairn_workspace::language_of;

#[path = "pairs/doc.rs"]
mod doc;

/// Larger files are mostly data or generated.
const MAX_BYTES: u64 = 400 * 1024;
/// Maximum lines of a definition.
const MAX_LINES: usize = 80;
/// Maximum bytes of a definition.
const MAX_CODE: usize = 4000;
/// Maximum number of definitions per language that the same sentence documents.
const MAX_SAME_DOC: u8 = 2;
/// Folders that contain third-party code or undocumented code.
const EXCLUDED_FOLDERS: [&str; 16] = [
    "test",
    "tests",
    "testing",
    "testdata",
    "__tests__",
    "spec",
    "vendor",
    "vendored",
    "_vendor",
    "third_party",
    "thirdparty",
    "node_modules",
    "deps",
    "fixtures",
    "examples",
    "locale",
];

/// Definitions and sentences of all packages so far.
#[derive(Default)]
struct Seen {
    code: std::collections::HashSet<u64>,
    docs: HashMap<u64, u8>,
}

fn main() {
    let (flags, folders): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|a| a.starts_with("--"));
    let each = flags.iter().find_map(|f| f.strip_prefix("--each=")?.parse().ok()).unwrap_or(3000);
    let mut seen = Seen::default();
    let mut out = std::io::BufWriter::new(std::io::stdout());
    for folder in &folders {
        for package in entries(Path::new(folder)) {
            mine(&package, each, &mut seen, &mut out);
        }
    }
}

/// Writes the pairs of one package.
fn mine(package: &Path, each: usize, seen: &mut Seen, out: &mut impl Write) {
    let name = package.file_name().unwrap_or_default().to_string_lossy();
    let mut counts: HashMap<&str, [usize; 2]> = HashMap::new();
    for path in files(package) {
        let relative_path =
            path.strip_prefix(package).unwrap_or(&path).to_string_lossy().into_owned();
        let Some(by_name) = language_of(&relative_path).filter(|l| grammar(l).is_some()) else {
            continue;
        };
        let Some(text) = read_handwritten(&path) else { continue };
        let lang = extract::parsed_as(by_name, &relative_path, &text).0;
        let count = counts.entry(if lang == "tsx" { "typescript" } else { lang }).or_default();
        if count.iter().all(|c| *c >= each) {
            continue;
        }
        for (symbol, doc, code) in definitions(lang, &relative_path, &text) {
            let slot = &mut count[usize::from(doc.is_none())];
            if *slot >= each || !seen.is_new(lang, &symbol.name, doc.as_deref(), &code) {
                continue;
            }
            *slot += 1;
            let lang = if lang == "tsx" { "typescript" } else { lang };
            let row = serde_json::json!({"lang": lang, "package": name, "path": relative_path, "name": symbol.name, "doc": doc, "code": code});
            if writeln!(out, "{row}").is_err() {
                return;
            }
        }
    }
}

impl Seen {
    /// True if a definition is new, judged by its first words, and its documentation is not common.
    fn is_new(&mut self, lang: &str, name: &str, doc: Option<&str>, code: &str) -> bool {
        let head =
            code.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).take(40);
        if !self.code.insert(hash(head)) {
            return false;
        }
        let Some(doc) = doc else { return true };
        let words =
            doc.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty() && *w != name);
        let times = self.docs.entry(hash(std::iter::once(lang).chain(words))).or_default();
        *times = times.saturating_add(1);
        *times <= MAX_SAME_DOC
    }
}

fn hash<'a>(words: impl Iterator<Item = &'a str>) -> u64 {
    let fold = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01B3);
    words.fold(0xcbf2_9ce4_8422_2325, |h, w| w.as_bytes().iter().chain(b" ").fold(h, fold))
}

/// Functions, methods and types of a file, with their documentation and their text without it.
fn definitions(lang: &str, path: &str, text: &[u8]) -> Vec<(Symbol, Option<String>, String)> {
    let Some(extracted) =
        extract::extract_from(ParseInput::Complete, lang, path, text, &AtomicBool::new(false))
    else {
        return Vec::new();
    };
    let lines: Vec<String> = text
        .split(|b| *b == b'\n')
        .map(|l| String::from_utf8_lossy(l).trim_end().to_owned())
        .collect();
    let comments = doc::Comments::find(lang, text, lines.len());
    let kinds = [
        "function",
        "method",
        "constructor",
        "class",
        "struct",
        "interface",
        "trait",
        "protocol",
        "enum",
        "record",
        "macro",
        "type",
    ];
    let candidates = extracted.symbols.into_iter().filter(|s| kinds.contains(&s.kind));
    let pair = |symbol: Symbol| {
        let first = symbol.start_line as usize - 1;
        let inside = comments.docstring(first);
        let doc = match &inside {
            Some((from, to)) => doc::clean(lang, lines.get(*from..=*to)?),
            None => comments
                .comment_above(&lines, first)
                .and_then(|(from, to)| doc::clean(lang, &lines[from..=to])),
        };
        let last = (symbol.end_line as usize).min(first + MAX_LINES).min(lines.len());
        let is_code = |row: &usize| inside.is_none_or(|(from, to)| !(from..=to).contains(row));
        let mut code = String::new();
        for row in (first..last).filter(is_code) {
            code.push_str(&lines[row]);
            code.push('\n');
        }
        let cut =
            (0..=MAX_CODE.min(code.len())).rev().find(|at| code.is_char_boundary(*at)).unwrap_or(0);
        code.truncate(cut);
        let words =
            code.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).count();
        (words >= 12).then_some((symbol, doc, code))
    };
    candidates.filter_map(pair).collect()
}

/// The text of a file, unless it is generated.
fn read_handwritten(path: &Path) -> Option<Vec<u8>> {
    if path.metadata().ok()?.len() > MAX_BYTES {
        return None;
    }
    let text = std::fs::read(path).ok()?;
    let lines = 1 + text.iter().filter(|b| **b == b'\n').count();
    let head = String::from_utf8_lossy(&text[..text.len().min(1024)]);
    let generated_markers = [
        "@generated",
        "DO NOT EDIT",
        "do not edit",
        "Generated by",
        "auto-generated",
        "autogenerated",
    ];
    (!text.contains(&0)
        && text.len() / lines <= 120
        && !generated_markers.iter().any(|m| head.contains(m)))
    .then_some(text)
}

/// All files of a package that may contain its own code, ordered by the hashes of their paths.
fn files(package: &Path) -> Vec<PathBuf> {
    let (mut extracted, mut folders) = (Vec::new(), vec![package.to_owned()]);
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            let Ok(meta) = path.symlink_metadata() else { continue };
            if meta.is_dir() && !is_excluded_folder(&name) {
                folders.push(path);
            } else if meta.is_file()
                && ![".d.ts", ".min.js", "_test.go", "_pb2.py", ".pb.go"]
                    .iter()
                    .any(|e| name.ends_with(e))
            {
                extracted.push(path);
            }
        }
    }
    let order = |p: &PathBuf| {
        let relative_path = p.strip_prefix(package).unwrap_or(p).to_string_lossy().into_owned();
        (ident_hash(relative_path.as_bytes()), relative_path)
    };
    extracted.sort_by_cached_key(order);
    extracted
}

fn is_excluded_folder(folder: &str) -> bool {
    EXCLUDED_FOLDERS.contains(&folder)
        || folder.starts_with('.')
        || folder.ends_with(".tests")
        || folder.ends_with("-tests")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    all.sort();
    all
}
