//! Classification of provider errors: a status and a body, or an error in the middle of a stream.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};
use serde_json::Value;

use crate::{
    LlmError,
    retry::{Failed, LONGEST_WAIT, Retry, retry_after},
};

/// Maximum characters of a provider's message.
const MAX_WORDS: usize = 500;

/// Context of a request, for errors.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext<'a> {
    pub provider: &'a str,
    /// Provider and its address, for error messages.
    pub who: &'a str,
    /// Name of the model; may be empty.
    pub model: &'a str,
    /// Environment variable that should hold the key.
    pub key_variable: Option<&'a str>,
}

/// Content of an error body.
#[derive(Debug, Default)]
struct ErrorBody {
    words: String,
    /// Values of `type`, `code` and `status` of the error, in lower case.
    kinds: Vec<String>,
    /// True if the body was valid JSON.
    json: bool,
    /// Wait that the body requests, as Gemini writes it.
    wait: Option<Duration>,
}

/// Signs of a prompt that exceeds the context: kinds of errors, and parts of messages from OpenAI,
/// Anthropic, llama.cpp, LM Studio, vLLM and Ollama.
const OVERFLOW: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "max context length",
    "maximum context size",
    "available context size",
    "context window",
    "context length",
    "context limit",
    "context the overflows",
    "prompt is too long",
    "request_too_large",
    "input is too long",
    "exceeds the maximum number of tokens",
];

/// Signs of a refused key where the status is not 401 or 403, from Gemini.
const BAD_KEY: &[&str] = &["api key not valid", "api_key_invalid", "api key expired"];

/// Signs that the account is the cause, not the current load.
const NO_CREDIT: &[&str] = &["insufficient_quota", "billing", "credit balance"];

/// Returns the outcome of an answer with a status other than 200.
pub(crate) fn classify(
    context: &RequestContext<'_>,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Failed {
    let error_body = parse_body(body);
    let (who, code) = (context.who, status.as_u16());
    let text = |what: &str| format!("{who} {what} ({code}){}", words(&error_body.words));
    let wait = retry_after(headers, SystemTime::now()).or(error_body.wait);
    let retry = wait.map_or(Retry::Backoff, Retry::After);
    let never = |error| Failed { error, retry: Retry::No };
    if has(&error_body, OVERFLOW) || status == StatusCode::PAYLOAD_TOO_LARGE {
        return never(LlmError::ContextOverflow(text(
            "reports that the prompt is too long for the model",
        )));
    }
    if status == StatusCode::BAD_REQUEST && has(&error_body, BAD_KEY) {
        let text = text("refused the key") + &way_out(context.key_variable);
        return never(LlmError::Unauthorized(text));
    }
    if is_missing_model(context, status, &error_body) {
        let (provider, model) = (context.provider.to_owned(), context.model.to_owned());
        return never(LlmError::ModelNotFound { provider, model, known: Vec::new() });
    }
    match code {
        401 | 403 => {
            never(LlmError::Unauthorized(text("refused the key") + &way_out(context.key_variable)))
        }
        429 => {
            let error =
                LlmError::RateLimited { text: text("limits the request rate"), retry_after: wait };
            if has(&error_body, NO_CREDIT) { never(error) } else { Failed { error, retry } }
        }
        408 | 500.. => {
            let error = LlmError::Unavailable(text("is unavailable"));
            match wait {
                Some(wait) if wait > LONGEST_WAIT => {
                    let text = text("is unavailable: retry later");
                    Failed { error: LlmError::RateLimited { text, retry_after: Some(wait) }, retry }
                }
                _ => Failed { error, retry },
            }
        }
        300..=399 => {
            let to = headers
                .get(http::header::LOCATION)
                .and_then(|to| to.to_str().ok())
                .unwrap_or("elsewhere");
            let to = to.split(['?', '#']).next().unwrap_or_default();
            never(LlmError::Malformed(format!(
                "{who} redirects to {to} ({code}): set the endpoint to that address"
            )))
        }
        404 | 405 => never(LlmError::Malformed(text("has no such path: check the endpoint"))),
        _ => {
            let error = if error_body.json {
                LlmError::Rejected(text("refused the request"))
            } else {
                LlmError::Malformed(text("did not answer with JSON: check the endpoint"))
            };
            let refuses_fields = matches!(code, 400 | 422);
            let retry = if refuses_fields { Retry::WithoutOptional } else { Retry::No };
            Failed { error, retry }
        }
    }
}

/// Returns the error that an event of a stream reports.
pub(crate) fn reported(who: &str, event: &Value) -> LlmError {
    let error_body = read(event);
    let text = format!("{who} reported an error{}", words(&error_body.words));
    let is = |kinds: &[&str]| error_body.kinds.iter().any(|kind| kinds.contains(&kind.as_str()));
    if has(&error_body, OVERFLOW) {
        LlmError::ContextOverflow(text)
    } else if is(&["rate_limit_error", "rate_limit_exceeded", "429"]) {
        LlmError::RateLimited { text, retry_after: None }
    } else if is(&["authentication_error", "permission_error", "401", "403"]) {
        LlmError::Unauthorized(text)
    } else if is(&["invalid_request_error", "not_found_error", "400", "404", "422"]) {
        LlmError::Rejected(text)
    } else {
        LlmError::Unavailable(text)
    }
}

/// Returns advice for a refused key.
pub(crate) fn way_out(key_variable: Option<&str>) -> String {
    match key_variable {
        Some(name) => format!("; set {name} or llm.apiKey"),
        None => "; set llm.apiKey".into(),
    }
}

fn is_missing_model(
    context: &RequestContext<'_>,
    status: StatusCode,
    error_body: &ErrorBody,
) -> bool {
    let about_model = error_body.words.to_lowercase().contains("model")
        || (!context.model.is_empty() && error_body.words.contains(context.model));
    let missing = ["not found", "does not exist", "not exist", "no such model", "unknown model"];
    let is_missing = missing.iter().any(|sign| error_body.words.to_lowercase().contains(sign));
    match status {
        StatusCode::NOT_FOUND => error_body.json && about_model,
        StatusCode::BAD_REQUEST => {
            has(error_body, &["model_not_found"]) || (about_model && is_missing)
        }
        _ => false,
    }
}

fn has(error_body: &ErrorBody, signs: &[&str]) -> bool {
    let words = error_body.words.to_lowercase();
    signs
        .iter()
        .any(|sign| words.contains(sign) || error_body.kinds.iter().any(|kind| kind.contains(sign)))
}

fn words(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

fn parse_body(body: &[u8]) -> ErrorBody {
    if let Ok(value) = serde_json::from_slice::<Value>(body) {
        return read(&value);
    }
    let text = String::from_utf8_lossy(body);
    // An HTML page does not help in an error message.
    let words = if text.trim_start().starts_with('<') { String::new() } else { shortened(&text) };
    ErrorBody { words, ..ErrorBody::default() }
}

/// Parses the common formats: `{"error": {"message", "type", "code"}}`, `{"error": "text"}`,
/// `{"message": "text"}`, and `{"detail": …}`.
fn read(value: &Value) -> ErrorBody {
    // A list of one error, as Gemini answers outside of an event stream.
    let value = value.get(0).unwrap_or(value);
    let error = match value.get("error") {
        Some(error) if !error.is_null() => error,
        _ => value,
    };
    let detail = || match error.get("detail") {
        Some(Value::String(text)) => Some(text.clone()),
        other => other.map(Value::to_string),
    };
    let words = match error {
        Value::String(text) => text.clone(),
        _ => error
            .get("message")
            .and_then(Value::as_str)
            .map(str::to_owned)
            .or_else(detail)
            .unwrap_or_default(),
    };
    let kinds = ["type", "code", "status"].into_iter().filter_map(|field| match error.get(field) {
        Some(Value::String(kind)) => Some(kind.to_lowercase()),
        Some(Value::Number(code)) => Some(code.to_string()),
        _ => None,
    });
    ErrorBody {
        words: shortened(&words),
        kinds: kinds.collect(),
        json: value.is_object() || value.is_array(),
        wait: requested_wait(error),
    }
}

/// Reads `{"details": [{"retryDelay": "37s"}]}`.
fn requested_wait(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Shortens a text to one line of at most 500 characters.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_WORDS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
