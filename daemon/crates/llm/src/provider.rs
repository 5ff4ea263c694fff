//! The one trait.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use cairn_protocol::{
    id::SessionId,
    model::{FinishReason, Message, ModelInfo, TokenUsage, ToolOffer},
};
use futures_util::Stream;

use crate::{LlmError, tokens};

/// A request to a model.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// The system text; empty for none.
    pub system: String,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// Tools the model may ask for.
    pub tools: Vec<ToolOffer>,
    /// 0 to 2; the provider's own when absent.
    pub temperature: Option<f64>,
    /// Tokens of the answer at most.
    pub max_tokens: u32,
    /// A JSON Schema the answer's text must follow, where the provider can force it.
    pub schema: Option<serde_json::Value>,
    /// Whether the provider should tell how far it is in reading the prompt, where it can.
    pub prompt_progress: bool,
    /// Whose question it is; a program that stands for a model is started for a session only.
    pub session: Option<SessionId>,
    /// Receives the bytes of the answer as they came, for replay.
    pub recording: Option<Recording>,
}

/// A piece of an answer, in the order in which it arrives.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk {
    /// Visible text.
    Text(String),
    /// Text of the model's own thinking, kept apart.
    Reasoning(String),
    /// A call of a tool begins.
    CallStart {
        /// Which of the answer's calls, from 0.
        index: usize,
        /// The provider's id, or one made here.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of the JSON text of a call's arguments.
    CallArguments {
        /// Which call.
        index: usize,
        /// The text.
        delta: String,
    },
    /// How much of the prompt is read.
    PromptProgress {
        /// Tokens read, cached ones among them.
        processed: u64,
        /// Tokens there are.
        total: u64,
    },
    /// Tokens so far; a later one replaces an earlier one.
    Usage(TokenUsage),
    /// The end; nothing follows. A stream without it was cut.
    Finish(FinishReason),
}

/// The answer as it arrives. Dropping it closes the connection, which tells the server to stop.
pub type ChunkStream = Pin<Box<dyn Stream<Item = Result<Chunk, LlmError>> + Send>>;

/// A model at a provider. Cheap to share; holds no conversation.
#[async_trait::async_trait]
pub trait Provider: Send + Sync {
    /// Its name here: `ollama`, `openai`, `anthropic`, `openai-compatible`, `apple`,
    /// `claudeCode`, `codex`, `scripted`.
    fn name(&self) -> &str;

    /// The model it calls.
    fn model(&self) -> &str;

    /// Whether a call leaves this machine and its private network: then policy must allow it.
    fn external(&self) -> bool;

    /// Tokens of the model's context, where it is known.
    fn context_tokens(&self) -> Option<u64>;

    /// Whether a request can carry images to it. A model there may still refuse them.
    fn takes_images(&self) -> bool {
        true
    }

    /// Finds out what the provider does not tell unasked: which model it is when none was named, and its context.
    /// [`Provider::chat`] does it by itself; before the first chat only this makes it known.
    ///
    /// # Errors
    /// See [`LlmError`].
    async fn prepare(&self) -> Result<(), LlmError> {
        Ok(())
    }

    /// Asks. Answers once the stream has begun; failed attempts before that are made again within the provider's
    /// bounds, after it nothing is.
    ///
    /// # Errors
    /// See [`LlmError`]; also as the last item of the stream.
    async fn chat(&self, request: ModelRequest) -> Result<ChunkStream, LlmError>;

    /// The models the provider has.
    ///
    /// # Errors
    /// See [`LlmError`].
    async fn models(&self) -> Result<Vec<ModelInfo>, LlmError>;

    /// About how many tokens `text` has: never far below the truth, so that a limit kept by it is kept.
    fn count_tokens(&self, text: &str) -> u64 {
        tokens::estimate(text)
    }
}

/// Most bytes of one recorded answer.
const MAX_RECORDING: usize = 16 * 1024 * 1024;

/// The bytes of an answer as they came. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Recording(Arc<Mutex<Vec<u8>>>);

impl Recording {
    /// Adds bytes; those over 16 MiB are left out.
    pub fn push(&self, bytes: &[u8]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_RECORDING.saturating_sub(all.len());
        all.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
    }

    /// All bytes so far; the recording is empty afterwards.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
