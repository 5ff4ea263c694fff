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
    approve::{self, Running},
    builtin_tools,
    client::Client,
    format,
    server::{error_result, failure_result, hint, protocol_error},
};

/// Calls a registered tool.
///
/// # Errors
/// The tool does not exist; failures of a tool are results.
pub async fn call(
    client: &Arc<Client>,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    // The client answers a question of an earlier request.
    if let Some(state) = &request.request_state {
        return match client.host.parked.take(state, &request) {
            Ok(parked) => {
                finished(approve::resume(parked, &request, client).await, client, &request.name)
                    .await
            }
            Err(failure) => Ok(failure_result(&failure).into()),
        };
    }
    let session_id = match client.session().await {
        Ok(session) => session,
        Err(failure) => return Ok(failure_result(&failure).into()),
    };
    let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
    let params = ToolCallParams { session_id, name: request.name.clone().into_owned(), arguments };
    let needs_approval = approve::supports_elicitation(context)
        && !client.is_read_only(&params.name).await.unwrap_or(false);
    if !needs_approval {
        let result: Result<ToolResult, Failure> = client.api.request("tool.call", &params).await;
        return finished(result.map(approve::Step::Done), client, &request.name).await;
    }
    let step = match Running::start(client, params).await {
        Ok(running) => running.next_step(client, &request, context).await,
        Err(failure) => Err(failure),
    };
    finished(step, client, &request.name).await
}

/// Converts the outcome of a step to the client's answer.
async fn finished(
    step: Result<approve::Step, Failure>,
    client: &Client,
    requested: &str,
) -> Result<CallToolResponse, ErrorData> {
    match step {
        Ok(approve::Step::QuestionPending(question)) => Ok((*question).into()),
        Ok(approve::Step::Done(result)) => match &result.error {
            Some(error) if error.reason == Reason::UnknownTool.as_str() => {
                Err(protocol_error(&unknown(client, requested).await))
            }
            _ => Ok(render(result).into()),
        },
        Err(failure) => Ok(failure_result(&failure).into()),
    }
}

/// Builds the failure for an unknown tool, naming the closest one that is offered.
async fn unknown(client: &Client, requested: &str) -> Failure {
    let to_mcp_tool = client.tools().await.unwrap_or_default();
    let mut names: Vec<&str> = builtin_tools::names().collect();
    names.extend(to_mcp_tool.iter().map(|t| t.name.as_str()));
    let excerpt: String = requested.chars().take(64).collect();
    let near = nearest(names.into_iter(), &excerpt)
        .map_or_else(String::new, |n| format!("; did you mean '{n}'?"));
    Failure::new(
        Reason::UnknownTool,
        format!("there is no tool '{}'{near}", excerpt.escape_default()),
    )
}

fn nearest<'n>(names: impl Iterator<Item = &'n str>, requested: &str) -> Option<&'n str> {
    let near =
        names.map(|name| (strsim::jaro_winkler(name, requested), name)).filter(|(s, _)| *s > 0.8);
    near.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// Renders a tool's result for a model: its text if it has one, else its JSON.
fn render(result: ToolResult) -> CallToolResult {
    if let Some(error) = result.error {
        let reason = Reason::ALL.iter().copied().find(|r| r.as_str() == error.reason);
        return error_result(&error.reason, &error.message, reason.map_or("", hint));
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
        render(ToolResult { ok: true, output, error: None, meta })
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
        let result = render(ToolResult {
            ok: false,
            output: Value::Null,
            error: Some(error),
            meta: ToolMeta::default(),
        });
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
