//! The text of a tool's result that a model receives: a pure function of the record, so that a
//! conversation read from the log equals the original one.

use cairn_protocol::event::ToolOutcome;
use serde_json::Value;

/// Returns the text of a result, of at most about `chars` characters. For results in a blob use
/// [`value`].
pub fn of(outcome: &ToolOutcome, chars: u64) -> String {
    if let Some(error) = &outcome.error {
        return cut(format!("error ({}): {}", error.reason, error.message), chars);
    }
    outcome.output.as_ref().map_or_else(String::new, |output| value(output, chars))
}

/// Returns the text of an output. A field that contains a text is rendered unchanged, with the
/// other fields on a line after it.
pub fn value(output: &Value, chars: u64) -> String {
    let text = match output {
        Value::String(text) => text.clone(),
        Value::Object(fields) => match ["content", "text", "stdout"]
            .into_iter()
            .find(|f| fields.get(*f).is_some_and(Value::is_string))
        {
            Some(field) => {
                let mut rest = fields.clone();
                let body = rest
                    .remove(field)
                    .and_then(|v| v.as_str().map(str::to_owned))
                    .unwrap_or_default();
                rest.retain(|_, v| !v.is_null() && v != &Value::String(String::new()));
                let tail =
                    if rest.is_empty() { String::new() } else { Value::Object(rest).to_string() };
                // The other fields must survive the truncation.
                return [cut(body, chars.saturating_sub(tail.len() as u64)), cut(tail, chars)]
                    .into_iter()
                    .filter(|part| !part.is_empty())
                    .collect::<Vec<_>>()
                    .join("\n");
            }
            None => output.to_string(),
        },
        other => other.to_string(),
    };
    cut(text, chars)
}

/// Returns the beginning and the end of a long text, with a line between them that gives the size
/// of the omitted part.
pub fn cut(text: String, chars: u64) -> String {
    let limit = usize::try_from(chars).unwrap_or(usize::MAX).max(200);
    let count = text.chars().count();
    if count <= limit {
        return text;
    }
    let (head, tail) = (limit * 7 / 10, limit * 3 / 10);
    let omitted = count - head - tail;
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(i, _)| i);
    let (first, last) = (&text[..at(head)], &text[at(count - tail)..]);
    format!("{first}\n[… {omitted} characters omitted; request a smaller part …]\n{last}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_rendered_as_text_and_long_text_reports_omission() {
        assert_eq!(value(&json!("a\nb"), 1000), "a\nb");
        assert_eq!(
            value(&json!({"content": "1|x", "truncated": true, "note": null}), 1000),
            "1|x\n{\"truncated\":true}"
        );
        assert_eq!(value(&json!([1, 2]), 1000), "[1,2]");
        let long = value(&json!({"content": "é".repeat(5000), "totalLines": 7}), 1000);
        assert!(
            long.contains("characters omitted") && long.ends_with("{\"totalLines\":7}"),
            "{long}"
        );
        assert!(long.chars().count() < 1150);
    }
}
