//! Grep: ripgrep's matcher and searcher over the index's file list, reading from the disk, so that
//! the answer has the same lines as `rg -n`. Files whose trigrams rule out a match are skipped.

mod lines;
mod ordered_output;
mod pattern;
mod stream;

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
use crate::indexes::Indexes;
use cairn_index_base::{FileEntry, FileTable};
use cairn_trigram_index::{Query, SkipSet};

use crate::root_index::RootIndex;
use cairn_index_base::{CancelFlag, lock};

use lines::{BoundedReader, Collect, FileHits, context_of};
pub use ordered_output::OnLines;
use ordered_output::OrderedOutput;
use pattern::Pattern;
use stream::StreamSink;

const MAX_CONTEXT: u32 = 100;
/// Time limit of a stream, whose client may read slowly.
const STREAM_LIMIT: Duration = Duration::from_secs(30 * 60);
/// Maximum number of unreadable files in an answer.
const MAX_UNREADABLE: usize = 100;

/// The file list of one root.
struct Scope {
    index: Arc<RootIndex>,
    table: Arc<FileTable>,
    opener: Opener,
    skips: SkipSet,
    /// The files that rules do not hide.
    view: View,
}

/// The position after which an answer continues: root, path and number of its last line.
#[derive(Debug, PartialEq, Eq)]
struct Cursor {
    root: String,
    line: u64,
    path: String,
}

/// The cursor that continues after the lines of a file.
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
            return Err(invalid("cursor", "is not a cursor of this method"));
        };
        Ok(Self { root: root.into(), line, path: path.into() })
    }
}

impl Indexes {
    /// `search.grep`: matching lines ordered by path and line, or their number per file.
    ///
    /// # Errors
    /// `invalid_params`, `bad_pattern`, `root_not_found`, `no_roots`, `cancelled`, or a storage
    /// failure.
    pub fn grep(&self, params: &GrepParams, cancel: &CancelFlag) -> Result<GrepAnswer, Failure> {
        let started = Instant::now();
        if !params.flags.iter().any(|flag| flag == "files") {
            check_text("pattern", &params.pattern)?;
        }
        check_k(params.k, MAX_GREP_K)?;
        if params.context_lines > MAX_CONTEXT {
            return Err(invalid("contextLines", format_args!("must be at most {MAX_CONTEXT}")));
        }
        let filters = Filters::new(params.filters.as_ref(), params.path_prefix.as_deref())?;
        let job = Job::new(params, cancel, started + self.options().grep_limit)?;
        // Threads are acquired before reading the index, so that waiting does not make the answer
        // outdated.
        let opts = self.options();
        let threads = opts.greps.take(opts.threads, cancel)?;
        let (scopes, complete) = self.scopes(&filters, &job)?;
        let files = target_files(&scopes, &filters, job.after.as_ref());
        if job.lists_files {
            lock(&job.results).files = (0..files.len()).map(|n| (n, FileHits::default())).collect();
        } else {
            job.search_all(threads.count, &scopes, &files, None);
        }
        drop(threads);
        job.check()?;
        let mut answer = job.answer(&scopes, &files);
        answer.complete = complete;
        answer.restricted = scopes.iter().any(|s| !s.view.is_complete());
        answer.took_us = started.elapsed().as_micros() as u64;
        Ok(answer)
    }

    /// `search.grepStream`: all matching lines ordered by path and line, emitted while they are
    /// found. A slow consumer slows down the search.
    ///
    /// # Errors
    /// As those of [`Indexes::grep`].
    pub fn grep_stream(
        &self,
        params: &GrepStreamParams,
        cancel: &CancelFlag,
        emit: OnLines<'_>,
    ) -> Result<GrepStreamEnd, Failure> {
        let started = Instant::now();
        check_text("pattern", &params.pattern)?;
        if params.k == Some(0) {
            return Err(invalid("k", "must be at least 1"));
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
        let (scopes, complete) = self.scopes(&filters, &job)?;
        let files = target_files(&scopes, &filters, job.after.as_ref());
        let location = |at: usize| {
            let (scope, file): Target<'_> = files[at];
            (&scopes[scope].index.root.id, &*file.path)
        };
        let output = OrderedOutput::new(params.k.unwrap_or(u64::MAX), emit, &location, cancel);
        job.search_all(threads.count, &scopes, &files, Some(&output));
        drop(threads);
        job.check()?;
        let (total, truncated) = output.finish()?;
        let results = job.results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (files_searched, took_us) =
            (job.searched.into_inner(), started.elapsed().as_micros() as u64);
        let (unreadable, restricted) =
            (results.sorted_unreadable(), scopes.iter().any(|s| !s.view.is_complete()));
        Ok(GrepStreamEnd {
            total,
            files_searched,
            truncated,
            complete,
            unreadable,
            took_us,
            restricted,
        })
    }

    /// The roots to search, and true if their file lists are complete.
    fn scopes(&self, filters: &Filters, job: &Job<'_>) -> Result<(Vec<Scope>, bool), Failure> {
        let (mut scopes, mut complete) = (Vec::new(), true);
        for index in self.in_scope(filters, job.cancel)? {
            let state = index.progress();
            complete &= state.walked_once && state.state != Some(IndexState::Failed);
            let conn = index.readers.get().map_err(|e| state.error.unwrap_or_else(|| e.into()))?;
            let skips = index.grams.skippable_files(&job.query);
            let table = index.files(&conn)?;
            drop(conn);
            let opener = index.root.opener()?;
            let view = index.root.view();
            scopes.push(Scope { index, table, opener, skips, view });
        }
        Ok((scopes, complete))
    }
}

/// A file to search, with the position of its scope.
type Target<'a> = (usize, &'a FileEntry);

fn target_files<'a>(
    scopes: &'a [Scope],
    filters: &Filters,
    after: Option<&Cursor>,
) -> Vec<Target<'a>> {
    let mut files = Vec::new();
    // A root and its hidden files have the same position.
    let position = |root: &str| scopes.iter().position(|s| *s.index.root.id.0 == *root);
    let first = after.and_then(|c| position(&c.root));
    for (n, scope) in scopes.iter().enumerate() {
        let root = position(&scope.index.root.id.0);
        if first.is_some() && root < first {
            continue;
        }
        let from = match after.filter(|_| first.is_some() && first == root) {
            Some(cursor) => scope.table.files.partition_point(|f| *f.path < *cursor.path),
            None => 0,
        };
        let is_target = |f: &&FileEntry| {
            !scope.skips.contains(f.id) && filters.matches(f) && scope.view.shows(&f.path)
        };
        files.extend(scope.table.files[from..].iter().filter(is_target).map(|f| (n, f)));
    }
    if filters.hidden {
        let root = |n: usize| position(&scopes[n].index.root.id.0);
        files.sort_by(|a, b| root(a.0).cmp(&root(b.0)).then_with(|| a.1.path.cmp(&b.1.path)));
    }
    files
}

/// A running grep, shared by its threads.
struct Job<'a> {
    params: &'a GrepParams,
    matcher: RegexMatcher,
    /// Condition on the trigrams of files that can match.
    query: Query,
    multiline: bool,
    invert: bool,
    lists_files: bool,
    /// True if the ranges of matches are reported.
    ranges: bool,
    after: Option<Cursor>,
    cancel: &'a CancelFlag,
    deadline: Instant,
    /// Set once the lines found so far fill the answer, so that no further file is started.
    full: AtomicBool,
    lines: AtomicU64,
    searched: AtomicU64,
    results: Mutex<Results>,
}

#[derive(Default)]
struct Results {
    files: Vec<(usize, FileHits)>,
    unreadable: Vec<String>,
}

impl Results {
    /// The sorted paths of unreadable files.
    fn sorted_unreadable(mut self) -> Vec<String> {
        self.unreadable.sort();
        self.unreadable
    }
}

impl<'a> Job<'a> {
    fn new(
        params: &'a GrepParams,
        cancel: &'a CancelFlag,
        deadline: Instant,
    ) -> Result<Self, Failure> {
        let Pattern { matcher, text, flags, multiline, invert, lists_files } =
            Pattern::compile(params)?;
        // A file without the pattern has the most lines that do not match.
        let query = if invert || lists_files { Query::All } else { Query::parse(&text, flags) };
        Ok(Self {
            params,
            matcher,
            query,
            multiline,
            invert,
            lists_files,
            ranges: !multiline && !invert,
            after: params.cursor.as_deref().map(Cursor::parse).transpose()?,
            cancel,
            deadline,
            full: AtomicBool::new(false),
            lines: AtomicU64::new(0),
            searched: AtomicU64::new(0),
            results: Mutex::default(),
        })
    }

    /// False once the grep is cancelled or its deadline has passed.
    fn should_continue(&self) -> bool {
        !self.cancel.is_cancelled() && Instant::now() < self.deadline
    }

    /// Fails if the grep was cancelled or exceeded its deadline.
    fn check(&self) -> Result<(), Failure> {
        self.cancel.check()?;
        if Instant::now() < self.deadline {
            return Ok(());
        }
        Err(Failure::new(
            Reason::Cancelled,
            "searching for the pattern took too long: restrict the files, or use a simpler pattern",
        ))
    }

    fn searcher(&self) -> Searcher {
        let context = if self.params.count_only { 0 } else { self.params.context_lines as usize };
        SearcherBuilder::new()
            .line_number(!self.params.count_only)
            .multi_line(self.multiline)
            .invert_match(self.invert)
            .binary_detection(BinaryDetection::quit(0))
            .before_context(context)
            .after_context(context)
            .build()
    }

    /// Searches all files with the given number of threads.
    fn search_all(
        &self,
        threads: usize,
        scopes: &[Scope],
        files: &[Target<'_>],
        output: Option<&OrderedOutput<'_>>,
    ) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| self.search_files(scopes, files, &next, output));
            }
            self.search_files(scopes, files, &next, output);
        });
    }

    /// Claims and searches files until none is left or the answer is full.
    fn search_files(
        &self,
        scopes: &[Scope],
        files: &[Target<'_>],
        next: &AtomicUsize,
        output: Option<&OrderedOutput<'_>>,
    ) {
        let mut searcher = self.searcher();
        // A clone per thread, so that threads do not contend for the matcher's scratch memory.
        let matcher = self.matcher.clone();
        let mut searched = 0;
        while !self.full.load(Ordering::Relaxed) && self.should_continue() {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((scope, file)) = files.get(at) else { break };
            let scope = &scopes[*scope];
            let skip = self.lines_to_skip(scope, file);
            if let Some(output) = output {
                let mut sink = StreamSink::new(self, &matcher, skip, (output, at));
                searched +=
                    u64::from(self.search_file(&mut searcher, &matcher, (scope, file), &mut sink));
                if !output.file_finished(at, sink.lines) {
                    self.full.store(true, Ordering::Relaxed);
                }
                continue;
            }
            let mut collect = Collect::new(self, &matcher, skip);
            searched +=
                u64::from(self.search_file(&mut searcher, &matcher, (scope, file), &mut collect));
            let hits = collect.hits;
            if hits.count == 0 {
                continue;
            }
            let sum = self.lines.fetch_add(hits.count, Ordering::Relaxed) + hits.count;
            lock(&self.results).files.push((at, hits));
            // Files are started in order, so the answer's lines are in those started so far.
            if !self.params.count_only && sum > u64::from(self.params.k) {
                self.full.store(true, Ordering::Relaxed);
            }
        }
        self.searched.fetch_add(searched, Ordering::Relaxed);
    }

    /// The last line of a file that was on an earlier page.
    fn lines_to_skip(&self, scope: &Scope, file: &FileEntry) -> u64 {
        let same = |c: &&Cursor| *scope.index.root.id.0 == *c.root && *file.path == *c.path;
        self.after.as_ref().filter(same).map_or(0, |c| c.line)
    }

    /// Searches one file. Returns false if it was skipped or does not exist.
    fn search_file(
        &self,
        searcher: &mut Searcher,
        matcher: &RegexMatcher,
        (scope, file): (&Scope, &FileEntry),
        sink: &mut impl Sink<Error = std::io::Error>,
    ) -> bool {
        let Scope { opener, skips, view, index, .. } = scope;
        if skips.contains_if_unchanged(file.id, || opener.facts(&file.path)) {
            return false;
        }
        let is_read = match opener.open_file(&file.path) {
            Ok(_) if view.is_other_name_of_hidden(&index.root, &file.path) => return false,
            Ok((open, size)) => {
                let reader = BoundedReader { file: &open, remaining: size.max(1), job: self };
                searcher.search_reader(matcher, reader, sink).is_ok()
            }
            Err(e)
                if e.is_not_found()
                    || e.is_outside()
                    || matches!(e, WorkspaceError::NotAFile { .. }) =>
            {
                return false;
            }
            Err(_) => false,
        };
        if !is_read && self.should_continue() {
            let mut results = lock(&self.results);
            if results.unreadable.len() < MAX_UNREADABLE {
                results.unreadable.push(file.path.to_string());
            }
        }
        true
    }

    fn answer(self, scopes: &[Scope], files: &[Target<'_>]) -> GrepAnswer {
        let mut results =
            self.results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut in_files = std::mem::take(&mut results.files);
        in_files.sort_by_key(|(at, _)| *at);
        let mut answer = GrepAnswer {
            total: self.lines.into_inner(),
            files_searched: self.searched.into_inner(),
            unreadable: results.sorted_unreadable(),
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
                let before = context_of(&hits.lines, n, number, context, true);
                let after = context_of(&hits.lines, n, number, context, false);
                // With context, its text may also be the context of other lines.
                let line = if context == 0 {
                    std::mem::take(&mut hits.lines[n])
                } else {
                    hits.lines[n].clone()
                };
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
    fn cursors_are_parsed() {
        let cursor = Cursor::parse("root_1:12:a:b/c.rs").unwrap();
        assert_eq!(cursor, Cursor { root: "root_1".into(), line: 12, path: "a:b/c.rs".into() });
        assert!(Cursor::parse("x").is_err() && Cursor::parse("a:b:c").is_err());
    }
}
