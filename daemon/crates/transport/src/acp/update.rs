//! Pure conversion of events to the updates that an editor displays.

use cairn_protocol::{
    approval::Approval,
    event::{AgentEvt, ModelAnswer, PlanStatus, ToolOutcome},
    model::Part,
};
use serde_json::{Value, json};

/// Maximum characters of a tool's output.
const MAX_OUTPUT: usize = 4 * 1024;
/// Maximum characters of a title.
const MAX_TITLE: usize = 120;
/// Maximum number of running calls to remember.
const MAX_CALLS: usize = 64;

/// The part of a session that the editor already displays.
#[derive(Debug, Default)]
pub struct Displayed {
    /// Bytes displayed of the present answer: text and reasoning.
    text: u64,
    thought: u64,
    /// Cost of all answers so far, in millionths of a US dollar.
    cost: Option<u64>,
    /// Running calls with their tool and the diff that was proposed.
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    id: String,
    tool: String,
    arguments: Value,
    diff: Vec<Value>,
    /// End of the output of its command so far.
    output: String,
}

/// Lists the slash commands.
pub fn commands() -> Value {
    let command = |name: &str, description: &str| json!({"name": name, "description": description});
    json!({
        "sessionUpdate": "available_commands_update",
        "availableCommands": [
            command("clear", "Clear the conversation"),
            command("compress", "Replace the conversation with a summary"),
        ],
    })
}

/// Renders a chunk of the agent's reasoning, also for notices.
pub fn thought_chunk(text: &str) -> Value {
    chunk("agent_thought_chunk", json!({"type": "text", "text": text}))
}

/// Renders a chunk of the agent's message.
pub fn message_chunk(text: &str) -> Value {
    chunk("agent_message_chunk", json!({"type": "text", "text": text}))
}

fn chunk(kind: &str, content: Value) -> Value {
    json!({"sessionUpdate": kind, "content": content})
}

/// Converts an event of a session whose root is `folder`.
pub fn updates_for(evt: &AgentEvt, displayed: &mut Displayed, folder: &str) -> Vec<Value> {
    match evt {
        AgentEvt::TurnAccepted { input, .. } => input.iter().map(user_chunk).collect(),
        AgentEvt::Steered { text, .. } => vec![user_chunk(&Part::Text { text: text.clone() })],
        AgentEvt::TokenDelta { reasoning, offset, text, .. } => {
            // A lost delta is made up for by the record with the same text.
            let continues = *offset == *displayed.displayed_len(*reasoning);
            if continues { displayed.append_text(*reasoning, *offset, text) } else { Vec::new() }
        }
        AgentEvt::Text { reasoning, offset, text, .. } => {
            displayed.append_text(*reasoning, *offset, text)
        }
        AgentEvt::ModelAnswer(answer) => {
            displayed.text = 0;
            displayed.thought = 0;
            displayed.add_cost(answer);
            displayed.usage(answer).into_iter().collect()
        }
        AgentEvt::ToolCall { call_id, name, arguments } => {
            vec![displayed.start_call(call_id, name, arguments, folder)]
        }
        AgentEvt::CommandOutput { call_id, text, .. } => displayed.append_output(call_id, text),
        AgentEvt::ToolResult(outcome) => vec![displayed.finish_call(outcome, folder)],
        AgentEvt::ApprovalRequired { approval } => displayed.propose_diff(approval, folder),
        AgentEvt::PlanUpdate { items } => {
            let entry = |item: &cairn_protocol::event::PlanItem| {
                let status = match item.status {
                    PlanStatus::Pending => "pending",
                    PlanStatus::InProgress => "in_progress",
                    PlanStatus::Done => "completed",
                };
                json!({"content": item.text, "priority": "medium", "status": status})
            };
            let entries: Vec<Value> = items.iter().map(entry).collect();
            vec![json!({"sessionUpdate": "plan", "entries": entries})]
        }
        AgentEvt::Compacted { tokens_before, tokens_after, .. } => {
            let text = format!(
                "Earlier messages were replaced with a summary: {tokens_before} tokens to {tokens_after}."
            );
            vec![chunk("agent_thought_chunk", json!({"type": "text", "text": text}))]
        }
        AgentEvt::RunCompleted { .. } => {
            displayed.calls.clear();
            displayed.text = 0;
            displayed.thought = 0;
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn user_chunk(part: &Part) -> Value {
    let content = match part {
        Part::Text { text } => json!({"type": "text", "text": text}),
        Part::Image { mime, data } => json!({"type": "image", "mimeType": mime, "data": data}),
    };
    chunk("user_message_chunk", content)
}

impl Displayed {
    fn add_cost(&mut self, answer: &ModelAnswer) {
        if let Some(cost) = answer.usage.cost_micro_usd {
            self.cost = Some(self.cost.unwrap_or(0).saturating_add(cost));
        }
    }

    /// Renders the fill of the context after an answer; `None` if its size is not known.
    fn usage(&self, answer: &ModelAnswer) -> Option<Value> {
        let size = answer.context_tokens.filter(|size| *size > 0)?;
        let used = answer.usage.input_tokens + answer.usage.output_tokens;
        let mut update = json!({"sessionUpdate": "usage_update", "used": used, "size": size});
        if let Some(cost) = self.cost {
            update["cost"] = json!({"amount": cost as f64 / 1e6, "currency": "USD"});
        }
        Some(update)
    }

    fn displayed_len(&mut self, reasoning: bool) -> &mut u64 {
        if reasoning { &mut self.thought } else { &mut self.text }
    }

    /// Renders the part of a text that is not displayed yet.
    fn append_text(&mut self, reasoning: bool, offset: u64, text: &str) -> Vec<Value> {
        let displayed_len = self.displayed_len(reasoning);
        let end = offset + text.len() as u64;
        let skip = usize::try_from(displayed_len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let Some(fresh) = text.get(skip..).filter(|fresh| !fresh.is_empty()) else {
            return Vec::new();
        };
        *displayed_len = end;
        let kind = if reasoning { "agent_thought_chunk" } else { "agent_message_chunk" };
        vec![chunk(kind, json!({"type": "text", "text": fresh}))]
    }

    fn start_call(&mut self, id: &str, tool: &str, arguments: &Value, folder: &str) -> Value {
        if self.calls.len() >= MAX_CALLS {
            self.calls.remove(0);
        }
        let id = id.to_owned();
        let tool = tool.to_owned();
        let arguments = arguments.clone();
        let update = json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": title(&tool, &arguments),
            "kind": kind(&tool), "status": "in_progress", "rawInput": arguments,
            "locations": locations(&arguments, folder),
        });
        self.calls.push(Call { id, tool, arguments, diff: Vec::new(), output: String::new() });
        update
    }

    /// Shows the end of a running command's output; its result replaces it.
    fn append_output(&mut self, id: &str, text: &str) -> Vec<Value> {
        let Some(call) = self.calls.iter_mut().find(|call| call.id == id) else { return vec![] };
        call.output.push_str(text);
        let over = call.output.len().saturating_sub(MAX_OUTPUT);
        let start = (over..=call.output.len()).find(|at| call.output.is_char_boundary(*at));
        call.output.drain(..start.unwrap_or(0));
        let content = json!({"type": "content", "content": {"type": "text", "text": call.output}});
        vec![json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "content": [content]})]
    }

    fn finish_call(&mut self, outcome: &ToolOutcome, folder: &str) -> Value {
        let at = self.calls.iter().position(|call| call.id == outcome.call_id);
        let call = at.map(|at| self.calls.remove(at));
        let failed = outcome.error.is_some();
        let mut content = Vec::new();
        if let (Some(call), false) = (&call, failed) {
            let diff = if call.diff.is_empty() {
                proposed_change(call, folder)
            } else {
                call.diff.clone()
            };
            content.extend(diff);
        }
        let text = match (&outcome.error, &outcome.output) {
            (Some(error), _) => error.message.clone(),
            (None, Some(Value::String(text))) => text.clone(),
            (None, Some(output)) => readable_output(output),
            (None, None) => match &outcome.blob {
                Some(blob) => format!("{} bytes, stored in the session's log", blob.size),
                None => String::new(),
            },
        };
        if content.is_empty() && !text.is_empty() {
            content.push(
                json!({"type": "content", "content": {"type": "text", "text": truncate(&text, MAX_OUTPUT)}}),
            );
        }
        let mut update = json!({
            "sessionUpdate": "tool_call_update", "toolCallId": outcome.call_id,
            "status": if failed { "failed" } else { "completed" }, "content": content,
        });
        if !outcome.changes.is_empty() {
            let changed = outcome
                .changes
                .iter()
                .map(|change| json!({"path": absolute(&change.path, folder)}));
            update["locations"] = changed.collect();
        }
        update
    }

    /// Stores the diff of a call that needs approval, and shows that the call is pending.
    fn propose_diff(&mut self, approval: &Approval, folder: &str) -> Vec<Value> {
        let diff = diffs(approval, folder);
        let Some(call) = self.find_call_mut(approval) else { return Vec::new() };
        call.diff = diff;
        vec![
            json!({"sessionUpdate": "tool_call_update", "toolCallId": call.id, "status": "pending"}),
        ]
    }

    fn find_call_mut(&mut self, approval: &Approval) -> Option<&mut Call> {
        let same = |call: &Call| call.tool == approval.tool;
        let exact =
            self.calls.iter().position(|call| same(call) && call.arguments == approval.arguments);
        let at = exact.or_else(|| self.calls.iter().position(same))?;
        self.calls.get_mut(at)
    }

    fn find_call(&self, approval: &Approval) -> Option<&Call> {
        let same = |call: &&Call| call.tool == approval.tool;
        let exact =
            self.calls.iter().find(|call| same(call) && call.arguments == approval.arguments);
        exact.or_else(|| self.calls.iter().find(same))
    }
}

/// Renders the call of a permission request.
pub fn permission_call(approval: &Approval, displayed: &Displayed, folder: &str) -> Value {
    let preview = &approval.preview;
    let mut content = diffs(approval, folder);
    let mut lines = preview.warnings.clone();
    if let Some(form) = &approval.form {
        lines.push(format!("{} (answer it in 'cairn chat' or 'cairn viewer')", form.message));
    }
    lines.extend(preview.command.as_ref().map(|command| format!("$ {command}")));
    lines.extend(preview.folder.as_ref().map(|folder| format!("in {folder}")));
    if preview.network {
        lines.push("with network".into());
    }
    if !preview.domains.is_empty() {
        lines.push(format!("reaches {}", preview.domains.join(", ")));
    }
    if content.is_empty() {
        lines.extend(preview.diff.clone());
    }
    if !lines.is_empty() {
        content.push(
            json!({"type": "content", "content": {"type": "text", "text": truncate(&lines.join("\n"), MAX_OUTPUT)}}),
        );
    }
    let id = displayed
        .find_call(approval)
        .map_or_else(|| approval.approval_id.to_string(), |call| call.id.clone());
    let locations: Vec<Value> =
        preview.paths.iter().map(|path| json!({"path": absolute(path, folder)})).collect();
    json!({
        "toolCallId": id, "title": truncate(&preview.summary, MAX_TITLE), "kind": kind(&approval.tool),
        "status": "pending", "content": content, "locations": locations, "rawInput": approval.arguments,
    })
}

/// Lists the possible answers to a permission request.
pub fn options(approval: &Approval) -> Value {
    let option =
        |id: &str, name: &str, kind: &str| json!({"optionId": id, "name": name, "kind": kind});
    if approval.form.is_some() {
        // The protocol has no form here: another client may fill it in.
        return json!([option("deny", "Decline", "reject_once")]);
    }
    let mut all = vec![option("once", "Allow once", "allow_once")];
    if !approval.grants.is_empty() {
        all.push(option("session", "Allow in this session", "allow_always"));
        let rules = approval.grants.join(", ");
        if approval.project.is_some() {
            let always = format!("Always allow in this project: {rules}");
            all.push(option("always", &truncate(&always, MAX_TITLE), "allow_always"));
        }
        let everywhere = format!("Always allow in every project: {rules}");
        all.push(option("everywhere", &truncate(&everywhere, MAX_TITLE), "allow_always"));
    }
    all.push(option("deny", "Reject", "reject_once"));
    Value::Array(all)
}

/// Returns the kind of a tool, which selects its icon.
fn kind(tool: &str) -> &'static str {
    match tool {
        "read_file" | "read_span" | "get_span" => "read",
        "edit_file" | "write_file" | "fs" => "edit",
        "delete_file" => "delete",
        "run_shell" | "bash" | "shell" | "evaluate" => "execute",
        "web_fetch" | "git_clone" => "fetch",
        "plan" => "think",
        name if name.starts_with("search") || name.starts_with("list") || name.contains("grep") => {
            "search"
        }
        _ => "other",
    }
}

/// Renders a call in one line.
fn title(tool: &str, arguments: &Value) -> String {
    let what = ["command", "path", "query", "pattern", "url", "name"];
    let what = what.iter().find_map(|key| arguments[*key].as_str());
    let line = what.and_then(|what| what.lines().next()).unwrap_or_default();
    truncate(format!("{tool} {line}").trim_end(), MAX_TITLE)
}

fn locations(arguments: &Value, folder: &str) -> Vec<Value> {
    let Some(path) = arguments["path"].as_str() else { return Vec::new() };
    let mut location = json!({"path": absolute(path, folder)});
    if let Some(line) =
        ["start", "start_line", "offset"].iter().find_map(|key| arguments[*key].as_u64())
    {
        location["line"] = json!(line);
    }
    vec![location]
}

/// Renders the change that a call's arguments describe.
fn proposed_change(call: &Call, folder: &str) -> Vec<Value> {
    let text = |key: &str| call.arguments[key].as_str();
    let Some(path) = text("path") else { return Vec::new() };
    let (old, new) = match call.tool.as_str() {
        "write_file" => (None, text("content")),
        "edit_file" => (text("old_text"), text("new_text")),
        _ => return Vec::new(),
    };
    let Some(new) = new else { return Vec::new() };
    vec![json!({"type": "diff", "path": absolute(path, folder), "oldText": old, "newText": new})]
}

/// Splits the unified diff of a preview into hunks, each as text before and after.
fn diffs(approval: &Approval, folder: &str) -> Vec<Value> {
    let (Some(diff), Some(path)) = (&approval.preview.diff, approval.preview.paths.first()) else {
        return Vec::new();
    };
    let path = absolute(path, folder);
    let mut hunks: Vec<(String, String)> = Vec::new();
    for line in diff.lines() {
        if line.starts_with("@@") {
            hunks.push(Default::default());
            continue;
        }
        // The lines before the first hunk are the file header.
        let Some((old, new)) = hunks.last_mut() else { continue };
        let mut add = |to: &[&str]| {
            for side in to {
                let side = if *side == "old" { &mut *old } else { &mut *new };
                side.push_str(line.get(1..).unwrap_or_default());
                side.push('\n');
            }
        };
        match line.as_bytes().first() {
            Some(b'-') => add(&["old"]),
            Some(b'+') => add(&["new"]),
            Some(b' ') | None => add(&["old", "new"]),
            // "\ No newline at end of file"
            Some(_) => {}
        }
    }
    let hunk = |(old, new): (String, String)| {
        let old = Some(old).filter(|old| !old.is_empty());
        json!({"type": "diff", "path": path, "oldText": old, "newText": new})
    };
    hunks.into_iter().map(hunk).collect()
}

/// Renders output for people: its text if it has one.
fn readable_output(output: &Value) -> String {
    let inner = &output["output"];
    let text = [inner, &output["content"], &output["text"]].into_iter().find_map(Value::as_str);
    text.map_or_else(|| output.to_string(), str::to_owned)
}

fn truncate(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn absolute(path: &str, folder: &str) -> String {
    std::path::Path::new(folder).join(path).to_string_lossy().into_owned()
}

/// Makes a path relative to the folder, as the session's tools expect it.
pub fn relative<'a>(path: &'a str, folder: &str) -> &'a str {
    path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')).unwrap_or(path)
}

#[cfg(test)]
mod tests;
