//! Events in one line: kind and text.

use cairn_protocol::{
    event::AgentEvt,
    model::{Part, ToolUse},
    turn::RunResult,
};

use crate::render::output;

/// Returns kind and text.
pub fn line(evt: &AgentEvt) -> (&'static str, String) {
    match evt {
        AgentEvt::Started { op, details } => {
            ("started", format!("{op} {}", details.as_deref().unwrap_or_default()))
        }
        AgentEvt::Progress { op, percent, message } => {
            ("progress", format!("{op} {percent:.0} % {}", message.as_deref().unwrap_or_default()))
        }
        AgentEvt::Result { op, tag, data, blob, .. } => {
            let inline = || data.as_ref().map_or(0, |d| d.to_string().len() as u64);
            let size = blob.as_ref().map_or_else(inline, |b| b.size);
            ("result", format!("{op} {tag}, {}", output::bytes(size)))
        }
        AgentEvt::PlanSnapshot { revision, plan } => {
            ("plan", format!("revision {revision}, {} operations", plan.next_ops.len()))
        }
        AgentEvt::Warning { op, message } => ("warning", format!("{op}: {message}")),
        AgentEvt::Interrupted { op } => ("interrupted", op.clone()),
        AgentEvt::Resumed { op } => ("resumed", op.clone()),
        AgentEvt::Completed { summary } => ("completed", summary.repo_name.clone()),
        AgentEvt::Stopped { op, reason } => ("stopped", format!("{op}: {reason}")),
        AgentEvt::Error { op, message, .. } => ("error", format!("{op}: {message}")),
        other => turn(other),
    }
}

/// Renders the events of turns.
fn turn(evt: &AgentEvt) -> (&'static str, String) {
    match evt {
        AgentEvt::TurnAccepted { input, .. } => ("turn", parts(input)),
        AgentEvt::RunStarted { model, .. } => {
            ("run", format!("{} {}", model.provider, model.model))
        }
        AgentEvt::Text { reasoning: true, text, .. } => ("thinking", text.clone()),
        AgentEvt::Text { text, .. } | AgentEvt::TokenDelta { text, .. } => ("text", text.clone()),
        AgentEvt::PromptProgress { processed, total, .. } => {
            ("reading", format!("{processed} of {total}"))
        }
        AgentEvt::ModelAnswer(answer) => {
            let usage = &answer.usage;
            let text = format!(
                "{} in, {} out, {} tokens/s{}",
                usage.input_tokens,
                usage.output_tokens,
                answer.tokens_per_second,
                calls(&answer.calls)
            );
            ("answer", text)
        }
        AgentEvt::ToolCall { name, arguments, .. } => ("tool", format!("{name} {arguments}")),
        AgentEvt::ToolResult(outcome) => {
            let text = match (&outcome.error, &outcome.output, &outcome.blob) {
                (Some(error), _, _) => error.message.clone(),
                (None, _, Some(blob)) => output::bytes(blob.size),
                (None, Some(output), None) => output::bytes(output.to_string().len() as u64),
                (None, None, None) => String::new(),
            };
            ("result", format!("{}: {text}", outcome.name))
        }
        AgentEvt::ApprovalRequired { approval } => ("approval", approval.preview.summary.clone()),
        AgentEvt::ApprovalResolved { resolution, .. } => {
            ("approval", format!("{} by {}", resolution.decision.as_str(), resolution.by))
        }
        AgentEvt::Steered { text, .. } => ("steered", text.clone()),
        AgentEvt::CommandOutput { text, .. } => ("output", text.clone()),
        AgentEvt::BackgroundStarted { id, command } => ("background", format!("{id}: {command}")),
        AgentEvt::BackgroundFinished { id, exit_code, .. } => {
            let code = exit_code.map_or_else(String::new, |code| format!(" with {code}"));
            ("background", format!("{id} ended{code}"))
        }
        AgentEvt::HookFinished { event, command, exit_code, error, .. } => {
            let end = match (error, exit_code) {
                (Some(error), _) => format!(": {error}"),
                (None, Some(0) | None) => String::new(),
                (None, Some(code)) => format!(": exit code {code}"),
            };
            ("hook", format!("{event} {command}{end}"))
        }
        AgentEvt::Compacted { tokens_before, tokens_after, .. } => {
            ("compacted", format!("{tokens_before} tokens to {tokens_after}"))
        }
        AgentEvt::Cleared {} => ("cleared", String::new()),
        AgentEvt::ProviderChanged { model } => {
            ("model", format!("{} {}", model.provider, model.model))
        }
        AgentEvt::PlanUpdate { items } => ("plan", format!("{} items", items.len())),
        AgentEvt::TurnDiff { paths, .. } => ("diff", paths.join(", ")),
        AgentEvt::GitCommit { commit, message, .. } => {
            ("commit", format!("{} {message}", short(commit)))
        }
        AgentEvt::RunCompleted { result } => ("ended", result_text(result)),
        _ => ("event", String::new()),
    }
}

/// Abbreviates a commit id.
pub fn short(commit: &str) -> &str {
    commit.get(..9).unwrap_or(commit)
}

fn parts(input: &[Part]) -> String {
    let text = input.iter().map(|part| match part {
        Part::Text { text } => text.as_str(),
        Part::Image { .. } => "[image]",
    });
    text.collect::<Vec<_>>().join(" ")
}

fn calls(calls: &[ToolUse]) -> String {
    let names: Vec<&str> = calls.iter().map(|c| c.name.as_str()).collect();
    if names.is_empty() { String::new() } else { format!(", requests {}", names.join(", ")) }
}

fn result_text(result: &RunResult) -> String {
    let status = serde_json::to_value(result.status).unwrap_or_default();
    let why = result.error.as_ref().map_or(String::new(), |e| format!(": {}", e.message));
    format!("{}{why}", status.as_str().unwrap_or_default())
}
