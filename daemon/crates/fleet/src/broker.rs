//! The connection to the broker: login, reconnecting, and the streams that Cairn needs.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_nats::{
    Client, ConnectOptions, Event,
    jetstream::{
        self, Context,
        consumer::{AckPolicy, PullConsumer, pull},
        kv,
        object_store::{self, ObjectStore},
        stream::{self, RetentionPolicy, StorageType},
    },
};
use cairn_protocol::error::Failure;
use futures_util::StreamExt as _;
use tokio::sync::watch;

use crate::{
    error::{chain, unreachable},
    names,
    settings::{Login, Settings},
};

/// Time limit of a request to the broker.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(5);
/// Longest wait between two attempts to connect.
const MAX_DELAY: Duration = Duration::from_secs(20);
/// Messages in memory for one subscription.
const SUBSCRIPTION_CAPACITY: usize = 1024;
/// Records on their way to the broker.
pub const MAX_IN_FLIGHT: usize = 2048;
/// Time for which the broker recognizes a run that is added again.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// Time for which the state of a run can be read after its last change.
const RUN_AGE: Duration = Duration::from_secs(14 * 24 * 3600);
/// Time for which a pool counts as existing, and pools of which that is known.
const POOL_AGE: Duration = Duration::from_secs(30);
const MAX_POOLS: usize = 256;
/// Time after which a silent daemon is no longer listed.
pub const DAEMON_AGE: Duration = Duration::from_secs(30);

/// State of the connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    pub connected: bool,
    /// Connections that were made so far.
    pub connections: u64,
    /// Reason why there is no connection.
    pub error: Option<String>,
}

/// A connection that restores itself. Clones share it.
#[derive(Clone)]
pub struct Broker {
    pub client: Client,
    pub context: Context,
    link: watch::Receiver<Link>,
    /// Nodes of the cluster that have each message.
    replicas: usize,
    /// Pools whose stream and bucket exist, with the time of that answer.
    pools: Arc<Mutex<HashMap<String, (Instant, kv::Store)>>>,
    /// Shared with the callback of the connection.
    _sender: Arc<Mutex<watch::Sender<Link>>>,
}

impl Broker {
    /// Starts connecting. The broker may be unreachable; the attempts go on until it is reached.
    ///
    /// # Errors
    /// The credentials or certificates cannot be read, or the address is invalid.
    pub async fn open(settings: &Settings) -> Result<Self, String> {
        let (sender, link) = watch::channel(Link::default());
        let sender = Arc::new(Mutex::new(sender));
        let notified = Arc::clone(&sender);
        let mut options = ConnectOptions::new()
            .name(format!("cairn {}", settings.name))
            .retry_on_initial_connect()
            .request_timeout(Some(REQUEST_LIMIT))
            .connection_timeout(REQUEST_LIMIT)
            .subscription_capacity(SUBSCRIPTION_CAPACITY)
            .client_capacity(MAX_IN_FLIGHT)
            .reconnect_delay_callback(delay)
            .event_callback(move |event| {
                let notified = Arc::clone(&notified);
                async move { note(&notified, &event) }
            });
        options = match &settings.login {
            Login::None => options,
            Login::Password { user, password } => {
                options.user_and_password(user.clone(), password.clone())
            }
            Login::Credentials(path) => options
                .credentials_file(path)
                .await
                .map_err(|error| format!("fleet.credentialsFile {}: {error}", path.display()))?,
        };
        if let Some(path) = &settings.ca_file {
            options = options.add_root_certificates(path.clone());
        }
        let client = options
            .connect(settings.server.split(',').map(str::trim).collect::<Vec<_>>())
            .await
            .map_err(|error| format!("fleet.server: {}", chain(&error)))?;
        let context = jetstream::context::ContextBuilder::new()
            .timeout(REQUEST_LIMIT)
            .ack_timeout(REQUEST_LIMIT)
            .max_ack_inflight(MAX_IN_FLIGHT)
            .backpressure_on_inflight(true)
            .build(client.clone());
        let pools = Arc::default();
        Ok(Self { client, context, link, replicas: settings.replicas, pools, _sender: sender })
    }

    /// Returns the present state of the connection.
    pub fn link(&self) -> Link {
        self.link.borrow().clone()
    }

    /// Waits until there is a connection.
    pub async fn connected(&self) {
        let mut link = self.link.clone();
        // The sender lives as long as the connection.
        let _closed = link.wait_for(|link| link.connected).await;
    }

    /// Returns the connections that are made from now on.
    pub fn connections(&self) -> Connections {
        Connections { link: self.link.clone(), known: self.link.borrow().connections }
    }

    /// Opens a stream, which is created if it is missing and this user may do so.
    pub async fn stream(&self, config: stream::Config) -> Result<stream::Stream, Failure> {
        let name = config.name.clone();
        self.context
            .get_or_create_stream(config)
            .await
            .map_err(|error| unreachable(&format!("the stream {name}"), &chain(&error)))
    }

    /// Opens the stream with the records of a daemon.
    pub async fn record_stream(&self, daemon: &str) -> Result<stream::Stream, Failure> {
        self.stream(stream::Config {
            name: names::record_stream(daemon),
            subjects: vec![names::all_records(daemon)],
            retention: RetentionPolicy::Limits,
            storage: StorageType::File,
            num_replicas: self.replicas,
            allow_direct: true,
            ..stream::Config::default()
        })
        .await
    }

    /// Opens the object store with the blobs of a daemon.
    pub async fn blob_store(&self, daemon: &str) -> Result<ObjectStore, Failure> {
        let name = names::blob_bucket(daemon);
        if let Ok(store) = self.context.get_object_store(&name).await {
            return Ok(store);
        }
        let config = object_store::Config {
            bucket: name.clone(),
            storage: StorageType::File,
            num_replicas: self.replicas,
            ..object_store::Config::default()
        };
        self.context
            .create_object_store(config)
            .await
            .map_err(|error| unreachable(&format!("the bucket {name}"), &chain(&error)))
    }

    /// Opens the stream with the runs of a pool.
    pub async fn run_stream(&self, pool: &str) -> Result<stream::Stream, Failure> {
        self.stream(stream::Config {
            name: names::run_stream(pool),
            subjects: vec![names::all_runs(pool)],
            retention: RetentionPolicy::WorkQueue,
            storage: StorageType::File,
            num_replicas: self.replicas,
            duplicate_window: DUPLICATE_WINDOW,
            ..stream::Config::default()
        })
        .await
    }

    /// Opens the consumer that all daemons of a pool share.
    pub async fn workers(&self, pool: &str, lease: Duration) -> Result<PullConsumer, Failure> {
        let stream = self.run_stream(pool).await?;
        let config = pull::Config {
            durable_name: Some("workers".into()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: lease,
            max_deliver: -1,
            max_ack_pending: 10_000,
            max_waiting: 4096,
            ..pull::Config::default()
        };
        stream
            .get_or_create_consumer("workers", config)
            .await
            .map_err(|error| unreachable(&format!("the pool {pool}"), &chain(&error)))
    }

    /// Opens the stream and the bucket of a pool. What was there a moment ago is not asked for again.
    pub async fn open_pool(&self, pool: &str) -> Result<kv::Store, Failure> {
        let pools = || self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, store)) = pools().get(pool)
            && since.elapsed() < POOL_AGE
        {
            return Ok(store.clone());
        }
        let _exists = self.run_stream(pool).await?;
        let store = self.bucket(&names::run_bucket(pool), RUN_AGE).await?;
        let mut pools = pools();
        if pools.len() >= MAX_POOLS {
            pools.clear();
        }
        pools.insert(pool.to_owned(), (Instant::now(), store.clone()));
        Ok(store)
    }

    /// Opens the bucket with the state of the connected daemons.
    pub async fn daemon_bucket(&self) -> Result<kv::Store, Failure> {
        self.bucket(names::DAEMONS, DAEMON_AGE).await
    }

    async fn bucket(&self, name: &str, max_age: Duration) -> Result<kv::Store, Failure> {
        if let Ok(store) = self.context.get_key_value(name).await {
            return Ok(store);
        }
        let config = kv::Config {
            bucket: name.to_owned(),
            history: 1,
            max_age,
            storage: StorageType::File,
            num_replicas: self.replicas,
            ..kv::Config::default()
        };
        self.context
            .create_key_value(config)
            .await
            .map_err(|error| unreachable(&format!("the bucket {name}"), &chain(&error)))
    }
}

/// Returns the entries of a bucket with a revision below `before`: the newest `limit`, oldest first,
/// and the revision of the oldest one if there are older ones.
pub async fn newest_entries(
    store: &kv::Store,
    limit: usize,
    before: u64,
) -> Result<(Vec<kv::Entry>, Option<u64>), String> {
    let all = async {
        if store.status().await.map_err(|error| chain(&error))?.values() == 0 {
            return Ok((Vec::new(), None));
        }
        let mut newest = VecDeque::new();
        let mut is_cut = false;
        // In the order of their revisions.
        let mut entries = store.watch_with_history(">").await.map_err(|error| chain(&error))?;
        while let Some(entry) = entries.next().await {
            let entry = entry.map_err(|error| chain(&error))?;
            let is_last = entry.delta == 0;
            if entry.operation == kv::Operation::Put && entry.revision < before {
                newest.push_back(entry);
            }
            if newest.len() > limit {
                newest.pop_front();
                is_cut = true;
            }
            if is_last {
                break;
            }
        }
        let oldest = newest.front().filter(|_| is_cut).map(|entry: &kv::Entry| entry.revision);
        Ok((newest.into(), oldest))
    };
    // The last entry may expire while the others are read.
    match tokio::time::timeout(REQUEST_LIMIT * 2, all).await {
        Ok(listed) => listed,
        Err(_) => Err("the broker does not send all entries".to_owned()),
    }
}

/// Connections after a moment.
pub struct Connections {
    link: watch::Receiver<Link>,
    known: u64,
}

impl Connections {
    /// Waits for the next connection.
    pub async fn next(&mut self) {
        let known = self.known;
        // The sender lives as long as the connection.
        if let Ok(link) = self.link.wait_for(|link| link.connections > known).await {
            self.known = link.connections;
        }
    }
}

fn note(link: &Mutex<watch::Sender<Link>>, event: &Event) {
    let link = link.lock().unwrap_or_else(PoisonError::into_inner);
    let lost = |error: String| {
        tracing::warn!(%error, "the broker cannot be used");
        link.send_modify(|link| link.error = Some(error));
    };
    match event {
        Event::Connected => {
            tracing::info!("connected to the broker");
            link.send_modify(|link| {
                (link.connected, link.error) = (true, None);
                link.connections += 1;
            });
        }
        Event::Disconnected | Event::Closed => {
            link.send_modify(|link| {
                (link.connected, link.error) = (false, Some("disconnected".into()));
            });
        }
        // A refused subject concerns one call, and its subject is only in this message.
        Event::ServerError(error) => lost(error.to_string()),
        Event::ClientError(error) => lost(error.to_string()),
        Event::SlowConsumer(id) => tracing::warn!(id, "messages of the broker are lost"),
        Event::LameDuckMode | Event::Draining => {}
    }
}

/// Delay before the next attempt to connect: doubled each time, with a random part.
fn delay(attempts: usize) -> Duration {
    let base = Duration::from_millis(100).saturating_mul(1 << attempts.min(8));
    let mut random = [0_u8; 1];
    // Without randomness the delay is the longest.
    let part = getrandom::fill(&mut random).map_or(255, |()| u32::from(random[0]));
    (base / 2 + base / 512 * part).min(MAX_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_and_have_a_limit() {
        assert!(delay(0) <= Duration::from_millis(100));
        assert!(delay(5) >= Duration::from_millis(1600));
        assert!(delay(60) <= MAX_DELAY);
    }
}
