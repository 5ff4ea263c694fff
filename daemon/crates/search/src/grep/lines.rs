//! Reading one file: its matching lines, as they are told.

use std::io::Read;

use cairn_protocol::id::RootId;
use cairn_protocol::search::GrepItem;
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

use super::Job;
use super::order::{MAX_HELD, Order};

/// Bytes of a line in the answer.
const MAX_LINE: usize = 2048;
/// Matches told in one line.
const MAX_RANGES: usize = 100;

/// What one file has.
#[derive(Default)]
pub(super) struct FileHits {
    /// Matching lines.
    pub(super) count: u64,
    pub(super) lines: Vec<Line>,
}

/// One line that matches, or stands around one that does.
#[derive(Clone, Default)]
pub(super) struct Line {
    pub(super) number: u64,
    text: String,
    ranges: Vec<[u32; 2]>,
    pub(super) is_match: bool,
}

impl Line {
    /// The line as it is told, with nothing around it.
    pub(super) fn into_item(self, root: &RootId, path: &str) -> GrepItem {
        let line = u32::try_from(self.number).unwrap_or(u32::MAX);
        let (path, root, text, ranges) = (path.to_owned(), root.clone(), self.text, self.ranges);
        GrepItem { path, root, line, text, ranges, before: Vec::new(), after: Vec::new() }
    }
}

/// Up to `context` lines before or after the line at `n`, without a gap.
pub(super) fn around(lines: &[Line], n: usize, number: u64, context: usize, before: bool) -> Vec<String> {
    let next = |d: usize| if before { n.checked_sub(d) } else { Some(n + d) };
    let mut found: Vec<String> = (1..=context)
        .map_while(|d| {
            let line = lines.get(next(d)?)?;
            (line.number.abs_diff(number) == d as u64).then(|| line.text.clone())
        })
        .collect();
    if before {
        found.reverse();
    }
    found
}

/// A file that ends where its size says, as long as a read gives no more: the reads that only find the end are half of
/// all reads of a tree of small files.
pub(super) struct Whole<'a> {
    pub(super) file: &'a std::fs::File,
    pub(super) left: u64,
}

impl Read for Whole<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            return Ok(0);
        }
        let n = self.file.read(buffer)?;
        // A full buffer may hide that the file has grown; then its end is looked for as usual.
        let grown = n == buffer.len() && n as u64 >= self.left;
        self.left = if grown { 1 } else { self.left.saturating_sub(n as u64) };
        if n == 0 {
            self.left = 0;
        }
        Ok(n)
    }
}

/// Gathers the lines of one file.
pub(super) struct Collect<'a, 'o> {
    pub(super) job: &'a Job<'a>,
    pub(super) matcher: &'a RegexMatcher,
    /// Lines up to this one were on an earlier page.
    pub(super) skip: u64,
    /// Where lines are told in order, and this file's number.
    pub(super) turn: Option<(&'a Order<'o>, usize)>,
    pub(super) hits: FileHits,
    /// Matches of the line at hand.
    pub(super) ranges: Vec<(usize, usize)>,
}

impl Collect<'_, '_> {
    /// Lines that say nothing beyond a full answer are not kept.
    fn is_full(&mut self) -> bool {
        let Some((order, at)) = self.turn else { return self.hits.count > u64::from(self.job.params.k) };
        self.hits.lines.len() >= MAX_HELD && !order.more(at, std::mem::take(&mut self.hits.lines))
    }

    fn keep(&mut self, number: u64, bytes: &[u8], is_match: bool) {
        let bare = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bare = bare.strip_suffix(b"\r").unwrap_or(bare);
        let ranges = &mut self.ranges;
        ranges.clear();
        if is_match && self.job.ranges {
            let _ = self.matcher.find_iter(bare, |m| {
                ranges.push((m.start(), m.end()));
                ranges.len() < MAX_RANGES && m.end() <= MAX_LINE
            });
        }
        let (text, ranges) = shown(bare, ranges);
        self.hits.lines.push(Line { number, text, ranges, is_match });
    }
}

impl Sink for Collect<'_, '_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, std::io::Error> {
        if self.job.cancel.is_cancelled() {
            return Ok(false);
        }
        if self.job.params.count_only {
            self.hits.count += found.lines().count() as u64;
            return Ok(true);
        }
        let first = found.line_number().unwrap_or(0);
        for (n, line) in found.lines().enumerate() {
            let number = first + n as u64;
            let is_new = number > self.skip;
            self.hits.count += u64::from(is_new);
            self.keep(number, line, is_new);
        }
        Ok(!self.is_full())
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> Result<bool, std::io::Error> {
        self.keep(found.line_number().unwrap_or(0), found.bytes(), false);
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> Result<(), std::io::Error> {
        // As `rg -c` has it: what is before a NUL is shown, but a binary file counts for nothing.
        if self.job.params.count_only && end.binary_byte_offset().is_some() {
            self.hits.count = 0;
        }
        Ok(())
    }
}

/// A line as text of at most [`MAX_LINE`] bytes, its ranges moved to where invalid UTF-8 was replaced.
fn shown(line: &[u8], ranges: &[(usize, usize)]) -> (String, Vec<[u32; 2]>) {
    let mut cut = line.len().min(MAX_LINE);
    while cut > 0 && cut < line.len() && line[cut] & 0xC0 == 0x80 {
        cut -= 1;
    }
    let line = &line[..cut];
    let (text, moved): (String, Box<dyn Fn(usize) -> usize>) = match std::str::from_utf8(line) {
        Ok(text) => (text.to_owned(), Box::new(|at| at)),
        Err(_) => (
            String::from_utf8_lossy(line).into_owned(),
            Box::new(|at| String::from_utf8_lossy(&line[..at]).len()),
        ),
    };
    let inside = ranges.iter().filter(|(start, end)| *start < cut && end > start);
    // Most lines have one: no more than is needed is kept.
    let mut told = Vec::with_capacity(ranges.len());
    told.extend(inside.map(|(start, end)| [moved(*start) as u32, moved((*end).min(cut)) as u32]));
    (text, told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_ranges_follow() {
        assert_eq!(shown(b"abc", &[(1, 2)]), ("abc".into(), vec![[1, 2]]));
        let (text, ranges) = shown(b"a\xffbc", &[(2, 3)]);
        assert_eq!((&text[ranges[0][0] as usize..ranges[0][1] as usize], ranges.len()), ("b", 1));
        let long = "é".repeat(MAX_LINE);
        let (text, ranges) = shown(long.as_bytes(), &[(0, 2), (MAX_LINE + 2, MAX_LINE + 4)]);
        assert!(text.len() <= MAX_LINE && ranges == [[0, 2]]);
    }
}
