//! Refusals of providers: each has its typed outcome with the provider's message.

use cairn_llm::{LlmError, ModelRequest, Settings, connect};
use serde_json::{Value, json};

use crate::{
    ask, connected,
    peer::{Peer, Reply},
    question, settings,
};

fn kind(error: &LlmError) -> &'static str {
    match error {
        LlmError::Unavailable(_) => "unavailable",
        LlmError::ModelNotFound { .. } => "model",
        LlmError::Unauthorized(_) => "unauthorized",
        LlmError::RateLimited { .. } => "limited",
        LlmError::ContextOverflow(_) => "overflow",
        LlmError::Malformed(_) => "malformed",
        LlmError::Rejected(_) => "rejected",
        _ => "other",
    }
}

#[tokio::test]
async fn errors_have_a_kind_and_the_provider_message() {
    for (provider, status, body, expected, words, requests) in [
        ("openai", 401, "openai/error_key.json", "unauthorized", "set OPENAI_API_KEY", 1),
        ("openai", 400, "openai/error_context.json", "overflow", "resulted in 130125 tokens", 1),
        ("openai", 404, "openai/error_model.json", "model", "it has gpt-4o, gpt-5-mini", 1),
        ("openai", 400, "openai/error_model.json", "model", "no model 'm1'", 1),
        ("openai", 429, "openai/error_rate.json", "limited", "Limit 30000", 3),
        ("openai", 429, "openai/error_quota.json", "limited", "billing details", 1),
        ("openai", 500, "openai/error_server.json", "unavailable", "had an error", 3),
        ("openai", 400, "openai/error_field.json", "rejected", "return_progress", 1),
        ("openai-compatible", 400, "llamacpp/error_context.json", "overflow", "8192 tokens", 1),
        // Status code of older builds.
        ("openai-compatible", 500, "llamacpp/error_context.json", "overflow", "8192 tokens", 1),
        (
            "openai-compatible",
            503,
            "llamacpp/error_loading.json",
            "unavailable",
            "Loading model",
            3,
        ),
        ("openai-compatible", 404, "openai/error_model.json", "model", "it has qwen3-8b", 1),
        ("anthropic", 401, "anthropic/error_key.json", "unauthorized", "set ANTHROPIC_API_KEY", 1),
        ("anthropic", 400, "anthropic/error_context.json", "overflow", "208310 tokens", 1),
        ("anthropic", 413, "anthropic/error_field.json", "overflow", "too long", 1),
        ("anthropic", 404, "anthropic/error_model.json", "model", "claude-sonnet-4-5-20250929", 1),
        ("anthropic", 429, "anthropic/error_rate.json", "limited", "50,000 input tokens", 3),
        ("anthropic", 529, "anthropic/error_server.json", "unavailable", "Overloaded", 3),
        ("anthropic", 400, "anthropic/error_field.json", "rejected", "roles must alternate", 1),
        ("anthropic", 400, "anthropic/error_credit.json", "rejected", "credit balance", 1),
        ("gemini", 400, "gemini/error_key.json", "unauthorized", "set GEMINI_API_KEY", 1),
        ("gemini", 404, "gemini/error_model.json", "model", "it has gemini-3.8-flash", 1),
        ("gemini", 400, "gemini/error_context.json", "overflow", "token count (1200321)", 1),
        ("gemini", 503, "gemini/error_server.json", "unavailable", "overloaded", 3),
        ("ollama", 404, "ollama/error_model.json", "model", "it has qwen3:14b, gemma3:latest", 1),
        ("ollama", 400, "ollama/error_context.json", "overflow", "exceeds the context length", 1),
        (
            "ollama",
            500,
            "ollama/error_server.json",
            "unavailable",
            "runner process has terminated",
            3,
        ),
        ("ollama", 503, "ollama/error_rate.json", "unavailable", "server busy", 3),
        ("ollama", 400, "ollama/error_field.json", "rejected", "does not support tools", 1),
        ("ollama", 401, "ollama/error_key.json", "unauthorized", "set OLLAMA_API_KEY", 1),
    ] {
        let peer = Peer::start(provider, vec![Reply::error(status, body)]).await;
        let (_, error) = ask(&*connected(provider, &peer.url), question()).await;
        let error = error.unwrap();
        let text = error.to_string();
        assert_eq!(kind(&error), expected, "{body}: {error:?}");
        assert!(text.contains(words), "{body}: {text}");
        assert_eq!(peer.chats().len(), requests, "{body}");
    }
}

#[tokio::test]
async fn other_error_formats_are_parsed() {
    for (body, words) in [
        (json!({ "detail": "Not enough memory" }).to_string(), ": Not enough memory"),
        (
            json!({ "detail": [{ "msg": "Field required", "loc": ["body"] }] }).to_string(),
            "Field required",
        ),
        (json!({ "message": "no such thing" }).to_string(), ": no such thing"),
        (json!({ "object": "error", "message": "bad", "code": 400 }).to_string(), ": bad"),
        (json!({ "error": { "message": "two\nlines\t here" } }).to_string(), ": two lines here"),
        (json!({}).to_string(), "refused the request (400)"),
        ("plain words".to_owned(), ": plain words"),
        ("<html>".to_owned(), "(400)"),
        ("\u{1F600}".repeat(1000), "\u{1F600}…"),
    ] {
        let peer =
            Peer::start("openai", vec![Reply::new(400, "application/json", body.clone())]).await;
        let (_, error) = ask(&*connected("openai", &peer.url), question()).await;
        let text = error.unwrap().to_string();
        assert!(text.contains(words) && !text.contains("<html>"), "{body}: {text}");
        assert!(text.chars().count() < 620, "{}", text.len());
    }
}

#[tokio::test]
async fn error_with_success_status_is_an_error() {
    let body = r#"{"error":{"message":"no such adapter","type":"invalid_request_error"}}"#;
    for (body, expected) in
        [(body, "rejected"), (r#"{"choices":[]}"#, "malformed"), ("{", "malformed")]
    {
        let peer = Peer::start("openai", vec![Reply::new(200, "application/json", body)]).await;
        let (_, error) = ask(&*connected("openai", &peer.url), question()).await;
        assert_eq!(kind(&error.unwrap()), expected, "{body}");
    }
}

#[tokio::test]
async fn anthropic_refuses_a_list_schema() {
    let peer = Peer::start("anthropic", vec![Reply::fixture("anthropic/schema.sse")]).await;
    let request = ModelRequest { schema: Some(json!({ "type": "array" })), ..question() };
    let (_, error) = ask(&*connected("anthropic", &peer.url), request).await;
    assert_eq!((kind(&error.unwrap()), peer.chats().len()), ("rejected", 0));
}

/// Returns a refusal as a strict server sends it.
fn refusal(status: u16, text: &str) -> Reply {
    let body = json!({ "error": { "message": text, "type": "invalid_request_error" } });
    Reply::new(status, "application/json", body.to_string())
}

#[tokio::test]
async fn refused_optional_fields_are_left_out_once_and_for_all() {
    let temperature = "Unsupported value: 'temperature' does not support 0.5 with this model.";
    for (provider, refused, omitted) in [
        ("openai", refusal(400, temperature), vec!["temperature"]),
        ("anthropic", refusal(400, "`temperature` is deprecated"), vec!["temperature"]),
        (
            "openai-compatible",
            refusal(422, "body.return_progress: extra inputs are not permitted"),
            vec!["return_progress"],
        ),
        (
            "openai-compatible",
            refusal(422, "stream_options: unsupported parameter"),
            vec!["stream_options"],
        ),
        ("openai-compatible", refusal(400, "unknown field"), vec!["return_progress"]),
        ("openai-compatible", Reply::new(400, "text/plain", "no"), vec!["return_progress"]),
    ] {
        let name = if provider == "anthropic" { "anthropic/text.sse" } else { "openai/text.sse" };
        let peer = Peer::unchecked(provider, vec![refused, Reply::fixture(name)]).await;
        let (sender, mut notices) = tokio::sync::mpsc::channel(8);
        let request = ModelRequest {
            temperature: Some(0.5),
            prompt_progress: true,
            notices: Some(sender),
            ..question()
        };
        let provider = connected(provider, &peer.url);
        for _ in 0..2 {
            assert_eq!(ask(&*provider, request.clone()).await.1, None);
        }
        drop(request);
        let bodies: Vec<_> = peer.chats().into_iter().map(|chat| chat.body).collect();
        assert_eq!(bodies.len(), 3, "the refusal is remembered");
        for field in ["temperature", "return_progress", "stream_options", "model", "messages"] {
            let is_omitted = omitted.contains(&field);
            let present: Vec<_> = bodies.iter().map(|body| body.get(field).is_some()).collect();
            assert_eq!(present[1..], [present[0] && !is_omitted; 2], "{omitted:?}: {field}");
        }
        let notice = notices.recv().await.map(|notice| notice.to_string());
        let expected = omitted == ["temperature"];
        assert_eq!(notice.is_some(), expected, "{omitted:?}: {notice:?}");
    }
}

#[tokio::test]
async fn refusal_without_optional_fields_is_final() {
    for provider in ["openai", "anthropic", "openai-compatible"] {
        let peer = Peer::unchecked(provider, vec![refusal(400, "no such temperature")]).await;
        let (_, error) = ask(&*connected(provider, &peer.url), question()).await;
        assert_eq!((kind(&error.unwrap()), peer.chats().len()), ("rejected", 1));
        // A second refusal is final too.
        let request = ModelRequest { temperature: Some(0.5), ..question() };
        let (_, error) = ask(&*connected(provider, &peer.url), request).await;
        assert_eq!((kind(&error.unwrap()), peer.chats().len()), ("rejected", 3));
    }
}

#[tokio::test]
async fn progress_is_requested_only_of_a_known_server() {
    // The server has no `/props`, as every one but llama.cpp.
    let peer = Peer::unchecked("other", vec![Reply::fixture("openai/text.sse")]).await;
    let request = ModelRequest { prompt_progress: true, ..question() };
    let context_tokens = Some(9000);
    let strict = Settings { context_tokens, ..settings("openai-compatible", &peer.url) };
    assert_eq!(ask(&*connect(&strict).unwrap(), request).await.1, None);
    assert_eq!(peer.chats()[0].body.get("return_progress"), None);
}

#[tokio::test]
async fn progress_is_refused_only_of_a_server_that_reports_it() {
    let text =
        "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let event = "event: easyai.prompt_progress\ndata: {\"processed\":5,\"total\":10}\n\n";
    let reply = |body: String| Reply::new(200, "text/event-stream", body + "data: [DONE]\n\n");
    let replies = vec![
        reply(text.to_owned()),
        reply(format!("{event}{text}")),
        reply(text.to_owned()),
        reply(text.to_owned()),
    ];
    let peer = Peer::unchecked("other", replies).await;
    let context_tokens = Some(9000);
    let known = Settings { context_tokens, ..settings("openai-compatible", &peer.url) };
    let provider = connect(&known).unwrap();
    // The last request wants the progress.
    for prompt_progress in [false, false, false, true] {
        let request = ModelRequest { prompt_progress, ..question() };
        assert_eq!(ask(&*provider, request).await.1, None);
    }
    let options: Vec<Value> =
        peer.chats().into_iter().map(|chat| chat.body["stream_options"].clone()).collect();
    let plain = json!({ "include_usage": true });
    let refusing = json!({ "include_usage": true, "easyai_prompt_progress": false });
    assert_eq!(options, [plain.clone(), plain.clone(), refusing, plain]);
}
