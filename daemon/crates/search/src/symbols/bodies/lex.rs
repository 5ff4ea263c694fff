//! Tokens that look alike in many languages: identifiers, strings, comments.

use rustc_hash::FxHashSet;

use super::Cut;
use crate::symbols::extract::{MAX_NAME, ident_hash};

/// Whether a byte can be part of an identifier; letters beyond ASCII are taken whole.
pub fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 128
}

/// The length of the word that `rest` begins with.
pub fn word(rest: &[u8]) -> usize {
    rest.iter().position(|b| !is_name(*b)).unwrap_or(rest.len())
}

/// Adds a word to the identifiers, when it can be one.
pub fn note(word: &[u8], seen: &mut FxHashSet<u32>) {
    if (2..=MAX_NAME).contains(&word.len()) && !word[0].is_ascii_digit() {
        seen.insert(ident_hash(word));
    }
}

/// Bytes of a quoted string that ends with its line at the latest.
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

/// Bytes up to and with `end`, or all.
pub fn until(rest: &[u8], from: usize, end: &[u8]) -> usize {
    let inner = rest.get(from..).unwrap_or(&[]);
    memchr::memmem::find(inner, end).map_or(rest.len(), |n| from + n + end.len())
}

/// Bytes of a line, without its end.
pub fn line(rest: &[u8]) -> usize {
    memchr::memchr(b'\n', rest).unwrap_or(rest.len())
}

/// The cut for a comment: with its whole lines when nothing else is on them.
pub fn comment(text: &[u8], from: usize, to: usize) -> Cut {
    let blank = text[..from].iter().rev().take_while(|b| matches!(b, b' ' | b'\t')).count();
    let begins = from == blank || text[from - blank - 1] == b'\n';
    if begins && text.get(to) == Some(&b'\n') {
        return Cut { from: from - blank, to: to + 1, instead: b"" };
    }
    Cut { from, to, instead: b" " }
}
