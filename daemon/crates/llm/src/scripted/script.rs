//! A script's words.

use std::time::Duration;

use cairn_protocol::model::{FinishReason, Message, Part, TokenUsage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{LlmError, ModelRequest};

/// Most characters of a request that a failed expectation shows.
const MAX_SHOWN: usize = 200;

/// A whole script.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Script {
    /// What the model is called.
    #[serde(default = "default_model")]
    pub model: String,
    /// Its context.
    #[serde(default)]
    pub context_tokens: Option<u64>,
    /// The answers, in order.
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

/// One answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScriptedAnswer {
    /// What the request must be like; otherwise it is rejected.
    #[serde(default)]
    pub expect: Vec<Expect>,
    /// What comes, in order. An end is added where there is none.
    pub steps: Vec<Step>,
    /// Pause between two pieces.
    #[serde(default)]
    pub delay_ms: u64,
}

/// A piece of an answer, or something that happens to it: `{"text": "…"}`, `{"delayMs": 20}`, `"cut"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// Visible text.
    Text(String),
    /// The model's own thinking.
    Reasoning(String),
    /// A call of a tool.
    Call(ScriptedCall),
    /// More text of the last call's arguments.
    Arguments(String),
    /// How much of the prompt is read.
    Progress {
        /// Tokens read.
        processed: u64,
        /// Tokens there are.
        total: u64,
    },
    /// Tokens.
    Usage(TokenUsage),
    /// A pause.
    DelayMs(u64),
    /// An error.
    Fault(Fault),
    /// Nothing more comes, and no end.
    Hang,
    /// The connection breaks.
    Cut,
    /// The end.
    Finish(FinishReason),
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScriptedCall {
    /// Its id; one is made of the answer's number when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// Its arguments. A string is sent as it is: that is how a model's broken JSON is played.
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
    /// Which.
    pub kind: FaultKind,
    /// Its text.
    #[serde(default)]
    pub text: String,
    /// When to come again, for `rateLimited`.
    #[serde(default)]
    pub retry_after_ms: Option<u64>,
}

/// Which error.
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
        let text = if self.text.is_empty() { "the script says so".to_owned() } else { self.text };
        match self.kind {
            FaultKind::Unavailable => LlmError::Unavailable(text),
            FaultKind::ModelNotFound => {
                LlmError::ModelNotFound { provider: "scripted".into(), model: text, known: Vec::new() }
            }
            FaultKind::Unauthorized => LlmError::Unauthorized(text),
            FaultKind::RateLimited => {
                LlmError::RateLimited { text, retry_after: self.retry_after_ms.map(Duration::from_millis) }
            }
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

/// What a request must be like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Expect {
    /// The last message has this text.
    LastContains(String),
    /// The last message is of `user`, `assistant` or `tool`.
    LastRole(String),
    /// Some message, or the system text, has this text.
    AnyContains(String),
    /// Neither a message nor the system text has it.
    NoneContains(String),
    /// The system text has this text.
    SystemContains(String),
    /// The tool is offered.
    OffersTool(String),
    /// The tool is not offered.
    OffersNot(String),
    /// There are so many messages.
    Messages(usize),
    /// A schema is, or is not, asked for.
    Schema(bool),
}

impl Expect {
    /// # Errors
    /// What was expected and what there is.
    pub(super) fn check(&self, request: &ModelRequest) -> Result<(), String> {
        let last = request.messages.last().map(|message| (role(message), text(message)));
        let (last_role, last_text) = last.unwrap_or_default();
        let all = || request.messages.iter().map(text).chain([request.system.clone()]);
        let offers = |name: &str| request.tools.iter().any(|tool| tool.name == name);
        let (met, there) = match self {
            Self::LastContains(part) => (last_text.contains(part), shown(&last_text)),
            Self::LastRole(wanted) => (last_role == wanted, last_role.to_owned()),
            Self::AnyContains(part) => (all().any(|text| text.contains(part)), "none with it".into()),
            Self::NoneContains(part) => {
                let found = all().find(|text| text.contains(part));
                (found.is_none(), shown(&found.unwrap_or_default()))
            }
            Self::SystemContains(part) => (request.system.contains(part), shown(&request.system)),
            Self::OffersTool(name) | Self::OffersNot(name) => {
                let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
                (offers(name) == matches!(self, Self::OffersTool(_)), names.join(", "))
            }
            Self::Messages(count) => (request.messages.len() == *count, request.messages.len().to_string()),
            Self::Schema(wanted) => {
                (request.schema.is_some() == *wanted, request.schema.is_some().to_string())
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

fn shown(text: &str) -> String {
    format!("'{}'", text.chars().take(MAX_SHOWN).collect::<String>())
}

impl Script {
    /// Reads a script's text: one JSON value, or an answer a line; empty lines and lines that begin with `//` are
    /// passed over.
    ///
    /// # Errors
    /// What is wrong, with the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(map)) if map.contains_key("steps") => {}
            Ok(value) => {
                let wrong = "it is neither a script nor a list of answers; see the type Script";
                return if value.is_array() {
                    let answers = serde_json::from_value(value).map_err(|error| error.to_string())?;
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
