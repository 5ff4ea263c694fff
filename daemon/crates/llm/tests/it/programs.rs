//! Command-line agents: decoding of their output, and refusals before one is started.
//!
//! `claudeCode/text.ndjson`, `claudeCode/error_login.ndjson` and `codex/text.ndjson` were written
//! by the programs themselves (Claude Code 2.1.197 and Codex of the same week) with a stub server;
//! the list in the first line was shortened. The other fixtures were written by hand in the formats
//! of their references.

use std::sync::{Arc, Mutex};

use cairn_llm::{
    Chunk, Exit, Launch, Launcher, LlmError, ModelRequest, Piece, Provider, Recorded, Running,
    Settings, ToolOffer, connect,
};
use cairn_protocol::model::{FinishReason, Part};
use cairn_protocol::{error::Failure, model::Message};
use tokio::sync::mpsc;

use crate::{ask, fixture, question, shapes::line};

#[tokio::test]
async fn agent_output_is_parsed() {
    for (provider, name, expected) in [
        ("claudeCode", "text", &["usage 25 15 0", "text Grüße, 世界 🌍!", "Stop"][..]),
        (
            "claudeCode",
            "steps",
            &[
                "thought where is it",
                "thought I look.",
                "usage 115 7 100",
                r#"text {"goals": []}"#,
                "Stop",
            ],
        ),
        ("codex", "text", &["usage 12 6 4", "text Hello from the stub.", "Stop"]),
        (
            "codex",
            "steps",
            &["thought **Looking**", "thought I look.", "usage 50 9 20", "text found", "Stop"],
        ),
    ] {
        let bytes = fixture(&format!("{provider}/{name}.ndjson"));
        let recorded = Recorded::new(provider, "m1", vec![bytes]).unwrap();
        let (chunks, error) = ask(&recorded, question()).await;
        assert_eq!(error, None, "{provider} {name}");
        assert_eq!(chunks.iter().map(line).collect::<Vec<_>>(), expected, "{provider} {name}");
    }
    for (provider, name, reason) in [
        ("claudeCode", "error_login", "model_unauthorized"),
        ("claudeCode", "error_limit", "model_rate_limited"),
        ("claudeCode", "error_model", "model_not_found"),
        ("claudeCode", "error_turns", "model_unavailable"),
        ("codex", "error_login", "model_unauthorized"),
        ("codex", "error_only", "model_rate_limited"),
    ] {
        let bytes = fixture(&format!("{provider}/{name}.ndjson"));
        let recorded = Recorded::new(provider, "m1", vec![bytes]).unwrap();
        let failure = Failure::from(ask(&recorded, question()).await.1.unwrap());
        assert_eq!(failure.reason.as_str(), reason, "{provider} {name}: {failure}");
    }
}

/// Launcher that answers every launch with the same pieces and stores the launches.
struct Stub {
    pieces: Vec<Vec<u8>>,
    exit: Exit,
    launches: Mutex<Vec<Launch>>,
}

#[async_trait::async_trait]
impl Launcher for Stub {
    fn check(&self, _provider: &str) -> Result<(), LlmError> {
        Ok(())
    }

    async fn launch(&self, launch: Launch) -> Result<Running, LlmError> {
        self.launches.lock().unwrap().push(launch);
        let (sender, pieces) = mpsc::channel(64);
        for piece in &self.pieces {
            sender.try_send(Piece::Out(piece.clone())).unwrap();
        }
        sender.try_send(Piece::End(Ok(self.exit.clone()))).unwrap();
        Ok(Running { pieces, guard: Box::new(()) })
    }
}

fn stub(
    provider: &str,
    model: &str,
    pieces: &[&[u8]],
    exit: Exit,
) -> (Arc<Stub>, Arc<dyn Provider>) {
    let pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
    let stub = Arc::new(Stub { pieces, exit, launches: Mutex::default() });
    let launcher: Arc<dyn Launcher> = Arc::<Stub>::clone(&stub);
    let settings = Settings {
        provider: provider.into(),
        model: model.into(),
        launcher: Some(launcher),
        ..Settings::default()
    };
    (stub, connect(&settings).unwrap())
}

fn session_request() -> ModelRequest {
    let session = Some("ses_0197f3c0000070008000000000000000".parse().unwrap());
    ModelRequest { session, ..question() }
}

#[tokio::test]
async fn prompt_is_sent_by_standard_input_only() {
    let bytes = fixture("codex/text.ndjson");
    let (head, tail) = bytes.split_at(100);
    let (launched, codex) = stub("codex", "gpt-5", &[head, tail], Exit::default());
    let schema = serde_json::json!({"type": "object"});
    let request =
        ModelRequest { system: "be short".into(), schema: Some(schema), ..session_request() };
    let (chunks, error) = ask(&*codex, request).await;
    assert_eq!((error, chunks.last()), (None, Some(&Chunk::Finish(FinishReason::Stop))));
    let launch = launched.launches.lock().unwrap().remove(0);
    assert_eq!(
        launch.arguments,
        ["exec", "--json", "--skip-git-repo-check", "--sandbox", "read-only", "-m", "gpt-5", "-"]
    );
    for expected in ["be short", r#"{"type":"object"}"#, "how are you?"] {
        assert!(launch.prompt.contains(expected), "{}", launch.prompt);
    }
    let (launched, claude) =
        stub("claudeCode", "", &[&fixture("claudeCode/text.ndjson")], Exit::default());
    assert_eq!(ask(&*claude, session_request()).await.1, None);
    let launch = launched.launches.lock().unwrap().remove(0);
    assert_eq!(launch.arguments, ["-p", "--output-format", "stream-json", "--verbose"]);
    assert_eq!((launch.prompt.as_str(), claude.external()), ("how are you?", true));
    // A conversation becomes one text.
    let messages = vec![
        Message::user("a"),
        Message::Assistant { text: "b".into(), calls: vec![], reasoning: None },
        Message::user("c"),
    ];
    ask(&*claude, ModelRequest { messages, ..session_request() }).await;
    assert_eq!(launched.launches.lock().unwrap()[0].prompt, "User: a\n\nAssistant: b\n\nUser: c");
}

#[tokio::test]
async fn unsupported_request_starts_no_agent() {
    let (launched, claude) = stub("claudeCode", "", &[], Exit::default());
    let tool = ToolOffer::new("t", "", &serde_json::json!({})).unwrap();
    let image =
        Message::User { parts: vec![Part::Image { mime: "image/png".into(), data: "AA".into() }] };
    for (request, reason) in [
        (ModelRequest { tools: vec![tool], ..session_request() }, "not_supported"),
        (ModelRequest { messages: vec![image], ..session_request() }, "model_rejected"),
        (ModelRequest { session: None, ..session_request() }, "model_rejected"),
    ] {
        let failure = Failure::from(ask(&*claude, request).await.1.unwrap());
        assert_eq!(failure.reason.as_str(), reason, "{failure}");
    }
    let (option, codex) =
        stub("codex", "--dangerously-bypass-approvals-and-sandbox", &[], Exit::default());
    assert!(matches!(ask(&*codex, session_request()).await.1, Some(LlmError::Rejected(_))));
    assert!(
        launched.launches.lock().unwrap().is_empty() && option.launches.lock().unwrap().is_empty()
    );
    let settings = Settings { provider: "codex".into(), ..Settings::default() };
    assert!(matches!(connect(&settings), Err(LlmError::NotSupported(_))));
}

#[tokio::test]
async fn exits_without_an_answer_are_classified() {
    let exit =
        |code: i32, timed_out: bool, stderr: &str| Exit { code, timed_out, stderr: stderr.into() };
    let start = br#"{"type":"thread.started","thread_id":"t"}"#;
    let start = [&start[..], b"\n"].concat();
    for (pieces, exit, reason, words) in [
        (&[][..], exit(0, false, ""), "model_cut", "codex"),
        (&[][..], exit(3, false, "boom\nmore"), "model_unavailable", "exited with 3: boom more"),
        (
            &[][..],
            exit(1, false, "Read-only file system"),
            "model_unavailable",
            "codex.credentials_writable",
        ),
        (&[&start[..]][..], exit(0, true, ""), "model_timed_out", "within"),
        (&[&start[..]][..], exit(1, false, "Not logged in"), "model_unauthorized", "codex login"),
        (&[&b"<html>\n"[..]][..], exit(0, false, ""), "model_malformed", "<html>"),
    ] {
        let (_, codex) = stub("codex", "", pieces, exit.clone());
        let failure = Failure::from(ask(&*codex, session_request()).await.1.unwrap());
        assert_eq!(failure.reason.as_str(), reason, "{exit:?}: {failure}");
        assert!(failure.message.contains(words), "{failure}");
    }
}
