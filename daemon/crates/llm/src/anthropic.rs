//! Anthropic's messages API.

mod read;
mod schema;

use std::borrow::Cow;

use cairn_protocol::model::{Message, ModelInfo, Part};
use http::{HeaderMap, HeaderValue};
use serde_json::{Map, Value, json};

pub(crate) use read::Reader;

use crate::{
    Key, LlmError, ModelRequest,
    conversation::{OMITTED_MESSAGES, arguments, is_empty, repair},
    decode::Format,
    effort::{Effort, with_reasoning},
    endpoint::Endpoint,
    reasoning::items_of,
    remote::{Dialect, Query, Target, secret},
};

/// Supported version of the API.
const VERSION: &str = "2023-06-01";
/// Default limit of answer tokens, because the API requires one.
const DEFAULT_MAX_TOKENS: u32 = 4096;

/// Dialect of Anthropic's messages API.
pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    fn format(&self) -> Format {
        Format::Anthropic
    }

    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn chat_path(&self, _model: &str) -> Cow<'static, str> {
        "/messages".into()
    }

    fn headers(&self, key: Option<&Key>) -> Result<HeaderMap, LlmError> {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        if let Some(key) = key {
            headers.insert("x-api-key", secret(key.expose())?);
        }
        Ok(headers)
    }

    fn body(&self, target: &Target<'_>, request: &ModelRequest) -> Result<Value, LlmError> {
        let mut body = Map::new();
        let limit = with_reasoning(limit(request), target);
        body.insert("model".into(), target.model.into());
        body.insert("max_tokens".into(), limit.into());
        if !request.system.is_empty() {
            // The system text is the same in each request, so the provider should cache it.
            let text = json!({ "type": "text", "text": request.system, "cache_control": { "type": "ephemeral" } });
            body.insert("system".into(), json!([text]));
        }
        body.insert("messages".into(), messages(target.model, request));
        body.insert("stream".into(), true.into());
        let (thinking, mut output) = thinking(target, request, limit);
        if let Some(temperature) = target.temperature(request).filter(|_| thinking.is_none()) {
            // Anthropic accepts temperatures up to 1, other providers up to 2.
            body.insert("temperature".into(), temperature.min(1.0).into());
        }
        if let Some(thinking) = thinking {
            body.insert("thinking".into(), thinking);
        }
        let mut tools = tools(request);
        if let Some(schema) = &request.schema {
            if schema.get("type").and_then(Value::as_str) != Some("object") {
                let text = "anthropic only supports schemas of an object: wrap the schema in one";
                return Err(LlmError::Rejected(text.into()));
            }
            if target.preset.is_none_or(|preset| preset.structured_output) {
                let schema = schema::strict(schema);
                output.insert("format".into(), json!({ "type": "json_schema", "schema": schema }));
            } else {
                let name = schema_tool(request);
                let description = "Returns the answer in the requested format.";
                tools.push(
                    json!({ "name": name, "description": description, "input_schema": schema }),
                );
                body.insert("tool_choice".into(), json!({ "type": "tool", "name": name }));
            }
        }
        if !output.is_empty() {
            body.insert("output_config".into(), output.into());
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
                context_tokens: tokens.and_then(Value::as_u64),
                max_output_tokens: model.get("max_tokens").and_then(Value::as_u64),
                size_bytes: model.pointer("/meta/size").and_then(Value::as_u64),
                ..ModelInfo::new(self.name(), name)
            })
        });
        Some(models.collect())
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

/// Minimum of `budget_tokens` in the API.
const MIN_BUDGET: u32 = 1024;

/// Returns the configuration of thinking and that of the answer. `limit` is the request's limit of
/// tokens.
fn thinking(
    target: &Target<'_>,
    request: &ModelRequest,
    limit: u32,
) -> (Option<Value>, Map<String, Value>) {
    let mut output = Map::new();
    // The API refuses thinking together with a tool that must be called.
    let is_forced =
        request.schema.is_some() && target.preset.is_some_and(|preset| !preset.structured_output);
    let may_think = !is_forced && !lacks_thinking(target.model, request);
    let Some(effort) = target.effort.filter(|_| may_think) else {
        return (None, output);
    };
    // Models that the presets do not know are newer than these.
    if target.preset.is_none_or(|preset| preset.adaptive_thinking) {
        let effort = match effort {
            Effort::None => return (Some(json!({ "type": "disabled" })), output),
            Effort::Minimal => Effort::Low,
            effort => effort,
        };
        output.insert("effort".into(), effort.name().into());
        return (Some(json!({ "type": "adaptive", "display": "summarized" })), output);
    }
    // The API requires a budget below the limit of the answer.
    let budget = effort.budget().min(limit.saturating_sub(MIN_BUDGET));
    let enabled = (budget >= MIN_BUDGET && target.preset.is_some_and(|preset| preset.reasoning))
        .then(|| json!({ "type": "enabled", "budget_tokens": budget }));
    (enabled, output)
}

/// True if the last answer's calls were made without this model's thinking, as after a change of the
/// model within a turn: the API refuses a request with thinking then.
fn lacks_thinking(model: &str, request: &ModelRequest) -> bool {
    let this_turn = request.messages.iter().rev();
    let mut this_turn = this_turn.take_while(|m| !matches!(m, Message::User { .. }));
    this_turn.any(|message| match message {
        Message::Assistant { calls, reasoning, .. } => {
            !calls.is_empty() && items_of(reasoning.as_ref(), "anthropic", model).is_empty()
        }
        _ => false,
    })
}

fn tools(request: &ModelRequest) -> Vec<Value> {
    let tools = request.tools.iter().map(|tool| {
        json!({ "name": tool.name(), "description": tool.description(), "input_schema": tool.input_schema() })
    });
    tools.collect()
}

/// Converts messages to alternating roles, starting with the user. Tool results belong to the user
/// and come first in a message.
fn messages(model: &str, request: &ModelRequest) -> Value {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in repair(&request.messages) {
        let (role, blocks) = blocks(model, message);
        match turns.last_mut() {
            Some((last, all)) if *last == role => all.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    if turns.first().is_none_or(|(role, _)| *role == "assistant") {
        turns.insert(0, ("user", vec![json!({ "type": "text", "text": OMITTED_MESSAGES })]));
    }
    // The next request starts with this prefix, so the provider should cache it.
    let last = turns.last_mut().and_then(|(_, blocks)| blocks.last_mut());
    if let Some(Value::Object(last)) = last.filter(|last| !is_thinking(last)) {
        last.insert("cache_control".into(), json!({ "type": "ephemeral" }));
    }
    turns.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

/// True for a block that takes no mark of the cache.
fn is_thinking(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

fn blocks(model: &str, message: Cow<'_, Message>) -> (&'static str, Vec<Value>) {
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
        Message::Assistant { text, calls, reasoning } => {
            let thinking = items_of(reasoning.as_ref(), "anthropic", model);
            let thinking = thinking.iter().map(|item| item.item.clone());
            // The API refuses trailing white space in assistant text.
            let text = text.trim_end();
            let text_block = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
            let calls = calls.iter().map(|call| {
                json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": *arguments(call) })
            });
            ("assistant", thinking.chain(text_block).chain(calls).collect())
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
