//! A conversation as providers accept it: every call answered right after it, no answer without its call, nothing empty.
//!
//! A history may lack that after an interruption or after older turns were dropped; providers refuse it whole then.

use std::borrow::Cow;

use cairn_protocol::model::{Message, Part, ToolUse};
use serde_json::{Value, json};

/// What stands for the answer of a call that never got one.
const UNANSWERED: &str = "no result: the call was interrupted";

/// The messages, mended.
pub(crate) fn mended(messages: &[Message]) -> Vec<Cow<'_, Message>> {
    let mut whole = Vec::with_capacity(messages.len());
    // Calls of the last assistant message that wait for their answer, in order.
    let mut waiting: Vec<(&str, &str)> = Vec::new();
    for message in messages {
        match message {
            Message::Tool { call_id, .. } => {
                if let Some(at) = waiting.iter().position(|(id, _)| id == call_id) {
                    waiting.remove(at);
                    whole.push(Cow::Borrowed(message));
                }
            }
            Message::User { parts } => {
                answer(&mut whole, &mut waiting);
                if parts.iter().any(|part| !is_empty(part)) {
                    whole.push(Cow::Borrowed(message));
                }
            }
            Message::Assistant { text, calls } => {
                answer(&mut whole, &mut waiting);
                let mut kept: Vec<&ToolUse> = Vec::new();
                for call in calls {
                    if !kept.iter().any(|other| other.id == call.id) {
                        kept.push(call);
                    }
                }
                waiting = kept.iter().map(|call| (call.id.as_str(), call.name.as_str())).collect();
                if kept.len() < calls.len() {
                    let calls = kept.into_iter().cloned().collect();
                    whole.push(Cow::Owned(Message::Assistant { text: text.clone(), calls }));
                } else if !text.trim().is_empty() || !calls.is_empty() {
                    whole.push(Cow::Borrowed(message));
                }
            }
        }
    }
    answer(&mut whole, &mut waiting);
    whole
}

fn answer(whole: &mut Vec<Cow<'_, Message>>, waiting: &mut Vec<(&str, &str)>) {
    whole.extend(waiting.drain(..).map(|(id, name)| {
        Cow::Owned(Message::Tool {
            call_id: id.to_owned(),
            name: name.to_owned(),
            content: UNANSWERED.to_owned(),
            failed: true,
        })
    }));
}

/// Whether a part says nothing. Providers refuse such ones.
pub(crate) fn is_empty(part: &Part) -> bool {
    match part {
        Part::Text { text } => text.trim().is_empty(),
        Part::Image { data, .. } => data.is_empty(),
    }
}

/// A call's arguments as the object that every provider wants: text that was no JSON is wrapped, so that the model
/// sees what it wrote.
pub(crate) fn arguments(call: &ToolUse) -> Cow<'_, Value> {
    match &call.arguments {
        Value::Object(_) => Cow::Borrowed(&call.arguments),
        Value::Null => Cow::Owned(json!({})),
        other => Cow::Owned(json!({ "invalidArguments": other })),
    }
}
