//! Classification of command-line agents' error messages, because neither agent reports codes.

use crate::LlmError;

/// Maximum characters of a message that are shown.
const MAX_MESSAGE: usize = 300;

const LOGIN: &[&str] = &[
    "invalid api key",
    "missing api key",
    "/login",
    "not logged in",
    "please log in",
    "login required",
    "401",
    "403",
    "unauthorized",
    "authentication",
    "oauth token",
    "refresh token",
];
const LIMIT: &[&str] = &[
    "rate limit",
    "rate_limit",
    "usage limit",
    "429",
    "too many requests",
    "quota",
    "hit your limit",
];
const MISSING_MODEL: &[&str] = &[
    "model_not_found",
    "may not exist",
    "does not exist",
    "not supported when",
    "unknown model",
    "model not found",
];
const OVERFLOW: &[&str] =
    &["prompt is too long", "context window", "context length", "input is too long"];

/// Returns the error of `who` that a message indicates.
pub(super) fn classify(who: &str, message: &str) -> LlmError {
    let (small, text) = (message.to_lowercase(), format!("{who} {}", line(message)));
    let has = |signs: &[&str]| signs.iter().any(|sign| small.contains(sign));
    if has(OVERFLOW) {
        LlmError::ContextOverflow(text)
    } else if has(MISSING_MODEL) && small.contains("model") {
        LlmError::ModelNotFound {
            provider: who.to_owned(),
            model: String::new(),
            known: Vec::new(),
        }
    } else if has(LIMIT) {
        LlmError::RateLimited { text, retry_after: None }
    } else if has(LOGIN) {
        LlmError::Unauthorized(text)
    } else {
        LlmError::Unavailable(text)
    }
}

/// Shortens a text to one line without control characters.
pub(super) fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().filter(|c| !c.is_control()).take(MAX_MESSAGE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_map_to_typed_errors() {
        for (message, reason) in [
            ("failed: Invalid API key · Please run /login", "model_unauthorized"),
            ("failed: unexpected status 401 Unauthorized: Missing bearer", "model_unauthorized"),
            ("failed: You've hit your usage limit. Try again at 3 PM", "model_rate_limited"),
            (
                "failed: There's an issue with the selected model (x). It may not exist",
                "model_not_found",
            ),
            ("failed: prompt is too long: 210000 tokens", "context_overflow"),
            ("exited with 3: segmentation fault", "model_unavailable"),
        ] {
            let failure = cairn_protocol::error::Failure::from(classify("codex", message));
            assert_eq!(failure.reason.as_str(), reason, "{message}");
        }
        assert_eq!(line(" a\n b\u{7}c "), "a bc");
    }
}
