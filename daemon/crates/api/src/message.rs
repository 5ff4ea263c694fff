//! JSON-RPC frames: reading requests and writing answers.

use cairn_protocol::error::{Failure, Reason};
use jsonrpsee_types::{ErrorObjectOwned, Id};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A request or notification as received.
#[derive(Debug, Deserialize)]
pub struct Incoming<'a> {
    #[serde(borrow)]
    jsonrpc: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    pub method: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    pub params: Option<&'a RawValue>,
    /// `None` for a notification.
    #[serde(borrow, default, deserialize_with = "present")]
    pub id: Option<Id<'a>>,
}

/// Distinguishes `"id": null` from a missing id.
fn present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Id<'de>>, D::Error> {
    Id::deserialize(d).map(Some)
}

/// The content of a message.
pub enum Frame<'a> {
    /// A request or notification.
    One(&'a RawValue),
    /// Several requests or notifications.
    Batch(Vec<&'a RawValue>),
}

/// Parses a message into its requests.
pub fn frame(text: &str) -> Result<Frame<'_>, Failure> {
    let bad = |e: serde_json::Error| Failure::new(Reason::ParseError, format!("not json: {e}"));
    let value: &RawValue = serde_json::from_str(text).map_err(bad)?;
    if !value.get().starts_with('[') {
        return Ok(Frame::One(value));
    }
    let all: Vec<&RawValue> = serde_json::from_str(text).map_err(bad)?;
    if all.is_empty() {
        return Err(Failure::new(Reason::InvalidRequest, "the batch is empty"));
    }
    Ok(Frame::Batch(all))
}

impl<'a> Incoming<'a> {
    /// Parses one request. An error contains the id if there is one.
    pub fn read(value: &'a RawValue) -> Result<(Self, &'a str), (Failure, Option<Id<'a>>)> {
        #[derive(Deserialize)]
        struct JustId<'a> {
            #[serde(borrow, default)]
            id: Option<Id<'a>>,
        }
        let bad = |what: String| {
            let id = serde_json::from_str::<JustId<'a>>(value.get()).ok().and_then(|j| j.id);
            (Failure::new(Reason::InvalidRequest, what), id)
        };
        let request: Incoming<'a> = serde_json::from_str(value.get())
            .map_err(|e| bad(format!("not a request object: {e}")))?;
        if request.jsonrpc.as_deref() != Some("2.0") {
            return Err(bad("jsonrpc must be \"2.0\"".into()));
        }
        if request.method.is_none() {
            return Err(bad("method is missing".into()));
        }
        Ok((request, value.get()))
    }
}

/// Renders a successful answer.
pub fn success(id: &Id<'_>, result: &RawValue) -> String {
    let id = serde_json::to_string(id).unwrap_or_else(|_| "null".into());
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, result.get())
}

/// Renders an error answer.
pub fn failure(id: Option<&Id<'_>>, failure: &Failure) -> String {
    let error = ErrorObjectOwned::owned(
        failure.reason.code(),
        failure.message.clone(),
        Some(failure.data()),
    );
    let id = id.map_or(Ok("null".into()), serde_json::to_string).unwrap_or_else(|_| "null".into());
    let error = serde_json::to_string(&error).unwrap_or_else(|_| "null".into());
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

pub fn notification(method: &str, params: &impl serde::Serialize) -> String {
    // Params are serialised in place, because some are long.
    let mut text = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":"#).into_bytes();
    let head = text.len();
    if serde_json::to_writer(&mut text, params).is_err() {
        text.truncate(head);
        text.extend(b"{}");
    }
    text.push(b'}');
    String::from_utf8(text).unwrap_or_default()
}
