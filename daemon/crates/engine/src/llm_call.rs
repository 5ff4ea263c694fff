//! One request to a model outside of a turn: summaries, plans, `llm_call`.

use cairn_llm::{Chunk, ModelRequest, Provider};
use cairn_protocol::{
    error::{Failure, Reason},
    model::TokenUsage,
};
use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::span;

/// Longest answer, in bytes.
const MAX_TEXT: usize = 2 * 1024 * 1024;

/// A complete answer as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    /// Text of the answer.
    pub text: String,
    /// Tokens of the request and the answer.
    pub usage: TokenUsage,
}

/// Sends a request and waits for the complete text.
///
/// # Errors
/// `cancelled`, `too_large`, errors of the model.
pub async fn collect(
    provider: &dyn Provider,
    request: ModelRequest,
    cancel: &CancellationToken,
) -> Result<Collected, Failure> {
    collect_with_progress(provider, request, cancel, |_text| {}).await
}

/// Collects an answer as [`collect`] does; `on_text` receives the text so far whenever it grows.
///
/// # Errors
/// As [`collect`].
pub async fn collect_with_progress(
    provider: &dyn Provider,
    request: ModelRequest,
    cancel: &CancellationToken,
    on_text: impl FnMut(&str) + Send,
) -> Result<Collected, Failure> {
    let span = span::question(&tracing::Span::none(), provider);
    let outcome = collected(provider, request, cancel, on_text).instrument(span.clone()).await;
    span::record_outcome(&span, &outcome);
    if let Ok(answer) = &outcome {
        span::used(&span, answer.usage);
    }
    outcome
}

async fn collected(
    provider: &dyn Provider,
    request: ModelRequest,
    cancel: &CancellationToken,
    mut on_text: impl FnMut(&str) + Send,
) -> Result<Collected, Failure> {
    let mut collected = Collected::default();
    let read = async {
        let mut stream = provider.chat(request).await?;
        while let Some(chunk) = stream.next().await {
            match chunk? {
                Chunk::Text(text) => {
                    collected.text.push_str(&text);
                    on_text(&collected.text);
                }
                Chunk::Usage(usage) => collected.usage = usage,
                Chunk::Finish(_) => return Ok(()),
                _ => {}
            }
            if collected.text.len() > MAX_TEXT {
                let text = format!("the answer of {} has more than 2 MiB of text", provider.name());
                return Err(Failure::new(Reason::TooLarge, text));
            }
        }
        let text = format!("the answer of {} ended before it was complete", provider.name());
        Err(Failure::new(Reason::ModelCut, text))
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(Failure::new(Reason::Cancelled, "the request was cancelled")),
        outcome = read => outcome?,
    }
    let usage = &mut collected.usage;
    usage.cost_micro_usd = usage.cost_micro_usd.or_else(|| provider.cost(usage));
    Ok(collected)
}
