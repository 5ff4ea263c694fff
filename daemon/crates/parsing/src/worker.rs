//! Threads that parse: their stack is large, and one that its parser never leaves is left behind.

use std::{
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};

use crate::allocator;

/// Stack of a thread. The library frees its stacks of states by a recursion of 112 bytes for each state, and a state takes more than
/// 200 bytes of the memory that is limited: half of [`TOTAL`] is more than enough.
const STACK: usize = TOTAL / 2;
/// Bytes that all parsers may have at once; a parse waits until its limit fits.
const TOTAL: usize = 128 * 1024 * 1024;
/// Peak from which a thread ends with its work: its stack may have grown.
const SMALL: usize = 16 * 1024 * 1024;
/// Threads that wait for work.
const MAX_IDLE: usize = 16;
/// Threads that may be left behind, each with its text, before nothing is parsed any more.
const MAX_LOST: usize = 128;
/// How often the caller's wish to stop is looked at.
const POLL: Duration = Duration::from_millis(50);
/// Longest time for one piece of work. It has a limit of its own; this one is for a parser that does not look at it.
const MAX_TIME: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

static IDLE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());
static LOST: AtomicUsize = AtomicUsize::new(0);
static RESERVED: Mutex<usize> = Mutex::new(0);
static RELEASED: Condvar = Condvar::new();

/// A part of [`TOTAL`], until it is dropped.
struct Reservation(usize);

impl Reservation {
    fn new(bytes: usize) -> Self {
        let bytes = bytes.min(TOTAL);
        let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
        while *reserved + bytes > TOTAL {
            reserved = RELEASED.wait(reserved).unwrap_or_else(PoisonError::into_inner);
        }
        *reserved += bytes;
        Self(bytes)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        *RESERVED.lock().unwrap_or_else(PoisonError::into_inner) -= self.0;
        RELEASED.notify_all();
    }
}

fn spawn() -> Option<Sender<Job>> {
    let (jobs, queue) = mpsc::channel::<Job>();
    let run = move || queue.into_iter().for_each(|job| job());
    let thread = std::thread::Builder::new().name("cairn-parse".to_owned()).stack_size(STACK).spawn(run);
    thread.inspect_err(|error| tracing::warn!(%error, "no thread to parse with")).ok()?;
    Some(jobs)
}

/// Runs `work` on a thread where parsers may have `limit` bytes and, between two of their callbacks, half as much again. `None` when
/// they took more, when it took too long, or when `stop` was set.
pub fn bounded<T: Send + 'static>(
    limit: usize,
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    if LOST.load(Ordering::Relaxed) >= MAX_LOST {
        return None;
    }
    let hard = limit + limit / 2;
    let reserved = Reservation::new(hard);
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let worker = idle.or_else(spawn)?;
    let (done, answer) = mpsc::channel();
    let exceeded = done.clone();
    let job = move || {
        allocator::set_limit(hard, Box::new(move || drop(exceeded.send(None))));
        let value = work();
        // The caller may have stopped waiting.
        let _gone = done.send(Some((value, allocator::clear_limit())));
    };
    worker.send(Box::new(job)).ok()?;
    let until = Instant::now() + MAX_TIME;
    let found = loop {
        match answer.recv_timeout(POLL) {
            Ok(found) => break found,
            Err(RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) && Instant::now() < until => {}
            Err(_) => break None,
        }
    };
    drop(reserved);
    let Some((value, peak)) = found else {
        if !stop.load(Ordering::Relaxed) {
            let lost = LOST.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::warn!(lost, "a parser passed its limit of memory or time and was stopped");
        }
        return None;
    };
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    if peak <= SMALL && idle.len() < MAX_IDLE {
        idle.push(worker);
    }
    Some(value)
}
