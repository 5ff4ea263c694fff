//! Pools: runs that wait on the broker for a daemon that may and can do them.
//!
//! The stream of a pool is a work queue with leases; the bucket beside it has the state of each
//! run, which is changed only from the state that was read. A run ends once: a daemon that
//! loses its lease stops the work before the broker gives the run to another.

mod add;
mod attempt;
mod find;
mod state;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_nats::jetstream::{AckKind, Message, consumer::PullConsumer};
use cairn_api::Api;
use cairn_engine::Engine;
use cairn_protocol::{error::Failure, id::SessionId};
use futures_util::StreamExt as _;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    broker::Broker,
    error::{chain, unreachable},
    positions::Positions,
    settings::Settings,
};

pub use add::{add, cancel, list, statuses};

/// Longest wait for a run before the connection is checked again.
const PULL_LIMIT: Duration = Duration::from_secs(20);
/// Wait before a pool is tried again after an error.
const RETRY_DELAY: Duration = Duration::from_secs(2);
/// Wait before a run that this daemon cannot do now is offered again.
const OFFER_DELAY: Duration = Duration::from_secs(1);

/// A daemon as a worker of its pools.
#[derive(Clone)]
pub struct Worker {
    pub broker: Broker,
    pub api: Arc<Api>,
    pub engine: Engine,
    pub identity: String,
    pub settings: Arc<Settings>,
    /// Sessions of the runs of pools.
    pub sessions: Arc<Mutex<HashSet<SessionId>>>,
    pub positions: Positions,
    pub permits: Arc<Semaphore>,
}

impl Worker {
    /// Takes runs of a pool until the daemon stops; active runs lose their lease then.
    pub async fn run(self, pool: String, shutdown: CancellationToken) {
        let active = TaskTracker::new();
        while !shutdown.is_cancelled() {
            let failure = tokio::select! {
                () = shutdown.cancelled() => break,
                failure = self.take_runs(&pool, &active, &shutdown) => failure,
            };
            if let Err(failure) = failure {
                tracing::debug!(%failure, pool, "no runs are taken");
            }
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = tokio::time::sleep(RETRY_DELAY) => {}
            }
        }
        active.close();
        active.wait().await;
    }

    async fn take_runs(
        &self,
        pool: &str,
        active: &TaskTracker,
        shutdown: &CancellationToken,
    ) -> Result<(), Failure> {
        self.broker.connected().await;
        let consumer = self.broker.workers(pool, self.settings.lease).await?;
        loop {
            // One run is requested for each free place, so that no waiting run is reserved here.
            let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else { return Ok(()) };
            let Some(message) = next_run(&consumer).await? else { continue };
            let (worker, pool) = (self.clone(), pool.to_owned());
            let shutdown = shutdown.clone();
            active.spawn(async move {
                worker.handle(&pool, &message, &shutdown).await;
                drop(permit);
            });
        }
    }

    async fn handle(&self, pool: &str, message: &Message, shutdown: &CancellationToken) {
        let outcome = attempt::attempt(self, pool, message, shutdown).await;
        let ack = match outcome {
            Ok(attempt::Outcome::Finished) => AckKind::Ack,
            Ok(attempt::Outcome::NotNow) => AckKind::Nak(Some(OFFER_DELAY)),
            // Another daemon has it, or will: an answer to the broker could end its lease.
            Ok(attempt::Outcome::Lost) => return,
            Err(failure) => {
                tracing::warn!(%failure, pool, "a run is offered again");
                AckKind::Nak(Some(OFFER_DELAY))
            }
        };
        if let Err(error) = message.double_ack_with(ack).await {
            // The broker offers the run again; its state then says that it has ended.
            tracing::debug!(%error, pool, "the broker did not confirm the end of a run");
        }
    }
}

async fn next_run(consumer: &PullConsumer) -> Result<Option<Message>, Failure> {
    let batch = consumer.batch().max_messages(1).expires(PULL_LIMIT).messages().await;
    let mut batch = batch.map_err(|error| unreachable("the pool", &chain(&error)))?;
    let message = tokio::time::timeout(PULL_LIMIT + RETRY_DELAY, batch.next()).await;
    match message {
        Ok(Some(Ok(message))) => Ok(Some(message)),
        Ok(Some(Err(error))) => Err(unreachable("the pool", &error)),
        Ok(None) | Err(_) => Ok(None),
    }
}
