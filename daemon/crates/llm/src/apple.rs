//! Apple's on-device model, listed only so that selecting it returns a clear error.

use crate::LlmError;

/// Returns the reason why the model is unavailable.
pub(crate) fn not_supported() -> LlmError {
    // Its framework requires Swift; even on macOS a bridge is necessary, which this build lacks.
    let why = if cfg!(target_os = "macos") {
        "this build does not support Apple's on-device model".to_owned()
    } else {
        format!("Apple's on-device model needs macOS, and this is {}", std::env::consts::OS)
    };
    LlmError::NotSupported(format!(
        "apple: {why}; use ollama or openai-compatible for a model on this machine"
    ))
}
