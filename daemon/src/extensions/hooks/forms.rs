//! Hooks of settings files and plugins, in the forms that Claude Code accepts: what is invalid there
//! is invalid here, and what it has more of is named.

use cairn_config::{HookCommand, HookGroup};
use serde_json::{Map, Value};

use super::sources::{Event, Groups};

/// Most names of what is not supported.
const MAX_UNSUPPORTED: usize = 32;

/// The hooks of a file.
#[derive(Debug, Default)]
pub struct Parsed {
    pub groups: Groups,
    /// Events, kinds of hooks and conditions of the file that are not run here.
    pub unsupported: Vec<String>,
}

/// Parses hooks by event: an object with or without the key `hooks`.
///
/// # Errors
/// The place and the fault of the first entry that is invalid.
pub fn parse(value: &Value) -> Result<Parsed, String> {
    let mut parsed = Parsed::default();
    if value.get("disableAllHooks") == Some(&Value::Bool(true)) {
        return Ok(parsed);
    }
    let by_event = value.get("hooks").unwrap_or(value);
    for event in Event::ALL {
        let Some(listed) = by_event.get(event.as_str()) else { continue };
        let name = event.as_str();
        let listed = listed.as_array().ok_or_else(|| format!("hooks.{name} must be a list"))?;
        let groups = listed.iter().enumerate().map(|(at, group)| {
            group_of(group, name, &mut parsed.unsupported)
                .map_err(|why| format!("hooks.{name}, entry {}: {why}", at + 1))
        });
        let groups = groups.collect::<Result<Vec<_>, _>>()?;
        parsed.groups.insert(*event, groups);
    }
    // Without the key, other keys are not events but what the file describes itself with.
    let others = value.get("hooks").and_then(Value::as_object).into_iter().flatten();
    let is_known = |name: &str| Event::ALL.iter().any(|event| event.as_str() == name);
    let others = others.filter(|(name, listed)| !is_known(name) && listed.is_array());
    parsed.unsupported.extend(others.map(|(name, _)| format!("the event {name}")));
    parsed.unsupported.sort();
    parsed.unsupported.dedup();
    parsed.unsupported.truncate(MAX_UNSUPPORTED);
    Ok(parsed)
}

fn group_of(
    value: &Value,
    event: &str,
    unsupported: &mut Vec<String>,
) -> Result<HookGroup, String> {
    let group = value.as_object().ok_or("it must be an object with 'hooks'")?;
    let matcher = match group.get("matcher") {
        None => String::new(),
        Some(Value::String(matcher)) => matcher.clone(),
        Some(_) => return Err("'matcher' must be a text".into()),
    };
    let listed = group.get("hooks").and_then(Value::as_array).ok_or("'hooks' must be a list")?;
    let mut hooks = Vec::new();
    for hook in listed {
        let hook = hook.as_object().ok_or("a hook must be an object with 'type'")?;
        match hook_of(hook)? {
            Form::Command(command) => hooks.push(command),
            Form::Unsupported(what) => unsupported.push(format!("{what} at {event}")),
        }
        if hook.contains_key("if") {
            unsupported.push(format!("the condition 'if' at {event}: its hook runs in any case"));
        }
    }
    Ok(HookGroup { matcher, hooks })
}

enum Form {
    Command(HookCommand),
    Unsupported(String),
}

fn hook_of(hook: &Map<String, Value>) -> Result<Form, String> {
    let kind = hook.get("type").and_then(Value::as_str).ok_or("a hook has no 'type'")?;
    match kind {
        "command" => {}
        "prompt" | "agent" | "http" | "mcp_tool" => {
            return Ok(Form::Unsupported(format!("a hook of the type '{kind}'")));
        }
        _ => return Err(format!("there is no type '{kind}' of hooks")),
    }
    match hook.get("shell").map(Value::as_str) {
        None | Some(Some("bash")) => {}
        Some(shell) => {
            return Ok(Form::Unsupported(format!("the shell '{}'", shell.unwrap_or("?"))));
        }
    }
    let command = hook.get("command").and_then(Value::as_str).ok_or("'command' must be a text")?;
    let mut spec = HookCommand { command: command.to_owned(), ..HookCommand::default() };
    match hook.get("timeout") {
        None => {}
        Some(timeout) => spec.timeout = seconds(timeout)?,
    }
    if let Some(sandbox) = hook.get("sandbox") {
        spec.sandbox = sandbox.as_bool().ok_or("'sandbox' must be true or false")?;
    }
    if let Some(args) = hook.get("args") {
        let words = args.as_array().ok_or("'args' must be a list")?.iter().map(Value::as_str);
        let words = words.collect::<Option<Vec<_>>>().ok_or("'args' must be texts")?;
        // With arguments the program is started without a shell.
        let all = std::iter::once(command).chain(words);
        spec.command = shlex::try_join(all).map_err(|e| format!("'args': {e}"))?;
    }
    Ok(Form::Command(spec))
}

/// Reads a time limit: a number over zero, of which fractions are rounded up.
fn seconds(value: &Value) -> Result<u64, String> {
    let number = value.as_f64().filter(|number| *number > 0.0 && *number <= 1e9);
    let number = number.ok_or("'timeout' must be a number of seconds over 0")?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range has been checked"
    )]
    Ok(number.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The verdict of a validator about a form.
    #[derive(Debug, PartialEq)]
    enum Verdict {
        /// Accepted as it is.
        Accepted,
        /// One entry is left out, the others count.
        Skipped,
        /// The file does not count at all.
        Refused,
    }
    use Verdict::{Accepted, Refused, Skipped};

    fn command(more: &Value) -> Value {
        let mut hook = json!({"type": "command", "command": "true"});
        for (key, value) in more.as_object().unwrap() {
            hook[key] = value.clone();
        }
        json!([{"hooks": [hook]}])
    }

    fn hook(hook: Value) -> Value {
        json!([{"hooks": [hook]}])
    }

    /// Forms with what Claude Code 2.1.332 says of them (`claude --settings FILE -p hi`).
    fn forms() -> Vec<(&'static str, Value, Verdict)> {
        vec![
            ("PreToolUse", command(&json!({})), Accepted),
            ("PreToolUse", json!([{"matcher": 3, "hooks": []}]), Refused),
            ("PreToolUse", json!([{"matcher": null, "hooks": []}]), Refused),
            ("PreToolUse", json!([{"matcher": "mcp__.*", "hooks": []}]), Accepted),
            ("PreToolUse", command(&json!({"timeout": 5})), Accepted),
            ("PreToolUse", command(&json!({"timeout": 0.5})), Accepted),
            ("PreToolUse", command(&json!({"timeout": 0})), Refused),
            ("PreToolUse", command(&json!({"timeout": -1})), Refused),
            ("PreToolUse", command(&json!({"timeout": "5"})), Refused),
            ("PostToolUse", command(&json!({"async": true})), Accepted),
            ("PostToolUse", command(&json!({"once": true, "statusMessage": "x"})), Accepted),
            ("PostToolUse", command(&json!({"shell": "bash"})), Accepted),
            ("PostToolUse", command(&json!({"shell": "fish"})), Skipped),
            ("PreToolUse", command(&json!({"if": "Bash(git *)"})), Accepted),
            ("PreToolUse", command(&json!({"args": ["a b", "c"]})), Accepted),
            ("PreToolUse", command(&json!({"unknown": 1})), Accepted),
            ("PreToolUse", hook(json!({"type": "prompt", "prompt": "ok?"})), Accepted),
            ("PreToolUse", hook(json!({"type": "agent", "prompt": "ok?"})), Accepted),
            ("PreToolUse", hook(json!({"type": "http", "url": "http://127.0.0.1"})), Accepted),
            ("PreToolUse", hook(json!({"type": "mcp_tool", "server": "s", "tool": "t"})), Accepted),
            ("PreToolUse", hook(json!({"type": "magic", "command": "true"})), Refused),
            ("PreToolUse", hook(json!({"command": "true"})), Refused),
            ("PreToolUse", hook(json!({"type": "command"})), Refused),
            ("PreToolUse", hook(json!({"type": "command", "command": ["true"]})), Refused),
            ("PreToolUse", hook(json!({"type": "command", "command": ""})), Accepted),
            ("PreToolUse", json!([{"matcher": "Bash"}]), Refused),
            ("PreToolUse", json!([{"hooks": []}]), Accepted),
            ("PreToolUse", json!([]), Accepted),
            ("PreToolUse", json!({"hooks": []}), Refused),
            ("PreToolUse", json!([{"type": "command", "command": "true"}]), Refused),
            ("preToolUse", command(&json!({})), Skipped),
            ("Nonsense", command(&json!({})), Skipped),
            ("PermissionRequest", command(&json!({})), Accepted),
            ("WorktreeCreate", command(&json!({})), Accepted),
        ]
    }

    /// Forms that the validator refuses are refused here; those that it accepts run or are named.
    #[test]
    fn forms_count_as_in_claude_code() {
        for (event, listed, verdict) in forms() {
            let value = json!({"hooks": {event: listed}});
            let ours = parse(&value);
            let Ok(parsed) = ours else {
                assert_eq!(verdict, Refused, "{value}: {ours:?}");
                continue;
            };
            assert_ne!(verdict, Refused, "{value}: {parsed:?}");
            let count: usize = listed
                .as_array()
                .unwrap()
                .iter()
                .map(|g| g["hooks"].as_array().unwrap().len())
                .sum();
            let run: usize = parsed.groups.values().flatten().map(|group| group.hooks.len()).sum();
            assert!(run == count || !parsed.unsupported.is_empty(), "{value}: {parsed:?}");
            assert!(verdict != Skipped || run == 0, "{value}: {parsed:?}");
        }
    }

    #[test]
    fn arguments_and_limits_are_adopted() {
        let value =
            json!({"hooks": {"Stop": command(&json!({"args": ["a b", "$x"], "timeout": 0.2}))}});
        let parsed = parse(&value).unwrap();
        let hook = &parsed.groups[&Event::Stop][0].hooks[0];
        assert_eq!((hook.command.as_str(), hook.timeout), ("true 'a b' '$x'", 1));
        // A plugin's file may have its hooks at the top, beside a description.
        let plugin = json!({"description": "x", "Stop": command(&json!({}))});
        let parsed = parse(&plugin).unwrap();
        assert!(parsed.groups.contains_key(&Event::Stop) && parsed.unsupported.is_empty());
    }
}
