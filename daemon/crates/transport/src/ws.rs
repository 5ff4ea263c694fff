//! One WebSocket: text in, text out, with bounded buffers.

use std::time::Duration;

use axum::extract::{
    WebSocketUpgrade,
    ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code},
};
use cairn_api::{Connection, Outgoing};
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Read buffer of a connection. With the default of 128 KiB, idle clients would be expensive.
const READ_BUFFER: usize = 4 * 1024;
/// Bytes gathered before they are written without a flush.
const WRITE_BUFFER: usize = 64 * 1024;
/// Maximum bytes in a connection's writer, more than the largest answer.
const MAX_WRITE_BUFFER: usize = 64 * 1024 * 1024;
/// Interval of pings to a silent client.
const PING_EVERY: Duration = Duration::from_secs(45);
/// Time without progress after which a client is disconnected; it can reconnect and resume.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Sets the buffers and the message limit.
pub fn configure<F>(upgrade: WebSocketUpgrade<F>, max_message: usize) -> WebSocketUpgrade<F> {
    upgrade
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_write_buffer_size(MAX_WRITE_BUFFER)
        .max_message_size(max_message)
        .max_frame_size(max_message)
}

/// Closes the connection when its socket is gone, for whatever reason.
pub struct CloseOnDrop(pub Connection);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Receives the messages of a socket.
pub trait Peer: Send + Sync {
    /// Handles one message. Answers are sent separately; a client that does not read makes this
    /// wait.
    fn handle_message(&self, text: &str) -> impl Future<Output = ()> + Send;
}

/// A peer with a value that lives as long as its socket.
pub struct WithGuard<P, G>(pub P, pub G);

impl<P: Peer, G: Send + Sync> Peer for WithGuard<P, G> {
    async fn handle_message(&self, text: &str) {
        self.0.handle_message(text).await;
    }
}

impl Peer for CloseOnDrop {
    async fn handle_message(&self, text: &str) {
        self.0.handle_message(text).await;
    }
}

/// Serves a connection until either side ends it.
pub async fn run(
    socket: WebSocket,
    connection: impl Peer,
    outgoing: mpsc::Receiver<Outgoing>,
    shutdown: CancellationToken,
) {
    let (sink, stream) = socket.split();
    let (close, closing) = oneshot::channel();
    let mut writer = tokio::spawn(write(sink, outgoing, closing));
    let frame = tokio::select! {
        frame = read(stream, &connection) => frame,
        () = shutdown.cancelled() => Some(frame(close_code::AWAY, "the daemon is stopping")),
        _writer_finished = &mut writer => return,
    };
    // Sent before the connection ends, because that ends the writer. If the writer has already
    // ended, there is no client left to notify.
    let _writer_finished = close.send(frame);
    drop(connection);
    let _writer_finished = tokio::time::timeout(Duration::from_secs(2), writer).await;
}

fn frame(code: u16, reason: &'static str) -> CloseFrame {
    CloseFrame { code, reason: reason.into() }
}

/// Reads until the end and returns the close frame to send, if one is needed.
async fn read(mut stream: SplitStream<WebSocket>, connection: &impl Peer) -> Option<CloseFrame> {
    while let Some(message) = stream.next().await {
        match message {
            Ok(Message::Text(text)) => connection.handle_message(text.as_str()).await,
            Ok(Message::Binary(_)) => {
                return Some(frame(close_code::UNSUPPORTED, "messages must be text"));
            }
            Ok(Message::Close(_)) => return None,
            Ok(Message::Ping(_) | Message::Pong(_)) => {}
            Err(error) => return close_for(error),
        }
    }
    None
}

/// Returns the close frame for a broken stream (RFC 6455, section 7.4.1).
fn close_for(error: axum::Error) -> Option<CloseFrame> {
    use tungstenite::error::{Error, ProtocolError};
    let error = error.into_inner();
    match error.downcast_ref::<Error>() {
        Some(Error::Capacity(_)) => {
            Some(frame(close_code::SIZE, "the message is over limits.maxMessageBytes"))
        }
        Some(Error::Utf8(_)) => Some(frame(close_code::INVALID, "text must be utf-8")),
        Some(
            Error::ConnectionClosed
            | Error::AlreadyClosed
            | Error::Io(_)
            | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake),
        ) => None,
        _ => Some(frame(close_code::PROTOCOL, "not a websocket frame")),
    }
}

async fn write(
    mut sink: SplitSink<WebSocket, Message>,
    mut outgoing: mpsc::Receiver<Outgoing>,
    mut closing: oneshot::Receiver<Option<CloseFrame>>,
) {
    let mut ping = tokio::time::interval_at(tokio::time::Instant::now() + PING_EVERY, PING_EVERY);
    loop {
        let sent = tokio::select! {
            biased;
            next = outgoing.recv() => match next {
                Some(first) => with_timeout(send_all(&mut sink, first, &mut outgoing)).await,
                None => return end(sink, closing.try_recv().ok().flatten()).await,
            },
            frame = &mut closing => return end(sink, frame.ok().flatten()).await,
            _ = ping.tick() => with_timeout(sink.send(Message::Ping(Vec::new().into()))).await,
        };
        if sent.is_none() {
            return;
        }
    }
}

async fn end(mut sink: SplitSink<WebSocket, Message>, frame: Option<CloseFrame>) {
    if let Some(frame) = frame {
        let _disconnected = with_timeout(sink.send(Message::Close(Some(frame)))).await;
    }
    let _disconnected = with_timeout(sink.close()).await;
}

/// Returns `None` when the client has disconnected or does not read.
async fn with_timeout<E>(write: impl Future<Output = Result<(), E>>) -> Option<()> {
    tokio::time::timeout(WRITE_TIMEOUT, write).await.ok()?.ok()
}

/// Feeds the queued messages, then flushes once.
async fn send_all(
    sink: &mut SplitSink<WebSocket, Message>,
    first: Outgoing,
    outgoing: &mut mpsc::Receiver<Outgoing>,
) -> Result<(), axum::Error> {
    let mut next = Some(first);
    let mut room = crate::ws::MAX_BURST;
    while let Some(item) = next {
        match item {
            Outgoing::One(text) => sink.feed(Message::Text(text.into())).await?,
            Outgoing::Many(texts) => {
                for text in texts {
                    let text = Utf8Bytes::try_from(text.into_bytes()).unwrap_or_default();
                    sink.feed(Message::Text(text)).await?;
                }
            }
        }
        room -= 1;
        next = if room > 0 { outgoing.try_recv().ok() } else { None };
    }
    sink.flush().await
}

/// Maximum number of messages between flushes.
const MAX_BURST: usize = 64;

#[cfg(test)]
mod tests {
    use tungstenite::error::{CapacityError, Error, ProtocolError};

    use super::*;

    // The versions of tungstenite here and in axum must match, or every error would count as
    // unknown.
    #[test]
    fn stream_errors_map_to_close_codes() {
        let code = |error: Error| close_for(axum::Error::new(error)).map(|frame| frame.code);
        let large = Error::Capacity(CapacityError::MessageTooLong { size: 2, max_size: 1 });
        assert_eq!(code(large), Some(close_code::SIZE));
        assert_eq!(code(Error::Utf8("reset".into())), Some(close_code::INVALID));
        assert_eq!(code(Error::Io(std::io::Error::other("too long"))), None);
        assert_eq!(code(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)), None);
        assert_eq!(
            code(Error::Protocol(ProtocolError::NonZeroReservedBits)),
            Some(close_code::PROTOCOL)
        );
    }
}
