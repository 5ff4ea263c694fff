//! Messages to and from a model, independent of any provider's format.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One message of a conversation, without the system text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Message of the user, or of the program that acts for one.
    User {
        /// Text and images of the message, in order.
        parts: Vec<Part>,
    },
    /// Answer of the model.
    Assistant {
        /// Visible text of the answer; may be empty.
        text: String,
        /// Tool calls that the model requests, in its order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolUse>,
        /// Reasoning that the provider requires back with the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<ProviderReasoning>,
    },
    /// Result of a tool call.
    Tool {
        /// Id of the call, as in [`ToolUse::id`].
        #[serde(rename = "callId")]
        call_id: String,
        /// Name of the tool.
        name: String,
        /// Result as the model receives it.
        content: String,
        /// True when the tool failed or was denied.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        failed: bool,
    },
}

/// Reasoning of an answer in the provider's own form: signed or encrypted, of use to this provider's
/// model only, and to no other one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderReasoning {
    /// Cairn's name of the provider.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// Items in the order of their arrival.
    pub items: Vec<ReasoningItem>,
}

/// One item of a provider's reasoning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasoningItem {
    /// Number of the answer's tool calls before the item.
    pub before_call: u32,
    /// The item as the provider sent it.
    pub item: serde_json::Value,
}

impl Message {
    /// Creates a user message of plain text.
    pub fn user(text: impl Into<String>) -> Self {
        Message::User { parts: vec![Part::Text { text: text.into() }] }
    }
}

/// One part of a user's message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// A part of plain text.
    Text {
        /// Text of the part.
        text: String,
    },
    /// An image, for models that accept images.
    Image {
        /// MIME type: `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
        mime: String,
        /// Bytes of the image in base64.
        data: String,
    },
}

/// A tool call that the model requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolUse {
    /// The provider's id of the call, or a generated one if it has none; unique within a session.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments of the call; a string when the model's text was not valid JSON, which the gate
    /// then tries to repair.
    pub arguments: serde_json::Value,
}

/// Token usage of one model call, or of several together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Tokens of the prompt, including cached ones.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Tokens of the prompt that were in the provider's cache.
    #[serde(default)]
    pub cached_tokens: u64,
    /// Cost in millionths of a US dollar, of those calls whose price is known; absent if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
}

impl std::ops::AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cached_tokens += other.cached_tokens;
        if let Some(cost) = other.cost_micro_usd {
            self.cost_micro_usd = Some(self.cost_micro_usd.unwrap_or(0).saturating_add(cost));
        }
    }
}

/// Reason why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model finished its answer.
    Stop,
    /// The model waits for the results of tool calls.
    ToolCalls,
    /// The answer reached its limit of tokens.
    Length,
    /// The provider withheld the answer.
    Filtered,
}

/// A model that a provider offers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// Cairn's name of the provider: `ollama`, `openai`, …
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// Context size of the model in tokens, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Maximum tokens of an answer, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// Size of the weights in bytes, if the provider reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Price of the model, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<ModelPrice>,
    /// True if the model reads images; absent if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// True if the model calls tools; absent if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// True if the model reasons before it answers; absent if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<bool>,
}

impl ModelInfo {
    /// Creates the description of a model of which nothing else is known.
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self { provider: provider.into(), model: model.into(), ..Self::default() }
    }
}

/// Price of a model in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelPrice {
    /// Price of the prompt's tokens.
    pub input: f64,
    /// Price of the answer's tokens.
    pub output: f64,
    /// Price of the prompt's tokens that are read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
}
