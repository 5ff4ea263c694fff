//! MCP over a WebSocket, with one JSON-RPC message per text frame, as used by the bridge of `cairn
//! mcp`.

use std::{io, sync::Arc, time::Duration};

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use rmcp::{
    RoleServer,
    service::{RxJsonRpcMessage, TxJsonRpcMessage, serve_server_with_ct},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Host, Server};

/// Capacity of the outgoing api. When it is full, the client's calls wait.
const OUTGOING_CAPACITY: usize = 64;
/// Interval of pings to a silent client.
const PING_EVERY: Duration = Duration::from_secs(45);
/// Time without progress after which a client is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Serves one client with this query until either side ends the connection.
pub async fn run(
    socket: WebSocket,
    host: Arc<Host>,
    query: Option<String>,
    shutdown: CancellationToken,
) {
    let (sink, stream) = socket.split();
    let (out, outgoing) = mpsc::channel::<String>(OUTGOING_CAPACITY);
    let writer = tokio::spawn(write(sink, outgoing, shutdown.clone()));
    // A child token, because cancelling the connection must not stop the daemon.
    let builtin_tools = shutdown.child_token();
    let messages = Box::pin(messages(stream, out.clone()));
    let replies = Box::pin(futures_util::sink::unfold(
        out,
        |out, message: TxJsonRpcMessage<RoleServer>| async move {
            let text = serde_json::to_string(&message).map_err(io::Error::other)?;
            out.send(text).await.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            Ok::<_, io::Error>(out)
        },
    ));
    let server = Server::for_query(host, query.as_deref());
    match serve_server_with_ct(server, (replies, messages), builtin_tools).await {
        Ok(running) => {
            if let Err(error) = running.waiting().await {
                tracing::warn!(%error, "an mcp connection failed");
            }
        }
        Err(error) => tracing::debug!(%error, "an mcp connection could not be opened"),
    }
    let _finished = tokio::time::timeout(Duration::from_secs(2), writer).await;
}

/// Parses a client's messages; invalid ones are answered here.
fn messages(
    stream: SplitStream<WebSocket>,
    out: mpsc::Sender<String>,
) -> impl futures_util::Stream<Item = RxJsonRpcMessage<RoleServer>> {
    futures_util::stream::unfold((stream, out), |(mut stream, out)| async move {
        loop {
            let text = match stream.next().await? {
                Ok(Message::Text(text)) => text,
                Ok(Message::Ping(_) | Message::Pong(_)) => continue,
                Ok(Message::Binary(_) | Message::Close(_)) | Err(_) => return None,
            };
            match serde_json::from_str(text.as_str()) {
                Ok(message) => return Some((message, (stream, out))),
                Err(error) => {
                    if out.send(invalid_message(text.as_str(), &error)).await.is_err() {
                        return None;
                    }
                }
            }
        }
    })
}

/// Renders the answer to an invalid message.
fn invalid_message(text: &str, error: &serde_json::Error) -> String {
    let value = serde_json::from_str::<serde_json::Value>(text);
    let id =
        value.as_ref().ok().and_then(|v| v.get("id")).filter(|id| id.is_string() || id.is_number());
    let (code, what) = match &value {
        Err(_) => (-32700, format!("not json: {error}")),
        Ok(serde_json::Value::Array(_)) => {
            (-32600, "batches are not part of this protocol".to_owned())
        }
        Ok(_) => (-32600, "not a message of this protocol".to_owned()),
    };
    serde_json::json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": what}})
        .to_string()
}

async fn write(
    mut sink: SplitSink<WebSocket, Message>,
    mut outgoing: mpsc::Receiver<String>,
    shutdown: CancellationToken,
) {
    let mut ping = tokio::time::interval(PING_EVERY);
    ping.tick().await;
    loop {
        let message = tokio::select! {
            text = outgoing.recv() => match text {
                Some(text) => Message::Text(text.into()),
                None => break,
            },
            _ = ping.tick() => Message::Ping(bytes::Bytes::new()),
            () = shutdown.cancelled() => break,
        };
        match tokio::time::timeout(WRITE_TIMEOUT, sink.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
    let close = CloseFrame { code: close_code::AWAY, reason: "the connection has ended".into() };
    let _disconnected =
        tokio::time::timeout(Duration::from_secs(2), sink.send(Message::Close(Some(close)))).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_message_is_answered_with_its_id() {
        for (text, code, id) in [
            ("{", -32700, serde_json::json!(null)),
            ("[]", -32600, serde_json::json!(null)),
            (r#"{"id": 7}"#, -32600, serde_json::json!(7)),
            (r#"{"id": {}}"#, -32600, serde_json::json!(null)),
        ] {
            let error = serde_json::from_str::<RxJsonRpcMessage<RoleServer>>(text).unwrap_err();
            let answer: serde_json::Value =
                serde_json::from_str(&invalid_message(text, &error)).unwrap();
            assert_eq!(
                (answer["error"]["code"].as_i64(), &answer["id"]),
                (Some(code), &id),
                "{text}"
            );
        }
    }
}
