//! C: bodies by layout. Its preprocessor makes brackets unsound, but nearly all of it is laid out alike: a body goes from
//! a line that opens it at the left margin to the line whose first byte is `}`. Text laid out otherwise is parsed whole,
//! or with an error inside one function.

use rustc_hash::FxHashSet;

use super::{Cut, lex};

/// What to leave out of a C text.
pub fn cuts(text: &[u8], seen: &mut FxHashSet<u32>) -> Vec<Cut> {
    let (mut cuts, marks) = tokens(text, seen);
    let (mut at, mut in_header) = (0, false);
    while at < text.len() {
        let end = at + lex::line(&text[at..]);
        let line = text[at..end].trim_ascii_end();
        let first = line.first().copied().unwrap_or(0);
        let named = first.is_ascii_alphabetic() || first == b'_';
        // A header may go on in indented lines; a blank line, a `;` or a `}` ends it.
        in_header = (named && line.contains(&b'(') && !line.contains(&b'='))
            || (in_header && matches!(first, b' ' | b'\t' | b'{'));
        in_header &= !line.ends_with(b";") && !line.ends_with(b"}");
        let opens = in_header && line.ends_with(b"{") && (first == b'{' || line.contains(&b')'));
        at = end + 1;
        if !opens {
            continue;
        }
        in_header = false;
        let Some(close) = text.get(end..).and_then(|rest| memchr::memmem::find(rest, b"\n}")) else { break };
        let close = end + close;
        if close == end {
            continue;
        }
        let next = marks.partition_point(|m| *m < end);
        if opens_again(&text[end + 1..close]) {
            // The body ended before, indented: what follows is read as it stands.
            continue;
        }
        if marks.get(next).is_none_or(|m| *m > close) {
            cuts.push(Cut { from: end, to: close, instead: b"" });
        }
        at = close + 1;
    }
    cuts
}

/// Whether a body, as layout tells it, holds what looks like the beginning of another.
fn opens_again(body: &[u8]) -> bool {
    body.split(|b| *b == b'\n').any(|line| {
        let first = line.first().copied().unwrap_or(0);
        first == b'{'
            || ((first.is_ascii_alphabetic() || first == b'_') && line.trim_ascii_end().ends_with(b"{"))
    })
}

/// Notes the identifiers; returns the comments and where something may be defined.
fn tokens(text: &[u8], seen: &mut FxHashSet<u32>) -> (Vec<Cut>, Vec<usize>) {
    let (mut comments, mut marks) = (Vec::new(), Vec::new());
    let (mut at, mut in_directive) = (0, false);
    // Whether `struct`, `union` or `enum` came, and nothing but a name since.
    let mut tagged = false;
    while let Some(byte) = text.get(at) {
        let rest = &text[at..];
        let mut still = false;
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
                still = tagged;
                1
            }
            [b'{', ..] if tagged => {
                marks.push(at);
                1
            }
            _ if lex::is_name(*byte) => {
                let end = lex::word(rest);
                let word = &rest[..end];
                lex::note(word, seen);
                match word {
                    b"struct" | b"union" | b"enum" => still = true,
                    b"typedef" | b"define" => marks.push(at),
                    _ => still = tagged,
                }
                end
            }
            _ => {
                still = tagged && matches!(byte, b' ' | b'\t' | b'\r');
                1
            }
        };
        tagged = still;
    }
    (comments, marks)
}
