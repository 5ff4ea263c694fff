//! The registered tools: each call goes through the gate in the client's session, and its questions to the person behind
//! the client where there is one.

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
    client::Client,
    own,
    server::{hint, refused, told, wrong},
    shape,
};

/// Calls the registered tool that is named.
///
/// # Errors
/// When there is no such tool; what a tool fails with is a result.
pub async fn call(
    client: &Arc<Client>,
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    // The answer to a question that an earlier request ended with.
    if let Some(state) = &request.request_state {
        return match client.host.parked.take(state, &request) {
            Ok(parked) => {
                finished(approve::resume(parked, &request, client).await, client, &request.name).await
            }
            Err(failure) => Ok(refused(&failure).into()),
        };
    }
    let session_id = match client.session().await {
        Ok(session) => session,
        Err(failure) => return Ok(refused(&failure).into()),
    };
    let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
    let params = ToolCallParams { session_id, name: request.name.clone().into_owned(), arguments };
    let asks = approve::can_ask(context) && !client.only_reads(&params.name).await.unwrap_or(false);
    if !asks {
        let result: Result<ToolResult, Failure> = client.queue.ask("tool.call", &params).await;
        return finished(result.map(approve::Step::Done), client, &request.name).await;
    }
    let step = match Running::start(client, params).await {
        Ok(running) => running.go_on(client, &request, context).await,
        Err(failure) => Err(failure),
    };
    finished(step, client, &request.name).await
}

/// The answer to the client.
async fn finished(
    step: Result<approve::Step, Failure>,
    client: &Client,
    asked: &str,
) -> Result<CallToolResponse, ErrorData> {
    match step {
        Ok(approve::Step::Asked(question)) => Ok((*question).into()),
        Ok(approve::Step::Done(result)) => match &result.error {
            Some(error) if error.reason == Reason::UnknownTool.as_str() => {
                Err(wrong(&unknown(client, asked).await))
            }
            _ => Ok(shown(result).into()),
        },
        Err(failure) => Ok(refused(&failure).into()),
    }
}

/// That there is no such tool, with the nearest of those that are offered.
async fn unknown(client: &Client, asked: &str) -> Failure {
    let offered = client.tools().await.unwrap_or_default();
    let mut names: Vec<&str> = own::names().collect();
    names.extend(offered.iter().map(|t| t.name.as_str()));
    let shown: String = asked.chars().take(64).collect();
    let near =
        nearest(names.into_iter(), &shown).map_or_else(String::new, |n| format!("; did you mean '{n}'?"));
    Failure::new(Reason::UnknownTool, format!("there is no tool '{}'{near}", shown.escape_default()))
}

fn nearest<'n>(names: impl Iterator<Item = &'n str>, asked: &str) -> Option<&'n str> {
    let near = names.map(|name| (strsim::jaro_winkler(name, asked), name)).filter(|(s, _)| *s > 0.8);
    near.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// A tool's result as a model reads it: its text where it has one, else its JSON.
fn shown(result: ToolResult) -> CallToolResult {
    if let Some(error) = result.error {
        let reason = Reason::ALL.iter().copied().find(|r| r.as_str() == error.reason);
        return told(&error.reason, &error.message, reason.map_or("", hint));
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
    CallToolResult::success(vec![ContentBlock::text(shape::bounded(
        text,
        shape::ANSWER,
        "ask the tool for less",
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
        shown(ToolResult { ok: true, output, error: None, meta })
    }

    #[test]
    fn results_are_texts_of_bounded_length() {
        assert_eq!(text(&of(json!({"content": "a\nb", "lines": 2}), false)), "a\nb");
        assert_eq!(text(&of(json!("a"), true)), "a\n[cut at the tool's own limit]");
        assert_eq!(text(&of(json!({"n": 1}), false)), r#"{"n":1}"#);
        let long = of(json!({"content": "ä".repeat(shape::ANSWER)}), false);
        assert!(text(&long).len() < shape::ANSWER + 200 && text(&long).contains("ask the tool for less"));
    }

    #[test]
    fn a_failure_tells_the_way_out() {
        let error = ToolFailure { reason: "no_approver".into(), message: "nobody".into(), retryable: false };
        let result = shown(ToolResult {
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
    fn the_nearest_name_is_told() {
        let names = || own::names().chain(["read_file"]);
        assert_eq!(nearest(names(), "serch"), Some("search"));
        assert_eq!(nearest(names(), "readfile"), Some("read_file"));
        assert_eq!(nearest(names(), "zzz"), None);
    }
}
