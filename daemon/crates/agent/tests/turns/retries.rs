//! Requests that are repeated: reported before their wait, and only while nothing was shown.

use std::{sync::Arc, time::Duration};

use cairn_engine::model::Provider;
use cairn_llm::{
    ChunkStream, Fault, FaultKind, LlmError, ModelRequest, Notice, Scripted, ScriptedAnswer,
    ScriptedCall, Step,
};
use cairn_protocol::{event::AgentEvt, model::ModelInfo, turn::Outcome};
use cairn_test_support::engine::SingleModel;
use serde_json::json;

use crate::stage::{Stage, allow_all, quick, text_answer};

/// A provider that reports a retry before each answer, and waits.
struct Limited(Scripted);

#[async_trait::async_trait]
impl Provider for Limited {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn model(&self) -> &str {
        self.0.model()
    }

    fn external(&self) -> bool {
        false
    }

    fn context_tokens(&self) -> Option<u64> {
        None
    }

    async fn chat(&self, request: ModelRequest) -> Result<ChunkStream, LlmError> {
        let wait = Duration::from_millis(300);
        let notice = Notice::Retry { wait, retry: 1, retries: 3, error: "it is busy (429)".into() };
        request.notices.as_ref().unwrap().try_send(notice).unwrap();
        tokio::time::sleep(wait).await;
        self.0.chat(request).await
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        self.0.models().await
    }
}

async fn warnings(stage: &Stage) -> Vec<String> {
    let texts = stage.records().await.into_iter().filter_map(|evt| match evt {
        AgentEvt::Warning { op, message } if op == "model" => Some(message),
        _ => None,
    });
    texts.collect()
}

#[tokio::test]
async fn wait_of_a_provider_is_a_record_before_the_answer() {
    let stage = Stage::with(Scripted::new(vec![]), allow_all(), quick()).await;
    let limited = Limited(Scripted::new(vec![text_answer("done")]));
    stage.engine.set_models(Arc::new(SingleModel(Arc::new(limited))));
    let receipt = stage.engine.start_run(stage.params("t", "go"), None).await.unwrap();
    let mut watch = stage.watch(receipt.seq - 1).await;
    let text = watch
        .until(|evt| match evt {
            AgentEvt::Warning { message, .. } => Some(message.clone()),
            AgentEvt::ModelAnswer(_) => Some("an answer".into()),
            _ => None,
        })
        .await;
    assert_eq!(text, "retrying in 0.3 s (1 of 3): it is busy (429)");
    assert_eq!(watch.end().await.final_output.as_deref(), Some("done"));
}

#[tokio::test]
async fn answer_that_breaks_off_inside_a_call_is_requested_again() {
    let call = || {
        Step::Call(ScriptedCall {
            id: None,
            name: "change".into(),
            arguments: json!({ "word": "a" }),
        })
    };
    let fault = |kind| Step::Fault(Fault { kind, text: "overloaded".into(), retry_after_ms: None });
    for end in [Step::Cut, fault(FaultKind::Unavailable), fault(FaultKind::RateLimited)] {
        let broken = ScriptedAnswer::new(vec![call(), end]);
        let stage = Stage::new(vec![broken, text_answer("after all")]).await;
        assert_eq!(stage.turn("go").await.final_output.as_deref(), Some("after all"));
        assert_eq!(stage.writes.load(std::sync::atomic::Ordering::SeqCst), 0, "no call was made");
        let all = warnings(&stage).await;
        assert!(matches!(&all[..], [text] if text.starts_with("retrying in 0 s (1 of 3): ")));
    }
    // A text that was shown is not requested again, and a refusal is final.
    for steps in [
        vec![Step::Reasoning("hm".into()), call(), Step::Cut],
        vec![call(), fault(FaultKind::Rejected)],
    ] {
        let stage = Stage::new(vec![ScriptedAnswer::new(steps), text_answer("never")]).await;
        assert_eq!(stage.turn("go").await.status, Outcome::Failed);
        assert_eq!(stage.script.remaining(), 1);
    }
}

#[tokio::test]
async fn broken_answers_are_retried_as_often_as_configured() {
    for retries in [0, 2] {
        let broken = || ScriptedAnswer::new(vec![Step::Cut]);
        let script = Scripted::new((0..5).map(|_| broken()).collect());
        let settings = cairn_engine::TurnSettings { retry_attempts: retries, ..quick() };
        let stage = Stage::with(script, allow_all(), settings).await;
        assert_eq!(stage.turn("go").await.error.unwrap().reason, "model_cut");
        assert_eq!(stage.script.remaining(), 5 - 1 - retries as usize);
    }
}
