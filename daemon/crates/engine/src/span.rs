//! Trace spans of runs, operations and requests to models. They contain names, ids, durations and
//! counts; never goals, prompts, arguments or answers.
//!
//! A run outlives the request that starts it, so it is a separate trace that links to the
//! request's. An explorer's operations start in separate tasks and name the run as their parent;
//! all other spans have the enclosing span as parent.

pub use cairn_harness::span::{SPANS, failed};
use cairn_llm::{Chunk, ChunkStream, Provider};
use cairn_protocol::{
    error::Failure,
    id::{RunId, SessionId},
    model::TokenUsage,
    turn::{Outcome, RunResult},
};
use futures_util::StreamExt as _;
use tracing::{Span, field::Empty};

/// Creates the span of a run of the kind `kind`: `turn` or `explore`.
pub(crate) fn run(kind: &'static str, session: &SessionId, run: &RunId, resumed: bool) -> Span {
    let cause = Span::current();
    let span = tracing::info_span!(
        target: SPANS,
        parent: None,
        "run",
        otel.name = kind,
        gen_ai.operation.name = "invoke_agent",
        gen_ai.conversation.id = session.as_str(),
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        cairn.run.id = run.as_str(),
        cairn.run.kind = kind,
        cairn.run.resumed = resumed,
        cairn.run.outcome = Empty,
        cairn.run.tool_calls = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    );
    span.follows_from(&cause);
    span
}

/// Records the outcome of a turn.
pub(crate) fn record_turn_result(span: &Span, result: &RunResult) {
    let outcome = match result.status {
        Outcome::Completed => "completed",
        Outcome::Cancelled => "cancelled",
        Outcome::Failed => "failed",
        Outcome::Denied => "denied",
        Outcome::TimedOut => "timed_out",
    };
    span.record("cairn.run.outcome", outcome);
    span.record("cairn.run.tool_calls", result.tool_trace.len() as u64);
    used(span, result.usage);
    if let Some(error) = &result.error {
        span.record("error.type", error.reason.as_str());
        span.record("otel.status_code", "ERROR");
    }
}

/// Creates the span of an operation of an explore, or of a command. `name` is that of a registered
/// tool.
pub(crate) fn operation(parent: &Span, name: Option<&str>) -> Span {
    let parent = parent.id().or_else(|| Span::current().id());
    tracing::info_span!(
        target: SPANS,
        parent: parent,
        "operation",
        otel.name = "operation",
        cairn.operation = name.unwrap_or("unknown"),
        error.type = Empty,
        otel.status_code = Empty,
    )
}

/// Creates the span of a request to a model.
pub(crate) fn question(parent: &Span, provider: &dyn Provider) -> Span {
    let parent = parent.id().or_else(|| Span::current().id());
    let span = tracing::info_span!(
        target: SPANS,
        parent: parent,
        "chat",
        otel.name = Empty,
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider.name(),
        gen_ai.request.model = provider.model(),
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.response.finish_reasons = Empty,
        cairn.model.tool_calls = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    );
    if !span.is_disabled() {
        span.record("otel.name", format!("chat {}", provider.model()));
    }
    span
}

/// Records the tokens of an answer.
pub(crate) fn used(span: &Span, usage: TokenUsage) {
    span.record("gen_ai.usage.input_tokens", usage.input_tokens);
    span.record("gen_ai.usage.output_tokens", usage.output_tokens);
    if usage.cached_tokens > 0 {
        span.record("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens);
    }
}

/// Records any other outcome.
pub(crate) fn record_outcome<T>(span: &Span, outcome: &Result<T, Failure>) {
    if let Err(failure) = outcome {
        failed(span, failure);
    }
}

/// Wraps a stream of an answer so that its span closes with it.
pub(crate) fn watched(span: Span, stream: ChunkStream) -> ChunkStream {
    if span.is_disabled() {
        return stream;
    }
    Box::pin(stream.inspect(move |chunk| match chunk {
        Ok(Chunk::Usage(usage)) => used(&span, *usage),
        Ok(_) => {}
        Err(error) => failed(&span, &Failure::from(error.clone())),
    }))
}
