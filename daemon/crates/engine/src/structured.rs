//! A typed answer while it is written: snapshots, each of which holds what the one before it held.

use cairn_protocol::event::AgentEvt;
use serde_json::Value;

/// Fewest bytes between two snapshots.
const STEP: usize = 16;
/// After this part of the text again there is another one, so that there are few of a long answer.
const PART: usize = 16;

/// Makes snapshots of an answer of one type.
pub(crate) struct Snapshots {
    name: String,
    revision: u32,
    /// Length of the text at which it is looked at again.
    due: usize,
    last: Option<Value>,
}

impl Snapshots {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), revision: 0, due: 1, last: None }
    }

    /// Looks at the text so far; a snapshot when it says more than the last one.
    pub fn look(&mut self, text: &str) -> Option<AgentEvt> {
        if text.len() < self.due {
            return None;
        }
        self.due = text.len() + STEP.max(text.len() / PART);
        self.tell(cairn_harness::parse_partial_json(text)?)
    }

    /// The last one: the answer itself.
    pub fn end(mut self, value: &Value) -> Option<AgentEvt> {
        self.tell(value.clone())
    }

    fn tell(&mut self, value: Value) -> Option<AgentEvt> {
        if self.last.as_ref() == Some(&value) {
            return None;
        }
        self.revision += 1;
        self.last = Some(value.clone());
        let (op, expects_type, revision) = ("llm_call".into(), self.name.clone(), self.revision);
        Some(AgentEvt::StructuredSnapshot { op, expects_type, revision, value })
    }
}
