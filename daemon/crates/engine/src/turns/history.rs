//! The conversation of a session, read from its log: the same records always give the same messages.

use std::collections::{HashMap, HashSet};

use cairn_protocol::{
    envelope::{Body, Envelope},
    error::Failure,
    event::{AgentEvt, BlobRef, ToolOutcome},
    id::{RunId, SessionId},
    model::{Message, Part, ToolUse},
};
use cairn_trace::{PAGE, Trace};

use super::shown;

/// A conversation as a model is shown it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    /// Its messages. Every call has its result, unless it is in `open`.
    pub messages: Vec<Message>,
    /// Calls of the last message that have no result yet: what was cut off goes on with them.
    pub open: Vec<ToolUse>,
}

/// Folds records into a conversation.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    talk: Conversation,
    /// Inputs of turns that were taken, until they begin.
    inputs: HashMap<RunId, Vec<Part>>,
    /// Text of the answer that is being written.
    text: String,
    /// What was said meanwhile, with its number, until an answer heard it.
    said: Vec<(u64, String)>,
    shown_chars: u64,
    /// Results whose text lies elsewhere: place in `messages`, and where it is.
    pub blobs: Vec<(usize, String, BlobRef, u64)>,
}

/// Text in place of a result that never came.
const NO_RESULT: &str = "error (interrupted): the turn ended before this call did";

impl Fold {
    /// Takes the next record.
    pub fn take(&mut self, record: Envelope) {
        let seq = record.seq;
        let Body::Evt { evt } = record.body else { return };
        match evt {
            AgentEvt::TurnAccepted { run_id, input, .. } => drop(self.inputs.insert(run_id, input)),
            AgentEvt::RunStarted { run_id, shown_chars, .. } => {
                self.settle();
                self.shown_chars = shown_chars;
                if let Some(parts) = self.inputs.remove(&run_id) {
                    self.talk.messages.push(Message::User { parts });
                }
            }
            AgentEvt::Text { reasoning: false, text, .. } => self.text.push_str(&text),
            AgentEvt::ModelAnswer(answer) => {
                self.heard(answer.heard_seq);
                let text = std::mem::take(&mut self.text);
                if !text.is_empty() || !answer.calls.is_empty() {
                    self.talk.open.clone_from(&answer.calls);
                    self.talk.messages.push(Message::Assistant { text, calls: answer.calls });
                }
            }
            AgentEvt::ToolResult(outcome) => self.result(outcome),
            AgentEvt::Steered { text, .. } => self.said.push((seq, text)),
            AgentEvt::Compacted { summary, kept, heard_seq, .. } => self.compacted(&summary, kept, heard_seq),
            AgentEvt::Cleared {} => {
                let (inputs, shown_chars) = (std::mem::take(&mut self.inputs), self.shown_chars);
                *self = Self { inputs, shown_chars, ..Self::default() };
            }
            AgentEvt::RunCompleted { .. } => self.settle(),
            _ => {}
        }
    }

    /// Replaces all but the last `kept` messages, among which are the texts that were heard by then.
    fn compacted(&mut self, summary: &str, kept: u32, heard_seq: u64) {
        self.heard(heard_seq);
        let mut at = self.talk.messages.len().saturating_sub(kept as usize);
        // Logs of earlier versions counted otherwise: a result without its call is refused by every provider.
        while at > 0 && matches!(self.talk.messages.get(at), Some(Message::Tool { .. })) {
            at -= 1;
        }
        let tail = self.talk.messages.split_off(at);
        self.talk.messages = vec![Message::user(super::compact::told(summary))];
        self.talk.messages.extend(tail);
        let moved = self.blobs.drain(..).filter(|b| b.0 >= at);
        self.blobs = moved.map(|(i, id, blob, chars)| (i - at + 1, id, blob, chars)).collect();
    }

    fn result(&mut self, outcome: ToolOutcome) {
        let Some(at) = self.talk.open.iter().position(|c| c.id == outcome.call_id) else { return };
        self.talk.open.remove(at);
        let failed = outcome.error.is_some();
        if let Some(blob) = outcome.blob.clone() {
            self.blobs.push((self.talk.messages.len(), outcome.call_id.clone(), blob, self.shown_chars));
        }
        let content = shown::of(&outcome, self.shown_chars);
        self.talk.messages.push(Message::Tool {
            call_id: outcome.call_id,
            name: outcome.name,
            content,
            failed,
        });
    }

    /// Puts what an answer heard before it.
    fn heard(&mut self, upto: u64) {
        let (heard, later) = std::mem::take(&mut self.said).into_iter().partition(|(seq, _)| *seq <= upto);
        self.said = later;
        let heard: Vec<(u64, String)> = heard;
        self.talk.messages.extend(heard.into_iter().map(|(_, text)| Message::user(text)));
    }

    /// What a turn leaves open is closed: its text kept, its calls answered.
    fn settle(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.talk.messages.push(Message::Assistant { text, calls: vec![] });
        }
        for call in std::mem::take(&mut self.talk.open) {
            self.talk.messages.push(Message::Tool {
                call_id: call.id,
                name: call.name,
                content: NO_RESULT.to_owned(),
                failed: true,
            });
        }
        self.heard(u64::MAX);
    }

    /// The conversation as it stands within a turn: an answer that was cut off is left out, for it is asked for again.
    pub fn finish(mut self) -> (Conversation, Vec<(u64, String)>) {
        self.order();
        (self.talk, self.said)
    }

    /// Results in the order of their calls, whichever came first: providers want it so.
    fn order(&mut self) {
        let mut order: HashMap<String, usize> = HashMap::new();
        for message in &self.talk.messages {
            if let Message::Assistant { calls, .. } = message {
                let from = order.len();
                order.extend(calls.iter().enumerate().map(|(i, c)| (c.id.clone(), from + i)));
            }
        }
        let place = |m: &Message| match m {
            Message::Tool { call_id, .. } => order.get(call_id).copied(),
            _ => None,
        };
        let mut at = 0;
        while at < self.talk.messages.len() {
            let run = self.talk.messages[at..].iter().take_while(|m| place(m).is_some()).count();
            self.talk.messages[at..at + run].sort_by_key(place);
            at += run.max(1);
        }
    }
}

impl Conversation {
    /// The conversation of `session` as its log has it, and what was said that no answer heard yet.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub(crate) async fn read(
        trace: &Trace,
        session: &SessionId,
    ) -> Result<(Self, Vec<(u64, String)>), Failure> {
        let mut fold = Fold::default();
        let mut at = 0;
        loop {
            let page = trace.records(session, at, PAGE).await?;
            let Some(last) = page.last() else { break };
            at = last.seq;
            page.into_iter().for_each(|record| fold.take(record));
        }
        for (place, id, blob, chars) in std::mem::take(&mut fold.blobs) {
            let text = crate::recorded::whole_blob(trace, &blob).await?;
            let message = fold.talk.messages.get_mut(place);
            if let (Some(Message::Tool { content, call_id, .. }), Some(value)) = (message, text)
                && *call_id == id
            {
                *content = shown::value(&value, chars);
            }
        }
        Ok(fold.finish())
    }

    /// Ids of calls in the conversation: those of new answers must differ.
    pub(crate) fn call_ids(&self) -> HashSet<&str> {
        let calls = self.messages.iter().filter_map(|m| match m {
            Message::Assistant { calls, .. } => Some(calls),
            _ => None,
        });
        calls.flatten().map(|c| c.id.as_str()).collect()
    }
}
