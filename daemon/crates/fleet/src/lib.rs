//! Several daemons, one broker: runs that any of them may take, copies of their records, and calls
//! from one to another. The broker is NATS with JetStream.
//!
//! Nothing of this exists until the user's configuration names a broker. What a client of the
//! broker may do is decided by the subjects that the broker lets it publish on; see
//! `docs/fleet.md`.

mod broker;
mod calls;
mod error;
mod link;
mod mirror;
mod names;
mod pool;
mod positions;
mod presence;
mod records;
mod redact;
mod remote;
mod settings;

use std::{
    collections::HashSet,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cairn_api::{Api, Rights};
use cairn_protocol::{
    error::{Failure, Reason},
    fleet::{
        FleetCallParams, FleetRecords, FleetRecordsParams, FleetRepository, FleetRun,
        FleetRunParams, FleetRunRef, FleetRunsParams, FleetStatus, is_name,
    },
    remote::Right,
    session::Page,
};
use cairn_workspace::git;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use broker::Broker;
use mirror::{Counters, Mirror, Policy};
use pool::Worker;
use positions::Positions;
use presence::Presence;

pub use mirror::{IDENTITY_HEADER, SEQ_HEADER};
pub use settings::{LEASE, Login, Mirrored, Settings};

/// Name of the file with the positions of the mirror, in the data folder.
const POSITIONS_FILE: &str = "fleet.db";

/// Longest wait for the end of active runs and calls.
const CLOSE_LIMIT: Duration = Duration::from_secs(30);

/// A daemon's part in a fleet.
pub struct Fleet {
    broker: Broker,
    api: Arc<Api>,
    settings: Arc<Settings>,
    counters: Option<Arc<Counters>>,
    /// Reason why this daemon takes no part although the broker can be reached.
    excluded: Mutex<Option<String>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Fleet {
    /// Starts to take part: connects, and goes on connecting while the broker is away.
    ///
    /// # Errors
    /// The credentials, the certificates or the file of positions cannot be read.
    pub async fn start(
        settings: Settings,
        api: Arc<Api>,
        data_folder: &Path,
        instance: &str,
    ) -> Result<Arc<Self>, String> {
        let settings = Arc::new(settings);
        let broker = Broker::open(&settings).await?;
        let file = data_folder.join(POSITIONS_FILE);
        let failed = |error: cairn_store::StoreError| format!("{}: {error}", file.display());
        let positions = Positions::open(&file).map_err(failed)?;
        let identity = positions.identity().map_err(failed)?;
        let sessions = Arc::new(Mutex::new(positions.pool_sessions().map_err(failed)?));
        let policy = Policy {
            which: settings.mirror,
            folders: settings.mirror_folders.clone(),
            pool_sessions: Arc::clone(&sessions),
        };
        let counters = (settings.mirror != Mirrored::None).then(Arc::<Counters>::default);
        let fleet = Arc::new(Self {
            broker: broker.clone(),
            api: Arc::clone(&api),
            settings: Arc::clone(&settings),
            counters: counters.clone(),
            excluded: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        });
        if let Some(counters) = counters {
            let mirror = Mirror {
                trace: api.engine().trace().clone(),
                broker: broker.clone(),
                daemon: settings.name.clone(),
                identity: identity.clone(),
                policy: policy.clone(),
                blobs: settings.blobs,
                positions: positions.clone(),
                counters,
            };
            fleet.tasks.spawn(mirror.run(fleet.stop.clone()));
        }
        let presence = Presence {
            broker: broker.clone(),
            engine: api.engine().clone(),
            daemon: settings.name.clone(),
            identity: identity.clone(),
            instance: instance.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pools: settings.pools.clone(),
            max_runs: settings.max_runs,
            policy,
        };
        fleet.confirm_presence(presence);
        fleet.serve_calls();
        fleet.take_runs(identity, sessions, positions);
        Ok(fleet)
    }

    /// Publishes the daemon's state. Without its name the daemon takes no part.
    fn confirm_presence(self: &Arc<Self>, presence: Presence) {
        let fleet = Arc::clone(self);
        let presence = Arc::new(presence);
        self.tasks.spawn(async move {
            if let Some(reason) = presence.run(fleet.stop.clone()).await {
                tracing::error!(%reason, "this daemon takes no part in the fleet");
                *fleet.excluded.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
                fleet.stop.cancel();
            }
        });
    }

    fn serve_calls(self: &Arc<Self>) {
        let fleet = Arc::clone(self);
        self.tasks.spawn(async move {
            let (broker, api) = (fleet.broker.clone(), Arc::clone(&fleet.api));
            let name = fleet.settings.name.clone();
            if let Err(failure) = calls::serve(broker, api, name, fleet.stop.clone()).await {
                tracing::error!(%failure, "calls of the fleet are not served");
            }
        });
    }

    fn take_runs(
        self: &Arc<Self>,
        identity: String,
        sessions: Arc<Mutex<HashSet<cairn_protocol::id::SessionId>>>,
        positions: Positions,
    ) {
        let worker = Worker {
            broker: self.broker.clone(),
            api: Arc::clone(&self.api),
            engine: self.api.engine().clone(),
            identity,
            settings: Arc::clone(&self.settings),
            sessions,
            positions,
            permits: Arc::new(Semaphore::new(self.settings.max_runs as usize)),
        };
        for pool in &self.settings.pools {
            self.tasks.spawn(worker.clone().run(pool.clone(), self.stop.clone()));
        }
    }

    /// Leaves the fleet: active runs of pools stop and are offered to others.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        // A broker that is away must not stop the daemon from ending.
        let _late = tokio::time::timeout(CLOSE_LIMIT, self.tasks.wait()).await;
    }

    fn level(rights: Rights) -> Result<Right, Failure> {
        calls::level(rights).ok_or_else(|| {
            Failure::new(Reason::RightMissing, "calls over the fleet need the right 'observe'")
        })
    }

    /// Returns the remote and the commit of a root of this machine, if it is one with a remote.
    async fn repository(&self, root: &str) -> Result<Option<FleetRepository>, Failure> {
        let roots = self.api.engine().roots();
        let Some(root) = roots.into_iter().find(|r| r.path.to_str() == Some(root)) else {
            return Ok(None);
        };
        cairn_harness::off_thread("the remote of a root", move || {
            let head = git::git_head(&root)?;
            Ok(head.remote.map(|remote_url| FleetRepository { remote_url, commit: head.head }))
        })
        .await
    }
}

/// Refuses what cannot be a name, before it becomes a part of a subject.
fn check_daemon(name: &str) -> Result<(), Failure> {
    if is_name(name) {
        return Ok(());
    }
    let text = format!("there is no daemon '{}'", name.escape_default());
    Err(Failure::new(Reason::DaemonNotFound, text))
}

#[async_trait::async_trait]
impl cairn_api::Fleet for Fleet {
    async fn status(&self) -> Result<FleetStatus, Failure> {
        let link = self.broker.link();
        let excluded = self.excluded.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (mut daemons, mut pools, mut error) = (vec![], vec![], excluded.or(link.error));
        let mut truncated = false;
        if link.connected {
            match presence::daemons(&self.broker).await {
                Ok((all, has_more)) => {
                    pools = pool::statuses(&self.broker, &self.settings.pools, &all).await?;
                    (daemons, truncated) = (all, has_more);
                }
                Err(failure) => error = error.or(Some(failure.message)),
            }
        }
        Ok(FleetStatus {
            name: self.settings.name.clone(),
            server: git::without_credentials(&self.settings.server),
            connected: link.connected,
            error,
            mirror: self.counters.as_ref().map(|counters| counters.status()),
            pools,
            daemons,
            truncated,
        })
    }

    async fn run(&self, mut params: FleetRunParams, rights: Rights) -> Result<FleetRun, Failure> {
        if let (None, Some(root)) = (&params.repository, params.root.as_deref()) {
            params.repository = self.repository(root).await?;
        }
        pool::add(&self.broker, params, Self::level(rights)?, &self.settings.name).await
    }

    async fn runs(&self, params: FleetRunsParams) -> Result<Page<FleetRun>, Failure> {
        pool::list(&self.broker, &params).await
    }

    async fn cancel(&self, target: FleetRunRef) -> Result<FleetRun, Failure> {
        pool::cancel(&self.broker, &target).await
    }

    async fn call(
        &self,
        params: FleetCallParams,
        rights: Rights,
        client: &str,
    ) -> Result<serde_json::Value, Failure> {
        check_daemon(&params.daemon)?;
        let level = Self::level(rights)?;
        remote::call(&self.broker, &params.daemon, level, client, &params.method, &params.params)
            .await
    }

    async fn records(&self, params: FleetRecordsParams) -> Result<FleetRecords, Failure> {
        check_daemon(&params.daemon)?;
        records::read(&self.broker, &params).await
    }
}
