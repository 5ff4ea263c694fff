//! Agents that a turn starts: their own context and budget, fewer rights, and an end with the turn.

use std::sync::{Arc, Mutex};

use cairn_engine::{Rules, Verdict};
use cairn_llm::{
    ChunkStream, LlmError, ModelRequest, Provider, Scripted, ScriptedAnswer, ScriptedCall, Step,
};
use cairn_protocol::{
    approval::{ApprovalDecision, ApprovalListParams, ApprovalResolveParams},
    event::AgentEvt,
    model::ModelInfo,
    turn::{ExecutionPolicy, Outcome, TurnRef},
};
use cairn_test_support::engine::SingleModel;
use serde_json::{Value, json};

use crate::stage::{Stage, allow_all, calls, quick, text_answer};

/// A model that answers each agent by its own script: the first text of the conversation selects it.
struct ByTask {
    scripts: Vec<(&'static str, Scripted)>,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
}

#[async_trait::async_trait]
impl Provider for ByTask {
    fn name(&self) -> &str {
        "by-task"
    }

    fn model(&self) -> &str {
        "m"
    }

    fn external(&self) -> bool {
        false
    }

    fn context_tokens(&self) -> Option<u64> {
        None
    }

    async fn chat(&self, request: ModelRequest) -> Result<ChunkStream, LlmError> {
        let first = serde_json::to_string(&request.messages[0]).unwrap();
        self.requests.lock().unwrap().push(request.clone());
        let (_, script) = self.scripts.iter().find(|(task, _)| first.contains(task)).unwrap();
        script.chat(request).await
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        Ok(vec![])
    }
}

type Requests = Arc<Mutex<Vec<ModelRequest>>>;

async fn stage(
    scripts: Vec<(&'static str, Vec<ScriptedAnswer>)>,
    rules: Rules,
) -> (Stage, Requests) {
    let stage = Stage::with(Scripted::new(vec![]), rules, quick()).await;
    let requests = Requests::default();
    let scripts = scripts.into_iter().map(|(task, all)| (task, Scripted::new(all))).collect();
    let model = ByTask { scripts, requests: Arc::clone(&requests) };
    stage.engine.set_models(Arc::new(SingleModel(Arc::new(model))));
    (stage, requests)
}

fn run_agents(tasks: &[Value]) -> ScriptedAnswer {
    let call = |arguments: &Value| {
        let (name, arguments) = ("run_agent".into(), arguments.clone());
        Step::Call(ScriptedCall { id: None, name, arguments })
    };
    ScriptedAnswer::new(tasks.iter().map(call).collect())
}

/// Returns the results of the calls of `run_agent`: their output or their error.
async fn reports(stage: &Stage) -> Vec<Value> {
    let results = stage.records().await.into_iter().filter_map(|evt| match evt {
        AgentEvt::ToolResult(outcome) if outcome.name == "run_agent" => Some(outcome),
        _ => None,
    });
    results.map(|o| o.output.unwrap_or_else(|| json!(o.error))).collect()
}

#[tokio::test]
async fn agents_run_side_by_side_with_contexts_of_their_own() {
    let scripts = vec![
        (
            "main question",
            vec![
                run_agents(&[json!({ "task": "first task" }), json!({ "task": "second task" })]),
                text_answer("both are done"),
            ],
        ),
        ("first task", vec![calls(&[("look", "a")]), text_answer("found a")]),
        ("second task", vec![text_answer("found b")]),
    ];
    let (stage, requests) = stage(scripts, allow_all()).await;
    let result = stage.turn("main question").await;
    assert_eq!(result.final_output.as_deref(), Some("both are done"));
    let mut reports = reports(&stage).await;
    reports.sort_by_key(|report| report["report"].to_string());
    let texts: Vec<_> = reports.iter().map(|report| report["report"].as_str().unwrap()).collect();
    assert_eq!(texts, ["found a", "found b"]);
    assert_eq!((&reports[0]["calls"], &reports[1]["calls"]), (&json!(1), &json!(0)));
    let requests = std::mem::take(&mut *requests.lock().unwrap());
    for request in &requests {
        let first = serde_json::to_string(&request.messages[0]).unwrap();
        let names: Vec<&str> = request.tools.iter().map(|tool| tool.name()).collect();
        if first.contains("main question") {
            assert!(names.contains(&"run_agent") && names.contains(&"change"), "{names:?}");
            continue;
        }
        // An agent reads, starts no agents, and knows nothing of the conversation.
        assert!(names.contains(&"look") && names.contains(&"read_file"), "{names:?}");
        assert!(!names.contains(&"run_agent") && !names.contains(&"change"), "{names:?}");
        assert!(first.contains("for another agent"), "{first}");
    }
    // The sessions of the agents do not crowd the list, and their logs remain.
    let listed = stage.engine.trace().sessions(None, None, false).await.unwrap().data;
    assert_eq!(listed.len(), 1, "{listed:?}");
    let child = reports[0]["sessionId"].as_str().unwrap().parse().unwrap();
    assert!(stage.engine.trace().records(&child, 0, 100).await.unwrap().len() > 4);
}

#[tokio::test]
async fn agent_with_reading_access_cannot_change_anything() {
    let scripts = vec![
        ("main", vec![run_agents(&[json!({ "task": "sneak" })]), text_answer("done")]),
        ("sneak", vec![calls(&[("change", "a")]), text_answer("tried")]),
    ];
    let (stage, _) = stage(scripts, allow_all()).await;
    assert_eq!(stage.turn("main").await.status, Outcome::Completed);
    assert_eq!(stage.writes.load(std::sync::atomic::Ordering::SeqCst), 0);
    // Control: with `edit` the same call is made.
    let scripts = vec![
        (
            "main",
            vec![run_agents(&[json!({ "task": "sneak", "access": "edit" })]), text_answer("done")],
        ),
        ("sneak", vec![calls(&[("change", "a")]), text_answer("did")]),
    ];
    let (stage, _) = self::stage(scripts, allow_all()).await;
    assert_eq!(stage.turn("main").await.status, Outcome::Completed);
    assert_eq!(stage.writes.load(std::sync::atomic::Ordering::SeqCst), 1);
    // The rights of the turn bound those of its agents.
    let scripts = vec![
        (
            "main",
            vec![run_agents(&[json!({ "task": "sneak", "access": "edit" })]), text_answer("done")],
        ),
        ("sneak", vec![calls(&[("change", "a")]), text_answer("tried")]),
    ];
    let (stage, _) = self::stage(scripts, allow_all()).await;
    let ops = Some(vec!["run_agent".to_owned(), "look".to_owned()]);
    let policy = ExecutionPolicy { ops, ..ExecutionPolicy::default() };
    assert_eq!(stage.turn_with("main", policy).await.status, Outcome::Completed);
    assert_eq!(stage.writes.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test]
async fn endless_agent_ends_at_its_budget() {
    // Calls that differ: equal ones would end the turn before its budget.
    let words: Vec<String> = (0..500).map(|number| format!("word {number}")).collect();
    let endless = words.iter().map(|word| calls(&[("look", word)])).collect();
    let scripts = vec![
        (
            "main",
            vec![
                run_agents(&[json!({ "task": "loop", "max_tokens": 20_000 })]),
                text_answer("it looped"),
            ],
        ),
        ("loop", endless),
    ];
    let (stage, requests) = stage(scripts, allow_all()).await;
    assert_eq!(stage.turn("main").await.final_output.as_deref(), Some("it looped"));
    let report = &reports(&stage).await[0];
    assert_eq!(report["status"], "failed");
    assert!(report["error"].as_str().unwrap().contains("policy.maxTokens is 20000"), "{report}");
    assert!(requests.lock().unwrap().len() < 100);
}

#[tokio::test]
async fn request_of_an_agent_for_approval_is_visible_in_the_turn() {
    let scripts = vec![
        (
            "main",
            vec![run_agents(&[json!({ "task": "edit it", "access": "edit" })]), text_answer("ok")],
        ),
        ("edit it", vec![calls(&[("change", "a")]), text_answer("did")]),
    ];
    let rules = Rules { default: Verdict::Ask, ..Rules::default() };
    let (stage, _) = stage(scripts, rules).await;
    let _approver = stage.engine.approver();
    let receipt = stage.engine.start_run(stage.params("t", "main"), None).await.unwrap();
    let mut watch = stage.watch(receipt.seq - 1).await;
    // Events that are live only reach a client that listens.
    let watching = tokio::spawn(async move { (watch.end().await, watch.passed) });
    let approval = loop {
        let pending = stage.engine.approvals(ApprovalListParams::default()).await.unwrap();
        if let Some(approval) = pending.into_iter().next() {
            break approval;
        }
        tokio::task::yield_now().await;
    };
    assert_ne!(approval.session_id, stage.session);
    let answer = ApprovalResolveParams {
        approval_id: approval.approval_id.clone(),
        decision: ApprovalDecision::Once,
        reason: None,
        pattern: None,
        values: Default::default(),
    };
    stage.engine.resolve_approval(answer, "test").await.unwrap();
    let (result, passed) = watching.await.unwrap();
    assert_eq!(result.final_output.as_deref(), Some("ok"));
    let kinds: Vec<&str> = passed
        .iter()
        .filter(|line| line.to_string().contains(approval.approval_id.as_str()))
        .map(|line| line["evt"]["type"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(kinds, ["approval_required", "approval_resolved"], "{passed:?}");
}

#[tokio::test]
async fn agent_ends_with_the_turn_that_started_it() {
    let scripts = vec![
        ("main", vec![run_agents(&[json!({ "task": "wait" })]), text_answer("never")]),
        ("wait", vec![ScriptedAnswer::new(vec![Step::Hang])]),
    ];
    let (stage, requests) = stage(scripts, allow_all()).await;
    let receipt = stage.engine.start_run(stage.params("t", "main"), None).await.unwrap();
    let mut watch = stage.watch(receipt.seq - 1).await;
    while requests.lock().unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    let turn = TurnRef { session_id: stage.session.clone(), turn_id: None };
    stage.engine.cancel_run(turn).await.unwrap();
    assert_eq!(watch.end().await.status, Outcome::Cancelled);
    let child = loop {
        let all = stage.engine.trace().sessions(None, None, true).await.unwrap().data;
        let child = all.into_iter().find(|session| session.session_id != stage.session).unwrap();
        if child.archived {
            break child;
        }
        tokio::task::yield_now().await;
    };
    assert!(child.title.starts_with("agent: wait"));
}

#[tokio::test]
async fn invalid_tasks_are_refused() {
    let scripts = vec![("main", vec![run_agents(&[json!({ "task": " " })]), text_answer("so")])];
    let (stage, _) = stage(scripts, allow_all()).await;
    assert_eq!(stage.turn("main").await.final_output.as_deref(), Some("so"));
    let reports = reports(&stage).await;
    assert!(reports[0].to_string().contains("task must have"), "{}", reports[0]);
}

#[tokio::test]
async fn fifth_agent_at_once_is_refused() {
    let five: Vec<Value> = (0..5).map(|_| json!({ "task": "wait" })).collect();
    let hanging = (0..5).map(|_| ScriptedAnswer::new(vec![Step::Hang])).collect();
    let scripts = vec![("main", vec![run_agents(&five)]), ("wait", hanging)];
    let (stage, _) = stage(scripts, allow_all()).await;
    let receipt = stage.engine.start_run(stage.params("t", "main"), None).await.unwrap();
    let mut watch = stage.watch(receipt.seq - 1).await;
    // The other four never end, so that the only result is the refusal.
    let refusal = watch
        .until(|evt| match evt {
            AgentEvt::ToolResult(outcome) => outcome.error.clone(),
            _ => None,
        })
        .await;
    assert!(json!(refusal).to_string().contains("4 agents of this session run"), "{refusal:?}");
    let turn = TurnRef { session_id: stage.session.clone(), turn_id: None };
    stage.engine.cancel_run(turn).await.unwrap();
    assert_eq!(watch.end().await.status, Outcome::Cancelled);
}
