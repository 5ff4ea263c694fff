//! Google's Gemini API, version v1beta.

mod read;

use std::borrow::Cow;

use cairn_protocol::model::{Message, ModelInfo, Part, ReasoningItem};
use http::HeaderMap;
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

/// Prefix of models' names in the API's paths and lists.
const MODELS: &str = "models/";
/// Signature that the API accepts for a call that another model made, from its documentation of
/// thought signatures.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

/// Dialect of the Gemini API.
pub(crate) struct Gemini;

impl Dialect for Gemini {
    fn format(&self) -> Format {
        Format::Gemini
    }

    fn name(&self) -> &'static str {
        "gemini"
    }

    fn chat_path(&self, model: &str) -> Cow<'static, str> {
        let model = model.strip_prefix(MODELS).unwrap_or(model);
        format!("/{MODELS}{model}:streamGenerateContent?alt=sse").into()
    }

    fn headers(&self, key: Option<&Key>) -> Result<HeaderMap, LlmError> {
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            headers.insert("x-goog-api-key", secret(key.expose())?);
        }
        Ok(headers)
    }

    fn body(&self, target: &Target<'_>, request: &ModelRequest) -> Result<Value, LlmError> {
        let mut body = Map::new();
        body.insert("contents".into(), contents(target.model, request));
        if !request.system.is_empty() {
            body.insert(
                "systemInstruction".into(),
                json!({ "parts": [{ "text": request.system }] }),
            );
        }
        if !request.tools.is_empty() {
            let tools = request.tools.iter().map(|tool| {
                json!({
                    "name": tool.name(),
                    "description": tool.description(),
                    "parametersJsonSchema": tool.input_schema(),
                })
            });
            body.insert(
                "tools".into(),
                json!([{ "functionDeclarations": tools.collect::<Value>() }]),
            );
        }
        let config = generation(target, request);
        if !config.is_empty() {
            body.insert("generationConfig".into(), config.into());
        }
        Ok(Value::Object(body))
    }

    fn models_query(&self, endpoint: &Endpoint) -> Query {
        Query::get(endpoint.api("/models?pageSize=1000"))
    }

    fn models(&self, answer: &Value) -> Option<Vec<ModelInfo>> {
        let models = answer.get("models")?.as_array()?.iter().filter_map(|model| {
            let methods = model.get("supportedGenerationMethods").and_then(Value::as_array);
            let chats =
                |methods: &Vec<Value>| methods.iter().any(|method| method == "generateContent");
            if !methods.is_none_or(chats) {
                return None;
            }
            let name = model.get("name")?.as_str()?;
            let number = |field: &str| model.get(field).and_then(Value::as_u64);
            Some(ModelInfo {
                context_tokens: number("inputTokenLimit"),
                max_output_tokens: number("outputTokenLimit"),
                ..ModelInfo::new(self.name(), name.strip_prefix(MODELS).unwrap_or(name))
            })
        });
        Some(models.collect())
    }
}

fn generation(target: &Target<'_>, request: &ModelRequest) -> Map<String, Value> {
    let mut config = Map::new();
    if let Some(temperature) = target.temperature(request) {
        config.insert("temperature".into(), temperature.into());
    }
    if request.max_tokens > 0 {
        config.insert("maxOutputTokens".into(), with_reasoning(request.max_tokens, target).into());
    }
    if let Some(thinking) = thinking(target) {
        config.insert("thinkingConfig".into(), thinking);
    }
    if let Some(schema) = &request.schema {
        config.insert("responseMimeType".into(), "application/json".into());
        config.insert("responseJsonSchema".into(), schema.clone());
    }
    config
}

/// True for a model of version 3 or later, which takes a level of thinking instead of a budget, and
/// requires the signatures of its calls.
fn has_levels(model: &str) -> bool {
    let version = model.strip_prefix(MODELS).unwrap_or(model).strip_prefix("gemini-");
    let number = version.and_then(|v| v.split(['.', '-']).next()).and_then(|n| n.parse().ok());
    number.is_some_and(|number: u32| number >= 3)
}

/// Returns the configuration of thinking; `None` for a model that does not think.
fn thinking(target: &Target<'_>) -> Option<Value> {
    let (model, effort) = (target.model, target.effort);
    let thinks = has_levels(model) || target.preset.is_some_and(|preset| preset.reasoning);
    if !thinks && effort.is_none() {
        return None;
    }
    let mut config = json!({ "includeThoughts": effort != Some(Effort::None) });
    match effort {
        Some(effort) if has_levels(model) => {
            config["thinkingLevel"] = match effort {
                Effort::None | Effort::Minimal => "MINIMAL",
                Effort::Low => "LOW",
                Effort::Medium => "MEDIUM",
                Effort::High => "HIGH",
                Effort::XHigh | Effort::Max => "XHIGH",
            }
            .into();
        }
        Some(effort) => config["thinkingBudget"] = effort.budget().into(),
        None => {}
    }
    Some(config)
}

/// Converts the conversation. All results of one answer are one content, with nothing else in it.
fn contents(model: &str, request: &ModelRequest) -> Value {
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut is_result = false;
    for message in repair(&request.messages) {
        let follows_result = std::mem::replace(&mut is_result, false);
        match &*message {
            Message::User { parts } => {
                let parts = parts.iter().filter(|part| !is_empty(part)).map(|part| match part {
                    Part::Text { text } => json!({ "text": text }),
                    Part::Image { mime, data } => {
                        json!({ "inlineData": { "mimeType": mime, "data": data } })
                    }
                });
                contents.push(("user", parts.collect()));
            }
            Message::Assistant { .. } => contents.push(("model", answer(model, &message))),
            Message::Tool { call_id, name, content, failed } => {
                is_result = true;
                let key = if *failed { "error" } else { "output" };
                let result = json!({ "id": call_id, "name": name, "response": { key: content } });
                let part = json!({ "functionResponse": result });
                match contents.last_mut() {
                    Some((_, parts)) if follows_result => parts.push(part),
                    _ => contents.push(("user", vec![part])),
                }
            }
        }
    }
    if contents.first().is_none_or(|(role, _)| *role == "model") {
        contents.insert(0, ("user", vec![json!({ "text": OMITTED_MESSAGES })]));
    }
    contents.into_iter().map(|(role, parts)| json!({ "role": role, "parts": parts })).collect()
}

/// Converts an answer; its calls have the signatures that the model gave them.
fn answer(model: &str, message: &Message) -> Vec<Value> {
    let Message::Assistant { text, calls, reasoning } = message else { return vec![] };
    let items = items_of(reasoning.as_ref(), "gemini", model);
    let signature = |at: usize, is_text: bool| {
        let fits = |item: &&ReasoningItem| {
            item.before_call as usize == at && item.item["isText"].as_bool() == Some(is_text)
        };
        items.iter().find(fits).map(|item| item.item["thoughtSignature"].clone())
    };
    let mut parts = Vec::new();
    if !text.is_empty() {
        let mut part = json!({ "text": text });
        if let Some(signature) = (0..=calls.len()).find_map(|at| signature(at, true)) {
            part["thoughtSignature"] = signature;
        }
        parts.push(part);
    }
    for (at, call) in calls.iter().enumerate() {
        let function = json!({ "id": call.id, "name": call.name, "args": *arguments(call) });
        let mut part = json!({ "functionCall": function });
        // Only the first call of an answer must be signed.
        let foreign = || (at == 0 && has_levels(model)).then(|| FOREIGN_SIGNATURE.into());
        if let Some(signature) = signature(at, false).or_else(foreign) {
            part["thoughtSignature"] = signature;
        }
        parts.push(part);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_follows_the_version_of_the_model() {
        for (model, effort, expected) in [
            ("gemini-2.0-flash", None, None),
            ("gemini-3.1-pro-preview", None, Some(json!({ "includeThoughts": true }))),
            (
                "models/gemini-3.8-flash",
                Some(Effort::XHigh),
                Some(json!({ "includeThoughts": true, "thinkingLevel": "XHIGH" })),
            ),
            (
                "gemini-2.5-pro",
                Some(Effort::Low),
                Some(json!({ "includeThoughts": true, "thinkingBudget": Effort::Low.budget() })),
            ),
            (
                "gemini-2.5-flash",
                Some(Effort::None),
                Some(json!({ "includeThoughts": false, "thinkingBudget": 0 })),
            ),
        ] {
            let target = Target { model, context: None, preset: None, effort };
            assert_eq!(thinking(&target), expected, "{model}");
        }
    }
}
