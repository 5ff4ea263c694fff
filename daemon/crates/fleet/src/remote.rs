//! A client of another daemon's API over the broker.

use std::time::Duration;

use async_nats::Message;
use cairn_protocol::{
    PROTOCOL_VERSIONS,
    daemon::{ClientCapabilities, ClientInfo, InitializeParams},
    error::{Failure, Reason},
    remote::Right,
};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{
    broker::Broker,
    error::{chain, unreachable},
    link::{self, Outlet, Texts},
    names,
};

/// Largest message that a client accepts.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Longest wait for the answer to a forwarded call.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// A connection to a daemon. Dropping it ends it without half-close.
pub struct RemoteConnection {
    pub outlet: Outlet,
    pub texts: Texts,
    reader: JoinHandle<()>,
}

impl Drop for RemoteConnection {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl RemoteConnection {
    /// Opens a connection with the rights up to `level`; the first text is sent by the caller.
    ///
    /// # Errors
    /// The broker cannot be reached.
    pub async fn open(broker: &Broker, daemon: &str, level: Right) -> Result<Self, Failure> {
        let mut id = [0_u8; 16];
        getrandom::fill(&mut id).map_err(|error| unreachable("a connection", &error))?;
        let inbox = broker.client.new_inbox();
        let subscribed = broker.client.subscribe(inbox.clone()).await;
        let mut messages =
            subscribed.map_err(|error| unreachable("a connection", &chain(&error)))?;
        let to = names::calls(daemon, level, &hex::encode(id));
        let (outlet, inlet, texts) =
            link::link(broker.client.clone(), to.into(), Some(inbox.into()), MAX_BYTES);
        let reader = tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                if is_unheard(&message) || inlet.accept(&message).is_err() {
                    return;
                }
            }
        });
        Ok(Self { outlet, texts, reader })
    }

    /// Returns the next message of the daemon, and reports what was taken meanwhile.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            tokio::select! {
                text = self.texts.next() => return text?.ok(),
                () = self.outlet.report_time() => self.outlet.report().await.ok()?,
            }
        }
    }
}

/// True for the broker's note that no client receives messages on the subject.
fn is_unheard(message: &Message) -> bool {
    message.status == Some(async_nats::StatusCode::NO_RESPONDERS)
}

/// Calls a method of another daemon.
///
/// # Errors
/// `daemon_not_found` when no such daemon is connected; the errors of the method.
pub async fn call(
    broker: &Broker,
    daemon: &str,
    level: Right,
    client: &str,
    method: &str,
    params: &Value,
) -> Result<Value, Failure> {
    let work = async {
        let mut connection = RemoteConnection::open(broker, daemon, level).await?;
        let hello = InitializeParams {
            protocol_versions: PROTOCOL_VERSIONS.iter().map(|v| (*v).to_owned()).collect(),
            client: ClientInfo { name: client.into(), version: env!("CARGO_PKG_VERSION").into() },
            capabilities: ClientCapabilities { approvals: false },
        };
        request(&mut connection, daemon, "initialize", &json!(hello)).await?;
        let answer = request(&mut connection, daemon, method, params).await;
        // The daemon may be gone; the answer is here.
        let _gone = connection.outlet.end().await;
        answer
    };
    let late = |_| {
        let text = format!("the daemon '{daemon}' did not answer {method} within 60 s");
        Failure::new(Reason::BrokerUnreachable, text)
    };
    tokio::time::timeout(ANSWER_LIMIT, work).await.map_err(late)?
}

async fn request(
    connection: &mut RemoteConnection,
    daemon: &str,
    method: &str,
    params: &Value,
) -> Result<Value, Failure> {
    let gone = || {
        let text =
            format!("no daemon '{daemon}' answers, or this user of the broker may not call it");
        Failure::new(Reason::DaemonNotFound, text)
    };
    let text = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
    connection.outlet.send(&text.to_string()).await.map_err(|_| gone())?;
    while let Some(text) = connection.next().await {
        let Ok(mut answer) = serde_json::from_str::<Value>(&text) else { continue };
        if answer.get("id").and_then(Value::as_str) != Some(method) {
            continue;
        }
        if let Some(error) = answer.get("error") {
            return Err(failure(error));
        }
        return Ok(answer["result"].take());
    }
    Err(gone())
}

/// Converts an error of another daemon, of which the reason may be newer than this build.
fn failure(error: &Value) -> Failure {
    let reason = error["data"]["reason"].as_str().unwrap_or_default();
    let known = Reason::ALL.iter().find(|known| known.as_str() == reason);
    let message = error["message"].as_str().unwrap_or("the call failed");
    Failure::new(known.copied().unwrap_or(Reason::Internal), message)
}
