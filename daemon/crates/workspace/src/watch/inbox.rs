//! Events from the notifier's thread: a bounded set of paths and a few flags.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use notify::{
    Event, EventKind,
    event::{AccessKind, AccessMode, ModifyKind, RenameMode},
};

use super::MAX_PENDING;

/// Events that were not processed yet.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Paths that were created or changed.
    pub(super) changed: HashSet<PathBuf>,
    /// Paths that were deleted or moved away (and may exist again).
    pub(super) removed: HashSet<PathBuf>,
    /// True if events were lost: only the fact that something changed is known.
    pub(super) lost: bool,
    /// The tick of the newest event in this batch or taken before.
    pub(super) tick: u64,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty() && !self.lost
    }
}

pub(super) struct Inbox {
    git: PathBuf,
    batch: Mutex<Batch>,
    wake: Condvar,
    stopped: AtomicBool,
    polling: AtomicBool,
    seen: AtomicU64,
    sent_tick: AtomicU64,
    sent: AtomicU64,
    is_remote: bool,
}

impl Inbox {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            git: root.join(".git"),
            batch: Mutex::default(),
            wake: Condvar::new(),
            stopped: AtomicBool::new(false),
            polling: AtomicBool::new(false),
            seen: AtomicU64::new(0),
            sent_tick: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            is_remote: is_remote(root),
        }
    }

    /// Stores an event. Runs on the notifier's thread: it must be quick and never block.
    pub(super) fn put(&self, event: notify::Result<Event>) {
        let event = match event {
            Ok(event) if event.need_rescan() => return self.lose(),
            Ok(event) => event,
            Err(e) => {
                if matches!(e.kind, notify::ErrorKind::MaxFilesWatch) {
                    self.set_polling();
                }
                return self.lose();
            }
        };
        let is_removal = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
            // Both halves of a rename are reported separately as well.
            EventKind::Access(_) | EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => return,
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => true,
            _ => false,
        };
        let mut paths = event.paths.into_iter().filter(|p| self.is_relevant(p)).peekable();
        if paths.peek().is_none() {
            return;
        }
        let mut batch = self.lock();
        let set = if is_removal { &mut batch.removed } else { &mut batch.changed };
        set.extend(paths);
        if batch.changed.len() + batch.removed.len() > MAX_PENDING {
            *batch = Batch { lost: true, ..Batch::default() };
        }
        self.tick();
        drop(batch);
        self.wake.notify_one();
    }

    /// Returns true if the path is relevant: of git's own folder only the branch and the exclude
    /// file are.
    fn is_relevant(&self, path: &Path) -> bool {
        match path.strip_prefix(&self.git) {
            Ok(inner) => inner.as_os_str().is_empty() || is_git_signal(inner),
            Err(_) => true,
        }
    }

    pub(super) fn lose(&self) {
        let mut batch = self.lock();
        batch.lost = true;
        self.tick();
        drop(batch);
        self.wake.notify_one();
    }

    /// Returns the received events, after waiting for one until `deadline` at most; `None` when the
    /// watch is stopping.
    pub(super) fn take(&self, deadline: Instant) -> Option<Batch> {
        let mut batch = self.lock();
        while batch.is_empty() && !self.is_stopped() {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining == Duration::ZERO {
                break;
            }
            batch = self.wake.wait_timeout(batch, remaining).unwrap_or_else(|e| e.into_inner()).0;
        }
        // Under the same lock as incoming events: this is the tick of the newest of them.
        batch.tick = self.seen();
        (!self.is_stopped()).then(|| std::mem::take(&mut *batch))
    }

    /// Counts an event. Call it with the lock held, once the event is stored.
    fn tick(&self) {
        self.seen.fetch_add(1, Ordering::SeqCst);
    }

    fn seen(&self) -> u64 {
        self.seen.load(Ordering::SeqCst)
    }

    /// Records that everything up to this tick was sent.
    pub(super) fn mark_sent(&self, tick: u64) {
        self.sent_tick.store(tick, Ordering::SeqCst);
    }

    /// Counts a change that was sent, before its events are marked as sent.
    pub(super) fn count_sent(&self) {
        self.sent.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn settled(&self) -> Option<u64> {
        let (seen, sent_tick) = (self.seen(), self.sent_tick.load(Ordering::SeqCst));
        let is_sure =
            seen == sent_tick && !self.is_remote && !self.is_polling() && !self.is_stopped();
        is_sure.then(|| self.sent.load(Ordering::SeqCst))
    }

    pub(super) fn stop(&self) {
        let guard = self.lock();
        self.stopped.store(true, Ordering::Relaxed);
        drop(guard);
        self.wake.notify_all();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(super) fn set_polling(&self) {
        self.polling.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_polling(&self) -> bool {
        self.polling.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Returns true if others can change files without a local event: on file systems of a network or
/// another kernel, by their Linux magic numbers.
#[cfg(target_os = "linux")]
fn is_remote(root: &Path) -> bool {
    const REMOTE: [u32; 11] = [
        0x6969,      // NFS
        0x517B,      // SMB
        0xFF53_4D42, // CIFS
        0xFE53_4D42, // SMB 2
        0x6573_5546, // FUSE
        0x0102_1997, // 9P
        0x5346_414F, // AFS
        0x6B41_4653, // kAFS
        0x00C3_6400, // Ceph
        0x786F_4256, // VirtualBox
        0x7C7C_6673, // Parallels
    ];
    rustix::fs::statfs(root).is_ok_and(|s| REMOTE.contains(&(s.f_type as u32)))
}

/// Not known on other systems.
#[cfg(not(target_os = "linux"))]
fn is_remote(_: &Path) -> bool {
    false
}

/// Returns true if the change of a path inside `.git` means that another branch was checked out or
/// that the exclude rules changed.
pub(super) fn is_git_signal(inner: &Path) -> bool {
    inner == Path::new("HEAD") || inner == Path::new("info/exclude")
}
