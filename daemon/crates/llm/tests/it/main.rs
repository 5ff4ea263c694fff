//! Tests of providers against servers that check each request, servers that break, and one real
//! server.
#![expect(clippy::unwrap_used, reason = "tests")]

mod catalog;
mod faults;
mod peer;
mod programs;
mod real;
mod reasoning;
mod refusals;
mod replay;
mod requests;
mod rules;
mod sdks;
mod secrets;
mod shapes;
mod split;

use std::{path::Path, sync::Arc, time::Duration};

use cairn_llm::{Chunk, ChunkStream, Key, LlmError, ModelRequest, Provider, Settings, connect};
use cairn_protocol::model::Message;
use futures_util::StreamExt;

/// A key that must not occur in any output.
const CANARY: &str = "sk-canary-0123456789-secret-value";

/// Returns the bytes of a file in `fixtures`.
fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns settings for a test's server: a key, three attempts, no pauses.
fn settings(provider: &str, endpoint: &str) -> Settings {
    Settings {
        provider: provider.into(),
        model: "m1".into(),
        endpoint: Some(endpoint.into()),
        key: Key::new(CANARY),
        idle_timeout: Duration::from_secs(10),
        total_timeout: Duration::from_secs(20),
        backoff: Duration::from_millis(1),
        ..Settings::default()
    }
}

fn connected(provider: &str, endpoint: &str) -> Arc<dyn Provider> {
    connect(&settings(provider, endpoint)).unwrap()
}

fn question() -> ModelRequest {
    ModelRequest {
        messages: vec![Message::user("how are you?")],
        max_tokens: 100,
        ..ModelRequest::default()
    }
}

/// Collects all chunks and the error at the end.
async fn all(mut stream: ChunkStream) -> (Vec<Chunk>, Option<LlmError>) {
    let mut chunks = Vec::new();
    while let Some(item) = stream.next().await {
        match item {
            Ok(chunk) => chunks.push(chunk),
            Err(error) => return (chunks, Some(error)),
        }
    }
    (chunks, None)
}

/// Sends a request and collects all chunks; an error before the stream counts as one after no
/// chunks.
async fn ask(provider: &dyn Provider, request: ModelRequest) -> (Vec<Chunk>, Option<LlmError>) {
    match provider.chat(request).await {
        Ok(stream) => all(stream).await,
        Err(error) => (Vec::new(), Some(error)),
    }
}
