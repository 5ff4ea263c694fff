//! A client in the daemon's own process, over one connection of the API without a socket.
//!
//! Servers of other protocols (MCP, the Agent Client Protocol) act through an [`InProcessClient`],
//! so that rights, limits, the gate, the audit and the log apply as they do to any client.

use std::sync::Arc;

use cairn_api::{Api, Connection, Outgoing, Rights};
use cairn_protocol::{
    PROTOCOL_VERSIONS,
    daemon::{ClientCapabilities, ClientInfo, InitializeParams, InitializeResult},
    error::{Failure, Reason},
    rpc::Frame,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::sync::mpsc;

/// Capacity of the notification queue. When it is full, the connection's events wait in the log.
pub const NOTIFICATION_CAPACITY: usize = 64;

/// A notification of the daemon.
#[derive(Debug, Clone)]
pub struct Notification {
    /// Its name, as in the `capabilities.notifications` of `initialize`.
    pub method: String,
    pub params: Value,
}

/// An open connection. Clones share it. Dropping the last one closes it, which ends its searches,
/// reads and subscriptions and nothing else.
#[derive(Clone)]
pub struct InProcessClient {
    inner: Arc<Inner>,
}

struct Inner {
    connection: Connection,
    max_message_bytes: u64,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.connection.close();
    }
}

impl InProcessClient {
    /// Opens a connection with these rights. Only [`InProcessClient::initialize`] is answered at
    /// first.
    ///
    /// # Errors
    /// `overloaded` when the daemon's limit of connections is reached.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open(
        api: &Arc<Api>,
        rights: Rights,
    ) -> Result<(Self, mpsc::Receiver<Notification>), Failure> {
        let (connection, outgoing) = Connection::open(api, rights)?;
        let (notifications_out, notifications) = mpsc::channel(NOTIFICATION_CAPACITY);
        tokio::spawn(forward(outgoing, notifications_out));
        let max_message_bytes = api.limits().max_message_bytes;
        Ok((Self { inner: Arc::new(Inner { connection, max_message_bytes }) }, notifications))
    }

    /// Identifies the client and declares whether it answers approvals.
    ///
    /// # Errors
    /// `already_initialized`, or `invalid_params` for a name that is empty or over 64 characters.
    pub async fn initialize(
        &self,
        name: &str,
        version: &str,
        approvals: bool,
    ) -> Result<InitializeResult, Failure> {
        let params = InitializeParams {
            protocol_versions: PROTOCOL_VERSIONS.iter().map(|v| (*v).to_owned()).collect(),
            client: ClientInfo { name: name.into(), version: version.into() },
            capabilities: ClientCapabilities { approvals },
        };
        self.request("initialize", &params).await
    }

    /// Calls a method and waits for its answer. Dropping the future cancels the call if the method
    /// allows that.
    ///
    /// # Errors
    /// The errors of the method; `too_large` for params over the limit of a message.
    pub async fn call(&self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.request(method, params).await
    }

    /// Calls a method with typed params, which must serialise as an object, and a typed result.
    ///
    /// # Errors
    /// As [`InProcessClient::call`]; `internal` when the answer is not an `R`.
    pub async fn request<R: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R, Failure> {
        let bad = |e| {
            Failure::new(
                Reason::InvalidParams,
                format!("{method}: params cannot be serialized: {e}"),
            )
        };
        let params = serde_json::value::to_raw_value(params).map_err(bad)?;
        let (size, limit) = (params.get().len(), self.inner.max_message_bytes);
        if size as u64 > limit {
            let text = format!("{method}: the params have {size} bytes; the limit is {limit}");
            return Err(Failure::new(Reason::TooLarge, text));
        }
        let answer = self.inner.connection.call(method, &params).await?;
        serde_json::from_str(answer.get()).map_err(|e| {
            Failure::new(Reason::Internal, format!("the answer to {method} cannot be parsed: {e}"))
        })
    }
}

/// Forwards the notifications of a connection until it is closed.
async fn forward(
    mut outgoing: mpsc::Receiver<Outgoing>,
    notifications_out: mpsc::Sender<Notification>,
) {
    while let Some(message) = outgoing.recv().await {
        for text in message.into_texts() {
            match notification(&text) {
                Some(notification) => {
                    // The caller may have dropped the receiver.
                    let _receiver_dropped = notifications_out.send(notification).await;
                }
                None => tracing::error!("the api sent an invalid notification"),
            }
        }
    }
}

fn notification(text: &str) -> Option<Notification> {
    let frame = Frame::parse(text).ok()?;
    let params = frame.params_as().unwrap_or_default();
    Some(Notification { method: frame.method?.into_owned(), params })
}
