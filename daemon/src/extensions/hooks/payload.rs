//! The JSON that hooks receive and answer, with tools and arguments under the names that Claude
//! Code has for them.

use std::path::Path;

use cairn_engine::plugin::{HookAnswer, HookEvent};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{run::HookOutput, sources::Event};

/// Maximum bytes of a tool's output that hooks receive.
const MAX_RESPONSE: usize = 256 * 1024;

/// A tool with its name elsewhere and its arguments that have other names there.
struct Mapping {
    own: &'static str,
    other: &'static str,
    arguments: &'static [(&'static str, &'static str)],
}

const PATH: &[(&str, &str)] = &[("path", "file_path")];

const fn mapping(
    own: &'static str,
    other: &'static str,
    arguments: &'static [(&'static str, &'static str)],
) -> Mapping {
    Mapping { own, other, arguments }
}

const MAPPINGS: &[Mapping] = &[
    mapping("run_shell", "Bash", &[]),
    mapping("bash", "Bash", &[]),
    mapping("shell", "Bash", &[]),
    mapping("read_file", "Read", PATH),
    mapping("read_span", "Read", PATH),
    mapping(
        "edit_file",
        "Edit",
        &[("path", "file_path"), ("old_text", "old_string"), ("new_text", "new_string")],
    ),
    mapping("write_file", "Write", PATH),
    mapping("list_files", "Glob", &[]),
    mapping("search_files", "Grep", &[]),
    mapping("search_grep", "Grep", &[]),
    mapping("web_fetch", "WebFetch", &[]),
    mapping("web_search", "WebSearch", &[]),
    mapping("run_agent", "Task", &[("task", "prompt")]),
    mapping("plan", "TodoWrite", &[]),
];

fn find(tool: &str) -> Option<&'static Mapping> {
    MAPPINGS.iter().find(|mapping| mapping.own == tool)
}

/// Returns the name that hooks have for a tool.
fn other_name(tool: &str) -> String {
    if let Some(mapping) = find(tool) {
        return mapping.other.to_owned();
    }
    match tool.strip_prefix("mcp_").and_then(|rest| rest.split_once('_')) {
        Some((server, name)) => format!("mcp__{server}__{name}"),
        None => tool.to_owned(),
    }
}

/// Returns the names that a matcher can have for the tool of an event; `None` for an event without
/// a tool.
pub fn subject(event: &HookEvent) -> Option<Vec<String>> {
    match event {
        HookEvent::BeforeTool { tool, .. } | HookEvent::AfterTool { tool, .. } => {
            Some(vec![other_name(tool), tool.clone()])
        }
        _ => None,
    }
}

fn renamed(value: &Value, names: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Value::Object(fields) = value else { return value.clone() };
    let rename = |(key, value): (&String, &Value)| {
        (names(key).map_or_else(|| key.clone(), str::to_owned), value.clone())
    };
    Value::Object(fields.iter().map(rename).collect())
}

/// Returns arguments as hooks receive them; paths of files are absolute.
fn other_arguments(tool: &str, arguments: &Value, root: Option<&Path>) -> Value {
    let Some(mapping) = find(tool) else { return arguments.clone() };
    let name = |key: &str| mapping.arguments.iter().find(|(own, _)| *own == key).map(|(_, o)| *o);
    let mut all = renamed(arguments, name);
    if let (Some(root), Some(path)) = (root, all.get("file_path").and_then(Value::as_str)) {
        all["file_path"] = json!(root.join(path));
    }
    all
}

/// Returns arguments of a hook as the tool takes them.
fn own_arguments(tool: &str, arguments: &Value) -> Value {
    let Some(mapping) = find(tool) else { return arguments.clone() };
    renamed(arguments, |key| mapping.arguments.iter().find(|(_, o)| *o == key).map(|(own, _)| *own))
}

/// Returns the input of a hook. `changed` are the arguments of a call after the hooks before it.
pub fn input(
    event: &HookEvent,
    kind: Event,
    root: Option<&Path>,
    changed: Option<&Value>,
) -> Value {
    let mut input = Map::new();
    let mut put = |name: &str, value: Value| {
        input.insert(name.to_owned(), value);
    };
    put("session_id", json!(event.session()));
    put("hook_event_name", json!(kind.as_str()));
    put("cwd", json!(root.unwrap_or_else(|| Path::new("/"))));
    put("permission_mode", json!("default"));
    match event {
        HookEvent::BeforeTool { tool, arguments, .. } => {
            put("tool_name", json!(other_name(tool)));
            put("tool_input", other_arguments(tool, changed.unwrap_or(arguments), root));
        }
        HookEvent::AfterTool { tool, arguments, output, outcome, .. } => {
            put("tool_name", json!(other_name(tool)));
            put("tool_input", other_arguments(tool, arguments, root));
            let response = match output {
                Some(output) if output.to_string().len() <= MAX_RESPONSE => output.clone(),
                Some(_) => json!({"omitted": "the output is too large for a hook"}),
                None => json!({"error": outcome}),
            };
            put("tool_response", response);
        }
        HookEvent::UserPrompt { prompt, .. } => put("prompt", json!(prompt)),
        HookEvent::TurnStop { active, text, .. } => {
            put("stop_hook_active", json!(active));
            put("last_assistant_message", json!(text));
        }
        HookEvent::SubagentStop { agent, .. } => {
            put("stop_hook_active", json!(false));
            put("agent_id", json!(agent));
        }
        HookEvent::BeforeCompact { .. } => {
            put("trigger", json!("auto"));
            put("custom_instructions", json!(""));
        }
        HookEvent::Notification { message, .. } => put("message", json!(message)),
        HookEvent::SessionStart { .. } => put("source", json!("startup")),
        HookEvent::SessionStop { .. } => put("reason", json!("other")),
        HookEvent::BeforeModel { .. } | HookEvent::AfterModel { .. } => {}
    }
    Value::Object(input)
}

/// The answer of a hook.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Answer {
    #[serde(rename = "continue")]
    continues: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    suppress_output: bool,
    decision: Option<String>,
    reason: Option<String>,
    hook_specific_output: Option<Specific>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Specific {
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Value>,
    additional_context: Option<String>,
}

/// Converts the output of a hook.
///
/// # Errors
/// A description of an exit code that is neither success nor a refusal, or of invalid JSON.
pub fn answer(
    output: &HookOutput,
    event: &HookEvent,
    kind: Event,
    may_allow: bool,
) -> Result<HookAnswer, String> {
    match output.exit_code {
        Some(0) => {}
        // The exit code for a refusal, with its reason on standard error.
        Some(2) => {
            let reason = Some(output.stderr.trim()).filter(|text| !text.is_empty());
            let refuse = Some(reason.unwrap_or("it gives no reason").to_owned());
            return Ok(HookAnswer { refuse, ..HookAnswer::default() });
        }
        Some(code) => return Err(format!("it exited with {code}: {}", output.stderr.trim())),
        None => return Err("it was ended by a signal".into()),
    }
    let text = output.stdout.trim();
    if !text.starts_with('{') {
        let is_context = matches!(kind, Event::UserPromptSubmit | Event::SessionStart);
        let context = Some(text.to_owned()).filter(|text| is_context && !text.is_empty());
        return Ok(HookAnswer { context, ..HookAnswer::default() });
    }
    let answer: Answer =
        serde_json::from_str(text).map_err(|error| format!("its answer is invalid: {error}"))?;
    Ok(converted(answer, event, may_allow))
}

fn converted(answer: Answer, event: &HookEvent, may_allow: bool) -> HookAnswer {
    let specific = answer.hook_specific_output.unwrap_or_default();
    let mut all = HookAnswer {
        context: specific.additional_context,
        notice: answer.system_message.filter(|_| !answer.suppress_output),
        ..HookAnswer::default()
    };
    if answer.continues == Some(false) {
        let reason = answer.stop_reason.or_else(|| answer.reason.clone());
        all.stop = Some(reason.unwrap_or_else(|| "it ends the turn".into()));
    }
    let decision = specific.permission_decision.or(answer.decision);
    let reason = specific
        .permission_decision_reason
        .or(answer.reason)
        .unwrap_or_else(|| "it gives no reason".into());
    match decision.as_deref() {
        Some("deny" | "block") => all.refuse = Some(reason),
        Some("ask") => all.ask = Some(reason),
        Some("allow" | "approve") => all.allow = may_allow,
        // An unknown decision could be meant as a refusal.
        Some(_) => all.ask = Some("it gives an unknown decision".into()),
        None => {}
    }
    if let (Some(updated), HookEvent::BeforeTool { tool, .. }) = (specific.updated_input, event) {
        all.arguments = Some(own_arguments(tool, &updated));
    }
    all
}

#[cfg(test)]
mod tests {
    use cairn_protocol::id::SessionId;

    use super::*;

    fn before(tool: &str, arguments: Value) -> HookEvent {
        HookEvent::BeforeTool { session_id: SessionId::new(), tool: tool.into(), arguments }
    }

    fn output(exit_code: i32, stdout: &str, stderr: &str) -> HookOutput {
        HookOutput { exit_code: Some(exit_code), stdout: stdout.into(), stderr: stderr.into() }
    }

    #[test]
    fn tools_and_arguments_have_their_known_names() {
        let arguments = json!({"path": "a.rs", "old_text": "x", "new_text": "y"});
        let event = before("edit_file", arguments.clone());
        let root = Path::new("/work");
        let input = input(&event, Event::PreToolUse, Some(root), None);
        assert_eq!((&input["tool_name"], &input["cwd"]), (&json!("Edit"), &json!("/work")));
        let expected = json!({"file_path": "/work/a.rs", "old_string": "x", "new_string": "y"});
        assert_eq!(input["tool_input"], expected);
        let back = own_arguments("edit_file", &input["tool_input"]);
        assert_eq!(back, json!({"path": "/work/a.rs", "old_text": "x", "new_text": "y"}));
        assert_eq!(other_name("mcp_github_create_issue"), "mcp__github__create_issue");
        assert_eq!(subject(&event).unwrap(), ["Edit", "edit_file"]);
    }

    #[test]
    fn answers_are_converted() {
        let event = before("run_shell", json!({"command": "ls"}));
        let of = |output: HookOutput, may_allow| {
            answer(&output, &event, Event::PreToolUse, may_allow).unwrap()
        };
        assert_eq!(of(output(0, "", ""), true), HookAnswer::default());
        // Text is no context for the model before a tool call.
        assert_eq!(of(output(0, "hello", ""), true), HookAnswer::default());
        assert_eq!(of(output(2, "", "not now\n"), true).refuse.as_deref(), Some("not now"));
        let specific = |decision: &str| {
            let specific =
                json!({"permissionDecision": decision, "permissionDecisionReason": "why"});
            output(0, &json!({"hookSpecificOutput": specific}).to_string(), "")
        };
        assert_eq!(of(specific("deny"), true).refuse.as_deref(), Some("why"));
        assert_eq!(of(specific("ask"), true).ask.as_deref(), Some("why"));
        assert!(of(specific("allow"), true).allow && !of(specific("allow"), false).allow);
        assert!(of(specific("maybe"), true).ask.is_some());
        let stop = of(output(0, r#"{"continue": false, "stopReason": "enough"}"#, ""), true);
        assert_eq!(stop.stop.as_deref(), Some("enough"));
        let changed = r#"{"hookSpecificOutput": {"updatedInput": {"command": "ls -l"}, "additionalContext": "c"}}"#;
        let changed = of(output(0, changed, ""), true);
        assert_eq!(changed.arguments, Some(json!({"command": "ls -l"})));
        assert_eq!(changed.context.as_deref(), Some("c"));
    }

    #[test]
    fn failures_are_no_answers() {
        let event = before("run_shell", json!({}));
        for (output, reason) in [
            (output(1, "", "broken"), "exited with 1: broken"),
            (output(0, "{nonsense", ""), "is invalid"),
            (output(0, r#"{"decision": 7}"#, ""), "is invalid"),
            (HookOutput { exit_code: None, ..output(0, "", "") }, "by a signal"),
        ] {
            let error = answer(&output, &event, Event::PreToolUse, true).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
