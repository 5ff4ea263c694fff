//! The MCP servers of the configuration: started, monitored, restarted, with their tools in the
//! registry. A server's descriptions are untrusted text (`cairn_tools`), and the gate decides about
//! every call.

mod accounts;
mod elicitation;
mod http;
mod link;
mod login;
mod logins;
mod process;
mod session_servers;

pub use logins::Logins;
pub use process::{expand_variables, is_local};
pub use session_servers::SessionServers;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cairn_config::McpServer;
use cairn_engine::Engine;
use cairn_harness::Registry;
use cairn_protocol::id::McpLoginId;
use cairn_tools::{RemoteTools, Server};
use tokio::{sync::Notify, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use link::{End, Link, State};
use login::PendingLogin;
use process::Variables;

/// Delay before a restart: first and longest.
const RESTART_DELAY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// A server that ran for this long did not fail at its start.
const STABLE_AFTER: Duration = Duration::from_secs(60);
/// Number of consecutive failures after which a server is given up.
const MAX_FAILURES: u32 = 6;
/// Maximum number of servers.
const MAX_SERVERS: usize = 32;
/// Time limit for stopping all servers.
const DRAIN: Duration = Duration::from_secs(5);

/// Synchronises the running servers with the configuration.
pub struct Servers {
    running: Mutex<BTreeMap<String, Running>>,
    /// The servers of the configuration, also those that do not run.
    configured: Mutex<BTreeMap<String, McpServer>>,
    logins: Arc<Logins>,
    pending: Mutex<HashMap<McpLoginId, PendingLogin>>,
}

struct Running {
    config: McpServer,
    server: Arc<Supervised>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Servers {
    /// Creates a set without servers, whose logins are stored in `logins`.
    pub fn new(logins: Arc<Logins>) -> Self {
        let (running, configured, pending) = Default::default();
        Self { running, configured, logins, pending }
    }

    /// Applies a configuration: changed servers are restarted, unchanged ones continue.
    pub fn configure(&self, engine: &Engine, config_by_name: &BTreeMap<String, McpServer>) {
        self.configured.lock().unwrap_or_else(PoisonError::into_inner).clone_from(config_by_name);
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let is_obsolete = |name: &str, r: &Running| {
            r.task.is_finished()
                || config_by_name.get(name).is_none_or(|w| *w != r.config || !w.enabled)
        };
        let mut before = Vec::new();
        running.retain(|name, server| {
            if !is_obsolete(name, server) {
                return true;
            }
            server.stop.cancel();
            before.push(std::mem::replace(&mut server.task, tokio::spawn(async {})));
            false
        });
        let before = Arc::new(tokio::sync::Mutex::new(before));
        for (name, config) in config_by_name.iter().filter(|(_, c)| c.enabled) {
            if running.contains_key(name) {
                continue;
            }
            if running.len() >= MAX_SERVERS {
                tracing::warn!("mcp server {name} is ignored: the limit is {MAX_SERVERS} servers");
                continue;
            }
            let stop = CancellationToken::new();
            let engine = engine.clone();
            let stop_signal = stop.clone();
            let before = Arc::clone(&before);
            let logins = Some(Arc::clone(&self.logins));
            let server =
                Arc::new(Supervised::new(name, config.clone(), Variables::Expanded, logins));
            let own = Arc::clone(&server);
            let task = tokio::spawn(async move {
                // Tools of stopped servers are removed first, because new ones may have the same
                // names.
                for task in before.lock().await.drain(..) {
                    let _stopped = tokio::time::timeout(DRAIN, task).await;
                }
                own.run(engine.registry(), stop_signal).await;
            });
            running.insert(name.clone(), Running { config: config.clone(), server, stop, task });
        }
    }

    /// Stops all servers and waits briefly for their exit.
    pub async fn close(&self) {
        let all = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        all.values().for_each(|r| r.stop.cancel());
        let all_stopped = async {
            for (_, server) in all {
                let _stopped = server.task.await;
            }
        };
        if tokio::time::timeout(DRAIN, all_stopped).await.is_err() {
            tracing::warn!("some mcp servers did not exit in time");
        }
    }
}

/// Describes a server for the calls of its tools.
fn describe_server(name: &str, config: &McpServer) -> Server {
    let local = config.url.as_deref().is_none_or(process::is_local);
    Server {
        name: name.to_owned(),
        trusted: config.trust_annotations,
        network: !local,
        timeout: Duration::from_secs(config.timeout_seconds.clamp(1, 3600)),
    }
}

/// A server with its connection and its tools.
struct Supervised {
    name: String,
    config: McpServer,
    link: Arc<Link>,
    tools: RemoteTools,
    /// Notified when a login was stored or deleted.
    login_changed: Notify,
}

impl Supervised {
    fn new(
        name: &str,
        config: McpServer,
        variables: Variables,
        logins: Option<Arc<Logins>>,
    ) -> Self {
        let link = Arc::new(Link::new(name, variables, logins));
        let tools = RemoteTools::new(describe_server(name, &config), Arc::clone(&link) as _);
        Self { name: name.to_owned(), config, link, tools, login_changed: Notify::new() }
    }

    /// Runs the server until `stop`, with its tools in `registry`.
    async fn run(&self, registry: &Registry, stop: CancellationToken) {
        let Self { name, config, link, tools, login_changed } = self;
        let mut pause = RESTART_DELAY.0;
        let mut failures = 0;
        while !stop.is_cancelled() {
            let began = Instant::now();
            let end = tokio::select! {
                end = link::run(link, config, |specs| tools.set(registry, specs)) => end,
                () = login_changed.notified() => continue,
                () = stop.cancelled() => break,
            };
            let why = match end {
                End::Failed(why) => why,
                End::LoginRequired => {
                    tracing::warn!("mcp server {name}: {}", login::instruction(name));
                    tools.set(registry, vec![]);
                    link.set(State::LoginRequired);
                    tokio::select! {
                        () = login_changed.notified() => {}
                        () = stop.cancelled() => {}
                    }
                    failures = 0;
                    continue;
                }
            };
            if began.elapsed() >= STABLE_AFTER {
                pause = RESTART_DELAY.0;
                failures = 0;
            }
            failures += 1;
            tracing::warn!("mcp server {name}: {why}");
            if failures >= MAX_FAILURES {
                tracing::warn!(
                    "mcp server {name} failed {failures} times and is not retried; reload the \
                    configuration to try again"
                );
                link.set(State::Down(format!("{why}; it was tried {failures} times")));
                tokio::select! {
                    () = login_changed.notified() => {}
                    () = stop.cancelled() => {}
                }
                failures = 0;
                continue;
            }
            link.set(State::Down(why));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = login_changed.notified() => {}
                () = stop.cancelled() => break,
            }
            pause = (pause * 2).min(RESTART_DELAY.1);
        }
        tools.set(registry, vec![]);
    }
}

#[cfg(test)]
mod login_tests;
