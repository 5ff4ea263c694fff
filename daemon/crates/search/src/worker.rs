//! The single writer thread of a root's index: it handles changes first, then pending stages, then
//! it waits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_index_base::lock;
use cairn_protocol::error::{Failure, Reason};
use cairn_protocol::index::IndexState;
use cairn_store::rusqlite::Connection;
use cairn_workspace::{Change, Watch};
use crossbeam_channel::{Receiver, Sender, bounded, never, select};

use crate::root_index::{Counts, RootIndex, TRIM_INTERVAL, freezing};
use crate::{db, enrich, ingest, text};

/// Capacity of the queues of jobs and changes.
const QUEUE: usize = 64;
/// First and longest delay of a retry after a failure.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Number of changed paths above which a rescan is cheaper.
const MAX_PATHS: usize = 2_000;

/// Time that a statement waits for another connection, in milliseconds.
const BUSY_MS: u32 = 5_000;

/// A request to the worker.
#[derive(Debug, Clone, Copy)]
pub enum Job {
    /// Walk the root and bring the index up to date.
    Scan,
    /// Check the stop flag.
    Wake,
}

/// Starts the worker of `index`.
pub fn start(index: Arc<RootIndex>) -> std::io::Result<(Sender<Job>, std::thread::JoinHandle<()>)> {
    let (tx, rx) = bounded(QUEUE);
    let handle = std::thread::Builder::new().name("cairn-index".into()).spawn(move || {
        // The first walk of a root that shares an index is short, and its caller waits for it.
        let is_first_walk = lock(&index.adoption).is_some();
        if !is_first_walk {
            cairn_workspace::background_thread();
        }
        let mut worker = Worker {
            is_first_walk,
            sweep: Duration::from_secs(index.opts.sweep_seconds),
            index,
            jobs: rx,
            changes: never(),
            watch: None,
            conn: None,
            work: Work { scan: true, ..Work::default() },
            retry: RETRY.0,
            pass: 0,
            received: 0,
            counted_changes: None,
            is_enriched: true,
            grams_pending: false,
            is_checked: false,
            batches: 0,
        };
        worker.run();
    })?;
    Ok((tx, handle))
}

#[derive(Default)]
struct Work {
    scan: bool,
    paths: BTreeSet<String>,
}

/// A step of opening an index.
type Step = fn(&RootIndex, &mut Connection) -> Result<(), Failure>;

struct Worker {
    index: Arc<RootIndex>,
    jobs: Receiver<Job>,
    changes: Receiver<Change>,
    watch: Option<Watch>,
    conn: Option<Connection>,
    work: Work,
    sweep: Duration,
    retry: Duration,
    /// The request that the current pass answers.
    pass: u64,
    is_enriched: bool,
    /// The root shares an index and was not walked yet. It is watched, and walked again, after it
    /// is complete.
    is_first_walk: bool,
    /// Files may need trigrams.
    grams_pending: bool,
    /// The database was checked for damage since it was opened.
    is_checked: bool,
    /// Batches of this pass.
    batches: usize,
    /// Number of changes received from the watch.
    received: u64,
    /// The connection's change counter when the totals were last computed.
    counted_changes: Option<u64>,
}

impl Worker {
    fn run(&mut self) {
        let mut last_sweep = Instant::now();
        while !self.index.is_stopping() {
            self.drain_queues();
            if self.work.scan {
                last_sweep = Instant::now();
            }
            let active_passes = Arc::clone(&self.index.opts.active_passes);
            active_passes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let outcome = self.step();
            active_passes.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
            match outcome {
                Ok(true) => {}
                // The job that announced the stop may be consumed already: nothing would end the
                // wait.
                Ok(false) if self.index.is_stopping() || self.is_frozen() => break,
                Ok(false) => {
                    self.retry = RETRY.0;
                    let until_sweep = self.sweep.saturating_sub(last_sweep.elapsed());
                    self.wait(if self.sweep.is_zero() {
                        Duration::from_secs(3600)
                    } else {
                        until_sweep
                    });
                    if !self.sweep.is_zero() && last_sweep.elapsed() >= self.sweep {
                        self.work.scan = true;
                    }
                }
                Err(error) => self.failed(&error),
            }
        }
        if let Some(conn) = &mut self.conn
            && let Err(error) = self.index.postings.flush(conn)
        {
            tracing::debug!(error = error.message, "words in memory were not flushed to a file");
        }
        self.index.changed.notify_all();
    }

    /// True if the index has become a base: nothing is written to it any more.
    fn is_frozen(&self) -> bool {
        let (from, to) = (freezing::REQUESTED, freezing::DONE);
        let order = std::sync::atomic::Ordering::SeqCst;
        self.index.freezing.compare_exchange(from, to, order, order).is_ok()
    }

    /// Checks the database for damage, which queries may meet as well; the next caller starts a
    /// rebuild.
    fn check(&mut self) -> Result<(), Failure> {
        self.is_checked = true;
        let damage = match &mut self.conn {
            Some(conn) => db::find_damage(conn, &self.index.stop),
            // It could not be opened completely.
            None => {
                let mut reader = self.index.readers.get()?;
                db::find_damage(&mut reader, &self.index.stop)
            }
        };
        let Some(damage) = damage else { return Ok(()) };
        self.index.damaged.store(true, std::sync::atomic::Ordering::SeqCst);
        let text = format!("the index is damaged and must be rebuilt: {damage}");
        Err(Failure::new(Reason::StorageFailed, text))
    }

    /// Records the failure for the status and delays the next attempt.
    fn failed(&mut self, error: &Failure) {
        let checked = match error.reason {
            Reason::StorageFailed if !self.is_checked => self.check(),
            _ => Ok(()),
        };
        let error = checked.as_ref().err().unwrap_or(error);
        tracing::warn!(root = %self.index.root.path.display(), error = error.message, "index pass failed");
        self.index.update(|p| {
            p.state = Some(IndexState::Failed);
            p.error = Some(error.clone());
        });
        self.work.scan = true;
        let until = Instant::now() + self.retry;
        self.retry = (self.retry * 2).min(RETRY.1);
        while Instant::now() < until && !self.index.is_stopping() {
            if self.wait(until.saturating_duration_since(Instant::now())) {
                break;
            }
        }
    }

    /// Waits for a job or a change. Returns true for a job.
    fn wait(&mut self, longest: Duration) -> bool {
        select! {
            recv(self.jobs) -> job => match job {
                Ok(job) => { self.accept_job(job); true }
                Err(_) => { self.index.stop.store(true, std::sync::atomic::Ordering::Relaxed); true }
            },
            recv(self.changes) -> change => {
                match change {
                    Ok(change) => self.accept_change(change),
                    Err(_) => self.changes = never(),
                }
                false
            }
            default(longest) => false,
        }
    }

    fn drain_queues(&mut self) {
        while let Ok(job) = self.jobs.try_recv() {
            self.accept_job(job);
        }
        while let Ok(change) = self.changes.try_recv() {
            self.accept_change(change);
        }
        // The trigrams of every reported file are invalidated by now; only a scan must first find
        // out which files changed.
        if !self.work.scan {
            self.index.grams.set_applied(self.received);
        }
    }

    fn accept_job(&mut self, job: Job) {
        match job {
            Job::Scan => self.work.scan = true,
            Job::Wake => {}
        }
    }

    fn accept_change(&mut self, change: Change) {
        self.received += 1;
        match change {
            Change::Paths(paths) => {
                // Immediately, because indexing other files may delay these for long.
                if let Some(conn) = &self.conn
                    && self.index.grams.invalidate_paths(conn, &paths).is_err()
                {
                    self.work.scan = true;
                }
                self.work.paths.extend(paths);
            }
            Change::Rescan => self.work.scan = true,
        }
        let is_ignore_file = |p: &String| {
            matches!(p.rsplit('/').next(), Some(".gitignore" | ".ignore" | ".rgignore"))
        };
        if self.work.paths.len() > MAX_PATHS || self.work.paths.iter().any(is_ignore_file) {
            self.work.scan = true;
        }
    }

    /// Performs the most urgent piece of work. Returns false when there is none.
    fn step(&mut self) -> Result<bool, Failure> {
        if self.conn.is_none() {
            self.open()?;
        }
        let index = Arc::clone(&self.index);
        let Some(conn) = &mut self.conn else { return Ok(false) };
        if self.work.scan {
            self.work = Work::default();
            self.pass = index.progress().requested;
            // A sweep that finds no change must not be reported as indexing.
            if index.progress().state != Some(IndexState::Ready) {
                index.update(|p| p.state = Some(IndexState::Indexing));
            }
            let changes = ingest::scan(&index, conn)?;
            index.update(|p| {
                p.walked_once = true;
                if changes != ingest::Scan::default() {
                    p.state = Some(IndexState::Indexing);
                }
            });
            index.grams.set_applied(self.received);
            tracing::debug!(root = %index.root.path.display(), ?changes, "walked");
            text::text_pass(&index, conn)?;
            return self.finish_text();
        }
        if !self.work.paths.is_empty() {
            let paths = std::mem::take(&mut self.work.paths);
            index.update(|p| {
                p.state = Some(IndexState::Indexing);
                p.pending = paths.len() as u64;
            });
            if let Err(error) = ingest::apply_paths(&index, conn, &paths) {
                self.work.paths = paths;
                return Err(error);
            }
            return self.finish_text();
        }
        if self.is_enriched {
            return Ok(false);
        }
        self.batches += 1;
        index.maybe_trim(self.batches);
        // The slowest stage comes last. Until a file has trigrams, every grep reads it; without
        // vectors, semantic search finds nothing.
        let slow = index.opts.embedder.is_transformer();
        if !slow && enrich::vector_batch(&index, conn)?.is_some() {
            return Ok(true);
        }
        if self.grams_pending {
            self.grams_pending = index.grams.build_segment(
                conn,
                &*index.file_table()?,
                &index.root,
                &index.opts.pool,
            )?;
            return Ok(true);
        }
        let did_work = enrich::symbol_batch(&index, conn)?.is_some()
            || slow && enrich::vector_batch(&index, conn)?.is_some();
        if did_work {
            return Ok(true);
        }
        self.finish_pass()
    }

    fn finish_text(&mut self) -> Result<bool, Failure> {
        if self.index.is_stopping() {
            return Ok(false);
        }
        let pass = self.pass;
        self.is_enriched = false;
        self.grams_pending = true;
        self.index.update(|p| {
            p.state = Some(IndexState::Enriching);
            p.pending = 0;
            p.text_done = p.text_done.max(pass);
        });
        Ok(true)
    }

    fn finish_pass(&mut self) -> Result<bool, Failure> {
        let Some(conn) = &mut self.conn else { return Ok(false) };
        if self.index.is_stopping() {
            return Ok(false);
        }
        // Merging needs as much memory as the largest segment.
        if std::mem::take(&mut self.batches) >= TRIM_INTERVAL {
            (self.index.opts.trim_memory)();
        }
        self.index.postings.merge_segments(conn, 0)?;
        self.index.grams.merge_segments(conn)?;
        let (rows, dead) = self.index.dense.size();
        if dead > 1000
            && dead * 3 > rows
            && let Err(error) = self.index.dense.compact()
        {
            tracing::warn!(root = %self.index.root.path.display(), %error, "compacting the vectors failed");
        }
        // Counting scans entire tables.
        if self.index.is_stopping() {
            return Ok(false);
        }
        let changed = Some(conn.total_changes());
        let counts = (changed != self.counted_changes)
            .then(|| read_counts(&self.index, conn))
            .transpose()?;
        let pass = self.pass;
        self.is_enriched = true;
        self.counted_changes = changed;
        self.index.update(|p| {
            p.counts = counts.unwrap_or_else(|| std::mem::take(&mut p.counts));
            p.state = Some(IndexState::Ready);
            p.error = None;
            p.all_done = p.all_done.max(pass);
        });
        // Release page memory and the log's file while idle, unless a reader uses it.
        let mode = if self.index.base.is_some() { "TRUNCATE" } else { "PASSIVE" };
        let checkpoint = format!(
            "PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint({mode}); PRAGMA busy_timeout = {BUSY_MS}; \
             PRAGMA shrink_memory"
        );
        let _busy = conn.execute_batch(&checkpoint);
        // Not before it is ready: all of the file is read.
        if !self.is_checked {
            self.check()?;
        }
        if std::mem::take(&mut self.is_first_walk) {
            cairn_workspace::background_thread();
            self.start_watch();
            self.work.scan = true;
        }
        Ok(true)
    }

    fn open(&mut self) -> Result<(), Failure> {
        let mut conn = self.index.open_database()?;
        self.counted_changes = None;
        let clock = db::meta(&conn, "clock")?.unwrap_or(0) as u64;
        self.index.update(|p| p.clock = clock);
        // Searches need the first steps. With a million chunks each of the others takes some tenths
        // of a second, which a shutdown does not wait for.
        let steps: [Step; 7] = [
            |index, conn| Ok(index.postings.open(conn)?),
            enrich::open_vectors,
            |index, conn| Ok(index.refresh_base(conn)?),
            count,
            |index, conn| index.postings.repair(conn),
            |index, conn| {
                let shared = index.base.as_ref().map_or(&[][..], |base| &base.grams);
                index.grams.open(conn, shared)
            },
            |index, conn| {
                if enrich::check_vectors(index, conn)? { count(index, conn) } else { Ok(()) }
            },
        ];
        for step in steps {
            if self.index.is_stopping() {
                return Ok(());
            }
            step(&self.index, &mut conn)?;
        }
        self.conn = Some(conn);
        if !self.is_first_walk {
            self.start_watch();
        }
        Ok(())
    }

    fn start_watch(&mut self) {
        if self.index.opts.watch && self.watch.is_none() {
            let (tx, rx) = bounded(QUEUE);
            match Watch::start(&self.index.root, &self.index.opts.walk_options(), tx) {
                Ok(watch) => {
                    self.index.update(|p| p.watch = watch.mode());
                    self.index.grams.follow(watch.ticks());
                    self.watch = Some(watch);
                    self.changes = rx;
                }
                Err(error) => {
                    tracing::warn!(root = %self.index.root.path.display(), %error, "the root cannot be watched")
                }
            }
        }
    }
}

fn count(index: &RootIndex, conn: &mut Connection) -> Result<(), Failure> {
    let counts = read_counts(index, conn)?;
    index.update(|p| p.counts = counts);
    Ok(())
}

fn read_counts(index: &RootIndex, conn: &Connection) -> Result<Counts, Failure> {
    let mut counts = Counts::read(conn, index.base.is_some())?;
    for (key, name) in [("invalid_names", "invalid_name"), ("unreadable", "unreadable")] {
        let count = db::meta(conn, key)?.unwrap_or(0) as u64;
        if count > 0 {
            *counts.skipped.entry(name.into()).or_default() += count;
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use crate::{CancelFlag, Embedder, IndexOptions, Indexes, Until};

    #[test]
    fn index_becomes_current_after_every_change_of_a_watched_root() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("root");
        std::fs::create_dir(&top).unwrap();
        std::fs::write(top.join(".ignore"), "*.log\n").unwrap();
        std::fs::write(top.join("a.rs"), "fn main() {}\n").unwrap();
        let root = cairn_workspace::Roots::new(Vec::new()).declare(&top).unwrap();
        let id = root.id.clone();
        let mut opts = IndexOptions::new(Embedder::builtin().unwrap()).unwrap();
        opts.sweep_seconds = 0;
        let indexes = Indexes::open(dir.path().join("index"), opts, None);
        indexes.add_root(root).unwrap();
        indexes.build_and_wait(&id, Until::Everything, &CancelFlag::new()).unwrap();
        let index = indexes.index(&id).unwrap();
        let wait_until_current = || {
            let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
            while !index.grams.is_current() {
                assert!(std::time::Instant::now() < until, "the trigrams do not become current");
                std::thread::yield_now();
            }
        };
        wait_until_current();
        // Events of indexed files, events of ignored files, and one that causes a walk.
        for name in ["a.rs", "b.rs", "c.log", ".ignore", "d.log"] {
            std::fs::write(top.join(name), "# fn other() {}\n").unwrap();
            wait_until_current();
        }
        indexes.close();
        assert!(!index.grams.is_current(), "the watch has ended");
    }
}
