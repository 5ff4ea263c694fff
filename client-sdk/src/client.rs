//! A connection to a daemon: handshake, calls and subscriptions.

use std::{pin::Pin, sync::Arc, time::Duration};

use cairn_protocol::{
    PROTOCOL_VERSIONS,
    daemon::{ClientCapabilities, InitializeParams, InitializeResult},
    error::Reason,
    id::SessionId,
    session::{After, SubscribeParams, SubscribeResult},
};
use futures_util::StreamExt;
use serde::{Serialize, de::DeserializeOwned};
use tokio::task::JoinHandle;

use crate::{
    ClientError, Connector, EventStream, Follow, Notices, Target,
    dispatch::{self, Shared},
    socket,
};

/// Default time limit of a call.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(120);
/// Time limit of the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Tasks of a connection, which ends when its last owner drops it.
pub(crate) struct Link {
    pub(crate) shared: Arc<Shared>,
    reader: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.reader.abort();
        self.shared.end("by this client");
    }
}

/// A connection to a daemon. Clones share it; it closes with the last clone and stream.
#[derive(Clone)]
pub struct Client {
    link: Arc<Link>,
    connector: Connector,
    hello: Arc<InitializeResult>,
}

impl Client {
    /// Connects to a daemon at a known address.
    ///
    /// # Errors
    /// As [`Connector::connect`].
    pub async fn connect(target: &Target) -> Result<Self, ClientError> {
        Connector::fixed(target.clone()).connect().await
    }

    pub(crate) async fn open(target: &Target, connector: Connector) -> Result<Self, ClientError> {
        let (sink, stream) = socket::open(target).await?.split();
        let (shared, outgoing) = Shared::new();
        let shared = Arc::new(shared);
        let reader_state = Arc::clone(&shared);
        let reader = tokio::spawn(async move {
            let why = tokio::select! {
                why = dispatch::read(&reader_state, stream) => why,
                why = dispatch::write(sink, outgoing) => why,
            };
            reader_state.end(&why);
        });
        let link = Arc::new(Link { shared, reader });
        let hello = handshake(&link, target, &connector).await?;
        Ok(Self { link, connector, hello: Arc::new(hello) })
    }

    /// Returns the daemon's answer to `initialize`.
    pub fn server(&self) -> &InitializeResult {
        &self.hello
    }

    /// Returns the connector that this client uses.
    pub fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Calls a method with the time limit [`CALL_TIMEOUT`].
    ///
    /// # Errors
    /// [`ClientError::Rpc`] with the daemon's error, or the reason why there is no answer.
    pub async fn call<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &str,
        params: &P,
    ) -> Result<R, ClientError> {
        call(&self.link, method, params, CALL_TIMEOUT).await
    }

    /// Calls a method with the time limit `within`. A call that is dropped or times out is
    /// cancelled.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn call_within<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &str,
        params: &P,
        within: Duration,
    ) -> Result<R, ClientError> {
        call(&self.link, method, params, within).await
    }

    /// Subscribes to a session over this connection: the records after `after`, then live ones. The
    /// stream ends with the connection.
    ///
    /// # Errors
    /// `session_not_found`, `after_beyond_head`, `overloaded`.
    pub async fn subscribe(
        &self,
        session: &SessionId,
        after: After,
    ) -> Result<EventStream, ClientError> {
        let shared = &self.link.shared;
        let (id, answer, records) = shared.begin_stream()?;
        let params = SubscribeParams { session_id: session.clone(), after: Some(after) };
        let method = "orchestrate.subscribe";
        let request = request(id, method, &params);
        let answer = finish(&self.link, id, answer, method, request, CALL_TIMEOUT).await;
        let result: SubscribeResult = parse(method, answer)?;
        Ok(EventStream {
            id: result.subscription_id,
            head_seq: result.head_seq,
            records,
            link: Arc::clone(&self.link),
        })
    }

    /// Follows a session over its own connection, which is re-established when it breaks: returns
    /// every record after `after` exactly once, in order.
    pub fn follow(&self, session: &SessionId, after: u64) -> Follow {
        Follow::new(self.connector.clone(), session.clone(), after)
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Returns the progress of requests of this connection, from now on.
    pub fn notices(&self) -> Notices {
        Notices(self.link.shared.listen())
    }
}

async fn handshake(
    link: &Link,
    target: &Target,
    connector: &Connector,
) -> Result<InitializeResult, ClientError> {
    let params = InitializeParams {
        protocol_versions: PROTOCOL_VERSIONS.iter().map(|v| (*v).to_owned()).collect(),
        client: connector.client_info().clone(),
        capabilities: ClientCapabilities { approvals: connector.answers_approvals() },
    };
    let hello: InitializeResult = match call(link, "initialize", &params, HANDSHAKE_TIMEOUT).await {
        Ok(hello) => hello,
        Err(ClientError::Rpc { message, data, .. })
            if data.reason == Reason::IncompatibleVersion.as_str() =>
        {
            let client = env!("CARGO_PKG_VERSION").to_owned();
            let daemon = target.version.clone().unwrap_or_else(|| "of unknown version".into());
            return Err(ClientError::Incompatible { client, daemon, message });
        }
        Err(error) => return Err(error),
    };
    if target.instance.as_ref().is_some_and(|expected| *expected != hello.server.instance_id) {
        let cause = "the daemon that answers is not the one in the address file".to_owned();
        return Err(ClientError::Connect { address: target.address.clone(), cause });
    }
    Ok(hello)
}

async fn call<P: Serialize, R: DeserializeOwned>(
    link: &Link,
    method: &str,
    params: &P,
    within: Duration,
) -> Result<R, ClientError> {
    let (id, answer) = link.shared.begin()?;
    let request = request(id, method, params);
    parse(method, finish(link, id, answer, method, request, within).await)
}

fn parse<R: DeserializeOwned>(method: &str, answer: dispatch::Answer) -> Result<R, ClientError> {
    serde_json::from_str(answer?.get()).map_err(|e| ClientError::Protocol(format!("{method}: {e}")))
}

/// Removes a pending call that is dropped before its answer.
pub(crate) struct Waiting(Arc<Shared>, u64);

impl Waiting {
    pub(crate) fn new(shared: &Arc<Shared>, id: u64) -> Self {
        Self(Arc::clone(shared), id)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.forget(self.1);
    }
}

/// Returns the text of a request.
pub(crate) fn request<P: Serialize>(
    id: u64,
    method: &str,
    params: &P,
) -> Result<String, ClientError> {
    let bad = |e: serde_json::Error| ClientError::Protocol(format!("{method}: {e}"));
    let params = serde_json::to_string(params).map_err(bad)?;
    let method = serde_json::to_string(method).map_err(bad)?;
    Ok(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#))
}

/// Sends a request and waits for its answer. It knows no type of a method, so that one instance of
/// it serves all of them.
fn finish<'a>(
    link: &'a Link,
    id: u64,
    answer: tokio::sync::oneshot::Receiver<dispatch::Answer>,
    method: &'a str,
    request: Result<String, ClientError>,
    within: Duration,
) -> Pin<Box<dyn Future<Output = dispatch::Answer> + Send + 'a>> {
    Box::pin(async move {
        let _waiting = Waiting::new(&link.shared, id);
        let text = request?;
        let exchange = async {
            link.shared.send(text).await?;
            answer.await.unwrap_or_else(|_| Err(link.shared.closed_error()))
        };
        tokio::time::timeout(within, exchange).await.unwrap_or_else(|_| {
            Err(ClientError::TimedOut { method: method.to_owned(), seconds: within.as_secs() })
        })
    })
}
