//! Lines by pattern: ripgrep's own matcher and searcher over the index's file list, read from the disk, so that the
//! answer has the same lines as `rg -n`. Files whose trigrams say that nothing in them can match are passed over.

use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::index::IndexState;
use cairn_protocol::search::{GrepAnswer, GrepCount, GrepItem, GrepParams, MAX_GREP_K};
use cairn_workspace::Opener;
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};

use crate::filters::{Filters, check_k, check_text, invalid};
use crate::grams::{Flags, Query, Skips};
use crate::indexes::Indexes;
use crate::live::{FileEntry, FileTable, Live};
use crate::sync::{CancelFlag, lock};

const MAX_CONTEXT: u32 = 20;
/// Bytes of a line in the answer.
const MAX_LINE: usize = 2048;
/// Matches told in one line.
const MAX_RANGES: usize = 100;
/// Unreadable files named.
const MAX_UNREADABLE: usize = 100;

/// The file list of one root.
struct Scope {
    live: Arc<Live>,
    table: Arc<FileTable>,
    opener: Opener,
    skips: Skips,
}

/// Where an answer goes on: the root and path of its last line, and that line.
#[derive(Debug, PartialEq, Eq)]
struct Cursor {
    root: String,
    line: u64,
    path: String,
}

impl Cursor {
    fn parse(text: &str) -> Result<Self, Failure> {
        let mut parts = text.splitn(3, ':');
        let (Some(root), Some(line), Some(path)) =
            (parts.next(), parts.next().and_then(|l| l.parse().ok()), parts.next())
        else {
            return Err(invalid("cursor", "is not one of this method"));
        };
        Ok(Self { root: root.into(), line, path: path.into() })
    }
}

impl Indexes {
    /// `search.grep`: matching lines by path and line, or their number by file.
    ///
    /// # Errors
    /// `invalid_params`, `bad_pattern`, `root_not_found`, `no_roots`, `cancelled`, or a storage failure.
    pub fn grep(&self, params: &GrepParams, cancel: &CancelFlag) -> Result<GrepAnswer, Failure> {
        let started = Instant::now();
        check_text("pattern", &params.pattern)?;
        check_k(params.k, MAX_GREP_K)?;
        if params.context_lines > MAX_CONTEXT {
            return Err(invalid("contextLines", format_args!("at most {MAX_CONTEXT}")));
        }
        let filters = Filters::new(params.filters.as_ref(), params.path_prefix.as_deref())?;
        let job = Job::new(params, cancel)?;
        // Before it looks at the index: what waits would else answer from what was.
        let opts = self.options();
        let threads = opts.greps.take(opts.threads, cancel)?;
        let mut scopes = Vec::new();
        let mut complete = true;
        for live in self.named(&filters.roots)? {
            let state = live.now();
            complete &= state.walked_once && state.state != Some(IndexState::Failed);
            let conn = live.readers.get().map_err(|e| state.error.unwrap_or_else(|| e.into()))?;
            let skips = live.grams.skips(&job.query);
            let table = live.files(&conn)?;
            drop(conn);
            let opener = live.root.opener()?;
            scopes.push(Scope { live, table, opener, skips });
        }
        let files = chosen(&scopes, &filters, job.after.as_ref());
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 1..threads.count {
                scope.spawn(|| job.run(&scopes, &files, &next));
            }
            job.run(&scopes, &files, &next);
        });
        drop(threads);
        cancel.check()?;
        let mut answer = job.answer(&scopes, &files);
        answer.complete = complete;
        answer.took_us = started.elapsed().as_micros() as u64;
        Ok(answer)
    }
}

/// A file to look into: its scope and itself.
type Target<'a> = (usize, &'a FileEntry);

fn chosen<'a>(scopes: &'a [Scope], filters: &Filters, after: Option<&Cursor>) -> Vec<Target<'a>> {
    let mut files = Vec::new();
    let first = after.and_then(|c| scopes.iter().position(|s| *s.live.root.id.0 == *c.root));
    for (n, scope) in scopes.iter().enumerate() {
        if first.is_some_and(|f| n < f) {
            continue;
        }
        let from = match after.filter(|_| first == Some(n)) {
            Some(cursor) => scope.table.files.partition_point(|f| *f.path < *cursor.path),
            None => 0,
        };
        let wanted = |f: &&FileEntry| !scope.skips.has(f.id) && filters.admits(f);
        files.extend(scope.table.files[from..].iter().filter(wanted).map(|f| (n, f)));
    }
    files
}

/// A grep at work, shared by its threads.
struct Job<'a> {
    params: &'a GrepParams,
    matcher: RegexMatcher,
    /// What a file must have so that the pattern can match in it.
    query: Query,
    multiline: bool,
    after: Option<Cursor>,
    cancel: &'a CancelFlag,
    /// Set when the lines found so far fill the answer: no further file is begun.
    full: AtomicBool,
    lines: AtomicU64,
    searched: AtomicU64,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    files: Vec<(usize, FileHits)>,
    unreadable: Vec<String>,
}

/// What one file has.
#[derive(Default)]
struct FileHits {
    /// Matching lines.
    count: u64,
    lines: Vec<Line>,
}

struct Line {
    number: u64,
    text: String,
    ranges: Vec<[u32; 2]>,
    is_match: bool,
}

impl<'a> Job<'a> {
    fn new(params: &'a GrepParams, cancel: &'a CancelFlag) -> Result<Self, Failure> {
        let mut build = RegexMatcherBuilder::new();
        build.multi_line(true);
        let (mut multiline, mut reading) = (false, Flags::default());
        for flag in &params.flags {
            match flag.as_str() {
                "ignore_case" | "i" => {
                    reading.any_case = true;
                    build.case_insensitive(true)
                }
                // Whether case matters is the matcher's secret: asking for any case loses nothing.
                "smart_case" | "S" => {
                    reading.any_case = true;
                    build.case_smart(true)
                }
                "word" | "w" => build.word(true),
                "multiline" | "U" => {
                    multiline = true;
                    &mut build
                }
                "dot_all" | "s" => {
                    reading.dot_all = true;
                    build.dot_matches_new_line(true)
                }
                other => {
                    return Err(invalid("flags", format_args!("'{}' is not known", other.escape_default())));
                }
            };
        }
        if !multiline {
            build.line_terminator(Some(b'\n'));
        }
        let pattern =
            if params.is_regex { params.pattern.clone() } else { regex_syntax::escape(&params.pattern) };
        let matcher =
            build.build(&pattern).map_err(|e| Failure::new(Reason::BadPattern, format!("pattern: {e}")))?;
        Ok(Self {
            params,
            matcher,
            query: Query::of(&pattern, reading),
            multiline,
            after: params.cursor.as_deref().map(Cursor::parse).transpose()?,
            cancel,
            full: AtomicBool::new(false),
            lines: AtomicU64::new(0),
            searched: AtomicU64::new(0),
            found: Mutex::default(),
        })
    }

    fn searcher(&self) -> Searcher {
        let context = if self.params.count_only { 0 } else { self.params.context_lines as usize };
        SearcherBuilder::new()
            .line_number(!self.params.count_only)
            .multi_line(self.multiline)
            .binary_detection(BinaryDetection::quit(0))
            .before_context(context)
            .after_context(context)
            .build()
    }

    /// Takes file after file until there is none, or the answer is full.
    fn run(&self, scopes: &[Scope], files: &[Target<'_>], next: &AtomicUsize) {
        let mut searcher = self.searcher();
        // Its own, so that threads do not wait for each other's scratch memory.
        let matcher = self.matcher.clone();
        let mut searched = 0;
        while !self.full.load(Ordering::Relaxed) && !self.cancel.is_cancelled() {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((scope, file)) = files.get(at) else { break };
            let Scope { opener, skips, .. } = &scopes[*scope];
            if skips.has_if(file.id, || opener.facts(&file.path)) {
                continue;
            }
            let hits = match opener.open_file(&file.path) {
                Ok((open, size)) => {
                    let whole = Whole { file: &open, left: size.max(1) };
                    self.search(&mut searcher, &matcher, whole, *scope, file, scopes)
                }
                Err(e)
                    if matches!(
                        e.reason,
                        Reason::PathNotFound | Reason::NotAFile | Reason::PathOutsideRoots
                    ) =>
                {
                    continue;
                }
                Err(e) => Err(e.message),
            };
            searched += 1;
            match hits {
                Ok(hits) if hits.count == 0 => {}
                Ok(hits) => {
                    let sum = self.lines.fetch_add(hits.count, Ordering::Relaxed) + hits.count;
                    lock(&self.found).files.push((at, hits));
                    // Files are begun in order: the answer's lines lie in those begun so far.
                    if !self.params.count_only && sum > u64::from(self.params.k) {
                        self.full.store(true, Ordering::Relaxed);
                    }
                }
                Err(_) => {
                    let mut found = lock(&self.found);
                    if found.unreadable.len() < MAX_UNREADABLE {
                        found.unreadable.push(file.path.to_string());
                    }
                }
            }
        }
        self.searched.fetch_add(searched, Ordering::Relaxed);
    }

    fn search(
        &self,
        searcher: &mut Searcher,
        matcher: &RegexMatcher,
        open: Whole<'_>,
        scope: usize,
        file: &FileEntry,
        scopes: &[Scope],
    ) -> Result<FileHits, String> {
        let same = |c: &&Cursor| *scopes[scope].live.root.id.0 == *c.root && *file.path == *c.path;
        let skip = self.after.as_ref().filter(same).map_or(0, |c| c.line);
        let mut sink = Collect { job: self, matcher, skip, hits: FileHits::default() };
        searcher.search_reader(matcher, open, &mut sink).map_err(|e| e.to_string())?;
        Ok(sink.hits)
    }

    fn answer(self, scopes: &[Scope], files: &[Target<'_>]) -> GrepAnswer {
        let mut found = self.found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        found.files.sort_by_key(|(at, _)| *at);
        found.unreadable.sort();
        let mut answer = GrepAnswer {
            total: self.lines.into_inner(),
            files_searched: self.searched.into_inner(),
            unreadable: found.unreadable,
            ..GrepAnswer::default()
        };
        let k = self.params.k as usize;
        for (at, hits) in found.files {
            let (scope, file) = files[at];
            let root = &scopes[scope].live.root.id;
            if self.params.count_only {
                answer.counts.push(GrepCount {
                    path: file.path.to_string(),
                    root: root.clone(),
                    lines: hits.count,
                });
                continue;
            }
            for (n, line) in hits.lines.iter().enumerate().filter(|(_, l)| l.is_match) {
                if answer.items.len() == k {
                    answer.truncated = true;
                    break;
                }
                let context = self.params.context_lines as usize;
                answer.items.push(GrepItem {
                    path: file.path.to_string(),
                    root: root.clone(),
                    line: u32::try_from(line.number).unwrap_or(u32::MAX),
                    text: line.text.clone(),
                    ranges: line.ranges.clone(),
                    before: around(&hits.lines, n, line.number, context, true),
                    after: around(&hits.lines, n, line.number, context, false),
                });
            }
        }
        if answer.truncated {
            answer.next_cursor = answer.items.last().map(|i| format!("{}:{}:{}", i.root, i.line, i.path));
        }
        answer
    }
}

/// Up to `context` lines before or after the line at `n`, without a gap.
fn around(lines: &[Line], n: usize, number: u64, context: usize, before: bool) -> Vec<String> {
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
struct Whole<'a> {
    file: &'a std::fs::File,
    left: u64,
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

struct Collect<'a> {
    job: &'a Job<'a>,
    matcher: &'a RegexMatcher,
    /// Lines up to this one were on an earlier page.
    skip: u64,
    hits: FileHits,
}

impl Collect<'_> {
    /// Lines that say nothing beyond a full answer are not kept.
    fn is_full(&self) -> bool {
        self.hits.count > u64::from(self.job.params.k)
    }

    fn keep(&mut self, number: u64, bytes: &[u8], is_match: bool) {
        let bare = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let bare = bare.strip_suffix(b"\r").unwrap_or(bare);
        let mut ranges = Vec::new();
        if is_match && !self.job.multiline {
            let _ = self.matcher.find_iter(bare, |m| {
                ranges.push((m.start(), m.end()));
                ranges.len() < MAX_RANGES && m.end() <= MAX_LINE
            });
        }
        let (text, ranges) = shown(bare, &ranges);
        self.hits.lines.push(Line { number, text, ranges, is_match });
    }
}

impl Sink for Collect<'_> {
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
    let ranges = inside.map(|(start, end)| [moved(*start) as u32, moved((*end).min(cut)) as u32]).collect();
    (text, ranges)
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

    #[test]
    fn cursors_are_read_back() {
        let cursor = Cursor::parse("root_1:12:a:b/c.rs").unwrap();
        assert_eq!(cursor, Cursor { root: "root_1".into(), line: 12, path: "a:b/c.rs".into() });
        assert!(Cursor::parse("x").is_err() && Cursor::parse("a:b:c").is_err());
    }
}
