//! Reading the events of a Gemini answer.

use cairn_protocol::model::FinishReason;
use serde_json::{Value, json};

use crate::{
    LlmError,
    decode::{Answer, Events},
    refusal,
};

/// Reads events until the bytes end: the last event of an answer is known by its reason, after
/// which an event with the usage may follow.
#[derive(Default)]
pub(crate) struct Reader {
    finish: Option<FinishReason>,
}

impl Reader {
    fn part(part: &Value, answer: &mut Answer) -> Result<(), LlmError> {
        let text = part.get("text").and_then(Value::as_str);
        let signature = part.get("thoughtSignature").filter(|signature| signature.is_string());
        let sign = |answer: &mut Answer, is_text: bool| {
            if let Some(signature) = signature {
                answer.reasoning_item(json!({ "isText": is_text, "thoughtSignature": signature }));
            }
        };
        if let Some(call) = part.get("functionCall") {
            sign(answer, false);
            let field = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default();
            let index = answer.begin_call("")?;
            let arguments = call.get("args").filter(|args| args.is_object());
            let arguments = arguments.map_or_else(|| "{}".to_owned(), Value::to_string);
            answer.call_delta(index, field("id"), field("name"), &arguments);
        } else if let Some(text) = text {
            if part.get("thought").and_then(Value::as_bool) == Some(true) {
                answer.reasoning(text);
            } else {
                sign(answer, true);
                answer.text(text);
            }
        }
        Ok(())
    }

    fn usage(usage: &Value, answer: &mut Answer) {
        let number = |field: &str| usage.get(field).and_then(Value::as_u64);
        answer.usage(|known| {
            if let Some(prompt) = number("promptTokenCount") {
                known.input_tokens = prompt + number("toolUsePromptTokenCount").unwrap_or(0);
            }
            let written = [number("candidatesTokenCount"), number("thoughtsTokenCount")];
            if written.iter().any(Option::is_some) {
                known.output_tokens = written.into_iter().flatten().sum();
            }
            known.cached_tokens = number("cachedContentTokenCount").unwrap_or(known.cached_tokens);
        });
    }
}

impl Events for Reader {
    fn event(&mut self, _name: &str, data: Value, answer: &mut Answer) -> Result<(), LlmError> {
        if data.get("error").is_some() {
            return Err(refusal::reported(answer.who(), &data));
        }
        if let Some(usage) = data.get("usageMetadata") {
            Self::usage(usage, answer);
        }
        // A prompt that is refused has no candidate.
        if data.pointer("/promptFeedback/blockReason").is_some_and(Value::is_string) {
            self.finish = Some(FinishReason::Filtered);
        }
        let candidate = data.pointer("/candidates/0").unwrap_or(&Value::Null);
        let parts = candidate.pointer("/content/parts").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            Self::part(part, answer)?;
        }
        if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
            self.finish = Some(match reason {
                "STOP" | "FINISH_REASON_UNSPECIFIED" => FinishReason::Stop,
                "MAX_TOKENS" | "CONTINUATION" => FinishReason::Length,
                // The model wrote a call that cannot be read; the answer is worth another attempt.
                "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => {
                    let text = format!("{} ended its answer with {reason}", answer.who());
                    return Err(LlmError::Cut(text));
                }
                "MISSING_THOUGHT_SIGNATURE" | "TOO_MANY_TOOL_CALLS" => {
                    let text = format!("{} refused the conversation: {reason}", answer.who());
                    return Err(LlmError::Rejected(text));
                }
                _ => FinishReason::Filtered,
            });
        }
        Ok(())
    }

    fn end(&mut self, answer: &mut Answer) -> Result<(), LlmError> {
        self.finish.map_or(Ok(()), |reason| answer.finish(reason))
    }
}
