//! Ollama's native chat API.

mod read;

use std::borrow::Cow;

use cairn_protocol::model::{Message, ModelInfo, Part};
use http::HeaderMap;
use serde_json::{Map, Value, json};

pub(crate) use read::Reader;

use crate::{
    Key, LlmError, ModelRequest,
    conversation::{arguments, is_empty, repair},
    decode::Format,
    effort::Effort,
    endpoint::Endpoint,
    openai::tools,
    remote::{Dialect, Query, Target, bearer},
};

/// Context size in tokens that the server is requested to have, where none is configured and the
/// model is not loaded yet.
const DEFAULT_CONTEXT: u64 = 32_000;

/// Dialect of Ollama's chat API.
pub(crate) struct Ollama;

impl Dialect for Ollama {
    fn format(&self) -> Format {
        Format::Ollama
    }

    fn name(&self) -> &'static str {
        "ollama"
    }

    fn chat_path(&self, _model: &str) -> Cow<'static, str> {
        "/api/chat".into()
    }

    fn headers(&self, key: Option<&Key>) -> Result<HeaderMap, LlmError> {
        bearer(key)
    }

    fn body(&self, target: &Target<'_>, request: &ModelRequest) -> Result<Value, LlmError> {
        let mut options = Map::new();
        if let Some(temperature) = request.temperature {
            options.insert("temperature".into(), temperature.into());
        }
        if request.max_tokens > 0 {
            options.insert("num_predict".into(), request.max_tokens.into());
        }
        // Without it the server uses its default, often 4096, and silently drops the start of a
        // longer prompt.
        options.insert("num_ctx".into(), target.context.unwrap_or(DEFAULT_CONTEXT).into());
        let mut body = Map::new();
        body.insert("model".into(), target.model.into());
        body.insert("messages".into(), messages(request));
        body.insert("stream".into(), true.into());
        body.insert("options".into(), options.into());
        if !request.tools.is_empty() {
            body.insert("tools".into(), tools(request));
        }
        if let Some(effort) = target.effort {
            body.insert("think".into(), think(target.model, effort));
        }
        if let Some(schema) = &request.schema {
            body.insert("format".into(), schema.clone());
        }
        Ok(Value::Object(body))
    }

    fn models_query(&self, endpoint: &Endpoint) -> Query {
        Query::get(endpoint.api("/api/tags"))
    }

    fn models(&self, answer: &Value) -> Option<Vec<ModelInfo>> {
        let models = answer.get("models")?.as_array()?.iter().filter_map(|model| {
            let name = model.get("model").or_else(|| model.get("name"))?.as_str()?;
            Some(ModelInfo {
                size_bytes: model.get("size").and_then(Value::as_u64),
                ..ModelInfo::new(self.name(), name)
            })
        });
        Some(models.collect())
    }

    fn default_context(&self) -> Option<u64> {
        Some(DEFAULT_CONTEXT)
    }

    fn context_query(&self, endpoint: &Endpoint, _model: &str) -> Option<Query> {
        Some(Query::get(endpoint.api("/api/ps")))
    }

    /// Returns the context size of a loaded model. `/api/show` reports the size that the weights
    /// support, not the one that the server allocates.
    fn context(&self, answer: &Value, model: &str) -> Option<u64> {
        let full_name =
            if model.contains(':') { model.to_owned() } else { format!("{model}:latest") };
        let named = |one: &&Value| {
            ["model", "name"]
                .iter()
                .any(|field| one.get(field).and_then(Value::as_str) == Some(full_name.as_str()))
        };
        answer.get("models")?.as_array()?.iter().find(named)?.get("context_length")?.as_u64()
    }
}

/// Returns the value of `think`: a switch, or a level for the models that have levels.
fn think(model: &str, effort: Effort) -> Value {
    match effort {
        Effort::None => false.into(),
        _ if !model.starts_with("gpt-oss") => true.into(),
        Effort::Minimal | Effort::Low => "low".into(),
        Effort::Medium => "medium".into(),
        Effort::High | Effort::XHigh | Effort::Max => "high".into(),
    }
}

fn messages(request: &ModelRequest) -> Value {
    let system = (!request.system.is_empty())
        .then(|| json!({ "role": "system", "content": request.system }));
    let rest = repair(&request.messages);
    Value::Array(system.into_iter().chain(rest.iter().map(|message| one(message))).collect())
}

fn one(message: &Message) -> Value {
    match message {
        Message::User { parts } => {
            let texts = parts.iter().filter(|part| !is_empty(part)).filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                Part::Image { .. } => None,
            });
            let images: Vec<&str> = parts
                .iter()
                .filter_map(|part| match part {
                    Part::Image { data, .. } if !data.is_empty() => Some(data.as_str()),
                    _ => None,
                })
                .collect();
            let text = texts.collect::<Vec<_>>().join("\n\n");
            if images.is_empty() {
                json!({ "role": "user", "content": text })
            } else {
                json!({ "role": "user", "content": text, "images": images })
            }
        }
        Message::Assistant { text, calls, .. } if calls.is_empty() => {
            json!({ "role": "assistant", "content": text })
        }
        Message::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| {
                json!({ "id": call.id, "function": { "name": call.name, "arguments": *arguments(call) } })
            });
            json!({ "role": "assistant", "content": text, "tool_calls": calls.collect::<Value>() })
        }
        Message::Tool { call_id, name, content, .. } => {
            json!({ "role": "tool", "tool_name": name, "tool_call_id": call_id, "content": content })
        }
    }
}
