//! OpenAI's responses API: the body of a request.

use cairn_protocol::model::{Message, Part};
use serde_json::{Map, Value, json};

use super::is_strict;
use crate::{
    ModelRequest,
    conversation::{arguments, is_empty, repair},
};

/// Minimum of `max_output_tokens` in the API.
const MIN_TOKENS: u32 = 16;

/// Returns the body of a request. Nothing is stored at the provider: each request has the complete
/// conversation.
pub(super) fn body(
    model: &str,
    request: &ModelRequest,
    effort: Option<&str>,
) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("model".into(), model.into());
    body.insert("input".into(), input(request));
    body.insert("stream".into(), true.into());
    body.insert("store".into(), false.into());
    if !request.system.is_empty() {
        body.insert("instructions".into(), request.system.as_str().into());
    }
    if request.max_tokens > 0 {
        body.insert("max_output_tokens".into(), request.max_tokens.max(MIN_TOKENS).into());
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".into(), temperature.into());
    }
    if let Some(effort) = effort {
        body.insert("reasoning".into(), json!({ "effort": effort }));
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
fn input(request: &ModelRequest) -> Value {
    repair(&request.messages).iter().flat_map(|message| items(message)).collect()
}

fn items(message: &Message) -> Vec<Value> {
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
        Message::Assistant { text, calls } => {
            let text =
                (!text.trim().is_empty()).then(|| json!({ "role": "assistant", "content": text }));
            let calls = calls.iter().map(|call| {
                json!({
                    "type": "function_call",
                    "call_id": call.id,
                    "name": call.name,
                    "arguments": arguments(call).to_string(),
                })
            });
            text.into_iter().chain(calls).collect()
        }
        Message::Tool { call_id, content, .. } => {
            vec![json!({ "type": "function_call_output", "call_id": call_id, "output": content })]
        }
    }
}
