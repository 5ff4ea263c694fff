//! Replay of recorded answers through the decoder of their provider, without a network.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use cairn_protocol::model::ModelInfo;
use futures_util::stream;

use crate::{
    ChunkStream, Decoder, Format, Limits, LlmError, ModelRequest, Provider, catalog,
    schema_calls::STEPS_MARK,
};

/// Replays recorded answers in order.
#[derive(Debug)]
pub struct Recorded {
    provider: &'static str,
    format: Format,
    model: String,
    context_tokens: Option<u64>,
    answers: Mutex<VecDeque<Vec<u8>>>,
    count: usize,
}

impl Recorded {
    /// Creates a provider from answers of `provider`, as returned by [`crate::Recording::take`].
    ///
    /// # Errors
    /// [`LlmError::UnknownProvider`] when no decoder has that name.
    pub fn new(provider: &str, model: &str, answers: Vec<Vec<u8>>) -> Result<Self, LlmError> {
        let known = catalog::find_provider(provider)
            .and_then(|known| Some((known.name, Format::of(known.name)?)));
        let unknown = || LlmError::UnknownProvider {
            name: provider.to_owned(),
            known: catalog::providers().iter().map(|known| known.name.to_owned()).collect(),
        };
        let (provider, format) = known.ok_or_else(unknown)?;
        let count = answers.len();
        let answers = Mutex::new(answers.into());
        Ok(Self { provider, format, model: model.to_owned(), context_tokens: None, answers, count })
    }

    /// Sets the context size that the recorded model had.
    #[must_use]
    pub fn with_context(mut self, tokens: Option<u64>) -> Self {
        self.context_tokens = tokens;
        self
    }

    /// Returns the number of answers that remain.
    pub fn remaining(&self) -> usize {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

#[async_trait::async_trait]
impl Provider for Recorded {
    /// Name of the recorded provider.
    fn name(&self) -> &str {
        self.provider
    }

    fn model(&self) -> &str {
        &self.model
    }

    /// Always false: no request is sent.
    fn external(&self) -> bool {
        false
    }

    fn context_tokens(&self) -> Option<u64> {
        self.context_tokens
    }

    async fn chat(&self, request: ModelRequest) -> Result<ChunkStream, LlmError> {
        let next = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let over =
            || LlmError::Rejected(format!("all {} recorded answers have been used", self.count));
        let bytes = next.ok_or_else(over)?;
        if let Some(recording) = &request.recording {
            recording.push(&bytes);
        }
        let who = format!("the recording of {}", self.provider);
        let (format, bytes) = match bytes.strip_prefix(STEPS_MARK) {
            Some(steps) => (Format::Scripted, steps),
            None => (self.format, bytes.as_slice()),
        };
        let mut decoder = Decoder::new(format, &who, &request, Limits::default());
        let failed = decoder.feed(bytes).and_then(|()| decoder.end()).err();
        let chunks = std::iter::from_fn(move || decoder.next()).map(Ok).chain(failed.map(Err));
        Ok(Box::pin(stream::iter(chunks.collect::<Vec<_>>())))
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        let (provider, model) = (self.provider.to_owned(), self.model.clone());
        Ok(vec![ModelInfo {
            provider,
            model,
            context_tokens: self.context_tokens,
            ..ModelInfo::default()
        }])
    }
}
