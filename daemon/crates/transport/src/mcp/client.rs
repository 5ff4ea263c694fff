//! One MCP client as the API sees it: a connection, the root it works in, and the session its tools act in.

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
use crate::queue::Queue;

/// Characters of a client's name.
const NAME: usize = 60;

/// Who calls, as it said itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The name of the client's program.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The root it asked for: an id or a path.
    pub root: Option<String>,
}

/// An open client. It is closed with its last use.
pub struct Client {
    pub(super) host: Arc<Host>,
    pub(super) queue: Queue,
    pub(super) caller: Caller,
    session: Later<Option<SessionId>>,
    /// Whether the session is shared with the other requests of this client: they come without a connection.
    shared: bool,
    /// Tools that only read, as the client was last told. For all others it may be asked to approve.
    reading: Mutex<HashSet<String>>,
}

/// Opened at the first need, once.
#[derive(Default)]
pub struct Lazy(OnceCell<Arc<Client>>);

impl Lazy {
    /// The client, opened for `caller` when it is the first call.
    pub async fn get(&self, host: &Arc<Host>, caller: Caller, shared: bool) -> Result<Arc<Client>, Failure> {
        let open = || async { Client::open(host, caller, shared).await.map(Arc::new) };
        self.0.get_or_try_init(open).await.cloned()
    }
}

/// What the program behind an MCP client may do. It answers questions only where a person does so through it.
pub fn rights() -> Rights {
    Rights::of(&[Right::Observe, Right::Prompt, Right::Approve])
}

impl Client {
    async fn open(host: &Arc<Host>, mut caller: Caller, shared: bool) -> Result<Self, Failure> {
        caller.name = named(&caller.name);
        let (queue, _no_events) = Queue::open(&host.api, rights())?;
        queue.initialize(&caller.name, &caller.version, false).await?;
        let (session, reading) = (Later::default(), Mutex::default());
        Ok(Self { host: Arc::clone(host), queue, caller, session, shared, reading })
    }

    /// The declared roots.
    pub async fn roots(&self) -> Result<Vec<RootStatus>, Failure> {
        Ok(self.queue.ask::<Page<RootStatus>>("index.list", &Empty {}).await?.data)
    }

    /// The root to look in: the one that is named in the call, else the client's own, else the only one there is.
    ///
    /// # Errors
    /// `root_not_found` for one that is not declared.
    pub async fn root(&self, named: Option<&str>) -> Result<Option<RootStatus>, Failure> {
        let mut roots = self.roots().await?;
        let Some(named) = named.or(self.caller.root.as_deref()) else {
            return Ok(if roots.len() == 1 { roots.pop() } else { None });
        };
        let found =
            roots.into_iter().find(|r| r.root.to_string() == named || r.path == named.trim_end_matches('/'));
        found.map(Some).ok_or_else(|| {
            let shown: String = named.chars().take(200).collect();
            Failure::new(Reason::RootNotFound, format!("{} is not a declared root", shown.escape_default()))
        })
    }

    /// The session that the client's tools act in, made when there is none.
    pub async fn session(&self) -> Result<SessionId, Failure> {
        let mut held = self.session.lock().await;
        if let Some(session) = held.as_ref() {
            return Ok(session.clone());
        }
        let session = if self.shared { self.shared_session().await? } else { self.new_session().await? };
        *held = Some(session.clone());
        Ok(session)
    }

    async fn new_session(&self) -> Result<SessionId, Failure> {
        let root = self.root(None).await?.map(|r| r.root.to_string());
        let params =
            SessionCreateParams { title: Some(format!("mcp: {}", self.caller.name)), root, request_id: None };
        Ok(self.queue.ask::<Session>("session.create", &params).await?.session_id)
    }

    /// Requests of one client that come without a connection act in one session as long as the daemon runs.
    async fn shared_session(&self) -> Result<SessionId, Failure> {
        let mut sessions = self.host.sessions.lock().await;
        if let Some(session) = sessions.get(&self.caller) {
            let params = SessionRef { session_id: session.clone() };
            if self.queue.ask::<Session>("session.get", &params).await.is_ok() {
                return Ok(session.clone());
            }
        }
        let session = self.new_session().await?;
        sessions.put(self.caller.clone(), session.clone());
        Ok(session)
    }

    /// The registered tools that models are offered.
    pub async fn tools(&self) -> Result<Vec<ToolInfo>, Failure> {
        let mut tools = self.queue.ask::<Page<ToolInfo>>("tool.list", &Empty {}).await?.data;
        tools.retain(|t| !t.hidden);
        let reading = tools.iter().filter(|t| t.read_only).map(|t| t.name.clone()).collect();
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner) = reading;
        Ok(tools)
    }

    /// Whether a tool is known to change nothing, so that nobody is asked about it.
    pub async fn only_reads(&self, tool: &str) -> Result<bool, Failure> {
        let known = || {
            let reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
            (reading.is_empty(), reading.contains(tool))
        };
        if known().0 {
            self.tools().await?;
        }
        Ok(known().1)
    }
}

/// A client's name as the API takes it.
fn named(name: &str) -> String {
    let clean: String = name.chars().filter(|c| !c.is_control()).take(NAME).collect();
    if clean.trim().is_empty() { "mcp".to_owned() } else { clean }
}

/// Sessions of clients that come without a connection, the most recently made of them.
#[derive(Default)]
pub struct Sessions {
    by_caller: HashMap<Caller, SessionId>,
    order: std::collections::VecDeque<Caller>,
}

/// Clients that are remembered; an older one gets a new session.
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
    fn names_are_such_that_the_api_takes_them() {
        assert_eq!(named("claude\n"), "claude");
        assert_eq!(named(" \t"), "mcp");
        assert_eq!(named(&"ä".repeat(100)).chars().count(), NAME);
    }

    #[test]
    fn the_oldest_caller_is_forgotten() {
        let caller = |n: usize| Caller { name: n.to_string(), version: String::new(), root: None };
        let mut sessions = Sessions::default();
        for n in 0..=MAX_SESSIONS {
            sessions.put(caller(n), SessionId::new());
        }
        assert!(sessions.get(&caller(0)).is_none() && sessions.get(&caller(1)).is_some());
        assert_eq!(sessions.by_caller.len(), MAX_SESSIONS);
    }
}
