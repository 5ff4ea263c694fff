//! Providers against servers that check what they are sent, break as servers do, and one that is real.
#![expect(clippy::unwrap_used, reason = "tests")]

mod catalog;
mod faults;
mod peer;
mod programs;
mod real;
mod refusals;
mod replay;
mod requests;
mod rules;
mod secrets;
mod shapes;
mod split;

use std::{path::Path, sync::Arc, time::Duration};

use cairn_llm::{Chunk, ChunkStream, Key, LlmError, ModelRequest, Provider, Settings, connect};
use cairn_protocol::model::Message;
use futures_util::StreamExt;

/// A key that must turn up nowhere.
const CANARY: &str = "sk-canary-0123456789-secret-value";

/// The bytes of a file in `fixtures`.
fn fixture(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Settings for a test's server: a key, three attempts, no waits.
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
    ModelRequest { messages: vec![Message::user("how are you?")], max_tokens: 100, ..ModelRequest::default() }
}

/// All that comes, and how it ends.
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

/// Asks and takes all; an error before the stream is one after nothing.
async fn ask(provider: &dyn Provider, request: ModelRequest) -> (Vec<Chunk>, Option<LlmError>) {
    match provider.chat(request).await {
        Ok(stream) => all(stream).await,
        Err(error) => (Vec::new(), Some(error)),
    }
}
