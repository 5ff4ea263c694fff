//! Ollama's native chat API.

mod read;

use cairn_protocol::model::{Message, ModelInfo, Part};
use http::HeaderMap;
use serde_json::{Map, Value, json};

pub(crate) use read::Reader;

use crate::{
    Key, LlmError, ModelRequest,
    conversation::{arguments, is_empty, repair},
    decode::Format,
    endpoint::Endpoint,
    openai::tools,
    remote::{Dialect, Query, bearer},
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

    fn chat_path(&self) -> &'static str {
        "/api/chat"
    }

    fn headers(&self, key: Option<&Key>) -> Result<HeaderMap, LlmError> {
        bearer(key)
    }

    fn body(
        &self,
        model: &str,
        request: &ModelRequest,
        context: Option<u64>,
    ) -> Result<Value, LlmError> {
        let mut options = Map::new();
        if let Some(temperature) = request.temperature {
            options.insert("temperature".into(), temperature.into());
        }
        if request.max_tokens > 0 {
            options.insert("num_predict".into(), request.max_tokens.into());
        }
        // Without it the server uses its default, often 4096, and silently drops the start of a
        // longer prompt.
        options.insert("num_ctx".into(), context.unwrap_or(DEFAULT_CONTEXT).into());
        let mut body = Map::new();
        body.insert("model".into(), model.into());
        body.insert("messages".into(), messages(request));
        body.insert("stream".into(), true.into());
        body.insert("options".into(), options.into());
        if !request.tools.is_empty() {
            body.insert("tools".into(), tools(request));
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
                provider: self.name().into(),
                model: name.to_owned(),
                context_tokens: None,
                size_bytes: model.get("size").and_then(Value::as_u64),
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
        Message::Assistant { text, calls } if calls.is_empty() => {
            json!({ "role": "assistant", "content": text })
        }
        Message::Assistant { text, calls } => {
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
