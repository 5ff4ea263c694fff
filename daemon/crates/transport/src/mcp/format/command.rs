//! Formatting of the output of a command: its exit code, and the start and the end of each stream.

use serde::Deserialize;
use serde_json::Value;

use super::Budget;

/// The output of the registered tool that runs commands.
#[derive(Deserialize)]
struct CommandOutput {
    exit_code: i64,
    #[serde(default)]
    stdout: String,
    #[serde(default)]
    stderr: String,
    #[serde(default)]
    timed_out: bool,
    #[serde(default)]
    network_refused: Vec<Value>,
}

/// Formats the output of a command; `None` for another kind of output.
pub fn command(output: &Value, budget: Budget) -> Option<String> {
    let output: CommandOutput = serde_json::from_value(output.clone()).ok()?;
    let mut text = format!("exit code {}", output.exit_code);
    if output.timed_out {
        text.push_str(", stopped at its time limit: raise timeout");
    }
    text.push('\n');
    if !output.network_refused.is_empty() {
        let hosts: Vec<String> = output.network_refused.iter().map(ToString::to_string).collect();
        text.push_str(&format!("[connections that were refused: {}]\n", hosts.join(", ")));
    }
    let streams = [("stdout", &output.stdout), ("stderr", &output.stderr)];
    let used = streams.iter().filter(|(_, stream)| !stream.is_empty()).count().max(1);
    for (name, stream) in streams.into_iter().filter(|(_, stream)| !stream.is_empty()) {
        text.push_str(&format!("{name}:\n{}", ends(stream, budget.bytes() / used)));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Some(text)
}

/// Returns the first third and the last two thirds of a text that is too long: errors come last.
fn ends(text: &str, most: usize) -> String {
    let clean: String =
        text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    if clean.len() <= most {
        return clean;
    }
    let boundary = |mut at: usize| {
        while !clean.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let head = boundary(most / 3);
    let tail = boundary(clean.len() - (most - most / 3));
    let left_out = tail - head;
    format!(
        "{}\n[{left_out} bytes left out: raise maxTokens, or filter in the command]\n{}",
        &clean[..head],
        &clean[tail..]
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn output_has_exit_code_and_both_ends() {
        let short = json!({"exit_code": 1, "stdout": "a\n", "stderr": "bad", "timed_out": true});
        assert_eq!(
            command(&short, Budget::tokens(None)).unwrap(),
            "exit code 1, stopped at its time limit: raise timeout\nstdout:\na\nstderr:\nbad\n"
        );
        let long = format!("first\n{}last\n", "ä".repeat(50_000));
        let long = json!({"exit_code": 0, "stdout": long, "stderr": ""});
        let text = command(&long, Budget::tokens(Some(200))).unwrap();
        assert!(
            text.len() < 1000 && text.contains("first\n") && text.ends_with("last\n"),
            "{text}"
        );
        assert!(text.contains("bytes left out"), "{text}");
        let escape = json!({"exit_code": 0, "stdout": "\u{1b}[2Jx"});
        assert!(!command(&escape, Budget::tokens(None)).unwrap().contains('\u{1b}'));
        assert!(command(&json!({"path": "a"}), Budget::tokens(None)).is_none());
    }
}
