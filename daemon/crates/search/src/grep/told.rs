//! Reading one file: its matching lines, as a stream tells them.

use cairn_protocol::id::RootId;
use cairn_protocol::lines::FileLines;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkMatch};

use super::Job;
use super::lines::{Matches, bare, bounded, moved};
use super::order::Order;

/// Bytes of one file that are held before its turn has come.
const MAX_IN_MEMORY: usize = 256 * 1024;

/// Lines of one file, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    numbers: Vec<u32>,
    /// With a line feed between one and the next. Whether it is UTF-8 is looked at once, for all of them.
    text: Vec<u8>,
    /// Of each line, or of none.
    ranges: Vec<Vec<[u32; 2]>>,
    /// Ranges in them.
    matches: usize,
}

impl Lines {
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// About what they take in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
            + size_of::<u32>() * self.numbers.len()
            + size_of::<[u32; 2]>() * (self.matches + 3 * self.ranges.len())
    }

    fn add(&mut self, number: u64, line: &[u8], matches: Option<&[(usize, usize)]>) {
        if !self.numbers.is_empty() {
            self.text.push(b'\n');
        }
        self.numbers.push(u32::try_from(number).unwrap_or(u32::MAX));
        let line = bounded(line);
        self.text.extend_from_slice(line);
        if let Some(matches) = matches {
            let ranges = moved(line, matches);
            self.matches += ranges.len();
            self.ranges.push(ranges);
        }
    }

    /// Takes the first lines, at most so many, and so many bytes of text; at least one.
    pub(super) fn front(&mut self, most: usize, bytes: usize) -> Self {
        let fit = match self.text.get(..bytes) {
            Some(text) => memchr::memchr_iter(b'\n', text).count(),
            None => self.len(),
        };
        let count = fit.min(most).max(1);
        if count >= self.len() {
            return std::mem::take(self);
        }
        let end = memchr::memchr_iter(b'\n', &self.text).nth(count - 1).unwrap_or(self.text.len());
        let text = self.text[..end].to_owned();
        self.text.drain(..=end);
        let numbers = self.numbers.drain(..count).collect();
        let ranges: Vec<Vec<[u32; 2]>> = self.ranges.drain(..count.min(self.ranges.len())).collect();
        let matches = ranges.iter().map(Vec::len).sum();
        self.matches -= matches;
        Self { numbers, text, ranges, matches }
    }

    pub(super) fn into_file(self, root: &RootId, path: &str) -> FileLines {
        let text = String::from_utf8(self.text);
        // A line feed ends whatever is not whole before it: replaced in all lines at once, they are what each would be.
        let text = text.unwrap_or_else(|bytes| String::from_utf8_lossy(bytes.as_bytes()).into_owned());
        FileLines {
            path: path.to_owned(),
            root: root.clone(),
            lines: self.numbers,
            text,
            ranges: self.ranges,
        }
    }
}

/// Takes the lines of one file; those of one that has many are told before its end.
pub(super) struct Tell<'a, 'o> {
    job: &'a Job<'a>,
    matcher: &'a RegexMatcher,
    /// Lines up to this one were told before.
    skip: u64,
    /// Where lines are told in order, and this file's number.
    turn: (&'a Order<'o>, usize),
    /// What is not told yet.
    pub(super) lines: Lines,
    matches: Matches,
}

impl<'a, 'o> Tell<'a, 'o> {
    pub(super) fn new(
        job: &'a Job<'a>,
        matcher: &'a RegexMatcher,
        skip: u64,
        turn: (&'a Order<'o>, usize),
    ) -> Self {
        Self { job, matcher, skip, turn, lines: Lines::default(), matches: Matches::default() }
    }

    fn line(&mut self, number: u64, line: &[u8]) {
        if number <= self.skip {
            return;
        }
        let (line, ranges) = (bare(line), self.job.ranges);
        let matches = self.matches.of(self.matcher, line, ranges);
        self.lines.add(number, line, ranges.then_some(matches));
    }
}

impl Sink for Tell<'_, '_> {
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
        let (order, at) = self.turn;
        Ok(self.lines.bytes() < MAX_IN_MEMORY || order.more(at, std::mem::take(&mut self.lines)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Lines {
        /// Numbers and texts as lines without ranges.
        pub(in crate::grep) fn of<'a>(all: impl Iterator<Item = (u64, &'a [u8])>) -> Self {
            let mut lines = Self::default();
            all.for_each(|(number, text)| lines.add(number, text, None));
            lines
        }
    }

    fn lines(texts: &[&str], with_ranges: bool) -> Lines {
        let mut lines = Lines::default();
        for (number, text) in (1..).zip(texts) {
            lines.add(number, text.as_bytes(), with_ranges.then_some(&[(0, 1)][..]));
        }
        lines
    }

    #[test]
    fn the_front_is_as_much_as_there_is_room_for() {
        let texts = ["", "bcd", "", "é", "", ""];
        for with_ranges in [false, true] {
            for most in 1..8 {
                for bytes in 0..12 {
                    let (mut left, mut told) = (lines(&texts, with_ranges), Vec::new());
                    while left.len() > 0 {
                        let front = left.front(most, bytes);
                        assert!(front.len() > 0 && front.len() <= most);
                        assert!(front.len() == 1 || front.text.len() <= bytes, "{front:?}");
                        let file = front.into_file(&RootId("r".into()), "a");
                        told.extend(file.items().map(|i| (i.line, i.text, i.ranges.len())));
                    }
                    let of = |(n, text): (u32, &&str)| {
                        (n, (*text).to_owned(), usize::from(with_ranges && !text.is_empty()))
                    };
                    assert_eq!(told, (1..).zip(&texts).map(of).collect::<Vec<_>>());
                    assert_eq!(left, Lines::default());
                }
            }
        }
    }
}
