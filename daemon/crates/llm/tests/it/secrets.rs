//! Tests that a key is never printed.

use std::sync::{Arc, Mutex};

use cairn_llm::{Key, LlmError, Settings, connect};
use tracing_subscriber::fmt::MakeWriter;

use crate::{
    CANARY, ask, connected,
    peer::{End, Peer, Reply},
    question, settings,
};

/// Collects all tracing output.
#[derive(Clone, Default)]
struct Traced(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Traced {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Traced {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Returns answers of a server that prints the key back in every possible way.
fn echoes() -> Vec<Reply> {
    let body =
        format!(r#"{{"error":{{"message":"bad key {CANARY}, or '{CANARY}'","type":"{CANARY}"}}}}"#);
    let event = format!("data: {body}\n\n");
    let model =
        format!(r#"{{"error":{{"message":"model {CANARY} not found","code":"model_not_found"}}}}"#);
    let word = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    vec![
        Reply::new(401, "application/json", body.clone()),
        Reply::new(400, "application/json", body.clone()),
        Reply::new(403, "text/plain", CANARY),
        Reply::new(404, "application/json", model),
        Reply::new(429, "application/json", body.clone()),
        Reply::new(500, "application/json", body.clone()),
        Reply::new(302, "text/plain", "")
            .with("location", &format!("https://x/{CANARY}?k={CANARY}")),
        Reply::new(200, "application/json", body),
        Reply::new(200, "text/event-stream", event.clone()),
        Reply::new(200, "text/event-stream", format!("{word}{event}")),
        Reply::new(200, "text/event-stream", format!("data: not json {CANARY}\n\n")),
        Reply::new(200, "text/event-stream", format!("{word}data: not json {CANARY}\n\n")),
        Reply::new(200, "text/html", CANARY),
        Reply::new(200, "text/event-stream", CANARY).ending(End::Broken),
        Reply::hang_up(),
    ]
}

#[test]
fn key_is_absent_from_errors_debug_output_and_traces() {
    let traced = Traced::default();
    // Installed for the complete process: tracing caches the interest of call sites globally, so a
    // subscriber of one thread would miss call sites that parallel tests reached first.
    let lines = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false);
    lines.with_writer(traced.clone()).init();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let printed = runtime.block_on(print_all());
    let traced = String::from_utf8(traced.0.lock().unwrap().clone()).unwrap();
    // Control: both call sites traced the requests.
    assert!(traced.contains("model server answered") && traced.contains("retrying"), "{traced}");
    assert!(printed.contains("bad key ***"), "{printed}");
    for (what, text) in [("printed", printed), ("traced", traced)] {
        assert!(!text.contains(CANARY), "{what}: {text}");
        assert!(!text.contains("canary"), "{what}: part of it: {text}");
    }
}

async fn print_all() -> String {
    let mut printed = String::new();
    for provider in ["openai", "anthropic", "ollama", "openai-compatible"] {
        for echo in echoes() {
            let peer = Peer::start(provider, vec![echo]).await;
            let settings = settings(provider, &peer.url);
            printed += &format!("{settings:?}");
            let (_, error) = ask(&*connect(&settings).unwrap(), question()).await;
            let error = error.unwrap();
            printed += &format!(
                "{error:?} {error} {:?}\n",
                cairn_protocol::error::Failure::from(error.clone())
            );
        }
    }
    // A provider that prints a part of the key.
    let peer = Peer::start("openai", vec![Reply::error(401, "openai/error_key.json")]).await;
    let (_, error) = ask(&*connected("openai", &peer.url), question()).await;
    printed += &error.unwrap().to_string();
    for endpoint in ["ftp://h", "http://example.com", &format!("https://u:{CANARY}@h")] {
        let proxy = Some(format!("http://u:{CANARY}@h"));
        let settings = Settings { proxy, ..settings("openai", endpoint) };
        printed += &format!("{settings:?}");
        let Err(error) = connect(&settings) else { panic!("{endpoint}") };
        printed += &format!("{error} {error:?}");
    }
    printed + &format!("{:?} {:#?}", Key::new(CANARY), Key::new(CANARY))
}

#[test]
fn key_invalid_in_a_header_is_refused_and_padding_is_trimmed() {
    let with =
        |key: &str| connect(&Settings { key: Key::new(key), ..settings("openai", "https://h") });
    let Err(LlmError::Unauthorized(text)) = with("sk-a\nb") else { panic!("a line break") };
    assert!(!text.contains("sk-a"), "{text}");
    assert!(with(" sk-a\n").is_ok());
    assert!(Key::new(" \n").is_none());
    let Err(LlmError::Rejected(text)) = connect(&settings("openai", "http://example.com")) else {
        panic!("plain")
    };
    assert!(text.contains("unencrypted"), "{text}");
    assert!(
        connect(&Settings { key: None, ..settings("openai-compatible", "http://example.com") })
            .is_ok()
    );
}
