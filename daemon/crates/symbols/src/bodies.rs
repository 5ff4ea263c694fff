//! Removes text without definitions before parsing: most of a text, and so most of the parse time,
//! is in function bodies and comments.
//!
//! A first pass over the bytes ([`braces`], [`indented`]) finds the identifiers, and the bodies
//! that contain no definitions; the parser reads the remaining text with `{}` in their place. If
//! the pass fails, which unbalanced brackets show, the text is parsed completely. Tables of numbers
//! ([`numbers`]) are removed as well.

mod braces;
mod indented;
mod layout;
mod lex;
mod numbers;
mod reserved;
mod roles;

use rustc_hash::FxHashSet;

use super::extract::ident_hash;

/// The text for the parser.
#[derive(Debug, Default)]
pub struct ReducedText {
    /// The text without the removed parts.
    pub text: Vec<u8>,
    pub lines: LineMap,
}

/// Maps offsets of a reduced text to the number of removed lines before them.
#[derive(Debug, Default)]
pub struct LineMap {
    /// Offsets in the reduced text, each with the total number of lines removed up to it.
    gaps: Vec<(usize, u32)>,
}

impl LineMap {
    /// Lines removed before a node that starts at `offset`.
    pub fn before_start(&self, offset: usize) -> u32 {
        self.lines_before_gap(self.gaps.partition_point(|g| g.0 <= offset))
    }

    /// Lines removed before a node that ends at `offset`: text removed exactly there follows the
    /// node.
    pub fn before_end(&self, offset: usize) -> u32 {
        self.lines_before_gap(self.gaps.partition_point(|g| g.0 < offset))
    }

    fn lines_before_gap(&self, gaps: usize) -> u32 {
        gaps.checked_sub(1).map_or(0, |i| self.gaps[i].1)
    }
}

/// A part to remove, with its replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    from: usize,
    to: usize,
    replacement: &'static [u8],
}

/// Reduces `text` and adds the hashes of its identifiers to `idents`. `None` if the language has no
/// such pass or the pass fails: then the text must be parsed completely, and its identifiers are
/// those of the tree.
pub fn reduce(lang: &str, text: &[u8], idents: &mut FxHashSet<u32>) -> Option<ReducedText> {
    let mut cuts = match lang {
        "c" => layout::cuts(text, idents),
        "python" => indented::cuts(text, idents)?,
        _ => braces::cuts(braces::Lang::of(lang)?, text, idents)?,
    };
    for word in reserved::words(lang) {
        idents.remove(&ident_hash(word.as_bytes()));
    }
    cuts.append(&mut numbers::cuts(lang, text));
    cuts.sort_unstable_by_key(|c| (c.from, std::cmp::Reverse(c.to)));
    Some(apply_cuts(text, &cuts))
}

fn apply_cuts(text: &[u8], cuts: &[Cut]) -> ReducedText {
    let mut short =
        ReducedText { text: Vec::with_capacity(text.len() / 2), lines: LineMap::default() };
    let (mut at, mut dropped) = (0, 0u32);
    for cut in cuts {
        if cut.from < at {
            continue;
        }
        short.text.extend_from_slice(&text[at..cut.from]);
        let lines = memchr::memchr_iter(b'\n', &text[cut.from..cut.to]).count() as u32;
        if lines > 0 {
            dropped += lines;
            short.lines.gaps.push((short.text.len(), dropped));
        }
        short.text.extend_from_slice(cut.replacement);
        at = cut.to;
    }
    short.text.extend_from_slice(&text[at..]);
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(lang: &str, text: &str) -> String {
        let short = reduce(lang, text.as_bytes(), &mut FxHashSet::default()).unwrap();
        String::from_utf8(short.text).unwrap()
    }

    #[test]
    fn bodies_and_comments_are_removed() {
        for (lang, text, result) in [
            (
                "c",
                "int f(void)\n{\n\treturn g(1);\n}\nint b; /* c */\n",
                "int f(void)\n{\n}\nint b;  \n",
            ),
            (
                "c",
                "static const struct ops o = {\n\t.f = g(1),\n};\n",
                "static const struct ops o = {\n\t.f = g(1),\n};\n",
            ),
            (
                "go",
                "func (s *S) Run() error {\n\treturn nil\n}\n// c\nvar x = 1\n",
                "func (s *S) Run() error {}\nvar x = 1\n",
            ),
            (
                "rust",
                "/// Doc.\nfn f() -> u8 {\n    1 + g()\n}\nfn h() { struct A; }\n",
                "fn f() -> u8 {}\nfn h() { struct A; }\n",
            ),
            (
                "java",
                "class A {\n  int f() throws E { return 1 + 2; }\n  int[] b = {1, 2, 3, 4, 5};\n}\n",
                "class A {\n  int f() throws E {}\n  int[] b = {1, 2, 3, 4, 5};\n}\n",
            ),
            (
                "python",
                "def f():\n    a = 1\n    return a\n\nb = 2\n",
                "def f():\n    pass\n\nb = 2\n",
            ),
            (
                "typescript",
                "const f = (a: A) => {\n  return a.b;\n};\n",
                "const f = (a: A) => {};\n",
            ),
        ] {
            assert_eq!(short(lang, text), result, "{lang}");
        }
    }

    #[test]
    fn text_that_the_pass_cannot_follow_is_not_reduced() {
        for (lang, text) in [
            ("rust", "fn f() { g("),
            ("java", "class A { void f() { ) } }"),
            ("javascript", "const a = () => { return <p>it's</p>; };"),
            ("python", "def f():\n    return (1\n"),
            ("ruby", "def f; end"),
        ] {
            assert!(reduce(lang, text.as_bytes(), &mut FxHashSet::default()).is_none(), "{lang}");
        }
    }

    #[test]
    fn identifiers_exclude_comments_strings_and_keywords() {
        for (lang, text) in [
            ("c", "foo(\"bar\\\"bar\", 'q'); // baz\n/* qux */ x1 = 0xff; if (y) return;"),
            ("go", "foo(\"bar\", `baz`) // qux\nx1 = 0xff; return"),
            ("rust", "foo(\"bar\", r#\"baz\"#); /* qux /* */ */ x1 = 0xff; fn"),
            ("java", "foo(\"bar\", \"\"\"\nbaz\n\"\"\"); // qux\nx1 = 0xff; return"),
            ("typescript", "foo(`bar ${x1} baz`, /qux/); return"),
            ("python", "foo('bar', \"\"\"baz\"\"\", f'{x1} bar')  # qux\nreturn"),
        ] {
            let mut idents = FxHashSet::default();
            reduce(lang, text.as_bytes(), &mut idents).unwrap();
            for (name, is) in [
                ("foo", true),
                ("x1", true),
                ("bar", false),
                ("baz", false),
                ("qux", false),
                ("return", false),
            ] {
                assert_eq!(idents.contains(&ident_hash(name.as_bytes())), is, "{lang} {name}");
            }
        }
    }
}
