//! Trait that all model providers implement.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cairn_protocol::{
    id::SessionId,
    model::{FinishReason, Message, ModelInfo, ReasoningItem, TokenUsage},
};
use futures_util::Stream;
use tokio::sync::mpsc;

use crate::{LlmError, ToolOffer, tokens};

/// A request to a model.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// System text; empty for none.
    pub system: String,
    pub messages: Vec<Message>,
    /// Tools that the model may request.
    pub tools: Vec<ToolOffer>,
    /// Sampling temperature, 0 to 2; the provider's default when absent.
    pub temperature: Option<f64>,
    /// Maximum tokens of the answer.
    pub max_tokens: u32,
    /// JSON Schema for the text of the answer, where the provider can enforce it.
    pub schema: Option<serde_json::Value>,
    /// Requests reports on the progress of reading the prompt, where the provider supports them.
    pub prompt_progress: bool,
    /// Session of the request; command-line agents are started only for a session.
    pub session: Option<SessionId>,
    /// Buffer for the raw bytes of the answer, for replay.
    pub recording: Option<Recording>,
    /// Receiver of events before the answer starts; those that do not fit are dropped.
    pub notices: Option<mpsc::Sender<Notice>>,
}

/// An event of a request before its answer starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The request failed and is sent again after `wait`.
    Retry {
        wait: Duration,
        /// Number of the retry, from 1, and how many there are at most.
        retry: u32,
        retries: u32,
        /// Message of the failure.
        error: String,
    },
    /// The server refused fields that are optional, and the request is sent without them.
    FieldsOmitted {
        fields: Vec<&'static str>,
        /// Message of the refusal.
        error: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retry { wait, retry, retries, error } => {
                let tenths = (wait.as_secs_f64() * 10.0).round() / 10.0;
                write!(f, "retrying in {tenths} s ({retry} of {retries}): {error}")
            }
            Self::FieldsOmitted { fields, error } => {
                write!(f, "retrying without {}: {error}", fields.join(" and "))
            }
        }
    }
}

/// A piece of an answer, in order of arrival.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk {
    /// Text visible to the user.
    Text(String),
    /// Text of the model's reasoning, separate from the visible text.
    Reasoning(String),
    /// An item of the reasoning that the provider requires back with the conversation.
    ReasoningItem(ReasoningItem),
    /// A tool call starts.
    CallStart {
        /// Position among the answer's calls, from 0.
        index: usize,
        /// Id from the provider, or a generated one.
        id: String,
        /// Name of the tool.
        name: String,
    },
    /// Further JSON text of a call's arguments.
    CallArguments {
        /// Position among the answer's calls, from 0.
        index: usize,
        delta: String,
    },
    /// Progress in reading the prompt.
    PromptProgress {
        /// Tokens read, including cached ones.
        processed: u64,
        /// Tokens of the prompt.
        total: u64,
    },
    /// Token usage so far; each value replaces the previous one.
    Usage(TokenUsage),
    /// End of the answer, always the last chunk. A stream without it was interrupted.
    Finish(FinishReason),
}

/// Stream of an answer as it arrives. Dropping it closes the connection, which makes the server
/// stop.
pub type ChunkStream = Pin<Box<dyn Stream<Item = Result<Chunk, LlmError>> + Send>>;

/// A model at a provider. Cheap to share; stores no conversation.
#[async_trait::async_trait]
pub trait Provider: Send + Sync {
    /// Name in Cairn: `ollama`, `openai`, `anthropic`, `gemini`, `openrouter`,
    /// `openai-compatible`, `apple`, `llamaCpp`, `claudeCode`, `codex`, `scripted`.
    fn name(&self) -> &str;

    fn model(&self) -> &str;

    /// True if a call leaves this machine, which the policy must allow.
    fn external(&self) -> bool;

    /// Context size of the model in tokens, if known.
    fn context_tokens(&self) -> Option<u64>;

    /// True if a request can carry images. The model may still refuse them.
    fn takes_images(&self) -> bool {
        true
    }

    /// True if [`Provider::chat`] has already repeated a request that failed before its stream
    /// began, as often as configured.
    fn retries_requests(&self) -> bool {
        false
    }

    /// Returns the cost of an answer in millionths of a US dollar; `None` if the price is not known.
    fn cost(&self, _usage: &TokenUsage) -> Option<u64> {
        None
    }

    /// Queries values that are not configured: the default model and its context size.
    /// [`Provider::chat`] does this by itself; before the first chat only this method makes them
    /// known.
    ///
    /// # Errors
    /// See [`LlmError`].
    async fn prepare(&self) -> Result<(), LlmError> {
        Ok(())
    }

    /// Sends the request and returns once the stream has started. Failed attempts before that are
    /// retried within the provider's limits; nothing is retried afterwards.
    ///
    /// # Errors
    /// See [`LlmError`]; also as the last item of the stream.
    async fn chat(&self, request: ModelRequest) -> Result<ChunkStream, LlmError>;

    /// Returns the models of the provider.
    ///
    /// # Errors
    /// See [`LlmError`].
    async fn models(&self) -> Result<Vec<ModelInfo>, LlmError>;

    /// Estimates the tokens of `text`: never far below the true number, so that limits based on it
    /// hold.
    fn count_tokens(&self, text: &str) -> u64 {
        tokens::estimate(text)
    }
}

/// Maximum bytes of one recorded answer.
const MAX_RECORDING: usize = 16 * 1024 * 1024;

/// Raw bytes of an answer, shared by all clones.
#[derive(Debug, Clone, Default)]
pub struct Recording(Arc<Mutex<Vec<u8>>>);

impl Recording {
    /// Appends bytes; those beyond 16 MiB are dropped.
    pub fn push(&self, bytes: &[u8]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_RECORDING.saturating_sub(all.len());
        all.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
    }

    /// Returns and clears all bytes so far.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
