//! What can go wrong with a model, as a typed outcome.

use std::time::Duration;

use cairn_protocol::error::{Failure, Reason};

/// Why a model gave no (whole) answer. Texts name the provider and never hold a key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LlmError {
    /// Nothing answers at the endpoint, or it answers 5xx after all attempts.
    #[error("{0}")]
    Unavailable(String),
    /// The provider does not have the model.
    #[error("{provider} has no model '{model}'{}", there_are(.known))]
    ModelNotFound {
        /// The provider.
        provider: String,
        /// The model that was asked for.
        model: String,
        /// Those it has, as far as it tells.
        known: Vec<String>,
    },
    /// The key is missing, wrong or not allowed to do this.
    #[error("{0}")]
    Unauthorized(String),
    /// Too many requests, still after all attempts.
    #[error("{text}")]
    RateLimited {
        /// What the provider said.
        text: String,
        /// When it may be tried again, where the provider says.
        retry_after: Option<Duration>,
    },
    /// The prompt is longer than the model's context.
    #[error("{0}")]
    ContextOverflow(String),
    /// The answer does not follow the provider's format.
    #[error("{0}")]
    Malformed(String),
    /// The stream ended before the answer did.
    #[error("{0}")]
    Cut(String),
    /// No byte came for as long as was allowed.
    #[error("{0}")]
    TimedOut(String),
    /// The answer is larger than allowed.
    #[error("{0}")]
    TooLarge(String),
    /// The provider refused the request as it stands.
    #[error("{0}")]
    Rejected(String),
    /// What a host that starts programs refused, or could not do.
    #[error("{text}")]
    Host {
        /// Why.
        reason: Reason,
        /// For people.
        text: String,
    },
    /// This platform or build does not have it.
    #[error("{0}")]
    NotSupported(String),
    /// No provider has that name.
    #[error("there is no provider '{name}'; there are {}", .known.join(", "))]
    UnknownProvider {
        /// The name that was given.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
}

fn there_are(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; it has {}", known.join(", ")) }
}

impl LlmError {
    /// The same error with every text changed by `change`.
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

    /// Whether the same request may succeed a moment later.
    pub fn retryable(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::RateLimited { .. } | Self::Cut(_) | Self::TimedOut(_))
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
