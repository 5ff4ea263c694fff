//! Tests of every option of the session builder, on a scripted model.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

use cairn::{
    ApprovalDecision, Failure, FnTool, PreambleOptions, Reason, Rules, Scripted, ScriptedAnswer,
    Session, SessionBuilder,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::script::{call_answer, text_answer};

#[derive(Deserialize, JsonSchema)]
struct Word {
    word: String,
}

fn echo() -> FnTool {
    FnTool::new("echo", "Says a word. It says nothing else.", |w: Word| async move {
        Ok::<_, Failure>(format!("heard {}", w.word))
    })
}

fn on(answers: Vec<ScriptedAnswer>) -> (Arc<Scripted>, SessionBuilder) {
    let script = Arc::new(Scripted::new(answers));
    let provider: Arc<dyn cairn::Provider> = Arc::<Scripted>::clone(&script);
    (script, Session::provider(provider))
}

#[cfg(feature = "llama")]
#[tokio::test]
async fn local_model_needs_its_file() {
    let failure = Session::local("/models/m.gguf").init().await.err().unwrap();
    assert_eq!(failure.reason, Reason::ModelNotFound);
    assert!(failure.message.contains("/models/m.gguf"), "{failure}");
}

#[tokio::test]
async fn unreachable_remote_is_named() {
    let session = Session::remote("http://127.0.0.1:9", "m").init().await.unwrap();
    let failure = session.chat("hi").await.unwrap_err();
    assert_eq!(failure.reason, Reason::ModelUnavailable, "{failure}");
    assert!(failure.message.contains("127.0.0.1:9"), "{failure}");
}

#[tokio::test]
async fn system_text_is_replaced_omitted_and_extended_in_order() {
    let built_in = on(vec![]).1.init().await.unwrap().render_system().await.unwrap();
    assert!(built_in.starts_with("You are Cairn's agent"));
    let session = on(vec![])
        .1
        .system("BASE")
        .system_append("ONE")
        .system_append_with(|| "TWO".into())
        .add_tool(echo().addendum("ADDENDUM"))
        .init()
        .await
        .unwrap();
    let text = session.render_system().await.unwrap();
    let positions: Vec<usize> = ["BASE", "ADDENDUM", "ONE", "TWO", "- echo — Says a word"]
        .iter()
        .map(|m| text.find(m).unwrap_or_else(|| panic!("{m} in {text}")))
        .collect();
    assert!(positions.is_sorted(), "{text}");
    assert!(!text.contains("You are Cairn's agent"));
    let none = on(vec![]).1.no_builtin_system().system_append("MINE").init().await.unwrap();
    assert!(none.render_system().await.unwrap().starts_with("MINE"));
}

#[tokio::test]
async fn dynamic_text_is_rendered_at_each_turn() {
    let (script, builder) = on(vec![text_answer("a"), text_answer("b")]);
    let count = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&count);
    let session = builder
        .system_append_with(move || format!("COUNT {}", counter.load(Ordering::SeqCst)))
        .init()
        .await
        .unwrap();
    session.chat("1").await.unwrap();
    count.store(7, Ordering::SeqCst);
    session.chat("2").await.unwrap();
    let requests = script.requests();
    assert!(requests[0].system.contains("COUNT 0") && requests[1].system.contains("COUNT 7"));
}

#[tokio::test]
async fn preamble_options_select_its_content() {
    let options = PreambleOptions {
        knowledge_cutoff: Some("May 2025".into()),
        no_clock: true,
        no_citing: true,
    };
    let session = on(vec![]).1.preamble_options(options).init().await.unwrap();
    let text = session.render_system().await.unwrap();
    assert!(
        text.contains("Your knowledge ends at May 2025") && !text.contains("The date and time is"),
        "{text}"
    );
    let plain = on(vec![]).1.init().await.unwrap().render_system().await.unwrap();
    assert!(plain.contains("The date and time is"));
}

#[tokio::test]
async fn default_tools_are_offered_unless_disabled() {
    let names = |s: &Session| s.engine().tools().into_iter().map(|t| t.name).collect::<Vec<_>>();
    let with = on(vec![]).1.init().await.unwrap();
    assert!(names(&with).iter().any(|n| n == "read_file"));
    let without = on(vec![]).1.with_default_tools(false).add_tool(echo()).init().await.unwrap();
    assert!(
        names(&without).iter().any(|n| n == "echo")
            && !names(&without).iter().any(|n| n == "read_file")
    );
    let failure = on(vec![]).1.add_tool(echo()).add_tool(echo()).init().await.err().unwrap();
    assert!(failure.message.contains("echo"), "{failure}");
}

#[tokio::test]
async fn chat_calls_tools_streams_tokens_and_retains_history() {
    let (script, builder) = on(vec![
        call_answer("echo", json!({"word": "x"})),
        text_answer("first"),
        text_answer("second"),
        text_answer("third"),
    ]);
    let output = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&output);
    let session = builder
        .add_tool(echo())
        .on_token(move |text| sink.lock().unwrap().push_str(text))
        .init()
        .await
        .unwrap();
    assert_eq!(session.chat("hi").await.unwrap(), "first");
    assert_eq!(output.lock().unwrap().as_str(), "first");
    session.refresh_system().await.unwrap();
    assert_eq!(session.chat("more").await.unwrap(), "second");
    let requests = script.requests();
    assert!(format!("{:?}", requests[1].messages).contains("heard x"));
    assert_eq!(requests[2].messages.len(), 5, "refreshing keeps the history");
    session.reset().await.unwrap();
    assert_eq!(session.chat("fresh").await.unwrap(), "third");
    assert_eq!(script.requests()[3].messages.len(), 1);
}

#[tokio::test]
async fn replacing_the_base_clears_the_history() {
    let (script, builder) = on(vec![text_answer("a"), text_answer("b"), text_answer("c")]);
    let session = builder.init().await.unwrap();
    session.chat("1").await.unwrap();
    session.system_append("ADDED");
    session.add_tool(echo().addendum("NEW TOOL")).unwrap();
    session.chat("2").await.unwrap();
    session.set_system("OTHER").await.unwrap();
    session.chat("3").await.unwrap();
    let requests = script.requests();
    assert!(requests[1].system.contains("ADDED") && requests[1].system.contains("NEW TOOL"));
    assert!(requests[1].tools.iter().any(|t| t.name() == "echo"));
    assert_eq!((requests[1].messages.len(), requests[2].messages.len()), (3, 1));
    assert!(requests[2].system.starts_with("OTHER"));
}

#[tokio::test]
async fn writes_require_approval() {
    let dir = tempfile::tempdir().unwrap();
    for (decision, want) in [(ApprovalDecision::Once, "yes"), (ApprovalDecision::Deny, "old")] {
        std::fs::write(dir.path().join("f.txt"), "old").unwrap();
        let (_, builder) = on(vec![
            call_answer("write_file", json!({"path": "f.txt", "content": "yes"})),
            text_answer("done"),
        ]);
        let session = builder
            .root(dir.path())
            .on_approval(move |a| {
                assert!(a.preview.diff.as_deref().unwrap().contains("+yes"), "{a:?}");
                decision
            })
            .init()
            .await
            .unwrap();
        assert_eq!(session.chat("go").await.unwrap(), "done");
        assert_eq!(std::fs::read_to_string(dir.path().join("f.txt")).unwrap(), want);
    }
    // Without an approver the call is denied, and the turn ends.
    let (_, builder) =
        on(vec![call_answer("write_file", json!({"path": "f.txt", "content": "no"}))]);
    let session = builder.root(dir.path()).init().await.unwrap();
    assert_eq!(session.chat("go").await.unwrap_err().reason, Reason::NoApprover);
    assert_eq!(std::fs::read_to_string(dir.path().join("f.txt")).unwrap(), "old");
}

/// A transport over channels.
struct Channels {
    requests: tokio::sync::Mutex<tokio::sync::mpsc::Receiver<cairn::AgentRequest>>,
    events: tokio::sync::mpsc::Sender<cairn::AgentEvent>,
    is_closed: std::sync::atomic::AtomicBool,
}

#[async_trait::async_trait]
impl cairn::AgentTransport for Channels {
    async fn receive(&self) -> Result<Option<cairn::AgentRequest>, Failure> {
        Ok(self.requests.lock().await.recv().await)
    }

    async fn send(&self, event: cairn::AgentEvent) -> Result<(), Failure> {
        let gone = |_| Failure::new(Reason::Gone, "the reader is gone");
        self.events.send(event).await.map_err(gone)
    }

    async fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn session_serves_a_transport_of_the_host() {
    use cairn::{
        AgentEvent, AgentRequest,
        protocol::turn::{ContextItem, TurnContext},
    };
    let (script, session) =
        on(vec![call_answer("echo", json!({"word": "x"})), text_answer("one"), text_answer("two")]);
    let rules = Rules { confirm: vec!["echo".parse().unwrap()], ..Rules::default() };
    let session = session.add_tool(echo()).rules(rules).init().await.unwrap();
    let (requests, receiver) = tokio::sync::mpsc::channel(4);
    let (events, mut received) = tokio::sync::mpsc::channel(1);
    let transport = Channels {
        requests: tokio::sync::Mutex::new(receiver),
        events,
        is_closed: Default::default(),
    };
    let context = TurnContext::Items(vec![
        ContextItem::File { path: "a.rs".into() },
        ContextItem::Diagnostic {
            path: "a.rs".into(),
            line: 3,
            severity: "error".into(),
            message: "expected `;`".into(),
        },
    ]);
    let unknown = AgentRequest::Approve {
        approval: "apr_019b0000000070008000000000000000".parse().unwrap(),
        decision: ApprovalDecision::Once,
    };
    requests.send(unknown).await.unwrap();
    requests.send(AgentRequest::Run { text: "1".into(), context: Some(context) }).await.unwrap();
    requests.send(AgentRequest::Run { text: "2".into(), context: None }).await.unwrap();
    let mut requests = Some(requests);
    let client = async {
        let (mut refused, mut finished) = (0, vec![]);
        while let Some(event) = received.recv().await {
            match event {
                AgentEvent::Refused(_) => refused += 1,
                AgentEvent::Finished(result) => finished.extend(result.final_output),
                AgentEvent::Event(evt) => {
                    if let cairn::AgentEvt::ApprovalRequired { approval } = *evt {
                        let approval = approval.approval_id.clone();
                        let decision = ApprovalDecision::Once;
                        let answer = AgentRequest::Approve { approval, decision };
                        // The input ends while the turns still run.
                        requests.take().unwrap().send(answer).await.unwrap();
                    }
                }
            }
            if finished.len() == 2 {
                break;
            }
        }
        (refused, finished)
    };
    let (served, (refused, finished)) = tokio::join!(session.serve(&transport), client);
    served.unwrap();
    assert_eq!((refused, finished), (1, vec!["one".to_owned(), "two".to_owned()]));
    assert!(transport.is_closed.load(Ordering::SeqCst));
    let first = format!("{:?}", script.requests()[0].messages);
    assert!(first.contains("a.rs:3: error: expected `;`"), "{first}");
}

#[tokio::test]
async fn session_is_a_harness_whose_calls_pass_the_gate() {
    use cairn::ToolHarness;
    let rules = Rules { deny: vec!["echo".parse().unwrap()], ..Rules::default() };
    let session = on(vec![]).1.add_tool(echo()).rules(rules).init().await.unwrap();
    let harness: &dyn ToolHarness = &session;
    let denied = harness.execute("echo", json!({"word": "x"})).await.unwrap();
    assert_eq!(denied.error.unwrap().reason, "tool_denied");
    let session = on(vec![]).1.add_tool(echo()).init().await.unwrap();
    let missing = session.execute("nothing", json!({})).await.unwrap();
    assert_eq!(missing.error.unwrap().reason, "unknown_tool");
}

#[tokio::test]
async fn stored_keywords_are_in_the_system_text() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("build_rust.md"), "use mold\n").unwrap();
    let session = on(vec![]).1.memory(dir.path()).init().await.unwrap();
    let text = session.render_system().await.unwrap();
    assert!(text.contains("# Memory vocabulary\n\nbuild, rust"), "{text}");
    assert!(session.engine().tools().iter().any(|tool| tool.name == "memory_search"));
}

#[tokio::test]
async fn web_tools_are_offered_with_a_domain() {
    for (domains, offers) in [(&[][..], false), (&["example.org"][..], true)] {
        let (script, mut builder) = on(vec![text_answer("a")]);
        for domain in domains {
            builder = builder.allow_domain(*domain);
        }
        builder.init().await.unwrap().chat("hi").await.unwrap();
        let request = script.requests().remove(0);
        assert_eq!(request.tools.iter().any(|t| t.name() == "web_search"), offers);
    }
    let failure = on(vec![]).1.allow_domain("http://x y").init().await.err().unwrap();
    assert_eq!(failure.reason, Reason::InvalidParams);
}
