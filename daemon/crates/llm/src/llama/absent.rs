//! A model in this process, in a build that has none.

use std::sync::Arc;

use crate::{LlmError, Provider, Settings};

/// Why there is none.
pub(crate) fn connect(_settings: &Settings) -> Result<Arc<dyn Provider>, LlmError> {
    Err(LlmError::NotSupported(
        "llamaCpp: this build has no model of its own: build it with `cargo build --features llama`, or run llama.cpp's \
         server and choose openai-compatible"
            .into(),
    ))
}
