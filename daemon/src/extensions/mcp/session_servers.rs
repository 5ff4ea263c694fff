//! MCP servers of single sessions, which a client names: their tools are tools of the session
//! alone, and they end with it.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cairn_config::McpServer;
use cairn_harness::Registry;
use cairn_protocol::{
    error::{Failure, Reason},
    id::SessionId,
    session::{Session, SessionMcpServer, SessionMcpStatus},
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{DRAIN, Supervised, process::Variables};

/// Maximum number of servers of one session.
const MAX_SERVERS: usize = 16;
/// Maximum number of servers of all sessions.
const MAX_TOTAL: usize = 64;
/// Maximum characters of a server's name.
const MAX_NAME: usize = 64;
/// Time that a client waits for its servers; later ones are still used when they answer.
const START_WAIT: Duration = Duration::from_secs(15);

/// The running servers by session.
pub struct SessionServers {
    registry: Registry,
    running: Mutex<HashMap<SessionId, Vec<Running>>>,
}

struct Running {
    server: Arc<Supervised>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl SessionServers {
    /// Creates a host that adds tools to `registry`.
    pub fn new(registry: &Registry) -> Arc<Self> {
        Arc::new(Self { registry: registry.clone(), running: Mutex::default() })
    }

    fn take(&self, session: &SessionId) -> Vec<Running> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.remove(session).unwrap_or_default()
    }

    /// Starts the servers of a session that has none.
    fn start(
        &self,
        session: &Session,
        servers: Vec<(String, McpServer)>,
    ) -> Result<Vec<Arc<Supervised>>, Failure> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let total: usize = running.values().map(Vec::len).sum();
        if total + servers.len() > MAX_TOTAL {
            let text = format!("the limit of all sessions is {MAX_TOTAL} mcp servers");
            return Err(Failure::new(Reason::Overloaded, text));
        }
        let registry = self.registry.scoped(&session.session_id);
        let start = |(name, config): (String, McpServer)| {
            // A client's servers have no logins of the user.
            let server = Arc::new(Supervised::new(&name, config, Variables::Literal, None));
            let stop = CancellationToken::new();
            let own = Arc::clone(&server);
            let signal = stop.clone();
            let registry = registry.clone();
            let task = tokio::spawn(async move { own.run(&registry, signal).await });
            Running { server, stop, task }
        };
        let started: Vec<Running> = servers.into_iter().map(start).collect();
        let all = started.iter().map(|running| Arc::clone(&running.server)).collect();
        if !started.is_empty() {
            running.insert(session.session_id.clone(), started);
        }
        Ok(all)
    }

    /// Stops the servers of all sessions.
    pub async fn close(&self) {
        let all = std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        stop(all.into_values().flatten().collect()).await;
    }
}

#[async_trait::async_trait]
impl cairn_engine::SessionServers for SessionServers {
    async fn set(
        &self,
        session: &Session,
        servers: Vec<SessionMcpServer>,
    ) -> Result<Vec<SessionMcpStatus>, Failure> {
        let checked = check(session, servers)?;
        stop(self.take(&session.session_id)).await;
        let started = self.start(session, checked)?;
        let deadline = tokio::time::Instant::now() + START_WAIT;
        let mut all = Vec::new();
        for server in started {
            let outcome = tokio::time::timeout_at(deadline, server.link.started()).await;
            let error = match outcome {
                Ok(Ok(())) => None,
                Ok(Err(why)) => Some(why),
                Err(_) => Some(format!("it did not answer within {} s", START_WAIT.as_secs())),
            };
            let name = server.name.clone();
            all.push(SessionMcpStatus { name, tools: server.tools.names(), error });
        }
        Ok(all)
    }

    async fn end(&self, session: &SessionId) {
        stop(self.take(session)).await;
    }
}

/// Stops servers and waits briefly for their exit.
async fn stop(servers: Vec<Running>) {
    servers.iter().for_each(|running| running.stop.cancel());
    let all_stopped = async {
        for running in servers {
            let _stopped = running.task.await;
        }
    };
    if tokio::time::timeout(DRAIN, all_stopped).await.is_err() {
        tracing::warn!("some mcp servers of a session did not exit in time");
    }
}

/// Returns the servers as configurations.
fn check(
    session: &Session,
    servers: Vec<SessionMcpServer>,
) -> Result<Vec<(String, McpServer)>, Failure> {
    let bad = |text: String| Failure::new(Reason::InvalidParams, text);
    if servers.len() > MAX_SERVERS {
        return Err(bad(format!("a session has at most {MAX_SERVERS} mcp servers")));
    }
    let mut names = BTreeSet::new();
    let mut checked = Vec::new();
    for server in servers {
        let name = server.name;
        if name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control)
        {
            let text = format!("the name of an mcp server must have 1 to {MAX_NAME} characters");
            return Err(bad(text));
        }
        if server.command.is_some() == server.url.is_some() {
            let text = format!("mcp server '{name}' needs either 'command' or 'url'");
            return Err(bad(text));
        }
        if !names.insert(name.clone()) {
            return Err(bad(format!("two mcp servers have the name '{name}'")));
        }
        let config = McpServer {
            command: server.command,
            args: server.args,
            env: server.env,
            cwd: session.root.clone().map(Into::into),
            url: server.url,
            headers: server.headers,
            ..McpServer::default()
        };
        checked.push((name, config));
    }
    Ok(checked)
}
