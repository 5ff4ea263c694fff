//! Writing results and remarks.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
};

/// Writes text to standard output.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a line to standard output, at once.
pub fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Writes a value as one line of JSON.
pub fn json(value: &impl serde::Serialize) -> io::Result<()> {
    line(&serde_json::to_string(value).map_err(io::Error::other)?)
}

/// A number with its thousands apart.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Milliseconds as people read them.
pub fn millis(ms: u64) -> String {
    if ms < 1000 {
        return format!("{ms} ms");
    }
    let tenths = ms / 100;
    format!("{}.{} s", tenths / 10, tenths % 10)
}

/// Bytes as people read them.
pub fn bytes(n: u64) -> String {
    indicatif::HumanBytes(n).to_string()
}

/// Lines of the daemon or of a repository for standard output: on a terminal as [`plain`] has them, else as they are.
pub fn outside(text: &str) -> io::Result<()> {
    match io::IsTerminal::is_terminal(&io::stdout()) {
        true => print(&plain_lines(text)),
        false => print(text),
    }
}

/// Text of several lines, each as [`plain`] has it.
pub fn plain_lines(text: &str) -> String {
    let mut out: String = text.split_inclusive('\n').map(plain_line).collect();
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

fn plain_line(line: &str) -> String {
    match line.strip_suffix('\n') {
        Some(line) => plain(line.strip_suffix('\r').unwrap_or(line)) + "\n",
        None => plain(line),
    }
}

/// True if a character is seen by nobody and changes how others are shown: the order of letters, or a hidden text.
fn is_unseen(c: char) -> bool {
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

/// Text of the daemon or of a repository without the characters that drive a terminal or that nobody sees.
pub fn plain(text: &str) -> String {
    // Most text has none of them.
    if is_plain(text) && !text.contains('\n') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if (c.is_control() && c != '\t') || is_unseen(c) {
            let _infallible = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether [`plain`] would give the same; false for some other text as well. Line feeds are left to the caller.
pub fn is_plain(text: &str) -> bool {
    // Without a branch for each byte it takes many of them at a time.
    text.as_bytes().chunks(256).all(|part| {
        part.iter()
            .fold(true, |fine, byte| fine & ((b' '..=b'~').contains(byte) | matches!(byte, b'\t' | b'\n')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_text() {
        for (n, want) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(number(n), want);
        }
        assert_eq!((millis(999).as_str(), millis(12_345).as_str()), ("999 ms", "12.3 s"));
        assert_eq!(plain("a\u{1b}[31mb\tc"), "a\\u{1b}[31mb\tc");
    }

    // A12
    #[test]
    fn what_nobody_sees_is_made_visible() {
        // A line that reads as a comment and is none, text that is hidden, and a write to the clipboard.
        assert_eq!(plain("rm \u{202e}ecilop"), "rm \\u{202e}ecilop");
        assert_eq!(plain("a\u{2066}b\u{2069}c\u{200b}"), "a\\u{2066}b\\u{2069}c\\u{200b}");
        assert_eq!(plain("\u{e0041}\u{feff}\u{2028}"), "\\u{e0041}\\u{feff}\\u{2028}");
        assert_eq!(plain_lines("one\r\n\u{1b}]52;c;cm0=\u{7}\ntwo"), "one\n\\u{1b}]52;c;cm0=\\u{7}\ntwo\n");
        // Control: letters of every script stay, and so does what joins them.
        assert_eq!(plain("שלום مرحبا 関係 👩\u{200d}🔬"), "שלום مرحبا 関係 👩\u{200d}🔬");
    }
}
