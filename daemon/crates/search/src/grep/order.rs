//! Lines told in order while the search goes on: files are searched side by side and end in any order.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::id::RootId;
use cairn_protocol::lines::FileLines;

use super::told::Lines;
use crate::sync::{CancelFlag, lock};

/// Told the next lines, by file, and whether they are the last; false when nobody takes them any more.
pub type OnLines<'a> = &'a (dyn Fn(Vec<FileLines>, bool) -> bool + Sync);

/// Lines of the first part, so that it comes early, and of the others.
const FIRST: usize = 50;
const PART: usize = 10_000;
/// Bytes of text of a part, if no line alone has more.
const MAX_PART: usize = 256 * 1024;
/// What there is is told when nothing was told for this long.
const LATEST: Duration = Duration::from_millis(50);
/// Bytes found out of turn before threads wait for those that come before them.
const MAX_AHEAD: usize = 4 * 1024 * 1024;
/// How often a thread that waits looks whether the search was cancelled.
const LOOK: Duration = Duration::from_millis(20);

/// The lines of a search on their way to who asked.
pub(super) struct Order<'a> {
    tell: OnLines<'a>,
    /// Where a file's lines belong: its root and path.
    place: &'a (dyn Fn(usize) -> (&'a RootId, &'a str) + Sync),
    cancel: &'a CancelFlag,
    state: Mutex<State>,
    moved: Condvar,
    out: Mutex<Out>,
}

#[derive(Default)]
struct State {
    /// The file whose turn it is.
    next: usize,
    /// Files that ended before their turn.
    ended: BTreeMap<usize, Lines>,
    /// Bytes of those.
    bytes_ahead: usize,
    /// Whether a thread tells what is in turn.
    is_sending: bool,
    /// Nothing more is wanted.
    over: bool,
}

/// Held by the one thread that tells.
struct Out {
    /// Lines wanted, and those of them that are still to come.
    k: u64,
    left: u64,
    part: Vec<FileLines>,
    /// Lines and bytes of text that there is still room for in it.
    room: (usize, usize),
    last: Instant,
    truncated: bool,
    gone: bool,
}

impl<'a> Order<'a> {
    /// Tells up to `k` lines; `place` gives the root and path of a file by its number.
    pub(super) fn new(
        k: u64,
        tell: OnLines<'a>,
        place: &'a (dyn Fn(usize) -> (&'a RootId, &'a str) + Sync),
        cancel: &'a CancelFlag,
    ) -> Self {
        let out = Out {
            k,
            left: k,
            part: Vec::new(),
            room: (FIRST, MAX_PART),
            last: Instant::now(),
            truncated: false,
            gone: false,
        };
        let (state, moved) = (Mutex::default(), Condvar::new());
        Self { tell, place, cancel, state, moved, out: Mutex::new(out) }
    }

    /// Takes the lines of the file `at` that were not given to [`Self::more`]. Each file ends once, also one without lines.
    /// False when nothing more is wanted.
    pub(super) fn ended(&self, at: usize, lines: Lines) -> bool {
        let mut state = lock(&self.state);
        // Whose turn it is never waits: the others wait for him.
        while at != state.next && state.bytes_ahead > MAX_AHEAD && !self.is_over(&state) {
            state = self.wait(state);
        }
        state.bytes_ahead += lines.bytes();
        state.ended.insert(at, lines);
        if state.is_sending {
            return !state.over;
        }
        state.is_sending = true;
        // Who comes meanwhile leaves his lines here and goes on: what is in turn is looked for until there is nothing.
        loop {
            let mut ready = Vec::new();
            while let Some(lines) = {
                let next = state.next;
                state.ended.remove(&next)
            } {
                state.bytes_ahead -= lines.bytes();
                if lines.len() > 0 {
                    ready.push((state.next, lines));
                }
                state.next += 1;
            }
            if ready.is_empty() || state.over {
                break;
            }
            self.moved.notify_all();
            drop(state);
            let over = self.take(ready);
            state = lock(&self.state);
            state.over |= over;
        }
        state.is_sending = false;
        self.moved.notify_all();
        !state.over
    }

    /// Tells lines of a file that has more of them than should be held: waits until it is its turn. False when nothing more
    /// is wanted.
    pub(super) fn more(&self, at: usize, lines: Lines) -> bool {
        let mut state = lock(&self.state);
        // Files before this one were begun before it and end without it.
        while (state.next != at || state.is_sending) && !self.is_over(&state) {
            state = self.wait(state);
        }
        if self.is_over(&state) {
            return false;
        }
        state.is_sending = true;
        drop(state);
        let over = self.take(vec![(at, lines)]);
        let mut state = lock(&self.state);
        state.is_sending = false;
        state.over |= over;
        self.moved.notify_all();
        !state.over
    }

    /// Tells the rest. The lines told, and whether there were more.
    ///
    /// # Errors
    /// `cancelled` when nobody takes them any more.
    pub(super) fn finish(self) -> Result<(u64, bool), Failure> {
        let out = self.out.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let told = out.k - out.left;
        if out.gone || !(self.tell)(out.part, true) {
            let message = "nobody reads the lines of this search: they come by search.partial alone";
            return Err(Failure::new(Reason::Cancelled, message));
        }
        Ok((told, out.truncated))
    }

    fn is_over(&self, state: &State) -> bool {
        state.over || self.cancel.is_cancelled()
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.moved.wait_timeout(state, LOOK).unwrap_or_else(std::sync::PoisonError::into_inner).0
    }

    /// Puts lines into parts and tells those that are full. True when nothing more is wanted.
    fn take(&self, ready: Vec<(usize, Lines)>) -> bool {
        let mut out = lock(&self.out);
        for (at, mut lines) in ready {
            let (root, path) = (self.place)(at);
            while lines.len() > 0 {
                if out.left == 0 {
                    out.truncated = true;
                    return true;
                }
                let most = usize::try_from(out.left).unwrap_or(usize::MAX).min(out.room.0);
                let front = lines.front(most, out.room.1);
                out.left -= front.len() as u64;
                let file = front.into_file(root, path);
                let room = (out.room.0 - file.lines.len(), out.room.1.saturating_sub(file.text.len()));
                out.room = room;
                out.part.push(file);
                if (room.0 == 0 || room.1 == 0 || lines.len() > 0) && !self.send(&mut out) {
                    return true;
                }
            }
        }
        let is_late = !out.part.is_empty() && out.last.elapsed() > LATEST;
        is_late && !self.send(&mut out)
    }

    fn send(&self, out: &mut Out) -> bool {
        let part = std::mem::take(&mut out.part);
        (out.room, out.last) = ((PART, MAX_PART), Instant::now());
        out.gone = !(self.tell)(part, false);
        !out.gone
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn what_is_found_before_its_turn_is_bounded() {
        const FILES: usize = 40;
        let (cancel, told, ended) = (CancelFlag::new(), Mutex::new(Vec::new()), AtomicUsize::new(0));
        let (root, line) = (RootId("r".into()), "x".repeat(1024));
        let place = |_| (&root, "a");
        let tell = |files: Vec<FileLines>, _| {
            lock(&told).extend(files.into_iter().flat_map(|file| file.lines));
            true
        };
        let order = Order::new(u64::MAX, &tell, &place, &cancel);
        // One file has as many lines as make half a megabyte, each with the number of the file.
        let lines = |at: usize| Lines::of((0..512).map(|_| (at as u64, line.as_bytes())));
        let most = MAX_AHEAD / lines(0).bytes() + 1;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for at in 1..FILES {
                    order.ended(at, lines(at));
                    ended.fetch_add(1, Ordering::SeqCst);
                }
            });
            // The first file is still being read: the others come this far, and no further.
            while ended.load(Ordering::SeqCst) < most {
                std::thread::yield_now();
            }
            (0..10_000).for_each(|_| std::thread::yield_now());
            assert_eq!(ended.load(Ordering::SeqCst), most);
            order.ended(0, lines(0));
        });
        assert!(matches!(order.finish(), Ok((all, false)) if all == 512 * FILES as u64));
        let told = lock(&told);
        assert!(told.is_sorted() && told.len() == 512 * FILES);
    }
}
