//! Judgement of requests and streams by the official SDKs of the providers: their parameter types
//! check Cairn's bodies, and their stream parsers read the recorded answers that Cairn reads.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use cairn_llm::{Chunk, ModelRequest, Settings, ToolOffer, connect};
use cairn_protocol::model::{Message, TokenUsage, ToolUse};
use serde_json::{Value, json};

use crate::{
    ask, connected,
    peer::{Peer, Reply, Request},
    question,
    real::report,
    reasoning::{CASES, continued},
    requests::{PROVIDERS, conversation, responses},
    settings,
    shapes::SHAPES,
};

/// Returns the judgement of a task, or `None` after a notice if the SDKs are missing. With
/// `CAIRN_TEST_PEERS=required` a missing SDK fails the test.
fn judge(task: &Value) -> Option<Value> {
    let python = std::env::var("CAIRN_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let probe = ["-c", "import anthropic, google.genai, ollama, openai, pydantic"];
    let there =
        Command::new(&python).args(probe).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        let required = std::env::var("CAIRN_TEST_PEERS").is_ok_and(|value| value == "required");
        assert!(
            !required,
            "python's anthropic, google-genai, ollama and openai are required and missing"
        );
        report("left out: python's anthropic, google-genai, ollama or openai are missing");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdks.py");
    let mut command = Command::new(python);
    let mut child =
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(task.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "sdks.py failed");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// Number of requests that the SDKs' types must accept.
const ACCEPTED: usize = 18 + 2 * CASES.len();

/// SDK whose types and parsers apply to a provider.
fn sdk<'a>(provider: &'a str, path: &str) -> &'a str {
    match provider {
        "openai" if path.contains("responses") => "responses",
        "openai-compatible" => "openai",
        _ => provider,
    }
}

/// A conversation that began with another provider, with a tool whose arguments are a union.
fn moved() -> ModelRequest {
    let call =
        |id: &str| ToolUse { id: id.into(), name: "a.b c".into(), arguments: json!({ "x": 1 }) };
    let result = |id: &str| Message::Tool {
        call_id: id.into(),
        name: "a.b c".into(),
        content: "done".into(),
        failed: false,
    };
    let action = |name: &str| json!({ "properties": { "action": { "const": name } } });
    let union = json!({ "oneOf": [action("load"), action("save")] });
    ModelRequest {
        messages: vec![
            Message::user("begin"),
            Message::Assistant {
                text: String::new(),
                calls: vec![call("functions.a:0"), call("functions.a:1")],
                reasoning: None,
            },
            result("functions.a:0"),
            result("functions.a:1"),
            Message::user("go on"),
        ],
        tools: vec![
            ToolOffer::new("memory", "d", &union).unwrap(),
            ToolOffer::new("datetime", "d", &json!({ "type": "object" })).unwrap(),
        ],
        ..question()
    }
}

fn judged(provider: &str, request: &Request) -> Value {
    json!({ "provider": sdk(provider, &request.path), "body": request.body })
}

#[tokio::test]
async fn sdk_types_accept_every_request() {
    let mut requests = Vec::new();
    for (provider, name) in PROVIDERS {
        let peer = Peer::start(provider, vec![Reply::fixture(name)]).await;
        let settings = Settings { context_tokens: Some(16_384), ..settings(provider, &peer.url) };
        let connected = connect(&settings).unwrap();
        // The report of progress is an extension of llama.cpp, which no SDK knows. Anthropic's SDK
        // has no temperature any more: only version 2023-06-01 of the API takes one, of some models.
        let temperature = Some(1.5).filter(|_| *provider != "anthropic");
        let talk = ModelRequest { prompt_progress: false, temperature, ..conversation() };
        for request in [question(), talk, moved()] {
            assert_eq!(ask(&*connected, request).await.1, None);
        }
        requests.extend(peer.chats().iter().map(|chat| judged(provider, chat)));
    }
    let peer = Peer::start("openai", vec![Reply::fixture("openai/responses_text.sse")]).await;
    let provider = connect(&responses(&peer.url)).unwrap();
    for request in [question(), conversation(), moved()] {
        assert_eq!(ask(&*provider, request).await.1, None);
    }
    requests.extend(peer.chats().iter().map(|chat| judged("openai", chat)));
    for case in CASES {
        requests.extend(continued(case).await.iter().map(|chat| judged(case.provider, chat)));
    }
    let accepted = requests.len();
    // Control: the same bodies with a field that no provider has.
    for request in requests.clone() {
        let mut request = request;
        request["body"]["bogus"] = json!(1);
        requests.push(request);
    }
    let Some(judgement) = judge(&json!({ "requests": requests, "streams": [] })) else { return };
    let all = judgement["requests"].as_array().unwrap();
    assert_eq!((accepted, all.len()), (ACCEPTED, 2 * ACCEPTED));
    for (number, (request, errors)) in requests.iter().zip(all).enumerate() {
        let is_accepted = errors.as_array().unwrap().is_empty();
        assert_eq!(is_accepted, number < accepted, "{request}\n{errors:#}");
    }
}

/// Reduces chunks to what the SDKs report: text, calls and usage.
fn summary(chunks: &[Chunk], has_ids: bool) -> Value {
    let mut text = String::new();
    let mut calls: Vec<(String, String, String)> = Vec::new();
    let mut usage = TokenUsage::default();
    for chunk in chunks {
        match chunk {
            Chunk::Text(part) => text.push_str(part),
            Chunk::CallStart { id, name, .. } => {
                let id = if has_ids { id.clone() } else { String::new() };
                calls.push((id, name.clone(), String::new()));
            }
            Chunk::CallArguments { index, delta } => calls[*index].2.push_str(delta),
            Chunk::Usage(now) => usage = *now,
            _ => {}
        }
    }
    let calls: Vec<Value> =
        calls.iter().map(|(id, name, text)| json!([id, name, arguments(text)])).collect();
    json!({ "text": text, "calls": calls, "usage": [usage.input_tokens, usage.output_tokens] })
}

fn arguments(text: &str) -> Value {
    if text.is_empty() { json!({}) } else { serde_json::from_str(text).unwrap() }
}

#[tokio::test]
async fn sdk_parsers_read_the_same_streams() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let streams: Vec<Value> = SHAPES
        .iter()
        .map(|(provider, name, _)| json!({ "provider": sdk(provider, name), "path": folder.join(name) }))
        .collect();
    let Some(judgement) = judge(&json!({ "requests": [], "streams": streams })) else { return };
    for ((provider, name, _), theirs) in SHAPES.iter().zip(judgement["streams"].as_array().unwrap())
    {
        let peer = Peer::start(provider, vec![Reply::fixture(name)]).await;
        let (chunks, error) = ask(&*connected(provider, &peer.url), question()).await;
        assert_eq!(theirs["error"].is_null(), error.is_none(), "{name}: {theirs} {error:?}");
        let mut theirs = theirs.clone();
        for call in theirs["calls"].as_array_mut().unwrap() {
            let text = call[2].as_str().unwrap().to_owned();
            call[2] = arguments(&text);
        }
        let ours = summary(&chunks, *provider != "ollama" && *name != "gemini/no_args.sse");
        assert_eq!((&ours["text"], &ours["calls"]), (&theirs["text"], &theirs["calls"]), "{name}");
        // The parsers report no usage of an answer that failed.
        assert!(error.is_some() || ours["usage"] == theirs["usage"], "{name}: {ours} {theirs}");
    }
}
