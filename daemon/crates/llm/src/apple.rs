//! Apple's on-device model: named, so that asking for it gets a clear answer.

use crate::LlmError;

/// Why it cannot be used here.
pub(crate) fn not_supported() -> LlmError {
    // Its framework speaks Swift alone: even on macOS a bridge is needed, which this build does not have.
    let why = if cfg!(target_os = "macos") {
        "this build has no bridge to Apple's on-device model".to_owned()
    } else {
        format!("Apple's on-device model needs macOS, and this is {}", std::env::consts::OS)
    };
    LlmError::NotSupported(format!(
        "apple: {why}; use ollama or openai-compatible for a model on this machine"
    ))
}
