//! Reasoning: its effort in requests, and its items back to the provider that sent them.

use std::sync::Arc;

use cairn_llm::{Chunk, Effort, ModelRequest, OpenAiApi, Settings, ToolOffer, connect};
use cairn_model_presets::{Preset, Presets};
use cairn_protocol::model::{Message, ProviderReasoning, ToolUse};
use serde_json::{Value, json};

use crate::{
    ask,
    peer::{Peer, Reply, Request},
    question, settings,
};

/// An answer with reasoning before its calls, and where the next request has it.
pub struct Case {
    pub provider: &'static str,
    pub api: OpenAiApi,
    pub model: &'static str,
    pub answer: &'static str,
    /// JSON pointer in the next request, and the value there.
    pub pointer: &'static str,
    pub value: &'static str,
}

pub const CASES: &[Case] = &[
    Case {
        provider: "anthropic",
        api: OpenAiApi::Chat,
        model: "claude-sonnet-5-5",
        answer: "anthropic/reasoning_tool.sse",
        pointer: "/messages/1/content/0/signature",
        value: "EqQBCgIYAhIM1gbcDa9GJwZA2b3h",
    },
    Case {
        provider: "openai",
        api: OpenAiApi::Responses,
        model: "gpt-5.6-terra",
        answer: "openai/responses_reasoning.sse",
        pointer: "/input/1/encrypted_content",
        value: "gAAAAABo5r",
    },
    Case {
        provider: "gemini",
        api: OpenAiApi::Chat,
        model: "gemini-3.8-flash",
        answer: "gemini/tools.sse",
        pointer: "/contents/1/parts/1/thoughtSignature",
        value: "CiQBVKhc7kp1",
    },
];

/// Returns the message of an answer, as a host creates it from the chunks.
fn message(chunks: &[Chunk], provider: &str, model: &str) -> Message {
    let (mut text, mut calls, mut items) = (String::new(), Vec::new(), Vec::new());
    for chunk in chunks {
        match chunk {
            Chunk::Text(part) => text.push_str(part),
            Chunk::CallStart { id, name, .. } => {
                calls.push((id.clone(), name.clone(), String::new()));
            }
            Chunk::CallArguments { index, delta } => calls[*index].2.push_str(delta),
            Chunk::ReasoningItem(item) => items.push(item.clone()),
            _ => {}
        }
    }
    let call = |(id, name, arguments): (String, String, String)| ToolUse {
        id,
        name,
        arguments: serde_json::from_str(&arguments).unwrap_or(Value::Null),
    };
    let (provider, model) = (provider.to_owned(), model.to_owned());
    Message::Assistant {
        text,
        calls: calls.into_iter().map(call).collect(),
        reasoning: Some(ProviderReasoning { provider, model, items }),
    }
}

/// Answers the calls of a message.
fn results(message: &Message) -> Vec<Message> {
    let Message::Assistant { calls, .. } = message else { panic!("no answer") };
    assert!(!calls.is_empty());
    let result = |call: &ToolUse| Message::Tool {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: "done".into(),
        failed: false,
    };
    calls.iter().map(result).collect()
}

/// Makes a request, and a second one with the answer and the results of its calls. Returns both.
pub async fn continued(case: &Case) -> Vec<Request> {
    let peer = Peer::start(case.provider, vec![Reply::fixture(case.answer)]).await;
    let settings = Settings {
        model: case.model.into(),
        api: case.api,
        reasoning_effort: Some(Effort::High),
        ..settings(case.provider, &peer.url)
    };
    let provider = connect(&settings).unwrap();
    let tools = ["fs_read", "search_grep"]
        .map(|name| ToolOffer::new(name, "d", &json!({ "type": "object" })).unwrap());
    let mut request = ModelRequest { tools: tools.into(), ..question() };
    let (chunks, error) = ask(&*provider, request.clone()).await;
    assert_eq!(error, None);
    let answer = message(&chunks, case.provider, case.model);
    let results = results(&answer);
    request.messages.push(answer);
    request.messages.extend(results);
    assert_eq!(ask(&*provider, request).await.1, None);
    peer.chats()
}

#[tokio::test]
async fn items_return_to_the_model_that_sent_them() {
    for case in CASES {
        let sent = &continued(case).await[1].body;
        let value = sent.pointer(case.pointer).and_then(Value::as_str);
        assert!(value.is_some_and(|value| value.starts_with(case.value)), "{sent:#}");
    }
}

#[tokio::test]
async fn items_of_another_model_are_left_out() {
    for case in CASES {
        let peer = Peer::start(case.provider, vec![Reply::fixture(case.answer)]).await;
        let own = Settings {
            model: case.model.into(),
            api: case.api,
            ..settings(case.provider, &peer.url)
        };
        let (chunks, _) = ask(&*connect(&own).unwrap(), question()).await;
        let answer = message(&chunks, case.provider, "another");
        let results = results(&answer);
        let mut request = question();
        request.messages.push(answer);
        request.messages.extend(results);
        let thinks = Settings { reasoning_effort: Some(Effort::High), ..own };
        assert_eq!(ask(&*connect(&thinks).unwrap(), request).await.1, None);
        let sent = peer.chats().remove(1).body;
        assert!(!sent.to_string().contains(case.value), "{sent:#}");
        // Anthropic refuses to think about calls that were made without its thinking.
        assert!(case.provider != "anthropic" || sent.get("thinking").is_none(), "{sent:#}");
    }
}

fn with_preset(preset: Preset) -> Arc<Presets> {
    let models = [("m1".to_owned(), preset)].into();
    let providers = [("anthropic".to_owned(), models)].into();
    Arc::new(Presets { providers, ..Presets::default() })
}

#[tokio::test]
async fn anthropic_thinks_as_the_model_allows() {
    let adaptive = Preset { adaptive_thinking: true, reasoning: true, ..Preset::default() };
    let budget = Preset { reasoning: true, ..Preset::default() };
    for (preset, effort, max_tokens, thinking, output) in [
        (
            adaptive.clone(),
            Some(Effort::XHigh),
            100,
            json!({ "type": "adaptive", "display": "summarized" }),
            json!({ "effort": "xhigh" }),
        ),
        (adaptive.clone(), Some(Effort::None), 100, json!({ "type": "disabled" }), Value::Null),
        (adaptive, None, 100, Value::Null, Value::Null),
        (
            budget.clone(),
            Some(Effort::Low),
            4096,
            json!({ "type": "enabled", "budget_tokens": 2048 }),
            Value::Null,
        ),
        // A budget below the minimum is not requested.
        (budget, Some(Effort::None), 4096, Value::Null, Value::Null),
        (Preset::default(), Some(Effort::Max), 4096, Value::Null, Value::Null),
    ] {
        let peer = Peer::start("anthropic", vec![Reply::fixture("anthropic/text.sse")]).await;
        let settings = Settings {
            reasoning_effort: effort,
            presets: with_preset(preset),
            ..settings("anthropic", &peer.url)
        };
        let request = ModelRequest { max_tokens, temperature: Some(0.5), ..question() };
        assert_eq!(ask(&*connect(&settings).unwrap(), request).await.1, None);
        let sent = peer.chats().remove(0).body;
        assert_eq!((&sent["thinking"], &sent["output_config"]), (&thinking, &output), "{effort:?}");
        // No model takes both.
        assert_eq!(sent["temperature"].is_null(), !thinking.is_null(), "{sent}");
    }
}

#[tokio::test]
async fn anthropic_model_without_structured_output_is_forced_by_a_tool() {
    let peer = Peer::start("anthropic", vec![Reply::fixture("anthropic/schema.sse")]).await;
    let settings = Settings {
        presets: with_preset(Preset { reasoning: true, ..Preset::default() }),
        reasoning_effort: Some(Effort::High),
        ..settings("anthropic", &peer.url)
    };
    let schema = json!({ "type": "object", "properties": { "title": { "type": "string" } } });
    let answer = ToolOffer::new("answer", "d", &json!({})).unwrap();
    let request = ModelRequest { schema: Some(schema.clone()), tools: vec![answer], ..question() };
    assert_eq!(ask(&*connect(&settings).unwrap(), request).await.1, None);
    let sent = peer.chats().remove(0).body;
    // An offered tool already uses the default name of the answer's tool.
    assert_eq!(sent["tool_choice"]["name"], "answer_");
    assert_eq!(sent["tools"][1]["input_schema"], schema);
    assert!(sent.get("thinking").is_none());
}

#[tokio::test]
async fn cost_follows_the_presets_and_the_provider_report() {
    let peer = Peer::start("gemini", vec![Reply::fixture("gemini/tools.sse")]).await;
    let gemini = Settings { model: "gemini-3.8-flash".into(), ..settings("gemini", &peer.url) };
    let provider = connect(&gemini).unwrap();
    let (chunks, _) = ask(&*provider, question()).await;
    let usage = chunks.iter().rev().find_map(|chunk| match chunk {
        Chunk::Usage(usage) => Some(*usage),
        _ => None,
    });
    // 26 new tokens for .75, 64 cached ones for .075 and 31 written ones for 3.75 dollars a million.
    assert_eq!(provider.cost(&usage.unwrap()), Some(141));
    let peer = Peer::start("openrouter", vec![Reply::fixture("openai/openrouter_cost.sse")]).await;
    let provider = connect(&settings("openrouter", &peer.url)).unwrap();
    let (chunks, error) = ask(&*provider, question()).await;
    assert_eq!(error, None);
    let cost = chunks.iter().find_map(|chunk| match chunk {
        Chunk::Usage(usage) => usage.cost_micro_usd,
        _ => None,
    });
    assert_eq!((cost, peer.chats()[0].body["usage"]["include"].clone()), (Some(1435), json!(true)));
    assert_eq!(provider.name(), "openrouter");
}
