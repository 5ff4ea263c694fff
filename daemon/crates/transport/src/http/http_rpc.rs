//! JSON-RPC over HTTP: a message is the body of a POST, its answer the body of the response or an
//! event in it.

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

use super::{
    Shared,
    event_stream::{self, Source},
    http_sessions::Lease,
    sse::{self, Format},
};
use crate::{admission::Admission, ws::CloseOnDrop};

/// Identifies a session that was created by an `initialize` request.
pub const CONNECTION: HeaderName = HeaderName::from_static("cairn-connection");
/// The protocol version of a single call without `initialize`.
pub const PROTOCOL: HeaderName = HeaderName::from_static("cairn-protocol");
pub const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Time that a client may take to send a message.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// The owner of a connection while a request uses it.
pub enum ConnectionOwner {
    /// The connection outlives the request.
    Session(Lease),
    /// The connection ends with the request.
    Request(CloseOnDrop),
}

impl ConnectionOwner {
    pub fn connection(&self) -> &Connection {
        match self {
            ConnectionOwner::Session(lease) => lease.connection(),
            ConnectionOwner::Request(connection) => &connection.0,
        }
    }
}

fn header_text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Builds a JSON-RPC error for a request that reached no method.
fn refusal(status: StatusCode, failure: &Failure) -> Response {
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
    let text = "there is no such connection, or it has expired; create one with initialize";
    refusal(StatusCode::NOT_FOUND, &Failure::new(Reason::NotInitialized, text))
}

/// Handles `POST /rpc`: one message or batch.
pub async fn post(
    State(shared): State<Shared>,
    admitted: Admission,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let owner = admitted.owner;
    // Looked up first, because the body for an unknown session need not be read.
    let sessions = match headers.get(&CONNECTION) {
        Some(id) => match shared.sessions.find(id.to_str().unwrap_or_default(), &owner) {
            Some(lease) => Some(lease),
            None => return no_connection(),
        },
        None => None,
    };
    let text = match read(&shared, &headers, body).await {
        Ok(text) => text,
        Err(failure) => return refusal(status_of(&failure), &failure),
    };
    if let Some(lease) = sessions {
        return answer(&shared, &headers, &text, ConnectionOwner::Session(lease), None).await;
    }
    let (connection, notes) = match Connection::open(&shared.api, admitted.rights) {
        Ok((connection, notes)) => (CloseOnDrop(connection), notes),
        Err(failure) => return refusal(status_of(&failure), &failure),
    };
    if event_stream::is_handshake(&text) {
        return begin(&shared, &text, connection, notes, &owner).await;
    }
    if let Some(version) = header_text(&headers, &PROTOCOL)
        && let Err(refusal) = handshake(&connection.0, version, &headers).await
    {
        return json_response(StatusCode::BAD_REQUEST, refusal);
    }
    answer(&shared, &headers, &text, ConnectionOwner::Request(connection), Some(notes)).await
}

/// Handles `DELETE /rpc`: closes a session.
pub async fn end(
    State(shared): State<Shared>,
    admitted: Admission,
    headers: HeaderMap,
) -> Response {
    let id = header_text(&headers, &CONNECTION).unwrap_or_default();
    match shared.sessions.remove(id, &admitted.owner) {
        true => StatusCode::NO_CONTENT.into_response(),
        false => no_connection(),
    }
}

/// Handles `GET /events`: the notifications of a session.
pub async fn events(
    State(shared): State<Shared>,
    admitted: Admission,
    headers: HeaderMap,
) -> Response {
    let id = header_text(&headers, &CONNECTION).unwrap_or_default();
    let Some(lease) = shared.sessions.find(id, &admitted.owner) else { return no_connection() };
    let (mut notes, takeover) = lease.take_notes().await;
    let replaced = match header_text(&headers, &LAST_EVENT_ID).and_then(|id| id.rsplit_once(':')) {
        Some((session, seq)) => {
            match event_stream::resume(lease.connection(), &mut notes, session, seq).await {
                Ok(replaced) => replaced,
                Err(refusal) => return json_response(StatusCode::BAD_REQUEST, refusal),
            }
        }
        None => None,
    };
    let (stream, response) = sse::response(Format::Messages);
    let source = Source {
        notes: Some(event_stream::Notes::Session(notes)),
        takeover: Some(takeover),
        replaced,
        answer: None,
    };
    shared.sockets.spawn(event_stream::run(
        stream,
        source,
        ConnectionOwner::Session(lease),
        shared.shutdown.clone(),
    ));
    response
}

/// Handles `GET /sessions/{id}/events?after=N`: the records of one session.
pub async fn session(
    State(shared): State<Shared>,
    admitted: Admission,
    Path(session): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let query = uri.query().unwrap_or_default();
    let from_query = query.split('&').find_map(|pair| pair.strip_prefix("after="));
    // A resumed stream continues from its last event, whatever its URL says.
    let after = header_text(&headers, &LAST_EVENT_ID).or(from_query).unwrap_or("0");
    let after = after.parse::<u64>().map_or_else(|_| json!(after), |seq| json!(seq));
    let (connection, notes) = match Connection::open(&shared.api, admitted.rights) {
        Ok((connection, notes)) => (CloseOnDrop(connection), notes),
        Err(failure) => return refusal(status_of(&failure), &failure),
    };
    let version = header_text(&headers, &PROTOCOL).unwrap_or(cairn_protocol::PROTOCOL_VERSIONS[0]);
    if let Err(refusal) = handshake(&connection.0, version, &headers).await {
        return json_response(StatusCode::BAD_REQUEST, refusal);
    }
    let params = json!({"sessionId": session, "after": after});
    if let Err(refusal) =
        event_stream::request(&connection.0, "orchestrate.subscribe", &params).await
    {
        let not_found = event_stream::error_reason(&refusal).as_deref()
            == Some(Reason::SessionNotFound.as_str());
        return json_response(
            if not_found { StatusCode::NOT_FOUND } else { StatusCode::BAD_REQUEST },
            refusal,
        );
    }
    let (stream, response) = sse::response(Format::Records);
    let notes = event_stream::Notes::Request(notes);
    let source = Source { notes: Some(notes), takeover: None, replaced: None, answer: None };
    shared.sockets.spawn(event_stream::run(
        stream,
        source,
        ConnectionOwner::Request(connection),
        shared.shutdown.clone(),
    ));
    response
}

/// Reads the message within the limits of size and time.
async fn read(shared: &Shared, headers: &HeaderMap, body: Body) -> Result<String, Failure> {
    let limit = usize::try_from(shared.api.limits().max_message_bytes).unwrap_or(usize::MAX);
    let large = || {
        Failure::new(
            Reason::TooLarge,
            format!("the message is over limits.maxMessageBytes, {limit} bytes"),
        )
    };
    let content_length =
        header_text(headers, &header::CONTENT_LENGTH).and_then(|n| n.parse::<usize>().ok());
    if content_length.is_some_and(|content_length| content_length > limit) {
        return Err(large());
    }
    let bytes = tokio::time::timeout(BODY_TIMEOUT, axum::body::to_bytes(body, limit)).await;
    let late = |_| Failure::new(Reason::InvalidRequest, "the message did not arrive in time");
    let bytes = bytes.map_err(late)?.map_err(|_| large())?;
    String::from_utf8(bytes.into())
        .map_err(|_| Failure::new(Reason::ParseError, "the message is not utf-8"))
}

/// Creates a session that later requests refer to.
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
    if event_stream::is_error(&answer) {
        return json_response(StatusCode::OK, answer);
    }
    match shared.sessions.insert(connection, notes, owner) {
        Ok(id) => {
            let mut response = json_response(StatusCode::OK, answer);
            if let Ok(id) = HeaderValue::from_str(&id) {
                response.headers_mut().insert(CONNECTION, id);
            }
            response
        }
        Err(failure) => refusal(status_of(&failure), &failure),
    }
}

/// Performs the handshake of a connection for one request; an error is the daemon's answer.
async fn handshake(
    connection: &Connection,
    version: &str,
    headers: &HeaderMap,
) -> Result<(), String> {
    let agent = header_text(headers, &header::USER_AGENT).unwrap_or_default();
    let (name, its) =
        agent.split(' ').next().unwrap_or_default().split_once('/').unwrap_or((agent, ""));
    let short = |text: &str| text.chars().take(64).collect::<String>();
    let name = if name.is_empty() { "http".to_owned() } else { short(name) };
    let params =
        json!({"protocolVersions": [version], "client": {"name": name, "version": short(its)}});
    event_stream::request(connection, "initialize", &params).await.map(|_| ())
}

/// Passes a message to its connection and answers the client.
async fn answer(
    shared: &Shared,
    headers: &HeaderMap,
    text: &str,
    owner: ConnectionOwner,
    notes: Option<mpsc::Receiver<Outgoing>>,
) -> Response {
    let (to, mut answers) = mpsc::channel(1);
    let as_events = headers.get_all(header::ACCEPT).iter().filter_map(|h| h.to_str().ok());
    let as_events =
        as_events.flat_map(|h| h.split(',')).any(|h| h.trim().starts_with("text/event-stream"));
    if !as_events {
        drop(notes);
        owner.connection().handle_message_to(text, &to).await;
        drop(to);
        return match answers.recv().await {
            Some(answer) => json_response(StatusCode::OK, answer.into_texts().concat()),
            None => StatusCode::ACCEPTED.into_response(),
        };
    }
    // Notifications of a call are sent with its answer, unless the session has a separate reader
    // for them.
    let (notes, takeover) = match &owner {
        ConnectionOwner::Session(lease) => {
            let takeover = lease.takeover();
            (lease.free_notes().map(event_stream::Notes::Session), Some(takeover))
        }
        ConnectionOwner::Request(_) => (notes.map(event_stream::Notes::Request), None),
    };
    let (stream, response) = sse::response(Format::Messages);
    let calls = event_stream::calls(text, matches!(owner, ConnectionOwner::Request(_)), |method| {
        shared.api.follow_up(method)
    });
    let text: Arc<str> = text.into();
    let answer = Some(event_stream::Pending { answers, calls });
    let source = Source { notes, takeover, replaced: None, answer };
    let connection = owner.connection().clone();
    shared.sockets.spawn(event_stream::run(stream, source, owner, shared.shutdown.clone()));
    connection.handle_message_to(&text, &to).await;
    response
}
