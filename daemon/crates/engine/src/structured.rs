//! Snapshots of a typed answer while it is being written: each contains at least the content of the
//! one before it.

use cairn_protocol::event::AgentEvt;
use serde_json::Value;

/// Fewest bytes between two snapshots.
const STEP: usize = 16;
/// The next snapshot follows after this fraction (1/16) of the text so far, so that a long answer
/// has few.
const PART: usize = 16;

/// Creates snapshots of an answer of one type.
pub(crate) struct Snapshots {
    name: String,
    revision: u32,
    /// Length of the text at which it is parsed the next time.
    next_parse_len: usize,
    last: Option<Value>,
}

impl Snapshots {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), revision: 0, next_parse_len: 1, last: None }
    }

    /// Parses the text so far; returns a snapshot when it differs from the last one.
    pub fn look(&mut self, text: &str) -> Option<AgentEvt> {
        if text.len() < self.next_parse_len {
            return None;
        }
        self.next_parse_len = text.len() + STEP.max(text.len() / PART);
        self.snapshot(cairn_harness::parse_partial_json(text)?)
    }

    /// Returns the last snapshot: the answer itself.
    pub fn end(mut self, value: &Value) -> Option<AgentEvt> {
        self.snapshot(value.clone())
    }

    fn snapshot(&mut self, value: Value) -> Option<AgentEvt> {
        if self.last.as_ref() == Some(&value) {
            return None;
        }
        self.revision += 1;
        self.last = Some(value.clone());
        let (op, expects_type, revision) = ("llm_call".into(), self.name.clone(), self.revision);
        Some(AgentEvt::StructuredSnapshot { op, expects_type, revision, value })
    }
}
