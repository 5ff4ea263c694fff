//! Requests of providers: the test servers check each one against their provider's rules.

use cairn_llm::{Effort, ModelRequest, OpenAiApi, Settings, ToolOffer, connect};
use cairn_protocol::model::{Message, Part, ToolUse};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value, json};

use crate::{
    CANARY, ask, connected,
    peer::{Peer, Reply, Request},
    question, settings,
};

pub const PROVIDERS: &[(&str, &str)] = &[
    ("openai", "openai/text.sse"),
    ("openai-compatible", "openai/text.sse"),
    ("anthropic", "anthropic/text.sse"),
    ("gemini", "gemini/text.sse"),
    ("ollama", "ollama/text.ndjson"),
];

fn offer(name: &str) -> ToolOffer {
    let input_schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    ToolOffer::new(name, "d", &input_schema).unwrap()
}

fn call(id: &str, arguments: Value) -> ToolUse {
    ToolUse { id: id.into(), name: "fs_read".into(), arguments }
}

fn answer(id: &str, content: &str) -> Message {
    Message::Tool {
        call_id: id.into(),
        name: "fs_read".into(),
        content: content.into(),
        failed: id.ends_with('2'),
    }
}

/// Returns two turns with tools, an image, broken arguments and an error.
pub fn conversation() -> ModelRequest {
    let image = Part::Image { mime: "image/png".into(), data: "iVBORw0KGgo=".into() };
    ModelRequest {
        system: "be brief".into(),
        messages: vec![
            Message::User { parts: vec![Part::Text { text: "look".into() }, image] },
            Message::Assistant {
                text: "I look. ".into(),
                calls: vec![
                    call("c1", json!({ "path": "a" })),
                    call("c2", json!("{\"path\": \"b")),
                ],
                reasoning: None,
            },
            answer("c1", "fn a() {}"),
            answer("c2", "invalid arguments"),
            Message::user("and now?"),
        ],
        tools: vec![offer("fs_read"), offer("answer")],
        temperature: Some(1.5),
        max_tokens: 77,
        schema: Some(json!({ "type": "object", "properties": { "x": { "type": "string" } } })),
        prompt_progress: true,
        ..ModelRequest::default()
    }
}

/// Checks the conversation in Gemini's form.
fn check_gemini(sent: &Request) {
    let at = |pointer: &str| sent.body.pointer(pointer).cloned().unwrap_or_default();
    assert_eq!(sent.header("x-goog-api-key"), Some(CANARY));
    assert_eq!(at("/systemInstruction/parts/0/text"), "be brief");
    assert_eq!(at("/contents/0/parts/1/inlineData/mimeType"), "image/png");
    assert_eq!(at("/contents/1/parts/2/functionCall/args/invalidArguments"), "{\"path\": \"b");
    let result = at("/contents/2/parts/1/functionResponse/response");
    assert_eq!(result, json!({ "error": "invalid arguments" }));
    assert_eq!(at("/contents/3/parts/0/text"), "and now?");
    assert_eq!(at("/generationConfig/maxOutputTokens"), 77);
    assert_eq!(at("/generationConfig/responseJsonSchema"), conversation().schema.unwrap());
}

#[tokio::test]
async fn conversation_is_converted_for_each_provider() {
    for (provider, name) in PROVIDERS {
        let peer = Peer::start(provider, vec![Reply::fixture(name)]).await;
        let version = if *provider == "gemini" { "v1beta" } else { "v1" };
        let context_tokens = Some(16_384);
        let settings =
            Settings { context_tokens, ..settings(provider, &format!("{}/{version}/", peer.url)) };
        let connected = connect(&settings).unwrap();
        assert_eq!(connected.context_tokens(), context_tokens);
        let (_, error) = ask(&*connected, conversation()).await;
        assert_eq!(error, None);
        let sent = peer.chats().remove(0);
        let body = &sent.body;
        let at = |pointer: &str| body.pointer(pointer).cloned().unwrap_or_default();
        match *provider {
            "anthropic" => {
                assert_eq!(sent.header("x-api-key"), Some(CANARY));
                assert_eq!(at("/system/0/text"), "be brief");
                assert_eq!(at("/messages/0/content/1/source/media_type"), "image/png");
                assert_eq!(at("/messages/1/content/0/text"), "I look.");
                assert_eq!(at("/messages/1/content/2/input/invalidArguments"), "{\"path\": \"b");
                assert_eq!(at("/messages/2/content/1/is_error"), true);
                assert_eq!(at("/messages/2/content/2/text"), "and now?");
                assert_eq!((at("/max_tokens"), at("/temperature")), (json!(77), json!(1.0)));
                assert_eq!(at("/output_config/format/schema/additionalProperties"), false);
            }
            "gemini" => check_gemini(&sent),
            "ollama" => {
                assert_eq!(sent.path, "/api/chat");
                assert_eq!(at("/messages/1/images/0"), "iVBORw0KGgo=");
                assert_eq!(at("/messages/2/tool_calls/0/function/arguments/path"), "a");
                assert_eq!(at("/messages/3/tool_name"), "fs_read");
                assert_eq!(
                    at("/options"),
                    json!({ "temperature": 1.5, "num_predict": 77, "num_ctx": 16384 })
                );
                assert_eq!(at("/format"), conversation().schema.unwrap());
            }
            _ => {
                let compatible = *provider == "openai-compatible";
                assert_eq!(sent.header("authorization"), Some(format!("Bearer {CANARY}").as_str()));
                assert_eq!(sent.path, "/v1/chat/completions");
                assert_eq!(
                    at("/messages/1/content/1/image_url/url"),
                    "data:image/png;base64,iVBORw0KGgo="
                );
                assert_eq!(at("/messages/2/tool_calls/0/function/arguments"), "{\"path\":\"a\"}");
                assert_eq!(at("/messages/3/tool_call_id"), "c1");
                assert_eq!(
                    at(if compatible { "/max_tokens" } else { "/max_completion_tokens" }),
                    77
                );
                assert_eq!(
                    at("/return_progress"),
                    if compatible { json!(true) } else { Value::Null }
                );
                // OpenAI does not accept a schema with optional properties as strict.
                assert_eq!(at("/response_format/json_schema/strict"), compatible);
            }
        }
    }
}

/// Returns settings for the responses API.
pub fn responses(url: &str) -> Settings {
    let reasoning_effort = Some(Effort::Low);
    Settings { api: OpenAiApi::Responses, reasoning_effort, ..settings("openai", url) }
}

#[tokio::test]
async fn conversation_is_converted_to_items_of_responses() {
    let peer = Peer::start("openai", vec![Reply::fixture("openai/responses_tools.sse")]).await;
    let provider = connect(&responses(&peer.url)).unwrap();
    assert_eq!(ask(&*provider, conversation()).await.1, None);
    let sent = peer.chats().remove(0);
    assert_eq!(sent.path, "/v1/responses");
    let at = |pointer: &str| sent.body.pointer(pointer).cloned().unwrap_or_default();
    assert_eq!((at("/instructions"), at("/max_output_tokens")), (json!("be brief"), json!(2125)));
    assert_eq!((at("/temperature"), at("/reasoning/effort")), (json!(1.5), json!("low")));
    assert_eq!(at("/input/0/content/1/image_url"), "data:image/png;base64,iVBORw0KGgo=");
    assert_eq!(at("/input/1"), json!({ "role": "assistant", "content": "I look. " }));
    let call = json!({
        "type": "function_call", "call_id": "c1", "name": "fs_read", "arguments": "{\"path\":\"a\"}"
    });
    assert_eq!(at("/input/2"), call);
    let output = json!({ "type": "function_call_output", "call_id": "c1", "output": "fn a() {}" });
    assert_eq!(at("/input/4"), output);
    assert_eq!((at("/tools/0/name"), at("/tools/0/strict")), (json!("fs_read"), json!(false)));
    assert_eq!(at("/text/format/schema"), conversation().schema.unwrap());
    // Control: chat completions have the effort in a field of their own.
    let peer = Peer::start("openai", vec![Reply::fixture("openai/text.sse")]).await;
    let chat = Settings { api: OpenAiApi::Chat, ..responses(&peer.url) };
    assert_eq!(ask(&*connect(&chat).unwrap(), question()).await.1, None);
    assert_eq!(peer.chats()[0].body["reasoning_effort"], "low");
}

#[tokio::test]
async fn plain_request_is_minimal_and_openai_reasoning_models_get_no_temperature() {
    for (provider, name) in PROVIDERS {
        let peer = Peer::start(provider, vec![Reply::fixture(name)]).await;
        let plain =
            Settings { key: None, model: "gpt-5-mini".into(), ..settings(provider, &peer.url) };
        let (_, error) =
            ask(&*connect(&plain).unwrap(), ModelRequest { temperature: Some(0.5), ..question() })
                .await;
        assert_eq!(error, None);
        let sent = peer.chats().remove(0);
        for header in ["authorization", "x-api-key", "x-goog-api-key"] {
            assert!(sent.header(header).is_none(), "{provider}");
        }
        let messages = sent.body.get("messages").or(sent.body.get("contents")).unwrap();
        assert_eq!(messages.as_array().unwrap().len(), 1);
        let places = ["/temperature", "/options/temperature", "/generationConfig/temperature"];
        let temperature = places.iter().find_map(|pointer| sent.body.pointer(pointer));
        assert_eq!(temperature.is_some(), *provider != "openai");
        assert!(sent.body.get("tools").is_none());
    }
    let strict = json!({
        "type": "object", "properties": { "x": { "type": "string" } }, "required": ["x"], "additionalProperties": false
    });
    let peer = Peer::start("openai", vec![Reply::fixture("openai/text.sse")]).await;
    ask(&*connected("openai", &peer.url), ModelRequest { schema: Some(strict), ..question() })
        .await;
    assert_eq!(peer.chats()[0].body["response_format"]["json_schema"]["strict"], true);
}

fn any_message() -> impl Strategy<Value = Message> {
    // Some ids have characters, or a length, that only other providers accept.
    let long = "functions.read_file:0123456789-0123456789-0123456789-0123456789-0123456789";
    let id = move || prop::sample::select(vec!["c1", "c2", "functions.c:2", "functions.c 2", long]);
    let text = || prop::sample::select(vec!["", " ", "words", "words \n"]);
    let arguments = prop::sample::select(vec![
        json!({}),
        json!({ "a": 1 }),
        json!("{broken"),
        json!(null),
        json!([1]),
    ]);
    let calls = prop::collection::vec(
        (id(), arguments).prop_map(|(id, arguments)| call(id, arguments)),
        0..3,
    );
    prop_oneof![
        (text(), any::<bool>()).prop_map(|(text, image)| {
            let image =
                image.then(|| Part::Image { mime: "image/png".into(), data: "aa==".into() });
            let parts = [Some(Part::Text { text: text.into() }), image].into_iter().flatten();
            Message::User { parts: parts.collect() }
        }),
        (text(), calls).prop_map(|(text, calls)| Message::Assistant {
            text: text.into(),
            calls,
            reasoning: None
        }),
        (id(), text()).prop_map(|(id, text)| answer(id, text)),
    ]
}

/// Histories with every kind of gap become requests that violate no rule; the peer checks them.
#[test]
fn any_history_yields_a_valid_request() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (provider, name) in PROVIDERS {
        let peer = runtime.block_on(Peer::start(provider, vec![Reply::fixture(name)]));
        let connected = connected(provider, &peer.url);
        let mut runner =
            TestRunner::new(ProptestConfig { cases: 150, ..ProptestConfig::default() });
        let histories = (prop::collection::vec(any_message(), 0..12), any::<bool>());
        let outcome = runner.run(&histories, |(mut messages, last)| {
            // A request must contain a user message: at the start, so that calls may remain open at
            // the end, or at the end.
            messages.insert(if last { messages.len() } else { 0 }, Message::user("go on"));
            let request = ModelRequest { messages, ..question() };
            let (_, error) = runtime.block_on(ask(&*connected, request));
            prop_assert_eq!(error, None);
            prop_assert!(peer.broken().is_empty(), "{:?}", peer.broken());
            Ok(())
        });
        outcome.unwrap();
    }
}

#[tokio::test]
async fn proxy_is_used_only_for_remote_hosts() {
    let replies = vec![Reply::fixture("openai/text.sse")];
    let peer = Peer::start("openai-compatible", replies.clone()).await;
    let through = |endpoint: &str, proxy: &str| {
        let named = settings("openai-compatible", endpoint);
        connect(&Settings {
            key: None,
            context_tokens: Some(1),
            proxy: Some(proxy.into()),
            ..named
        })
        .unwrap()
    };
    let outside = through("http://model.example", &peer.url);
    assert!(outside.external());
    assert_eq!(ask(&*outside, question()).await.1, None);
    assert_eq!(peer.chats()[0].path, "http://model.example/v1/chat/completions");
    // Control: nothing listens at this proxy, and it is not used.
    let near = Peer::start("openai-compatible", replies).await;
    assert_eq!(ask(&*through(&near.url, "http://127.0.0.1:1"), question()).await.1, None);
    assert_eq!(near.chats()[0].path, "/v1/chat/completions");
}
