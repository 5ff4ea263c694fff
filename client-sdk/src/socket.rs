//! Opening the WebSocket.

use std::time::Duration;

use cairn_pairing::{client_config, key_changed};
use cairn_protocol::{error::Reason, rpc};
use http::{HeaderValue, StatusCode, header};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::pki_types::ServerName};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{self, client::IntoClientRequest, protocol::WebSocketConfig},
};

use tokio_util::either::Either;

use crate::{ClientError, Target};

/// Stream of a connection: plain TCP to this machine's daemon, TLS to another one's.
pub(crate) type Socket = WebSocketStream<Either<TcpStream, Box<TlsStream<TcpStream>>>>;

/// Time limit for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Size of the read buffer: small for an idle client; a large answer grows it temporarily.
const READ_BUFFER: usize = 16 * 1024;
/// Maximum size of a message from the daemon.
const MAX_MESSAGE: usize = 64 * 1024 * 1024;

/// Connects and upgrades at the path for calls.
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
    let stream = match &target.tls {
        Some(_) => Either::Right(Box::new(tls(target).await?)),
        None => Either::Left(tcp(target).await?),
    };
    let url = format!("ws://{}{path}", target.address);
    let mut request = url.into_client_request().map_err(|e| failed(e.to_string()))?;
    if target.tls.is_none() {
        let mut bearer =
            HeaderValue::from_str(&format!("Bearer {}", target.token)).map_err(|_| {
                failed("the token contains characters that are invalid in a header".into())
            })?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, bearer);
    }
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    match client_async_with_config(request, stream, Some(config)).await {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::Error::Http(response))
            if response.status() == StatusCode::UNAUTHORIZED =>
        {
            let stranger = body_field(&response, "/data/reason")
                .is_some_and(|r| r == Reason::NotPaired.as_str());
            Err(match stranger {
                true => ClientError::NotPaired { host: target.address.clone() },
                false => ClientError::Unauthorized { address: target.address.clone() },
            })
        }
        Err(tungstenite::Error::Http(response))
            if body_field(&response, "/data/reason")
                .is_some_and(|reason| reason == Reason::Overloaded.as_str()) =>
        {
            let message = refusal(&response);
            Err(ClientError::Busy { address: target.address.clone(), message })
        }
        Err(tungstenite::Error::Http(response)) => Err(failed(refusal(&response))),
        Err(error) => Err(failed(error.to_string())),
    }
}

async fn tcp(target: &Target) -> Result<TcpStream, ClientError> {
    let failed = |e: std::io::Error| unreachable(target, &e);
    let tcp = TcpStream::connect(&target.address).await.map_err(failed)?;
    tcp.set_nodelay(true).map_err(failed)?;
    Ok(tcp)
}

fn unreachable(target: &Target, cause: &dyn std::fmt::Display) -> ClientError {
    ClientError::Connect { address: target.address.clone(), cause: cause.to_string() }
}

/// Connects by TLS and requires the expected key; accepts any key if none is given.
pub(crate) async fn tls(target: &Target) -> Result<TlsStream<TcpStream>, ClientError> {
    let Some(tls) = &target.tls else { return Err(unreachable(target, &"its key is unknown")) };
    let config =
        client_config(&tls.identity, tls.key).map_err(|e| ClientError::Remote(e.to_string()))?;
    // Peers are authenticated by key, not by name; no name is sent.
    let name = ServerName::try_from("cairn").map_err(|e| unreachable(target, &e))?;
    let shaken = TlsConnector::from(config).connect(name, tcp(target).await?);
    let shaken = tokio::time::timeout(CONNECT_TIMEOUT, shaken).await;
    let late =
        |_| unreachable(target, &format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()));
    shaken.map_err(late)?.map_err(|error| match key_changed(&error) {
        Some(changed) => ClientError::KeyChanged {
            address: target.address.clone(),
            expected: changed.expected.to_string(),
            seen: changed.seen.to_string(),
        },
        None => unreachable(target, &error),
    })
}

/// Returns a text from a refused upgrade.
fn body_field(response: &http::Response<Option<Vec<u8>>>, at: &str) -> Option<String> {
    let body = response.body().as_deref().unwrap_or_default();
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    body.pointer(at).and_then(|text| text.as_str()).map(str::to_owned)
}

/// Returns the daemon's message of a refused upgrade.
fn refusal(response: &http::Response<Option<Vec<u8>>>) -> String {
    body_field(response, "/error")
        .unwrap_or_else(|| format!("the answer was HTTP {}", response.status().as_u16()))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn refused(status: &str, body: &str) -> ClientError {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let length = body.len();
        let text = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _request = stream.read(&mut [0; 4096]).await;
            stream.write_all(text.as_bytes()).await.unwrap();
        });
        let token = "secret".to_owned();
        let target = Target { address, token, instance: None, version: None, tls: None };
        open(&target).await.unwrap_err()
    }

    #[tokio::test]
    async fn daemon_at_its_limit_is_busy() {
        let body = r#"{"error": "the daemon has reached its limit of connections",
            "data": {"reason": "overloaded"}}"#;
        let error = refused("503 Service Unavailable", body).await;
        assert!(matches!(error, ClientError::Busy { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("busy") && text.contains("its limit of connections"), "{text}");
        assert!(error.hint().unwrap().contains("resources.maxConnections"));
        let stopping =
            r#"{"error": "the daemon is stopping", "data": {"reason": "shutting_down"}}"#;
        let error = refused("503 Service Unavailable", stopping).await;
        assert!(matches!(error, ClientError::Connect { .. }), "{error:?}");
    }
}
