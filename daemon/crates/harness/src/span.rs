//! Trace span of a tool call. It contains names, ids and counts; never arguments or results.

use cairn_protocol::error::Failure;
use tracing::{Span, field::Empty};

use crate::{Call, Output, ToolSpec};

/// Target of every span that is created for traces, in this and other crates. Nothing else uses it,
/// so a trace contains only what was meant for it.
pub const SPANS: &str = "cairn::span";

/// Creates the span of a call to an existing tool: its name is one of ours, not what a caller sent.
pub(crate) fn tool(spec: &ToolSpec, call: &Call) -> Span {
    let span = tracing::info_span!(
        target: SPANS,
        "execute_tool",
        otel.name = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = Empty,
        gen_ai.conversation.id = Empty,
        cairn.run.id = Empty,
        cairn.tool.read_only = spec.read_only,
        cairn.tool.dry_run = call.dry_run,
        cairn.tool.truncated = Empty,
        process.exit.code = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    );
    if !span.is_disabled() {
        span.record("otel.name", format!("execute_tool {}", spec.name));
        span.record("gen_ai.tool.name", &*spec.name);
        span.record("gen_ai.conversation.id", call.session.as_str());
        if let Some(run) = call.origin.as_ref().and_then(|o| o.run_id.as_ref()) {
            span.record("cairn.run.id", run.as_str());
        }
    }
    span
}

/// Records the outcome of the call.
pub(crate) fn record_outcome(span: &Span, outcome: &Result<Output, Failure>) {
    match outcome {
        Ok(output) => {
            span.record("cairn.tool.truncated", output.truncated);
            if let Some(code) = output.exit_code {
                span.record("process.exit.code", code);
            }
        }
        Err(failure) => failed(span, failure),
    }
}

/// Marks a span as failed, by the reason; the message may contain private data.
pub fn failed(span: &Span, failure: &Failure) {
    span.record("error.type", failure.reason.as_str());
    span.record("otel.status_code", "ERROR");
}
