//! The state of each connected daemon, for all others: in a bucket of which the entries expire.

use std::{sync::Arc, time::Duration};

use async_nats::jetstream::kv::{Operation, Store};
use bytes::Bytes;
use cairn_engine::Engine;
use cairn_protocol::{
    board::{BoardParams, BoardRow},
    error::Failure,
    explore::RunState,
    fleet::{FleetApproval, FleetDaemon, FleetSession},
    time::Timestamp,
};
use tokio_util::sync::CancellationToken;

use crate::{
    broker::{Broker, newest_entries},
    error::{chain, unreachable},
    mirror::Policy,
};

/// Interval in which a daemon confirms that it lives.
const INTERVAL: Duration = Duration::from_secs(8);
/// Interval in which changes are looked for.
const CHANGE_INTERVAL: Duration = Duration::from_secs(1);
/// Sessions that an entry lists.
const MAX_SESSIONS: u32 = 20;
/// Longest text of a session's request or an approval's summary, in characters.
const MAX_TEXT: usize = 200;
/// Daemons that are listed.
const MAX_DAEMONS: usize = 1000;

/// The parts of a daemon that its entry describes.
pub struct Presence {
    pub broker: Broker,
    pub engine: Engine,
    pub daemon: String,
    pub identity: String,
    pub instance: String,
    pub version: String,
    pub pools: Vec<String>,
    pub max_runs: u32,
    pub policy: Policy,
}

impl Presence {
    /// Confirms the daemon's state until it stops. Ends with a reason if another daemon has the
    /// name.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) -> Option<String> {
        let mut revision = None;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return None,
                () = self.broker.connected() => {}
            }
            match self.confirm(&mut revision, &shutdown).await {
                Ok(()) => return None,
                Err(Lost::Failed(failure)) => {
                    tracing::debug!(%failure, "the state of this daemon is not on the broker");
                    tokio::select! {
                        () = shutdown.cancelled() => return None,
                        () = tokio::time::sleep(CHANGE_INTERVAL) => {}
                    }
                }
                Err(Lost::Name(reason)) => return Some(reason),
            }
        }
    }

    async fn confirm(
        &self,
        revision: &mut Option<u64>,
        shutdown: &CancellationToken,
    ) -> Result<(), Lost> {
        let store = self.broker.daemon_bucket().await?;
        let mut last = Vec::new();
        let mut confirmed = tokio::time::Instant::now();
        loop {
            let entry = self.entry().await?;
            let value = serde_json::to_vec(&entry).unwrap_or_default();
            if revision.is_none() || value != last || confirmed.elapsed() >= INTERVAL {
                *revision = Some(self.put(&store, *revision, value.clone().into()).await?);
                last = value;
                confirmed = tokio::time::Instant::now();
            }
            tokio::select! {
                () = shutdown.cancelled() => {
                    // Without this the entry expires.
                    let _unreachable = store.delete(&self.daemon).await;
                    return Ok(());
                }
                () = tokio::time::sleep(CHANGE_INTERVAL) => {}
            }
        }
    }

    /// Writes the entry over the one that this daemon wrote before.
    async fn put(&self, store: &Store, revision: Option<u64>, value: Bytes) -> Result<u64, Lost> {
        let read = store.entry(&self.daemon).await;
        let current = read.map_err(|error| unreachable("the fleet", &chain(&error)))?;
        let current = current.filter(|entry| entry.operation == Operation::Put);
        if let Some(entry) = &current
            && revision != Some(entry.revision)
        {
            let other = serde_json::from_slice::<FleetDaemon>(&entry.value).ok();
            let is_self = other.as_ref().is_some_and(|other| other.identity == self.identity);
            let by_instance = other.as_ref().is_some_and(|other| other.instance == self.instance);
            // An earlier process of this daemon may have left its entry; a later one takes it over.
            if !is_self || (revision.is_some() && !by_instance) {
                return Err(Lost::Name(format!(
                    "another daemon is called '{}': set a different fleet.name on one of them",
                    self.daemon
                )));
            }
        }
        let written = match &current {
            Some(entry) => store.update(&self.daemon, value, entry.revision).await,
            None => {
                let put = store.put(&self.daemon, value).await;
                return put.map_err(|error| unreachable("the fleet", &chain(&error)).into());
            }
        };
        written.map_err(|error| unreachable("the fleet", &chain(&error)).into())
    }

    async fn entry(&self) -> Result<FleetDaemon, Failure> {
        let board = self.engine.board(BoardParams { limit: Some(MAX_SESSIONS) }).await?;
        let running =
            board.rows.iter().filter(|row| row.session.state == RunState::Running).count();
        let waiting: usize = board.rows.iter().map(|row| row.waiting.len()).sum();
        // Other sessions stay on this machine, but for these two counts.
        let seen = |row: &&BoardRow| {
            let root = row.session.root.as_deref();
            self.policy.allows(&row.session.session_id, root)
        };
        let sessions = board.rows.iter().filter(seen).map(session).collect();
        Ok(FleetDaemon {
            name: self.daemon.clone(),
            identity: self.identity.clone(),
            instance: self.instance.clone(),
            version: self.version.clone(),
            seen_at: None,
            pools: self.pools.clone(),
            running: running as u32,
            waiting: waiting as u32,
            max_runs: self.max_runs,
            sessions,
        })
    }
}

fn session(row: &BoardRow) -> FleetSession {
    FleetSession {
        session_id: row.session.session_id.clone(),
        title: cut(&row.session.title),
        state: row.session.state,
        request: row.request.as_deref().map(cut),
        approvals: row
            .waiting
            .iter()
            .map(|approval| FleetApproval {
                approval_id: approval.approval_id.clone(),
                tool: approval.tool.clone(),
                summary: cut(&approval.preview.summary),
            })
            .collect(),
    }
}

/// Shortens a text, without its apparent secrets.
fn cut(text: &str) -> String {
    let text = cairn_harness::redact_secrets(text);
    match text.char_indices().nth(MAX_TEXT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// The reason why a daemon's state is not confirmed.
enum Lost {
    Failed(Failure),
    Name(String),
}

impl From<Failure> for Lost {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Lists the connected daemons by their names, and whether there are more: those that confirmed
/// their state last are listed.
pub async fn daemons(broker: &Broker) -> Result<(Vec<FleetDaemon>, bool), Failure> {
    let store = broker.daemon_bucket().await?;
    let listed = newest_entries(&store, MAX_DAEMONS, u64::MAX).await;
    let (entries, older) = listed.map_err(|error| unreachable("the fleet", &error))?;
    let mut all = Vec::new();
    for entry in entries {
        let Ok(mut daemon) = serde_json::from_slice::<FleetDaemon>(&entry.value) else { continue };
        // The broker's clock: those of the daemons may differ.
        daemon.seen_at =
            i64::try_from(entry.created.unix_timestamp_nanos() / 1_000_000).ok().map(Timestamp);
        all.push(daemon);
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((all, older.is_some()))
}
