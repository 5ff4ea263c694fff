//! JSON-RPC names: methods, notifications, the path and port. Only `api`, `transport` and
//! `client-sdk` use this.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Path of the WebSocket endpoint.
pub const PATH: &str = "/rpc";
/// Default port of the daemon, which is tried first.
pub const DEFAULT_PORT: u16 = 7433;
/// Bonjour service type of the daemon.
pub const SERVICE_TYPE: &str = "_oasearch._tcp";
/// Prefix of the subprotocol that carries a browser's token.
pub const BEARER_SUBPROTOCOL: &str = "bearer.";

/// Notification of the client that cancels the call with the given `id`.
pub const CANCEL: &str = "$/cancelRequest";
/// Notification that carries one record.
pub const EVENT: &str = "orchestrate.event";
/// Notification that the backlog was sent completely.
pub const SYNCED: &str = "orchestrate.synced";
/// Notification that a client fell behind.
pub const LAGGED: &str = "orchestrate.lagged";
/// Notification that the daemon ended a subscription because its session was deleted.
pub const GONE: &str = "orchestrate.gone";
/// Notification about the progress of an index.
pub const INDEX_PROGRESS: &str = "index.progress";
/// Notification about the progress of a clone.
pub const GIT_PROGRESS: &str = "git.progress";
/// Notification with partial search results.
pub const SEARCH_PARTIAL: &str = "search.partial";
/// Notification that an approval of a session that the client does not follow is pending or was
/// answered.
pub const APPROVAL_UPDATED: &str = "approval.updated";
/// All notifications that the daemon sends.
pub const NOTIFICATIONS: &[&str] =
    &[EVENT, SYNCED, LAGGED, GONE, INDEX_PROGRESS, GIT_PROGRESS, SEARCH_PARTIAL, APPROVAL_UPDATED];

/// A JSON-RPC message with unparsed parts: a request, a notification or an answer. A part that is
/// null counts as missing.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Frame<'a> {
    /// The id of a request or answer, as JSON.
    #[serde(borrow, default)]
    pub id: Option<&'a RawValue>,
    /// The method of a request or notification.
    #[serde(borrow, default)]
    pub method: Option<Cow<'a, str>>,
    /// The params of a request or notification.
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
    /// The result of a successful answer.
    #[serde(borrow, default)]
    pub result: Option<&'a RawValue>,
    /// The error of a failed call.
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

impl<'a> Frame<'a> {
    /// Parses a single message.
    ///
    /// # Errors
    /// The text is not a JSON object with parts of these types.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Parses a single message or a batch.
    ///
    /// # Errors
    /// The text is neither; a batch with an invalid message is invalid as a whole.
    pub fn parse_batch(text: &'a str) -> Result<Vec<Self>, serde_json::Error> {
        if text.trim_start().starts_with('[') {
            return serde_json::from_str(text);
        }
        Self::parse(text).map(|frame| vec![frame])
    }

    /// Parses the params; `None` if they are missing or of another type.
    pub fn params_as<T: Deserialize<'a>>(&self) -> Option<T> {
        serde_json::from_str(self.params?.get()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_parsed_singly_and_in_batches() {
        let request =
            Frame::parse(r#"{"jsonrpc":"2.0","id":"a","method":"x","params":{"k":1}}"#).unwrap();
        assert_eq!((request.id.unwrap().get(), request.method.as_deref()), ("\"a\"", Some("x")));
        assert_eq!(request.params_as::<serde_json::Value>(), Some(serde_json::json!({"k": 1})));
        let null = Frame::parse(r#"{"id":null,"error":{}}"#).unwrap();
        assert!(null.id.is_none() && null.method.is_none() && null.error.is_some());
        assert_eq!(Frame::parse_batch(r#" [{"id":1},{"id":2}]"#).unwrap().len(), 2);
        assert_eq!(Frame::parse_batch(r#"{"id":1}"#).unwrap().len(), 1);
        for invalid in ["{", "[1]", r#"{"method":5}"#, "7"] {
            assert!(Frame::parse_batch(invalid).is_err(), "{invalid}");
        }
    }
}
