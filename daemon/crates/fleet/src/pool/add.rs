//! Adding runs to a pool, and what clients see and change of them.

use std::collections::BTreeMap;

use async_nats::jetstream::kv::Entry;
use cairn_protocol::{
    error::{Failure, Reason},
    fleet::{
        FleetDaemon, FleetRepository, FleetRun, FleetRunParams, FleetRunRef, FleetRunState,
        FleetRunsParams, FleetWork, PoolStatus, is_name,
    },
    remote::Right,
    session::Page,
};
use cairn_workspace::git;
use serde::{Deserialize, Serialize};

use super::state;
use crate::{
    broker::{Broker, newest_entries},
    error::{chain, unreachable},
    names,
};

/// Runs of a list without a limit, and at most.
const DEFAULT_RUNS: u32 = 100;
const MAX_RUNS: u32 = 1000;
/// Largest message of a run, in bytes.
const MAX_BYTES: usize = 256 * 1024;
/// Most entries of the metadata.
const MAX_METADATA: usize = 32;
/// Attempts to change a run that others change too.
const MAX_CHANGES: u32 = 8;

/// A run on its way to a daemon.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Job {
    pub turn_id: String,
    pub work: FleetWork,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<FleetRepository>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Adds a run to a pool.
///
/// # Errors
/// `invalid_params`, `too_large`, `broker_unreachable`.
pub async fn add(
    broker: &Broker,
    params: FleetRunParams,
    level: Right,
    sent_by: &str,
) -> Result<FleetRun, Failure> {
    let (job, run) = prepare(params, sent_by)?;
    let payload = serde_json::to_vec(&job)
        .map_err(|error| Failure::new(Reason::InvalidParams, error.to_string()))?;
    if payload.len() > MAX_BYTES {
        let text = format!("the run has {} bytes; the limit is {MAX_BYTES}", payload.len());
        return Err(Failure::new(Reason::TooLarge, text));
    }
    let pool = &run.pool;
    let store = broker.open_pool(pool).await?;
    // The state comes first: a daemon that takes the run must find it. If this process dies before
    // the message is published, the same id adds it again.
    if state::create(&store, &run).await?.is_none()
        && let Some(stored) = state::read(&store, &run.turn_id).await?
        && (stored.run.state != FleetRunState::Queued || stored.run.sent_by != sent_by)
    {
        return Ok(stored.run);
    }
    let publish = async_nats::jetstream::message::PublishMessage::build()
        .message_id(&run.turn_id)
        .payload(payload.into());
    let failed =
        |error: &dyn std::error::Error| unreachable(&format!("the pool '{pool}'"), &chain(error));
    let sent = broker.context.send_publish(names::runs(pool, level), publish).await;
    sent.map_err(|e| failed(&e))?.await.map_err(|e| failed(&e))?;
    Ok(run)
}

fn prepare(params: FleetRunParams, sent_by: &str) -> Result<(Job, FleetRun), Failure> {
    let invalid = |text: String| Err(Failure::new(Reason::InvalidParams, text));
    check_pool(&params.pool)?;
    if params.metadata.len() > MAX_METADATA {
        return invalid(format!("metadata: at most {MAX_METADATA} entries are possible"));
    }
    let turn_id = params.turn_id.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    if !state::is_turn_id(&turn_id) {
        return invalid("turnId: 1 to 128 letters, digits, '-' and '_' are possible".into());
    }
    if let Some(repository) = &params.repository {
        git::check_url(&repository.remote_url)?;
        if let Some(commit) = &repository.commit {
            git::check_revision(commit)?;
        }
    }
    if params.repository.is_none() && params.root.is_none() {
        return invalid("repository or root: one of them must say where the run works".into());
    }
    let request = match &params.work {
        FleetWork::Turn { input, .. } => input.clone(),
        FleetWork::Explore { goals } if goals.is_empty() => "explore".to_owned(),
        FleetWork::Explore { goals } => format!("explore: {}", goals.join("; ")),
    };
    let first_line = request.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let run = FleetRun {
        request: first_line.chars().take(200).collect(),
        metadata: params.metadata,
        ..queued(&params.pool, &turn_id, sent_by)
    };
    let job = Job {
        turn_id,
        work: params.work,
        repository: params.repository,
        root: params.root,
        title: params.title,
    };
    Ok((job, run))
}

/// A run that no daemon has taken.
pub fn queued(pool: &str, turn_id: &str, sent_by: &str) -> FleetRun {
    FleetRun {
        pool: pool.to_owned(),
        turn_id: turn_id.to_owned(),
        request: String::new(),
        state: FleetRunState::Queued,
        reason: None,
        attempts: vec![],
        refusals: vec![],
        cancelling: false,
        sent_by: sent_by.to_owned(),
        metadata: BTreeMap::new(),
    }
}

fn no_run(turn_id: &str, pool: &str) -> Failure {
    let text = format!("the pool '{pool}' has no run {turn_id}");
    Failure::new(Reason::PoolRunNotFound, text)
}

fn check_pool(pool: &str) -> Result<(), Failure> {
    if is_name(pool) {
        return Ok(());
    }
    let name = pool.escape_default();
    let text = format!("pool: '{name}' is not a name of 1 to 64 letters, digits, '-' and '_'");
    Err(Failure::new(Reason::InvalidParams, text))
}

/// Returns the runs of a pool, those that changed last first, or one of them.
///
/// # Errors
/// `invalid_params`, `pool_run_not_found`, `broker_unreachable`.
pub async fn list(broker: &Broker, params: &FleetRunsParams) -> Result<Page<FleetRun>, Failure> {
    check_pool(&params.pool)?;
    let invalid = |text: &str| Failure::new(Reason::InvalidParams, text);
    let limit = params.limit.unwrap_or(DEFAULT_RUNS);
    if !(1..=MAX_RUNS).contains(&limit) {
        return Err(invalid("limit: 1 to 1000 runs are possible"));
    }
    let before = match &params.cursor {
        Some(cursor) => cursor.parse().map_err(|_| invalid("cursor: not one of an answer"))?,
        None => u64::MAX,
    };
    let store = broker.open_pool(&params.pool).await?;
    if let Some(turn_id) = &params.turn_id {
        let found = state::read(&store, turn_id).await?;
        let found = found.ok_or_else(|| no_run(turn_id, &params.pool))?;
        return Ok(Page { data: vec![found.run], next_cursor: None });
    }
    let listed = newest_entries(&store, limit as usize, before).await;
    let (entries, oldest) = listed.map_err(|error| unreachable("the runs of the pool", &error))?;
    // An entry that is not a run was written by another program.
    let run = |entry: Entry| serde_json::from_slice(&entry.value).ok();
    let next_cursor = oldest.map(|revision| revision.to_string());
    Ok(Page { data: entries.into_iter().rev().filter_map(run).collect(), next_cursor })
}

/// Cancels a run. A waiting one ends at once; an active one when its daemon has stopped it.
///
/// # Errors
/// `pool_run_not_found`, `broker_unreachable`, `overloaded`.
pub async fn cancel(broker: &Broker, target: &FleetRunRef) -> Result<FleetRun, Failure> {
    check_pool(&target.pool)?;
    let store = broker.open_pool(&target.pool).await?;
    for _ in 0..MAX_CHANGES {
        let found = state::read(&store, &target.turn_id).await?;
        let stored = found.ok_or_else(|| no_run(&target.turn_id, &target.pool))?;
        if stored.run.state.is_final() || stored.run.cancelling {
            return Ok(stored.run);
        }
        let mut run = stored.run.clone();
        match run.state {
            FleetRunState::Queued => run.state = FleetRunState::Cancelled,
            _ => run.cancelling = true,
        }
        if let Some(stored) = state::change(&store, &stored, run).await? {
            return Ok(stored.run);
        }
    }
    Err(Failure::new(Reason::Overloaded, "the run changes too often to be cancelled"))
}

/// Counts the runs of pools.
///
/// # Errors
/// `broker_unreachable`.
pub async fn statuses(
    broker: &Broker,
    own: &[String],
    daemons: &[FleetDaemon],
) -> Result<Vec<PoolStatus>, Failure> {
    let mut names: Vec<&String> =
        own.iter().chain(daemons.iter().flat_map(|daemon| &daemon.pools)).collect();
    names.sort_unstable();
    names.dedup();
    let mut all = Vec::new();
    for name in names {
        let takes = |daemon: &&FleetDaemon| daemon.pools.contains(name);
        let daemons = daemons.iter().filter(takes).map(|daemon| daemon.name.clone()).collect();
        let (queued, active) = counts(broker, name).await.unwrap_or_default();
        all.push(PoolStatus { name: name.clone(), queued, active, daemons });
    }
    Ok(all)
}

async fn counts(broker: &Broker, pool: &str) -> Option<(u64, u64)> {
    let stream = broker.context.get_stream(names::run_stream(pool)).await.ok()?;
    let info = stream.consumer_info("workers").await.ok()?;
    Some((info.num_pending, info.num_ack_pending as u64))
}
