//! Repair of conversations to the form that providers accept: every call is directly followed by
//! its result, no result lacks its call, and no part is empty.
//!
//! A history may violate this after an interruption or after older turns were dropped; providers
//! then reject it completely.

use std::borrow::Cow;

use cairn_protocol::model::{Message, Part, ToolUse};
use serde_json::{Value, json};

/// Result of a call that was never answered.
const UNANSWERED: &str = "no result: the call was interrupted";

/// Returns the repaired messages.
pub(crate) fn mended(messages: &[Message]) -> Vec<Cow<'_, Message>> {
    let mut whole = Vec::with_capacity(messages.len());
    // Calls of the last assistant message without a result yet, in order.
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

/// True if a part is empty, which providers refuse.
pub(crate) fn is_empty(part: &Part) -> bool {
    match part {
        Part::Text { text } => text.trim().is_empty(),
        Part::Image { data, .. } => data.is_empty(),
    }
}

/// Returns a call's arguments as the object that every provider requires. Invalid JSON is wrapped,
/// so that the model sees its own text.
pub(crate) fn arguments(call: &ToolUse) -> Cow<'_, Value> {
    match &call.arguments {
        Value::Object(_) => Cow::Borrowed(&call.arguments),
        Value::Null => Cow::Owned(json!({})),
        other => Cow::Owned(json!({ "invalidArguments": other })),
    }
}
