//! MCP over a WebSocket: a JSON-RPC message in each text frame. The bridge of `cairn mcp` speaks it.

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

/// Messages that wait for a slow client; then its calls wait.
const OUTGOING: usize = 64;
/// A client that is silent is asked whether it lives.
const PING_EVERY: Duration = Duration::from_secs(45);
/// A client that takes nothing for so long is dropped.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs one client of `root` until either side ends it.
pub async fn run(socket: WebSocket, host: Arc<Host>, root: Option<String>, shutdown: CancellationToken) {
    let (sink, stream) = socket.split();
    let (out, outgoing) = mpsc::channel::<String>(OUTGOING);
    let writer = tokio::spawn(write(sink, outgoing, shutdown.clone()));
    // Of its own: it is cancelled with the connection, which must not end the daemon.
    let own = shutdown.child_token();
    let messages = Box::pin(messages(stream, out.clone()));
    let replies =
        Box::pin(futures_util::sink::unfold(out, |out, message: TxJsonRpcMessage<RoleServer>| async move {
            let text = serde_json::to_string(&message).map_err(io::Error::other)?;
            out.send(text).await.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            Ok::<_, io::Error>(out)
        }));
    match serve_server_with_ct(Server::for_root(host, root), (replies, messages), own).await {
        Ok(running) => {
            if let Err(error) = running.waiting().await {
                tracing::warn!(%error, "an mcp connection ended badly");
            }
        }
        Err(error) => tracing::debug!(%error, "an mcp connection did not begin"),
    }
    let _ended = tokio::time::timeout(Duration::from_secs(2), writer).await;
}

/// The messages of a client. What is none is answered here and now.
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
                    if out.send(complaint(text.as_str(), &error)).await.is_err() {
                        return None;
                    }
                }
            }
        }
    })
}

/// The answer to what is no message.
fn complaint(text: &str, error: &serde_json::Error) -> String {
    let value = serde_json::from_str::<serde_json::Value>(text);
    let id = value.as_ref().ok().and_then(|v| v.get("id")).filter(|id| id.is_string() || id.is_number());
    let (code, what) = match &value {
        Err(_) => (-32700, format!("not json: {error}")),
        Ok(serde_json::Value::Array(_)) => (-32600, "batches are not part of this protocol".to_owned()),
        Ok(_) => (-32600, "not a message of this protocol".to_owned()),
    };
    serde_json::json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": what}}).to_string()
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
    let _gone = tokio::time::timeout(Duration::from_secs(2), sink.send(Message::Close(Some(close)))).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_answered_with_its_id() {
        for (text, code, id) in [
            ("{", -32700, serde_json::json!(null)),
            ("[]", -32600, serde_json::json!(null)),
            (r#"{"id": 7}"#, -32600, serde_json::json!(7)),
            (r#"{"id": {}}"#, -32600, serde_json::json!(null)),
        ] {
            let error = serde_json::from_str::<RxJsonRpcMessage<RoleServer>>(text).unwrap_err();
            let answer: serde_json::Value = serde_json::from_str(&complaint(text, &error)).unwrap();
            assert_eq!((answer["error"]["code"].as_i64(), &answer["id"]), (Some(code), &id), "{text}");
        }
    }
}
