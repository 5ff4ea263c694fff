//! Escaping for Markdown (CommonMark and GitHub's extensions), also in cells of tables.

use std::fmt::Write as _;

use crate::{facts::single_line, sanitize::plain};

/// Escapes untrusted text as one line of plain text.
pub fn text(text: &str) -> String {
    let text = plain(&single_line(text));
    let mut out = String::with_capacity(text.len());
    let mut is_first = true;
    for (at, c) in text.char_indices() {
        match c {
            '_' if is_inside_word(&text, at) => out.push('_'),
            '<' => out.push_str("&lt;"),
            // It starts a quotation, or would be part of an address.
            '>' if !text[..at].ends_with(' ') => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A backslash before it does not count in a cell whose text ends with a backslash.
            '|' => out.push_str("&#124;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            // They start a heading, a list or a rule.
            '#' | '-' | '+' | '=' if is_first => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
        is_first = false;
    }
    numbered(&out)
}

/// Returns true for an underscore between letters or digits, which emphasises nothing.
fn is_inside_word(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end_matches('_').chars().next_back();
    let after = text[at..].trim_start_matches('_').chars().next();
    before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric)
}

/// Escapes the point of a number at the start, which would be that of a list.
fn numbered(text: &str) -> String {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match text.as_bytes().get(digits) {
        Some(b'.' | b')') if digits > 0 => format!("{}\\{}", &text[..digits], &text[digits..]),
        _ => text.to_owned(),
    }
}

/// Renders untrusted text as code. Text with characters that a code span or a table treats
/// specially becomes an element with character references.
pub fn code(code: &str) -> String {
    let code = plain(&single_line(code));
    if code.is_empty() {
        return code;
    }
    if !code.contains(['`', '|', '\\']) {
        return format!("`{code}`");
    }
    let mut out = String::from("<code>");
    for c in code.chars() {
        if c.is_alphanumeric() || c == ' ' || c == '/' || c == '.' {
            out.push(c);
        } else {
            let _infallible = write!(out, "&#{};", u32::from(c));
        }
    }
    out.push_str("</code>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_no_markup() {
        for (raw, expected) in [
            ("plain text, a.b", "plain text, a.b"),
            ("*a* _b_ `c` ~d~ $e$", "\\*a\\* \\_b\\_ \\`c\\` \\~d\\~ \\$e\\$"),
            ("a_b__c _d e_", "a_b__c \\_d e\\_"),
            ("[x](javascript:y)", "\\[x\\](javascript:y)"),
            ("<img src=x>&copy;", "&lt;img src=x&gt;&amp;copy;"),
            ("a|b\\|c", "a&#124;b\\\\&#124;c"),
            ("> quoted, a > b", "&gt; quoted, a > b"),
            ("# title", "\\# title"),
            ("- item", "\\- item"),
            ("12. item", "12\\. item"),
            ("12 items", "12 items"),
            ("a\n\n# b", "a # b"),
            ("\u{202e}a\u{1b}", "\\\\u{202e}a\\\\u{1b}"),
        ] {
            assert_eq!(text(raw), expected);
        }
    }

    #[test]
    fn code_cannot_be_left() {
        for (raw, expected) in [
            ("cargo test", "`cargo test`"),
            ("a <b> *c*", "`a <b> *c*`"),
            ("a `b", "<code>a &#96;b</code>"),
            ("a | b", "<code>a &#124; b</code>"),
            ("\\", "<code>&#92;</code>"),
            ("a\nb", "`a b`"),
            ("", ""),
        ] {
            assert_eq!(code(raw), expected);
        }
    }
}
