//! Reading the lines of command-line agents: `claude -p --output-format stream-json --verbose` and
//! `codex exec --json`.
//!
//! An agent may write text between its steps before it answers. Only the last text is the answer;
//! earlier text is emitted as reasoning.

use cairn_protocol::model::FinishReason;
use serde_json::Value;

use super::words;
use crate::{
    LlmError,
    decode::{Answer, Events},
};

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

/// The last text so far.
#[derive(Default)]
struct Last(String);

impl Last {
    fn push(&mut self, words: &str, answer: &mut Answer) {
        if !words.trim().is_empty() {
            answer.reasoning(&std::mem::replace(&mut self.0, words.to_owned()));
        }
    }
}

/// Reads lines of `system`, `assistant` and `user` until a `result`.
#[derive(Default)]
pub(crate) struct ClaudeCode {
    last: Last,
    /// Error name in an `assistant` line.
    wrong: String,
}

impl Events for ClaudeCode {
    fn event(&mut self, _name: &str, data: Value, answer: &mut Answer) -> Result<(), LlmError> {
        match text(&data, "/type") {
            "assistant" => {
                let blocks = data.pointer("/message/content").and_then(Value::as_array);
                let mut message = String::new();
                for block in blocks.into_iter().flatten() {
                    match text(block, "/type") {
                        "text" => message.push_str(text(block, "/text")),
                        "thinking" => answer.reasoning(text(block, "/thinking")),
                        _ => {}
                    }
                }
                self.last.push(&message, answer);
                self.wrong = text(&data, "/error").to_owned();
            }
            "result" => return self.result(&data, answer),
            // The start, results of its own tools, and future kinds.
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, _answer: &mut Answer) -> Result<(), LlmError> {
        Ok(())
    }
}

impl ClaudeCode {
    fn result(&mut self, data: &Value, answer: &mut Answer) -> Result<(), LlmError> {
        let failed = data.get("is_error").and_then(Value::as_bool) == Some(true);
        let subtype = text(data, "/subtype");
        if failed || (!subtype.is_empty() && subtype != "success") {
            let errors = data.get("errors").and_then(Value::as_array).into_iter().flatten();
            let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
            let subtype = Some(subtype).filter(|subtype| *subtype != "success").unwrap_or_default();
            let status = data.get("api_error_status").and_then(Value::as_u64);
            let status = status.map(|status| format!("status {status}")).unwrap_or_default();
            let details =
                [text(data, "/result"), &errors.join("; "), subtype, &self.wrong, &status];
            let details: Vec<&str> =
                details.into_iter().filter(|details| !details.is_empty()).collect();
            return Err(words::classify(answer.who(), &format!("failed: {}", details.join("; "))));
        }
        let cached = number(data, "/usage/cache_read_input_tokens");
        let written = number(data, "/usage/cache_creation_input_tokens");
        answer.usage(|known| {
            known.input_tokens = number(data, "/usage/input_tokens") + cached + written;
            known.cached_tokens = cached;
            known.output_tokens = number(data, "/usage/output_tokens");
        });
        let result = text(data, "/result");
        answer.text(if result.is_empty() { &self.last.0 } else { result });
        answer.finish(FinishReason::Stop)
    }
}

/// Reads events of a thread, its turn and its items until the turn ends.
#[derive(Default)]
pub(crate) struct Codex {
    last: Last,
    /// Latest error reported, from which the agent may recover.
    trouble: String,
}

impl Events for Codex {
    fn event(&mut self, _name: &str, data: Value, answer: &mut Answer) -> Result<(), LlmError> {
        match text(&data, "/type") {
            "item.completed" => {
                let kind = [text(&data, "/item/type"), text(&data, "/item/item_type")].concat();
                match kind.as_str() {
                    // The second one is the name in older versions.
                    "agent_message" | "assistant_message" => {
                        self.last.push(text(&data, "/item/text"), answer)
                    }
                    "reasoning" => answer.reasoning(text(&data, "/item/text")),
                    _ => {}
                }
            }
            "turn.completed" => {
                answer.usage(|known| {
                    known.input_tokens = number(&data, "/usage/input_tokens");
                    known.cached_tokens = number(&data, "/usage/cached_input_tokens");
                    known.output_tokens = number(&data, "/usage/output_tokens");
                });
                answer.text(&self.last.0);
                return answer.finish(FinishReason::Stop);
            }
            "turn.failed" => {
                return Err(words::classify(
                    answer.who(),
                    &format!("failed: {}", text(&data, "/error/message")),
                ));
            }
            "error" => text(&data, "/message").clone_into(&mut self.trouble),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, answer: &mut Answer) -> Result<(), LlmError> {
        if self.trouble.is_empty() {
            return Ok(());
        }
        Err(words::classify(answer.who(), &format!("failed: {}", self.trouble)))
    }
}
