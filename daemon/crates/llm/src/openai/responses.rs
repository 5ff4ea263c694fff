//! OpenAI's responses API: the body of a request.

use cairn_protocol::model::{Message, Part};
use serde_json::{Map, Value, json};

use super::is_strict;
use crate::{
    ModelRequest,
    conversation::{arguments, is_empty, repair},
    effort::with_reasoning,
    reasoning::items_of,
    remote::Target,
};

/// Minimum of `max_output_tokens` in the API.
const MIN_TOKENS: u32 = 16;

/// Returns the body of a request. Nothing is stored at the provider: each request has the complete
/// conversation.
pub(super) fn body(
    provider: &str,
    target: &Target<'_>,
    request: &ModelRequest,
) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("model".into(), target.model.into());
    body.insert("input".into(), input(provider, target.model, request));
    body.insert("stream".into(), true.into());
    body.insert("store".into(), false.into());
    if !request.system.is_empty() {
        body.insert("instructions".into(), request.system.as_str().into());
    }
    if request.max_tokens > 0 {
        let limit = with_reasoning(request.max_tokens, target);
        body.insert("max_output_tokens".into(), limit.max(MIN_TOKENS).into());
    }
    if let Some(temperature) = target.temperature(request) {
        body.insert("temperature".into(), temperature.into());
    }
    if let Some(effort) = target.effort {
        let reasoning = json!({ "effort": effort.name(), "summary": "auto" });
        body.insert("reasoning".into(), reasoning);
    }
    // Without storage at the provider, its reasoning continues only if it is returned.
    if target.effort.is_some() || target.preset.is_some_and(|preset| preset.reasoning) {
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    }
    if !request.tools.is_empty() {
        body.insert("tools".into(), tools(request));
    }
    if let Some(schema) = &request.schema {
        let strict = is_strict(schema);
        let format =
            json!({ "type": "json_schema", "name": "answer", "schema": schema, "strict": strict });
        body.insert("text".into(), json!({ "format": format }));
    }
    body
}

/// Converts tools. Strict tools would require every property, so that none is optional.
fn tools(request: &ModelRequest) -> Value {
    let tools = request.tools.iter().map(|tool| {
        json!({
            "type": "function",
            "name": tool.name(),
            "description": tool.description(),
            "parameters": tool.input_schema(),
            "strict": false,
        })
    });
    tools.collect()
}

/// Converts the conversation to items: messages, calls and their results.
fn input(provider: &str, model: &str, request: &ModelRequest) -> Value {
    let messages = repair(&request.messages);
    messages.iter().flat_map(|message| items(provider, model, message)).collect()
}

fn items(provider: &str, model: &str, message: &Message) -> Vec<Value> {
    match message {
        Message::User { parts } => {
            let parts = parts.iter().filter(|part| !is_empty(part)).map(|part| match part {
                Part::Text { text } => json!({ "type": "input_text", "text": text }),
                Part::Image { mime, data } => json!({
                    "type": "input_image",
                    "image_url": format!("data:{mime};base64,{data}"),
                    "detail": "auto",
                }),
            });
            vec![json!({ "role": "user", "content": parts.collect::<Value>() })]
        }
        Message::Assistant { text, calls, reasoning } => {
            // An item of reasoning stands directly before the item that it led to.
            let reasoning = items_of(reasoning.as_ref(), provider, model);
            let before = |at: usize| {
                let fitting = reasoning.iter().filter(move |item| item.before_call as usize == at);
                fitting.map(|item| item.item.clone())
            };
            let mut items: Vec<Value> = before(0).collect();
            if !text.trim().is_empty() {
                items.push(json!({ "role": "assistant", "content": text }));
            }
            for (at, call) in calls.iter().enumerate() {
                if at > 0 {
                    items.extend(before(at));
                }
                items.push(json!({
                    "type": "function_call",
                    "call_id": call.id,
                    "name": call.name,
                    "arguments": arguments(call).to_string(),
                }));
            }
            items
        }
        Message::Tool { call_id, content, .. } => {
            vec![json!({ "type": "function_call_output", "call_id": call_id, "output": content })]
        }
    }
}
