//! Bodies in C by layout. The preprocessor makes brackets unreliable, but nearly all code has the
//! same layout: a body extends from a line that opens it at the left margin to the line whose first
//! byte is `}`. Text with another layout is parsed completely, or with an error inside one
//! function.

use rustc_hash::FxHashSet;

use super::{Cut, lex};

/// The cuts of a C text.
pub fn cuts(text: &[u8], idents: &mut FxHashSet<u32>) -> Vec<Cut> {
    let (mut cuts, marks) = tokens(text, idents);
    let (mut at, mut in_header) = (0, false);
    while at < text.len() {
        let end = at + lex::line(&text[at..]);
        let line = text[at..end].trim_ascii_end();
        let first = line.first().copied().unwrap_or(0);
        let named = first.is_ascii_alphabetic() || first == b'_';
        // A function header may continue in indented lines; a blank line, a `;` or a `}` ends it.
        in_header = (named && line.contains(&b'(') && !line.contains(&b'='))
            || (in_header && matches!(first, b' ' | b'\t' | b'{'));
        in_header &= !line.ends_with(b";") && !line.ends_with(b"}");
        let opens = in_header && line.ends_with(b"{") && (first == b'{' || line.contains(&b')'));
        at = end + 1;
        if !opens {
            continue;
        }
        in_header = false;
        let Some(close) = text.get(end..).and_then(|rest| memchr::memmem::find(rest, b"\n}"))
        else {
            break;
        };
        let close = end + close;
        if close == end {
            continue;
        }
        let next = marks.partition_point(|m| *m < end);
        if contains_opening(&text[end + 1..close]) {
            // The body has an indented end before; the following text is not reduced.
            continue;
        }
        if marks.get(next).is_none_or(|m| *m > close) {
            cuts.push(Cut { from: end, to: close, replacement: b"" });
        }
        at = close + 1;
    }
    cuts
}

/// True if a body according to layout contains what looks like the start of another body.
fn contains_opening(body: &[u8]) -> bool {
    body.split(|b| *b == b'\n').any(|line| {
        let first = line.first().copied().unwrap_or(0);
        first == b'{'
            || ((first.is_ascii_alphabetic() || first == b'_')
                && line.trim_ascii_end().ends_with(b"{"))
    })
}

/// Collects the identifiers; returns the comments and the positions of possible definitions.
fn tokens(text: &[u8], idents: &mut FxHashSet<u32>) -> (Vec<Cut>, Vec<usize>) {
    let (mut comments, mut marks) = (Vec::new(), Vec::new());
    let (mut at, mut in_directive) = (0, false);
    // True after `struct`, `union` or `enum`, followed by at most a name.
    let mut tagged = false;
    while let Some(byte) = text.get(at) {
        let rest = &text[at..];
        let mut next_tagged = false;
        at += match rest {
            [b'/', b'/', ..] => {
                let end = lex::line(rest);
                if !in_directive && !rest[..end].ends_with(b"\\") {
                    comments.push(lex::comment(text, at, at + end));
                }
                end
            }
            [b'/', b'*', ..] => {
                let end = lex::until(rest, 2, b"*/");
                if !in_directive {
                    comments.push(lex::comment(text, at, at + end));
                }
                end
            }
            [b'"' | b'\'', ..] => lex::string(rest),
            [b'#', ..] => {
                in_directive = true;
                1
            }
            [b'\n', ..] => {
                in_directive &= at > 0 && text[at - 1] == b'\\';
                next_tagged = tagged;
                1
            }
            [b'{', ..] if tagged => {
                marks.push(at);
                1
            }
            _ if lex::is_name(*byte) => {
                let end = lex::word(rest);
                let word = &rest[..end];
                lex::add_identifier(word, idents);
                match word {
                    b"struct" | b"union" | b"enum" => next_tagged = true,
                    b"typedef" | b"define" => marks.push(at),
                    _ => next_tagged = tagged,
                }
                end
            }
            _ => {
                next_tagged = tagged && matches!(byte, b' ' | b'\t' | b'\r');
                1
            }
        };
        tagged = next_tagged;
    }
    (comments, marks)
}
