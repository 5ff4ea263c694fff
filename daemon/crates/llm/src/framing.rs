//! Framing of bytes as events: lines of limited length, and server-sent events on top of them, for
//! any provider.

/// Maximum sizes of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum bytes of one line, and of one event.
    pub line: usize,
    /// Maximum bytes of the complete answer.
    pub answer: usize,
}

impl Default for Limits {
    /// 8 MiB per line, 32 MiB per answer.
    fn default() -> Self {
        Self { line: 8 * 1024 * 1024, answer: 32 * 1024 * 1024 }
    }
}

/// The limit that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    Line(usize),
    Answer(usize),
}

/// Rule that separates events in the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// `event:` and `data:` lines, with an empty line after each event.
    Sse,
    /// One JSON value per line.
    Lines,
}

/// Splits bytes into events, regardless of their chunks.
#[derive(Debug)]
pub(crate) struct Framer {
    style: Style,
    limits: Limits,
    /// Start of an incomplete line.
    partial: Vec<u8>,
    /// Bytes received so far.
    total: usize,
    /// True if the last line ended with a carriage return, so that a line feed now belongs to it.
    after_return: bool,
    at_start: bool,
    name: String,
    data: String,
    has_data: bool,
    has_stray_lines: bool,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl Framer {
    pub(crate) fn new(style: Style, limits: Limits) -> Self {
        Self {
            style,
            limits,
            partial: Vec::new(),
            total: 0,
            after_return: false,
            at_start: true,
            name: String::new(),
            data: String::new(),
            has_data: false,
            has_stray_lines: false,
        }
    }

    /// Passes every complete event to `take`, as its name (often empty) and its data. Stops at the
    /// first error.
    pub(crate) fn feed<E: From<Excess>>(
        &mut self,
        mut bytes: &[u8],
        take: &mut impl FnMut(&str, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.total = self.total.saturating_add(bytes.len());
        if self.total > self.limits.answer {
            return Err(Excess::Answer(self.limits.answer).into());
        }
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = bytes.split_at(end);
            if self.partial.len() + line.len() > self.limits.line {
                return Err(Excess::Line(self.limits.line).into());
            }
            if self.partial.is_empty() {
                self.line(line, take)?;
            } else {
                let mut joined = std::mem::take(&mut self.partial);
                joined.extend_from_slice(line);
                self.line(&joined, take)?;
                joined.clear();
                self.partial = joined;
            }
            bytes = match rest {
                [b'\r', b'\n', after @ ..] => after,
                [b'\r'] => {
                    self.after_return = true;
                    &[]
                }
                [_, after @ ..] => after,
                [] => &[],
            };
        }
        if self.partial.len() + bytes.len() > self.limits.line {
            return Err(Excess::Line(self.limits.line).into());
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    /// Handles the end of the bytes: an unterminated last line and an event without its empty line
    /// still count, because providers that close after the last event often omit these.
    pub(crate) fn end<E: From<Excess>>(
        &mut self,
        take: &mut impl FnMut(&str, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let last = std::mem::take(&mut self.partial);
        if !last.is_empty() {
            // An incomplete line is not evidence of an unknown format.
            let has_stray_lines = self.has_stray_lines;
            self.line(&last, take)?;
            self.has_stray_lines = has_stray_lines;
        }
        if self.style == Style::Sse { self.dispatch(take) } else { Ok(()) }
    }

    /// True if a complete line was not part of any event.
    pub(crate) fn has_stray_lines(&self) -> bool {
        self.has_stray_lines
    }

    fn line<E: From<Excess>>(
        &mut self,
        mut line: &[u8],
        take: &mut impl FnMut(&str, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        let text = String::from_utf8_lossy(line);
        if self.style == Style::Lines {
            let value = text.trim();
            return if value.is_empty() { Ok(()) } else { take("", value) };
        }
        if text.is_empty() {
            return self.dispatch(take);
        }
        let (field, value) = split(&text);
        match field {
            "data" => {
                if self.data.len() + value.len() > self.limits.line {
                    return Err(Excess::Line(self.limits.line).into());
                }
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            "event" => self.name = value.to_owned(),
            "" | "id" | "retry" => {}
            // Unknown fields are ignored, but may indicate another format.
            _ => self.has_stray_lines = true,
        }
        Ok(())
    }

    fn dispatch<E>(&mut self, take: &mut impl FnMut(&str, &str) -> Result<(), E>) -> Result<(), E> {
        let name = std::mem::take(&mut self.name);
        if !std::mem::take(&mut self.has_data) {
            return Ok(());
        }
        let mut data = std::mem::take(&mut self.data);
        let result = take(&name, &data);
        data.clear();
        self.data = data;
        result
    }
}

/// Splits a line into field and value, without the optional space between them.
fn split(line: &str) -> (&str, &str) {
    match line.split_once(':') {
        Some((field, value)) => (field, value.strip_prefix(' ').unwrap_or(value)),
        None => (line, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Wrong(Excess);

    impl From<Excess> for Wrong {
        fn from(excess: Excess) -> Self {
            Self(excess)
        }
    }

    fn events(
        style: Style,
        limits: Limits,
        pieces: &[&[u8]],
    ) -> Result<Vec<(String, String)>, Wrong> {
        let mut framer = Framer::new(style, limits);
        let mut output = Vec::new();
        let mut take = |name: &str, data: &str| {
            output.push((name.to_owned(), data.to_owned()));
            Ok::<(), Wrong>(())
        };
        for piece in pieces {
            framer.feed(piece, &mut take)?;
        }
        framer.end(&mut take)?;
        Ok(output)
    }

    fn sse(text: &[u8]) -> Vec<(String, String)> {
        events(Style::Sse, Limits::default(), &[text]).unwrap()
    }

    #[test]
    fn server_sent_events_are_parsed_in_all_forms() {
        let one = |name: &str, data: &str| vec![(name.to_owned(), data.to_owned())];
        for (text, expected) in [
            (&b"data: a\n\n"[..], one("", "a")),
            (b"data:a\n\n", one("", "a")),
            (b"data:  a\n\n", one("", " a")),
            (b"data: a\r\n\r\n", one("", "a")),
            (b"data: a\r\r", one("", "a")),
            (b"\xef\xbb\xbfdata: a\n\n", one("", "a")),
            (b": note\ndata: a\n: note\n\n", one("", "a")),
            (b"data: a\ndata: b\n\n", one("", "a\nb")),
            (b"data\n\n", one("", "")),
            (b"event: x\nid: 7\nretry: 1\ndata: a\n\n", one("x", "a")),
            // An event without data is dropped, and so is its name.
            (b"event: x\n\ndata: a\n\n", one("", "a")),
            (b"data: a", one("", "a")),
            (b"data: a\n", one("", "a")),
            (b"\n\n\n", vec![]),
            (b"<html>\n\n", vec![]),
            (b"data: \xff\n\n", one("", "\u{fffd}")),
        ] {
            assert_eq!(sse(text), expected, "{:?}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn split_line_ending_ends_the_line_once() {
        for ends in ["\n", "\r", "\r\n"] {
            let text = ["event: x", "data: a", "data: b", "", ""].join(ends);
            let expected = vec![("x".to_owned(), "a\nb".to_owned())];
            for at in 0..=text.len() {
                let (one, other) = text.as_bytes().split_at(at);
                let output = events(Style::Sse, Limits::default(), &[one, b"", other]).unwrap();
                assert_eq!(output, expected, "{ends:?} at {at}");
            }
        }
    }

    #[test]
    fn json_lines_are_parsed() {
        let output =
            events(Style::Lines, Limits::default(), &[b"{}\r\n\n  [1] \n{", b"}"]).unwrap();
        let data: Vec<&str> = output.iter().map(|(_, data)| data.as_str()).collect();
        assert_eq!(data, ["{}", "[1]", "{}"]);
    }

    #[test]
    fn line_and_answer_sizes_are_bounded() {
        let limits = Limits { line: 10, answer: 40 };
        for style in [Style::Sse, Style::Lines] {
            let long = [&b"data: 12345"[..]];
            assert_eq!(events(style, limits, &long), Err(Wrong(Excess::Line(10))));
            let slow: Vec<&[u8]> = vec![b"x"; 11];
            assert_eq!(events(style, limits, &slow), Err(Wrong(Excess::Line(10))));
            let many: Vec<&[u8]> = vec![b"1\n"; 21];
            assert_eq!(events(style, limits, &many), Err(Wrong(Excess::Answer(40))));
            assert!(events(style, limits, &[b"data: 1234\n", b"\n"]).is_ok());
        }
        // Many lines of one event count like one long line.
        let lines: Vec<&[u8]> = vec![b"data: 123\n"; 4];
        assert_eq!(events(Style::Sse, limits, &lines), Err(Wrong(Excess::Line(10))));
    }
}
