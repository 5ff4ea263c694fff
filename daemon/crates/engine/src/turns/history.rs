//! The conversation of a session, read from its log: equal records always give equal messages.

use std::collections::{BTreeMap, HashMap, HashSet};

use cairn_harness::background::end_note;
use cairn_protocol::{
    envelope::{Body, Envelope},
    error::Failure,
    event::{AgentEvt, BlobRef, ToolOutcome},
    id::{RunId, SessionId},
    model::{Message, Part, ToolUse},
};
use cairn_trace::Trace;

use super::tool_output;

/// A conversation in the form that a model receives.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    /// Messages in order. Every call has its result, unless it is in `open`.
    pub messages: Vec<Message>,
    /// Calls of the last message that have no result yet: a resumed turn makes them first.
    pub open: Vec<ToolUse>,
    /// Background commands whose end is not in the log: id and command line.
    pub running: BTreeMap<String, String>,
}

/// Folds records into a conversation.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    talk: Conversation,
    /// Inputs of accepted turns, until they start.
    inputs: HashMap<RunId, Vec<Part>>,
    /// Text of the answer that is being written.
    text: String,
    /// Steering texts with their numbers, until an answer received them.
    steering: Vec<(u64, String)>,
    shown_chars: u64,
    /// Notes on files that the user restored, for the next turn.
    undone: Vec<String>,
    /// Results whose text is in a blob: position in `messages`, call, blob, and the limit of
    /// characters.
    pub blobs: Vec<(usize, String, BlobRef, u64)>,
}

/// Text in place of a missing result.
const NO_RESULT: &str = "error (interrupted): the turn ended before this call finished";

impl Fold {
    /// Folds the next record.
    pub fn take(&mut self, record: Envelope) {
        let seq = record.seq;
        let Body::Evt { evt } = record.body else { return };
        match evt {
            AgentEvt::TurnAccepted { run_id, input, .. } => drop(self.inputs.insert(run_id, input)),
            AgentEvt::RunStarted { run_id, shown_chars, .. } => {
                self.close_open_parts();
                self.shown_chars = shown_chars;
                if let Some(mut parts) = self.inputs.remove(&run_id) {
                    let notes = std::mem::take(&mut self.undone).into_iter();
                    parts.splice(0..0, notes.map(|text| Part::Text { text }));
                    self.talk.messages.push(Message::User { parts });
                }
            }
            AgentEvt::Text { reasoning: false, text, .. } => self.text.push_str(&text),
            AgentEvt::ModelAnswer(answer) => {
                self.deliver_until(answer.heard_seq);
                let text = std::mem::take(&mut self.text);
                if !text.is_empty() || !answer.calls.is_empty() {
                    self.talk.open.clone_from(&answer.calls);
                    let (calls, reasoning) = (answer.calls, answer.reasoning);
                    self.talk.messages.push(Message::Assistant { text, calls, reasoning });
                }
            }
            AgentEvt::ToolResult(outcome) => self.result(outcome),
            AgentEvt::Steered { text, .. } => self.steering.push((seq, text)),
            AgentEvt::BackgroundStarted { id, command } => {
                self.talk.running.insert(id, command);
            }
            AgentEvt::BackgroundFinished { id, command, state, exit_code, tail } => {
                self.talk.running.remove(&id);
                self.steering.push((seq, end_note(&id, &command, state, exit_code, &tail)));
            }
            AgentEvt::Compacted { summary, kept, heard_seq, .. } => {
                self.compacted(&summary, kept, heard_seq)
            }
            AgentEvt::Result { op, data: Some(data), .. } if op == crate::undo::NAME => {
                self.undone.extend(undo_note(&data));
            }
            AgentEvt::Cleared {} => {
                let (inputs, shown_chars) = (std::mem::take(&mut self.inputs), self.shown_chars);
                let running = std::mem::take(&mut self.talk.running);
                let talk = Conversation { running, ..Conversation::default() };
                *self = Self { inputs, shown_chars, talk, ..Self::default() };
            }
            AgentEvt::RunCompleted { .. } => self.close_open_parts(),
            _ => {}
        }
    }

    /// Replaces all but the last `kept` messages, which include the texts received by then.
    fn compacted(&mut self, summary: &str, kept: u32, heard_seq: u64) {
        self.deliver_until(heard_seq);
        let mut at = self.talk.messages.len().saturating_sub(kept as usize);
        // Logs of earlier versions counted otherwise: every provider rejects a result without its
        // call.
        while at > 0 && matches!(self.talk.messages.get(at), Some(Message::Tool { .. })) {
            at -= 1;
        }
        let tail = self.talk.messages.split_off(at);
        self.talk.messages = vec![Message::user(super::compact::summary_text(summary))];
        self.talk.messages.extend(tail);
        let retained = self.blobs.drain(..).filter(|b| b.0 >= at);
        self.blobs = retained.map(|(i, id, blob, chars)| (i - at + 1, id, blob, chars)).collect();
    }

    fn result(&mut self, outcome: ToolOutcome) {
        let Some(at) = self.talk.open.iter().position(|c| c.id == outcome.call_id) else { return };
        self.talk.open.remove(at);
        let failed = outcome.error.is_some();
        if let Some(blob) = outcome.blob.clone() {
            self.blobs.push((
                self.talk.messages.len(),
                outcome.call_id.clone(),
                blob,
                self.shown_chars,
            ));
        }
        let content = tool_output::of(&outcome, self.shown_chars);
        self.talk.messages.push(Message::Tool {
            call_id: outcome.call_id,
            name: outcome.name,
            content,
            failed,
        });
    }

    /// Inserts the texts that an answer received before it.
    fn deliver_until(&mut self, upto: u64) {
        let (received, later) =
            std::mem::take(&mut self.steering).into_iter().partition(|(seq, _)| *seq <= upto);
        self.steering = later;
        let received: Vec<(u64, String)> = received;
        self.talk.messages.extend(received.into_iter().map(|(_, text)| Message::user(text)));
    }

    /// Closes the open parts of a turn: its text is retained, its calls get a result.
    fn close_open_parts(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.talk.messages.push(Message::Assistant { text, calls: vec![], reasoning: None });
        }
        for call in std::mem::take(&mut self.talk.open) {
            self.talk.messages.push(Message::Tool {
                call_id: call.id,
                name: call.name,
                content: NO_RESULT.to_owned(),
                failed: true,
            });
        }
        self.deliver_until(u64::MAX);
    }

    /// Returns the conversation within a turn: an interrupted answer is left out, since it is
    /// requested again.
    pub fn finish(mut self) -> (Conversation, Vec<(u64, String)>) {
        self.order();
        (self.talk, self.steering)
    }

    /// Sorts results in the order of their calls: providers require it.
    fn order(&mut self) {
        let mut order: HashMap<String, usize> = HashMap::new();
        for message in &self.talk.messages {
            if let Message::Assistant { calls, .. } = message {
                let from = order.len();
                order.extend(calls.iter().enumerate().map(|(i, c)| (c.id.clone(), from + i)));
            }
        }
        let position_of = |m: &Message| match m {
            Message::Tool { call_id, .. } => order.get(call_id).copied(),
            _ => None,
        };
        let mut at = 0;
        while at < self.talk.messages.len() {
            let run =
                self.talk.messages[at..].iter().take_while(|m| position_of(m).is_some()).count();
            self.talk.messages[at..at + run].sort_by_key(position_of);
            at += run.max(1);
        }
    }
}

/// Returns the text that tells the model of an undo by the user.
fn undo_note(output: &serde_json::Value) -> Option<String> {
    let restored = output.get("restored")?.as_array()?;
    let paths: Vec<&str> = restored.iter().filter_map(serde_json::Value::as_str).collect();
    Some(format!(
        "[The user undid the file changes of an earlier turn. These files have their previous \
        content again, so read them before you rely on them: {}]",
        paths.join(", ")
    ))
}

impl Conversation {
    /// Returns the conversation of `session` according to its log, and the texts that no answer
    /// received yet.
    ///
    /// # Errors
    /// An error of the log.
    pub(crate) async fn read(
        trace: &Trace,
        session: &SessionId,
    ) -> Result<(Self, Vec<(u64, String)>), Failure> {
        let mut fold = Fold::default();
        trace.for_each_record(session, |record| fold.take(record)).await?;
        for (position, id, blob, chars) in std::mem::take(&mut fold.blobs) {
            let text = crate::recorded::read_json_blob(trace, &blob).await?;
            let message = fold.talk.messages.get_mut(position);
            if let (Some(Message::Tool { content, call_id, .. }), Some(value)) = (message, text)
                && *call_id == id
            {
                *content = tool_output::value(&value, chars);
            }
        }
        Ok(fold.finish())
    }

    /// Returns the ids of calls in the conversation: those of new answers must differ.
    pub(crate) fn call_ids(&self) -> HashSet<&str> {
        let calls = self.messages.iter().filter_map(|m| match m {
            Message::Assistant { calls, .. } => Some(calls),
            _ => None,
        });
        calls.flatten().map(|c| c.id.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use cairn_protocol::{
        id::SessionId,
        model::{FinishReason, TokenUsage},
        time::Timestamp,
        turn::ModelChoice,
    };
    use uuid::Uuid;

    use super::*;

    /// Folds events as records 1, 2, 3, …
    fn folded(evts: Vec<AgentEvt>) -> Conversation {
        let (mut fold, session_id) = (Fold::default(), SessionId::new());
        for (seq, evt) in (1..).zip(evts) {
            let (id, ts, body) = (Uuid::now_v7(), Timestamp::now(), Body::Evt { evt });
            fold.take(Envelope {
                session_id: session_id.clone(),
                seq,
                id,
                parent_id: None,
                ts,
                origin: None,
                body,
            });
        }
        let (mut talk, steering) = fold.finish();
        talk.messages.extend(steering.into_iter().map(|(_, text)| Message::user(text)));
        talk
    }

    fn answer(run: &RunId, call: &str, heard_seq: u64) -> AgentEvt {
        AgentEvt::ModelAnswer(cairn_protocol::event::ModelAnswer {
            run_id: run.clone(),
            model: ModelChoice::default(),
            calls: vec![ToolUse {
                id: call.into(),
                name: "look".into(),
                arguments: serde_json::json!({}),
            }],
            finish: Some(FinishReason::ToolCalls),
            usage: TokenUsage::default(),
            tokens_per_second: 0.0,
            context_tokens: None,
            first_millis: 0,
            millis: 0,
            request_digest: String::new(),
            heard_seq,
            raw: None,
            reasoning: None,
        })
    }

    fn result(call: &str) -> AgentEvt {
        AgentEvt::ToolResult(ToolOutcome {
            call_id: call.into(),
            name: "look".into(),
            tag: "word".into(),
            output: Some(serde_json::json!(call)),
            blob: None,
            error: None,
            truncated: false,
            millis: 0,
            changes: vec![],
        })
    }

    fn compacted(kept: u32, heard_seq: u64) -> AgentEvt {
        AgentEvt::Compacted {
            summary: "S".into(),
            kept,
            tokens_before: 9,
            tokens_after: 1,
            heard_seq,
        }
    }

    fn kinds(talk: &Conversation) -> Vec<&'static str> {
        let kind = |message: &Message| match message {
            Message::User { .. } => "user",
            Message::Assistant { .. } => "call",
            Message::Tool { .. } => "result",
        };
        talk.messages.iter().map(kind).collect()
    }

    // S7
    #[test]
    fn compaction_counts_received_texts() {
        let run = RunId::new();
        let steered = AgentEvt::Steered { run_id: run.clone(), text: "be brief".into() };
        // The agent's conversation: call a, result a, call b, result b, the steering text; the last
        // three were retained.
        let evts = [answer(&run, "a", 0), result("a"), answer(&run, "b", 0), result("b"), steered];
        let all = |last| evts.iter().cloned().chain([last]).collect();
        assert_eq!(kinds(&folded(all(compacted(3, 5)))), ["user", "call", "result", "user"]);
        // A text after the count stays behind the retained messages.
        assert_eq!(kinds(&folded(all(compacted(2, 0)))), ["user", "call", "result", "user"]);
    }

    // S7
    #[test]
    fn compaction_of_older_log_retains_calls_of_results() {
        let run = RunId::new();
        let evts = vec![
            answer(&run, "a", 0),
            result("a"),
            answer(&run, "b", 0),
            result("b"),
            compacted(1, 0),
        ];
        let talk = folded(evts);
        assert_eq!(kinds(&talk), ["user", "call", "result"]);
        assert!(
            matches!(&talk.messages[1], Message::Assistant { calls, .. } if calls[0].id == "b")
        );
    }
}
