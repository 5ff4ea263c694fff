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
pub(crate) fn repair(messages: &[Message]) -> Vec<Cow<'_, Message>> {
    let mut repaired = Vec::with_capacity(messages.len());
    // Calls of the last assistant message without a result yet, in order.
    let mut waiting: Vec<(&str, &str)> = Vec::new();
    for message in messages {
        match message {
            Message::Tool { call_id, .. } => {
                if let Some(at) = waiting.iter().position(|(id, _)| id == call_id) {
                    waiting.remove(at);
                    repaired.push(Cow::Borrowed(message));
                }
            }
            Message::User { parts } => {
                answer(&mut repaired, &mut waiting);
                if parts.iter().any(|part| !is_empty(part)) {
                    repaired.push(Cow::Borrowed(message));
                }
            }
            Message::Assistant { text, calls } => {
                answer(&mut repaired, &mut waiting);
                let mut unique_calls: Vec<&ToolUse> = Vec::new();
                for call in calls {
                    if !unique_calls.iter().any(|other| other.id == call.id) {
                        unique_calls.push(call);
                    }
                }
                waiting = unique_calls
                    .iter()
                    .map(|call| (call.id.as_str(), call.name.as_str()))
                    .collect();
                if unique_calls.len() < calls.len() {
                    let calls = unique_calls.into_iter().cloned().collect();
                    repaired.push(Cow::Owned(Message::Assistant { text: text.clone(), calls }));
                } else if !text.trim().is_empty() || !calls.is_empty() {
                    repaired.push(Cow::Borrowed(message));
                }
            }
        }
    }
    answer(&mut repaired, &mut waiting);
    repaired
}

fn answer(repaired: &mut Vec<Cow<'_, Message>>, waiting: &mut Vec<(&str, &str)>) {
    repaired.extend(waiting.drain(..).map(|(id, name)| {
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
