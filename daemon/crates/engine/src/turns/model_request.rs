//! Requests to the model: one request, its stream published and recorded, its answer complete.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use cairn_llm::{Chunk, ChunkStream, ModelRequest, Notice, Provider, Recording, ToolOffer};
use cairn_protocol::{
    error::{Failure, Reason},
    event::{AgentEvt, BlobRef, ModelAnswer},
    model::{FinishReason, Message, ProviderReasoning, ReasoningItem, TokenUsage, ToolUse},
    plugin::HookEvent,
};
use cairn_trace::Append;
use futures_util::StreamExt as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tracing::Instrument as _;

use super::{TurnContext, streamed::Streamed};
use crate::span;

/// Most bytes of visible text, of thinking, and of one call's arguments.
const MAX_TEXT: usize = 2 * 1024 * 1024;
/// Most calls of one answer.
const MAX_CALLS: usize = 64;
/// Most bytes of the reasoning that a provider requires back.
const MAX_REASONING: usize = 1024 * 1024;
/// Longest wait before a broken stream is requested again.
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// Most reports of a request's retries that wait to be recorded.
const MAX_NOTICES: usize = 16;

/// One request to the model.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// System text of the request.
    pub system: String,
    /// Messages of the conversation.
    pub messages: Vec<Message>,
    /// Tools that the model may call.
    pub tools: Vec<ToolOffer>,
    /// A schema that the answer must follow.
    pub schema: Option<Value>,
}

/// A complete answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Visible text of the answer.
    pub text: String,
    /// Tool calls that it requests.
    pub calls: Vec<ToolUse>,
    /// Reason why the answer stopped.
    pub finish: FinishReason,
    /// Tokens of request and answer.
    pub usage: TokenUsage,
    /// Reasoning that the provider requires back with the conversation.
    pub reasoning: Option<ProviderReasoning>,
}

impl Answer {
    /// Returns the answer as a message of the conversation.
    pub fn message(&self) -> Message {
        Message::Assistant {
            text: self.text.clone(),
            calls: self.calls.clone(),
            reasoning: self.reasoning.clone(),
        }
    }
}

/// A partially received answer.
struct PartialAnswer {
    text: Streamed,
    thinking: Streamed,
    calls: BTreeMap<usize, (String, String, String)>,
    reasoning: Vec<ReasoningItem>,
    usage: Option<TokenUsage>,
    finish: Option<FinishReason>,
    began: Instant,
    first: Option<Instant>,
    /// True once text of it was published.
    is_displayed: bool,
}

/// An attempt whose answer is missing or incomplete.
struct Interrupted {
    failure: Failure,
    /// True if a part of the answer was displayed.
    is_displayed: bool,
    /// True if the stream of the answer had started.
    has_started: bool,
}

impl Interrupted {
    /// True if the same request may succeed, and the provider has not repeated it already.
    fn is_retryable(&self, provider: &dyn Provider) -> bool {
        let transient = matches!(
            self.failure.reason,
            Reason::ModelCut
                | Reason::ModelTimedOut
                | Reason::ModelUnavailable
                | Reason::ModelRateLimited
        );
        let not_started = match self.failure.reason {
            Reason::ModelTimedOut => true,
            Reason::ModelCut => !provider.retries_requests(),
            _ => false,
        };
        !self.is_displayed && transient && (self.has_started || not_started)
    }
}

impl TurnContext {
    /// Sends a request to the model. Its text is published live and recorded; the answer's record
    /// is durable when this returns. A stream that breaks before any text of it was displayed is
    /// retried, `agent.retryAttempts` times at most: its calls have not been made yet.
    ///
    /// # Errors
    /// `cancelled`; `budget_exceeded`; `external_llm_denied`; errors of the model.
    pub async fn ask(&self, ask: Ask) -> Result<Answer, Failure> {
        let provider = self.provider()?;
        let run_allows = self.policy().allow_external_llms;
        if self.feed().is_none() {
            self.engine().inner.models.admit(&*provider, run_allows)?;
        }
        // Queries the size of the context if possible; the request itself reports any error.
        tokio::select! {
            biased;
            () = self.cancel().cancelled() => return Err(super::drive::cancelled()),
            _known = provider.prepare() => {}
        }
        let mut attempt = 0;
        loop {
            self.require_budget()?;
            self.require_money().await?;
            self.rate().await?;
            self.check_plugins(&*provider, &ask).await?;
            let span = span::question(&tracing::Span::none(), &*provider);
            let outcome = self.once(&*provider, &ask).instrument(span.clone()).await;
            note(&span, &outcome);
            self.notify_after_model(&outcome).await;
            let interrupted = match outcome {
                Ok(answer) => return Ok(answer),
                Err(interrupted) => interrupted,
            };
            attempt += 1;
            let retries = self.settings().retry_attempts;
            if attempt > retries || !interrupted.is_retryable(&*provider) {
                return Err(interrupted.failure);
            }
            let factor = 2_u32.saturating_pow(attempt - 1);
            let wait = self.settings().retry_backoff.saturating_mul(factor).min(MAX_BACKOFF);
            let error = interrupted.failure.to_string();
            let notice = Notice::Retry { wait, retry: attempt, retries, error };
            self.warn("model", notice.to_string()).await?;
            self.pause(wait).await?;
        }
    }

    async fn check_plugins(&self, provider: &dyn Provider, ask: &Ask) -> Result<(), Failure> {
        let event = || HookEvent::BeforeModel {
            session_id: self.session().clone(),
            run_id: self.run().clone(),
            provider: provider.name().into(),
            model: provider.model().into(),
            messages: ask.messages.len() as u64,
        };
        match self.engine().notify_plugins(event).await.refuse {
            Some(why) => Err(Failure::new(
                Reason::PluginRefused,
                format!("no model request was sent: {why}"),
            )),
            None => Ok(()),
        }
    }

    async fn notify_after_model(&self, outcome: &Result<Answer, Interrupted>) {
        let event = || HookEvent::AfterModel {
            session_id: self.session().clone(),
            run_id: self.run().clone(),
            outcome: outcome
                .as_ref()
                .err()
                .map_or("ok", |interrupted| interrupted.failure.reason.as_str())
                .to_owned(),
            usage: outcome.as_ref().ok().map(|answer| answer.usage),
        };
        self.engine().notify_plugins(event).await;
    }

    /// Waits until a request may be made.
    async fn rate(&self) -> Result<(), Failure> {
        if let Some(feed) = self.feed() {
            feed.parts().answers_requested += 1;
            return Ok(());
        }
        while let Some(wait) = self.engine().inner.models.wait(Instant::now())? {
            let text = format!(
                "models.maxRequestsPerMinute is reached; the next request is sent in {} s",
                wait.as_secs().max(1)
            );
            self.warn("model", text).await?;
            self.pause(wait).await?;
        }
        Ok(())
    }

    /// Returns true if clients want the model's progress in reading the prompt.
    fn reports_progress(&self) -> bool {
        self.policy().prompt_progress.unwrap_or(self.settings().prompt_progress)
    }

    /// Makes one attempt to get an answer.
    async fn once(&self, provider: &dyn Provider, ask: &Ask) -> Result<Answer, Interrupted> {
        let recording = Recording::default();
        let (sender, notices) = mpsc::channel(MAX_NOTICES);
        let request = ModelRequest {
            system: ask.system.clone(),
            messages: ask.messages.clone(),
            tools: ask.tools.clone(),
            temperature: self.settings().temperature,
            max_tokens: self.answer_tokens(provider),
            schema: ask.schema.clone(),
            prompt_progress: self.reports_progress(),
            session: Some(self.session().clone()),
            recording: Some(recording.clone()),
            notices: Some(sender),
        };
        let mut partial = PartialAnswer::new();
        let failed = |is_displayed, has_started| {
            move |failure: Failure| Interrupted { failure, is_displayed, has_started }
        };
        let stream = self.open(provider, request, notices).await.map_err(failed(false, false))?;
        let outcome = self.read(provider, stream, &mut partial).await;
        let is_displayed = partial.is_displayed;
        if !is_displayed {
            outcome.clone().map_err(failed(false, true))?;
        }
        let digest = digest(provider, ask);
        let answer = self
            .record_answer(provider, ask, partial, digest, recording.take())
            .await
            .map_err(failed(true, true))?;
        outcome.map(|()| answer).map_err(failed(is_displayed, true))
    }

    /// Opens the stream of an answer; reports each retry before the wait for it.
    async fn open(
        &self,
        provider: &dyn Provider,
        request: ModelRequest,
        mut notices: mpsc::Receiver<Notice>,
    ) -> Result<ChunkStream, Failure> {
        let mut chat = std::pin::pin!(provider.chat(request));
        loop {
            tokio::select! {
                biased;
                () = self.cancel().cancelled() => return Err(super::drive::cancelled()),
                Some(notice) = notices.recv() => self.warn("model", notice.to_string()).await?,
                stream = &mut chat => return Ok(stream?),
            }
        }
    }

    async fn read(
        &self,
        provider: &dyn Provider,
        mut stream: ChunkStream,
        partial: &mut PartialAnswer,
    ) -> Result<(), Failure> {
        let far = Instant::now() + Duration::from_secs(24 * 60 * 60);
        loop {
            let deadline =
                [partial.text.deadline(), partial.thinking.deadline()].into_iter().flatten().min();
            tokio::select! {
                biased;
                () = self.cancel().cancelled() => return Err(super::drive::cancelled()),
                () = tokio::time::sleep_until(deadline.unwrap_or(far).into()), if deadline.is_some() => {
                    self.flush(partial).await?;
                }
                chunk = stream.next() => match chunk {
                    Some(Ok(chunk)) => {
                        self.chunk(provider, chunk, partial)?;
                        if partial.finish.is_some() {
                            return Ok(());
                        }
                    }
                    Some(Err(error)) => return Err(error.into()),
                    None => {
                        let text = format!("the answer of {} ended before it was complete", provider.name());
                        return Err(Failure::new(Reason::ModelCut, text));
                    }
                },
            }
        }
    }

    fn chunk(
        &self,
        provider: &dyn Provider,
        chunk: Chunk,
        partial: &mut PartialAnswer,
    ) -> Result<(), Failure> {
        let run = self.run();
        let piece = match chunk {
            Chunk::Text(text) => (&mut partial.text, text),
            Chunk::Reasoning(text) => (&mut partial.thinking, text),
            Chunk::CallStart { index, id, name } => {
                if partial.calls.len() >= MAX_CALLS {
                    return Err(too_large(provider, &format!("more than {MAX_CALLS} tool calls")));
                }
                partial.first.get_or_insert_with(Instant::now);
                partial.calls.insert(index, (id, name, String::new()));
                return Ok(());
            }
            Chunk::ReasoningItem(item) => {
                let size: usize = partial.reasoning.iter().chain([&item]).map(size).sum();
                if size > MAX_REASONING {
                    return Err(too_large(provider, "reasoning of more than 1 MiB"));
                }
                partial.reasoning.push(item);
                return Ok(());
            }
            Chunk::CallArguments { index, delta } => {
                if let Some((_, _, arguments)) = partial.calls.get_mut(&index) {
                    arguments.push_str(&delta);
                    if arguments.len() > MAX_TEXT {
                        return Err(too_large(provider, "arguments of more than 2 MiB"));
                    }
                }
                return Ok(());
            }
            // Some servers report it although the request refuses it.
            Chunk::PromptProgress { .. } if !self.reports_progress() => return Ok(()),
            Chunk::PromptProgress { processed, total } => {
                let context_tokens = self.context_tokens(provider);
                self.pass(&AgentEvt::PromptProgress {
                    run_id: run.clone(),
                    processed,
                    total,
                    context_tokens,
                });
                return Ok(());
            }
            Chunk::Usage(usage) => {
                partial.usage = Some(usage);
                return Ok(());
            }
            Chunk::Finish(reason) => {
                partial.finish = Some(reason);
                return Ok(());
            }
        };
        let (stream, text) = piece;
        if stream.text.len() + text.len() > MAX_TEXT {
            return Err(too_large(provider, "more than 2 MiB of text"));
        }
        partial.first.get_or_insert_with(Instant::now);
        partial.is_displayed = true;
        let evt = stream.push(run, text);
        self.pass(&evt);
        Ok(())
    }

    async fn flush(&self, partial: &mut PartialAnswer) -> Result<(), Failure> {
        let run = self.run();
        let evts = [partial.thinking.flush(run), partial.text.flush(run)];
        self.emit_all(evts.into_iter().flatten().collect()).await
    }

    /// Records the rest of the text and the answer, complete or partial.
    async fn record_answer(
        &self,
        provider: &dyn Provider,
        ask: &Ask,
        mut partial: PartialAnswer,
        digest: String,
        raw: Vec<u8>,
    ) -> Result<Answer, Failure> {
        let run = self.run();
        let is_complete = partial.finish.is_some();
        // Calls of an interrupted answer are not made: their arguments may be incomplete.
        let calls =
            if is_complete { self.calls(std::mem::take(&mut partial.calls)) } else { vec![] };
        let mut usage = partial.usage.unwrap_or_else(|| self.counted(provider, ask, &partial));
        usage.cost_micro_usd = usage.cost_micro_usd.or_else(|| provider.cost(&usage));
        let reasoning = (is_complete && !partial.reasoning.is_empty()).then(|| ProviderReasoning {
            provider: provider.name().to_owned(),
            model: provider.model().to_owned(),
            items: std::mem::take(&mut partial.reasoning),
        });
        if self.feed().is_none() {
            self.engine().inner.models.spend(usage);
        }
        self.spend(usage);
        let since = |from: Instant, to: Instant| to.duration_since(from);
        let (now, first) = (Instant::now(), partial.first.unwrap_or_else(Instant::now));
        let writing = since(first, now).as_secs_f64();
        let rate = if writing > 0.05 { usage.output_tokens as f64 / writing } else { 0.0 };
        let raw_ref = (!raw.is_empty())
            .then(|| BlobRef { sha256: hex::encode(Sha256::digest(&raw)), size: raw.len() as u64 });
        let evt = AgentEvt::ModelAnswer(ModelAnswer {
            run_id: run.clone(),
            model: super::drive::choice(provider),
            calls: calls.clone(),
            finish: partial.finish,
            usage,
            tokens_per_second: (rate * 10.0).round() / 10.0,
            context_tokens: self.context_tokens(provider),
            first_millis: millis(since(partial.began, first)),
            millis: millis(since(partial.began, now)),
            request_digest: digest,
            heard_seq: self.heard_seq(),
            raw: raw_ref.clone(),
            reasoning: reasoning.clone(),
        });
        let evts = [partial.thinking.flush(run), partial.text.flush(run), Some(evt)];
        let records = evts.into_iter().flatten().map(|evt| self.record(None, None, evt)).collect();
        let mut append = Append::new(self.session(), records);
        if let Some(blob) = raw_ref {
            append = append.blob(blob.sha256, raw);
        }
        self.engine().inner.trace.append(append).await?;
        let finish = partial.finish.unwrap_or(FinishReason::Stop);
        Ok(Answer { text: partial.text.text, calls, finish, usage, reasoning })
    }

    /// Returns the calls of an answer: arguments parsed, ids unique in the session.
    fn calls(&self, partial: BTreeMap<usize, (String, String, String)>) -> Vec<ToolUse> {
        let recorded = self.feed().map(|feed| {
            let parts = feed.parts();
            parts.ids.get(parts.answers_requested.saturating_sub(1)).cloned().unwrap_or_default()
        });
        let read = |(at, (id, name, text)): (usize, (String, String, String))| {
            let arguments = serde_json::from_str(&text).unwrap_or(Value::String(text));
            let arguments = self.engine().inner.harness.repaired(self.session(), &name, arguments);
            let known = recorded.as_ref().and_then(|ids| ids.get(at).cloned());
            ToolUse { id: known.unwrap_or_else(|| self.unique(id)), name, arguments }
        };
        partial.into_values().enumerate().map(read).collect()
    }

    /// Estimates the tokens if the provider does not report them.
    fn counted(&self, provider: &dyn Provider, ask: &Ask, partial: &PartialAnswer) -> TokenUsage {
        let input_tokens = super::compact::tokens(provider, ask);
        let arguments =
            partial.calls.values().map(|(_, _, text)| provider.count_tokens(text)).sum::<u64>();
        let output = provider.count_tokens(&partial.text.text)
            + provider.count_tokens(&partial.thinking.text);
        let output_tokens = output + arguments;
        TokenUsage { input_tokens, output_tokens, ..TokenUsage::default() }
    }
}

impl PartialAnswer {
    fn new() -> Self {
        Self {
            text: Streamed::new(false),
            thinking: Streamed::new(true),
            calls: BTreeMap::new(),
            reasoning: Vec::new(),
            usage: None,
            finish: None,
            began: Instant::now(),
            first: None,
            is_displayed: false,
        }
    }
}

/// Records an answer in the span of its request.
fn note(span: &tracing::Span, outcome: &Result<Answer, Interrupted>) {
    match outcome {
        Ok(answer) => {
            span::used(span, answer.usage);
            span.record("gen_ai.response.finish_reasons", tracing::field::debug(answer.finish));
            span.record("cairn.model.tool_calls", answer.calls.len() as u64);
        }
        Err(interrupted) => span::failed(span, &interrupted.failure),
    }
}

/// Returns the approximate size of an item in bytes.
fn size(item: &ReasoningItem) -> usize {
    item.item.to_string().len()
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn too_large(provider: &dyn Provider, what: &str) -> Failure {
    Failure::new(Reason::TooLarge, format!("the answer of {} has {what}", provider.name()))
}

/// Returns a digest of the request, in 64 hex digits: equal for equal conversations, for any
/// provider.
fn digest(provider: &dyn Provider, ask: &Ask) -> String {
    let what = serde_json::json!({
        "model": provider.model(), "system": ask.system, "messages": ask.messages, "tools": ask.tools, "schema": ask.schema,
    });
    cairn_trace::digest(&what)
}
