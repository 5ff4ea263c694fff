//! The Agent Client Protocol: an editor is the client of a Cairn session.
//!
//! The agent acts through an [`InProcessClient`] only, so the gate, its approvals and the log apply
//! as they do to any client. It implements version 1 of the protocol, whose messages are JSON-RPC,
//! one per text frame.

mod editor_servers;
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
    rpc::Frame,
    turn::RunResult,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use crate::{in_process::InProcessClient, ws::Peer};

use self::session::OpenSession;

pub const PATH: &str = "/acp";
/// The implemented version of the protocol.
const VERSION: u64 = 1;
/// Capacity of the outgoing queue. When it is full, the session's events wait in the log.
const OUTGOING_CAPACITY: usize = 64;
/// Maximum number of concurrent requests per editor.
const MAX_REQUESTS: usize = 64;

/// One editor. Dropping it leaves running turns and open approvals to other clients.
pub struct Agent {
    inner: Arc<Inner>,
    _events: AbortOnDropHandle<()>,
}

struct Inner {
    client: InProcessClient,
    out: mpsc::Sender<Outgoing>,
    state: Mutex<State>,
    next: AtomicU64,
    room: Arc<Semaphore>,
}

#[derive(Default)]
struct State {
    initialized: bool,
    /// Subscriptions whose replay finished before their id was stored.
    early_replays: Vec<String>,
    sessions: HashMap<String, OpenSession>,
    /// The editor's turns by id.
    turns: HashMap<String, Turn>,
    /// Sessions whose turn the editor cancelled; the editor dismisses their permission requests
    /// itself.
    cancelled: HashSet<String>,
    /// Pending permission requests by JSON-RPC id.
    permission_requests: HashMap<u64, PermissionRequest>,
}

/// A turn that a prompt waits for.
struct Turn {
    session: String,
    /// Id of the prompt's request, as JSON.
    request: String,
    done: oneshot::Sender<Result<RunResult, Failure>>,
}

/// A permission request to the editor.
struct PermissionRequest {
    approval: String,
    answer: oneshot::Sender<Value>,
}

impl Agent {
    /// Creates an agent with these rights, and the receiver of its messages for the editor.
    ///
    /// # Errors
    /// `overloaded` when the daemon's limit of connections is reached.
    pub fn new(
        api: &Arc<Api>,
        rights: Rights,
    ) -> Result<(Self, mpsc::Receiver<Outgoing>), Failure> {
        let (client, notifications) = InProcessClient::open(api, rights)?;
        let (out, outgoing) = mpsc::channel(OUTGOING_CAPACITY);
        let inner = Arc::new(Inner {
            client,
            out,
            state: Mutex::default(),
            next: AtomicU64::new(1),
            room: Arc::new(Semaphore::new(MAX_REQUESTS)),
        });
        let events = tokio::spawn(events::run(Arc::clone(&inner), notifications));
        Ok((Self { inner, _events: AbortOnDropHandle::new(events) }, outgoing))
    }
}

impl Peer for Agent {
    async fn handle_message(&self, text: &str) {
        let inner = &self.inner;
        let message = match Frame::parse(text) {
            Ok(message) => message,
            Err(error) => {
                let failure = Failure::new(Reason::ParseError, format!("not a message: {error}"));
                return inner.send(refusal("null", &failure)).await;
            }
        };
        let id = message.id.map(|id| id.get().to_owned());
        match (message.method.as_deref(), id) {
            (Some(method), Some(id)) => inner.request(method, id, message.params).await,
            (Some(method), None) => inner.handle_notification(method, message.params),
            (None, Some(id)) => inner.handle_answer(&id, message.result),
            (None, None) => {
                let failure = Failure::new(Reason::InvalidRequest, "method is missing");
                inner.send(refusal("null", &failure)).await;
            }
        }
    }
}

fn refusal(id: &str, failure: &Failure) -> String {
    let error =
        json!({"code": failure.reason.code(), "message": failure.message, "data": failure.data()});
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

/// Returns the session that a request has opened.
fn opened_session(method: &str, params: Option<&RawValue>, answer: &Value) -> Option<String> {
    let params_value = || serde_json::from_str::<Value>(params?.get()).ok();
    match method {
        "session/new" => answer["sessionId"].as_str().map(str::to_owned),
        "session/load" | "session/resume" => {
            params_value()?["sessionId"].as_str().map(str::to_owned)
        }
        _ => None,
    }
}

fn read<T: DeserializeOwned>(method: &str, params: Option<&RawValue>) -> Result<T, Failure> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text)
        .map_err(|e| Failure::new(Reason::InvalidParams, format!("{method}: {e}")))
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message; a send error means that the editor has disconnected.
    async fn send(&self, text: String) {
        let _disconnected = self.out.send(Outgoing::One(text)).await;
    }

    /// Sends a session update.
    async fn update(&self, session: &str, update: Value) {
        let params = json!({"sessionId": session, "update": update});
        self.send(
            json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string(),
        )
        .await;
    }

    async fn request(self: &Arc<Self>, method: &str, id: String, params: Option<&RawValue>) {
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            let failure = Failure::new(
                Reason::Overloaded,
                format!("{MAX_REQUESTS} requests are already running"),
            );
            return self.send(refusal(&id, &failure)).await;
        };
        // The handshake finishes before the next message is read.
        if method == "initialize" {
            let outcome = self.initialize(params).await;
            return self.answer(&id, outcome).await;
        }
        if !self.state().initialized {
            let failure = Failure::new(
                Reason::NotInitialized,
                format!("{method} was sent before initialize"),
            );
            return self.send(refusal(&id, &failure)).await;
        }
        let this = Arc::clone(self);
        let method = method.to_owned();
        let params = params.map(ToOwned::to_owned);
        tokio::spawn(async move {
            let outcome = this.call(&method, &id, params.as_deref()).await;
            let opened = outcome
                .as_ref()
                .ok()
                .and_then(|answer| opened_session(&method, params.as_deref(), answer));
            this.answer(&id, outcome).await;
            if let Some(session) = opened {
                this.update(&session, update::commands()).await;
                this.report_servers(&session).await;
            }
            drop(room);
        });
    }

    async fn answer(&self, id: &str, outcome: Result<Value, Failure>) {
        let text = match outcome {
            Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
            Err(failure) => refusal(id, &failure),
        };
        self.send(text).await;
    }

    async fn call(
        self: &Arc<Self>,
        method: &str,
        id: &str,
        params: Option<&RawValue>,
    ) -> Result<Value, Failure> {
        match method {
            "authenticate" => self.authenticate(&read(method, params)?).await,
            "session/new" => self.new_session(read(method, params)?).await,
            "session/load" => self.open_session(read(method, params)?, true).await,
            "session/resume" => self.open_session(read(method, params)?, false).await,
            "session/list" => self.list_sessions(read(method, params)?).await,
            "session/delete" => self.delete_session(read(method, params)?).await,
            "session/close" => self.close_session(read(method, params)?).await,
            "session/set_mode" => self.set_mode(&read(method, params)?),
            "session/set_config_option" => self.set_option(read(method, params)?).await,
            "session/prompt" => self.prompt(id, read(method, params)?).await,
            _ => {
                let excerpt: String = method.chars().take(64).collect();
                let text = format!("there is no method '{}'", excerpt.escape_default());
                Err(Failure::new(Reason::MethodNotFound, text))
            }
        }
    }

    fn handle_notification(self: &Arc<Self>, method: &str, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct CancelParams {
            #[serde(default)]
            session_id: String,
            #[serde(default)]
            request_id: Option<Box<RawValue>>,
        }
        let Ok(cancel) = read::<CancelParams>(method, params) else { return };
        let request = cancel.request_id.as_ref().map(|id| id.get());
        let turns: Vec<(String, String)> = {
            let mut state = self.state();
            let is_target = |turn: &Turn| match method {
                "session/cancel" => turn.session == cancel.session_id,
                "$/cancel_request" => Some(turn.request.as_str()) == request,
                _ => false,
            };
            let all = state.turns.iter().filter(|(_, turn)| is_target(turn));
            let all: Vec<_> = all.map(|(id, turn)| (turn.session.clone(), id.clone())).collect();
            state.cancelled.extend(all.iter().map(|(session, _)| session.clone()));
            all
        };
        for (session, turn) in turns {
            let this = Arc::clone(self);
            tokio::spawn(async move { this.cancel(&session, &turn).await });
        }
    }

    /// Handles the answer to one of the agent's own requests. An error counts as no answer.
    fn handle_answer(&self, id: &str, result: Option<&RawValue>) {
        let result =
            result.and_then(|result| serde_json::from_str(result.get()).ok()).unwrap_or_default();
        let pending =
            id.parse().ok().and_then(|id: u64| self.state().permission_requests.remove(&id));
        if let Some(pending) = pending {
            let _receiver_dropped = pending.answer.send(result);
        }
    }

    async fn initialize(&self, params: Option<&RawValue>) -> Result<Value, Failure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InitializeParams {
            protocol_version: u64,
            #[serde(default)]
            client_info: Option<EditorInfo>,
        }
        #[derive(Deserialize)]
        struct EditorInfo {
            name: String,
            #[serde(default)]
            version: String,
        }
        let hello: InitializeParams = read("initialize", params)?;
        if hello.protocol_version == 0 {
            return Err(Failure::new(
                Reason::InvalidParams,
                "initialize: protocolVersion must be at least 1",
            ));
        }
        let (name, version) =
            hello.client_info.map_or_else(Default::default, |i| (i.name, i.version));
        let name: String =
            if name.is_empty() { "acp".into() } else { name.chars().take(64).collect() };
        // Every client of this protocol answers permission requests.
        let server = self.client.initialize(&name, &version, true).await?;
        self.state().initialized = true;
        Ok(json!({
            // An editor that requested a later version decides whether it accepts this one.
            "protocolVersion": VERSION,
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": self.accepts_images().await, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": true, "sse": false},
                "sessionCapabilities": {
                    "list": {}, "resume": {}, "close": {}, "delete": {}, "additionalDirectories": {},
                },
            },
            "agentInfo": {"name": "cairn", "title": "Cairn", "version": server.version},
            "authMethods": [{
                "id": session::AUTH_METHOD, "name": "Cairn's configuration",
                "description": "Uses the model and the key that Cairn's configuration names; \
                    'cairn doctor' lists what is missing",
            }],
        }))
    }

    fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}
