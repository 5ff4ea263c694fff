//! Reading the events of a chat completion, or of a response.

use cairn_protocol::model::FinishReason;
use serde_json::Value;

use super::read_responses::Responses;
use crate::{
    LlmError,
    decode::{Answer, Events},
    refusal,
};

/// Reads `data:` events of a chat completion until `[DONE]`. Events of the responses API name their
/// type, so that a recorded answer of either API is read.
#[derive(Default)]
pub(crate) struct Reader {
    /// Reason reported by the last choice; usage may follow it, so it is emitted at the end.
    finish: Option<FinishReason>,
    refused: bool,
    responses: Responses,
}

impl Events for Reader {
    fn event(&mut self, name: &str, data: Value, answer: &mut Answer) -> Result<(), LlmError> {
        if data.is_null() {
            // End marker of the stream. A server that gives no reason is done.
            return self.finish(self.finish.unwrap_or(FinishReason::Stop), answer);
        }
        if let Some(kind) = data.get("type").and_then(Value::as_str)
            && (kind == "error" || kind.starts_with("response."))
        {
            return self.responses.event(kind, &data, answer);
        }
        if name == "error" || data.get("error").is_some_and(|error| !error.is_null()) {
            return Err(refusal::reported(answer.who(), &data));
        }
        // llama.cpp has it in a field of a chunk, easyai as an event of its own.
        let is_event = name == "easyai.prompt_progress";
        if name.starts_with("easyai.") {
            answer.set_easyai();
        }
        if let Some(progress) = data.get("prompt_progress").or(is_event.then_some(&data)) {
            let number = |field: &str| progress.get(field).and_then(Value::as_u64);
            if let (Some(processed), Some(total)) = (number("processed"), number("total")) {
                answer.progress(processed, total);
            }
        }
        let choice = data.get("choices").and_then(|choices| choices.get(0));
        if let Some(delta) =
            choice.and_then(|choice| choice.get("delta").or_else(|| choice.get("message")))
        {
            self.delta(delta, answer)?;
        }
        if let Some(reason) =
            choice.and_then(|choice| choice.get("finish_reason")).and_then(Value::as_str)
        {
            self.finish = Some(match reason {
                "length" => FinishReason::Length,
                "tool_calls" | "function_call" => FinishReason::ToolCalls,
                "content_filter" => FinishReason::Filtered,
                _ => FinishReason::Stop,
            });
        }
        if let Some(usage) = data.get("usage").filter(|usage| usage.is_object()) {
            let number = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
            answer.usage(|known| {
                known.input_tokens = number("/prompt_tokens").unwrap_or(known.input_tokens);
                known.output_tokens = number("/completion_tokens").unwrap_or(known.output_tokens);
                known.cached_tokens =
                    number("/prompt_tokens_details/cached_tokens").unwrap_or(known.cached_tokens);
                // OpenRouter reports the cost in its credits, which are US dollars.
                let cost = usage.get("cost").and_then(Value::as_f64).filter(|cost| *cost >= 0.0);
                let cost = cost.map(|cost| (cost * 1e6).ceil() as u64);
                known.cost_micro_usd = cost.or(known.cost_micro_usd);
            });
        }
        Ok(())
    }

    fn end(&mut self, answer: &mut Answer) -> Result<(), LlmError> {
        // Without `[DONE]` only a reason shows that the answer is complete.
        self.finish.map_or(Ok(()), |reason| self.finish(reason, answer))
    }
}

impl Reader {
    fn delta(&mut self, delta: &Value, answer: &mut Answer) -> Result<(), LlmError> {
        let text = |field: &str| delta.get(field).and_then(Value::as_str).unwrap_or_default();
        // Two names of the same field; a server that sends both sends the same text twice.
        let reasoning = text("reasoning_content");
        answer.reasoning(if reasoning.is_empty() { text("reasoning") } else { reasoning });
        match delta.get("content") {
            Some(Value::Array(parts)) => {
                for part in parts.iter().filter_map(|part| part.get("text")?.as_str()) {
                    answer.text(part);
                }
            }
            _ => answer.text(text("content")),
        }
        if !text("refusal").is_empty() {
            self.refused = true;
            answer.text(text("refusal"));
        }
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            Self::call(call, answer)?;
        }
        Ok(())
    }

    fn call(call: &Value, answer: &mut Answer) -> Result<(), LlmError> {
        let text =
            |pointer: &str| call.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (id, name) = (text("/id"), text("/function/name"));
        let index = match call.get("index").and_then(Value::as_u64) {
            Some(number) => {
                let known = answer.call(&number.to_string())?;
                // A different id with a name is another call, even if a server numbers all calls 0.
                let theirs = answer.id_of(known);
                if !theirs.is_empty() && !id.is_empty() && !name.is_empty() && theirs != id {
                    answer.begin_call(&number.to_string())?
                } else {
                    known
                }
            }
            // Without numbers, a delta with a name starts a call and the others belong to the last
            // one.
            None if name.is_empty() && answer.calls() > 0 => answer.calls() - 1,
            None => answer.begin_call("")?,
        };
        let arguments = match call.pointer("/function/arguments") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            // An object instead of its JSON text.
            Some(value) => value.to_string(),
        };
        answer.call_delta(index, id, name, &arguments);
        Ok(())
    }

    fn finish(&self, reason: FinishReason, answer: &mut Answer) -> Result<(), LlmError> {
        answer.finish(if self.refused { FinishReason::Filtered } else { reason })
    }
}
