//! Server-sent events: a stream of messages to a client at its own pace.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, header},
    response::Response,
};
use cairn_protocol::rpc;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

/// Events that wait in a stream's writer; then its source waits.
const QUEUE: usize = 4;
/// A silent stream says that it lives.
pub const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// A client that takes nothing for so long is dropped; it can come back and resume.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// How messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Whole JSON-RPC messages; the id of an event is `<sessionId>:<seq>`.
    Messages,
    /// The records of one session by themselves; the id of an event is its `seq`.
    Records,
}

/// The end that writes.
pub struct Stream {
    out: mpsc::Sender<Bytes>,
    form: Form,
}

/// The client is gone, or takes nothing any more.
#[derive(Debug, PartialEq, Eq)]
pub struct Gone;

/// A notification as far as a stream needs to know it.
#[derive(Deserialize)]
pub struct Note<'a> {
    /// Its name; answers have none.
    #[serde(default)]
    pub method: &'a str,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Where an event belongs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Place<'a> {
    /// The subscription that brings it.
    pub subscription_id: &'a str,
    /// Its session.
    pub session_id: &'a str,
    /// Its number; events that are live only have none.
    #[serde(default)]
    pub seq: Option<u64>,
}

impl<'a> Note<'a> {
    /// Reads a message.
    pub fn read(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Where an event belongs; `None` for everything else.
    pub fn place(&self) -> Option<Place<'a>> {
        if self.method != rpc::EVENT {
            return None;
        }
        serde_json::from_str(self.params?.get()).ok()
    }

    /// Its parameters as `T`.
    pub fn params<T: Deserialize<'a>>(&self) -> Option<T> {
        serde_json::from_str(self.params?.get()).ok()
    }
}

/// A response whose body is what the stream is given.
pub fn response(form: Form) -> (Stream, Response) {
    let (out, chunks) = mpsc::channel::<Bytes>(QUEUE);
    let body = futures_util::stream::unfold(chunks, |mut chunks| async move {
        let chunk = chunks.recv().await?;
        Some((Ok::<_, Infallible>(chunk), chunks))
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    (Stream { out, form }, response)
}

impl Stream {
    /// Sends one message.
    pub async fn send(&self, text: &str) -> Result<(), Gone> {
        self.write(chunk(text, self.form)).await
    }

    /// Says that it lives.
    pub async fn alive(&self) -> Result<(), Gone> {
        self.write(":\n\n".into()).await
    }

    /// Comes when the client has gone.
    pub async fn closed(&self) {
        self.out.closed().await;
    }

    async fn write(&self, text: String) -> Result<(), Gone> {
        match tokio::time::timeout(WRITE_TIMEOUT, self.out.send(text.into())).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Gone),
        }
    }
}

/// A message as an event of the stream.
fn chunk(text: &str, form: Form) -> String {
    let note = Note::read(text).filter(|note| !note.method.is_empty());
    let place = note.as_ref().and_then(Note::place);
    let (mut out, mut data) = (String::with_capacity(text.len() + 64), text);
    if let Some(Place { session_id, seq: Some(seq), .. }) = place {
        out.push_str(&match form {
            Form::Messages => format!("id: {session_id}:{seq}\n"),
            Form::Records => format!("id: {seq}\n"),
        });
    }
    if let (Form::Records, Some(note)) = (form, &note) {
        if note.method != rpc::EVENT {
            out.push_str(&format!("event: {}\n", note.method.rsplit('.').next().unwrap_or_default()));
        }
        data = note.params.map_or("{}", RawValue::get);
    }
    // JSON has line ends between its tokens alone; a stream takes each line by itself.
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
    fn messages_become_events() {
        let event = r#"{"jsonrpc":"2.0","method":"orchestrate.event","params":{"subscriptionId":"sub_1","sessionId":"ses_1","seq":7,"evt":{}}}"#;
        let live = r#"{"jsonrpc":"2.0","method":"orchestrate.event","params":{"subscriptionId":"sub_1","sessionId":"ses_1","evt":{}}}"#;
        let synced = r#"{"jsonrpc":"2.0","method":"orchestrate.synced","params":{"seq":7}}"#;
        for (text, form, want) in [
            ("{\"id\":1,\n\"result\":0}", Form::Messages, "data: {\"id\":1,\ndata: \"result\":0}\n\n".to_owned()),
            (event, Form::Messages, format!("id: ses_1:7\ndata: {event}\n\n")),
            (live, Form::Messages, format!("data: {live}\n\n")),
            (synced, Form::Messages, format!("data: {synced}\n\n")),
            (event, Form::Records, "id: 7\ndata: {\"subscriptionId\":\"sub_1\",\"sessionId\":\"ses_1\",\"seq\":7,\"evt\":{}}\n\n".into()),
            (synced, Form::Records, "event: synced\ndata: {\"seq\":7}\n\n".into()),
        ] {
            assert_eq!(chunk(text, form), want);
        }
    }
}
