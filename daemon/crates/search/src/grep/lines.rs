//! Collects the matching lines of a file for a page.

use std::io::Read;

use cairn_protocol::id::RootId;
use cairn_protocol::search::GrepItem;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

use super::Job;

/// Maximum bytes of a line in the answer.
const MAX_LINE: usize = 2048;
/// Maximum number of matches reported for a line.
const MAX_RANGES: usize = 100;

/// The results of one file.
#[derive(Default)]
pub(super) struct FileHits {
    /// Number of matching lines.
    pub(super) count: u64,
    pub(super) lines: Vec<Line>,
}

/// A matching line, or a line of context.
#[derive(Clone, Default)]
pub(super) struct Line {
    pub(super) number: u64,
    text: String,
    ranges: Vec<[u32; 2]>,
    pub(super) is_match: bool,
}

impl Line {
    /// Converts the line to an item without context.
    pub(super) fn into_item(self, root: &RootId, path: &str) -> GrepItem {
        let line = u32::try_from(self.number).unwrap_or(u32::MAX);
        let (path, root, text, ranges) = (path.to_owned(), root.clone(), self.text, self.ranges);
        GrepItem { path, root, line, text, ranges, before: Vec::new(), after: Vec::new() }
    }
}

/// Up to `context` contiguous lines before or after the line at `n`.
pub(super) fn context_of(
    lines: &[Line],
    n: usize,
    number: u64,
    context: usize,
    before: bool,
) -> Vec<String> {
    let next = |d: usize| if before { n.checked_sub(d) } else { Some(n + d) };
    let mut texts: Vec<String> = (1..=context)
        .map_while(|d| {
            let line = lines.get(next(d)?)?;
            (line.number.abs_diff(number) == d as u64).then(|| line.text.clone())
        })
        .collect();
    if before {
        texts.reverse();
    }
    texts
}

/// A reader that trusts the size of a file unless a read returns more, because reads that only find
/// the end are half of all reads in a tree of small files.
pub(super) struct BoundedReader<'a> {
    pub(super) file: &'a std::fs::File,
    pub(super) remaining: u64,
    /// The grep with whose end reading stops.
    pub(super) job: &'a Job<'a>,
}

impl Read for BoundedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.remaining == 0 {
            return Ok(0);
        }
        if !self.job.should_continue() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        let n = self.file.read(buffer)?;
        // A full buffer may mean that the file has grown; then the end is found by reading.
        let grown = n == buffer.len() && n as u64 >= self.remaining;
        self.remaining = if grown { 1 } else { self.remaining.saturating_sub(n as u64) };
        if n == 0 {
            self.remaining = 0;
        }
        Ok(n)
    }
}

/// A sink that collects the lines of one file.
pub(super) struct Collect<'a> {
    job: &'a Job<'a>,
    matcher: &'a RegexMatcher,
    /// Lines up to this one were on an earlier page.
    skip: u64,
    pub(super) hits: FileHits,
    matches: Matches,
}

impl<'a> Collect<'a> {
    pub(super) fn new(job: &'a Job<'a>, matcher: &'a RegexMatcher, skip: u64) -> Self {
        Self { job, matcher, skip, hits: FileHits::default(), matches: Matches::default() }
    }

    /// True once the file has more lines than the answer can contain.
    fn is_full(&self) -> bool {
        self.hits.count > u64::from(self.job.params.k)
    }

    fn add(&mut self, number: u64, bytes: &[u8], is_match: bool) {
        let line = without_line_end(bytes);
        let matches = self.matches.find(self.matcher, line, is_match && self.job.ranges);
        let text_bytes = clipped(line);
        let (text, ranges) =
            (String::from_utf8_lossy(text_bytes).into_owned(), clipped_ranges(text_bytes, matches));
        self.hits.lines.push(Line { number, text, ranges, is_match });
    }
}

impl Sink for Collect<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, matched: &SinkMatch<'_>) -> Result<bool, std::io::Error> {
        if self.job.cancel.is_cancelled() {
            return Ok(false);
        }
        if self.job.params.count_only {
            self.hits.count += if self.job.multiline { matched.lines().count() as u64 } else { 1 };
            return Ok(true);
        }
        let first = matched.line_number().unwrap_or(0);
        for (n, line) in matched.lines().enumerate() {
            let number = first + n as u64;
            let is_new = number > self.skip;
            self.hits.count += u64::from(is_new);
            self.add(number, line, is_new);
        }
        Ok(!self.is_full())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, std::io::Error> {
        self.add(context.line_number().unwrap_or(0), context.bytes(), false);
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> Result<(), std::io::Error> {
        // As in `rg -c`: lines before a NUL are shown, but a binary file has a count of 0.
        if self.job.params.count_only && end.binary_byte_offset().is_some() {
            self.hits.count = 0;
        }
        Ok(())
    }
}

/// The matches of the current line; reused between lines.
#[derive(Default)]
pub(super) struct Matches(Vec<(usize, usize)>);

impl Matches {
    /// Finds the matches of a line; none unless `enabled`.
    pub(super) fn find(
        &mut self,
        matcher: &RegexMatcher,
        line: &[u8],
        enabled: bool,
    ) -> &[(usize, usize)] {
        let Self(matched) = self;
        matched.clear();
        if enabled {
            let _ = matcher.find_iter(line, |m| {
                matched.push((m.start(), m.end()));
                matched.len() < MAX_RANGES && m.end() <= MAX_LINE
            });
        }
        matched
    }
}

/// A line without its end.
pub(super) fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The first [`MAX_LINE`] bytes of a line, cut at a character boundary.
pub(super) fn clipped(line: &[u8]) -> &[u8] {
    let mut cut = line.len().min(MAX_LINE);
    while cut > 0 && cut < line.len() && line[cut] & 0xC0 == 0x80 {
        cut -= 1;
    }
    &line[..cut]
}

/// The matches in a clipped line, with offsets adjusted for the replacement of invalid UTF-8.
pub(super) fn clipped_ranges(line: &[u8], matches: &[(usize, usize)]) -> Vec<[u32; 2]> {
    // Most lines have one match, so the capacity is exact.
    let mut ranges = Vec::with_capacity(matches.len());
    let inside = matches.iter().filter(|(start, end)| *start < line.len() && end > start);
    let clipped = inside.map(|(start, end)| (*start, (*end).min(line.len())));
    if std::str::from_utf8(line).is_ok() {
        ranges.extend(clipped.map(|(start, end)| [start as u32, end as u32]));
    } else {
        let offset = |at: usize| String::from_utf8_lossy(&line[..at]).len() as u32;
        ranges.extend(clipped.map(|(start, end)| [offset(start), offset(end)]));
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_clipped_with_their_ranges() {
        let clip = |line: &[u8], matches: &[(usize, usize)]| {
            let line = clipped(line);
            (String::from_utf8_lossy(line).into_owned(), clipped_ranges(line, matches))
        };
        assert_eq!(clip(b"abc", &[(1, 2)]), ("abc".into(), vec![[1, 2]]));
        let (text, ranges) = clip(b"a\xffbc", &[(2, 3)]);
        assert_eq!((&text[ranges[0][0] as usize..ranges[0][1] as usize], ranges.len()), ("b", 1));
        let long = "é".repeat(MAX_LINE);
        let (text, ranges) = clip(long.as_bytes(), &[(0, 2), (MAX_LINE + 2, MAX_LINE + 4)]);
        assert!(text.len() <= MAX_LINE && ranges == [[0, 2]]);
    }
}
