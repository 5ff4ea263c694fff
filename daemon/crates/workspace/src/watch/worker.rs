//! Turns events into changes: the current state of a path decides, not the kind of the event.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use crossbeam_channel::{Sender, TrySendError};

use super::{
    Change, LATEST, MAX_PENDING, POLL, QUIET, SWEEP,
    inbox::{Batch, Inbox, is_git_signal},
    tree::Tree,
};
use crate::guard::IGNORE_FILES;

/// Pause before a full channel is tried again.
const RETRY: Duration = Duration::from_millis(50);
/// Shortest time between two rescans for lost events, so that the rescans' own reads cannot trigger
/// further ones.
const BETWEEN_LOSSES: Duration = Duration::from_secs(1);

pub(super) struct Worker {
    tree: Tree,
    inbox: Arc<Inbox>,
    tx: Sender<Change>,
    pending: Pending,
    /// Ignore rules changed; they are reloaded once, just before the rescan is sent.
    reload: bool,
    /// Events were lost; the rescan follows once `next_loss` is reached.
    lost: bool,
    /// The root's folder did not exist at the last check; that was reported.
    root_missing: bool,
    next_loss: Instant,
    next_sweep: Instant,
}

/// Changes to be sent.
struct Pending {
    paths: BTreeSet<String>,
    rescan: bool,
    first: Instant,
    last: Instant,
    /// The channel was full at this time.
    refused: Option<Instant>,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.rescan
    }

    fn touch(&mut self, now: Instant) {
        if self.is_empty() {
            self.first = now;
        }
        self.last = now;
    }

    fn add(&mut self, rel: String, now: Instant) {
        self.touch(now);
        if !self.rescan {
            self.paths.insert(rel);
        }
        if self.paths.len() > MAX_PENDING {
            self.rescan(now);
        }
    }

    fn rescan(&mut self, now: Instant) {
        self.touch(now);
        self.rescan = true;
        self.paths.clear();
    }

    /// Returns the time at which to send it.
    fn send_time(&self) -> Instant {
        let send_at = (self.last + QUIET).min(self.first + LATEST);
        self.refused.map_or(send_at, |at| send_at.max(at + RETRY))
    }
}

impl Worker {
    pub(super) fn new(tree: Tree, inbox: Arc<Inbox>, tx: Sender<Change>) -> Self {
        let now = Instant::now();
        let pending =
            Pending { paths: BTreeSet::new(), rescan: false, first: now, last: now, refused: None };
        Self {
            tree,
            inbox,
            tx,
            pending,
            reload: false,
            lost: false,
            root_missing: false,
            next_loss: now,
            next_sweep: now + SWEEP,
        }
    }

    /// Runs until the inbox is stopped or the receiver is dropped.
    pub(super) fn run(mut self) {
        loop {
            let sweep = if self.inbox.is_polling() {
                self.next_sweep.min(Instant::now() + POLL)
            } else {
                self.next_sweep
            };
            self.next_sweep = sweep;
            let mut deadline = sweep;
            if !self.pending.is_empty() {
                deadline = deadline.min(self.pending.send_time());
            }
            if self.lost {
                deadline = deadline.min(self.next_loss);
            }
            let Some(batch) = self.inbox.take(deadline) else { return };
            let tick = batch.tick;
            self.process(batch);
            let now = Instant::now();
            if self.lost && now >= self.next_loss {
                self.recover_lost_events(now);
            }
            if now >= self.next_sweep {
                self.next_sweep = now + SWEEP;
                self.pending.rescan(now);
            }
            if self.pending.is_empty() || now < self.pending.send_time() {
                self.mark_sent(tick);
                continue;
            }
            if std::mem::take(&mut self.reload) {
                self.tree.reload();
                self.pending.rescan(now);
            }
            if !self.send() {
                return;
            }
            self.mark_sent(tick);
        }
    }

    /// Records that all up to this tick was sent, if it was.
    fn mark_sent(&self, tick: u64) {
        if self.pending.is_empty() && !self.lost {
            self.inbox.mark_sent(tick);
        }
    }

    /// Recreates all watches and schedules a rescan. A missing root is reported once, and again
    /// when it is back.
    fn recover_lost_events(&mut self, now: Instant) {
        // Checked first: a root that comes back while its watches are created is checked once more.
        let is_missing = !self.tree.root_exists();
        self.tree.restart();
        self.next_loss = Instant::now() + BETWEEN_LOSSES;
        if !is_missing || !self.root_missing {
            self.pending.rescan(now);
        }
        self.lost = is_missing;
        self.root_missing = is_missing;
    }

    /// Sends the pending changes; returns false when the receiver is dropped.
    fn send(&mut self) -> bool {
        let change = match self.pending.rescan {
            true => Change::Rescan,
            false => Change::Paths(std::mem::take(&mut self.pending.paths)),
        };
        match self.tx.try_send(change) {
            Ok(()) => {
                self.inbox.count_sent();
                self.pending.rescan = false;
                self.pending.refused = None;
                true
            }
            Err(TrySendError::Full(change)) => {
                if let Change::Paths(paths) = change {
                    self.pending.paths = paths;
                }
                self.pending.refused = Some(Instant::now());
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    fn process(&mut self, batch: Batch) {
        self.lost |= batch.lost;
        let now = Instant::now();
        for path in &batch.removed {
            let Some(rel) = self.tree.rel(path) else { continue };
            self.tree.forget(&rel);
            self.note_rule(&rel, now);
            // A path that exists again may contain less than before: no event names the missing
            // entries.
            if !batch.changed.contains(path) || is_dir(path) {
                self.check_removed(path, rel, now);
            }
        }
        for path in &batch.changed {
            if self.inbox.is_stopped() {
                return;
            }
            let Some(rel) = self.tree.rel(path) else { continue };
            self.note_rule(&rel, now);
            self.look_at(path, rel, now);
        }
    }

    /// Schedules a reload and a rescan if a change of `rel` changes the set of walked files;
    /// returns true if it does.
    fn note_rule(&mut self, rel: &str, now: Instant) -> bool {
        let is_rule = if rel == ".git" { self.tree.repository_changed() } else { is_rule(rel) };
        if is_rule {
            self.reload = true;
            self.pending.rescan(now);
        }
        is_rule
    }

    fn check_removed(&mut self, path: &Path, rel: String, now: Instant) {
        match std::fs::symlink_metadata(path) {
            Ok(meta) if meta.is_dir() => {
                if self.tree.is_walked(&rel, true) {
                    self.pending.rescan(now);
                    self.look_at(path, rel, now);
                }
            }
            Ok(_) => self.look_at(path, rel, now),
            // The watch of the root itself: its folder was removed.
            Err(_) if rel.is_empty() => self.lost = true,
            Err(_) => self.report_removed(rel, now),
        }
    }

    fn look_at(&mut self, path: &Path, rel: String, now: Instant) {
        let meta = match std::fs::symlink_metadata(path) {
            Ok(meta) => meta,
            Err(_) => return self.report_removed(rel, now),
        };
        if rel == ".git" {
            self.tree.watch_git();
            // It may have become a repository just before it was watched.
            let _noted = self.note_rule(&rel, now);
            return;
        }
        if !meta.is_dir() {
            if self.tree.is_walked(&rel, false) {
                self.pending.add(rel, now);
            }
            return;
        }
        if self.tree.is_watched(&rel) || !self.tree.is_walked(&rel, true) {
            return;
        }
        let mut files = Vec::new();
        self.tree.watch_below(&rel, &mut |file| {
            // Above the limit this becomes a rescan and the names are not needed.
            if files.len() <= MAX_PENDING {
                files.push(file);
            }
        });
        for file in files {
            if !self.note_rule(&file, now) && self.tree.is_walked(&file, false) {
                self.pending.add(file, now);
            }
        }
    }

    /// A removed path may have been a file or a folder; it is reported if either kind would be
    /// walked.
    fn report_removed(&mut self, rel: String, now: Instant) {
        if !rel.is_empty() && (self.tree.is_walked(&rel, false) || self.tree.is_walked(&rel, true))
        {
            self.pending.add(rel, now);
        }
    }
}

fn is_dir(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|m| m.is_dir())
}

/// Returns true if a change of this path changes the set of walked files.
fn is_rule(rel: &str) -> bool {
    let name = rel.rsplit('/').next().unwrap_or(rel);
    match rel.strip_prefix(".git/") {
        Some(inner) => is_git_signal(Path::new(inner)),
        None => IGNORE_FILES.contains(&name),
    }
}
