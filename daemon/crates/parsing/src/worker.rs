//! Parser threads: their stack is large, and a thread whose parser never returns is abandoned.

use std::{
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};

use crate::{allocator, unavailable::Unavailable};

/// Stack size of a thread. The library frees its stacks of states recursively with 112 bytes per
/// state, and a state takes more than 200 bytes of the limited memory, so half of [`TOTAL_BYTES`]
/// suffices.
const STACK: usize = TOTAL_BYTES / 2;
/// Maximum bytes of all parsers together; a parse waits until its limit fits.
const TOTAL_BYTES: usize = 128 * 1024 * 1024;
/// Peak memory above which a thread is not reused, since its stack may have grown.
const MAX_REUSED_PEAK: usize = 16 * 1024 * 1024;
const MAX_IDLE: usize = 16;
/// Number of abandoned threads, each with its text, at which parsing is disabled.
const MAX_ABANDONED: usize = 128;
/// Interval at which the caller's stop flag is checked.
const POLL: Duration = Duration::from_millis(50);
/// Time limit for one job, for parsers that do not check their own limit.
const MAX_TIME: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

static IDLE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());
static ABANDONED: AtomicUsize = AtomicUsize::new(0);
static RESERVED: Mutex<usize> = Mutex::new(0);
static RELEASED: Condvar = Condvar::new();

/// A reservation of a part of [`TOTAL_BYTES`], released on drop.
struct Reservation(usize);

impl Reservation {
    fn new(bytes: usize) -> Self {
        let bytes = bytes.min(TOTAL_BYTES);
        let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
        while *reserved + bytes > TOTAL_BYTES {
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
    let thread =
        std::thread::Builder::new().name("cairn-parse".to_owned()).stack_size(STACK).spawn(run);
    thread.inspect_err(|error| tracing::warn!(%error, "cannot start a parser thread")).ok()?;
    Some(jobs)
}

/// Runs `work` on a thread where parsers may use `limit` bytes and, between two callbacks, half as
/// much in addition. `None` if they used more, if the time limit was reached, or if `stop` was set.
///
/// # Errors
/// [`Unavailable`] if `work` was not started, which says nothing about the text.
pub fn bounded<T: Send + 'static>(
    limit: usize,
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>, Unavailable> {
    if ABANDONED.load(Ordering::Relaxed) >= MAX_ABANDONED {
        return Err(Unavailable::Disabled);
    }
    let hard_limit = limit + limit / 2;
    let reserved = Reservation::new(hard_limit);
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let worker = idle.or_else(spawn).ok_or(Unavailable::NoThread)?;
    let (done, answer) = mpsc::channel();
    let exceeded = done.clone();
    let job = move || {
        allocator::set_limit(hard_limit, Box::new(move || drop(exceeded.send(None))));
        let value = work();
        // The caller may have stopped waiting.
        let _gone = done.send(Some((value, allocator::clear_limit())));
    };
    worker.send(Box::new(job)).map_err(|_| Unavailable::NoThread)?;
    let until = Instant::now() + MAX_TIME;
    let outcome = loop {
        match answer.recv_timeout(POLL) {
            Ok(outcome) => break outcome,
            Err(RecvTimeoutError::Timeout)
                if !stop.load(Ordering::Relaxed) && Instant::now() < until => {}
            Err(_) => break None,
        }
    };
    drop(reserved);
    let Some((value, peak)) = outcome else {
        if !stop.load(Ordering::Relaxed) {
            let abandoned = ABANDONED.fetch_add(1, Ordering::Relaxed) + 1;
            tracing::warn!(
                abandoned,
                "a parser exceeded its limit of memory or time and was stopped"
            );
        }
        return Ok(None);
    };
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    if peak <= MAX_REUSED_PEAK && idle.len() < MAX_IDLE {
        idle.push(worker);
    }
    Ok(Some(value))
}
