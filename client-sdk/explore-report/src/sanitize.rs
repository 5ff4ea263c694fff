//! Sanitising of untrusted text, for every output.

use std::fmt::Write as _;

/// Returns true for characters that show nothing, or change how others are displayed: the property
/// Default_Ignorable_Code_Point of Unicode 17, separators and marks of lines, and blank letters.
/// Joiners, and the selectors between text and picture, stay: scripts and emoji need them.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0d}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
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
