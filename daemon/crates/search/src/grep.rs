//! Lines by pattern: ripgrep's own matcher and searcher over the index's file list, read from the disk, so that the
//! answer has the same lines as `rg -n`. Files whose trigrams say that nothing in them can match are passed over.

mod lines;
mod order;
mod pattern;
mod told;

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::id::RootId;
use cairn_protocol::index::IndexState;
use cairn_protocol::lines::{FileLines, GrepStreamEnd, GrepStreamParams};
use cairn_protocol::search::{GrepAnswer, GrepCount, GrepItem, GrepParams, MAX_GREP_K};
use cairn_workspace::{Opener, View, WorkspaceError};
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink};

use crate::filters::{Filters, check_k, check_text, invalid};
use crate::grams::{Query, SkipSet};
use crate::indexes::Indexes;
use crate::root_index::{FileEntry, FileTable, RootIndex};
use crate::sync::{CancelFlag, lock};

use lines::{BoundedReader, Collect, FileHits, around};
pub use order::OnLines;
use order::Order;
use pattern::Pattern;
use told::Tell;

const MAX_CONTEXT: u32 = 20;
/// Longest time for a stream, whose client may read slowly.
const STREAM_LIMIT: Duration = Duration::from_secs(30 * 60);
/// Unreadable files named.
const MAX_UNREADABLE: usize = 100;

/// The file list of one root.
struct Scope {
    index: Arc<RootIndex>,
    table: Arc<FileTable>,
    opener: Opener,
    skips: SkipSet,
    /// Its files without those that rules hide.
    view: View,
}

/// Where an answer goes on: the root and path of its last line, and that line.
#[derive(Debug, PartialEq, Eq)]
struct Cursor {
    root: String,
    line: u64,
    path: String,
}

/// The cursor that goes on after the lines of a file.
pub fn cursor_after(file: &FileLines) -> String {
    Cursor::after(&file.root, file.lines.last().copied().unwrap_or(0), &file.path)
}

impl Cursor {
    fn after(root: &RootId, line: u32, path: &str) -> String {
        format!("{root}:{line}:{path}")
    }

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
        let job = Job::new(params, cancel, started + self.options().grep_limit)?;
        // Before it looks at the index: what waits would else answer from what was.
        let opts = self.options();
        let threads = opts.greps.take(opts.threads, cancel)?;
        let (scopes, complete) = self.scopes(&filters, &job.query)?;
        let files = chosen(&scopes, &filters, job.after.as_ref());
        job.run_all(threads.count, &scopes, &files, None);
        drop(threads);
        job.check()?;
        let mut answer = job.answer(&scopes, &files);
        answer.complete = complete;
        answer.restricted = scopes.iter().any(|s| !s.view.is_complete());
        answer.took_us = started.elapsed().as_micros() as u64;
        Ok(answer)
    }

    /// `search.grepStream`: all matching lines by path and line, told while they are found. Who takes them slowly slows the
    /// search down.
    ///
    /// # Errors
    /// As those of [`Indexes::grep`].
    pub fn grep_stream(
        &self,
        params: &GrepStreamParams,
        cancel: &CancelFlag,
        tell: OnLines<'_>,
    ) -> Result<GrepStreamEnd, Failure> {
        let started = Instant::now();
        check_text("pattern", &params.pattern)?;
        if params.k == Some(0) {
            return Err(invalid("k", "0 is less than 1"));
        }
        let filters = Filters::new(params.filters.as_ref(), params.path_prefix.as_deref())?;
        let plain = GrepParams {
            pattern: params.pattern.clone(),
            path_prefix: None,
            is_regex: params.is_regex,
            flags: params.flags.clone(),
            k: MAX_GREP_K,
            filters: None,
            count_only: false,
            context_lines: 0,
            cursor: params.cursor.clone(),
            request_id: None,
        };
        let mut job = Job::new(&plain, cancel, started + STREAM_LIMIT)?;
        job.ranges &= params.with_ranges;
        let opts = self.options();
        let threads = opts.greps.take(opts.threads, cancel)?;
        let (scopes, complete) = self.scopes(&filters, &job.query)?;
        let files = chosen(&scopes, &filters, job.after.as_ref());
        let place = |at: usize| {
            let (scope, file): Target<'_> = files[at];
            (&scopes[scope].index.root.id, &*file.path)
        };
        let order = Order::new(params.k.unwrap_or(u64::MAX), tell, &place, cancel);
        job.run_all(threads.count, &scopes, &files, Some(&order));
        drop(threads);
        job.check()?;
        let (total, truncated) = order.finish()?;
        let found = job.found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (files_searched, took_us) = (job.searched.into_inner(), started.elapsed().as_micros() as u64);
        let (unreadable, restricted) = (found.named(), scopes.iter().any(|s| !s.view.is_complete()));
        Ok(GrepStreamEnd { total, files_searched, truncated, complete, unreadable, took_us, restricted })
    }

    /// What is looked into, and whether the lists of files are whole.
    fn scopes(&self, filters: &Filters, query: &Query) -> Result<(Vec<Scope>, bool), Failure> {
        let (mut scopes, mut complete) = (Vec::new(), true);
        for index in self.named(&filters.roots)? {
            let state = index.progress();
            complete &= state.walked_once && state.state != Some(IndexState::Failed);
            let conn = index.readers.get().map_err(|e| state.error.unwrap_or_else(|| e.into()))?;
            let skips = index.grams.skippable_files(query);
            let table = index.files(&conn)?;
            drop(conn);
            let opener = index.root.opener()?;
            let view = index.root.view();
            scopes.push(Scope { index, table, opener, skips, view });
        }
        Ok((scopes, complete))
    }
}

/// A file to look into: its scope and itself.
type Target<'a> = (usize, &'a FileEntry);

fn chosen<'a>(scopes: &'a [Scope], filters: &Filters, after: Option<&Cursor>) -> Vec<Target<'a>> {
    let mut files = Vec::new();
    let first = after.and_then(|c| scopes.iter().position(|s| *s.index.root.id.0 == *c.root));
    for (n, scope) in scopes.iter().enumerate() {
        if first.is_some_and(|f| n < f) {
            continue;
        }
        let from = match after.filter(|_| first == Some(n)) {
            Some(cursor) => scope.table.files.partition_point(|f| *f.path < *cursor.path),
            None => 0,
        };
        let wanted =
            |f: &&FileEntry| !scope.skips.contains(f.id) && filters.matches(f) && scope.view.shows(&f.path);
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
    /// Whether the matches of each line are told.
    ranges: bool,
    after: Option<Cursor>,
    cancel: &'a CancelFlag,
    deadline: Instant,
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

impl Found {
    /// The unreadable files, in order.
    fn named(mut self) -> Vec<String> {
        self.unreadable.sort();
        self.unreadable
    }
}

impl<'a> Job<'a> {
    fn new(params: &'a GrepParams, cancel: &'a CancelFlag, deadline: Instant) -> Result<Self, Failure> {
        let Pattern { matcher, text, flags, multiline } = Pattern::of(params)?;
        Ok(Self {
            params,
            matcher,
            query: Query::parse(&text, flags),
            multiline,
            ranges: !multiline,
            after: params.cursor.as_deref().map(Cursor::parse).transpose()?,
            cancel,
            deadline,
            full: AtomicBool::new(false),
            lines: AtomicU64::new(0),
            searched: AtomicU64::new(0),
            found: Mutex::default(),
        })
    }

    /// True if it goes on: nobody cancelled it, and its time is not over.
    fn goes_on(&self) -> bool {
        !self.cancel.is_cancelled() && Instant::now() < self.deadline
    }

    /// Fails when it was cut off.
    fn check(&self) -> Result<(), Failure> {
        self.cancel.check()?;
        if Instant::now() < self.deadline {
            return Ok(());
        }
        Err(Failure::new(
            Reason::Cancelled,
            "the pattern took too long to look for: name fewer files, or a simpler one",
        ))
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

    /// Looks into all files with so many threads.
    fn run_all(&self, threads: usize, scopes: &[Scope], files: &[Target<'_>], order: Option<&Order<'_>>) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| self.run(scopes, files, &next, order));
            }
            self.run(scopes, files, &next, order);
        });
    }

    /// Takes file after file until there is none, or the answer is full.
    fn run(&self, scopes: &[Scope], files: &[Target<'_>], next: &AtomicUsize, order: Option<&Order<'_>>) {
        let mut searcher = self.searcher();
        // Its own, so that threads do not wait for each other's scratch memory.
        let matcher = self.matcher.clone();
        let mut searched = 0;
        while !self.full.load(Ordering::Relaxed) && self.goes_on() {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((scope, file)) = files.get(at) else { break };
            let scope = &scopes[*scope];
            let skip = self.skipped(scope, file);
            if let Some(order) = order {
                let mut tell = Tell::new(self, &matcher, skip, (order, at));
                searched += u64::from(self.look(&mut searcher, &matcher, (scope, file), &mut tell));
                if !order.ended(at, tell.lines) {
                    self.full.store(true, Ordering::Relaxed);
                }
                continue;
            }
            let mut collect = Collect::new(self, &matcher, skip);
            searched += u64::from(self.look(&mut searcher, &matcher, (scope, file), &mut collect));
            let hits = collect.hits;
            if hits.count == 0 {
                continue;
            }
            let sum = self.lines.fetch_add(hits.count, Ordering::Relaxed) + hits.count;
            lock(&self.found).files.push((at, hits));
            // Files are begun in order: the answer's lines lie in those begun so far.
            if !self.params.count_only && sum > u64::from(self.params.k) {
                self.full.store(true, Ordering::Relaxed);
            }
        }
        self.searched.fetch_add(searched, Ordering::Relaxed);
    }

    /// The lines of a file that were on an earlier page: those up to this one.
    fn skipped(&self, scope: &Scope, file: &FileEntry) -> u64 {
        let same = |c: &&Cursor| *scope.index.root.id.0 == *c.root && *file.path == *c.path;
        self.after.as_ref().filter(same).map_or(0, |c| c.line)
    }

    /// Looks into one file. False when it is passed over, or gone.
    fn look(
        &self,
        searcher: &mut Searcher,
        matcher: &RegexMatcher,
        (scope, file): (&Scope, &FileEntry),
        sink: &mut impl Sink<Error = std::io::Error>,
    ) -> bool {
        let Scope { opener, skips, .. } = scope;
        if skips.contains_if_unchanged(file.id, || opener.facts(&file.path)) {
            return false;
        }
        let looked = match opener.open_file(&file.path) {
            Ok((open, size)) => {
                let reader = BoundedReader { file: &open, left: size.max(1), job: self };
                searcher.search_reader(matcher, reader, sink).is_ok()
            }
            Err(e) if e.is_not_found() || e.is_outside() || matches!(e, WorkspaceError::NotAFile { .. }) => {
                return false;
            }
            Err(_) => false,
        };
        if !looked && self.goes_on() {
            let mut found = lock(&self.found);
            if found.unreadable.len() < MAX_UNREADABLE {
                found.unreadable.push(file.path.to_string());
            }
        }
        true
    }

    fn answer(self, scopes: &[Scope], files: &[Target<'_>]) -> GrepAnswer {
        let mut found = self.found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut in_files = std::mem::take(&mut found.files);
        in_files.sort_by_key(|(at, _)| *at);
        let mut answer = GrepAnswer {
            total: self.lines.into_inner(),
            files_searched: self.searched.into_inner(),
            unreadable: found.named(),
            ..GrepAnswer::default()
        };
        let (k, context) = (self.params.k as usize, self.params.context_lines as usize);
        for (at, mut hits) in in_files {
            let (scope, file) = files[at];
            let root = &scopes[scope].index.root.id;
            if self.params.count_only {
                answer.counts.push(GrepCount {
                    path: file.path.to_string(),
                    root: root.clone(),
                    lines: hits.count,
                });
                continue;
            }
            for n in 0..hits.lines.len() {
                let (is_match, number) = (hits.lines[n].is_match, hits.lines[n].number);
                if !is_match {
                    continue;
                }
                if answer.items.len() == k {
                    answer.truncated = true;
                    break;
                }
                let before = around(&hits.lines, n, number, context, true);
                let after = around(&hits.lines, n, number, context, false);
                // Its text may stand around others.
                let line =
                    if context == 0 { std::mem::take(&mut hits.lines[n]) } else { hits.lines[n].clone() };
                answer.items.push(GrepItem { before, after, ..line.into_item(root, &file.path) });
            }
        }
        if answer.truncated {
            answer.next_cursor =
                answer.items.last().map(|item| Cursor::after(&item.root, item.line, &item.path));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_back() {
        let cursor = Cursor::parse("root_1:12:a:b/c.rs").unwrap();
        assert_eq!(cursor, Cursor { root: "root_1".into(), line: 12, path: "a:b/c.rs".into() });
        assert!(Cursor::parse("x").is_err() && Cursor::parse("a:b:c").is_err());
    }
}
