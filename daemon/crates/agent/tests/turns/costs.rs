//! Costs of answers and their limits, and the reasoning that a provider requires back.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use cairn_engine::{
    BackgroundOptions, EgressOptions, RuntimeSettings,
    model::{CostLimits, ModelLimits, Provider},
};
use cairn_llm::{Chunk, ChunkStream, LlmError, ModelRequest, Scripted, ScriptedAnswer};
use cairn_protocol::{
    board::BoardParams,
    model::{Message, ModelInfo, ReasoningItem, TokenUsage},
    turn::Outcome,
    unattended::{UnattendedRun, UnattendedStartParams, UnattendedStatus},
};
use cairn_test_support::engine::SingleModel;
use futures_util::StreamExt as _;
use serde_json::json;

use crate::stage::{Stage, allow_all, calls, quick, text_answer};

/// Cost of each answer of [`Priced`] in millionths of a dollar.
const COST: u64 = 600_000;

/// A provider that signs its answers, and charges for them.
struct Priced {
    script: Scripted,
    requests: Arc<Mutex<Vec<Vec<Message>>>>,
}

#[async_trait::async_trait]
impl Provider for Priced {
    fn name(&self) -> &str {
        "priced"
    }

    fn model(&self) -> &str {
        "p-1"
    }

    fn external(&self) -> bool {
        false
    }

    fn context_tokens(&self) -> Option<u64> {
        None
    }

    fn cost(&self, _usage: &TokenUsage) -> Option<u64> {
        Some(COST)
    }

    async fn chat(&self, request: ModelRequest) -> Result<ChunkStream, LlmError> {
        let number = {
            let mut requests = self.requests.lock().unwrap();
            requests.push(request.messages.clone());
            requests.len()
        };
        let item = ReasoningItem { before_call: 0, item: json!({ "signature": number }) };
        let first = futures_util::stream::iter([Ok(Chunk::ReasoningItem(item))]);
        Ok(Box::pin(first.chain(self.script.chat(request).await?)))
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        self.script.models().await
    }
}

/// Returns a stage whose model answers with `answers`, and the requests that it receives.
async fn stage(
    answers: Vec<ScriptedAnswer>,
    cost: CostLimits,
) -> (Stage, Arc<Mutex<Vec<Vec<Message>>>>) {
    let stage = Stage::with(Scripted::new(vec![]), allow_all(), quick()).await;
    let requests = charge(&stage, answers, cost);
    (stage, requests)
}

/// Gives a stage a priced model and limits.
fn charge(
    stage: &Stage,
    answers: Vec<ScriptedAnswer>,
    cost: CostLimits,
) -> Arc<Mutex<Vec<Vec<Message>>>> {
    let requests = Arc::<Mutex<Vec<Vec<Message>>>>::default();
    let priced = Priced { script: Scripted::new(answers), requests: Arc::clone(&requests) };
    stage.engine.set_models(Arc::new(SingleModel(Arc::new(priced))));
    stage.engine.reconfigure(RuntimeSettings {
        rules: allow_all(),
        max_runs: 10,
        approval_timeout: Duration::from_secs(60),
        turns: quick(),
        models: ModelLimits { cost, requests_per_minute: 1000, ..ModelLimits::default() },
        background: BackgroundOptions::default(),
        retention: cairn_engine::record::Retention::UNLIMITED,
        egress: EgressOptions::default(),
    });
    requests
}

#[tokio::test]
async fn reasoning_is_in_the_log_and_in_later_requests() {
    let answers = vec![calls(&[("look", "a")]), text_answer("done"), text_answer("again")];
    let (stage, requests) = stage(answers, CostLimits::default()).await;
    let result = stage.turn("go").await;
    assert_eq!(result.usage.cost_micro_usd, Some(2 * COST));
    stage.turn("and now?").await;
    let requests = requests.lock().unwrap();
    // The third request is of another turn: its messages come from the log alone.
    let signatures: Vec<_> = requests[2]
        .iter()
        .filter_map(|message| match message {
            Message::Assistant { reasoning: Some(reasoning), .. } => {
                assert_eq!(
                    (reasoning.provider.as_str(), reasoning.model.as_str()),
                    ("priced", "p-1")
                );
                Some(reasoning.items[0].item["signature"].clone())
            }
            _ => None,
        })
        .collect();
    assert_eq!(signatures, [json!(1), json!(2)]);
}

#[tokio::test]
async fn turn_and_session_end_at_their_limits() {
    let endless = || (0..9).map(|_| calls(&[("look", "a")])).collect();
    let cost = CostLimits { turn: Some(1.2), session: Some(1.8), ..CostLimits::default() };
    let (stage, requests) = stage(endless(), cost).await;
    let result = stage.turn("go").await;
    let error = result.error.unwrap();
    assert_eq!((result.status, error.reason.as_str()), (Outcome::Failed, "budget_exceeded"));
    assert!(error.message.contains("1.20 USD") && error.message.contains("models.maxUsdPerTurn"));
    assert_eq!(requests.lock().unwrap().len(), 2);
    // The next turn has a limit of its own, and reaches the session's after its first request.
    let error = stage.turn("go on").await.error.unwrap();
    assert!(error.message.contains("the session has cost 1.80 USD"), "{}", error.message);
    assert_eq!(requests.lock().unwrap().len(), 3);
}

/// Starts an unattended run with a budget, and waits for its end.
async fn unattended(stage: &Stage, until: Option<&str>, max_usd: f64) -> UnattendedRun {
    let params = UnattendedStartParams {
        turn: stage.params("unattended", "go"),
        until: until.map(str::to_owned),
        max_turns: None,
        max_usd: Some(max_usd),
    };
    stage.engine.start_unattended(params, None).await.unwrap();
    loop {
        let run = stage.engine.unattended_runs().await.unwrap().data.remove(0);
        if run.status.is_final() {
            return run;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn budget_ends_an_unattended_run_within_a_turn_and_between_turns() {
    let endless = (0..9).map(|_| calls(&[("look", "a")])).collect();
    let (stage, requests) = stage(endless, CostLimits::default()).await;
    let run = unattended(&stage, None, 1.2).await;
    assert_eq!(run.status, UnattendedStatus::Exhausted);
    assert!(run.reason.unwrap().contains("policy.maxUsd is 1.2"));
    assert_eq!(requests.lock().unwrap().len(), 2);
    let board = stage.engine.board(BoardParams::default()).await.unwrap();
    assert_eq!(board.rows[0].cost_micro_usd, Some(2 * COST));
    // Each turn costs 0.6 USD, and the check fails: two turns are within the budget.
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let stage = Stage::in_root(dir, None, vec![], quick()).await;
    let answers = (0..9).map(|_| text_answer("done")).collect();
    let requests = charge(&stage, answers, CostLimits::default());
    let run = unattended(&stage, Some("exit 7"), 1.0).await;
    assert_eq!((run.status, run.turns), (UnattendedStatus::Exhausted, 2));
    assert_eq!(run.check_exit_code, Some(7));
    assert!(run.reason.unwrap().contains("the budget of 1 USD is used"));
    assert_eq!(requests.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn daily_limit_counts_earlier_sessions() {
    let cost = CostLimits { day: Some(0.6), ..CostLimits::default() };
    let (stage, _) = stage(vec![text_answer("one"), text_answer("two")], cost).await;
    assert_eq!(stage.turn("go").await.final_output.as_deref(), Some("one"));
    let error = stage.turn("go").await.error.unwrap();
    assert!(error.message.contains("models.maxUsdPerDay is 0.6"), "{}", error.message);
    // A daemon that starts later reads the cost from the log.
    let dir = Arc::clone(&stage.dir);
    stage.engine.close().await;
    let stage = Stage::over(dir, None, Scripted::new(vec![]), allow_all(), quick()).await;
    let _requests = charge(&stage, vec![text_answer("three")], cost);
    let error = stage.turn("go").await.error.unwrap();
    assert!(error.message.contains("models.maxUsdPerDay is 0.6"), "{}", error.message);
}
