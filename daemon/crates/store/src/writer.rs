//! One thread that writes: jobs are queued, run in one transaction, and answered after its commit.
//!
//! Whoever waits for an answer knows that what it wrote is on the disk. Grouping is by drain: what waits when a
//! commit ends goes into the next one, so a single job pays one commit and a thousand share one.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use rusqlite::{Connection, Savepoint, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use crate::StoreError;

/// Jobs that may wait; over it [`StoreError::Busy`].
const QUEUE: usize = 16_384;
/// Jobs of one transaction at most.
const BATCH: usize = 4_096;

/// Runs in the transaction, or learns why there is none; its caller is answered by what it returns.
type Job = Box<dyn FnOnce(Result<&Savepoint<'_>, StoreError>) -> Done + Send>;
/// What a job leaves: whether it succeeded (or the savepoint is rolled back), and how to tell its caller.
struct Done {
    ok: bool,
    tell: Box<dyn FnOnce(Result<(), StoreError>) + Send>,
}

/// Handle of the writer thread. Clones share it; the thread ends when the last one is dropped.
#[derive(Clone)]
pub struct Writer {
    jobs: Sender<Job>,
    stats: Arc<WriterStats>,
}

/// Counters of a writer.
#[derive(Debug, Default)]
pub struct WriterStats {
    /// Transactions committed.
    pub commits: AtomicU64,
    /// Jobs that succeeded.
    pub jobs: AtomicU64,
}

impl Writer {
    /// Starts the thread on `conn`.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(name: &str, conn: Connection) -> Result<Self, StoreError> {
        let (jobs, queue) = bounded(QUEUE);
        let stats = Arc::new(WriterStats::default());
        let counted = Arc::clone(&stats);
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(conn, &queue, &counted))
            .map_err(|source| StoreError::Io { path: name.into(), source })?;
        Ok(Self { jobs, stats })
    }

    /// Queues `job` and returns what it answered, after the commit. `after` runs on the writer thread right after
    /// the commit, in commit order: the place to publish.
    ///
    /// # Errors
    /// The job's own error (its writes are undone), the commit's, or [`StoreError::Busy`] with a full queue.
    pub fn submit<T, F, A>(
        &self,
        job: F,
        after: A,
    ) -> Result<oneshot::Receiver<Result<T, StoreError>>, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Savepoint<'_>) -> Result<T, StoreError> + Send + 'static,
        A: FnOnce(&T) + Send + 'static,
    {
        let (answer, wait) = oneshot::channel();
        let boxed: Job = Box::new(move |tx| {
            // A panic is a defect of one job: the others, and the thread, go on.
            let run = AssertUnwindSafe(|| tx.and_then(job));
            let outcome = catch_unwind(run).unwrap_or(Err(StoreError::Panicked));
            Done {
                ok: outcome.is_ok(),
                tell: Box::new(move |fate| {
                    let outcome = fate.and(outcome);
                    if let Ok(value) = &outcome {
                        let publish = AssertUnwindSafe(|| after(value));
                        if catch_unwind(publish).is_err() {
                            tracing::error!("publishing a committed job panicked");
                        }
                    }
                    // The caller may have gone; what was committed stays.
                    let _gone = answer.send(outcome);
                }),
            }
        });
        match self.jobs.try_send(boxed) {
            Ok(()) => Ok(wait),
            Err(TrySendError::Full(_)) => Err(StoreError::Busy),
            Err(TrySendError::Disconnected(_)) => Err(StoreError::Closed),
        }
    }

    /// Runs `job` and waits for its commit.
    ///
    /// # Errors
    /// As [`Writer::submit`].
    pub async fn write<T, F>(&self, job: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Savepoint<'_>) -> Result<T, StoreError> + Send + 'static,
    {
        self.submit(job, |_| ())?.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Jobs that wait now.
    pub fn queued(&self) -> usize {
        self.jobs.len()
    }

    /// Counters since the start.
    pub fn stats(&self) -> &WriterStats {
        &self.stats
    }
}

fn run(mut conn: Connection, queue: &Receiver<Job>, stats: &WriterStats) {
    conn.set_prepared_statement_cache_capacity(64);
    while let Ok(first) = queue.recv() {
        let mut done = Vec::new();
        let fate = commit_batch(&mut conn, first, queue, &mut done);
        if fate.is_ok() {
            stats.commits.fetch_add(1, Ordering::Relaxed);
        }
        for Done { ok, tell } in done {
            if ok && fate.is_ok() {
                stats.jobs.fetch_add(1, Ordering::Relaxed);
            }
            tell(fate.as_ref().copied().map_err(StoreError::duplicate));
        }
    }
}

fn commit_batch(
    conn: &mut Connection,
    first: Job,
    queue: &Receiver<Job>,
    done: &mut Vec<Done>,
) -> Result<(), StoreError> {
    let mut tx = match conn.transaction_with_behavior(TransactionBehavior::Immediate) {
        Ok(tx) => tx,
        Err(error) => {
            let error = StoreError::from(error);
            done.push(first(Err(error.duplicate())));
            return Err(error);
        }
    };
    run_one(&mut tx, first, done)?;
    while done.len() < BATCH {
        let Ok(job) = queue.try_recv() else { break };
        run_one(&mut tx, job, done)?;
    }
    Ok(tx.commit()?)
}

fn run_one(tx: &mut Transaction<'_>, job: Job, done: &mut Vec<Done>) -> Result<(), StoreError> {
    let mut point = tx.savepoint()?;
    let outcome = job(Ok(&point));
    let ok = outcome.ok;
    done.push(outcome);
    if !ok {
        point.rollback()?;
    }
    Ok(point.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Migration, open};

    fn writer(dir: &std::path::Path) -> Writer {
        let conn =
            open(&dir.join("t.db"), &[Migration { version: 1, sql: "CREATE TABLE a(x UNIQUE)" }]).unwrap();
        Writer::start("test", conn).unwrap()
    }

    #[tokio::test]
    async fn a_failed_job_undoes_only_itself() {
        let dir = tempfile::tempdir().unwrap();
        let w = writer(dir.path());
        let put = |x: i64| move |tx: &Savepoint<'_>| Ok(tx.execute("INSERT INTO a VALUES (?1)", [x])?);
        let waits: Vec<_> = [1, 2, 2, 3].map(|x| w.submit(put(x), |_| ()).unwrap()).into();
        let mut oks = Vec::new();
        for wait in waits {
            oks.push(wait.await.unwrap().is_ok());
        }
        assert_eq!(oks, [true, true, false, true]);
        let count: i64 =
            w.write(|tx| Ok(tx.query_row("SELECT count(*) FROM a", [], |r| r.get(0))?)).await.unwrap();
        assert_eq!(count, 3);
    }

    // S13
    #[tokio::test]
    async fn a_panic_in_a_job_ends_that_job_alone() {
        let dir = tempfile::tempdir().unwrap();
        let w = writer(dir.path());
        let lost = w
            .write(|tx| -> Result<(), StoreError> {
                tx.execute("INSERT INTO a VALUES (1)", [])?;
                panic!("a defect of the job")
            })
            .await;
        assert!(matches!(lost, Err(StoreError::Panicked)), "{lost:?}");
        let wait = w.submit(|tx| Ok(tx.execute("INSERT INTO a VALUES (2)", [])?), |_| panic!("a defect"));
        assert_eq!(wait.unwrap().await.unwrap().unwrap(), 1);
        let all: Vec<i64> = w
            .write(|tx| {
                Ok(tx.prepare("SELECT x FROM a")?.query_map([], |r| r.get(0))?.collect::<Result<_, _>>()?)
            })
            .await
            .unwrap();
        assert_eq!(all, [2], "what the panicked job wrote is undone");
    }

    #[tokio::test]
    async fn after_runs_in_commit_order() {
        let dir = tempfile::tempdir().unwrap();
        let w = writer(dir.path());
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut waits = Vec::new();
        for x in 0..100_i64 {
            let seen = Arc::clone(&seen);
            let job =
                move |tx: &Savepoint<'_>| Ok(tx.execute("INSERT INTO a VALUES (?1)", [x]).map(|_| x)?);
            waits.push(w.submit(job, move |x| seen.lock().unwrap().push(*x)).unwrap());
        }
        for wait in waits {
            wait.await.unwrap().unwrap();
        }
        assert_eq!(*seen.lock().unwrap(), (0..100).collect::<Vec<_>>());
    }
}
