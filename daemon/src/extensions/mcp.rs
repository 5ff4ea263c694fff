//! Servers of the Model Context Protocol that the configuration names: started, watched, started again, their tools kept
//! in the registry. What a server says of its tools is a stranger's text (`cairn_tools`); whether a tool may act is the
//! gate's to decide.

mod link;
mod process;

pub use process::{expanded, is_local};

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cairn_config::McpServer;
use cairn_engine::Engine;
use cairn_tools::{RemoteTools, Server};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use link::{Link, State};

/// Pauses before a server is started again, the first and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// A server that held so long has not failed at its start.
const HEALTHY: Duration = Duration::from_secs(60);
/// Failures in a row after which it is left alone.
const ATTEMPTS: u32 = 6;
/// Servers at most.
const SERVERS: usize = 32;
/// How long the end of all servers is waited for.
const DRAIN: Duration = Duration::from_secs(5);

/// Keeps the servers as the configuration has them.
#[derive(Default)]
pub struct Servers {
    running: Mutex<BTreeMap<String, Running>>,
}

struct Running {
    config: McpServer,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Servers {
    /// Takes a configuration: servers that changed are ended and begun anew, those that are as before go on.
    pub fn configure(&self, engine: &Engine, wanted: &BTreeMap<String, McpServer>) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = |name: &str, r: &Running| {
            r.task.is_finished() || wanted.get(name).is_none_or(|w| *w != r.config || !w.enabled)
        };
        let mut before = Vec::new();
        running.retain(|name, server| {
            if !gone(name, server) {
                return true;
            }
            server.stop.cancel();
            before.push(std::mem::replace(&mut server.task, tokio::spawn(async {})));
            false
        });
        let before = Arc::new(tokio::sync::Mutex::new(before));
        for (name, config) in wanted.iter().filter(|(_, c)| c.enabled) {
            if running.contains_key(name) {
                continue;
            }
            if running.len() >= SERVERS {
                tracing::warn!("mcp server {name} is left out: {SERVERS} are used at most");
                continue;
            }
            let stop = CancellationToken::new();
            let (engine, held, before) = (engine.clone(), stop.clone(), Arc::clone(&before));
            let (owner, own) = (name.clone(), config.clone());
            let task = tokio::spawn(async move {
                // The tools of those that end make room for new ones of the same names.
                for task in before.lock().await.drain(..) {
                    let _ended = tokio::time::timeout(DRAIN, task).await;
                }
                supervise(owner, own, engine, held).await;
            });
            running.insert(name.clone(), Running { config: config.clone(), stop, task });
        }
    }

    /// Ends all of them.
    pub async fn close(&self) {
        let all = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        all.values().for_each(|r| r.stop.cancel());
        let ended = async {
            for (_, server) in all {
                let _ended = server.task.await;
            }
        };
        if tokio::time::timeout(DRAIN, ended).await.is_err() {
            tracing::warn!("some mcp servers did not end in time");
        }
    }
}

/// What calls of a server's tools need to know of it.
fn server_of(name: &str, config: &McpServer) -> Server {
    let local = config.url.as_deref().is_none_or(process::is_local);
    Server {
        name: name.to_owned(),
        trusted: config.trust_annotations,
        network: !local,
        timeout: Duration::from_secs(config.timeout_seconds.clamp(1, 3600)),
    }
}

/// Runs one server until `stop`.
async fn supervise(name: String, config: McpServer, engine: Engine, stop: CancellationToken) {
    let link = Arc::new(Link::new(&name));
    let tools = RemoteTools::new(server_of(&name, &config), Arc::clone(&link) as _);
    let (mut pause, mut failures) = (PAUSE.0, 0);
    while !stop.is_cancelled() {
        let began = Instant::now();
        let why = tokio::select! {
            why = link::run(&link, &config, |specs| tools.set(engine.registry(), specs)) => why,
            () = stop.cancelled() => break,
        };
        if began.elapsed() >= HEALTHY {
            (pause, failures) = (PAUSE.0, 0);
        }
        failures += 1;
        tracing::warn!("mcp server {name}: {why}");
        if failures >= ATTEMPTS {
            tracing::warn!(
                "mcp server {name} is left alone after {failures} attempts; a reload of the configuration tries again"
            );
            link.set(State::Down(format!("{why}; it was tried {failures} times")));
            stop.cancelled().await;
            break;
        }
        link.set(State::Down(why));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => break,
        }
        pause = (pause * 2).min(PAUSE.1);
    }
    tools.set(engine.registry(), vec![]);
}
