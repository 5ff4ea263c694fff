//! Tokens that are similar in many languages: identifiers, strings, comments.

use rustc_hash::FxHashSet;

use super::Cut;
use crate::extract::{MAX_NAME, ident_hash};

/// True if a byte can be part of an identifier; all non-ASCII bytes can.
pub fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 128
}

/// Length of the word at the start of `rest`.
pub fn word(rest: &[u8]) -> usize {
    rest.iter().position(|b| !is_name(*b)).unwrap_or(rest.len())
}

/// Adds a word to the identifiers if it can be one.
pub fn add_identifier(word: &[u8], idents: &mut FxHashSet<u32>) {
    if (2..=MAX_NAME).contains(&word.len()) && !word[0].is_ascii_digit() {
        idents.insert(ident_hash(word));
    }
}

/// Length of a quoted string, which ends at the end of the line at the latest.
pub fn string(rest: &[u8]) -> usize {
    let quote = rest[0];
    let mut at = 1;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'\\' => at += 2,
            b'\n' => return at,
            b if *b == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Length up to and including `end`, or the total length.
pub fn until(rest: &[u8], from: usize, end: &[u8]) -> usize {
    let inner = rest.get(from..).unwrap_or(&[]);
    memchr::memmem::find(inner, end).map_or(rest.len(), |n| from + n + end.len())
}

/// Length of a line without its end.
pub fn line(rest: &[u8]) -> usize {
    memchr::memchr(b'\n', rest).unwrap_or(rest.len())
}

/// The cut of a comment, including its lines if nothing else is on them.
pub fn comment(text: &[u8], from: usize, to: usize) -> Cut {
    let blank = text[..from].iter().rev().take_while(|b| matches!(b, b' ' | b'\t')).count();
    let starts_line = from == blank || text[from - blank - 1] == b'\n';
    if starts_line && text.get(to) == Some(&b'\n') {
        return Cut { from: from - blank, to: to + 1, replacement: b"" };
    }
    Cut { from, to, replacement: b" " }
}
