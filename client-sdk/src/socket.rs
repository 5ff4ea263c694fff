//! Opening the WebSocket.

use std::time::Duration;

use cairn_protocol::rpc;
use http::{HeaderValue, StatusCode, header};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{self, client::IntoClientRequest, protocol::WebSocketConfig},
};

use crate::{ClientError, Target};

/// The stream of a connection; a daemon is reached without TLS, by loopback or a closed network.
pub(crate) type Socket = WebSocketStream<TcpStream>;

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Read buffer: an idle client is cheap, and a large answer grows it only while it lasts.
const READ_BUFFER: usize = 16 * 1024;
/// Largest message taken from the daemon.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;

/// Connects and upgrades, for calls.
pub(crate) async fn open(target: &Target) -> Result<Socket, ClientError> {
    open_at(target, rpc::PATH).await
}

/// Connects and upgrades at a path.
pub(crate) async fn open_at(target: &Target, path: &str) -> Result<Socket, ClientError> {
    let failed = |cause: String| ClientError::Connect { address: target.address.clone(), cause };
    match tokio::time::timeout(CONNECT_TIMEOUT, upgrade(target, path)).await {
        Ok(opened) => opened,
        Err(_) => Err(failed(format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()))),
    }
}

async fn upgrade(target: &Target, path: &str) -> Result<Socket, ClientError> {
    let failed = |cause: String| ClientError::Connect { address: target.address.clone(), cause };
    let tcp = TcpStream::connect(&target.address).await.map_err(|e| failed(e.to_string()))?;
    tcp.set_nodelay(true).map_err(|e| failed(e.to_string()))?;
    let url = format!("ws://{}{path}", target.address);
    let mut request = url.into_client_request().map_err(|e| failed(e.to_string()))?;
    let mut bearer = HeaderValue::from_str(&format!("Bearer {}", target.token))
        .map_err(|_| failed("the token has characters that a header cannot carry".into()))?;
    bearer.set_sensitive(true);
    request.headers_mut().insert(header::AUTHORIZATION, bearer);
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    match client_async_with_config(request, tcp, Some(config)).await {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::Error::Http(response)) if response.status() == StatusCode::UNAUTHORIZED => {
            Err(ClientError::Unauthorized { address: target.address.clone() })
        }
        Err(tungstenite::Error::Http(response)) => Err(failed(refusal(&response))),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// The daemon's words in a refused upgrade.
fn refusal(response: &http::Response<Option<Vec<u8>>>) -> String {
    let body = response.body().as_deref().unwrap_or_default();
    let said = serde_json::from_slice::<serde_json::Value>(body).ok();
    let said = said.and_then(|v| v.get("error").and_then(|e| e.as_str()).map(str::to_owned));
    said.unwrap_or_else(|| format!("the answer was HTTP {}", response.status().as_u16()))
}
