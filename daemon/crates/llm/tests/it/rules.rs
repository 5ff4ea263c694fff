//! Requirements of each provider for a request, from its public reference.

use std::collections::HashSet;

use serde_json::Value;

use crate::peer::Request;

/// # Errors
/// The violated rule.
pub fn check(provider: &str, request: &Request) -> Result<(), String> {
    let broken = |why: String| format!("{provider} {}: {why}: {}", request.path, request.body);
    if request.header("content-type") != Some("application/json") {
        return Err(broken("no JSON".into()));
    }
    let checked = match provider {
        "openai" if request.path.ends_with("/responses") => responses(&request.body),
        "openai" => openai(request, OPENAI),
        "openai-compatible" => openai(request, COMPATIBLE),
        "openrouter" => openai(request, OPENROUTER),
        "anthropic" => anthropic(request),
        "gemini" => gemini(request),
        "ollama" => ollama(request),
        _ => Err("no rules".into()),
    };
    checked.map_err(broken)
}

const OPENAI: &[&str] = &[
    "model",
    "messages",
    "stream",
    "stream_options",
    "max_completion_tokens",
    "temperature",
    "reasoning_effort",
    "tools",
    "response_format",
];
const COMPATIBLE: &[&str] = &[
    "model",
    "messages",
    "stream",
    "stream_options",
    "max_tokens",
    "temperature",
    "tools",
    "response_format",
    "return_progress",
];

const OPENROUTER: &[&str] = &[
    "model",
    "messages",
    "stream",
    "stream_options",
    "max_tokens",
    "temperature",
    "reasoning_effort",
    "usage",
    "tools",
    "response_format",
];

fn that(met: bool, why: &str) -> Result<(), String> {
    if met { Ok(()) } else { Err(why.to_owned()) }
}

fn only(value: &Value, known: &[&str]) -> Result<(), String> {
    let fields = value.as_object().ok_or("no object")?;
    fields.keys().try_for_each(|field| {
        that(known.contains(&field.as_str()), &format!("unknown field {field}"))
    })
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str, String> {
    value
        .get(field)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
        .ok_or(format!("{field} is missing"))
}

fn messages(body: &Value) -> Result<&Vec<Value>, String> {
    body.get("messages")
        .and_then(Value::as_array)
        .filter(|all| !all.is_empty())
        .ok_or("no messages".into())
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// Characters of names and ids: `^[a-zA-Z0-9_-]{1,limit}$`.
fn plain<'a>(value: &'a Value, field: &str, limit: usize) -> Result<&'a str, String> {
    let text = text(value, field)?;
    let fits = text.len() <= limit
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    that(fits, &format!("{field} '{text}' has other characters or is too long"))?;
    Ok(text)
}

/// Top of a tool's schema, as OpenAI and Anthropic require it.
fn parameters(schema: &Value) -> Result<(), String> {
    that(schema["type"] == "object" && schema["properties"].is_object(), "no object schema")?;
    ["oneOf", "anyOf", "allOf", "enum", "not"].iter().try_for_each(|keyword| {
        that(schema.get(keyword).is_none(), &format!("{keyword} at the top of a schema"))
    })
}

fn functions(body: &Value) -> Result<(), String> {
    let Some(tools) = body.get("tools") else { return Ok(()) };
    that(tools.as_array().is_some_and(|tools| !tools.is_empty()), "tools are an empty list")?;
    for tool in list(tools) {
        only(&tool, &["type", "function"])?;
        only(&tool["function"], &["name", "description", "parameters"])?;
        plain(&tool["function"], "name", 64)?;
        parameters(&tool["function"]["parameters"])?;
    }
    Ok(())
}

fn openai(request: &Request, known: &[&str]) -> Result<(), String> {
    let body = &request.body;
    that(request.path.ends_with("/chat/completions"), "path")?;
    only(body, known)?;
    text(body, "model")?;
    that(body["stream"] == true && body["stream_options"]["include_usage"] == true, "no usage")?;
    functions(body)?;
    if let Some(format) = body.get("response_format") {
        that(
            format["type"] == "json_schema" && format["json_schema"]["schema"].is_object(),
            "response_format",
        )?;
        text(&format["json_schema"], "name")?;
    }
    let mut waiting: HashSet<String> = HashSet::new();
    for (at, message) in messages(body)?.iter().enumerate() {
        let role = text(message, "role")?;
        that(role == "tool" || waiting.is_empty(), "a call is not answered")?;
        match role {
            "system" => that(at == 0, "system text in the middle")?,
            "user" => user(message)?,
            "assistant" => {
                only(message, &["role", "content", "tool_calls"])?;
                that(
                    message.get("tool_calls").is_some() || message["content"].is_string(),
                    "empty answer",
                )?;
                for call in list(&message["tool_calls"]) {
                    that(call["type"] == "function", "type of a call")?;
                    plain(&call["function"], "name", 64)?;
                    let arguments = text(&call["function"], "arguments")?;
                    that(
                        serde_json::from_str::<Value>(arguments).is_ok_and(|v| v.is_object()),
                        "arguments",
                    )?;
                    that(waiting.insert(plain(&call, "id", 40)?.into()), "an id twice")?;
                }
            }
            "tool" => {
                only(message, &["role", "tool_call_id", "content"])?;
                that(message["content"].is_string(), "content of a tool")?;
                that(waiting.remove(text(message, "tool_call_id")?), "an answer without its call")?;
            }
            other => return Err(format!("role {other}")),
        }
    }
    that(waiting.is_empty(), "the last call is not answered")
}

const RESPONSES: &[&str] = &[
    "model",
    "input",
    "instructions",
    "stream",
    "store",
    "max_output_tokens",
    "temperature",
    "reasoning",
    "include",
    "tools",
    "text",
];

fn responses(body: &Value) -> Result<(), String> {
    only(body, RESPONSES)?;
    text(body, "model")?;
    that(body["stream"] == true && body["store"] == false, "stream and store")?;
    that(body.get("max_output_tokens").is_none_or(|most| most.as_u64() >= Some(16)), "tokens")?;
    for tool in list(&body["tools"]) {
        only(&tool, &["type", "name", "description", "parameters", "strict"])?;
        plain(&tool, "name", 64)?;
        parameters(&tool["parameters"])?;
    }
    let mut waiting: HashSet<String> = HashSet::new();
    let items = list(&body["input"]);
    that(!items.is_empty(), "no input")?;
    for item in &items {
        match (item["type"].as_str(), item["role"].as_str()) {
            (Some("function_call"), None) => {
                only(item, &["type", "call_id", "name", "arguments"])?;
                plain(item, "name", 64)?;
                let arguments = text(item, "arguments")?;
                let object = serde_json::from_str::<Value>(arguments).is_ok_and(|v| v.is_object());
                that(object, "arguments")?;
                that(waiting.insert(plain(item, "call_id", 64)?.into()), "an id twice")?;
            }
            (Some("reasoning"), None) => {
                only(item, &["type", "id", "summary", "content", "encrypted_content"])?;
                that(list(&body["include"]).len() == 1, "reasoning that is not included")?;
                text(item, "encrypted_content")?;
            }
            (Some("function_call_output"), None) => {
                only(item, &["type", "call_id", "output"])?;
                that(item["output"].is_string(), "output")?;
                that(waiting.remove(text(item, "call_id")?), "an output without its call")?;
            }
            (None, Some("user")) => {
                that(waiting.is_empty(), "a call is not answered")?;
                let parts = list(&item["content"]);
                that(!parts.is_empty(), "nothing said")?;
                parts.iter().try_for_each(|part| match part["type"].as_str() {
                    Some("input_text") => text(part, "text").map(drop),
                    Some("input_image") => text(part, "image_url").map(drop),
                    other => Err(format!("part {other:?}")),
                })?;
            }
            (None, Some("assistant")) => text(item, "content").map(drop)?,
            other => return Err(format!("item {other:?}")),
        }
    }
    that(waiting.is_empty(), "the last call is not answered")
}

fn user(message: &Value) -> Result<(), String> {
    only(message, &["role", "content"])?;
    if message["content"].is_string() {
        return text(message, "content").map(drop);
    }
    let parts = list(&message["content"]);
    that(!parts.is_empty(), "nothing said")?;
    parts.iter().try_for_each(|part| match part["type"].as_str() {
        Some("text") => text(part, "text").map(drop),
        Some("image_url") => {
            that(text(&part["image_url"], "url")?.starts_with("data:image/"), "image")
        }
        other => Err(format!("part {other:?}")),
    })
}

const ANTHROPIC: &[&str] = &[
    "model",
    "max_tokens",
    "system",
    "messages",
    "stream",
    "temperature",
    "thinking",
    "output_config",
    "tools",
    "tool_choice",
];

fn thinking(body: &Value) -> Result<(), String> {
    let Some(thinking) = body.get("thinking") else { return Ok(()) };
    that(body.get("temperature").is_none(), "thinking with a temperature")?;
    that(body.get("tool_choice").is_none(), "thinking with a forced tool")?;
    let budget = thinking["budget_tokens"].as_u64();
    let below = |budget| budget >= 1024 && Some(budget) < body["max_tokens"].as_u64();
    that(budget.is_none_or(below), "budget")
}

fn anthropic(request: &Request) -> Result<(), String> {
    let body = &request.body;
    that(request.path == "/v1/messages", "path")?;
    that(request.header("anthropic-version") == Some("2023-06-01"), "version")?;
    that(request.header("authorization").is_none(), "a bearer where there must be a key")?;
    only(body, ANTHROPIC)?;
    text(body, "model")?;
    that(body["max_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "max_tokens")?;
    that(
        body.get("temperature").is_none_or(|t| (0.0..=1.0).contains(&t.as_f64().unwrap())),
        "temperature",
    )?;
    for tool in list(&body["tools"]) {
        only(&tool, &["name", "description", "input_schema"])?;
        plain(&tool, "name", 64)?;
        parameters(&tool["input_schema"])?;
    }
    thinking(body)?;
    if let Some(choice) = body.get("tool_choice") {
        let there = list(&body["tools"]).iter().any(|tool| tool["name"] == choice["name"]);
        that(choice["type"] == "tool" && there, "tool_choice")?;
    }
    let marks = body.to_string().matches("\"cache_control\"").count();
    that(marks <= 4, "more than four marks for the cache")?;
    let mut waiting: HashSet<String> = HashSet::new();
    for (at, message) in messages(body)?.iter().enumerate() {
        let expected = if at % 2 == 0 { "user" } else { "assistant" };
        that(message["role"] == expected, "roles do not alternate, beginning with the user")?;
        let blocks = list(&message["content"]);
        that(!blocks.is_empty(), "empty content")?;
        let mut others = false;
        let mut is_thinking = true;
        for block in &blocks {
            let is_thought = matches!(text(block, "type")?, "thinking" | "redacted_thinking");
            that(!is_thought || is_thinking, "thinking behind something else")?;
            is_thinking &= is_thought;
            match (expected, text(block, "type")?) {
                (_, "text") => {
                    that(!text(block, "text")?.trim().is_empty(), "empty text")?;
                    others = true;
                }
                ("user", "image") => {
                    that(block["source"]["type"] == "base64", "image")?;
                    text(&block["source"], "data")?;
                    others = true;
                }
                ("user", "tool_result") => {
                    only(block, &["type", "tool_use_id", "content", "is_error", "cache_control"])?;
                    that(!others, "a tool_result behind something else")?;
                    that(
                        waiting.remove(text(block, "tool_use_id")?),
                        "a tool_result without its tool_use",
                    )?;
                }
                ("assistant", "thinking") => {
                    only(block, &["type", "thinking", "signature"])?;
                    text(block, "signature")?;
                }
                ("assistant", "redacted_thinking") => only(block, &["type", "data"])?,
                ("assistant", "tool_use") => {
                    that(block["input"].is_object(), "input")?;
                    plain(block, "name", 64)?;
                    that(waiting.insert(plain(block, "id", 64)?.into()), "an id twice")?;
                }
                other => return Err(format!("block {other:?}")),
            }
        }
        that(expected == "assistant" || waiting.is_empty(), "a tool_use without its tool_result")?;
    }
    that(waiting.is_empty(), "the last tool_use has no tool_result")
}

fn ollama(request: &Request) -> Result<(), String> {
    let body = &request.body;
    that(request.path == "/api/chat", "path")?;
    only(body, &["model", "messages", "stream", "options", "tools", "format"])?;
    only(&body["options"], &["temperature", "num_predict", "num_ctx"])?;
    that(body["options"]["num_ctx"].as_u64().is_some_and(|size| size > 0), "no num_ctx")?;
    text(body, "model")?;
    functions(body)?;
    let mut waiting: HashSet<String> = HashSet::new();
    for message in messages(body)? {
        let role = text(message, "role")?;
        that(role == "tool" || waiting.is_empty(), "a call is not answered")?;
        that(message["content"].is_string(), "content")?;
        match role {
            "system" => only(message, &["role", "content"])?,
            "user" => {
                only(message, &["role", "content", "images"])?;
                let images = message.get("images").is_some();
                that(
                    images || !message["content"].as_str().unwrap().trim().is_empty(),
                    "nothing said",
                )?;
            }
            "assistant" => {
                only(message, &["role", "content", "tool_calls"])?;
                for call in list(&message["tool_calls"]) {
                    that(call["function"]["arguments"].is_object(), "arguments")?;
                    text(&call["function"], "name")?;
                    waiting.insert(text(&call, "id")?.into());
                }
            }
            "tool" => {
                only(message, &["role", "content", "tool_name", "tool_call_id"])?;
                text(message, "tool_name")?;
                that(waiting.remove(text(message, "tool_call_id")?), "an answer without its call")?;
            }
            other => return Err(format!("role {other}")),
        }
    }
    that(waiting.is_empty(), "the last call is not answered")
}

fn gemini(request: &Request) -> Result<(), String> {
    let body = &request.body;
    let path = request.path.strip_prefix("/v1beta/models/").ok_or("path")?;
    let model = path.strip_suffix(":streamGenerateContent?alt=sse").ok_or("no stream of events")?;
    that(request.header("authorization").is_none(), "a bearer where there must be a key")?;
    only(body, &["contents", "systemInstruction", "tools", "generationConfig"])?;
    for tool in list(&body["tools"]) {
        only(&tool, &["functionDeclarations"])?;
        let functions = list(&tool["functionDeclarations"]);
        that(!functions.is_empty(), "no function")?;
        for function in functions {
            only(&function, &["name", "description", "parametersJsonSchema"])?;
            plain(&function, "name", 64)?;
            parameters(&function["parametersJsonSchema"])?;
        }
    }
    let mut waiting: Vec<(String, String)> = Vec::new();
    for content in list(&body["contents"]) {
        only(&content, &["role", "parts"])?;
        let parts = list(&content["parts"]);
        that(!parts.is_empty(), "empty content")?;
        let results = parts.iter().filter(|part| part.get("functionResponse").is_some()).count();
        // The API counts the results of a content against the calls of the content before it.
        that(results == waiting.len() && [0, parts.len()].contains(&results), "results")?;
        for (at, part) in parts.iter().enumerate() {
            only(
                part,
                &["text", "inlineData", "functionCall", "functionResponse", "thoughtSignature"],
            )?;
            match content["role"].as_str() {
                Some("user") if results > 0 => {
                    let result = &part["functionResponse"];
                    only(result, &["id", "name", "response"])?;
                    that(result["response"].is_object(), "response")?;
                    let fits = |(id, name): &(String, String)| {
                        result["id"] == *id && result["name"] == *name
                    };
                    let call = waiting.iter().position(fits).ok_or("result of another call")?;
                    waiting.remove(call);
                }
                Some("user") => {
                    let image = part["inlineData"]["data"].is_string();
                    that(image || !text(part, "text")?.trim().is_empty(), "empty part")?;
                }
                Some("model") => {
                    let Some(call) = part.get("functionCall") else {
                        text(part, "text")?;
                        continue;
                    };
                    only(call, &["id", "name", "args"])?;
                    that(call["args"].is_object(), "args")?;
                    let first = parts[..at].iter().all(|part| part.get("functionCall").is_none());
                    let signed = part.get("thoughtSignature").is_some();
                    that(!model.starts_with("gemini-3") || !first || signed, "no signature")?;
                    waiting.push((text(call, "id")?.into(), plain(call, "name", 64)?.into()));
                }
                other => return Err(format!("role {other:?}")),
            }
        }
    }
    that(waiting.is_empty(), "the last call is not answered")
}
