//! Format of a script.

use std::time::Duration;

use cairn_protocol::model::{FinishReason, Message, Part, TokenUsage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{LlmError, ModelRequest, ToolOffer};

/// Maximum characters of a request that a failed expectation shows.
const MAX_EXCERPT: usize = 200;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Script {
    /// Name of the model.
    #[serde(default = "default_model")]
    pub model: String,
    /// Context size of the model in tokens.
    #[serde(default)]
    pub context_tokens: Option<u64>,
    /// Answers of the script, in order.
    pub answers: Vec<ScriptedAnswer>,
}

impl Default for Script {
    fn default() -> Self {
        Self { model: default_model(), context_tokens: None, answers: Vec::new() }
    }
}

fn default_model() -> String {
    "script".into()
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScriptedAnswer {
    /// Expectations of the request, which is rejected if one is not met.
    #[serde(default)]
    pub expect: Vec<Expect>,
    /// Steps in order; an end is added if missing.
    pub steps: Vec<Step>,
    /// Pause between two chunks, in milliseconds.
    #[serde(default)]
    pub delay_ms: u64,
}

/// A piece or event of an answer: `{"text": "…"}`, `{"delayMs": 20}`, `"cut"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// Text visible to the user.
    Text(String),
    /// Text of the model's reasoning.
    Reasoning(String),
    Call(ScriptedCall),
    /// Further text of the last call's arguments.
    Arguments(String),
    /// Progress in reading the prompt.
    Progress {
        /// Tokens read so far.
        processed: u64,
        /// Tokens of the prompt.
        total: u64,
    },
    Usage(TokenUsage),
    DelayMs(u64),
    /// Error of the model.
    Fault(Fault),
    /// The stream stays open without further chunks.
    Hang,
    /// Connection that breaks at this point.
    Cut,
    /// End of the answer.
    Finish(FinishReason),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScriptedCall {
    /// Id of the call; derived from the answer's number when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Name of the tool.
    pub name: String,
    /// Arguments of the call. A string is sent unchanged, which allows broken JSON.
    #[serde(default)]
    pub arguments: Value,
}

impl ScriptedCall {
    pub(super) fn arguments_text(&self) -> String {
        match &self.arguments {
            Value::String(text) => text.clone(),
            Value::Null => "{}".into(),
            other => other.to_string(),
        }
    }
}

/// An error of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    pub kind: FaultKind,
    #[serde(default)]
    pub text: String,
    /// Time to wait before the next attempt in milliseconds, for `rateLimited`.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FaultKind {
    Unavailable,
    ModelNotFound,
    Unauthorized,
    RateLimited,
    ContextOverflow,
    Malformed,
    Cut,
    TimedOut,
    TooLarge,
    Rejected,
    NotSupported,
}

impl Fault {
    pub(super) fn error(self) -> LlmError {
        let text = if self.text.is_empty() { "scripted failure".to_owned() } else { self.text };
        match self.kind {
            FaultKind::Unavailable => LlmError::Unavailable(text),
            FaultKind::ModelNotFound => LlmError::ModelNotFound {
                provider: "scripted".into(),
                model: text,
                known: Vec::new(),
            },
            FaultKind::Unauthorized => LlmError::Unauthorized(text),
            FaultKind::RateLimited => LlmError::RateLimited {
                text,
                retry_after: self.retry_after_ms.map(Duration::from_millis),
            },
            FaultKind::ContextOverflow => LlmError::ContextOverflow(text),
            FaultKind::Malformed => LlmError::Malformed(text),
            FaultKind::Cut => LlmError::Cut(text),
            FaultKind::TimedOut => LlmError::TimedOut(text),
            FaultKind::TooLarge => LlmError::TooLarge(text),
            FaultKind::Rejected => LlmError::Rejected(text),
            FaultKind::NotSupported => LlmError::NotSupported(text),
        }
    }
}

/// Expectation of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Expect {
    /// The last message contains this text.
    LastContains(String),
    /// The role of the last message: `user`, `assistant` or `tool`.
    LastRole(String),
    /// A message or the system text contains this text.
    AnyContains(String),
    /// Neither a message nor the system text contains this text.
    NoneContains(String),
    /// The system text contains this text.
    SystemContains(String),
    /// The tool is offered.
    OffersTool(String),
    /// The tool is not offered.
    OffersNot(String),
    /// The request has this number of messages.
    Messages(usize),
    /// The request has a schema, or has none.
    Schema(bool),
}

impl Expect {
    /// # Errors
    /// Returns the expectation and the actual request if they differ.
    pub(super) fn check(&self, request: &ModelRequest) -> Result<(), String> {
        let last = request.messages.last().map(|message| (role(message), text(message)));
        let (last_role, last_text) = last.unwrap_or_default();
        let all = || request.messages.iter().map(text).chain([request.system.clone()]);
        let offers = |name: &str| request.tools.iter().any(|tool| tool.name() == name);
        let (met, there) = match self {
            Self::LastContains(part) => (last_text.contains(part), excerpt(&last_text)),
            Self::LastRole(expected) => (last_role == expected, last_role.to_owned()),
            Self::AnyContains(part) => {
                (all().any(|text| text.contains(part)), "none with it".into())
            }
            Self::NoneContains(part) => {
                let text = all().find(|text| text.contains(part));
                (text.is_none(), excerpt(&text.unwrap_or_default()))
            }
            Self::SystemContains(part) => (request.system.contains(part), excerpt(&request.system)),
            Self::OffersTool(name) | Self::OffersNot(name) => {
                let names: Vec<&str> = request.tools.iter().map(ToolOffer::name).collect();
                (offers(name) == matches!(self, Self::OffersTool(_)), names.join(", "))
            }
            Self::Messages(count) => {
                (request.messages.len() == *count, request.messages.len().to_string())
            }
            Self::Schema(expected) => {
                (request.schema.is_some() == *expected, request.schema.is_some().to_string())
            }
        };
        if met { Ok(()) } else { Err(format!("expects {self:?}, but the request has: {there}")) }
    }
}

fn role(message: &Message) -> &'static str {
    match message {
        Message::User { .. } => "user",
        Message::Assistant { .. } => "assistant",
        Message::Tool { .. } => "tool",
    }
}

fn text(message: &Message) -> String {
    match message {
        Message::User { parts } => {
            let texts = parts.iter().filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                Part::Image { .. } => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        Message::Assistant { text, .. } => text.clone(),
        Message::Tool { content, .. } => content.clone(),
    }
}

fn excerpt(text: &str) -> String {
    format!("'{}'", text.chars().take(MAX_EXCERPT).collect::<String>())
}

impl Script {
    /// Parses a script: one JSON value, or one answer per line; empty lines and lines that start
    /// with `//` are skipped.
    ///
    /// # Errors
    /// Fails with the reason and the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(map)) if map.contains_key("steps") => {}
            Ok(value) => {
                let wrong = "it is neither a script nor a list of answers; see the type Script";
                return if value.is_array() {
                    let answers =
                        serde_json::from_value(value).map_err(|error| error.to_string())?;
                    Ok(Self { answers, ..Self::default() })
                } else if value.get("answers").is_some() {
                    serde_json::from_value(value).map_err(|error| error.to_string())
                } else {
                    Err(wrong.into())
                };
            }
            Err(_) => {}
        }
        let lines = text.lines().enumerate().filter(|(_, line)| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with("//")
        });
        let answers = lines.map(|(number, line)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))
        });
        Ok(Self { answers: answers.collect::<Result<_, _>>()?, ..Self::default() })
    }
}
