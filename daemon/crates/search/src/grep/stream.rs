//! Collects the matching lines of a file for a stream.

use cairn_protocol::id::RootId;
use cairn_protocol::lines::FileLines;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkMatch};

use super::Job;
use super::lines::{Matches, clipped, clipped_ranges, without_line_end};
use super::ordered_output::OrderedOutput;

/// Bytes of one file that are buffered before it is next in order.
const MAX_BUFFERED: usize = 256 * 1024;

/// Lines of one file, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    numbers: Vec<u32>,
    /// The lines, separated by line feeds. UTF-8 is validated once for all of them.
    text: Vec<u8>,
    /// Ranges of each line; empty if ranges are not reported.
    ranges: Vec<Vec<[u32; 2]>>,
    /// Total number of ranges.
    matches: usize,
}

impl Lines {
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Approximate memory use in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
            + size_of::<u32>() * self.numbers.len()
            + size_of::<[u32; 2]>() * (self.matches + 3 * self.ranges.len())
    }

    fn push(&mut self, number: u64, line: &[u8], matches: Option<&[(usize, usize)]>) {
        if !self.numbers.is_empty() {
            self.text.push(b'\n');
        }
        self.numbers.push(u32::try_from(number).unwrap_or(u32::MAX));
        let line = clipped(line);
        self.text.extend_from_slice(line);
        if let Some(matches) = matches {
            let ranges = clipped_ranges(line, matches);
            self.matches += ranges.len();
            self.ranges.push(ranges);
        }
    }

    /// Removes the first lines, limited by number and by bytes of text, but at least one.
    pub(super) fn front(&mut self, max_lines: usize, bytes: usize) -> Self {
        let fitting = match self.text.get(..bytes) {
            Some(text) => memchr::memchr_iter(b'\n', text).count(),
            None => self.len(),
        };
        let count = fitting.min(max_lines).max(1);
        if count >= self.len() {
            return std::mem::take(self);
        }
        let end = memchr::memchr_iter(b'\n', &self.text).nth(count - 1).unwrap_or(self.text.len());
        let text = self.text[..end].to_owned();
        self.text.drain(..=end);
        let numbers = self.numbers.drain(..count).collect();
        let ranges: Vec<Vec<[u32; 2]>> =
            self.ranges.drain(..count.min(self.ranges.len())).collect();
        let matches = ranges.iter().map(Vec::len).sum();
        self.matches -= matches;
        Self { numbers, text, ranges, matches }
    }

    pub(super) fn into_file(self, root: &RootId, path: &str) -> FileLines {
        let text = String::from_utf8(self.text);
        // A line feed ends an incomplete sequence, so replacing invalid UTF-8 in all lines at once
        // equals replacing it per line.
        let text =
            text.unwrap_or_else(|bytes| String::from_utf8_lossy(bytes.as_bytes()).into_owned());
        FileLines {
            path: path.to_owned(),
            root: root.clone(),
            lines: self.numbers,
            text,
            ranges: self.ranges,
        }
    }
}

/// A sink for the lines of one file; those of a file with many lines are emitted before its end.
pub(super) struct StreamSink<'a, 'o> {
    job: &'a Job<'a>,
    matcher: &'a RegexMatcher,
    /// Lines up to this one were in an earlier answer.
    skip: u64,
    /// The output, and this file's position in it.
    output_slot: (&'a OrderedOutput<'o>, usize),
    /// Lines that were not passed on yet.
    pub(super) lines: Lines,
    matches: Matches,
}

impl<'a, 'o> StreamSink<'a, 'o> {
    pub(super) fn new(
        job: &'a Job<'a>,
        matcher: &'a RegexMatcher,
        skip: u64,
        output_slot: (&'a OrderedOutput<'o>, usize),
    ) -> Self {
        Self {
            job,
            matcher,
            skip,
            output_slot,
            lines: Lines::default(),
            matches: Matches::default(),
        }
    }

    fn line(&mut self, number: u64, line: &[u8]) {
        if number <= self.skip {
            return;
        }
        let (line, ranges) = (without_line_end(line), self.job.ranges);
        let matches = self.matches.find(self.matcher, line, ranges);
        self.lines.push(number, line, ranges.then_some(matches));
    }
}

impl Sink for StreamSink<'_, '_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, std::io::Error> {
        if self.job.cancel.is_cancelled() {
            return Ok(false);
        }
        let first = found.line_number().unwrap_or(0);
        if self.job.multiline {
            (first..).zip(found.lines()).for_each(|(number, line)| self.line(number, line));
        } else {
            self.line(first, found.bytes());
        }
        let (output, at) = self.output_slot;
        Ok(self.lines.bytes() < MAX_BUFFERED
            || output.file_continues(at, std::mem::take(&mut self.lines)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Lines {
        /// Lines without ranges from numbers and texts.
        pub(in crate::grep) fn from_lines<'a>(all: impl Iterator<Item = (u64, &'a [u8])>) -> Self {
            let mut lines = Self::default();
            all.for_each(|(number, text)| lines.push(number, text, None));
            lines
        }
    }

    fn lines(texts: &[&str], with_ranges: bool) -> Lines {
        let mut lines = Lines::default();
        for (number, text) in (1..).zip(texts) {
            lines.push(number, text.as_bytes(), with_ranges.then_some(&[(0, 1)][..]));
        }
        lines
    }

    #[test]
    fn front_is_limited_by_lines_and_bytes() {
        let texts = ["", "bcd", "", "é", "", ""];
        for with_ranges in [false, true] {
            for max_lines in 1..8 {
                for bytes in 0..12 {
                    let (mut remaining, mut sent) = (lines(&texts, with_ranges), Vec::new());
                    while remaining.len() > 0 {
                        let front = remaining.front(max_lines, bytes);
                        assert!(front.len() > 0 && front.len() <= max_lines);
                        assert!(front.len() == 1 || front.text.len() <= bytes, "{front:?}");
                        let file = front.into_file(&RootId("r".into()), "a");
                        sent.extend(file.items().map(|i| (i.line, i.text, i.ranges.len())));
                    }
                    let expected = |(n, text): (u32, &&str)| {
                        (n, (*text).to_owned(), usize::from(with_ranges && !text.is_empty()))
                    };
                    assert_eq!(sent, (1..).zip(&texts).map(expected).collect::<Vec<_>>());
                    assert_eq!(remaining, Lines::default());
                }
            }
        }
    }
}
