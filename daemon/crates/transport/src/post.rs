//! JSON-RPC by HTTP: a message is the body of a POST, its answer the body of the response or an event of it.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Path, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use cairn_api::{Connection, Outgoing};
use cairn_protocol::error::{Failure, Reason};
use serde_json::json;
use tokio::sync::mpsc;

use crate::{
    admission::Admission,
    follow::{self, Source},
    held::Lease,
    http::Shared,
    sse::{self, Form},
    ws::CloseOnDrop,
};

/// Names a connection that was begun by an `initialize` by POST.
pub const CONNECTION: HeaderName = HeaderName::from_static("cairn-connection");
/// Names the protocol version of a single call without an `initialize`.
pub const PROTOCOL: HeaderName = HeaderName::from_static("cairn-protocol");
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How long a client may take to send a message.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// What keeps a connection open while a request uses it.
pub enum Keep {
    /// It lives on after the request.
    Held(Lease),
    /// It ends with the request.
    Once(CloseOnDrop),
}

impl Keep {
    /// The connection.
    pub fn connection(&self) -> &Connection {
        match self {
            Keep::Held(lease) => lease.connection(),
            Keep::Once(connection) => &connection.0,
        }
    }
}

fn text_of<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// An answer of JSON-RPC to a request that reached no method.
fn refused(status: StatusCode, failure: &Failure) -> Response {
    json_response(status, cairn_api::refusal(failure))
}

fn json_response(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

fn status_of(failure: &Failure) -> StatusCode {
    match failure.reason {
        Reason::Overloaded | Reason::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
        Reason::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Reason::NotInitialized | Reason::SessionNotFound => StatusCode::NOT_FOUND,
        _ => StatusCode::BAD_REQUEST,
    }
}

fn no_connection() -> Response {
    let text = "there is no such connection, or it has expired; begin one with initialize";
    refused(StatusCode::NOT_FOUND, &Failure::new(Reason::NotInitialized, text))
}

/// `POST /rpc`: one message or batch.
pub async fn post(
    State(shared): State<Shared>,
    admitted: Admission,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let owner = admitted.owner;
    // Found first: what names no connection is not worth reading.
    let held = match headers.get(&CONNECTION) {
        Some(id) => match shared.held.find(id.to_str().unwrap_or_default(), &owner) {
            Some(lease) => Some(lease),
            None => return no_connection(),
        },
        None => None,
    };
    let text = match read(&shared, &headers, body).await {
        Ok(text) => text,
        Err(failure) => return refused(status_of(&failure), &failure),
    };
    if let Some(lease) = held {
        return answer(&shared, &headers, &text, Keep::Held(lease), None).await;
    }
    let (connection, notes) = match Connection::open(&shared.api, admitted.rights) {
        Ok((connection, notes)) => (CloseOnDrop(connection), notes),
        Err(failure) => return refused(status_of(&failure), &failure),
    };
    if follow::is_handshake(&text) {
        return begin(&shared, &text, connection, notes, &owner).await;
    }
    if let Some(version) = text_of(&headers, &PROTOCOL)
        && let Err(refusal) = handshake(&connection.0, version, &headers).await
    {
        return json_response(StatusCode::BAD_REQUEST, refusal);
    }
    answer(&shared, &headers, &text, Keep::Once(connection), Some(notes)).await
}

/// `DELETE /rpc`: the end of a connection.
pub async fn end(State(shared): State<Shared>, admitted: Admission, headers: HeaderMap) -> Response {
    let id = text_of(&headers, &CONNECTION).unwrap_or_default();
    match shared.held.remove(id, &admitted.owner) {
        true => StatusCode::NO_CONTENT.into_response(),
        false => no_connection(),
    }
}

/// `GET /events`: what a connection is told besides its answers.
pub async fn events(State(shared): State<Shared>, admitted: Admission, headers: HeaderMap) -> Response {
    let id = text_of(&headers, &CONNECTION).unwrap_or_default();
    let Some(lease) = shared.held.find(id, &admitted.owner) else { return no_connection() };
    let (mut notes, wanted) = lease.take_notes().await;
    let left = match text_of(&headers, &LAST_EVENT_ID).and_then(|id| id.rsplit_once(':')) {
        Some((session, seq)) => match follow::resume(lease.connection(), &mut notes, session, seq).await {
            Ok(left) => left,
            Err(refusal) => return json_response(StatusCode::BAD_REQUEST, refusal),
        },
        None => None,
    };
    let (stream, response) = sse::response(Form::Messages);
    let source = Source { notes: Some(follow::Notes::Held(notes)), wanted: Some(wanted), left, answer: None };
    shared.sockets.spawn(follow::run(stream, source, Keep::Held(lease), shared.shutdown.clone()));
    response
}

/// `GET /sessions/{id}/events?after=N`: the records of one session.
pub async fn session(
    State(shared): State<Shared>,
    admitted: Admission,
    Path(session): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let query = uri.query().unwrap_or_default();
    let asked = query.split('&').find_map(|pair| pair.strip_prefix("after="));
    // A stream that is taken up again goes on where it was cut, whatever its address says.
    let after = text_of(&headers, &LAST_EVENT_ID).or(asked).unwrap_or("0");
    let after = after.parse::<u64>().map_or_else(|_| json!(after), |seq| json!(seq));
    let (connection, notes) = match Connection::open(&shared.api, admitted.rights) {
        Ok((connection, notes)) => (CloseOnDrop(connection), notes),
        Err(failure) => return refused(status_of(&failure), &failure),
    };
    let version = text_of(&headers, &PROTOCOL).unwrap_or(cairn_protocol::PROTOCOL_VERSIONS[0]);
    if let Err(refusal) = handshake(&connection.0, version, &headers).await {
        return json_response(StatusCode::BAD_REQUEST, refusal);
    }
    let params = json!({"sessionId": session, "after": after});
    if let Err(refusal) = follow::ask(&connection.0, "orchestrate.subscribe", &params).await {
        let gone = follow::reason_of(&refusal).as_deref() == Some(Reason::SessionNotFound.as_str());
        return json_response(if gone { StatusCode::NOT_FOUND } else { StatusCode::BAD_REQUEST }, refusal);
    }
    let (stream, response) = sse::response(Form::Records);
    let notes = follow::Notes::Once(notes);
    let source = Source { notes: Some(notes), wanted: None, left: None, answer: None };
    shared.sockets.spawn(follow::run(stream, source, Keep::Once(connection), shared.shutdown.clone()));
    response
}

/// The message, within the limits of size and time.
async fn read(shared: &Shared, headers: &HeaderMap, body: Body) -> Result<String, Failure> {
    let limit = usize::try_from(shared.api.limits().max_message_bytes).unwrap_or(usize::MAX);
    let large = || {
        Failure::new(Reason::TooLarge, format!("the message is over limits.maxMessageBytes, {limit} bytes"))
    };
    let said = text_of(headers, &header::CONTENT_LENGTH).and_then(|n| n.parse::<usize>().ok());
    if said.is_some_and(|said| said > limit) {
        return Err(large());
    }
    let bytes = tokio::time::timeout(BODY_TIMEOUT, axum::body::to_bytes(body, limit)).await;
    let late = |_| Failure::new(Reason::InvalidRequest, "the message did not come in time");
    let bytes = bytes.map_err(late)?.map_err(|_| large())?;
    String::from_utf8(bytes.into()).map_err(|_| Failure::new(Reason::ParseError, "the message is not utf-8"))
}

/// Begins a connection that later requests name.
async fn begin(
    shared: &Shared,
    text: &str,
    connection: CloseOnDrop,
    notes: mpsc::Receiver<Outgoing>,
    owner: &str,
) -> Response {
    let (to, mut answers) = mpsc::channel(1);
    connection.0.handle_message_to(text, &to).await;
    drop(to);
    let Some(answer) = answers.recv().await else { return StatusCode::ACCEPTED.into_response() };
    let answer = answer.into_texts().concat();
    if follow::is_error(&answer) {
        return json_response(StatusCode::OK, answer);
    }
    match shared.held.insert(connection, notes, owner) {
        Ok(id) => {
            let mut response = json_response(StatusCode::OK, answer);
            if let Ok(id) = HeaderValue::from_str(&id) {
                response.headers_mut().insert(CONNECTION, id);
            }
            response
        }
        Err(failure) => refused(status_of(&failure), &failure),
    }
}

/// The handshake of a connection for one request; the error is the daemon's answer.
async fn handshake(connection: &Connection, version: &str, headers: &HeaderMap) -> Result<(), String> {
    let agent = text_of(headers, &header::USER_AGENT).unwrap_or_default();
    let (name, its) = agent.split(' ').next().unwrap_or_default().split_once('/').unwrap_or((agent, ""));
    let short = |text: &str| text.chars().take(64).collect::<String>();
    let name = if name.is_empty() { "http".to_owned() } else { short(name) };
    let params = json!({"protocolVersions": [version], "client": {"name": name, "version": short(its)}});
    follow::ask(connection, "initialize", &params).await.map(|_| ())
}

/// Gives a message to its connection, and the answer to the client.
async fn answer(
    shared: &Shared,
    headers: &HeaderMap,
    text: &str,
    keep: Keep,
    notes: Option<mpsc::Receiver<Outgoing>>,
) -> Response {
    let (to, mut answers) = mpsc::channel(1);
    let as_events = headers.get_all(header::ACCEPT).iter().filter_map(|h| h.to_str().ok());
    let as_events = as_events.flat_map(|h| h.split(',')).any(|h| h.trim().starts_with("text/event-stream"));
    if !as_events {
        drop(notes);
        keep.connection().handle_message_to(text, &to).await;
        drop(to);
        return match answers.recv().await {
            Some(answer) => json_response(StatusCode::OK, answer.into_texts().concat()),
            None => StatusCode::ACCEPTED.into_response(),
        };
    }
    // What belongs to a call comes with its answer, unless the connection's notifications have a reader of their own.
    let (notes, wanted) = match &keep {
        Keep::Held(lease) => {
            let wanted = lease.wanted();
            (lease.free_notes().map(follow::Notes::Held), Some(wanted))
        }
        Keep::Once(_) => (notes.map(follow::Notes::Once), None),
    };
    let (stream, response) = sse::response(Form::Messages);
    let calls = follow::calls(text, matches!(keep, Keep::Once(_)));
    let text: Arc<str> = text.into();
    let answer = Some(follow::Pending { answers, calls });
    let source = Source { notes, wanted, left: None, answer };
    let connection = keep.connection().clone();
    shared.sockets.spawn(follow::run(stream, source, keep, shared.shutdown.clone()));
    connection.handle_message_to(&text, &to).await;
    response
}
