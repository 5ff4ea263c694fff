//! The Agent Client Protocol: an editor hosts a session of Cairn.
//!
//! The agent acts through a [`Queue`] alone, as any client does: the gate, its approvals and the log are those of
//! everybody. Version 1 of the protocol; its messages are JSON-RPC, one a text frame.

mod events;
mod session;
mod turn;
mod update;

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use cairn_api::{Api, Outgoing, Rights};
use cairn_protocol::{
    error::{Failure, Reason},
    turn::RunResult,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use crate::{queue::Queue, ws::Peer};

use self::session::Open;

/// Path of the WebSocket.
pub const PATH: &str = "/acp";
/// The version of the protocol that is spoken.
const VERSION: u64 = 1;
/// Messages that wait for a slow editor; then its session's events wait in the log.
const OUTGOING: usize = 64;
/// Requests of one editor at work at once.
const REQUESTS: usize = 64;

/// One editor. Dropping it leaves turns at work and approvals open for others.
pub struct Agent {
    inner: Arc<Inner>,
    _events: AbortOnDropHandle<()>,
}

struct Inner {
    queue: Queue,
    out: mpsc::Sender<Outgoing>,
    state: Mutex<State>,
    next: AtomicU64,
    room: Arc<Semaphore>,
}

#[derive(Default)]
struct State {
    initialized: bool,
    /// Subscriptions whose past was told before their id was known here.
    early: Vec<String>,
    /// Sessions by id.
    sessions: HashMap<String, Open>,
    /// Turns of this editor, by their id.
    turns: HashMap<String, Turn>,
    /// Sessions whose turn the editor cancelled: it answers its questions by itself.
    cancelled: HashSet<String>,
    /// Questions to the editor that wait for its answer, by request id.
    asked: HashMap<u64, Asked>,
}

/// A turn that a prompt waits for.
struct Turn {
    session: String,
    /// Id of the prompt's request, as JSON.
    request: String,
    ended: oneshot::Sender<Result<RunResult, Failure>>,
}

/// A question to the editor.
struct Asked {
    approval: String,
    answer: oneshot::Sender<Value>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(default)]
    result: Option<Value>,
}

impl Agent {
    /// An agent over the API that may do what `rights` say, and what it says to its editor.
    ///
    /// # Errors
    /// `overloaded` when the daemon has as many connections as it may.
    pub fn new(api: &Arc<Api>, rights: Rights) -> Result<(Self, mpsc::Receiver<Outgoing>), Failure> {
        let (queue, notifications) = Queue::open(api, rights)?;
        let (out, outgoing) = mpsc::channel(OUTGOING);
        let inner = Arc::new(Inner {
            queue,
            out,
            state: Mutex::default(),
            next: AtomicU64::new(1),
            room: Arc::new(Semaphore::new(REQUESTS)),
        });
        let events = tokio::spawn(events::run(Arc::clone(&inner), notifications));
        Ok((Self { inner, _events: AbortOnDropHandle::new(events) }, outgoing))
    }
}

impl Peer for Agent {
    async fn message(&self, text: &str) {
        let inner = &self.inner;
        let message: Message<'_> = match serde_json::from_str(text) {
            Ok(message) => message,
            Err(error) => {
                let failure = Failure::new(Reason::ParseError, format!("not a message: {error}"));
                return inner.say(refusal("null", &failure)).await;
            }
        };
        let id = message.id.map(|id| id.get().to_owned());
        match (message.method.as_deref(), id) {
            (Some(method), Some(id)) => inner.request(method, id, message.params).await,
            (Some(method), None) => inner.notified(method, message.params),
            (None, Some(id)) => inner.answered(&id, message.result),
            (None, None) => {
                let failure = Failure::new(Reason::InvalidRequest, "method is missing");
                inner.say(refusal("null", &failure)).await;
            }
        }
    }
}

fn refusal(id: &str, failure: &Failure) -> String {
    let error = json!({"code": failure.reason.code(), "message": failure.message, "data": failure.data()});
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

/// The session that a request has begun.
fn begun(method: &str, params: Option<&RawValue>, answer: &Value) -> Option<String> {
    let named = || serde_json::from_str::<Value>(params?.get()).ok();
    match method {
        "session/new" => answer["sessionId"].as_str().map(str::to_owned),
        "session/load" | "session/resume" => named()?["sessionId"].as_str().map(str::to_owned),
        _ => None,
    }
}

fn read<T: DeserializeOwned>(method: &str, params: Option<&RawValue>) -> Result<T, Failure> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text).map_err(|e| Failure::new(Reason::InvalidParams, format!("{method}: {e}")))
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message; an editor that has gone needs none.
    async fn say(&self, text: String) {
        let _gone = self.out.send(Outgoing::One(text)).await;
    }

    /// Sends an update of a session.
    async fn update(&self, session: &str, update: Value) {
        let params = json!({"sessionId": session, "update": update});
        self.say(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()).await;
    }

    async fn request(self: &Arc<Self>, method: &str, id: String, params: Option<&RawValue>) {
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            let failure = Failure::new(Reason::Overloaded, format!("{REQUESTS} requests are at work"));
            return self.say(refusal(&id, &failure)).await;
        };
        // The handshake is done before the next message is looked at.
        if method == "initialize" {
            let outcome = self.initialize(params).await;
            return self.answer(&id, outcome).await;
        }
        if !self.state().initialized {
            let failure = Failure::new(Reason::NotInitialized, format!("{method} came before initialize"));
            return self.say(refusal(&id, &failure)).await;
        }
        let (this, method) = (Arc::clone(self), method.to_owned());
        let params = params.map(ToOwned::to_owned);
        tokio::spawn(async move {
            let outcome = this.call(&method, &id, params.as_deref()).await;
            let begun = outcome.as_ref().ok().and_then(|answer| begun(&method, params.as_deref(), answer));
            this.answer(&id, outcome).await;
            if let Some(session) = begun {
                this.update(&session, update::commands()).await;
            }
            drop(room);
        });
    }

    async fn answer(&self, id: &str, outcome: Result<Value, Failure>) {
        let text = match outcome {
            Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
            Err(failure) => refusal(id, &failure),
        };
        self.say(text).await;
    }

    async fn call(
        self: &Arc<Self>,
        method: &str,
        id: &str,
        params: Option<&RawValue>,
    ) -> Result<Value, Failure> {
        match method {
            // No sign-in: whoever reaches this has the daemon's token.
            "authenticate" => Ok(json!({})),
            "session/new" => self.new_session(read(method, params)?).await,
            "session/load" => self.open_session(read(method, params)?, true).await,
            "session/resume" => self.open_session(read(method, params)?, false).await,
            "session/list" => self.list_sessions(read(method, params)?).await,
            "session/close" => self.close_session(read(method, params)?).await,
            "session/set_mode" => self.set_mode(&read(method, params)?),
            "session/set_config_option" => self.set_option(read(method, params)?).await,
            "session/prompt" => self.prompt(id, read(method, params)?).await,
            _ => {
                let shown: String = method.chars().take(64).collect();
                let text = format!("there is no method '{}'", shown.escape_default());
                Err(Failure::new(Reason::MethodNotFound, text))
            }
        }
    }

    fn notified(self: &Arc<Self>, method: &str, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Named {
            #[serde(default)]
            session_id: String,
            #[serde(default)]
            request_id: Option<Box<RawValue>>,
        }
        let Ok(named) = read::<Named>(method, params) else { return };
        let request = named.request_id.as_ref().map(|id| id.get());
        let turns: Vec<(String, String)> = {
            let mut state = self.state();
            let meant = |turn: &Turn| match method {
                "session/cancel" => turn.session == named.session_id,
                "$/cancel_request" => Some(turn.request.as_str()) == request,
                _ => false,
            };
            let all = state.turns.iter().filter(|(_, turn)| meant(turn));
            let all: Vec<_> = all.map(|(id, turn)| (turn.session.clone(), id.clone())).collect();
            state.cancelled.extend(all.iter().map(|(session, _)| session.clone()));
            all
        };
        for (session, turn) in turns {
            let this = Arc::clone(self);
            tokio::spawn(async move { this.cancel(&session, &turn).await });
        }
    }

    /// An answer to a question of ours. A refusal is one that says nothing.
    fn answered(&self, id: &str, result: Option<Value>) {
        let asked = id.parse().ok().and_then(|id: u64| self.state().asked.remove(&id));
        if let Some(asked) = asked {
            let _left = asked.answer.send(result.unwrap_or_default());
        }
    }

    async fn initialize(&self, params: Option<&RawValue>) -> Result<Value, Failure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Hello {
            protocol_version: u64,
            #[serde(default)]
            client_info: Option<Info>,
        }
        #[derive(Deserialize)]
        struct Info {
            name: String,
            #[serde(default)]
            version: String,
        }
        let hello: Hello = read("initialize", params)?;
        if hello.protocol_version == 0 {
            return Err(Failure::new(
                Reason::InvalidParams,
                "initialize: protocolVersion must be at least 1",
            ));
        }
        let (name, version) = hello.client_info.map_or_else(Default::default, |i| (i.name, i.version));
        let name: String = if name.is_empty() { "acp".into() } else { name.chars().take(64).collect() };
        // Whoever speaks this protocol answers requests for permission.
        let server = self.queue.initialize(&name, &version, true).await?;
        self.state().initialized = true;
        Ok(json!({
            // The editor decides whether it speaks this one when it asked for a later.
            "protocolVersion": VERSION,
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": self.images().await, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": false, "sse": false},
                "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
            },
            "agentInfo": {"name": "cairn", "title": "Cairn", "version": server.version},
            "authMethods": [],
        }))
    }

    fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}
