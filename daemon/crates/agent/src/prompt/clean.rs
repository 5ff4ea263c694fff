//! Sanitises text that is inserted into the system text.

/// Returns one line of at most `chars` characters: every control character, line ends included,
/// becomes a space.
pub fn line(text: &str, chars: usize) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if plain.chars().count() <= chars {
        return plain;
    }
    let mut short: String = plain.chars().take(chars.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// Returns paragraphs of at most `bytes`: line ends and tabs stay, other control characters are
/// removed.
pub fn paragraph(text: &str, bytes: usize) -> String {
    let is_allowed = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let mut plain: String = text.replace("\r\n", "\n").chars().filter(is_allowed).collect();
    if plain.len() > bytes {
        let mut end = bytes;
        while !plain.is_char_boundary(end) {
            end -= 1;
        }
        plain.truncate(end);
        plain.push_str("\n[cut]");
    }
    plain.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_and_paragraphs_preserve_breaks() {
        assert_eq!(line("a\n\tb\u{7f} c\u{1b}[0m é", 64), "a b c [0m é");
        assert_eq!(line("ééééé", 3), "éé…");
        assert_eq!(paragraph("a\r\n\tb\u{0}\u{1b}[1m\u{85}c\n\n", 64), "a\n\tb[1mc");
        assert_eq!(paragraph("ééé", 3), "é\n[cut]");
    }
}
