//! Repair of conversations to the form that providers accept: every call is directly followed by
//! its result, no result lacks its call, no part is empty, and ids and names have only characters
//! that all providers accept.
//!
//! A history may violate this after an interruption or after older turns were dropped; providers
//! then reject it completely.

use std::borrow::Cow;

use cairn_protocol::{
    model::{Message, Part, ToolUse},
    tool::is_tool_name,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Placeholder before a conversation whose first messages were dropped: the first message must be
/// the user's.
pub(crate) const OMITTED_MESSAGES: &str = "(earlier messages are omitted)";
/// Result of a call that was never answered.
const UNANSWERED: &str = "no result: the call was interrupted";
/// Maximum characters of a call's id. OpenAI's chat completions refuse longer ones; Anthropic and
/// OpenAI's responses accept 64.
const MAX_CALL_ID: usize = 40;
/// Maximum characters of a tool's name.
const MAX_NAME: usize = 64;
/// Name for a call whose model gave it none.
const NO_NAME: &str = "unnamed";

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
            Message::Assistant { text, calls, reasoning } => {
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
                    let (text, reasoning) = (text.clone(), reasoning.clone());
                    repaired.push(Cow::Owned(Message::Assistant { text, calls, reasoning }));
                } else if !text.trim().is_empty() || !calls.is_empty() {
                    repaired.push(Cow::Borrowed(message));
                }
            }
        }
    }
    answer(&mut repaired, &mut waiting);
    repaired.into_iter().map(with_accepted_names).collect()
}

/// Rewrites the ids and names of calls that come from another provider, or that a model invented.
fn with_accepted_names(mut message: Cow<'_, Message>) -> Cow<'_, Message> {
    let is_accepted = |id: &str, name: &str| is_call_id(id) && is_tool_name(name);
    let accepted = match &*message {
        Message::User { .. } => true,
        Message::Assistant { calls, .. } => calls.iter().all(|c| is_accepted(&c.id, &c.name)),
        Message::Tool { call_id, name, .. } => is_accepted(call_id, name),
    };
    if accepted {
        return message;
    }
    match message.to_mut() {
        Message::User { .. } => {}
        Message::Assistant { calls, .. } => {
            for call in calls {
                call.id = accepted_id(&call.id);
                call.name = accepted_name(&call.name);
            }
        }
        Message::Tool { call_id, name, .. } => {
            *call_id = accepted_id(call_id);
            *name = accepted_name(name);
        }
    }
    message
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn is_call_id(id: &str) -> bool {
    (1..=MAX_CALL_ID).contains(&id.len()) && id.chars().all(is_plain)
}

fn plain(text: &str, most: usize) -> String {
    text.chars().map(|c| if is_plain(c) { c } else { '_' }).take(most).collect()
}

/// Returns an id that every provider accepts. The digest keeps distinct ids distinct, and a call
/// and its result have the same one.
fn accepted_id(id: &str) -> String {
    if is_call_id(id) {
        return id.to_owned();
    }
    let digest = hex::encode(Sha256::digest(id).get(..8).unwrap_or_default());
    format!("{}_{digest}", plain(id, MAX_CALL_ID - digest.len() - 1))
}

fn accepted_name(name: &str) -> String {
    if name.is_empty() { NO_NAME.to_owned() } else { plain(name, MAX_NAME) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_accepted_distinct_and_stable() {
        let long = "x".repeat(41);
        let ids = ["", "a.b", "a:b", "a b", "é", "functions.read:0", &long, &"x".repeat(400)];
        let accepted: Vec<String> = ids.iter().map(|id| accepted_id(id)).collect();
        assert!(accepted.iter().all(|id| is_call_id(id)), "{accepted:?}");
        let distinct: std::collections::HashSet<_> = accepted.iter().collect();
        assert_eq!(distinct.len(), ids.len());
        assert_eq!(accepted[3], accepted_id("a b"));
        assert_eq!(accepted_id("toolu_01T1x1fJ34qAmk2tNTrN7Up6"), "toolu_01T1x1fJ34qAmk2tNTrN7Up6");
    }

    #[test]
    fn result_has_the_rewritten_id_of_its_call() {
        let call = |id: &str| ToolUse {
            id: id.into(),
            name: "repo.search now".into(),
            arguments: json!({}),
        };
        let result = |id: &str| Message::Tool {
            call_id: id.into(),
            name: "repo.search now".into(),
            content: "c".into(),
            failed: false,
        };
        let calls = vec![call("f.x:0"), call("f.x:1"), call("ok-1")];
        let messages = [
            Message::Assistant { text: String::new(), calls, reasoning: None },
            result("f.x:0"),
            result("f.x:1"),
            result("ok-1"),
        ];
        let repaired = repair(&messages);
        let Message::Assistant { calls, .. } = &*repaired[0] else { panic!("no answer") };
        for (call, message) in calls.iter().zip(&repaired[1..]) {
            let Message::Tool { call_id, name, .. } = &**message else { panic!("no result") };
            assert_eq!((&call.id, &call.name), (call_id, name));
            assert!(is_call_id(call_id) && name == "repo_search_now", "{call_id} {name}");
        }
        assert_eq!(calls[2].id, "ok-1");
    }
}
