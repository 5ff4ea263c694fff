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

/// Fields in which a listing repeats its text for programs.
const REPEATED: [&str; 2] = ["files", "matches"];

/// Most bytes per token of text that is cut by tokens; code with line numbers has about three.
const BYTES_PER_TOKEN: u64 = 3;

/// Returns the text of an output. A read of a file has at most as many tokens as other outputs have
/// characters, and complete lines; its last line says how to get the rest. Otherwise a field that contains a text is rendered unchanged, with the
/// other fields on a line after it.
pub fn value(output: &Value, chars: u64) -> String {
    if let Some(text) = lines_of_file(output, chars * BYTES_PER_TOKEN) {
        return text;
    }
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
                let is_listing = fields.contains_key("total_matches");
                rest.retain(|name, v| {
                    let is_empty = v.is_null() || v == &Value::String(String::new());
                    let is_repeated = is_listing && REPEATED.contains(&name.as_str());
                    !is_empty && !is_repeated
                });
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

/// Returns a range of a file in complete lines of at most `bytes`; `None` for another output, and
/// for a line that is longer.
fn lines_of_file(output: &Value, bytes: u64) -> Option<String> {
    let number = |field: &str| output.get(field)?.as_u64();
    let content = output.get("content")?.as_str()?;
    let (first, total) = (number("start_line")?, number("total_lines")?);
    let limit = usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut text = String::new();
    let mut next = first;
    for line in content.split_inclusive('\n') {
        if text.len() + line.len() > limit {
            break;
        }
        text.push_str(line);
        next += 1;
    }
    if text.is_empty() && !content.is_empty() {
        return None;
    }
    let path = output.get("path").and_then(Value::as_str).unwrap_or_default();
    let range = match next.checked_sub(1) {
        Some(last) if last >= first => format!("lines {first} to {last} of {total}"),
        _ => format!("no lines from {first} on; the total is {total}"),
    };
    let rest = if next > first && next <= total {
        format!("; for the rest call read_file with offset {next}")
    } else {
        String::new()
    };
    // Line ends, tabs and the encoding, where they are not the usual ones.
    let form = output.get("form").and_then(Value::as_str);
    let form = form.map_or_else(String::new, |form| format!("; {form}"));
    Some(format!("{text}[{path}: {range}{form}{rest}]"))
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
        assert!(
            value(&json!({"content": "1|x", "path": "f", "start_line": 1, "total_lines": 1}), 9)
                .ends_with("1|x[f: lines 1 to 1 of 1]")
        );
        let long = value(&json!({"content": "é".repeat(5000), "totalLines": 7}), 1000);
        assert!(
            long.contains("characters omitted") && long.ends_with("{\"totalLines\":7}"),
            "{long}"
        );
        assert!(long.chars().count() < 1150);
    }

    #[test]
    fn form_of_a_file_reaches_the_model() {
        let output = json!({"content": "1|x\n", "path": "f", "start_line": 1, "total_lines": 1,
            "form": "CRLF line ends; indented by tabs"});
        let end = "[f: lines 1 to 1 of 1; CRLF line ends; indented by tabs]";
        assert_eq!(value(&output, 1000), format!("1|x\n{end}"));
    }

    #[test]
    fn file_is_cut_at_a_line_and_the_rest_is_named() {
        let content: String = (1..=500).map(|n| format!("{n}|let value = {n};\n")).collect();
        let output = json!({
            "content": content, "path": "src/a.rs", "start_line": 1, "end_line": 500,
            "total_lines": 900, "truncated": true,
        });
        let complete = value(&output, 10_000);
        assert!(complete.starts_with(&content), "500 lines are not cut");
        let end = "[src/a.rs: lines 1 to 500 of 900; for the rest call read_file with offset 501]";
        assert!(complete.ends_with(end), "{complete}");
        let part = value(&output, 1000);
        let (lines, note) = part.rsplit_once('[').unwrap();
        let last = lines.lines().count();
        assert!(lines.len() <= 3000 && lines.ends_with(&format!("{last}|let value = {last};\n")));
        assert!(note.contains(&format!("with offset {}]", last + 1)), "{note}");
    }
}
