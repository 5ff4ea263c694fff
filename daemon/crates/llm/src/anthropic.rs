//! Anthropic's messages API.

mod read;

use std::borrow::Cow;

use cairn_protocol::model::{Message, ModelInfo, Part};
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};

pub(crate) use read::Reader;

use crate::{
    Key, LlmError, ModelRequest, catalog,
    conversation::{arguments, is_empty, repair},
    decode::Format,
    endpoint::Endpoint,
    remote::{Dialect, Query, secret},
};

/// Supported version of the API.
const VERSION: &str = "2023-06-01";
/// Default limit of answer tokens, because the API requires one.
const DEFAULT_MAX_TOKENS: u32 = 4096;
/// Placeholder before a conversation whose first messages were dropped: the first message must be
/// the user's.
const OMITTED_MESSAGES: &str = "(earlier messages are omitted)";

/// Dialect of Anthropic's messages API.
pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    fn format(&self) -> Format {
        Format::Anthropic
    }

    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn chat_path(&self) -> &'static str {
        "/messages"
    }

    fn headers(&self, key: Option<&Key>) -> Result<HeaderMap, LlmError> {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        if let Some(key) = key {
            headers.insert("x-api-key", secret(key.expose())?);
        }
        Ok(headers)
    }

    fn body(
        &self,
        model: &str,
        request: &ModelRequest,
        _context: Option<u64>,
    ) -> Result<Value, LlmError> {
        let mut body = Map::new();
        body.insert("model".into(), model.into());
        body.insert("max_tokens".into(), limit(request).into());
        if !request.system.is_empty() {
            // The system text is the same in each request, so the provider should cache it.
            let text = json!({ "type": "text", "text": request.system, "cache_control": { "type": "ephemeral" } });
            body.insert("system".into(), json!([text]));
        }
        body.insert("messages".into(), messages(request));
        body.insert("stream".into(), true.into());
        if let Some(temperature) = request.temperature {
            // Anthropic accepts temperatures up to 1, other providers up to 2.
            body.insert("temperature".into(), temperature.min(1.0).into());
        }
        let mut tools = tools(request);
        if let Some(schema) = &request.schema {
            if schema.get("type").and_then(Value::as_str) != Some("object") {
                let text = "anthropic only supports schemas of an object: wrap the schema in one";
                return Err(LlmError::Rejected(text.into()));
            }
            let name = schema_tool(request);
            let description = "Returns the answer in the requested format.";
            tools.push(json!({ "name": name, "description": description, "input_schema": schema }));
            body.insert("tool_choice".into(), json!({ "type": "tool", "name": name }));
        }
        if !tools.is_empty() {
            body.insert("tools".into(), tools.into());
        }
        Ok(Value::Object(body))
    }

    fn models_query(&self, endpoint: &Endpoint) -> Query {
        Query::get(endpoint.api("/models?limit=1000"))
    }

    fn models(&self, answer: &Value) -> Option<Vec<ModelInfo>> {
        let models = answer.get("data")?.as_array()?.iter().filter_map(|model| {
            let name = model.get("id")?.as_str()?;
            let tokens = model.get("max_input_tokens").or_else(|| model.pointer("/meta/n_ctx"));
            Some(ModelInfo {
                provider: self.name().into(),
                model: name.to_owned(),
                context_tokens: tokens
                    .and_then(Value::as_u64)
                    .or_else(|| catalog::family_context(name)),
                size_bytes: model.pointer("/meta/size").and_then(Value::as_u64),
            })
        });
        Some(models.collect())
    }

    fn family_context(&self, model: &str) -> Option<u64> {
        catalog::family_context(model)
    }
}

fn limit(request: &ModelRequest) -> u32 {
    if request.max_tokens > 0 { request.max_tokens } else { DEFAULT_MAX_TOKENS }
}

/// Returns an unused tool name for the tool through which a structured answer is enforced.
fn schema_tool(request: &ModelRequest) -> String {
    let mut name = "answer".to_owned();
    while request.tools.iter().any(|tool| tool.name() == name) {
        name.push('_');
    }
    name
}

fn tools(request: &ModelRequest) -> Vec<Value> {
    let tools = request.tools.iter().map(|tool| {
        json!({ "name": tool.name(), "description": tool.description(), "input_schema": tool.input_schema() })
    });
    tools.collect()
}

/// Converts messages to alternating roles, starting with the user. Tool results belong to the user
/// and come first in a message.
fn messages(request: &ModelRequest) -> Value {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in repair(&request.messages) {
        let (role, blocks) = blocks(message);
        match turns.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    if turns.first().is_none_or(|(role, _)| *role == "assistant") {
        turns.insert(0, ("user", vec![json!({ "type": "text", "text": OMITTED_MESSAGES })]));
    }
    // The next request starts with this prefix, so the provider should cache it.
    if let Some(Value::Object(last)) = turns.last_mut().and_then(|(_, blocks)| blocks.last_mut()) {
        last.insert("cache_control".into(), json!({ "type": "ephemeral" }));
    }
    turns.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn blocks(message: Cow<'_, Message>) -> (&'static str, Vec<Value>) {
    match &*message {
        Message::User { parts } => {
            let parts = parts.iter().filter(|part| !is_empty(part)).map(|part| match part {
                Part::Text { text } => json!({ "type": "text", "text": text }),
                Part::Image { mime, data } => {
                    let source = json!({ "type": "base64", "media_type": mime, "data": data });
                    json!({ "type": "image", "source": source })
                }
            });
            ("user", parts.collect())
        }
        Message::Assistant { text, calls } => {
            // The API refuses trailing white space in assistant text.
            let text = text.trim_end();
            let text_block = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
            let calls = calls.iter().map(|call| {
                json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": *arguments(call) })
            });
            ("assistant", text_block.into_iter().chain(calls).collect())
        }
        Message::Tool { call_id, content, failed, .. } => {
            let mut block =
                json!({ "type": "tool_result", "tool_use_id": call_id, "content": content });
            if *failed && let Some(fields) = block.as_object_mut() {
                fields.insert("is_error".into(), true.into());
            }
            ("user", vec![block])
        }
    }
}
