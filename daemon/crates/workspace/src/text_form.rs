//! The form of a text file: what a writer retains beside the text, so that an edit of a line
//! changes no other byte. A model sees text without a byte order mark, with plain line ends; it writes
//! spaces where the file has tabs, and composed letters where the file has decomposed ones.

use std::{borrow::Cow, sync::OnceLock};

use unicode_normalization::{
    UnicodeNormalization as _, char::canonical_combining_class, is_nfc, is_nfd,
};

/// The byte order mark as a character.
const BOM: char = '\u{feff}';
/// Widths of one step of indentation that are recognised, in columns.
const STEPS: [usize; 4] = [4, 2, 8, 3];

/// Encoding of a text file. UTF-16 is recognised by its byte order mark alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

impl Encoding {
    /// Returns the bytes of a text, which may begin with a byte order mark.
    pub fn encode(self, text: &str) -> Vec<u8> {
        match self {
            Self::Utf8 => text.as_bytes().to_vec(),
            Self::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Self::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16 LE",
            Self::Utf16Be => "UTF-16 BE",
        }
    }
}

/// End of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    Lf,
    CrLf,
    /// In files without any line feed only.
    Cr,
}

impl LineEnd {
    const ALL: [Self; 3] = [Self::Lf, Self::CrLf, Self::Cr];

    pub fn text(self) -> &'static str {
        match self {
            Self::Lf => "\n",
            Self::CrLf => "\r\n",
            Self::Cr => "\r",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Lf => "LF",
            Self::CrLf => "CRLF",
            Self::Cr => "CR",
        }
    }
}

/// Indentation of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indent {
    /// No line is indented.
    None,
    Tabs,
    /// The usual step, in columns.
    Spaces(usize),
    /// Some lines begin with tabs, others with spaces.
    Mixed,
}

/// Unicode form of letters with marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letters {
    /// No letter has two forms.
    Plain,
    Composed,
    Decomposed,
    Mixed,
}

/// A line: its text, and its end, which only the last line may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLine<'a> {
    pub text: &'a str,
    pub end: Option<LineEnd>,
}

impl TextLine<'_> {
    /// Appends the line as the file has it.
    pub fn push_to(&self, out: &mut String) {
        out.push_str(self.text);
        out.push_str(self.end.map_or("", LineEnd::text));
    }

    pub fn len(&self) -> usize {
        self.text.len() + self.end.map_or(0, |end| end.text().len())
    }
}

/// A text file: its text and its form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    encoding: Encoding,
    has_bom: bool,
    text: String,
    /// Lines by their ends, in the order of [`LineEnd::ALL`].
    counts: [usize; 3],
    /// Determined on demand: most edits need no more than that a line is ASCII.
    letters: OnceLock<Letters>,
}

/// Returns the text of bytes, with a byte order mark as its first character; `None` if it is
/// neither UTF-8 nor UTF-16 with such a mark.
pub fn decode_text(bytes: &[u8]) -> Option<(Encoding, Cow<'_, str>)> {
    let (encoding, read): (_, fn([u8; 2]) -> u16) = match bytes {
        // UTF-32 begins like UTF-16.
        [0xff, 0xfe, 0, 0, ..] => return None,
        [0xff, 0xfe, ..] => (Encoding::Utf16Le, u16::from_le_bytes),
        [0xfe, 0xff, ..] => (Encoding::Utf16Be, u16::from_be_bytes),
        _ => return Some((Encoding::Utf8, std::str::from_utf8(bytes).ok()?.into())),
    };
    let (units, []) = bytes.as_chunks::<2>() else { return None };
    let units: Vec<u16> = units.iter().map(|unit| read(*unit)).collect();
    Some((encoding, String::from_utf16(&units).ok()?.into()))
}

/// Returns a text with composed letters.
pub fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc(text) {
        text.into()
    } else {
        text.nfc().collect::<String>().into()
    }
}

/// Returns a text with decomposed letters.
pub fn decomposed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfd(text) {
        text.into()
    } else {
        text.nfd().collect::<String>().into()
    }
}

/// Returns the form of the letters of a text.
pub fn letters_of(text: &str) -> Letters {
    if text.is_ascii() {
        return Letters::Plain;
    }
    match (is_nfd(text), is_nfc(text)) {
        (true, true) => Letters::Plain,
        (false, true) => Letters::Composed,
        (true, false) => Letters::Decomposed,
        (false, false) => Letters::Mixed,
    }
}

/// Returns true for a character that forms one letter with the one before it.
pub fn joins_previous(c: char) -> bool {
    // Vowels and final consonants of Hangul are no marks, but compose all the same.
    canonical_combining_class(c) != 0 || ('\u{1160}'..='\u{11ff}').contains(&c)
}

impl TextFile {
    /// Reads text and form; `None` if the bytes are not text.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (encoding, decoded) = decode_text(bytes)?;
        let has_bom = decoded.starts_with(BOM);
        let text = decoded.strip_prefix(BOM).unwrap_or(&decoded).to_owned();
        let lf = text.matches('\n').count();
        let crlf = text.matches("\r\n").count();
        let cr = if lf == 0 { text.matches('\r').count() } else { 0 };
        Some(Self {
            encoding,
            has_bom,
            text,
            counts: [lf - crlf, crlf, cr],
            letters: OnceLock::new(),
        })
    }

    /// Returns the text without a byte order mark, with the file's line ends.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns a caller's text without the byte order mark of this file.
    pub fn without_bom<'t>(&self, given: &'t str) -> &'t str {
        given.strip_prefix(BOM).filter(|_| self.has_bom).unwrap_or(given)
    }

    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    pub fn has_bom(&self) -> bool {
        self.has_bom
    }

    /// Returns the bytes of this file with another text, which has no byte order mark.
    pub fn bytes_of(&self, text: &str) -> Vec<u8> {
        match self.has_bom {
            true => self.encoding.encode(&format!("{BOM}{text}")),
            false => self.encoding.encode(text),
        }
    }

    /// Returns the most frequent line end; `None` for a file without any.
    pub fn line_end(&self) -> Option<LineEnd> {
        let most = self.counts.iter().max().filter(|most| **most > 0)?;
        LineEnd::ALL.into_iter().zip(self.counts).find(|(_, n)| n == most).map(|(end, _)| end)
    }

    /// Returns true if lines end in different ways.
    pub fn has_mixed_line_ends(&self) -> bool {
        self.counts.iter().filter(|n| **n > 0).count() > 1
    }

    pub fn has_final_line_end(&self) -> bool {
        self.text.ends_with('\n') || (self.counts[2] > 0 && self.text.ends_with('\r'))
    }

    /// Returns the lines of the file.
    pub fn lines(&self) -> Vec<TextLine<'_>> {
        self.lines_of(&self.text)
    }

    /// Returns the lines of a part of the file's text.
    pub fn lines_of<'t>(&self, part: &'t str) -> Vec<TextLine<'t>> {
        lines_of(part, self.counts[2] > 0)
    }

    pub fn indent(&self) -> Indent {
        let mut tabs = 0_usize;
        let mut spaces = 0_usize;
        let mut steps = [0_usize; STEPS.len()];
        let mut last = 0;
        for line in self.lines() {
            let text = line.text.trim_start();
            let blanks = &line.text[..line.text.len() - text.len()];
            if text.is_empty() {
                continue;
            }
            tabs += usize::from(blanks.starts_with('\t'));
            // One space precedes the stars of a comment.
            spaces += usize::from(blanks.starts_with("  "));
            let now = if blanks.contains('\t') { 0 } else { blanks.len() };
            let grown = STEPS.iter().position(|step| now > last && *step == now - last);
            if let Some(at) = grown {
                steps[at] += 1;
            }
            last = now;
        }
        match (tabs, spaces) {
            (0, 0) => Indent::None,
            (_, 0) => Indent::Tabs,
            (0, _) => {
                let most = steps.iter().max().copied().unwrap_or(0);
                let at = steps.iter().position(|n| *n == most).unwrap_or(0);
                Indent::Spaces(STEPS[at])
            }
            _ => Indent::Mixed,
        }
    }

    pub fn letters(&self) -> Letters {
        *self.letters.get_or_init(|| letters_of(&self.text))
    }

    /// Returns a text with the letters of this file. Only a file whose letters are all decomposed
    /// changes it: composed ones are the default, so their presence says nothing.
    pub fn with_letters<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if text.is_ascii() || self.letters() != Letters::Decomposed {
            return text.into();
        }
        decomposed(text)
    }

    /// Returns what a reader cannot see in the text and must know to write it.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        match (self.encoding, self.has_bom) {
            (Encoding::Utf8, true) => notes.push("UTF-8 with a byte order mark".to_owned()),
            (Encoding::Utf8, false) => {}
            (encoding, _) => notes.push(format!("{} with a byte order mark", encoding.name())),
        }
        if self.has_mixed_line_ends() {
            let counts = LineEnd::ALL.into_iter().zip(self.counts).filter(|(_, n)| *n > 0);
            let counts: Vec<String> =
                counts.map(|(end, n)| format!("{n} {}", end.name())).collect();
            notes.push(format!("mixed line ends: {}", counts.join(", ")));
        } else if let Some(end) = self.line_end().filter(|end| *end != LineEnd::Lf) {
            notes.push(format!("{} line ends", end.name()));
        }
        match self.indent() {
            Indent::Tabs => notes.push("indented by tabs".to_owned()),
            Indent::Mixed => {
                notes.push("indented by tabs in some lines, spaces in others".to_owned())
            }
            Indent::None | Indent::Spaces(_) => {}
        }
        match self.letters() {
            Letters::Decomposed => notes.push("decomposed letters (NFD)".to_owned()),
            Letters::Mixed => notes.push("composed and decomposed letters".to_owned()),
            Letters::Plain | Letters::Composed => {}
        }
        if !self.text.is_empty() && !self.has_final_line_end() {
            notes.push("no line end at the end of the file".to_owned());
        }
        notes
    }
}

/// Returns the lines of a text; carriage returns alone end them if `by_cr`.
fn lines_of(text: &str, by_cr: bool) -> Vec<TextLine<'_>> {
    if by_cr {
        let raw = text.split_inclusive('\r');
        let line = |raw: &'_ str| match raw.strip_suffix('\r') {
            Some(_) => (raw.len() - 1, Some(LineEnd::Cr)),
            None => (raw.len(), None),
        };
        return raw
            .map(|raw| {
                let (len, end) = line(raw);
                TextLine { text: &raw[..len], end }
            })
            .collect();
    }
    let raw = text.split_inclusive('\n');
    raw.map(|raw| {
        if let Some(text) = raw.strip_suffix("\r\n") {
            TextLine { text, end: Some(LineEnd::CrLf) }
        } else if let Some(text) = raw.strip_suffix('\n') {
            TextLine { text, end: Some(LineEnd::Lf) }
        } else {
            TextLine { text: raw, end: None }
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> TextFile {
        TextFile::parse(bytes).unwrap()
    }

    #[test]
    fn bytes_of_the_own_text_are_the_bytes_of_the_file() {
        for bytes in [
            &b""[..],
            b"a\nb\n",
            b"\xef\xbb\xbfa\r\nb",
            b"\xff\xfea\0\r\0\n\0",
            b"\xfe\xff\0a\0\n\xd8\x3d\xde\x00",
            b"a\rb\r",
            "a\u{301}\n".as_bytes(),
        ] {
            let file = file(bytes);
            assert_eq!(file.bytes_of(file.text()), bytes);
            let mut joined = String::new();
            file.lines().iter().for_each(|line| line.push_to(&mut joined));
            assert_eq!(joined, file.text());
        }
        // Odd length, a surrogate alone, UTF-32, Latin-1.
        for bytes in [&b"\xff\xfea"[..], b"\xff\xfe\x3d\xd8", b"\xff\xfe\0\0a\0\0\0", b"\xe4"] {
            assert_eq!(TextFile::parse(bytes), None);
        }
    }

    #[test]
    fn form_is_described_where_the_text_does_not_show_it() {
        for (text, expected) in [
            ("a\n  b\n", ""),
            ("a\n\tb\n", "indented by tabs"),
            ("a\r\nb\r\n", "CRLF line ends"),
            ("a\r\nb\n", "mixed line ends: 1 LF, 1 CRLF"),
            ("a\rb", "CR line ends; no line end at the end of the file"),
            ("\u{feff}e\u{301}\n", "UTF-8 with a byte order mark; decomposed letters (NFD)"),
            ("\u{e9}e\u{301}\n", "composed and decomposed letters"),
        ] {
            assert_eq!(file(text.as_bytes()).notes().join("; "), expected, "{text:?}");
        }
    }

    #[test]
    fn indentation_is_that_of_most_lines() {
        for (text, expected) in [
            ("a\nb\n", Indent::None),
            ("/*\n * x\n */\n", Indent::None),
            ("f\n\ta\n", Indent::Tabs),
            ("f\n  a\n    b\n", Indent::Spaces(2)),
            ("f\n    a\n        b\n", Indent::Spaces(4)),
            ("f\n    a\n\tb\n", Indent::Mixed),
        ] {
            assert_eq!(file(text.as_bytes()).indent(), expected, "{text:?}");
        }
    }
}
