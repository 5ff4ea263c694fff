//! Reading the events of a message.

use cairn_protocol::model::FinishReason;
use serde_json::{Value, json};

use super::schema_tool;
use crate::{
    LlmError, ModelRequest,
    decode::{Answer, Events},
    refusal,
};

/// Reads named events until `message_stop`.
pub(crate) struct Reader {
    /// Tool whose arguments are the text of the answer.
    forced: Option<String>,
    /// Index of the block with that text, while it is open.
    answering: Option<u64>,
    /// The open block of thinking, with its signature, which the API requires back.
    thinking: Option<(u64, String, String)>,
    finish: Option<FinishReason>,
}

impl Reader {
    pub(crate) fn new(request: &ModelRequest) -> Self {
        let forced = request.schema.as_ref().map(|_| schema_tool(request));
        Self { forced, answering: None, thinking: None, finish: None }
    }

    fn block(&mut self, index: u64, block: &Value, answer: &mut Answer) -> Result<(), LlmError> {
        let text = |field: &str| block.get(field).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "text" => answer.text(text("text")),
            "thinking" => {
                answer.reasoning(text("thinking"));
                let started = (index, text("thinking").to_owned(), text("signature").to_owned());
                self.thinking = Some(started);
            }
            "redacted_thinking" => answer.reasoning_item(block.clone()),
            "tool_use" if self.forced.as_deref() == Some(text("name")) => {
                self.answering = Some(index)
            }
            "tool_use" => {
                let call = answer.begin_call(&index.to_string())?;
                // Some servers send the complete input at once; Anthropic itself starts with an
                // empty one.
                let input = block
                    .get("input")
                    .filter(|input| input.as_object().is_some_and(|map| !map.is_empty()));
                let input = input.map(Value::to_string).unwrap_or_default();
                answer.call_delta(call, text("id"), text("name"), &input);
            }
            // Blocks of server-side tools and of future kinds: none of them was requested.
            _ => {}
        }
        Ok(())
    }

    fn delta(&mut self, index: u64, delta: &Value, answer: &mut Answer) -> Result<(), LlmError> {
        let text = |field: &str| delta.get(field).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "text_delta" => answer.text(text("text")),
            "thinking_delta" => {
                answer.reasoning(text("thinking"));
                if let Some((_, thinking, _)) = self.thinking.as_mut().filter(|t| t.0 == index) {
                    thinking.push_str(text("thinking"));
                }
            }
            "signature_delta" => {
                if let Some((_, _, signature)) = self.thinking.as_mut().filter(|t| t.0 == index) {
                    signature.push_str(text("signature"));
                }
            }
            "input_json_delta" if self.answering == Some(index) => {
                answer.text(text("partial_json"))
            }
            "input_json_delta" => {
                if let Some(call) = answer.known_call(&index.to_string()) {
                    answer.call_delta(call, "", "", text("partial_json"));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn usage(usage: Option<&Value>, answer: &mut Answer) {
        let number = |field: &str| usage.and_then(|usage| usage.get(field)).and_then(Value::as_u64);
        answer.usage(|known| {
            // The provider counts cached prompt tokens separately from the others.
            let (cache_read, cache_created) =
                (number("cache_read_input_tokens"), number("cache_creation_input_tokens"));
            if let Some(fresh) = number("input_tokens") {
                known.cached_tokens = cache_read.unwrap_or(known.cached_tokens);
                known.input_tokens = fresh + known.cached_tokens + cache_created.unwrap_or(0);
            }
            known.output_tokens = number("output_tokens").unwrap_or(known.output_tokens);
        });
    }
}

impl Events for Reader {
    fn event(&mut self, name: &str, data: Value, answer: &mut Answer) -> Result<(), LlmError> {
        let kind = data.get("type").and_then(Value::as_str).unwrap_or(name);
        let index = data.get("index").and_then(Value::as_u64).unwrap_or_default();
        match kind {
            "message_start" => Self::usage(data.pointer("/message/usage"), answer),
            "content_block_start" => {
                let block = data.get("content_block").unwrap_or(&Value::Null);
                self.block(index, block, answer)?;
            }
            "content_block_delta" => {
                self.delta(index, data.get("delta").unwrap_or(&Value::Null), answer)?
            }
            "content_block_stop" if self.thinking.as_ref().is_some_and(|t| t.0 == index) => {
                if let Some((_, thinking, signature)) = self.thinking.take()
                    && !signature.is_empty()
                {
                    answer.reasoning_item(
                        json!({ "type": "thinking", "thinking": thinking, "signature": signature }),
                    );
                }
            }
            "content_block_stop" if self.answering == Some(index) => self.answering = None,
            "message_delta" => {
                Self::usage(data.get("usage"), answer);
                if let Some(reason) = data.pointer("/delta/stop_reason").and_then(Value::as_str) {
                    self.finish = Some(match reason {
                        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
                        "tool_use" if answer.calls() > 0 => FinishReason::ToolCalls,
                        "refusal" => FinishReason::Filtered,
                        _ => FinishReason::Stop,
                    });
                }
            }
            "message_stop" => return answer.finish(self.finish.unwrap_or(FinishReason::Stop)),
            "error" => return Err(refusal::reported(answer.who(), &data)),
            // `ping`, and future events.
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, answer: &mut Answer) -> Result<(), LlmError> {
        self.finish.map_or(Ok(()), |reason| answer.finish(reason))
    }
}
