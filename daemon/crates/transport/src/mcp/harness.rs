//! The registered tools: each call passes the gate in the client's session, and its approvals go to
//! the person behind the client if there is one.

use std::sync::Arc;

use cairn_protocol::{
    error::{Failure, Reason},
    tool::{ToolCallParams, ToolResult},
};
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock},
    service::RequestContext,
};
use serde_json::Value;

use super::{
    actions::RegisteredCall,
    approve::{self, Running},
    builtin_tools,
    client::Client,
    format::{self, Budget},
    offered::{self, OfferedTools},
    server::{error_result, failure_result, hint, protocol_error},
};

/// Calls a registered tool; `request` is the client's request for it.
///
/// # Errors
/// The tool does not exist; failures of a tool are results.
pub async fn call(
    client: &Arc<Client>,
    request: CallToolRequestParams,
    called: RegisteredCall,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let budget = called.max_tokens.map(|tokens| Budget::tokens(Some(tokens)));
    let step = step(client, &request, called, context).await;
    match step {
        Ok(approve::Step::QuestionPending(question)) => Ok((*question).into()),
        Ok(approve::Step::Done(result)) => match &result.error {
            Some(error) if error.reason == Reason::UnknownTool.as_str() => {
                Err(protocol_error(&unknown(client, &request.name, None).await))
            }
            _ => Ok(render(result, budget).into()),
        },
        Err(failure) => Ok(failure_result(&failure).into()),
    }
}

async fn step(
    client: &Arc<Client>,
    request: &CallToolRequestParams,
    called: RegisteredCall,
    context: &RequestContext<RoleServer>,
) -> Result<approve::Step, Failure> {
    // The client answers a question of an earlier request.
    if let Some(state) = &request.request_state {
        let parked = client.host.parked.take(state, request)?;
        return approve::resume(parked, request, client).await;
    }
    let session_id = client.session().await?;
    let RegisteredCall { name, arguments, .. } = called;
    let params = ToolCallParams { session_id, name, arguments };
    if client.is_read_only(&params.name).await.unwrap_or(false) {
        let result: ToolResult = client.api.request("tool.call", &params).await?;
        return Ok(approve::Step::Done(result));
    }
    let is_approver = approve::supports_elicitation(context);
    let running = Running::start(client, params, is_approver).await?;
    running.next_step(client, request, context).await
}

/// Builds the failure for a tool that is not offered: how to have it, or the closest one.
pub async fn unknown(client: &Client, requested: &str, offered: Option<&OfferedTools>) -> Failure {
    let registered = client.tools().await.unwrap_or_default();
    let excerpt: String = requested.chars().take(64).collect();
    let excerpt = excerpt.escape_default();
    let exists = builtin_tools::find(requested).is_some()
        || registered.iter().any(|tool| tool.name == requested);
    let instead = offered::replacement(requested)
        .filter(|name| offered.is_none_or(|offered| offered.has_builtin(name)));
    let text = match (instead, offered) {
        (Some(instead), _) => format!("there is no tool '{excerpt}' here; use '{instead}'"),
        (None, Some(offered)) if exists => format!(
            "the tool '{excerpt}' is not offered to this client; the user can offer it: \
             'cairn mcp --tools {list}', '/mcp?tools={list}', or mcp.tools in the configuration",
            list = offered.with(requested)
        ),
        _ => {
            let mut names: Vec<&str> = builtin_tools::names().collect();
            names.extend(registered.iter().map(|tool| tool.name.as_str()));
            let near = nearest(names.into_iter(), requested)
                .map_or_else(String::new, |n| format!("; did you mean '{n}'?"));
            format!("there is no tool '{excerpt}'{near}")
        }
    };
    Failure::new(Reason::UnknownTool, text)
}

fn nearest<'n>(names: impl Iterator<Item = &'n str>, requested: &str) -> Option<&'n str> {
    let near =
        names.map(|name| (strsim::jaro_winkler(name, requested), name)).filter(|(s, _)| *s > 0.8);
    near.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// Renders a tool's result for a model: its text if it has one, else its JSON.
fn render(result: ToolResult, budget: Option<Budget>) -> CallToolResult {
    if let Some(error) = result.error {
        let reason = Reason::ALL.iter().copied().find(|r| r.as_str() == error.reason);
        return error_result(&error.reason, &error.message, reason.map_or("", hint));
    }
    if let Some(text) = format::command(&result.output, budget.unwrap_or(Budget::tokens(None))) {
        return CallToolResult::success(vec![ContentBlock::text(text)]);
    }
    let mut text = match result.output {
        Value::Object(mut fields) if fields.get("content").is_some_and(Value::is_string) => {
            match fields.remove("content") {
                Some(Value::String(text)) => text,
                _ => String::new(),
            }
        }
        Value::String(text) => text,
        value => value.to_string(),
    };
    if result.meta.truncated {
        text.push_str("\n[cut at the tool's own limit]");
    }
    CallToolResult::success(vec![ContentBlock::text(format::bounded(
        text,
        format::MAX_ANSWER,
        "request less from the tool",
    ))])
}

#[cfg(test)]
mod tests {
    use cairn_protocol::tool::{ToolFailure, ToolMeta};
    use serde_json::json;

    use super::*;

    fn text(result: &CallToolResult) -> &str {
        &result.content[0].as_text().unwrap().text
    }

    fn of(output: Value, truncated: bool) -> CallToolResult {
        let meta = ToolMeta { truncated, ..ToolMeta::default() };
        render(ToolResult { ok: true, output, error: None, meta }, None)
    }

    #[test]
    fn results_are_bounded_texts() {
        assert_eq!(text(&of(json!({"content": "a\nb", "lines": 2}), false)), "a\nb");
        assert_eq!(text(&of(json!("a"), true)), "a\n[cut at the tool's own limit]");
        assert_eq!(text(&of(json!({"n": 1}), false)), r#"{"n":1}"#);
        let long = of(json!({"content": "ä".repeat(format::MAX_ANSWER)}), false);
        assert!(
            text(&long).len() < format::MAX_ANSWER + 200
                && text(&long).contains("request less from the tool")
        );
    }

    #[test]
    fn failure_includes_remedy() {
        let error = ToolFailure {
            reason: "no_approver".into(),
            message: "nobody".into(),
            retryable: false,
        };
        let meta = ToolMeta::default();
        let output = Value::Null;
        let result = render(ToolResult { ok: false, output, error: Some(error), meta }, None);
        assert!(
            result.is_error == Some(true) && text(&result).contains("permissions.allow"),
            "{}",
            text(&result)
        );
    }

    #[test]
    fn closest_tool_name_is_suggested() {
        let names = || builtin_tools::names().chain(["read_file"]);
        assert_eq!(nearest(names(), "serch"), Some("search"));
        assert_eq!(nearest(names(), "readfile"), Some("read_file"));
        assert_eq!(nearest(names(), "zzz"), None);
    }
}
