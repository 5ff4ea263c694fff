//! Formatting of lines of a file.

use cairn_protocol::{
    content::Span,
    error::{Failure, Reason},
    tool::ToolResult,
};
use serde::Deserialize;

use super::{Budget, Page, line, printable};

/// The output of the registered tool that reads a file.
#[derive(Deserialize)]
struct FileOutput {
    path: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    end_line: u32,
    total_lines: Option<u32>,
    #[serde(default)]
    binary: bool,
    #[serde(default)]
    bytes: u64,
    /// Line ends, encoding and the like, where they are not the usual ones.
    form: Option<String>,
}

/// Formats the result of the registered tool; `is_bounded` if the caller chose the number of lines.
///
/// # Errors
/// The failure of the tool.
pub fn file(
    requested: &str,
    result: ToolResult,
    start: u32,
    is_bounded: bool,
    budget: Budget,
) -> Result<String, Failure> {
    if let Some(error) = result.error {
        let reason = Reason::ALL.iter().copied().find(|r| r.as_str() == error.reason);
        return Err(Failure::new(reason.unwrap_or(Reason::ToolFailed), error.message));
    }
    let output: FileOutput = serde_json::from_value(result.output).map_err(|e| {
        let text = format!("{} cannot be printed: {e}", requested.escape_default());
        Failure::new(Reason::Internal, text)
    })?;
    if output.binary {
        return Ok(format!("{} is binary, {} bytes\n", line(&output.path), output.bytes));
    }
    let numbered = output.content.lines().filter_map(|line| line.split_once('|'));
    let texts: Vec<&str> = numbered.map(|(_, text)| text).collect();
    let lines = Lines {
        path: &output.path,
        start,
        end: output.end_line,
        total: output.total_lines,
        is_bounded,
    };
    let text = lines.format(&texts, budget);
    Ok(match &output.form {
        Some(form) => format!("{text}[form of the file: {}]\n", line(form)),
        None => text,
    })
}

/// Formats lines of a file in another root.
pub fn span(span: &Span, is_bounded: bool, budget: Budget) -> String {
    let texts: Vec<&str> = span.text.lines().collect();
    let lines = Lines {
        path: &span.path,
        start: span.start_line,
        end: span.end_line,
        total: span.total_lines,
        is_bounded: is_bounded && !span.truncated,
    };
    lines.format(&texts, budget)
}

struct Lines<'a> {
    path: &'a str,
    start: u32,
    end: u32,
    total: Option<u32>,
    is_bounded: bool,
}

impl Lines<'_> {
    fn format(&self, texts: &[&str], budget: Budget) -> String {
        let path = line(self.path);
        if self.end < self.start {
            let total = self.total.map_or_else(String::new, |n| format!("; it has {n}"));
            return format!("{path} has no line {}{total}\n", self.start);
        }
        let mut page = Page::new(budget);
        let mut next = self.start;
        for text in texts {
            if !page.add(&format!("{next}|{}", printable(text))) {
                break;
            }
            next += 1;
        }
        let total = self.total.map_or_else(String::new, |n| format!(" of {n}"));
        let last = next.saturating_sub(1).max(self.start);
        let mut out = format!("{path}:{}-{last}{total}\n{}", self.start, page.text);
        let is_end = self.total.is_some_and(|n| next > n);
        if !is_end && (next <= self.end || !self.is_bounded) {
            out.push_str(&format!("[more: the same call with line={next}]\n"));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn formatted(form: Value) -> String {
        let output = json!({"path": "f", "content": "1|x\n", "end_line": 1, "total_lines": 1,
            "form": form});
        let result = json!({"ok": true, "output": output,
            "meta": {"tag": "file", "truncated": false, "millis": 0}});
        let result = serde_json::from_value(result).unwrap();
        file("f", result, 1, false, Budget::tokens(None)).unwrap()
    }

    #[test]
    fn form_of_a_file_follows_its_lines() {
        assert_eq!(formatted(Value::Null), "f:1-1 of 1\n1|x\n");
        let expected = "f:1-1 of 1\n1|x\n[form of the file: CRLF line ends]\n";
        assert_eq!(formatted(json!("CRLF line ends")), expected);
    }
}
