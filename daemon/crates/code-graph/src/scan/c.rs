//! C, C++ and Objective-C: `#include`, without the branches of `#if 0`.

use super::collect::Collector;
use super::read::{
    Comments, Reader, Stops, after, before, is_ident, line_end, slash_comment_end, string_end,
    word_at,
};
use crate::import::{Import, ImportKind};

static STOPS: Stops = Stops::new(b"#/\"'");

/// Maximum bytes of the delimiter of a raw string in C++.
const MAX_DELIMITER: usize = 16;

pub fn scan<'a>(text: &'a [u8], out: &mut Collector<'a>) {
    let mut at = 0;
    while let Some(stop) = STOPS.next(text, at) {
        at = match text[stop] {
            b'/' => slash_comment_end(text, stop),
            b'"' if stop > 0 && text[stop - 1] == b'R' => raw_string_end(text, stop),
            b'"' => string_end(text, stop),
            // A separator of digits is no quote.
            b'\'' if stop > 0 && text[stop - 1].is_ascii_hexdigit() => stop + 1,
            b'\'' => string_end(text, stop),
            _ if before(text, stop).is_some_and(|i| text[i] != b'\n') => stop + 1,
            _ => directive(text, stop, out),
        };
    }
}

fn raw_string_end(text: &[u8], at: usize) -> usize {
    let rest = &text[at + 1..];
    let Some(length) = rest.iter().take(MAX_DELIMITER + 1).position(|b| *b == b'(') else {
        return string_end(text, at);
    };
    let mut end = vec![b')'];
    end.extend(&rest[..length]);
    end.push(b'"');
    after(text, at + 1, &end)
}

fn directive<'a>(text: &'a [u8], at: usize, out: &mut Collector<'a>) -> usize {
    let mut reader = Reader::new(text, at + 1, Comments::Slashes);
    reader.skip_spaces();
    let word = word_at(text, reader.at);
    reader.at += word.len();
    match word {
        b"include" | b"include_next" | b"import" => {}
        b"if" => {
            reader.skip_spaces();
            let is_false = word_at(text, reader.at) == b"0"
                && text[reader.at + 1..line_end(text, reader.at)].iter().all(|b| !is_ident(*b));
            return if is_false { disabled_end(text, reader.at) } else { reader.at };
        }
        _ => return reader.at,
    }
    reader.skip_spaces();
    let end = line_end(text, reader.at);
    let (close, kind) = match reader.peek() {
        Some(b'"') => (b'"', ImportKind::Include),
        Some(b'<') => (b'>', ImportKind::SystemInclude),
        _ => return reader.at,
    };
    let rest = &text[reader.at + 1..end.max(reader.at + 1)];
    if let Some(length) = rest.iter().position(|b| *b == close)
        && let Ok(specifier) = std::str::from_utf8(&rest[..length])
    {
        let line = out.line_at(at);
        out.push(Import::new(kind, specifier, line));
    }
    end
}

/// The end of the branch that `#if 0` disables: the directive that closes it or begins another.
fn disabled_end(text: &[u8], at: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = line_end(text, at);
    while at < text.len() {
        let line = &text[at + 1..line_end(text, at + 1)];
        if let Some(directive) = line.trim_ascii_start().strip_prefix(b"#") {
            match word_at(directive.trim_ascii_start(), 0) {
                b"if" | b"ifdef" | b"ifndef" => depth += 1,
                b"endif" if depth > 0 => depth -= 1,
                b"endif" | b"else" | b"elif" if depth == 0 => return at + 1,
                _ => {}
            }
        }
        at += 1 + line.len();
    }
    text.len()
}
