//! Sanitising of untrusted text, for every output.

use std::fmt::Write as _;

/// Returns true for invisible characters that change how others are displayed, by reordering or
/// hiding text.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{61c}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Sanitises untrusted text: escapes terminal control characters and invisible ones.
pub fn plain(text: &str) -> String {
    // Most text contains none of them.
    if is_plain(text) && !text.contains('\n') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if (c.is_control() && c != '\t') || is_invisible(c) {
            let _infallible = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns true only if [`plain`] would not change the text; it may be false for other text too.
/// Line feeds are left to the caller.
pub fn is_plain(text: &str) -> bool {
    // Without a branch per byte, the compiler can vectorise the loop.
    text.as_bytes().chunks(256).all(|part| {
        part.iter().fold(true, |fine, byte| {
            fine & ((b' '..=b'~').contains(byte) | matches!(byte, b'\t' | b'\n'))
        })
    })
}
