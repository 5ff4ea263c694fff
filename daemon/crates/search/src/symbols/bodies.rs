//! Leaving function bodies out of a parse: in languages whose functions hold no definitions, most of the text, and so
//! most of the time, is in their bodies.
//!
//! Bodies are found by layout alone: from the line that opens one at the left margin to the line whose first byte is
//! `}`. Text laid out otherwise is parsed whole, or with an error inside one function.

use rustc_hash::FxHashSet;

use super::extract::{MAX_NAME, ident_hash};

/// Whether functions of a language hold no definitions worth finding.
pub fn are_left_out(lang: &str) -> bool {
    matches!(lang, "c" | "go")
}

/// `text` with the lines inside function bodies made empty; line numbers stay.
pub fn without(lang: &str, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let (mut inside, mut in_header) = (false, false);
    for line in text.split_inclusive(|b| *b == b'\n') {
        let first = line.first().copied().unwrap_or(0);
        if inside && first != b'}' {
            out.push(b'\n');
            continue;
        }
        out.extend_from_slice(line);
        let end = line.trim_ascii_end();
        if lang == "go" {
            in_header = line.starts_with(b"func ") || (in_header && !end.ends_with(b"}"));
            inside = in_header
                && end.ends_with(b"{")
                && !end.ends_with(b"interface{")
                && !end.ends_with(b"struct{");
        } else {
            let named = first.is_ascii_alphabetic() || first == b'_';
            // A header may go on in indented lines; a blank line, a `;` or a `}` ends it.
            in_header = (named && line.contains(&b'(') && !end.contains(&b'='))
                || (in_header && matches!(first, b' ' | b'\t' | b'{'));
            in_header &= !end.ends_with(b";") && !end.ends_with(b"}");
            inside = in_header && end.ends_with(b"{") && (first == b'{' || end.contains(&b')'));
        }
        if inside {
            in_header = false;
        }
    }
    out
}

/// Adds the hashes of all identifiers of `text` outside comments and strings.
pub fn idents(text: &[u8], seen: &mut FxHashSet<u32>) {
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 128;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let skip = match rest {
            [b'/', b'/', ..] => memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
            [b'/', b'*', ..] => memchr::memmem::find(&rest[2..], b"*/").map_or(rest.len(), |n| n + 4),
            [b'"', ..] => string(rest, true),
            [b'`', ..] => memchr::memchr(b'`', &rest[1..]).map_or(1, |n| n + 2),
            [b'\'', ..] => string(rest, false).min(6),
            [b, ..] if is_name(*b) => {
                let end = rest.iter().position(|b| !is_name(*b)).unwrap_or(rest.len());
                if !b.is_ascii_digit() && (2..=MAX_NAME).contains(&end) {
                    seen.insert(ident_hash(&rest[..end]));
                }
                end
            }
            _ => 1,
        };
        at += skip;
    }
}

/// Bytes of a quoted string; it ends with its line at the latest.
fn string(text: &[u8], double: bool) -> usize {
    let quote = if double { b'"' } else { b'\'' };
    let mut at = 1;
    while at < text.len() && text[at] != b'\n' {
        match text[at] {
            b'\\' => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    at.min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bodies_go_and_lines_stay() {
        for (lang, text, left) in [
            (
                "c",
                "struct s {\n\tint a;\n};\nint f(void)\n{\n\treturn g(1);\n}\nint b;\n",
                "struct s {\n\tint a;\n};\nint f(void)\n{\n\n}\nint b;\n",
            ),
            (
                "c",
                "static int f(int a,\n\t int b) {\n  if (a) {\n  }\n}\n",
                "static int f(int a,\n\t int b) {\n\n\n}\n",
            ),
            (
                "c",
                "static const struct ops o = {\n\t.f = g(1),\n};\nFOO(x);\nenum e {\n\tA,\n};\n",
                "static const struct ops o = {\n\t.f = g(1),\n};\nFOO(x);\nenum e {\n\tA,\n};\n",
            ),
            (
                "go",
                "func (s *S) Run(a int,\n\tb int) error {\n\treturn nil\n}\ntype T struct {\n\tA int\n}\nfunc one() { x() }\n",
                "func (s *S) Run(a int,\n\tb int) error {\n\n}\ntype T struct {\n\tA int\n}\nfunc one() { x() }\n",
            ),
        ] {
            assert_eq!(String::from_utf8(without(lang, text.as_bytes())).unwrap(), left);
        }
    }

    #[test]
    fn identifiers_outside_comments_and_strings() {
        let mut seen = FxHashSet::default();
        idents(
            b"foo(\"bar\\\"bar\", 'q', `raw`); // baz\n/* qux */ x1 = 0xff; it's_fine \"open\nnext",
            &mut seen,
        );
        for (name, is) in [
            ("foo", true),
            ("bar", false),
            ("baz", false),
            ("qux", false),
            ("x1", true),
            ("next", true),
            ("raw", false),
        ] {
            assert_eq!(seen.contains(&ident_hash(name.as_bytes())), is, "{name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_keeps_its_lines(text in "[a-z(){};\\n \"'/*`\\\\]{0,200}") {
            for lang in ["c", "go"] {
                let left = without(lang, text.as_bytes());
                let lines = |t: &[u8]| t.iter().filter(|b| **b == b'\n').count();
                let gained = usize::from(!text.ends_with('\n'));
                assert!(lines(&left).abs_diff(lines(text.as_bytes())) <= gained);
            }
            idents(text.as_bytes(), &mut FxHashSet::default());
        }
    }
}
