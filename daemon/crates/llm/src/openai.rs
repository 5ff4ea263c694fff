//! OpenAI's chat completions and responses APIs, and servers compatible with them.

mod read;
mod read_responses;
mod responses;

use std::borrow::Cow;

use cairn_protocol::model::{Message, ModelInfo, ModelPrice, Part};
use http::HeaderMap;
use serde_json::{Map, Value, json};

pub(crate) use read::Reader;

use crate::{
    Key, LlmError, ModelRequest,
    conversation::{arguments, is_empty, repair},
    decode::Format,
    effort::with_reasoning,
    endpoint::Endpoint,
    remote::{Dialect, Query, Target, bearer},
};

/// API of OpenAI, and of servers compatible with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OpenAiApi {
    /// Chat completions, which every compatible server has.
    #[default]
    Chat,
    /// Responses, through which OpenAI's newest models have all their abilities.
    Responses,
}

/// Dialect of both APIs.
pub(crate) struct OpenAi {
    /// Name of the provider: `openai` is OpenAI's own service, and every other one is compatible with
    /// it. They differ in a few fields.
    pub name: &'static str,
    pub api: OpenAiApi,
}

/// Prefixes of reasoning models, which accept no temperature.
const NO_TEMPERATURE: &[&str] = &["o1", "o3", "o4", "gpt-5", "gpt-6"];

impl Dialect for OpenAi {
    fn format(&self) -> Format {
        Format::OpenAi
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn chat_path(&self, _model: &str) -> Cow<'static, str> {
        match self.api {
            OpenAiApi::Chat => "/chat/completions".into(),
            OpenAiApi::Responses => "/responses".into(),
        }
    }

    fn headers(&self, key: Option<&Key>) -> Result<HeaderMap, LlmError> {
        bearer(key)
    }

    fn body(&self, target: &Target<'_>, request: &ModelRequest) -> Result<Value, LlmError> {
        let mut body = match self.api {
            OpenAiApi::Chat => self.chat_body(target, request),
            OpenAiApi::Responses => responses::body(self.name, target, request),
        };
        let has_family = |family: &str| target.model.starts_with(family);
        if !self.is_compatible() && NO_TEMPERATURE.iter().any(|family| has_family(family)) {
            body.remove("temperature");
        }
        Ok(Value::Object(body))
    }

    fn models_query(&self, endpoint: &Endpoint) -> Query {
        Query::get(endpoint.api("/models"))
    }

    fn models(&self, answer: &Value) -> Option<Vec<ModelInfo>> {
        let models = answer.get("data")?.as_array()?.iter().filter_map(|model| {
            Some(ModelInfo {
                context_tokens: context_of(model),
                max_output_tokens: model
                    .pointer("/top_provider/max_completion_tokens")
                    .and_then(Value::as_u64),
                size_bytes: model.pointer("/meta/size").and_then(Value::as_u64),
                price: price_of(model),
                ..ModelInfo::new(self.name, model.get("id")?.as_str()?)
            })
        });
        Some(models.collect())
    }

    fn context_query(&self, endpoint: &Endpoint, _model: &str) -> Option<Query> {
        (self.name == "openai-compatible").then(|| Query::get(endpoint.server("/props")))
    }

    fn lists_context(&self) -> bool {
        self.is_compatible()
    }

    fn unsure_fields(&self) -> &'static [&'static str] {
        if self.is_compatible() { &["return_progress"] } else { &[] }
    }

    fn is_llama(&self, answer: &Value) -> bool {
        answer.get("default_generation_settings").is_some()
    }

    fn context(&self, answer: &Value, _model: &str) -> Option<u64> {
        answer
            .pointer("/default_generation_settings/n_ctx")
            .or_else(|| answer.get("n_ctx"))?
            .as_u64()
    }
}

impl OpenAi {
    fn is_compatible(&self) -> bool {
        self.name != "openai"
    }

    /// Returns the body of a chat completion.
    fn chat_body(&self, target: &Target<'_>, request: &ModelRequest) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("model".into(), target.model.into());
        body.insert("messages".into(), messages(request));
        body.insert("stream".into(), true.into());
        body.insert("stream_options".into(), json!({ "include_usage": true }));
        let limit = if self.is_compatible() { "max_tokens" } else { "max_completion_tokens" };
        if self.name == "openrouter" {
            body.insert("usage".into(), json!({ "include": true }));
        }
        if request.max_tokens > 0 {
            body.insert(limit.into(), with_reasoning(request.max_tokens, target).into());
        }
        if let Some(temperature) = target.temperature(request) {
            body.insert("temperature".into(), temperature.into());
        }
        if let Some(effort) = target.effort {
            body.insert("reasoning_effort".into(), effort.name().into());
        }
        if !request.tools.is_empty() {
            body.insert("tools".into(), tools(request));
        }
        if let Some(schema) = &request.schema {
            let strict = self.is_compatible() || is_strict(schema);
            let named = json!({ "name": "answer", "schema": schema, "strict": strict });
            body.insert(
                "response_format".into(),
                json!({ "type": "json_schema", "json_schema": named }),
            );
        }
        // Extension of llama.cpp, which strict servers refuse; it is sent only where `/props` shows
        // that the server is llama.cpp.
        if self.is_compatible() && request.prompt_progress {
            body.insert("return_progress".into(), true.into());
        } else if self.is_compatible() {
            // Option of easyai, which reports the progress unless it is refused; sent only to a
            // server that has sent one of its events.
            let options = json!({ "include_usage": true, EASYAI_PROGRESS: false });
            body.insert("stream_options".into(), options);
        }
        body
    }
}

/// Option of `stream_options` for easyai's events about the progress of reading the prompt.
pub(crate) const EASYAI_PROGRESS: &str = "easyai_prompt_progress";

/// Finds the context size of a model: llama.cpp, vLLM, LM Studio and OpenRouter each report it in a
/// different field.
fn context_of(model: &Value) -> Option<u64> {
    let pointers = [
        "/meta/n_ctx",
        "/max_model_len",
        "/loaded_context_length",
        "/context_length",
        "/meta/n_ctx_train",
    ];
    pointers.into_iter().find_map(|pointer| model.pointer(pointer).and_then(Value::as_u64))
}

/// Reads the price that OpenRouter reports, in dollars for a token.
fn price_of(model: &Value) -> Option<ModelPrice> {
    let million = |field: &str| {
        let dollars = model.pointer(&format!("/pricing/{field}"))?;
        let dollars: f64 = dollars.as_str().map_or_else(|| dollars.as_f64(), |t| t.parse().ok())?;
        // A negative price is OpenRouter's sign for one that depends on the request.
        (dollars >= 0.0).then(|| (dollars * 1e11).round() / 1e5)
    };
    let (input, output) = (million("prompt")?, million("completion")?);
    Some(ModelPrice { input, output, cached: million("input_cache_read") })
}

fn messages(request: &ModelRequest) -> Value {
    let system = (!request.system.is_empty())
        .then(|| json!({ "role": "system", "content": request.system }));
    let rest = repair(&request.messages);
    Value::Array(system.into_iter().chain(rest.iter().map(|message| one(message))).collect())
}

fn one(message: &Message) -> Value {
    match message {
        Message::User { parts } => json!({ "role": "user", "content": content(parts) }),
        Message::Assistant { text, calls, .. } if calls.is_empty() => {
            json!({ "role": "assistant", "content": text })
        }
        Message::Assistant { text, calls, .. } => {
            let calls = calls.iter().map(|call| {
                let function =
                    json!({ "name": call.name, "arguments": arguments(call).to_string() });
                json!({ "id": call.id, "type": "function", "function": function })
            });
            let text = if text.is_empty() { Value::Null } else { text.as_str().into() };
            json!({ "role": "assistant", "content": text, "tool_calls": calls.collect::<Value>() })
        }
        Message::Tool { call_id, content, .. } => {
            json!({ "role": "tool", "tool_call_id": call_id, "content": content })
        }
    }
}

/// Converts content to plain text if possible, because small servers do not support parts.
fn content(parts: &[Part]) -> Value {
    if let [Part::Text { text }] = parts {
        return text.as_str().into();
    }
    let parts = parts.iter().filter(|part| !is_empty(part)).map(|part| match part {
        Part::Text { text } => json!({ "type": "text", "text": text }),
        Part::Image { mime, data } => {
            json!({ "type": "image_url", "image_url": { "url": format!("data:{mime};base64,{data}") } })
        }
    });
    parts.collect()
}

/// Converts tools to functions, a form that Ollama accepts too.
pub(crate) fn tools(request: &ModelRequest) -> Value {
    let tools = request.tools.iter().map(|tool| {
        let function = json!({
            "name": tool.name(),
            "description": tool.description(),
            "parameters": tool.input_schema(),
        });
        json!({ "type": "function", "function": function })
    });
    tools.collect()
}

/// True if OpenAI accepts the schema as strict: every object requires all its properties and allows
/// no others.
fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let object =
                fields.get("properties").and_then(Value::as_object).is_none_or(|properties| {
                    let required = fields.get("required").and_then(Value::as_array);
                    let names = |name: &String| {
                        required.is_some_and(|all| all.iter().any(|one| one == name.as_str()))
                    };
                    fields.get("additionalProperties") == Some(&Value::Bool(false))
                        && properties.keys().all(names)
                });
            object && fields.values().all(is_strict)
        }
        Value::Array(items) => items.iter().all(is_strict),
        _ => true,
    }
}
