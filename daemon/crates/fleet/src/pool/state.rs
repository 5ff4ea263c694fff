//! The state of a run in its bucket, changed only from the revision that was read.

use async_nats::jetstream::kv::{Operation, Store};
use cairn_protocol::{
    error::{Failure, Reason},
    fleet::FleetRun,
};

use crate::error::{chain, unreachable};

/// A run as it was read.
pub struct Stored {
    pub run: FleetRun,
    revision: u64,
}

impl Stored {
    /// Replaces what was read, for a change on the same revision.
    pub fn with(self, run: FleetRun) -> Self {
        Self { run, revision: self.revision }
    }
}

/// True for an id that can be a key.
pub fn is_turn_id(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// Reads a run; `None` if there is none, or if the id cannot be a key.
pub async fn read(store: &Store, turn_id: &str) -> Result<Option<Stored>, Failure> {
    if !is_turn_id(turn_id) {
        return Ok(None);
    }
    let entry = store.entry(turn_id).await;
    let entry = entry.map_err(|error| unreachable("the runs of the pool", &chain(&error)))?;
    let Some(entry) = entry.filter(|entry| entry.operation == Operation::Put) else {
        return Ok(None);
    };
    let run = serde_json::from_slice(&entry.value).map_err(|error| {
        Failure::new(Reason::Internal, format!("the state of the run {turn_id}: {error}"))
    })?;
    Ok(Some(Stored { run, revision: entry.revision }))
}

/// Adds a run; `None` if there is one with its id.
pub async fn create(store: &Store, run: &FleetRun) -> Result<Option<Stored>, Failure> {
    write(store, run.clone(), 0).await
}

/// Replaces a run that was read; `None` if another client changed it first.
pub async fn change(
    store: &Store,
    stored: &Stored,
    run: FleetRun,
) -> Result<Option<Stored>, Failure> {
    write(store, run, stored.revision).await
}

async fn write(store: &Store, run: FleetRun, revision: u64) -> Result<Option<Stored>, Failure> {
    use async_nats::jetstream::kv::UpdateErrorKind as Kind;
    let value = serde_json::to_vec(&run).map_err(|error| {
        Failure::new(Reason::Internal, format!("the state of the run {}: {error}", run.turn_id))
    })?;
    match store.update(&run.turn_id, value.into(), revision).await {
        Ok(revision) => Ok(Some(Stored { run, revision })),
        Err(error) if error.kind() == Kind::WrongLastRevision => Ok(None),
        Err(error) => Err(unreachable("the runs of the pool", &chain(&error))),
    }
}
