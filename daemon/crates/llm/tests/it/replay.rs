//! Replay of recorded answers, and scripts.

use std::time::{Duration, Instant};

use cairn_llm::{
    Chunk, Expect, Fault, FaultKind, LlmError, ModelRequest, Provider, Recorded, Recording, Script,
    Scripted, ScriptedAnswer, ScriptedCall, Settings, Step, connect,
};
use cairn_protocol::model::{FinishReason, Message, TokenUsage};
use serde_json::json;

use crate::{
    ask, connected,
    peer::{End, Peer, Reply},
    question,
    shapes::{SHAPES, line},
};

#[tokio::test]
async fn recorded_answer_replays_identically() {
    for (provider, name, _) in SHAPES {
        let recording = Recording::default();
        // Bytes of the failed attempt before must not be in the recording.
        let failed = Reply::new(503, "application/json", "{}");
        let peer = Peer::start(provider, vec![failed, Reply::fixture(name)]).await;
        let request = ModelRequest { recording: Some(recording.clone()), ..question() };
        let (live, live_error) = ask(&*connected(provider, &peer.url), request).await;
        let bytes = recording.take();
        assert_eq!(bytes, crate::fixture(name));
        let url = peer.url.clone();
        drop(peer);
        let recorded = Recorded::new(provider, "m1", vec![bytes]).unwrap().with_context(Some(9));
        assert_eq!(
            (recorded.name(), recorded.model(), recorded.external()),
            (*provider, "m1", false)
        );
        assert_eq!((recorded.context_tokens(), recorded.remaining()), (Some(9), 1));
        let (played, error) = ask(&recorded, question()).await;
        assert_eq!(played, live, "{name}");
        let same = |error: Option<LlmError>| {
            let text =
                |e: LlmError| e.to_string().replace(&format!("{provider} at {url}/v1beta"), "X");
            error.map(|e| text(e).replace(&format!("{provider} at {url}/v1"), "X"))
        };
        let same = |error| same(error).map(|e| e.replace(&format!("{provider} at {url}"), "X"));
        assert_eq!(
            same(error).map(|e| e.replace(&format!("the recording of {provider}"), "X")),
            same(live_error)
        );
        let (_, over) = ask(&recorded, question()).await;
        assert!(
            matches!(&over, Some(LlmError::Rejected(text)) if text.contains("all 1 recorded")),
            "{over:?}"
        );
    }
    assert!(matches!(Recorded::new("apple", "m", vec![]), Err(LlmError::UnknownProvider { .. })));
    // A truncated answer replays as a truncated one.
    let cut = Recorded::new("openai", "m", vec![crate::fixture("openai/text.sse")[..700].to_vec()])
        .unwrap();
    let (_, error) = ask(&cut, question()).await;
    assert!(matches!(error, Some(LlmError::Cut(_))), "{error:?}");
}

#[tokio::test]
async fn failed_attempt_is_not_recorded() {
    let recording = Recording::default();
    let cut = Reply::fixture("openai/text.sse").cut(60, End::Broken);
    let peer = Peer::start("openai", vec![cut, Reply::fixture("openai/text.sse")]).await;
    let request = ModelRequest { recording: Some(recording.clone()), ..question() };
    ask(&*connected("openai", &peer.url), request).await;
    assert_eq!((peer.chats().len(), recording.take()), (2, crate::fixture("openai/text.sse")));
}

fn script() -> Scripted {
    let call = |name: &str| {
        Step::Call(ScriptedCall { id: None, name: name.into(), arguments: json!({ "path": "a" }) })
    };
    let usage =
        TokenUsage { input_tokens: 5, output_tokens: 2, cached_tokens: 1, ..TokenUsage::default() };
    let fault =
        Fault { kind: FaultKind::RateLimited, text: "slow".into(), retry_after_ms: Some(7) };
    Scripted::new(vec![
        ScriptedAnswer::new(vec![
            Step::Reasoning("hm".into()),
            Step::Text("I ".into()),
            Step::Text("look".into()),
            call("fs_read"),
            call("git_status"),
            Step::Usage(usage),
        ]),
        ScriptedAnswer::from("done").expecting(Expect::LastRole("tool".into())),
        ScriptedAnswer::new(vec![Step::Fault(fault)]),
        ScriptedAnswer::new(vec![Step::Text("so".into()), Step::Cut]),
    ])
}

#[tokio::test]
async fn script_answers_in_order_and_fails_when_exhausted() {
    let script = script();
    let recording = Recording::default();
    let request = ModelRequest { recording: Some(recording.clone()), ..question() };
    let (chunks, error) = ask(&script, request).await;
    assert_eq!(error, None);
    let lines: Vec<String> = chunks.iter().map(line).collect();
    assert_eq!(
        lines,
        [
            "thought hm",
            "text I ",
            "text look",
            "call 0 call_1_0 fs_read",
            r#"args 0 {"path":"a"}"#,
            "call 1 call_1_1 git_status",
            r#"args 1 {"path":"a"}"#,
            "usage 5 2 1",
            "ToolCalls"
        ]
    );
    let (_, refused) = ask(&script, question()).await;
    let text = refused.unwrap().to_string();
    assert!(
        text.contains("answer 2 expects LastRole(\"tool\")") && text.contains("user"),
        "{text}"
    );
    let (_, limited) = ask(&script, question()).await;
    let retry_after = Some(Duration::from_millis(7));
    assert_eq!(limited, Some(LlmError::RateLimited { text: "slow".into(), retry_after }));
    let (chunks, cut) = ask(&script, question()).await;
    assert_eq!(chunks, [Chunk::Text("so".into())]);
    assert!(matches!(cut, Some(LlmError::Cut(_))));
    assert_eq!(script.remaining(), 0);
    let (_, over) = ask(&script, question()).await;
    assert_eq!(over.unwrap().to_string(), "the script has 4 answers, and this is request 5");
    assert_eq!(script.requests().len(), 5);

    // Its recording replays like any other; generated ids are those of the recording.
    let recorded = Recorded::new("scripted", "script", vec![recording.take()]).unwrap();
    let (played, error) = ask(&recorded, question()).await;
    assert_eq!((error, played.len()), (None, 9));
    assert_eq!(played.last(), Some(&Chunk::Finish(FinishReason::ToolCalls)));
    assert_eq!(
        played[..3],
        [Chunk::Reasoning("hm".into()), Chunk::Text("I ".into()), Chunk::Text("look".into())]
    );
}

#[tokio::test]
async fn unmet_expectation_is_reported() {
    let request = ModelRequest {
        system: "be brief".into(),
        messages: vec![Message::user("old words"), Message::user("new words")],
        ..ModelRequest::default()
    };
    for (expect, met) in [
        (Expect::LastContains("new".into()), true),
        (Expect::LastContains("old".into()), false),
        (Expect::AnyContains("old".into()), true),
        (Expect::AnyContains("brief".into()), true),
        (Expect::AnyContains("young".into()), false),
        (Expect::NoneContains("young".into()), true),
        (Expect::NoneContains("old".into()), false),
        (Expect::SystemContains("brief".into()), true),
        (Expect::SystemContains("new".into()), false),
        (Expect::LastRole("user".into()), true),
        (Expect::LastRole("tool".into()), false),
        (Expect::OffersNot("x".into()), true),
        (Expect::OffersTool("x".into()), false),
        (Expect::Messages(2), true),
        (Expect::Messages(3), false),
        (Expect::Schema(false), true),
        (Expect::Schema(true), false),
    ] {
        let script = Scripted::new(vec![ScriptedAnswer::from("x").expecting(expect.clone())]);
        let (_, error) = ask(&script, request.clone()).await;
        assert_eq!(error.is_none(), met, "{expect:?}: {error:?}");
    }
}

#[tokio::test]
async fn scripts_are_parsed_from_files_in_three_formats() {
    let folder = tempfile::tempdir().unwrap();
    let answer = r#"{"expect":[{"messages":1}],"delayMs":1,"steps":[{"text":"a"},{"delayMs":1},{"text":"b"}]}"#;
    let broken = r#"{"steps":[{"call":{"name":"x","arguments":"{broken"}},{"finish":"length"}]}"#;
    let script_text =
        format!(r#"{{"model":"tiny","contextTokens":99,"answers":[{answer},{broken}]}}"#);
    for (name, text, model) in [
        ("whole.json", script_text, "tiny"),
        ("list.json", format!("[{answer},\n{broken}]"), "script"),
        ("lines.jsonl", format!("// two answers\n{answer}\n\n{broken}\n"), "script"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let endpoint = Some(path.display().to_string());
        let settings = Settings { provider: "scripted".into(), endpoint, ..Settings::default() };
        let script = connect(&settings).unwrap();
        assert_eq!((script.model(), script.external()), (model, false));
        assert_eq!(
            script.models().await.unwrap()[0].context_tokens,
            (model == "tiny").then_some(99)
        );
        let (chunks, error) = ask(&*script, question()).await;
        assert_eq!(error, None, "{name}");
        assert_eq!(chunks.iter().map(line).collect::<Vec<_>>(), ["text a", "text b", "Stop"]);
        let (chunks, _) = ask(&*script, question()).await;
        assert_eq!(
            chunks.iter().map(line).collect::<Vec<_>>(),
            ["call 0 call_2_0 x", "args 0 {broken", "Length"]
        );
    }
    for (text, words) in [
        ("{\"steps\":[]}\n{\"steps\":[{\"txt\":\"a\"}]}", "line 2: unknown variant `txt`"),
        ("[{\"steps\":[],\"other\":1}]", "unknown field `other`"),
        ("{\"answers\":7}", "invalid type"),
        ("7", "neither a script nor a list"),
        ("", ""),
    ] {
        let read = Script::parse(text);
        if text.is_empty() {
            assert_eq!(read.unwrap().answers.len(), 0);
        } else {
            let error = read.unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
    let missing = Scripted::read(&folder.path().join("none")).unwrap_err();
    assert!(matches!(&missing, LlmError::Rejected(text) if text.contains("none")), "{missing:?}");
}

#[tokio::test]
async fn script_hangs_and_delays_as_specified() {
    let steps = vec![Step::Text("a".into()), Step::Text("b".into()), Step::Hang];
    let script =
        Scripted::new(vec![ScriptedAnswer { delay_ms: 30, steps, ..ScriptedAnswer::default() }]);
    let started = Instant::now();
    let mut stream = script.chat(question()).await.unwrap();
    for _ in 0..2 {
        futures_util::StreamExt::next(&mut stream).await.unwrap().unwrap();
    }
    assert!(started.elapsed() >= Duration::from_millis(30));
    let more = futures_util::StreamExt::next(&mut stream);
    assert!(tokio::time::timeout(Duration::from_millis(50), more).await.is_err());
}
