//! Messages on their way to a client.

use bytes::Bytes;
use cairn_engine::record::Line;

/// A message or messages for the client.
#[derive(Debug)]
pub enum Outgoing {
    One(String),
    /// Several messages, in order, to be flushed once.
    Many(Vec<SharedText>),
}

impl Outgoing {
    /// Splits into single messages, in order.
    pub fn into_texts(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts.iter().map(|text| text.as_str().to_owned()).collect(),
        }
    }
}

/// The text of a message, shared with other connections that receive the same one.
#[derive(Debug, Clone)]
pub struct SharedText(Bytes);

impl SharedText {
    /// Renders a record with `render`, at most once for all connections that call this with the
    /// same `render`.
    pub(crate) fn of(line: &Line, render: impl FnOnce(&str) -> String) -> Self {
        Self(line.framed(render))
    }

    pub fn as_str(&self) -> &str {
        // The bytes were built from strings only.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The bytes are UTF-8.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}
