//! From an event to the updates that an editor shows. Pure.

use cairn_protocol::{
    approval::Approval,
    event::{AgentEvt, PlanStatus, ToolOutcome},
    model::Part,
};
use serde_json::{Value, json};

/// Characters of a tool's output that are shown.
const OUTPUT: usize = 4 * 1024;
/// Characters of a title.
const TITLE: usize = 120;
/// Calls at work that are kept in mind.
const CALLS: usize = 64;

/// What was shown of a session.
#[derive(Debug, Default)]
pub struct Shown {
    /// Bytes of the answer that is on its way, of its text and of its thinking.
    text: u64,
    thought: u64,
    /// Calls at work: their ids, tools and the diff that was asked about.
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    id: String,
    tool: String,
    arguments: Value,
    diff: Vec<Value>,
}

/// What may be typed after a slash.
pub fn commands() -> Value {
    let command = |name: &str, description: &str| json!({"name": name, "description": description});
    json!({
        "sessionUpdate": "available_commands_update",
        "availableCommands": [
            command("clear", "Empty the conversation"),
            command("compress", "Put a summary in place of the conversation"),
        ],
    })
}

/// A piece of the agent's words.
pub fn said(text: &str) -> Value {
    chunk("agent_message_chunk", json!({"type": "text", "text": text}))
}

fn chunk(kind: &str, content: Value) -> Value {
    json!({"sessionUpdate": kind, "content": content})
}

/// The updates of an event in a session whose root is `folder`.
pub fn of(evt: &AgentEvt, shown: &mut Shown, folder: &str) -> Vec<Value> {
    match evt {
        AgentEvt::TurnAccepted { input, .. } => input.iter().map(typed).collect(),
        AgentEvt::Steered { text, .. } => vec![typed(&Part::Text { text: text.clone() })],
        AgentEvt::TokenDelta { reasoning, offset, text, .. } => {
            // Deltas may be lost on the way; then the record of the same text brings it.
            let whole = *offset == *shown.place(*reasoning);
            if whole { shown.tell(*reasoning, *offset, text) } else { Vec::new() }
        }
        AgentEvt::Text { reasoning, offset, text, .. } => shown.tell(*reasoning, *offset, text),
        AgentEvt::ModelAnswer(_) => {
            (shown.text, shown.thought) = (0, 0);
            Vec::new()
        }
        AgentEvt::ToolCall { call_id, name, arguments } => {
            vec![shown.called(call_id, name, arguments, folder)]
        }
        AgentEvt::ToolResult(outcome) => vec![shown.ended(outcome, folder)],
        AgentEvt::ApprovalRequired { approval } => shown.diff_of(approval, folder),
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
            let text =
                format!("A summary stands for what was before: {tokens_before} tokens to {tokens_after}.");
            vec![chunk("agent_thought_chunk", json!({"type": "text", "text": text}))]
        }
        AgentEvt::RunCompleted { .. } => {
            shown.calls.clear();
            (shown.text, shown.thought) = (0, 0);
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn typed(part: &Part) -> Value {
    let content = match part {
        Part::Text { text } => json!({"type": "text", "text": text}),
        Part::Image { mime, data } => json!({"type": "image", "mimeType": mime, "data": data}),
    };
    chunk("user_message_chunk", content)
}

impl Shown {
    fn place(&mut self, reasoning: bool) -> &mut u64 {
        if reasoning { &mut self.thought } else { &mut self.text }
    }

    /// The part of a text that was not shown yet.
    fn tell(&mut self, reasoning: bool, offset: u64, text: &str) -> Vec<Value> {
        let place = self.place(reasoning);
        let end = offset + text.len() as u64;
        let known = usize::try_from(place.saturating_sub(offset)).unwrap_or(usize::MAX);
        let Some(fresh) = text.get(known..).filter(|fresh| !fresh.is_empty()) else { return Vec::new() };
        *place = end;
        let kind = if reasoning { "agent_thought_chunk" } else { "agent_message_chunk" };
        vec![chunk(kind, json!({"type": "text", "text": fresh}))]
    }

    fn called(&mut self, id: &str, tool: &str, arguments: &Value, folder: &str) -> Value {
        if self.calls.len() >= CALLS {
            self.calls.remove(0);
        }
        let (id, tool, arguments) = (id.to_owned(), tool.to_owned(), arguments.clone());
        let update = json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": title(&tool, &arguments),
            "kind": kind(&tool), "status": "in_progress", "rawInput": arguments,
            "locations": locations(&arguments, folder),
        });
        self.calls.push(Call { id, tool, arguments, diff: Vec::new() });
        update
    }

    fn ended(&mut self, outcome: &ToolOutcome, folder: &str) -> Value {
        let at = self.calls.iter().position(|call| call.id == outcome.call_id);
        let call = at.map(|at| self.calls.remove(at));
        let failed = outcome.error.is_some();
        let mut content = Vec::new();
        if let (Some(call), false) = (&call, failed) {
            let diff = if call.diff.is_empty() { written(call, folder) } else { call.diff.clone() };
            content.extend(diff);
        }
        let text = match (&outcome.error, &outcome.output) {
            (Some(error), _) => error.message.clone(),
            (None, Some(Value::String(text))) => text.clone(),
            (None, Some(output)) => words(output),
            (None, None) => match &outcome.blob {
                Some(blob) => format!("{} bytes, kept in the session's log", blob.size),
                None => String::new(),
            },
        };
        if content.is_empty() && !text.is_empty() {
            content.push(json!({"type": "content", "content": {"type": "text", "text": cut(&text, OUTPUT)}}));
        }
        let mut update = json!({
            "sessionUpdate": "tool_call_update", "toolCallId": outcome.call_id,
            "status": if failed { "failed" } else { "completed" }, "content": content,
        });
        if !outcome.changes.is_empty() {
            let changed =
                outcome.changes.iter().map(|change| json!({"path": absolute(&change.path, folder)}));
            update["locations"] = changed.collect();
        }
        update
    }

    /// Keeps the diff of a call that is asked about, and shows that it waits.
    fn diff_of(&mut self, approval: &Approval, folder: &str) -> Vec<Value> {
        let diff = diffs(approval, folder);
        let Some(call) = self.call_of_mut(approval) else { return Vec::new() };
        call.diff = diff;
        vec![json!({"sessionUpdate": "tool_call_update", "toolCallId": call.id, "status": "pending"})]
    }

    fn call_of_mut(&mut self, approval: &Approval) -> Option<&mut Call> {
        let same = |call: &Call| call.tool == approval.tool;
        let exact = self.calls.iter().position(|call| same(call) && call.arguments == approval.arguments);
        let at = exact.or_else(|| self.calls.iter().position(same))?;
        self.calls.get_mut(at)
    }

    fn call_of(&self, approval: &Approval) -> Option<&Call> {
        let same = |call: &&Call| call.tool == approval.tool;
        let exact = self.calls.iter().find(|call| same(call) && call.arguments == approval.arguments);
        exact.or_else(|| self.calls.iter().find(same))
    }
}

/// The call that an editor is asked about.
pub fn asked(approval: &Approval, shown: &Shown, folder: &str) -> Value {
    let preview = &approval.preview;
    let mut content = diffs(approval, folder);
    let mut told = preview.warnings.clone();
    told.extend(preview.command.as_ref().map(|command| format!("$ {command}")));
    told.extend(preview.folder.as_ref().map(|folder| format!("in {folder}")));
    if preview.network {
        told.push("with network".into());
    }
    if content.is_empty() {
        told.extend(preview.diff.clone());
    }
    if !told.is_empty() {
        content.push(
            json!({"type": "content", "content": {"type": "text", "text": cut(&told.join("\n"), OUTPUT)}}),
        );
    }
    let id = shown.call_of(approval).map_or_else(|| approval.approval_id.to_string(), |call| call.id.clone());
    let places: Vec<Value> =
        preview.paths.iter().map(|path| json!({"path": absolute(path, folder)})).collect();
    json!({
        "toolCallId": id, "title": cut(&preview.summary, TITLE), "kind": kind(&approval.tool),
        "status": "pending", "content": content, "locations": places, "rawInput": approval.arguments,
    })
}

/// What the editor's user may answer.
pub fn options(approval: &Approval) -> Value {
    let option = |id: &str, name: &str, kind: &str| json!({"optionId": id, "name": name, "kind": kind});
    let always = format!("Always allow {}", approval.grants);
    json!([
        option("once", "Allow once", "allow_once"),
        option("session", "Allow in this session", "allow_always"),
        option("always", &cut(&always, TITLE), "allow_always"),
        option("deny", "Reject", "reject_once"),
    ])
}

/// Kind of a tool, for its icon.
fn kind(tool: &str) -> &'static str {
    match tool {
        "read_file" | "read_span" | "get_span" => "read",
        "edit_file" | "write_file" | "fs" => "edit",
        "delete_file" => "delete",
        "run_shell" | "bash" | "shell" | "evaluate" => "execute",
        "web_fetch" | "git_clone" => "fetch",
        "plan" => "think",
        name if name.starts_with("search") || name.starts_with("list") || name.contains("grep") => "search",
        _ => "other",
    }
}

/// A call in one line.
fn title(tool: &str, arguments: &Value) -> String {
    let what = ["command", "path", "query", "pattern", "url", "name"];
    let what = what.iter().find_map(|key| arguments[*key].as_str());
    let line = what.and_then(|what| what.lines().next()).unwrap_or_default();
    cut(format!("{tool} {line}").trim_end(), TITLE)
}

fn locations(arguments: &Value, folder: &str) -> Vec<Value> {
    let Some(path) = arguments["path"].as_str() else { return Vec::new() };
    let mut place = json!({"path": absolute(path, folder)});
    if let Some(line) = ["start", "start_line", "offset"].iter().find_map(|key| arguments[*key].as_u64()) {
        place["line"] = json!(line);
    }
    vec![place]
}

/// The change that a call's arguments hold.
fn written(call: &Call, folder: &str) -> Vec<Value> {
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

/// The hunks of a preview's unified diff, each as text before and after.
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
        // What stands before the first hunk names the file.
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

/// Output as people read it: its text, where it has one.
fn words(output: &Value) -> String {
    let inner = &output["output"];
    let text = [inner, &output["content"], &output["text"]].into_iter().find_map(Value::as_str);
    text.map_or_else(|| output.to_string(), str::to_owned)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn absolute(path: &str, folder: &str) -> String {
    std::path::Path::new(folder).join(path).to_string_lossy().into_owned()
}

/// A path as the session's tools take it.
pub fn relative<'a>(path: &'a str, folder: &str) -> &'a str {
    path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')).unwrap_or(path)
}

#[cfg(test)]
mod tests;
