//! One MCP client as the API sees it: a connection, a root, and the session of its tools.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use cairn_api::{Right, Rights};
use cairn_protocol::{
    error::{Failure, Reason},
    explore::SessionRef,
    id::SessionId,
    index::RootStatus,
    session::{Empty, Page, Session, SessionCreateParams},
    tool::ToolInfo,
};
use tokio::sync::{Mutex as Later, OnceCell};

use super::Host;
use crate::in_process::InProcessClient;

/// Maximum characters of a client's name.
const NAME: usize = 60;

/// The identity that a client declared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller {
    /// Name of the client's program.
    pub name: String,
    pub version: String,
    /// The requested root: an id or a path.
    pub root: Option<String>,
}

/// An open client. It closes when the last reference is dropped.
pub struct Client {
    pub(super) host: Arc<Host>,
    pub(super) api: InProcessClient,
    pub(super) caller: Caller,
    session: Later<Option<SessionId>>,
    /// Set for clients without a connection, whose requests share one session.
    shared: bool,
    /// Read-only tools, as last listed for the client. Calls of all others may need an approval.
    read_only_tools: Mutex<HashSet<String>>,
}

/// A client that is opened on first use.
#[derive(Default)]
pub struct LazyClient(OnceCell<Arc<Client>>);

impl LazyClient {
    /// Returns the client; the first call opens it for `caller`.
    pub async fn get(
        &self,
        host: &Arc<Host>,
        caller: Caller,
        shared: bool,
    ) -> Result<Arc<Client>, Failure> {
        let open = || async { Client::open(host, caller, shared).await.map(Arc::new) };
        self.0.get_or_try_init(open).await.cloned()
    }
}

/// Returns the rights of the program behind an MCP client. It answers approvals only where a person
/// does so through it.
pub fn rights() -> Rights {
    Rights::of(&[Right::Observe, Right::Prompt, Right::Approve])
}

impl Client {
    async fn open(host: &Arc<Host>, mut caller: Caller, shared: bool) -> Result<Self, Failure> {
        caller.name = sanitised_name(&caller.name);
        let (api, _no_events) = InProcessClient::open(&host.api, rights())?;
        api.initialize(&caller.name, &caller.version, false).await?;
        let session = Later::default();
        let read_only_tools = Mutex::default();
        Ok(Self { host: Arc::clone(host), api, caller, session, shared, read_only_tools })
    }

    /// Lists the declared roots.
    pub async fn roots(&self) -> Result<Vec<RootStatus>, Failure> {
        Ok(self.api.request::<Page<RootStatus>>("index.list", &Empty {}).await?.data)
    }

    /// Selects the root of a call: the named one, else the client's own, else the only one.
    ///
    /// # Errors
    /// `root_not_found` for a root that is not declared.
    pub async fn root(&self, named: Option<&str>) -> Result<Option<RootStatus>, Failure> {
        let mut roots = self.roots().await?;
        let Some(named) = named.or(self.caller.root.as_deref()) else {
            return Ok(if roots.len() == 1 { roots.pop() } else { None });
        };
        let matching = roots
            .into_iter()
            .find(|r| r.root.to_string() == named || r.path == named.trim_end_matches('/'));
        matching.map(Some).ok_or_else(|| {
            let excerpt: String = named.chars().take(200).collect();
            Failure::new(
                Reason::RootNotFound,
                format!("{} is not a declared root", excerpt.escape_default()),
            )
        })
    }

    /// Returns the session of the client's tools, creating it if necessary.
    pub async fn session(&self) -> Result<SessionId, Failure> {
        let mut current = self.session.lock().await;
        if let Some(session) = current.as_ref() {
            return Ok(session.clone());
        }
        let session =
            if self.shared { self.shared_session().await? } else { self.new_session().await? };
        *current = Some(session.clone());
        Ok(session)
    }

    async fn new_session(&self) -> Result<SessionId, Failure> {
        let root = self.root(None).await?.map(|r| r.root.to_string());
        let params = SessionCreateParams {
            title: Some(format!("mcp: {}", self.caller.name)),
            root,
            ..SessionCreateParams::default()
        };
        Ok(self.api.request::<Session>("session.create", &params).await?.session_id)
    }

    /// Requests of one client without a connection use the same session while the daemon runs.
    async fn shared_session(&self) -> Result<SessionId, Failure> {
        let mut sessions = self.host.sessions.lock().await;
        if let Some(session) = sessions.get(&self.caller) {
            let params = SessionRef { session_id: session.clone() };
            if self.api.request::<Session>("session.get", &params).await.is_ok() {
                return Ok(session.clone());
            }
        }
        let session = self.new_session().await?;
        sessions.put(self.caller.clone(), session.clone());
        Ok(session)
    }

    /// Lists the registered tools, including those that models are offered under other names.
    pub async fn tools(&self) -> Result<Vec<ToolInfo>, Failure> {
        let tools = self.api.request::<Page<ToolInfo>>("tool.list", &Empty {}).await?.data;
        let read_only_tools =
            tools.iter().filter(|t| t.read_only).map(|t| t.name.clone()).collect();
        *self.read_only_tools.lock().unwrap_or_else(PoisonError::into_inner) = read_only_tools;
        Ok(tools)
    }

    /// Returns true if a tool is known to change nothing, so that its calls need no approval.
    pub async fn is_read_only(&self, tool: &str) -> Result<bool, Failure> {
        let known = || {
            let read_only_tools =
                self.read_only_tools.lock().unwrap_or_else(PoisonError::into_inner);
            (read_only_tools.is_empty(), read_only_tools.contains(tool))
        };
        if known().0 {
            self.tools().await?;
        }
        Ok(known().1)
    }
}

/// Adapts a client's name to the limits of the API.
fn sanitised_name(name: &str) -> String {
    let clean: String = name.chars().filter(|c| !c.is_control()).take(NAME).collect();
    if clean.trim().is_empty() { "mcp".to_owned() } else { clean }
}

/// Sessions of clients without a connection, most recent last.
#[derive(Default)]
pub struct Sessions {
    by_caller: HashMap<Caller, SessionId>,
    order: std::collections::VecDeque<Caller>,
}

/// Maximum number of remembered clients; a forgotten one gets a new session.
const MAX_SESSIONS: usize = 256;

impl Sessions {
    fn get(&self, caller: &Caller) -> Option<&SessionId> {
        self.by_caller.get(caller)
    }

    fn put(&mut self, caller: Caller, session: SessionId) {
        if self.by_caller.insert(caller.clone(), session).is_some() {
            return;
        }
        self.order.push_back(caller);
        if self.order.len() > MAX_SESSIONS
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_caller.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_names_are_sanitised() {
        assert_eq!(sanitised_name("claude\n"), "claude");
        assert_eq!(sanitised_name(" \t"), "mcp");
        assert_eq!(sanitised_name(&"ä".repeat(100)).chars().count(), NAME);
    }

    #[test]
    fn oldest_caller_is_dropped_first() {
        let caller = |n: usize| Caller { name: n.to_string(), version: String::new(), root: None };
        let mut sessions = Sessions::default();
        for n in 0..=MAX_SESSIONS {
            sessions.put(caller(n), SessionId::new());
        }
        assert!(sessions.get(&caller(0)).is_none() && sessions.get(&caller(1)).is_some());
        assert_eq!(sessions.by_caller.len(), MAX_SESSIONS);
    }
}
