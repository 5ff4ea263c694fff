//! Typed errors of a model request.

use std::time::Duration;

use cairn_protocol::error::{Failure, Reason};

/// Reason why a model gave no complete answer. Texts name the provider and never contain a key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LlmError {
    /// Nothing answers at the endpoint, or it returns 5xx after all attempts.
    #[error("{0}")]
    Unavailable(String),
    /// The provider does not have the model.
    #[error("{provider} has no model '{model}'{}", there_are(.known))]
    ModelNotFound {
        provider: String,
        /// Name of the requested model.
        model: String,
        /// Models of the provider, as far as it reports them.
        known: Vec<String>,
    },
    /// The key is missing, wrong or not authorised.
    #[error("{0}")]
    Unauthorized(String),
    /// Too many requests, even after all attempts.
    #[error("{text}")]
    RateLimited {
        /// Message of the provider.
        text: String,
        /// Time to wait before the next attempt, if the provider reports it.
        retry_after: Option<Duration>,
    },
    /// The prompt is longer than the model's context.
    #[error("{0}")]
    ContextOverflow(String),
    /// The answer does not follow the provider's format.
    #[error("{0}")]
    Malformed(String),
    /// The stream ended before the answer was complete.
    #[error("{0}")]
    Cut(String),
    /// No byte arrived within the time limit.
    #[error("{0}")]
    TimedOut(String),
    /// The answer exceeds the size limit.
    #[error("{0}")]
    TooLarge(String),
    /// The provider refused the request.
    #[error("{0}")]
    Rejected(String),
    /// A host that starts programs refused the request or failed.
    #[error("{text}")]
    Host {
        reason: Reason,
        /// Message for a person.
        text: String,
    },
    /// This platform or build does not support it.
    #[error("{0}")]
    NotSupported(String),
    #[error("there is no provider '{name}'; available: {}", .known.join(", "))]
    UnknownProvider {
        /// Provider name from the settings.
        name: String,
        known: Vec<String>,
    },
}

fn there_are(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; it has {}", known.join(", ")) }
}

impl LlmError {
    /// Applies `change` to every text of the error.
    pub(crate) fn map_text(mut self, change: impl Fn(&str) -> String) -> Self {
        match &mut self {
            Self::Unavailable(text)
            | Self::Unauthorized(text)
            | Self::RateLimited { text, .. }
            | Self::Host { text, .. }
            | Self::ContextOverflow(text)
            | Self::Malformed(text)
            | Self::Cut(text)
            | Self::TimedOut(text)
            | Self::TooLarge(text)
            | Self::Rejected(text)
            | Self::NotSupported(text) => *text = change(text),
            Self::ModelNotFound { provider, model, known } => {
                for text in [provider, model].into_iter().chain(known) {
                    *text = change(text);
                }
            }
            Self::UnknownProvider { name, .. } => *name = change(name),
        }
        self
    }

    /// True if the same request may succeed a moment later.
    pub fn retryable(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_) | Self::RateLimited { .. } | Self::Cut(_) | Self::TimedOut(_)
        )
    }
}

impl From<LlmError> for Failure {
    fn from(error: LlmError) -> Self {
        let reason = match &error {
            LlmError::Unavailable(_) => Reason::ModelUnavailable,
            LlmError::ModelNotFound { .. } => Reason::ModelNotFound,
            LlmError::Unauthorized(_) => Reason::ModelUnauthorized,
            LlmError::RateLimited { .. } => Reason::ModelRateLimited,
            LlmError::ContextOverflow(_) => Reason::ContextOverflow,
            LlmError::Malformed(_) => Reason::ModelMalformed,
            LlmError::Cut(_) => Reason::ModelCut,
            LlmError::TimedOut(_) => Reason::ModelTimedOut,
            LlmError::TooLarge(_) => Reason::TooLarge,
            LlmError::Rejected(_) => Reason::ModelRejected,
            LlmError::Host { reason, .. } => *reason,
            LlmError::NotSupported(_) => Reason::NotSupported,
            LlmError::UnknownProvider { .. } => Reason::ProviderUnknown,
        };
        Failure::new(reason, error.to_string())
    }
}
