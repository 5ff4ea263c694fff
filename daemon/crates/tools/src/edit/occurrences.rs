//! Positions of a text in a file, without regard to line ends, and if it is absent also without
//! regard to the form of its letters.

use std::ops::Range;

use cairn_workspace::{LineEnd, TextFile, composed, joins_previous};

/// A part of the view that has another length in the file.
struct Unit {
    view: Range<usize>,
    raw: Range<usize>,
}

/// The text of a file with plain line ends.
struct View {
    text: String,
    units: Vec<Unit>,
}

impl View {
    fn new(file: &TextFile, compose: bool) -> Self {
        let mut view = Self { text: String::with_capacity(file.text().len()), units: Vec::new() };
        let mut raw = 0;
        for line in file.lines() {
            if compose && !line.text.is_ascii() {
                view.push_letters(line.text, raw);
            } else {
                view.text.push_str(line.text);
            }
            raw += line.len();
            if let Some(end) = line.end {
                let at = view.text.len();
                view.text.push('\n');
                if end == LineEnd::CrLf {
                    view.units.push(Unit { view: at..at + 1, raw: raw - 2..raw });
                }
            }
        }
        view
    }

    /// Appends the text of a line with composed letters; it begins at `raw` in the file.
    fn push_letters(&mut self, text: &str, raw: usize) {
        let mut start = 0;
        let ends = text.char_indices().skip(1).filter(|(_, c)| !joins_previous(*c));
        for end in ends.map(|(at, _)| at).chain([text.len()]) {
            let letter = &text[start..end];
            let at = self.text.len();
            let known = composed(letter);
            self.text.push_str(&known);
            if known != letter {
                let view = at..self.text.len();
                self.units.push(Unit { view, raw: raw + start..raw + end });
            }
            start = end;
        }
    }

    /// Returns the position in the file; `None` within a unit.
    fn raw(&self, at: usize) -> Option<usize> {
        let next = self.units.partition_point(|unit| unit.view.end <= at);
        if self.units.get(next).is_some_and(|unit| unit.view.start < at) {
            return None;
        }
        match next.checked_sub(1).and_then(|last| self.units.get(last)) {
            Some(last) => Some(last.raw.end + (at - last.view.end)),
            None => Some(at),
        }
    }

    fn occurrences(&self, searched: &str) -> Vec<Range<usize>> {
        let found = self.text.match_indices(searched);
        found.filter_map(|(at, text)| Some(self.raw(at)?..self.raw(at + text.len())?)).collect()
    }
}

/// Ranges of a file's text.
pub struct Occurrences {
    pub ranges: Vec<Range<usize>>,
    /// True if letters were found in another form.
    pub in_other_letters: bool,
}

/// Returns all occurrences of `searched`, which has plain line ends, in the text of the file.
pub fn occurrences(file: &TextFile, searched: &str) -> Occurrences {
    let exact = match file.line_end() {
        Some(LineEnd::Lf) | None if !file.has_mixed_line_ends() => {
            let found = file.text().match_indices(searched);
            found.map(|(at, text)| at..at + text.len()).collect()
        }
        _ => View::new(file, false).occurrences(searched),
    };
    if !exact.is_empty() || (file.text().is_ascii() && searched.is_ascii()) {
        return Occurrences { ranges: exact, in_other_letters: false };
    }
    let ranges = View::new(file, true).occurrences(&composed(searched));
    Occurrences { ranges, in_other_letters: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, searched: &str) -> Vec<String> {
        let file = TextFile::parse(text.as_bytes()).unwrap();
        let ranges = occurrences(&file, searched).ranges;
        ranges.into_iter().map(|range| file.text()[range].to_owned()).collect()
    }

    #[test]
    fn occurrences_are_ranges_of_the_files_own_text() {
        for (text, searched, expected) in [
            ("a\nb\na\n", "a\n", &["a\n", "a\n"][..]),
            ("a\r\nb\r\nc", "a\nb", &["a\r\nb"]),
            ("a\r\nb\r\nc", "b\n", &["b\r\n"]),
            ("a\r\nb\r\nc", "\nb", &["\r\nb"]),
            ("a\r\nb\nc", "a\nb\nc", &["a\r\nb\nc"]),
            ("a\rb\rc", "a\nb", &["a\rb"]),
            ("cafe\u{301}\r\nx", "caf\u{e9}\nx", &["cafe\u{301}\r\nx"]),
            ("caf\u{e9} x", "cafe\u{301}", &["caf\u{e9}"]),
            ("\u{1112}\u{1161}\u{11ab}.", "\u{d55c}", &["\u{1112}\u{1161}\u{11ab}"]),
            // The letter without its mark is another letter; it is found in the exact text alone.
            ("caf\u{e9}", "cafe", &[]),
            ("a\u{301}\u{323}b", "a\u{323}\u{301}", &["a\u{301}\u{323}"]),
        ] {
            assert_eq!(found(text, searched), expected, "{text:?} {searched:?}");
        }
    }
}
