//! Reading the events of a response.

use cairn_protocol::model::FinishReason;
use serde_json::{Map, Value};

use crate::{LlmError, decode::Answer, refusal};

/// Reads events until the response is completed, incomplete or failed.
#[derive(Default)]
pub(super) struct Responses {
    refused: bool,
}

impl Responses {
    /// Handles an event of the type `kind`.
    pub(super) fn event(
        &mut self,
        kind: &str,
        data: &Value,
        answer: &mut Answer,
    ) -> Result<(), LlmError> {
        let text = |pointer: &str| data.pointer(pointer).and_then(Value::as_str);
        let delta = text("/delta").unwrap_or_default();
        match kind {
            "response.output_text.delta" => answer.text(delta),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                answer.reasoning(delta);
            }
            "response.refusal.delta" => {
                self.refused = true;
                answer.text(delta);
            }
            "response.output_item.added" if text("/item/type") == Some("function_call") => {
                let item =
                    |field: &str| data.pointer(field).and_then(Value::as_str).unwrap_or_default();
                let index = answer.call(&position(data))?;
                let (id, name) = (item("/item/call_id"), item("/item/name"));
                answer.call_delta(index, id, name, item("/item/arguments"));
            }
            "response.function_call_arguments.delta" => {
                let index = answer.call(&position(data))?;
                answer.call_delta(index, "", "", delta);
            }
            "response.output_item.done" if text("/item/type") == Some("reasoning") => {
                // An item without its content is of use only where the provider stores answers.
                let item = data.get("item").and_then(Value::as_object);
                let is_complete = |item: &&Map<String, Value>| {
                    item.get("encrypted_content").is_some_and(Value::is_string)
                };
                if let Some(item) = item.filter(is_complete) {
                    answer.reasoning_item(reasoning(item));
                }
            }
            "response.completed" => {
                usage(data, answer);
                let reason = if self.refused { FinishReason::Filtered } else { FinishReason::Stop };
                answer.finish(reason)?;
            }
            "response.incomplete" => {
                usage(data, answer);
                answer.finish(match text("/response/incomplete_details/reason") {
                    Some("content_filter") => FinishReason::Filtered,
                    _ => FinishReason::Length,
                })?;
            }
            "response.failed" => {
                let response = data.get("response").unwrap_or(data);
                return Err(refusal::reported(answer.who(), response));
            }
            "error" => return Err(refusal::reported(answer.who(), data)),
            _ => {}
        }
        Ok(())
    }
}

/// Key of the item that an event belongs to: its position in the answer.
fn position(data: &Value) -> String {
    data.get("output_index").map_or_else(String::new, Value::to_string)
}

/// Returns an item of reasoning as the API takes it back: its fields that have a value.
fn reasoning(item: &Map<String, Value>) -> Value {
    const FIELDS: &[&str] = &["type", "id", "summary", "content", "encrypted_content"];
    let fields =
        item.iter().filter(|(name, value)| FIELDS.contains(&name.as_str()) && !value.is_null());
    fields.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>().into()
}

fn usage(data: &Value, answer: &mut Answer) {
    let number = |pointer: &str| data.pointer(pointer).and_then(Value::as_u64);
    answer.usage(|known| {
        let base = "/response/usage";
        known.input_tokens = number(&format!("{base}/input_tokens")).unwrap_or(known.input_tokens);
        known.output_tokens =
            number(&format!("{base}/output_tokens")).unwrap_or(known.output_tokens);
        known.cached_tokens = number(&format!("{base}/input_tokens_details/cached_tokens"))
            .unwrap_or(known.cached_tokens);
    });
}
