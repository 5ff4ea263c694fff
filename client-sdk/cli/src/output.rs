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

/// Text of the daemon or of a repository without the characters that drive a terminal.
pub fn plain(text: &str) -> String {
    // Most text has none of them.
    if is_plain(text) && !text.contains('\n') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\t' {
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
}
