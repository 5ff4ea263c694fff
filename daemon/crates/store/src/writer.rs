//! The writer thread: jobs are queued, run in one transaction, and answered after its commit.
//!
//! A caller that has its answer knows that its writes are durable. Commits are grouped by draining
//! the queue: all jobs that are queued when a commit ends share the next one, so a single job pays
//! one commit and a thousand jobs share one.

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

/// Capacity of the queue, above which jobs fail with [`StoreError::Busy`].
const QUEUE: usize = 16_384;
/// Maximum jobs of one transaction.
const BATCH: usize = 4_096;

/// Runs in a savepoint of the transaction, or receives the error of starting it.
type Job = Box<dyn FnOnce(Result<&Savepoint<'_>, StoreError>) -> Completion + Send>;
/// The completion of a job: its success, without which the savepoint is rolled back, and the
/// notification of its caller.
struct Completion {
    ok: bool,
    notify: Box<dyn FnOnce(Result<(), StoreError>) + Send>,
}

/// A handle of the writer thread. The thread stops when the last clone is dropped.
#[derive(Clone)]
pub struct Writer {
    jobs: Sender<Job>,
    stats: Arc<WriterStats>,
}

/// Counters of a writer.
#[derive(Debug, Default)]
pub struct WriterStats {
    /// Number of committed transactions.
    pub commits: AtomicU64,
    /// Number of successful jobs.
    pub jobs: AtomicU64,
}

impl Writer {
    /// Starts the thread on `conn`.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the thread cannot be started.
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

    /// Queues `job`; the receiver has its result after the commit. `after` runs on the writer
    /// thread right after the commit and in commit order, for publishing.
    ///
    /// # Errors
    /// [`StoreError::Busy`] for a full queue. The receiver has the error of the job, whose writes
    /// are rolled back, or of the commit.
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
        let (answer, receiver) = oneshot::channel();
        let boxed: Job = Box::new(move |tx| {
            // A panic only affects its own job; other jobs and the thread continue.
            let run = AssertUnwindSafe(|| tx.and_then(job));
            let outcome = catch_unwind(run).unwrap_or(Err(StoreError::Panicked));
            Completion {
                ok: outcome.is_ok(),
                notify: Box::new(move |commit_result| {
                    let outcome = commit_result.and(outcome);
                    if let Ok(value) = &outcome {
                        let publish = AssertUnwindSafe(|| after(value));
                        if catch_unwind(publish).is_err() {
                            tracing::error!("publishing a committed job panicked");
                        }
                    }
                    // The caller may have stopped waiting; the commit stands.
                    let _no_receiver = answer.send(outcome);
                }),
            }
        });
        match self.jobs.try_send(boxed) {
            Ok(()) => Ok(receiver),
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

    /// Number of queued jobs.
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
        let mut completions = Vec::new();
        let commit_result = commit_batch(&mut conn, first, queue, &mut completions)
            .map_err(|error| error.with_cause(&conn));
        if commit_result.is_ok() {
            stats.commits.fetch_add(1, Ordering::Relaxed);
        }
        for Completion { ok, notify } in completions {
            if ok && commit_result.is_ok() {
                stats.jobs.fetch_add(1, Ordering::Relaxed);
            }
            notify(commit_result.as_ref().copied().map_err(StoreError::duplicate));
        }
    }
}

fn commit_batch(
    conn: &mut Connection,
    first: Job,
    queue: &Receiver<Job>,
    completions: &mut Vec<Completion>,
) -> Result<(), StoreError> {
    let mut tx = match conn.transaction_with_behavior(TransactionBehavior::Immediate) {
        Ok(tx) => tx,
        Err(error) => {
            let error = StoreError::from(error);
            completions.push(first(Err(error.duplicate())));
            return Err(error);
        }
    };
    run_job(&mut tx, first, completions)?;
    while completions.len() < BATCH {
        let Ok(job) = queue.try_recv() else { break };
        run_job(&mut tx, job, completions)?;
    }
    Ok(tx.commit()?)
}

fn run_job(
    tx: &mut Transaction<'_>,
    job: Job,
    completions: &mut Vec<Completion>,
) -> Result<(), StoreError> {
    let mut point = tx.savepoint()?;
    let outcome = job(Ok(&point));
    let ok = outcome.ok;
    completions.push(outcome);
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
            open(&dir.join("t.db"), &[Migration { version: 1, sql: "CREATE TABLE a(x UNIQUE)" }])
                .unwrap();
        Writer::start("test", conn).unwrap()
    }

    #[tokio::test]
    async fn failed_job_rolls_back_only_its_own_writes() {
        let dir = tempfile::tempdir().unwrap();
        let w = writer(dir.path());
        let insert =
            |x: i64| move |tx: &Savepoint<'_>| Ok(tx.execute("INSERT INTO a VALUES (?1)", [x])?);
        let receivers: Vec<_> = [1, 2, 2, 3].map(|x| w.submit(insert(x), |_| ()).unwrap()).into();
        let mut oks = Vec::new();
        for receiver in receivers {
            oks.push(receiver.await.unwrap().is_ok());
        }
        assert_eq!(oks, [true, true, false, true]);
        let count: i64 = w
            .write(|tx| Ok(tx.query_row("SELECT count(*) FROM a", [], |r| r.get(0))?))
            .await
            .unwrap();
        assert_eq!(count, 3);
    }

    #[tokio::test]
    async fn panicking_job_does_not_affect_other_jobs() {
        let dir = tempfile::tempdir().unwrap();
        let w = writer(dir.path());
        let outcome = w
            .write(|tx| -> Result<(), StoreError> {
                tx.execute("INSERT INTO a VALUES (1)", [])?;
                panic!("a defect of the job")
            })
            .await;
        assert!(matches!(outcome, Err(StoreError::Panicked)), "{outcome:?}");
        let receiver =
            w.submit(|tx| Ok(tx.execute("INSERT INTO a VALUES (2)", [])?), |_| panic!("a defect"));
        assert_eq!(receiver.unwrap().await.unwrap().unwrap(), 1);
        let all: Vec<i64> = w
            .write(|tx| {
                Ok(tx
                    .prepare("SELECT x FROM a")?
                    .query_map([], |r| r.get(0))?
                    .collect::<Result<_, _>>()?)
            })
            .await
            .unwrap();
        assert_eq!(all, [2], "the writes of the panicked job are rolled back");
    }

    #[tokio::test]
    async fn after_callbacks_run_in_commit_order() {
        let dir = tempfile::tempdir().unwrap();
        let w = writer(dir.path());
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut receivers = Vec::new();
        for x in 0..100_i64 {
            let order = Arc::clone(&order);
            let job = move |tx: &Savepoint<'_>| {
                Ok(tx.execute("INSERT INTO a VALUES (?1)", [x]).map(|_| x)?)
            };
            receivers.push(w.submit(job, move |x| order.lock().unwrap().push(*x)).unwrap());
        }
        for receiver in receivers {
            receiver.await.unwrap().unwrap();
        }
        assert_eq!(*order.lock().unwrap(), (0..100).collect::<Vec<_>>());
    }

    /// Mounts a file system of one megabyte in memory; false if this user may not.
    fn mount_small_disk(folder: &std::path::Path) -> bool {
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(folder);
        mount.stderr(std::process::Stdio::null()).status().is_ok_and(|status| status.success())
    }

    #[tokio::test]
    async fn full_disk_is_distinguished_from_a_failed_one() {
        let dir = tempfile::tempdir().unwrap();
        let conn = Connection::open(dir.path().join("other.db")).unwrap();
        let failed = StoreError::Unwritable("x".into()).with_cause(&conn);
        assert!(matches!(failed, StoreError::Device(_)), "no call failed for lack of space");
        if !mount_small_disk(dir.path()) {
            return;
        }
        let w = writer(dir.path());
        let error = loop {
            let insert = |tx: &Savepoint<'_>| {
                Ok(tx.execute("INSERT INTO a VALUES (randomblob(50000))", [])?)
            };
            if let Err(error) = w.write(insert).await {
                break error;
            }
        };
        drop(w);
        let unmounted = std::process::Command::new("umount").arg("-l").arg(dir.path()).status();
        assert!(unmounted.is_ok_and(|status| status.success()));
        assert!(matches!(error, StoreError::DiskFull(_)), "{error}");
    }
}
