//! Emits lines in order during the search, although files are searched in parallel and finish in
//! any order.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::id::RootId;
use cairn_protocol::lines::FileLines;

use super::stream::Lines;
use cairn_index_base::{CancelFlag, lock};

/// Receives the next lines, grouped by file, and true for the last ones. Returns false once the
/// consumer is gone.
pub type OnLines<'a> = &'a (dyn Fn(Vec<FileLines>, bool) -> bool + Sync);

/// Maximum lines of the first part, which is small so that it is emitted early.
const FIRST_PART: usize = 50;
/// Maximum lines of later parts.
const LINES_PER_PART: usize = 10_000;
/// Maximum bytes of text in a part, unless a single line has more.
const MAX_PART_BYTES: usize = 256 * 1024;
/// Delay after which an incomplete part is emitted.
const MAX_DELAY: Duration = Duration::from_millis(50);
/// Bytes of out-of-order results above which threads wait for earlier files.
const MAX_AHEAD: usize = 4 * 1024 * 1024;
/// Interval at which a waiting thread checks for cancellation.
const POLL: Duration = Duration::from_millis(20);

/// The ordered output of a search.
pub(super) struct OrderedOutput<'a> {
    emit: OnLines<'a>,
    /// Returns the root and path of a file by its position.
    location: &'a (dyn Fn(usize) -> (&'a RootId, &'a str) + Sync),
    cancel: &'a CancelFlag,
    state: Mutex<State>,
    changed: Condvar,
    output: Mutex<Output>,
}

#[derive(Default)]
struct State {
    /// The next file in order.
    next: usize,
    /// Files that finished out of order.
    finished: BTreeMap<usize, Lines>,
    /// Total bytes of the files that finished out of order.
    bytes_ahead: usize,
    /// True while a thread emits lines.
    is_sending: bool,
    /// True once no more lines are needed.
    is_done: bool,
}

/// The state of the thread that emits lines.
struct Output {
    /// Number of requested lines.
    k: u64,
    /// Number of lines that may still be emitted.
    remaining: u64,
    part: Vec<FileLines>,
    /// Lines and bytes of text that still fit the part.
    space: (usize, usize),
    last: Instant,
    truncated: bool,
    is_disconnected: bool,
}

impl<'a> OrderedOutput<'a> {
    /// Creates an output of up to `k` lines; `location` returns the root and path of a file by its
    /// position.
    pub(super) fn new(
        k: u64,
        emit: OnLines<'a>,
        location: &'a (dyn Fn(usize) -> (&'a RootId, &'a str) + Sync),
        cancel: &'a CancelFlag,
    ) -> Self {
        let output = Output {
            k,
            remaining: k,
            part: Vec::new(),
            space: (FIRST_PART, MAX_PART_BYTES),
            last: Instant::now(),
            truncated: false,
            is_disconnected: false,
        };
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self { emit, location, cancel, state, changed, output: Mutex::new(output) }
    }

    /// Adds the remaining lines of the file `at`, after those passed to [`Self::file_continues`].
    /// This is called exactly once per file, even if it has no lines. Returns false if no more
    /// lines are needed.
    pub(super) fn file_finished(&self, at: usize, lines: Lines) -> bool {
        let mut state = lock(&self.state);
        // The worker of the next file in order never blocks; only workers ahead of it do.
        while at != state.next && state.bytes_ahead > MAX_AHEAD && !self.should_stop(&state) {
            state = self.wait(state);
        }
        state.bytes_ahead += lines.bytes();
        state.finished.insert(at, lines);
        if state.is_sending {
            return !state.is_done;
        }
        state.is_sending = true;
        // Other workers only add their lines while this one emits; it continues until the next file
        // has not finished.
        loop {
            let mut ready = Vec::new();
            while let Some(lines) = {
                let next = state.next;
                state.finished.remove(&next)
            } {
                state.bytes_ahead -= lines.bytes();
                if lines.len() > 0 {
                    ready.push((state.next, lines));
                }
                state.next += 1;
            }
            if ready.is_empty() || state.is_done {
                break;
            }
            self.changed.notify_all();
            drop(state);
            let is_done = self.enqueue(ready);
            state = lock(&self.state);
            state.is_done |= is_done;
        }
        state.is_sending = false;
        self.changed.notify_all();
        !state.is_done
    }

    /// Emits lines of a file that has more than may be buffered, after waiting until it is next in
    /// order. Returns false if no more lines are needed.
    pub(super) fn file_continues(&self, at: usize, lines: Lines) -> bool {
        let mut state = lock(&self.state);
        // Earlier files were started earlier and finish independently of this one.
        while (state.next != at || state.is_sending) && !self.should_stop(&state) {
            state = self.wait(state);
        }
        if self.should_stop(&state) {
            return false;
        }
        state.is_sending = true;
        drop(state);
        let is_done = self.enqueue(vec![(at, lines)]);
        let mut state = lock(&self.state);
        state.is_sending = false;
        state.is_done |= is_done;
        self.changed.notify_all();
        !state.is_done
    }

    /// Emits the last part. Returns the number of emitted lines, and true if the answer was
    /// truncated.
    ///
    /// # Errors
    /// `cancelled` when the consumer is gone.
    pub(super) fn finish(self) -> Result<(u64, bool), Failure> {
        let output = self.output.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let sent = output.k - output.remaining;
        if output.is_disconnected || !(self.emit)(output.part, true) {
            let message =
                "no client reads the lines of this search, which are sent as search.partial only";
            return Err(Failure::new(Reason::Cancelled, message));
        }
        Ok((sent, output.truncated))
    }

    fn should_stop(&self, state: &State) -> bool {
        state.is_done || self.cancel.is_cancelled()
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait_timeout(state, POLL).unwrap_or_else(std::sync::PoisonError::into_inner).0
    }

    /// Adds lines to parts and emits full ones. Returns true if no more lines are needed.
    fn enqueue(&self, ready: Vec<(usize, Lines)>) -> bool {
        let mut output = lock(&self.output);
        for (at, mut lines) in ready {
            let (root, path) = (self.location)(at);
            while lines.len() > 0 {
                if output.remaining == 0 {
                    output.truncated = true;
                    return true;
                }
                let limit =
                    usize::try_from(output.remaining).unwrap_or(usize::MAX).min(output.space.0);
                let front = lines.front(limit, output.space.1);
                output.remaining -= front.len() as u64;
                let file = front.into_file(root, path);
                let space = (
                    output.space.0 - file.lines.len(),
                    output.space.1.saturating_sub(file.text.len()),
                );
                output.space = space;
                output.part.push(file);
                if (space.0 == 0 || space.1 == 0 || lines.len() > 0) && !self.flush(&mut output) {
                    return true;
                }
            }
        }
        let is_late = !output.part.is_empty() && output.last.elapsed() > MAX_DELAY;
        is_late && !self.flush(&mut output)
    }

    fn flush(&self, output: &mut Output) -> bool {
        let part = std::mem::take(&mut output.part);
        output.space = (LINES_PER_PART, MAX_PART_BYTES);
        output.last = Instant::now();
        output.is_disconnected = !(self.emit)(part, false);
        !output.is_disconnected
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn out_of_order_results_are_bounded() {
        const FILES: usize = 40;
        let (cancel, sent, finished_files) =
            (CancelFlag::new(), Mutex::new(Vec::new()), AtomicUsize::new(0));
        let (root, line) = (RootId("r".into()), "x".repeat(1024));
        let location = |_| (&root, "a");
        let emit = |files: Vec<FileLines>, _| {
            lock(&sent).extend(files.into_iter().flat_map(|file| file.lines));
            true
        };
        let output = OrderedOutput::new(u64::MAX, &emit, &location, &cancel);
        // Each file has half a megabyte of lines, whose number is that of the file.
        let lines = |at: usize| Lines::from_lines((0..512).map(|_| (at as u64, line.as_bytes())));
        let limit = MAX_AHEAD / lines(0).bytes() + 1;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for at in 1..FILES {
                    output.file_finished(at, lines(at));
                    finished_files.fetch_add(1, Ordering::SeqCst);
                }
            });
            // The first file is still being read, so the others stop at the limit.
            while finished_files.load(Ordering::SeqCst) < limit {
                std::thread::yield_now();
            }
            (0..10_000).for_each(|_| std::thread::yield_now());
            assert_eq!(finished_files.load(Ordering::SeqCst), limit);
            output.file_finished(0, lines(0));
        });
        assert!(matches!(output.finish(), Ok((all, false)) if all == 512 * FILES as u64));
        let sent = lock(&sent);
        assert!(sent.is_sorted() && sent.len() == 512 * FILES);
    }
}
