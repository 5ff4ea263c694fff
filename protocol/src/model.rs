//! What is said to a model and what it answers, in no provider's format.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One message of a conversation, without the system text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What a person (or the program in their place) says.
    User {
        /// Text and images, in order.
        parts: Vec<Part>,
    },
    /// What the model said.
    Assistant {
        /// Its visible text; may be empty.
        text: String,
        /// Tools it asked for, in its order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolUse>,
    },
    /// What a tool answered.
    Tool {
        /// The [`ToolUse::id`] it answers.
        #[serde(rename = "callId")]
        call_id: String,
        /// The tool.
        name: String,
        /// The answer as the model sees it.
        content: String,
        /// True when the tool failed or was denied.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
    },
}

impl Message {
    /// A message of plain text from the user.
    pub fn user(text: impl Into<String>) -> Self {
        Message::User { parts: vec![Part::Text { text: text.into() }] }
    }
}

/// A part of a user's message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image, for models that take them.
    Image {
        /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
        mime: String,
        /// The bytes in base64.
        data: String,
    },
}

/// A tool the model asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolUse {
    /// The provider's id for it, or one made here where it has none; unique within a session.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its arguments. A string when the model's text was no JSON: the gate tries to repair it.
    pub arguments: serde_json::Value,
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOffer {
    /// Name.
    pub name: String,
    /// The short description.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: serde_json::Value,
}

/// Tokens of one model call, or of several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Tokens of the prompt, cached ones among them.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Tokens of the prompt that the provider had in its cache.
    #[serde(default)]
    pub cached_tokens: u64,
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cached_tokens += other.cached_tokens;
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It waits for tools.
    ToolCalls,
    /// It reached its limit of tokens.
    Length,
    /// The provider held the answer back.
    Filtered,
}

/// A model that a provider offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// The provider's name here: `ollama`, `openai`, …
    pub provider: String,
    /// The model's name there.
    pub model: String,
    /// Tokens of its context, where the provider tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Bytes of its weights, where the provider tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
}
