//! Extracts the definitions of a file with their lines, and its distinct identifiers, within limits
//! of time and number.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

pub use cairn_parsing::Unavailable;
use rustc_hash::FxHashSet;
use tree_sitter::{ParseOptions, Parser, Tree};

use super::bodies::{self, LineMap};
use super::languages::{self, Grammar, grammar, has_grammar};
use super::walk::Walk;
use super::{embedded, outline, sections, shell};

/// Time limit for one file.
const MAX_TIME: Duration = Duration::from_millis(1500);
/// Size of a text after which memory is trimmed, in bytes.
pub const TRIM_BYTES: usize = 512 * 1024;
/// Memory limit of a parser as a multiple of the text's bytes, within the following bounds. Among
/// 32,236 texts of published packages the maximum was a factor of 231, and 59 MB.
const MEMORY_FACTOR: usize = 256;
const MIN_MEMORY: usize = 4 * 1024 * 1024;
const MAX_MEMORY: usize = 64 * 1024 * 1024;
/// Maximum definitions of one file.
pub(super) const MAX_SYMBOLS: usize = 20_000;
/// Maximum bytes of a name.
pub(super) const MAX_NAME: usize = 200;

/// The definitions and references of a file.
#[derive(Debug, Default, PartialEq)]
pub struct Extracted {
    /// Definitions in file order.
    pub symbols: Vec<Symbol>,
    /// Sorted hashes of the distinct identifiers.
    pub idents: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    pub kind: &'static str,
    /// Name of the enclosing definition.
    pub container: Option<String>,
    /// First line, counted from 1.
    pub start_line: u32,
    pub end_line: u32,
}

/// True if definitions of this language are extracted.
pub fn has_definitions(lang: &str) -> bool {
    lang == sections::LANGUAGE
        || lang == shell::LANGUAGE
        || embedded::is_component(lang)
        || outline::is_outlined(lang)
        || has_grammar(lang)
}

/// The hash of an identifier.
pub fn ident_hash(name: &[u8]) -> u32 {
    name.iter().fold(2_166_136_261, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619))
}

/// The part of a text that is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseInput {
    /// The text without bodies and comments that contain no definitions.
    Reduced,
    /// The entire text, which is slower and the reference for the other.
    Complete,
}

/// Extracts the definitions and identifiers of `text`. `None` if the language is unknown, the time
/// limit was reached or `stop` was set.
pub fn extract(lang: &str, path: &str, text: &[u8], stop: &AtomicBool) -> Option<Extracted> {
    extract_from(ParseInput::Reduced, lang, path, text, stop)
}

/// The same as [`extract`] for the given part of the text.
pub fn extract_from(
    extent: ParseInput,
    lang: &str,
    path: &str,
    text: &[u8],
    stop: &AtomicBool,
) -> Option<Extracted> {
    try_extract(extent, lang, path, text, stop).ok().flatten()
}

/// The same as [`extract_from`], for callers that parse a text later which cannot be parsed now.
///
/// # Errors
/// [`Unavailable`] if no parser could be started.
pub fn try_extract(
    extent: ParseInput,
    lang: &str,
    path: &str,
    text: &[u8],
    stop: &AtomicBool,
) -> Result<Option<Extracted>, Unavailable> {
    if lang == shell::LANGUAGE {
        return Ok(Some(shell::functions(text)));
    }
    if lang == sections::LANGUAGE {
        return Ok(Some(Extracted { symbols: sections::sections(text), idents: Vec::new() }));
    }
    if outline::is_outlined(lang) {
        return Ok(outline::definitions(lang, text));
    }
    let (lang, text) = parsed_as(lang, path, text);
    let text = &*text;
    let Some(lang) = languages::name(lang) else { return Ok(None) };
    let Some(grammar) = grammar(lang) else { return Ok(None) };
    let mut idents = FxHashSet::default();
    let reduced =
        if extent == ParseInput::Reduced { bodies::reduce(lang, text, &mut idents) } else { None };
    let is_reduced = reduced.is_some();
    let (parsed_text, lines) =
        reduced.map_or_else(|| (text.to_vec(), LineMap::default()), |s| (s.text, s.lines));
    if !is_reduced {
        idents.clear();
    }
    let limit = memory_limit(parsed_text.len());
    let task = move || {
        let until = Instant::now() + MAX_TIME;
        let tree = parse(grammar, &parsed_text, limit, until)?;
        let mut walk = Walk::new(&parsed_text, grammar, lang, &lines, until);
        walk.run(&mut tree.walk(), (!is_reduced).then_some(&mut idents))?;
        Some((walk.symbols, idents))
    };
    let Some((symbols, idents)) = cairn_parsing::bounded(limit, stop, task)?.flatten() else {
        return Ok(None);
    };
    if symbols.len() == MAX_SYMBOLS {
        tracing::debug!(path, "definitions were truncated at their limit");
    }
    let mut idents: Vec<u32> = idents.into_iter().collect();
    idents.sort_unstable();
    Ok(Some(Extracted { symbols, idents }))
}

fn memory_limit(bytes: usize) -> usize {
    bytes.saturating_mul(MEMORY_FACTOR).clamp(MIN_MEMORY, MAX_MEMORY)
}

/// The language whose grammar a file is parsed with, and the text for it: C++ for a header that is
/// one, and the scripts of a component at their positions.
pub fn parsed_as<'a, 't>(lang: &'a str, path: &str, text: &'t [u8]) -> (&'a str, Cow<'t, [u8]>) {
    if embedded::is_component(lang) {
        return embedded::scripts(text);
    }
    (if lang == "c" && is_cpp_header(path, text) { "cpp" } else { lang }, Cow::Borrowed(text))
}

/// True if a `.h` file is C++, judged by the start of its lines.
fn is_cpp_header(path: &str, text: &[u8]) -> bool {
    const CPP_PREFIXES: [&[u8]; 6] =
        [b"class ", b"namespace ", b"template <", b"template<", b"public:", b"using namespace "];
    let is_header = path.len() > 2 && path.as_bytes()[path.len() - 2..].eq_ignore_ascii_case(b".h");
    let is_cpp_line = |line: &[u8]| {
        let line = line.trim_ascii_start();
        CPP_PREFIXES.iter().any(|t| line.starts_with(t))
    };
    is_header && text[..text.len().min(64 * 1024)].split(|b| *b == b'\n').any(is_cpp_line)
}

/// Parses the entire `text` and drops the tree, for measuring parsing alone. Returns false if the
/// language has no grammar.
pub fn parse_only(lang: &str, text: &[u8]) -> bool {
    let Some(grammar) = grammar(lang) else { return false };
    let (limit, text) = (memory_limit(text.len()), text.to_vec());
    let task = move || parse(grammar, &text, limit, Instant::now() + MAX_TIME).is_some();
    cairn_parsing::bounded(limit, &AtomicBool::new(false), task) == Ok(Some(true))
}

fn parse(grammar: &Grammar, text: &[u8], limit: usize, until: Instant) -> Option<Tree> {
    thread_local!(static PARSER: RefCell<Parser> = RefCell::new(cairn_parsing::parser()));
    PARSER.with_borrow_mut(|parser| {
        parser.set_language(&grammar.language).ok()?;
        let mut check = |_: &tree_sitter::ParseState| {
            if cairn_parsing::is_over(limit) || Instant::now() > until {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let options = ParseOptions::new().progress_callback(&mut check);
        let tree = parser.parse_with_options(
            &mut |at, _| text.get(at..).unwrap_or(&[]),
            None,
            Some(options),
        );
        // An aborted parse retains its memory until the reset.
        parser.reset();
        tree
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(lang: &str, text: &str) -> String {
        let extracted = extract(lang, "x", text.as_bytes(), &AtomicBool::new(false)).unwrap();
        let show = |s: &Symbol| {
            let inside = s.container.as_ref().map(|c| format!("{c}.")).unwrap_or_default();
            format!("{} {inside}{} {}-{}", s.kind, s.name, s.start_line, s.end_line)
        };
        extracted.symbols.iter().map(show).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn definitions_after_a_table_of_numbers_have_correct_lines() {
        let rows = "  0x1F600, -12, 1.5, 7,\n".repeat(60);
        for (lang, text) in [
            ("c", format!("int a[] = {{\n{rows}}};\nint f(void)\n{{\n}}\n")),
            ("rust", format!("static A: [u8; 3] = [\n{rows}];\nfn f() {{\n}}\n")),
            ("go", format!("package p\nvar A = []int{{\n{rows}}}\nfunc f() {{\n}}\n")),
            ("java", format!("class C {{\nint[] a = {{\n{rows}}};\nvoid f() {{\n}}\n}}\n")),
            ("javascript", format!("const a = [\n{rows}];\nfunction f() {{\n}}\n")),
            ("python", format!("A = [\n{rows}]\ndef f():\n    pass\n")),
        ] {
            let of = |extent| {
                extract_from(extent, lang, "x", text.as_bytes(), &AtomicBool::new(false)).unwrap()
            };
            let (reduced, complete) = (of(ParseInput::Reduced), of(ParseInput::Complete));
            assert!(reduced.symbols.iter().any(|s| s.name == "f" && s.start_line > 61), "{lang}");
            assert_eq!(reduced.symbols, complete.symbols, "{lang}");
            let parsed_text =
                bodies::reduce(lang, text.as_bytes(), &mut FxHashSet::default()).unwrap().text;
            assert!(parsed_text.len() * 3 < text.len(), "{lang}");
        }
    }

    #[test]
    fn definitions_of_each_language_are_extracted() {
        for (lang, text, expected) in [
            (
                "rust",
                "pub struct A<T>(T);\nimpl<T> Tr for A<T> {\n  fn run(&self) {}\n}\nmod m {\n fn free() {}\n}\nmod other;\nmacro_rules! mac { () => {} }\ntrait Tr { fn run(&self); }\nconst MAX: u8 = 1;",
                "struct A 1-1; method A.run 3-3; module m 5-7; function m.free 6-6; macro mac 9-9; trait Tr 10-10; method Tr.run 10-10; constant MAX 11-11",
            ),
            (
                "python",
                "LIMIT = 3\nclass A:\n    @property\n    def x(self):\n        y = 1\n        return y\n\nasync def f(): pass\n",
                "constant LIMIT 1-1; class A 2-6; method A.x 4-6; function f 8-8",
            ),
            (
                "javascript",
                "class A { run() {} }\nconst f = (a) => a;\napp.use = function use() {};\nmodule.exports = { go: function () {} };\nfunction g() {}\n",
                "class A 1-1; method A.run 1-1; function f 2-2; function use 3-3; method go 4-4; function g 5-5",
            ),
            (
                "typescript",
                "export interface I { m(): void }\nexport type T = string;\nenum E { A }\nexport const f = async () => 1;\nabstract class C { abstract x(): void; private y = () => 2; }\n",
                "interface I 1-1; method I.m 1-1; type T 2-2; enum E 3-3; function f 4-4; class C 5-5; method C.x 5-5; method C.y 5-5",
            ),
            ("tsx", "export function App() { return <div/>; }\n", "function App 1-1"),
            (
                "go",
                "package p\ntype S struct{}\ntype I interface{}\nfunc (s *S) Run() {}\nfunc New() *S { return nil }\nconst Max = 1\nvar Err = 2\ntype G[T any] struct{}\nfunc (g *G[T]) Do() {}\n",
                "struct S 2-2; interface I 3-3; method S.Run 4-4; function New 5-5; constant Max 6-6; variable Err 7-7; struct G 8-8; method G.Do 9-9",
            ),
            (
                "c",
                "#define MAX 3\n#define F(x) (x)\nstruct s { int a; };\ntypedef struct { int b; } t;\nstatic int *get(struct s *p) { return 0; }\nenum e { A };\nint proto(void);\n",
                "macro MAX 1-1; macro F 2-2; struct s 3-3; type t 4-4; function get 5-5; enum e 6-6",
            ),
            (
                "java",
                "package p;\npublic class A { A() {} void run() {} interface B { int c(); } }\nenum E { X }\nrecord R(int a) {}\n",
                "class A 2-2; constructor A.A 2-2; method A.run 2-2; interface A.B 2-2; method B.c 2-2; enum E 3-3; record R 4-4",
            ),
        ] {
            assert_eq!(names(lang, text), expected, "{lang}");
        }
    }

    #[test]
    fn identifiers_are_distinct_and_sorted() {
        let extracted =
            extract("rust", "x", b"fn aa() { bb(cc, bb); x }", &AtomicBool::new(false)).unwrap();
        assert_eq!(extracted.idents.len(), 3);
        assert!(extracted.idents.is_sorted() && extracted.idents.contains(&ident_hash(b"bb")));
    }

    #[test]
    fn deep_nesting_and_invalid_text_do_not_crash() {
        let deep = "(".repeat(200_000);
        let _ = extract("javascript", "x", deep.as_bytes(), &AtomicBool::new(false));
        assert!(
            extract("rust", "x", b"fn ok() {} \xff\xfe fn (((", &AtomicBool::new(false)).is_some()
        );
        assert!(extract("cobol", "x", b"", &AtomicBool::new(false)).is_none());
    }
}
