//! The one thread that writes a root's index: what changed first, then what is still to do, then it waits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_protocol::error::Failure;
use cairn_protocol::index::IndexState;
use cairn_store::rusqlite::Connection;
use cairn_workspace::{Change, Watch};
use crossbeam_channel::{Receiver, Sender, bounded, never, select};

use crate::live::{Counts, EASE, Live};
use crate::{db, enrich, grams, ingest, postings, text};

/// Jobs and changes that may wait.
const QUEUE: usize = 64;
/// First and longest wait after a failure.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Paths beyond which a rescan is cheaper.
const MAX_PATHS: usize = 2_000;

/// What the worker is asked to do.
#[derive(Debug, Clone, Copy)]
pub enum Job {
    /// Walk and bring everything up to date.
    Scan,
    /// Look at the stop flag.
    Wake,
}

/// Starts the worker of `live`.
pub fn start(live: Arc<Live>) -> std::io::Result<(Sender<Job>, std::thread::JoinHandle<()>)> {
    let (tx, rx) = bounded(QUEUE);
    let handle = std::thread::Builder::new().name("cairn-index".into()).spawn(move || {
        cairn_workspace::background_thread();
        let mut worker = Worker {
            sweep: Duration::from_secs(live.opts.sweep_seconds),
            live,
            jobs: rx,
            changes: never(),
            watch: None,
            conn: None,
            todo: Todo { scan: true, ..Todo::default() },
            retry: RETRY.0,
            pass: 0,
            received: 0,
            counted: None,
            enriched: true,
            grams_due: false,
            batches: 0,
        };
        worker.run();
    })?;
    Ok((tx, handle))
}

#[derive(Default)]
struct Todo {
    scan: bool,
    paths: BTreeSet<String>,
}

/// A part of opening an index.
type Step = fn(&Live, &mut Connection) -> Result<(), Failure>;

struct Worker {
    live: Arc<Live>,
    jobs: Receiver<Job>,
    changes: Receiver<Change>,
    watch: Option<Watch>,
    conn: Option<Connection>,
    todo: Todo,
    sweep: Duration,
    retry: Duration,
    /// The request the current pass answers.
    pass: u64,
    enriched: bool,
    /// Files may need trigrams.
    grams_due: bool,
    /// Batches of this pass.
    batches: usize,
    /// Changes that the watch has sent and that were taken.
    received: u64,
    /// Rows that the connection had changed when the sums were last counted.
    counted: Option<u64>,
}

impl Worker {
    fn run(&mut self) {
        let mut swept = Instant::now();
        while !self.live.stopping() {
            self.take_waiting();
            if self.todo.scan {
                swept = Instant::now();
            }
            let at_work = Arc::clone(&self.live.opts.at_work);
            at_work.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let stepped = self.step();
            at_work.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
            match stepped {
                Ok(true) => {}
                // The job that told of it may be taken already: nothing would wake the wait.
                Ok(false) if self.live.stopping() => break,
                Ok(false) => {
                    self.retry = RETRY.0;
                    let left = self.sweep.saturating_sub(swept.elapsed());
                    self.wait(if self.sweep.is_zero() { Duration::from_secs(3600) } else { left });
                    if !self.sweep.is_zero() && swept.elapsed() >= self.sweep {
                        self.todo.scan = true;
                    }
                }
                Err(error) => self.failed(&error),
            }
        }
        if let Some(conn) = &mut self.conn
            && let Err(error) = postings::settle(&self.live, conn)
        {
            tracing::debug!(error = error.message, "words in memory were not put into a file");
        }
        self.live.changed.notify_all();
    }

    /// Keeps the failure for the status and tries again later.
    fn failed(&mut self, error: &Failure) {
        tracing::warn!(root = %self.live.root.path.display(), error = error.message, "index pass failed");
        self.live.update(|p| {
            p.state = Some(IndexState::Failed);
            p.error = Some(error.clone());
        });
        self.todo.scan = true;
        let until = Instant::now() + self.retry;
        self.retry = (self.retry * 2).min(RETRY.1);
        while Instant::now() < until && !self.live.stopping() {
            if self.wait(until.saturating_duration_since(Instant::now())) {
                break;
            }
        }
    }

    /// Waits for a job or a change. True when a job came.
    fn wait(&mut self, longest: Duration) -> bool {
        select! {
            recv(self.jobs) -> job => match job {
                Ok(job) => { self.take_job(job); true }
                Err(_) => { self.live.stop.store(true, std::sync::atomic::Ordering::Relaxed); true }
            },
            recv(self.changes) -> change => {
                match change {
                    Ok(change) => self.take_change(change),
                    Err(_) => self.changes = never(),
                }
                false
            }
            default(longest) => false,
        }
    }

    fn take_waiting(&mut self) {
        while let Ok(job) = self.jobs.try_recv() {
            self.take_job(job);
        }
        while let Ok(change) = self.changes.try_recv() {
            self.take_change(change);
        }
        // Every file that was told of was killed among the trigrams; a scan must first find out which they are.
        if !self.todo.scan {
            self.live.grams.took(self.received);
        }
    }

    fn take_job(&mut self, job: Job) {
        match job {
            Job::Scan => self.todo.scan = true,
            Job::Wake => {}
        }
    }

    fn take_change(&mut self, change: Change) {
        self.received += 1;
        match change {
            Change::Paths(paths) => {
                // At once: the text of others may be worked at for long before these are looked at.
                if let Some(conn) = &self.conn
                    && grams::kill_paths(&self.live, conn, &paths).is_err()
                {
                    self.todo.scan = true;
                }
                self.todo.paths.extend(paths);
            }
            Change::Rescan => self.todo.scan = true,
        }
        let rules = |p: &String| matches!(p.rsplit('/').next(), Some(".gitignore" | ".ignore" | ".rgignore"));
        if self.todo.paths.len() > MAX_PATHS || self.todo.paths.iter().any(rules) {
            self.todo.scan = true;
        }
    }

    /// Does the most urgent thing. False when there is nothing.
    fn step(&mut self) -> Result<bool, Failure> {
        if self.conn.is_none() {
            self.open()?;
        }
        let live = Arc::clone(&self.live);
        let Some(conn) = &mut self.conn else { return Ok(false) };
        if self.todo.scan {
            self.todo = Todo::default();
            self.pass = live.now().asked;
            // A sweep that finds nothing must not look like work.
            if live.now().state != Some(IndexState::Ready) {
                live.update(|p| p.state = Some(IndexState::Indexing));
            }
            let found = ingest::scan(&live, conn)?;
            live.update(|p| {
                p.walked_once = true;
                if found != ingest::Scan::default() {
                    p.state = Some(IndexState::Indexing);
                }
            });
            live.grams.took(self.received);
            tracing::debug!(root = %live.root.path.display(), ?found, "walked");
            text::text_pass(&live, conn)?;
            return self.text_is_done();
        }
        if !self.todo.paths.is_empty() {
            let paths = std::mem::take(&mut self.todo.paths);
            live.update(|p| (p.state, p.pending) = (Some(IndexState::Indexing), paths.len() as u64));
            if let Err(error) = ingest::apply_paths(&live, conn, &paths) {
                self.todo.paths = paths;
                return Err(error);
            }
            return self.text_is_done();
        }
        if self.enriched {
            return Ok(false);
        }
        self.batches += 1;
        live.ease(self.batches);
        // What takes longest comes last. A grep reads every file until it has trigrams; a search finds nothing by meaning
        // without vectors.
        let slow = live.opts.embedder.is_transformer();
        if !slow && enrich::vector_batch(&live, conn)?.is_some() {
            return Ok(true);
        }
        if self.grams_due {
            self.grams_due = grams::batch(&live, conn)?;
            return Ok(true);
        }
        let worked = enrich::symbol_batch(&live, conn)?.is_some()
            || slow && enrich::vector_batch(&live, conn)?.is_some();
        if worked {
            return Ok(true);
        }
        self.finish()
    }

    fn text_is_done(&mut self) -> Result<bool, Failure> {
        if self.live.stopping() {
            return Ok(false);
        }
        let pass = self.pass;
        (self.enriched, self.grams_due) = (false, true);
        self.live.update(|p| {
            (p.state, p.pending) = (Some(IndexState::Enriching), 0);
            p.text_done = p.text_done.max(pass);
        });
        Ok(true)
    }

    fn finish(&mut self) -> Result<bool, Failure> {
        let Some(conn) = &mut self.conn else { return Ok(false) };
        if self.live.stopping() {
            return Ok(false);
        }
        // Merging takes as much memory as the largest segment has.
        if std::mem::take(&mut self.batches) >= EASE {
            (self.live.opts.give_back)();
        }
        postings::tidy(&self.live, conn, 0)?;
        grams::tidy(&self.live, conn)?;
        let (rows, dead) = self.live.dense.size();
        if dead > 1000
            && dead * 3 > rows
            && let Err(error) = self.live.dense.compact()
        {
            tracing::warn!(root = %self.live.root.path.display(), %error, "vectors were not compacted");
        }
        // Counting reads whole tables.
        if self.live.stopping() {
            return Ok(false);
        }
        let changed = Some(conn.total_changes());
        let counts = (changed != self.counted).then(|| read_counts(conn)).transpose()?;
        let pass = self.pass;
        (self.enriched, self.counted) = (true, changed);
        self.live.update(|p| {
            p.counts = counts.unwrap_or_else(|| std::mem::take(&mut p.counts));
            (p.state, p.error) = (Some(IndexState::Ready), None);
            p.all_done = p.all_done.max(pass);
        });
        // Idle: give the pages back.
        let _ = conn.execute_batch("PRAGMA wal_checkpoint(PASSIVE); PRAGMA shrink_memory");
        Ok(true)
    }

    fn open(&mut self) -> Result<(), Failure> {
        let mut conn = db::open(&self.live.folder)?;
        self.counted = None;
        let clock = db::meta(&conn, "clock")?.unwrap_or(0) as u64;
        self.live.update(|p| p.clock = clock);
        // First what searches need. Of a million chunks the others take some tenths of a second each, which who ends need
        // not wait for.
        let steps: [Step; 6] = [
            |live, conn| Ok(postings::open(live, conn)?),
            enrich::open_vectors,
            count,
            postings::heal,
            grams::open,
            |live, conn| if enrich::check_vectors(live, conn)? { count(live, conn) } else { Ok(()) },
        ];
        for step in steps {
            if self.live.stopping() {
                return Ok(());
            }
            step(&self.live, &mut conn)?;
        }
        self.conn = Some(conn);
        if self.live.opts.watch && self.watch.is_none() {
            let (tx, rx) = bounded(QUEUE);
            match Watch::start(&self.live.root, &self.live.opts.walk_options(), tx) {
                Ok(watch) => {
                    self.live.update(|p| p.watch = watch.mode());
                    self.live.grams.follow(watch.ticks());
                    (self.watch, self.changes) = (Some(watch), rx);
                }
                Err(error) => {
                    tracing::warn!(root = %self.live.root.path.display(), %error, "not watched")
                }
            }
        }
        Ok(())
    }
}

fn count(live: &Live, conn: &mut Connection) -> Result<(), Failure> {
    let counts = read_counts(conn)?;
    live.update(|p| p.counts = counts);
    Ok(())
}

fn read_counts(conn: &Connection) -> Result<Counts, Failure> {
    let mut counts = Counts::read(conn)?;
    for (key, name) in [("invalid_names", "invalid_name"), ("unreadable", "unreadable")] {
        let count = db::meta(conn, key)?.unwrap_or(0) as u64;
        if count > 0 {
            *counts.skipped.entry(name.into()).or_default() += count;
        }
    }
    Ok(counts)
}
