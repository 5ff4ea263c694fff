//! Tool calls, their results and diffs in a few lines.

use std::fmt::Write as _;

use cairn_protocol::event::ToolOutcome;
use console::{style, truncate_str};
use serde_json::Value;

use crate::output::{self, number, plain};

/// Arguments that say best what a call is about, the first found counts.
const TELLING: &[&str] = &[
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
/// Columns of a call's arguments.
const COLUMNS: usize = 72;
/// Lines of a program's output that are shown, and of any tool's when much is wanted.
const SHOWN: (usize, usize) = (8, 40);
/// Lines of a diff that are shown.
pub const DIFF_LINES: usize = 60;

/// What a call is about, in one line.
pub fn about(arguments: &Value) -> String {
    let found = TELLING.iter().find_map(|key| arguments.get(key));
    let text = match found {
        Some(Value::String(text)) => plain(text.lines().next().unwrap_or_default()),
        None if arguments.is_null() || arguments.as_object().is_some_and(serde_json::Map::is_empty) => {
            String::new()
        }
        Some(other) => plain(&other.to_string()),
        None => plain(&arguments.to_string()),
    };
    truncate_str(&text, COLUMNS, "…").into_owned()
}

/// The line of a call that ended, and what is shown of its result.
pub fn ended(outcome: &ToolOutcome, about: &str, verbose: bool) -> String {
    let mut out = String::new();
    let mark = if outcome.error.is_some() { style("●").red() } else { style("●").green() };
    let about = if about.is_empty() { String::new() } else { format!(" {about}") };
    let count =
        count(outcome).map(|c| style(format!("  ({c})")).dim().for_stderr().to_string()).unwrap_or_default();
    let _infallible = writeln!(
        out,
        "{} {}{about}{count}",
        mark.for_stderr(),
        style(plain(&outcome.name)).bold().for_stderr()
    );
    if let Some(error) = &outcome.error {
        for line in error.message.lines().take(SHOWN.0) {
            let _infallible = writeln!(out, "  {}", style(plain(line)).red().for_stderr());
        }
        return out;
    }
    let is_program = matches!(outcome.name.as_str(), "run_shell" | "bash" | "shell" | "evaluate" | "python3");
    let most = if verbose {
        SHOWN.1
    } else if is_program {
        SHOWN.0
    } else {
        0
    };
    if most > 0
        && let Some(text) = outcome.output.as_ref().and_then(text_of)
    {
        out.push_str(&cut(&text, most));
    }
    out
}

/// The first lines of a text, dimmed, and how many are left out.
fn cut(text: &str, most: usize) -> String {
    let mut out = String::new();
    for line in text.lines().take(most) {
        let _infallible = writeln!(out, "  {}", style(plain(line)).dim().for_stderr());
    }
    out.push_str(&hidden(text.lines().count().saturating_sub(most)));
    out
}

fn hidden(lines: usize) -> String {
    if lines == 0 {
        return String::new();
    }
    let what = if lines == 1 { "line" } else { "lines" };
    format!("  {}\n", style(format!("… {} more {what}", number(lines as u64))).dim().for_stderr())
}

/// The text inside an output.
fn text_of(output: &Value) -> Option<String> {
    let text = |key: &str| output.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
    let parts: Vec<&str> =
        ["stdout", "stderr", "content", "text", "output", "diff"].into_iter().filter_map(text).collect();
    if !parts.is_empty() {
        return Some(parts.join("\n"));
    }
    output.as_str().map(str::to_owned).or_else(|| serde_json::to_string_pretty(output).ok())
}

/// How much a result is.
fn count(outcome: &ToolOutcome) -> Option<String> {
    let said = |n: u64, one: &str, many: &str| format!("{} {}", number(n), if n == 1 { one } else { many });
    let cut = if outcome.truncated { ", cut" } else { "" };
    if let Some(error) = &outcome.error {
        return Some(plain(&error.reason));
    }
    if outcome.tag == "dry_run" {
        return Some("dry run: not made".into());
    }
    if let Some(blob) = &outcome.blob {
        return Some(format!("{}{cut}", output::bytes(blob.size)));
    }
    let output = outcome.output.as_ref()?;
    let figure = |key: &str| output.get(key).and_then(Value::as_u64);
    let known = if let Some(code) = output.get("exit_code").or(output.get("exitCode")).and_then(Value::as_i64)
    {
        Some(format!("exit {code}"))
    } else if let (Some(from), Some(to)) = (figure("start_line"), figure("end_line")) {
        Some(said((to + 1).saturating_sub(from), "line", "lines"))
    } else if let Some(n) = figure("total_matches") {
        Some(said(n, "match", "matches"))
    } else if let Some(n) = figure("replacements") {
        Some(said(n, "replacement", "replacements"))
    } else if let Some(n) = output.as_array().or_else(|| list_of(output)).map(Vec::len) {
        Some(said(n as u64, "entry", "entries"))
    } else {
        output.get("content").and_then(Value::as_str).map(|t| said(t.lines().count() as u64, "line", "lines"))
    };
    known.map(|known| format!("{known}{cut}"))
}

/// The list that an object holds.
fn list_of(output: &Value) -> Option<&Vec<Value>> {
    output.as_object()?.values().find_map(Value::as_array)
}

/// A unified diff in colours, cut at some lines.
pub fn diff(text: &str, most: usize) -> String {
    let mut out = String::new();
    for line in text.lines().take(most) {
        let shown = plain(line);
        let shown = style(shown).for_stderr();
        let shown = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => shown.bold(),
            [b'+', ..] => shown.green(),
            [b'-', ..] => shown.red(),
            [b'@', b'@', ..] => shown.cyan(),
            _ => shown,
        };
        let _infallible = writeln!(out, "  {shown}");
    }
    out.push_str(&hidden(text.lines().count().saturating_sub(most)));
    out
}

/// Lines that a diff adds and takes away.
pub fn changed(diff: &str) -> (usize, usize) {
    let of =
        |mark: char, head: &str| diff.lines().filter(|l| l.starts_with(mark) && !l.starts_with(head)).count();
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
    fn calls_in_a_line() {
        for (arguments, want) in [
            (json!({"path": "src/a.rs", "content": "x"}), "src/a.rs"),
            (json!({"command": "ls\nrm"}), "ls"),
            (json!({"n": 1}), "{\"n\":1}"),
            (json!({}), ""),
            (json!(null), ""),
            (json!("broken"), "\"broken\""),
            (json!({"path": "a\u{1b}[2Jb"}), "a\\u{1b}[2Jb"),
        ] {
            assert_eq!(about(&arguments), want, "{arguments}");
        }
        assert_eq!(console::measure_text_width(&about(&json!({"path": "é".repeat(500)}))), COLUMNS);
    }

    #[test]
    fn results_in_a_line() {
        let text = "1|a\n2|b";
        for (name, tag, output, want) in [
            (
                "read_file",
                "t",
                json!({"content": text, "start_line": 1, "end_line": 42}),
                "● read_file x  (42 lines)\n",
            ),
            ("list_files", "t", json!({"content": "a", "total_matches": 1}), "● list_files x  (1 match)\n"),
            ("write_file", "dry_run", json!({"dryRun": true}), "● write_file x  (dry run: not made)\n"),
            ("edit_file", "t", json!({"replacements": 2}), "● edit_file x  (2 replacements)\n"),
            ("own", "t", json!({"items": [1, 2, 3]}), "● own x  (3 entries)\n"),
            ("datetime", "t", json!({"utc": "now"}), "● datetime x\n"),
        ] {
            let got = console::strip_ansi_codes(&ended(&outcome(name, tag, output), "x", false)).into_owned();
            assert_eq!(got, want);
        }
        let many = "line\n".repeat(20);
        let shell = outcome("run_shell", "t", json!({"exit_code": 1, "stdout": many, "stderr": ""}));
        let got = console::strip_ansi_codes(&ended(&shell, "make", false)).into_owned();
        assert!(
            got.starts_with("● run_shell make  (exit 1)\n  line\n") && got.ends_with("  … 12 more lines\n"),
            "{got}"
        );
        let mut failed = outcome("read_file", "", Value::Null);
        let (reason, message) = ("path_not_found".into(), "no 'x' here".into());
        failed.error = Some(cairn_protocol::tool::ToolFailure { reason, message, retryable: false });
        let got = console::strip_ansi_codes(&ended(&failed, "x", false)).into_owned();
        assert_eq!(got, "● read_file x  (path_not_found)\n  no 'x' here\n");
    }

    #[test]
    fn diffs_are_cut_and_counted() {
        let text = "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+b\n+c\n";
        let got = console::strip_ansi_codes(&diff(text, 4)).into_owned();
        assert_eq!(got, "  --- a/x\n  +++ b/x\n  @@ -1 +1,2 @@\n  -a\n  … 2 more lines\n");
        assert_eq!(changed(text), (2, 1));
    }
}
