//! Compact rendering of tool calls, results and diffs.

use std::fmt::Write as _;

use cairn_protocol::event::ToolOutcome;
use console::{style, truncate_str};
use serde_json::Value;

use crate::render::output::{self, number, plain};

/// The arguments that describe a call best; the first present one is shown.
const DESCRIPTIVE_ARGUMENTS: &[&str] = &[
    "path",
    "command",
    "pattern",
    "query",
    "url",
    "turnId",
    "turn_id",
    "name",
    "expression",
    "code",
    "file",
];
/// Maximum columns of a call's arguments.
const COLUMNS: usize = 72;
/// Lines of output: of a program, and of any tool in verbose mode.
const OUTPUT_LINES: (usize, usize) = (8, 40);
/// Maximum displayed lines of a diff.
pub const DIFF_LINES: usize = 60;

/// Describes a call in one line.
pub fn about(arguments: &Value) -> String {
    let argument = DESCRIPTIVE_ARGUMENTS.iter().find_map(|key| arguments.get(key));
    let text = match argument {
        Some(Value::String(text)) => plain(text.lines().next().unwrap_or_default()),
        None if arguments.is_null()
            || arguments.as_object().is_some_and(serde_json::Map::is_empty) =>
        {
            String::new()
        }
        Some(other) => plain(&other.to_string()),
        None => plain(&arguments.to_string()),
    };
    truncate_str(&text, COLUMNS, "…").into_owned()
}

/// Renders a finished call and a part of its result; `hint` follows the number of omitted lines.
pub fn finished_call(outcome: &ToolOutcome, about: &str, verbose: bool, hint: &str) -> String {
    let mut out = String::new();
    let mark = if outcome.error.is_some() { style("●").red() } else { style("●").green() };
    let about = if about.is_empty() { String::new() } else { format!(" {about}") };
    let count = count(outcome)
        .map(|c| style(format!("  ({c})")).dim().for_stderr().to_string())
        .unwrap_or_default();
    let _infallible = writeln!(
        out,
        "{} {}{about}{count}",
        mark.for_stderr(),
        style(plain(&outcome.name)).bold().for_stderr()
    );
    if let Some(error) = &outcome.error {
        for line in error.message.lines().take(OUTPUT_LINES.0) {
            let _infallible = writeln!(out, "  {}", style(plain(line)).red().for_stderr());
        }
        return out;
    }
    let is_program =
        matches!(outcome.name.as_str(), "run_shell" | "bash" | "shell" | "evaluate" | "python3");
    let max = if verbose {
        OUTPUT_LINES.1
    } else if is_program {
        OUTPUT_LINES.0
    } else {
        0
    };
    if let Some(problems) = outcome.output.as_ref().and_then(problems) {
        out.push_str(&first_lines(&problems, OUTPUT_LINES.0, hint));
    }
    if max > 0
        && let Some(text) = outcome.output.as_ref().and_then(output_text)
    {
        out.push_str(&first_lines(&text, max, hint));
    }
    out
}

/// Returns the new problems of an edit that a language server found, one per line, and its notes.
fn problems(output: &Value) -> Option<String> {
    let diagnostics = output.get("diagnostics")?;
    let lines = ["new", "notes"]
        .into_iter()
        .filter_map(|field| diagnostics.get(field)?.as_array())
        .flatten()
        .filter_map(Value::as_str);
    let text = lines.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some(text)
}

/// Returns the first lines of a text, dimmed, and the number of omitted ones.
fn first_lines(text: &str, max: usize, hint: &str) -> String {
    let mut out = String::new();
    for line in text.lines().take(max) {
        let _infallible = writeln!(out, "  {}", style(plain(line)).dim().for_stderr());
    }
    out.push_str(&omitted_note(text.lines().count().saturating_sub(max), hint));
    out
}

/// Renders the number of omitted lines; none if there are none.
pub fn omitted_note(lines: usize, hint: &str) -> String {
    if lines == 0 {
        return String::new();
    }
    let what = if lines == 1 { "line" } else { "lines" };
    format!(
        "  {}\n",
        style(format!("… {} more {what}{hint}", number(lines as u64))).dim().for_stderr()
    )
}

/// Renders all lines of a call's result, dimmed; `None` if there is no text.
pub fn unfolded(outcome: &ToolOutcome) -> Option<String> {
    let text = outcome.output.as_ref().and_then(output_text)?;
    Some(first_lines(&text, usize::MAX, ""))
}

/// Returns the text inside an output.
fn output_text(output: &Value) -> Option<String> {
    let text = |key: &str| output.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
    let parts: Vec<&str> = ["stdout", "stderr", "content", "text", "output", "diff"]
        .into_iter()
        .filter_map(text)
        .collect();
    if !parts.is_empty() {
        return Some(parts.join("\n"));
    }
    output.as_str().map(str::to_owned).or_else(|| serde_json::to_string_pretty(output).ok())
}

/// Describes the size of a result.
fn count(outcome: &ToolOutcome) -> Option<String> {
    let count_text = |n: u64, one: &str, many: &str| {
        format!("{} {}", number(n), if n == 1 { one } else { many })
    };
    let cut_note = if outcome.truncated { ", cut" } else { "" };
    if let Some(error) = &outcome.error {
        return Some(plain(&error.reason));
    }
    if outcome.tag == "dry_run" {
        return Some("dry run: not executed".into());
    }
    if let Some(blob) = &outcome.blob {
        return Some(format!("{}{cut_note}", output::bytes(blob.size)));
    }
    let output = outcome.output.as_ref()?;
    let figure = |key: &str| output.get(key).and_then(Value::as_u64);
    let known = if let Some(code) =
        output.get("exit_code").or(output.get("exitCode")).and_then(Value::as_i64)
    {
        Some(format!("exit {code}"))
    } else if let (Some(from), Some(to)) = (figure("start_line"), figure("end_line")) {
        Some(count_text((to + 1).saturating_sub(from), "line", "lines"))
    } else if let Some(n) = figure("total_matches") {
        Some(count_text(n, "match", "matches"))
    } else if let Some(n) = figure("replacements") {
        Some(count_text(n, "replacement", "replacements"))
    } else if let Some(n) = output.as_array().or_else(|| inner_list(output)).map(Vec::len) {
        Some(count_text(n as u64, "entry", "entries"))
    } else {
        output
            .get("content")
            .and_then(Value::as_str)
            .map(|t| count_text(t.lines().count() as u64, "line", "lines"))
    };
    known.map(|known| format!("{known}{cut_note}"))
}

/// Returns the list inside an object.
fn inner_list(output: &Value) -> Option<&Vec<Value>> {
    output.as_object()?.values().find_map(Value::as_array)
}

/// Counts the added and removed lines of a diff.
pub fn changed(diff: &str) -> (usize, usize) {
    let of = |mark: char, head: &str| {
        diff.lines().filter(|l| l.starts_with(mark) && !l.starts_with(head)).count()
    };
    (of('+', "+++ "), of('-', "--- "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(name: &str, tag: &str, output: Value) -> ToolOutcome {
        ToolOutcome {
            call_id: "c".into(),
            name: name.into(),
            tag: tag.into(),
            output: Some(output),
            blob: None,
            error: None,
            truncated: false,
            millis: 1,
            changes: vec![],
        }
    }

    #[test]
    fn problems_of_an_edit_are_displayed() {
        let lines: Vec<String> =
            (1..=9).map(|n| format!("a.py:{n}:1: error: \u{1b}[31m")).collect();
        let diagnostics = json!({"servers": ["pyright"], "new": lines});
        let edit = outcome("edit_file", "file_change", json!({"diagnostics": diagnostics}));
        let text = finished_call(&edit, "a.py", false, "");
        assert!(text.contains("a.py:8:1: error: \\u{1b}[31m\n  … 1 more line\n"), "{text}");
        let notes = json!({"notes": ["pyright: no answer within 3 s"]});
        let edit = outcome("edit_file", "file_change", json!({"diagnostics": notes}));
        assert!(
            finished_call(&edit, "a.py", false, "").ends_with("  pyright: no answer within 3 s\n")
        );
        let none = json!({"diagnostics": {"servers": ["pyright"], "new": []}});
        let edit = outcome("edit_file", "file_change", none);
        assert_eq!(finished_call(&edit, "a.py", false, "").lines().count(), 1);
    }

    #[test]
    fn calls_are_described_in_one_line() {
        for (arguments, expected) in [
            (json!({"path": "src/a.rs", "content": "x"}), "src/a.rs"),
            (json!({"command": "ls\nrm"}), "ls"),
            (json!({"n": 1}), "{\"n\":1}"),
            (json!({}), ""),
            (json!(null), ""),
            (json!("broken"), "\"broken\""),
            (json!({"path": "a\u{1b}[2Jb"}), "a\\u{1b}[2Jb"),
        ] {
            assert_eq!(about(&arguments), expected, "{arguments}");
        }
        assert_eq!(console::measure_text_width(&about(&json!({"path": "é".repeat(500)}))), COLUMNS);
    }

    #[test]
    fn results_are_described_in_one_line() {
        let text = "1|a\n2|b";
        for (name, tag, output, expected) in [
            (
                "read_file",
                "t",
                json!({"content": text, "start_line": 1, "end_line": 42}),
                "● read_file x  (42 lines)\n",
            ),
            (
                "list_files",
                "t",
                json!({"content": "a", "total_matches": 1}),
                "● list_files x  (1 match)\n",
            ),
            (
                "write_file",
                "dry_run",
                json!({"dryRun": true}),
                "● write_file x  (dry run: not executed)\n",
            ),
            ("edit_file", "t", json!({"replacements": 2}), "● edit_file x  (2 replacements)\n"),
            ("own", "t", json!({"items": [1, 2, 3]}), "● own x  (3 entries)\n"),
            ("datetime", "t", json!({"utc": "now"}), "● datetime x\n"),
        ] {
            let got = console::strip_ansi_codes(&finished_call(
                &outcome(name, tag, output),
                "x",
                false,
                "",
            ))
            .into_owned();
            assert_eq!(got, expected);
        }
        let many = "line\n".repeat(20);
        let shell =
            outcome("run_shell", "t", json!({"exit_code": 1, "stdout": many, "stderr": ""}));
        let got = console::strip_ansi_codes(&finished_call(&shell, "make", false, "")).into_owned();
        assert!(
            got.starts_with("● run_shell make  (exit 1)\n  line\n")
                && got.ends_with("  … 12 more lines\n"),
            "{got}"
        );
        let mut failed = outcome("read_file", "", Value::Null);
        let reason = "path_not_found".into();
        let message = "no 'x' here".into();
        failed.error =
            Some(cairn_protocol::tool::ToolFailure { reason, message, retryable: false });
        let got = console::strip_ansi_codes(&finished_call(&failed, "x", false, "")).into_owned();
        assert_eq!(got, "● read_file x  (path_not_found)\n  no 'x' here\n");
    }

    #[test]
    fn diffs_are_counted() {
        let text = "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+b\n+c\n";
        assert_eq!(changed(text), (2, 1));
    }
}
