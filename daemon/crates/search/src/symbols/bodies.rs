//! Leaving out of a parse what defines nothing: most of a text, and so most of the time, is in the bodies of functions
//! and in comments.
//!
//! A first pass over the bytes ([`braces`], [`indented`]) finds the identifiers and the bodies without definitions in
//! them; the parser then reads the rest, with `{}` where they were. A text in which that pass loses its way, as its
//! brackets tell at the end, is parsed whole. Tables of numbers ([`numbers`]) go as well.

mod braces;
mod indented;
mod layout;
mod lex;
mod numbers;
mod reserved;
mod roles;

use rustc_hash::FxHashSet;

use super::extract::ident_hash;

/// What a parser is given instead of the whole text.
#[derive(Debug, Default)]
pub struct Short {
    /// The text without what was left out.
    pub text: Vec<u8>,
    /// Where lines are missing in it.
    pub lines: Lines,
}

/// The lines left out before a place of a shortened text.
#[derive(Debug, Default)]
pub struct Lines {
    /// Offsets in the shortened text, each with all lines left out up to there.
    gaps: Vec<(usize, u32)>,
}

impl Lines {
    /// Lines left out before what begins at `offset`.
    pub fn before_start(&self, offset: usize) -> u32 {
        self.up_to(self.gaps.partition_point(|g| g.0 <= offset))
    }

    /// Lines left out before what ends at `offset`: what was left out right there lies behind it.
    pub fn before_end(&self, offset: usize) -> u32 {
        self.up_to(self.gaps.partition_point(|g| g.0 < offset))
    }

    fn up_to(&self, gaps: usize) -> u32 {
        gaps.checked_sub(1).map_or(0, |i| self.gaps[i].1)
    }
}

/// A part to leave out, with what stands for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    from: usize,
    to: usize,
    instead: &'static [u8],
}

/// Shortens `text` and adds the hashes of its identifiers to `seen`. `None` when the language has no such pass, or the
/// text is beyond it: then it must be parsed whole, and its identifiers are those of the tree.
pub fn shorten(lang: &str, text: &[u8], seen: &mut FxHashSet<u32>) -> Option<Short> {
    let mut cuts = match lang {
        "c" => layout::cuts(text, seen),
        "python" => indented::cuts(text, seen)?,
        _ => braces::cuts(braces::Lang::of(lang)?, text, seen)?,
    };
    for word in reserved::words(lang) {
        seen.remove(&ident_hash(word.as_bytes()));
    }
    cuts.append(&mut numbers::cuts(lang, text));
    cuts.sort_unstable_by_key(|c| (c.from, std::cmp::Reverse(c.to)));
    Some(without(text, &cuts))
}

fn without(text: &[u8], cuts: &[Cut]) -> Short {
    let mut short = Short { text: Vec::with_capacity(text.len() / 2), lines: Lines::default() };
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
        short.text.extend_from_slice(cut.instead);
        at = cut.to;
    }
    short.text.extend_from_slice(&text[at..]);
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(lang: &str, text: &str) -> String {
        let short = shorten(lang, text.as_bytes(), &mut FxHashSet::default()).unwrap();
        String::from_utf8(short.text).unwrap()
    }

    #[test]
    fn bodies_and_comments_go() {
        for (lang, text, left) in [
            ("c", "int f(void)\n{\n\treturn g(1);\n}\nint b; /* c */\n", "int f(void)\n{\n}\nint b;  \n"),
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
            ("python", "def f():\n    a = 1\n    return a\n\nb = 2\n", "def f():\n    pass\n\nb = 2\n"),
            ("typescript", "const f = (a: A) => {\n  return a.b;\n};\n", "const f = (a: A) => {};\n"),
        ] {
            assert_eq!(short(lang, text), left, "{lang}");
        }
    }

    #[test]
    fn what_cannot_be_followed_is_left_whole() {
        for (lang, text) in [
            ("rust", "fn f() { g("),
            ("java", "class A { void f() { ) } }"),
            ("javascript", "const a = () => { return <p>it's</p>; };"),
            ("python", "def f():\n    return (1\n"),
            ("ruby", "def f; end"),
        ] {
            assert!(shorten(lang, text.as_bytes(), &mut FxHashSet::default()).is_none(), "{lang}");
        }
    }

    #[test]
    fn identifiers_outside_comments_and_strings() {
        for (lang, text) in [
            ("c", "foo(\"bar\\\"bar\", 'q'); // baz\n/* qux */ x1 = 0xff; if (y) return;"),
            ("go", "foo(\"bar\", `baz`) // qux\nx1 = 0xff; return"),
            ("rust", "foo(\"bar\", r#\"baz\"#); /* qux /* */ */ x1 = 0xff; fn"),
            ("java", "foo(\"bar\", \"\"\"\nbaz\n\"\"\"); // qux\nx1 = 0xff; return"),
            ("typescript", "foo(`bar ${x1} baz`, /qux/); return"),
            ("python", "foo('bar', \"\"\"baz\"\"\", f'{x1} bar')  # qux\nreturn"),
        ] {
            let mut seen = FxHashSet::default();
            shorten(lang, text.as_bytes(), &mut seen).unwrap();
            for (name, is) in [
                ("foo", true),
                ("x1", true),
                ("bar", false),
                ("baz", false),
                ("qux", false),
                ("return", false),
            ] {
                assert_eq!(seen.contains(&ident_hash(name.as_bytes())), is, "{lang} {name}");
            }
        }
    }
}
