//! Memory cache of the newest records of followed sessions.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use cairn_protocol::id::SessionId;
use tokio::sync::{broadcast, watch};

use crate::Line;

/// Maximum records cached for each followed session.
const MAX_CACHED_LINES: usize = 1024;
/// Maximum bytes cached for each followed session.
const MAX_CACHED_BYTES: usize = 2 * 1024 * 1024;
/// Maximum ephemeral lines queued for a slow follower, which loses older ones; durable records
/// contain their content in larger pieces.
const MAX_EPHEMERAL: usize = 512;

/// Sessions that have followers.
#[derive(Default)]
pub struct LiveSessions(Mutex<HashMap<SessionId, Weak<EventRing>>>);

/// One followed session: its head and its newest records.
pub struct EventRing {
    head: watch::Sender<Head>,
    ring: Mutex<Ring>,
    ephemeral: broadcast::Sender<Line>,
}

/// Head of a session's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// Number of the newest committed record.
    At(u64),
    Deleted,
}

#[derive(Default)]
struct Ring {
    /// Number of the front record.
    first: u64,
    lines: VecDeque<Line>,
    bytes: usize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under these locks can panic in the middle of a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LiveSessions {
    /// Joins the followers of `session`. Records published from now on are cached.
    pub fn join(&self, session: &SessionId) -> Arc<EventRing> {
        let mut map = locked(&self.0);
        if let Some(live) = map.get(session).and_then(Weak::upgrade) {
            return live;
        }
        map.retain(|_, weak| weak.strong_count() > 0);
        let ephemeral = broadcast::channel(MAX_EPHEMERAL).0;
        let live = Arc::new(EventRing {
            head: watch::channel(Head::At(0)).0,
            ring: Mutex::default(),
            ephemeral,
        });
        map.insert(session.clone(), Arc::downgrade(&live));
        live
    }

    /// Publishes committed records to the followers.
    pub fn publish(&self, session: &SessionId, first: u64, lines: &[Line]) {
        let live = locked(&self.0).get(session).and_then(Weak::upgrade);
        if let (Some(live), false) = (live, lines.is_empty()) {
            locked(&live.ring).push(first, lines);
            live.raise(first + lines.len() as u64 - 1);
        }
    }

    /// Publishes an ephemeral line to the current followers.
    pub fn pass(&self, session: &SessionId, line: impl FnOnce() -> Option<Line>) {
        let live = locked(&self.0).get(session).and_then(Weak::upgrade);
        if let Some(live) = live
            && live.ephemeral.receiver_count() > 0
            && let Some(line) = line()
        {
            // There may be no receiver any more.
            let _listeners = live.ephemeral.send(line);
        }
    }

    /// Notifies the followers that the session was deleted.
    pub fn deleted(&self, session: &SessionId) {
        if let Some(live) = locked(&self.0).remove(session).and_then(|weak| weak.upgrade()) {
            live.head.send_replace(Head::Deleted);
        }
    }
}

impl EventRing {
    /// Raises the head of the log to `seq`.
    pub fn raise(&self, seq: u64) {
        self.head.send_if_modified(|head| match head {
            Head::At(old) if *old < seq => {
                *head = Head::At(seq);
                true
            }
            _ => false,
        });
    }

    /// Subscribes to changes of the head.
    pub fn watch(&self) -> watch::Receiver<Head> {
        self.head.subscribe()
    }

    /// Subscribes to ephemeral lines from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Line> {
        self.ephemeral.subscribe()
    }

    /// Returns cached records from `seq` on, at most `limit`; `None` when `seq` is no longer (or
    /// not yet) cached.
    pub fn from(&self, seq: u64, limit: usize) -> Option<Vec<Line>> {
        let ring = locked(&self.ring);
        let at = usize::try_from(seq.checked_sub(ring.first)?).ok()?;
        (at < ring.lines.len()).then(|| ring.lines.iter().skip(at).take(limit).cloned().collect())
    }
}

impl Ring {
    fn push(&mut self, first: u64, lines: &[Line]) {
        if self.first + self.lines.len() as u64 != first {
            *self = Ring { first, ..Ring::default() };
        }
        for line in lines {
            self.bytes += line.len();
            self.lines.push_back(line.clone());
        }
        while self.lines.len() > MAX_CACHED_LINES || self.bytes > MAX_CACHED_BYTES {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.len();
            self.first += 1;
        }
    }
}
