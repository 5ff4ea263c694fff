//! Server-sent events: a stream of messages at the pace of its client.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, header},
    response::Response,
};
use cairn_protocol::rpc::{self, Frame};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

/// Capacity of the writer's queue. When it is full, the source waits.
const QUEUE_CAPACITY: usize = 4;
/// Interval of keep-alive comments on a silent stream.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Time without progress after which a client is disconnected; it can reconnect and resume.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// The format of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Complete JSON-RPC messages; the id of an event is `<sessionId>:<seq>`.
    Messages,
    /// The records of one session only; the id of an event is its `seq`.
    Records,
}

/// The writing end of a stream.
pub struct Stream {
    out: mpsc::Sender<Bytes>,
    format: Format,
}

/// The client has disconnected or does not read.
#[derive(Debug, PartialEq, Eq)]
pub struct Disconnected;

/// The position of an event.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Position<'a> {
    /// The subscription that delivers it.
    pub subscription_id: &'a str,
    pub session_id: &'a str,
    /// Ephemeral events have no number.
    #[serde(default)]
    pub seq: Option<u64>,
}

impl<'a> Position<'a> {
    /// Returns the position of an event; `None` for every other message.
    pub fn of(frame: &Frame<'a>) -> Option<Self> {
        if frame.method.as_deref() != Some(rpc::EVENT) {
            return None;
        }
        frame.params_as()
    }
}

/// Creates a stream and the response whose body it writes.
pub fn response(format: Format) -> (Stream, Response) {
    let (out, chunks) = mpsc::channel::<Bytes>(QUEUE_CAPACITY);
    let body = futures_util::stream::unfold(chunks, |mut chunks| async move {
        let chunk = chunks.recv().await?;
        Some((Ok::<_, Infallible>(chunk), chunks))
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    (Stream { out, format }, response)
}

impl Stream {
    pub async fn send(&self, text: &str) -> Result<(), Disconnected> {
        self.write(chunk(text, self.format)).await
    }

    /// Sends a keep-alive comment.
    pub async fn keep_alive(&self) -> Result<(), Disconnected> {
        self.write(":\n\n".into()).await
    }

    /// Resolves when the client has disconnected.
    pub async fn closed(&self) {
        self.out.closed().await;
    }

    async fn write(&self, text: String) -> Result<(), Disconnected> {
        match tokio::time::timeout(WRITE_TIMEOUT, self.out.send(text.into())).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Disconnected),
        }
    }
}

/// Formats a message as an event.
fn chunk(text: &str, format: Format) -> String {
    let frame = Frame::parse(text).ok();
    let position = frame.as_ref().and_then(Position::of);
    let mut out = String::with_capacity(text.len() + 64);
    let mut data = text;
    if let Some(Position { session_id, seq: Some(seq), .. }) = position {
        out.push_str(&match format {
            Format::Messages => format!("id: {session_id}:{seq}\n"),
            Format::Records => format!("id: {seq}\n"),
        });
    }
    if format == Format::Records
        && let Some(frame) = &frame
        && let Some(method) = &frame.method
    {
        if method != rpc::EVENT {
            out.push_str(&format!("event: {}\n", method.rsplit('.').next().unwrap_or_default()));
        }
        data = frame.params.map_or("{}", RawValue::get);
    }
    // JSON contains line breaks only between tokens, and server-sent events need each line in a
    // field of its own.
    for line in data.split(['\n', '\r']).filter(|line| !line.is_empty()) {
        out.push_str("data: ");
        out.push_str(line);
        out.push('\n');
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_formatted_as_events() {
        let event = r#"{"jsonrpc":"2.0","method":"orchestrate.event","params":{"subscriptionId":"sub_1","sessionId":"ses_1","seq":7,"evt":{}}}"#;
        let live = r#"{"jsonrpc":"2.0","method":"orchestrate.event","params":{"subscriptionId":"sub_1","sessionId":"ses_1","evt":{}}}"#;
        let synced = r#"{"jsonrpc":"2.0","method":"orchestrate.synced","params":{"seq":7}}"#;
        for (text, format, expected) in [
            ("{\"id\":1,\n\"result\":0}", Format::Messages, "data: {\"id\":1,\ndata: \"result\":0}\n\n".to_owned()),
            (event, Format::Messages, format!("id: ses_1:7\ndata: {event}\n\n")),
            (live, Format::Messages, format!("data: {live}\n\n")),
            (synced, Format::Messages, format!("data: {synced}\n\n")),
            (event, Format::Records, "id: 7\ndata: {\"subscriptionId\":\"sub_1\",\"sessionId\":\"ses_1\",\"seq\":7,\"evt\":{}}\n\n".into()),
            (synced, Format::Records, "event: synced\ndata: {\"seq\":7}\n\n".into()),
        ] {
            assert_eq!(chunk(text, format), expected);
        }
    }
}
