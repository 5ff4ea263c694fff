//! Bounds on one call: its duration, and the text of its output.

use cairn_protocol::error::{Failure, Reason};
use serde_json::Value;

use crate::{CallLimits, Output, Permit, registry::Entry};

/// Runs a call within its time limit.
pub(super) async fn run(
    entry: &Entry,
    permit: Permit,
    arguments: Value,
    limits: CallLimits,
) -> Result<Output, Failure> {
    let limit = limits.timeout.unwrap_or(entry.spec.timeout);
    let cancel = permit.cancel().clone();
    let clock = permit.wait_clock();
    tokio::select! {
        // A call that is cancelled and returns at once counts as cancelled.
        biased;
        () = cancel.cancelled() => {
            Err(Failure::new(Reason::Cancelled, format!("tool {} was cancelled", entry.spec.name)))
        }
        outcome = entry.tool.run(permit, arguments) => outcome,
        () = clock.after(limit) => {
            cancel.cancel();
            let text = format!("tool {} took longer than {} s", entry.spec.name, limit.as_secs());
            Err(Failure::new(Reason::ToolTimedOut, text))
        }
    }
}

/// Returns the output with its texts cut to the limits.
pub(super) fn shortened(mut output: Output, limits: CallLimits) -> Output {
    if let Some(mut room) = limits.max_output_chars {
        output.truncated |= shorten(&mut output.value, &mut room);
    }
    output
}

/// Cuts the texts of a value to `room` characters in total, and cuts lists after the entry that
/// used the last of it. Returns true if anything was cut.
fn shorten(value: &mut Value, room: &mut usize) -> bool {
    match value {
        Value::String(text) => {
            let fits = text.char_indices().nth(*room).map(|(end, _)| end);
            *room = room.saturating_sub(text.chars().count());
            let Some(end) = fits else { return false };
            text.truncate(end);
            text.push_str("… [cut]");
            true
        }
        Value::Array(items) => {
            let Some(last) = items.iter_mut().position(|item| shorten(item, room)) else {
                return false;
            };
            items.truncate(last + 1);
            true
        }
        // Every field is retained: models and programs look fields up by name.
        Value::Object(fields) => {
            let mut cut = false;
            for field in fields.values_mut() {
                cut |= shorten(field, room);
            }
            cut
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_texts_are_truncated_and_fields_are_preserved() {
        for (room, input, want) in [
            (9, json!({"a": "four", "b": ["four", "x"]}), None),
            (8, json!({"a": "four", "b": ["four"]}), None),
            (
                6,
                json!({"a": "four", "b": ["four", "x"]}),
                Some(json!({"a": "four", "b": ["fo… [cut]"]})),
            ),
            (2, json!({"a": "grün", "n": 7}), Some(json!({"a": "gr… [cut]", "n": 7}))),
            (0, json!("é"), Some(json!("… [cut]"))),
        ] {
            let limits = CallLimits { max_output_chars: Some(room), ..CallLimits::default() };
            let output =
                Output { tag: "x", value: input.clone(), truncated: false, exit_code: None };
            let got = shortened(output, limits);
            assert_eq!((got.truncated, got.value), (want.is_some(), want.unwrap_or(input)));
        }
    }
}
