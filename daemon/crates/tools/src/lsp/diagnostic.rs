//! Errors and warnings of a file, as a server reports them.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

/// Most stored errors and warnings of one file.
const MAX_STORED: usize = 1000;
/// Most characters of a message.
const MAX_TEXT: usize = 300;

/// Importance of a diagnostic; hints and notes are not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Error,
    Warning,
}

/// An error or a warning. Lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub line: u32,
    pub column: u32,
    pub text: String,
}

impl Diagnostic {
    /// Returns the line for a model: `path:line:column: error: text`.
    pub fn render(&self, path: &str) -> String {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        format!("{path}:{}:{}: {severity}: {}", self.line, self.column, self.text)
    }
}

#[derive(Debug, Deserialize)]
struct Position {
    line: u32,
    character: u32,
}

#[derive(Debug, Deserialize)]
struct Range {
    start: Position,
}

/// A diagnostic of the protocol.
#[derive(Debug, Deserialize)]
pub struct RawDiagnostic {
    range: Range,
    #[serde(default)]
    severity: Option<u8>,
    #[serde(default)]
    code: Option<Value>,
    #[serde(default)]
    source: Option<String>,
    message: Value,
}

#[derive(Debug, Deserialize)]
pub struct Published {
    pub uri: String,
    #[serde(default)]
    pub version: Option<i64>,
    pub diagnostics: Vec<RawDiagnostic>,
}

/// Result of `textDocument/diagnostic`. A report of another kind has no items.
#[derive(Debug, Deserialize)]
pub struct Pulled {
    #[serde(default)]
    pub items: Vec<RawDiagnostic>,
}

/// Returns a text of a server on one line, without control characters, cut.
pub fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let mut line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if let Some((at, _)) = line.char_indices().nth(MAX_TEXT) {
        line.truncate(at);
        line.push('…');
    }
    line
}

/// Returns the errors and the warnings, errors first.
pub fn stored(raw: Vec<RawDiagnostic>) -> Vec<Diagnostic> {
    let mut all: Vec<Diagnostic> = raw.into_iter().filter_map(convert).collect();
    all.sort_by_key(|one| (one.severity, one.line, one.column));
    all.truncate(MAX_STORED);
    all
}

fn convert(raw: RawDiagnostic) -> Option<Diagnostic> {
    let severity = match raw.severity {
        // Without a severity the client decides.
        Some(1) | None => Severity::Error,
        Some(2) => Severity::Warning,
        Some(_) => return None,
    };
    let message = match &raw.message {
        Value::String(text) => text.as_str(),
        // Newer servers may send marked-up text.
        other => other.get("value").and_then(Value::as_str).unwrap_or_default(),
    };
    let code = match raw.code {
        Some(Value::String(code)) => Some(code),
        Some(Value::Number(code)) => Some(code.to_string()),
        _ => None,
    };
    let origin: Vec<String> = raw.source.into_iter().chain(code).collect();
    let mut text = one_line(message);
    if !origin.is_empty() {
        text = format!("{text} [{}]", one_line(&origin.join(" ")));
    }
    let line = raw.range.start.line.saturating_add(1);
    let column = raw.range.start.character.saturating_add(1);
    Some(Diagnostic { severity, line, column, text })
}

/// Returns the diagnostics that `before` does not have. Lines may have moved, so that they are not
/// compared.
pub fn new_ones(before: &[Diagnostic], after: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut known: HashMap<(Severity, &str), usize> = HashMap::new();
    for one in before {
        *known.entry((one.severity, &one.text)).or_default() += 1;
    }
    let mut new = Vec::new();
    for one in after {
        match known.get_mut(&(one.severity, one.text.as_str())) {
            Some(count) if *count > 0 => *count -= 1,
            _ => new.push(one.clone()),
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Vec<Diagnostic> {
        stored(serde_json::from_value(value).unwrap())
    }

    fn raw(line: u32, severity: Option<u8>, message: &str) -> Value {
        let start = json!({"line": line, "character": 4});
        json!({"range": {"start": start, "end": start}, "severity": severity, "message": message})
    }

    #[test]
    fn errors_come_before_warnings_and_hints_are_omitted() {
        let hints = [raw(0, Some(3), "note"), raw(0, Some(4), "hint")];
        let mut all = hints.to_vec();
        all.extend([raw(1, Some(2), "later"), raw(9, None, "first\n\tline\u{1b}[0m")]);
        let lines: Vec<String> =
            read(all.into()).iter().map(|one| one.render("src/a.py")).collect();
        assert_eq!(lines, ["src/a.py:10:5: error: first line [0m", "src/a.py:2:5: warning: later"]);
        let mut coded = raw(0, Some(1), &"é".repeat(400));
        coded["code"] = json!(2322);
        coded["source"] = json!("ts");
        let text = read(json!([coded]))[0].text.clone();
        assert!(text.ends_with("é… [ts 2322]") && text.chars().count() == 311, "{text}");
        let many = vec![raw(0, Some(1), "x"); 5000];
        assert_eq!(read(many.into()).len(), MAX_STORED);
    }

    #[test]
    fn moved_diagnostics_are_not_new_and_repeated_ones_are() {
        let before = read(json!([raw(1, Some(1), "a"), raw(2, Some(2), "b")]));
        let after = read(json!([raw(5, Some(1), "a"), raw(6, Some(1), "a"), raw(2, Some(1), "b")]));
        let new = new_ones(&before, &after);
        let lines: Vec<(u32, &str)> = new.iter().map(|one| (one.line, &*one.text)).collect();
        assert_eq!(lines, [(3, "b"), (7, "a")]);
    }
}
