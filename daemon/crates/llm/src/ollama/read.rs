//! Reading the lines of an answer from Ollama.

use cairn_protocol::model::FinishReason;
use serde_json::Value;

use crate::{
    LlmError,
    decode::{Answer, Events},
    refusal,
};

/// Reads lines until one is `done`.
pub(crate) struct Reader;

impl Events for Reader {
    fn event(&mut self, _name: &str, data: Value, answer: &mut Answer) -> Result<(), LlmError> {
        if data.get("error").is_some() {
            return Err(refusal::reported(answer.who(), &data));
        }
        let message = data.get("message").unwrap_or(&Value::Null);
        let text = |field: &str| message.get(field).and_then(Value::as_str).unwrap_or_default();
        answer.reasoning(text("thinking"));
        answer.text(text("content"));
        for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            // Each call arrives complete.
            let text =
                |pointer: &str| call.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            let arguments = match call.pointer("/function/arguments") {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => "{}".into(),
                Some(value) => value.to_string(),
            };
            let index = answer.begin_call("")?;
            answer.call_delta(index, text("/id"), text("/function/name"), &arguments);
        }
        if data.get("done").and_then(Value::as_bool) != Some(true) {
            return Ok(());
        }
        let number = |field: &str| data.get(field).and_then(Value::as_u64);
        answer.usage(|known| {
            // Absent when the complete prompt was in the cache.
            known.input_tokens = number("prompt_eval_count").unwrap_or(known.input_tokens);
            known.output_tokens = number("eval_count").unwrap_or(known.output_tokens);
        });
        let reason = match data.get("done_reason").and_then(Value::as_str) {
            Some("length") => FinishReason::Length,
            _ => FinishReason::Stop,
        };
        answer.finish(reason)
    }

    fn end(&mut self, _answer: &mut Answer) -> Result<(), LlmError> {
        Ok(())
    }
}
