//! The mirror: every durable record of the chosen sessions, in order, on the broker.
//!
//! The log is the backlog. A record is published after it is durable, from a task of its own, so
//! that a slow or absent broker delays nothing. Each message names the message that precedes it on
//! its subject; the broker itself refuses gaps, repetitions and a second writer.

mod blobs;
mod publish;

pub use publish::{IDENTITY_HEADER, SEQ_HEADER};

use std::{
    collections::{HashSet, VecDeque},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use cairn_protocol::{error::Failure, fleet::MirrorStatus, id::SessionId};
use cairn_trace::{Changes, Trace};
use tokio_util::sync::CancellationToken;

use crate::{broker::Broker, positions::Positions, settings::Mirrored};

/// Wait before the mirror tries again after an error.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Time in which changes are gathered: a round costs more than the records of a few more commits.
const GATHER: Duration = Duration::from_millis(50);
/// Sessions whose next records are published at once.
const AT_ONCE: usize = 16;
/// Interval in which all sessions are compared with their positions.
const SCAN_INTERVAL: Duration = Duration::from_secs(600);

/// Sessions that are mirrored.
#[derive(Debug, Clone)]
pub struct Policy {
    pub which: Mirrored,
    pub folders: Vec<PathBuf>,
    /// Sessions of this daemon's pool runs.
    pub pool_sessions: Arc<Mutex<HashSet<SessionId>>>,
}

impl Policy {
    /// True if the records of a session with this root leave the machine.
    pub fn allows(&self, session: &SessionId, root: Option<&str>) -> bool {
        let chosen = match self.which {
            Mirrored::None => false,
            Mirrored::All => true,
            Mirrored::Pools => {
                self.pool_sessions.lock().unwrap_or_else(PoisonError::into_inner).contains(session)
            }
        };
        let within =
            |folder: &PathBuf| root.is_some_and(|root| PathBuf::from(root).starts_with(folder));
        chosen && (self.folders.is_empty() || self.folders.iter().any(within))
    }
}

/// Counters of the mirror.
#[derive(Debug, Default)]
pub struct Counters {
    /// Records that the broker confirmed since the start.
    pub confirmed: AtomicU64,
    /// Sessions with records that the broker does not have yet.
    pub waiting: AtomicU64,
    /// Messages that the broker refused because of their order.
    pub refused: AtomicU64,
    /// Reason why the mirror does not proceed.
    error: Mutex<Option<String>>,
}

impl Counters {
    fn fail(&self, error: Option<String>) {
        let mut current = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        if *current != error {
            if let Some(error) = &error {
                tracing::warn!(%error, "the mirror does not proceed");
            }
            *current = error;
        }
    }

    /// Returns the state for people.
    pub fn status(&self) -> MirrorStatus {
        MirrorStatus {
            confirmed: self.confirmed.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            error: self.error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// The reason why the mirror stops for a while, or for good.
#[derive(Debug)]
pub enum Halt {
    /// The broker does not answer, or the log cannot be read.
    Failed(Failure),
    /// Something on the broker contradicts the log: going on could mix two logs.
    Conflict(String),
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The mirror of one daemon.
pub struct Mirror {
    pub trace: Trace,
    pub broker: Broker,
    pub daemon: String,
    pub identity: String,
    pub policy: Policy,
    /// Also copies the large results that records refer to.
    pub blobs: bool,
    pub positions: Positions,
    pub counters: Arc<Counters>,
}

/// Sessions with records to publish, each once, in the order of their changes.
#[derive(Default)]
struct Waiting {
    order: VecDeque<SessionId>,
    members: HashSet<SessionId>,
}

impl Waiting {
    fn push(&mut self, session: SessionId) {
        if self.members.insert(session.clone()) {
            self.order.push_back(session);
        }
    }

    /// Removes the first sessions; none if there are none.
    fn pop(&mut self) -> Vec<SessionId> {
        let count = self.order.len().min(AT_ONCE);
        let sessions: Vec<_> = self.order.drain(..count).collect();
        sessions.iter().for_each(|session| {
            self.members.remove(session);
        });
        sessions
    }
}

impl Mirror {
    /// Publishes records until the daemon stops, or something contradicts the log.
    pub async fn run(self, shutdown: CancellationToken) {
        let changes = self.trace.watch_changes();
        while !shutdown.is_cancelled() {
            let halt = tokio::select! {
                () = shutdown.cancelled() => return,
                halt = self.publish_all(&changes) => halt,
            };
            match halt {
                Halt::Failed(failure) => {
                    self.counters.fail(Some(failure.message));
                    tokio::select! {
                        () = shutdown.cancelled() => return,
                        () = tokio::time::sleep(RETRY_DELAY) => {}
                    }
                }
                Halt::Conflict(reason) => {
                    tracing::error!(%reason, "the mirror stopped");
                    return self.counters.fail(Some(reason));
                }
            }
        }
    }

    /// Publishes the backlog and then every change. Ends only for a reason.
    async fn publish_all(&self, changes: &Changes) -> Halt {
        self.broker.connected().await;
        match self.publish_from_scan(changes).await {
            Ok(never) => match never {},
            Err(halt) => halt,
        }
    }

    async fn publish_from_scan(&self, changes: &Changes) -> Result<std::convert::Infallible, Halt> {
        let mut connections = self.broker.connections();
        let stream = self.broker.record_stream(&self.daemon).await?;
        let mut publisher = publish::Publisher::open(self, stream).await?;
        self.counters.fail(None);
        loop {
            let mut waiting = self.scan().await?;
            let rescan = tokio::time::sleep(SCAN_INTERVAL);
            tokio::pin!(rescan);
            loop {
                while !waiting.order.is_empty() {
                    self.counters.waiting.store(waiting.order.len() as u64, Ordering::Relaxed);
                    let sessions = waiting.pop();
                    changes.take().into_iter().for_each(|session| waiting.push(session));
                    let more = publisher.sessions(sessions).await?;
                    more.into_iter().for_each(|session| waiting.push(session));
                    if waiting.order.is_empty() {
                        publisher.confirm_all().await?;
                    }
                    publisher.take_refused().into_iter().for_each(|s| waiting.push(s));
                }
                self.counters.waiting.store(0, Ordering::Relaxed);
                tokio::select! {
                    () = &mut rescan => break,
                    () = connections.next() => break,
                    stored = publisher.store_later() => stored?,
                    () = changes.changed() => tokio::time::sleep(GATHER).await,
                }
                changes.take().into_iter().for_each(|session| waiting.push(session));
            }
            // Another broker may have answered, or an older copy of this one.
            publisher.compare().await?;
        }
    }

    /// Lists the chosen sessions that are ahead of their positions.
    async fn scan(&self) -> Result<Waiting, Halt> {
        let mut positions = self.positions.all().await?;
        let mut waiting = Waiting::default();
        let mut after = None;
        loop {
            let page = self.trace.heads(after.as_ref()).await.map_err(log_failure)?;
            let Some(last) = page.last() else { break };
            after = Some(last.session.clone());
            for head in page {
                let seen = positions.remove(head.session.as_str()).unwrap_or(0);
                if head.seq != seen && self.policy.allows(&head.session, head.root.as_deref()) {
                    waiting.push(head.session);
                }
            }
        }
        // Sessions that were deleted.
        self.positions.remove(positions.into_keys().collect()).await?;
        Ok(waiting)
    }
}

fn log_failure(error: cairn_trace::TraceError) -> Failure {
    let reason = error.reason();
    Failure::new(reason, format!("the log cannot be read: {error}"))
}
