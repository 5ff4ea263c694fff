//! Replacement for the in-process model in a build without it.

use std::sync::Arc;

use crate::{LlmError, Provider, Settings};

/// Returns the reason why no model is available.
pub(crate) fn connect(_settings: &Settings) -> Result<Arc<dyn Provider>, LlmError> {
    Err(LlmError::NotSupported(
        "llamaCpp: this build does not include llama.cpp: build it with `cargo build --features llama`, \
        or run llama.cpp's server and choose openai-compatible"
            .into(),
    ))
}
