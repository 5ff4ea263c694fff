//! Printing of results and notes.

use std::io::{self, Write as _};

pub use cairn_explore_report::{
    facts::number,
    sanitize::{is_plain, plain},
};

/// Writes text to standard output.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a line to standard output and flushes it.
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

/// Formats milliseconds for people.
pub fn millis(ms: u64) -> String {
    if ms < 1000 {
        return format!("{ms} ms");
    }
    let tenths = ms / 100;
    format!("{}.{} s", tenths / 10, tenths % 10)
}

/// Formats bytes for people.
pub fn bytes(n: u64) -> String {
    indicatif::HumanBytes(n).to_string()
}

/// Prints untrusted lines: sanitised by [`plain`] on a terminal, else unchanged.
pub fn untrusted(text: &str) -> io::Result<()> {
    match io::IsTerminal::is_terminal(&io::stdout()) {
        true => print(&plain_lines(text)),
        false => print(text),
    }
}

/// Sanitises each line with [`plain`].
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_text_are_formatted() {
        assert_eq!((millis(999).as_str(), millis(12_345).as_str()), ("999 ms", "12.3 s"));
        assert_eq!(plain("a\u{1b}[31mb\tc"), "a\\u{1b}[31mb\tc");
    }

    #[test]
    fn invisible_characters_are_escaped() {
        // Text that looks like a comment but is not, hidden text, and a clipboard escape sequence.
        assert_eq!(plain("rm \u{202e}ecilop"), "rm \\u{202e}ecilop");
        assert_eq!(plain("a\u{2066}b\u{2069}c\u{200b}"), "a\\u{2066}b\\u{2069}c\\u{200b}");
        assert_eq!(plain("l\u{ad}s\u{3164}\u{2800}"), "l\\u{ad}s\\u{3164}\\u{2800}");
        assert_eq!(plain("\u{e0041}\u{feff}\u{2028}"), "\\u{e0041}\\u{feff}\\u{2028}");
        assert_eq!(
            plain_lines("one\r\n\u{1b}]52;c;cm0=\u{7}\ntwo"),
            "one\n\\u{1b}]52;c;cm0=\\u{7}\ntwo\n"
        );
        // Control: letters of every script stay, and so do joiners.
        assert_eq!(plain("שלום مرحبا 関係 👩\u{200d}🔬"), "שלום مرحبا 関係 👩\u{200d}🔬");
    }
}
