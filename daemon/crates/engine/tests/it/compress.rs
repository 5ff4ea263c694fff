//! Condensing a conversation on request, concurrent with a turn that starts meanwhile.

use std::sync::Arc;

use cairn_llm::{ChunkStream, LlmError, ModelRequest, Provider, Scripted};
use cairn_protocol::{error::Reason, event::AgentEvt, model::ModelInfo};
use cairn_test_support::engine::SingleModel;

use crate::stage::{Setup, Stage, World};

/// A model whose answers wait for the gate `model`, with a record of its requests.
struct Gated {
    script: Scripted,
    world: World,
}

#[async_trait::async_trait]
impl Provider for Gated {
    fn name(&self) -> &str {
        "scripted"
    }

    fn model(&self) -> &str {
        "m"
    }

    fn external(&self) -> bool {
        false
    }

    fn context_tokens(&self) -> Option<u64> {
        Some(2048)
    }

    async fn chat(&self, request: ModelRequest) -> Result<ChunkStream, LlmError> {
        self.world.acts().insert("asked".to_owned(), 1);
        self.world.pass("model").await;
        self.script.chat(request).await
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        Ok(vec![])
    }
}

/// Creates a session with a conversation that can be condensed, under a model that waits.
async fn stage(dir: &std::path::Path) -> (Stage, cairn_protocol::id::SessionId) {
    let stage = Stage::open(dir, &World::default(), &Setup::new()).await;
    let script = Scripted::new(vec!["a summary".into(), "a summary".into()]);
    stage
        .engine
        .set_models(Arc::new(SingleModel(Arc::new(Gated { script, world: stage.world.clone() }))));
    let session = stage.session(None).await;
    stage.start(&session, "a", &"yield 1;".repeat(800)).await.unwrap();
    stage.wait_for_end(&session, "a").await;
    (stage, session)
}

fn is_compacted(evt: &AgentEvt) -> bool {
    matches!(evt, AgentEvt::Compacted { .. })
}

#[tokio::test]
async fn turn_started_during_compaction_is_retained() {
    let dir = tempfile::tempdir().unwrap();
    let (stage, session) = stage(dir.path()).await;
    let (engine, of) = (stage.engine.clone(), session.clone());
    let compressing = tokio::spawn(async move { engine.compress(&of).await });
    stage.world.acted("asked").await;
    stage.start(&session, "b", "gate b").await.unwrap();
    stage.world.open("model");
    let refused = compressing.await.unwrap().unwrap_err();
    assert_eq!(refused.reason, Reason::SessionBusy, "{refused}");
    stage.world.open("b");
    stage.wait_for_end(&session, "b").await;
    let records = stage.records(&session).await;
    assert!(!records.iter().filter_map(|r| r.body.evt()).any(is_compacted));
}

#[tokio::test]
async fn turn_finished_during_compaction_is_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    let (stage, session) = stage(dir.path()).await;
    let (engine, of) = (stage.engine.clone(), session.clone());
    let compressing = tokio::spawn(async move { engine.compress(&of).await });
    stage.world.acted("asked").await;
    stage.start(&session, "b", "yield 1").await.unwrap();
    stage.wait_for_end(&session, "b").await;
    stage.world.open("model");
    assert_eq!(compressing.await.unwrap().unwrap_err().reason, Reason::SessionBusy);
    // Control: without a concurrent turn the conversation is condensed.
    let done = stage.engine.compress(&session).await.unwrap();
    assert!(done.tokens_after < done.tokens_before, "{done:?}");
    let records = stage.records(&session).await;
    assert_eq!(
        records.iter().filter_map(|r| r.body.evt()).filter(|evt| is_compacted(evt)).count(),
        1
    );
}
