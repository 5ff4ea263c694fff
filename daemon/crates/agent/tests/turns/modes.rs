//! Modes of turns: what is offered, what is refused, and what needs no approval.

use std::sync::{Arc, atomic::Ordering};

use cairn_engine::Rules;
use cairn_llm::{ScriptedAnswer, ScriptedCall, Step};
use cairn_protocol::{
    event::AgentEvt,
    model::Part,
    turn::{ExecutionMode, ExecutionPolicy, Outcome},
};
use serde_json::{Value, json};

use crate::stage::{Stage, calls, quick, text_answer};

fn in_mode(mode: ExecutionMode) -> ExecutionPolicy {
    ExecutionPolicy { mode: Some(mode), ..ExecutionPolicy::default() }
}

fn call(name: &str, arguments: Value) -> ScriptedAnswer {
    ScriptedAnswer::new(vec![Step::Call(ScriptedCall { id: None, name: name.into(), arguments })])
}

/// Returns the reasons of the failures of each call of the session; `ok` for the others.
async fn outcomes(stage: &Stage) -> Vec<String> {
    let results = stage.records().await.into_iter().filter_map(|evt| match evt {
        AgentEvt::ToolResult(outcome) => Some(outcome),
        _ => None,
    });
    results.map(|o| o.error.map_or_else(|| "ok".to_owned(), |error| error.reason)).collect()
}

async fn stage(answers: Vec<ScriptedAnswer>) -> Stage {
    Stage::in_root(Arc::new(tempfile::tempdir().unwrap()), None, answers, quick()).await
}

/// Opens a stage without rules and without an approver.
async fn unruled(answers: Vec<ScriptedAnswer>) -> Stage {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    Stage::in_root_under(Rules::default(), dir, None, answers, quick()).await
}

#[tokio::test]
async fn plan_offers_and_admits_only_tools_that_read() {
    let write = json!({"path": "a.txt", "content": "x"});
    let answers = vec![
        calls(&[("look", "a"), ("change", "b")]),
        call("write_file", write.clone()),
        call("fs", json!({"action": "write", "path": "a.txt", "content": "x"})),
        call("fs", json!({"action": "list", "pattern": "*"})),
        call("run_shell", json!({"command": "touch a.txt"})),
        text_answer("the plan"),
    ];
    // Every rule allows the calls.
    let stage = stage(answers).await;
    let result = stage.turn_with("improve it", in_mode(ExecutionMode::Plan)).await;
    assert_eq!(result.status, Outcome::Completed, "{result:?}");
    let denied = "tool_denied";
    assert_eq!(outcomes(&stage).await, ["ok", denied, denied, denied, "ok", denied]);
    assert_eq!(stage.writes.load(Ordering::SeqCst), 0);
    assert!(!stage.dir.path().join("work/a.txt").exists());
    let requests = stage.script.requests();
    let offered: Vec<&str> = requests[0].tools.iter().map(|tool| tool.name()).collect();
    assert!(offered.contains(&"look") && offered.contains(&"read_file"), "{offered:?}");
    for name in ["change", "write_file", "edit_file", "run_shell", "git_commit"] {
        assert!(!offered.contains(&name), "{name} in {offered:?}");
    }
    let audit = stage.engine.trace().audit_query(Default::default()).await.unwrap();
    let by_mode = audit.iter().filter(|entry| entry.rule == "mode plan").count();
    assert_eq!(by_mode, 4, "{audit:?}");
    let accepted = stage.records().await.into_iter().find_map(|evt| match evt {
        AgentEvt::TurnAccepted { input, .. } => Some(input),
        _ => None,
    });
    let input = accepted.unwrap();
    assert!(matches!(&input[0], Part::Text { text } if text.contains("plan mode")), "{input:?}");
    assert!(matches!(&input[1], Part::Text { text } if text == "improve it"), "{input:?}");
}

#[tokio::test]
async fn agent_of_a_planning_turn_plans_too() {
    let task = json!({"task": "change it", "access": "edit"});
    let answers = vec![
        call("run_agent", task),
        call("write_file", json!({"path": "a.txt", "content": "x"})),
        text_answer("the agent is done"),
        text_answer("the plan"),
    ];
    let stage = stage(answers).await;
    let result = stage.turn_with("improve it", in_mode(ExecutionMode::Plan)).await;
    assert_eq!(result.final_output.as_deref(), Some("the plan"));
    assert_eq!(outcomes(&stage).await, ["ok"]);
    assert!(!stage.dir.path().join("work/a.txt").exists());
    let audit = stage.engine.trace().audit_query(Default::default()).await.unwrap();
    let refused = audit.iter().any(|e| e.tool == "write_file" && e.decision == "deny");
    assert!(refused, "{audit:?}");
    let requests = stage.script.requests();
    assert_eq!(requests.len(), 4);
    assert!(requests[1].tools.iter().all(|tool| tool.name() != "write_file"));
}

#[tokio::test]
async fn accepted_edits_need_no_approver_and_other_calls_do() {
    let write = |path: &str| json!({"path": path, "content": "x"});
    for (mode, name, arguments, outcome) in [
        (ExecutionMode::Ask, "write_file", write("a.txt"), Outcome::Denied),
        (ExecutionMode::AcceptEdits, "write_file", write("a.txt"), Outcome::Completed),
        // Not read before, and so a question in the mode `ask` whatever the rules.
        (ExecutionMode::AcceptEdits, "write_file", write("old.txt"), Outcome::Completed),
        (
            ExecutionMode::AcceptEdits,
            "fs",
            json!({"ops": [
                {"action": "write", "path": "a.txt", "content": "x"},
                {"action": "edit", "path": "old.txt", "old_text": "old", "new_text": "new"},
            ]}),
            Outcome::Completed,
        ),
        (ExecutionMode::AcceptEdits, "delete_file", json!({"path": "old.txt"}), Outcome::Denied),
        (ExecutionMode::Auto, "delete_file", json!({"path": "old.txt"}), Outcome::Completed),
        (ExecutionMode::AcceptEdits, "change", json!({"word": "b"}), Outcome::Denied),
        (ExecutionMode::Auto, "change", json!({"word": "b"}), Outcome::Denied),
        // Protected paths, and commands without a sandbox.
        (ExecutionMode::Auto, "write_file", write(".envrc"), Outcome::Denied),
        (ExecutionMode::Auto, "run_shell", json!({"command": "true"}), Outcome::Denied),
    ] {
        let stage = unruled(vec![call(name, arguments.clone()), text_answer("done")]).await;
        std::fs::write(stage.dir.path().join("work/old.txt"), "old\n").unwrap();
        let result = stage.turn_with("go", in_mode(mode)).await;
        assert_eq!(result.status, outcome, "{mode:?} {name} {arguments}: {result:?}");
        let audit = stage.engine.trace().audit_query(Default::default()).await.unwrap();
        let expected = format!("mode {}", mode.as_str());
        let by_mode = audit.iter().any(|entry| entry.rule.contains(&expected));
        assert_eq!(by_mode, outcome == Outcome::Completed, "{mode:?} {name}: {audit:?}");
    }
}

#[tokio::test]
async fn edit_outside_the_root_is_refused_in_every_mode() {
    for mode in ExecutionMode::ALL {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("x.txt");
        let write = json!({"path": outside, "content": "x"});
        let stage = unruled(vec![call("write_file", write), text_answer("done")]).await;
        stage.turn_with("go", in_mode(mode)).await;
        assert!(!outside.exists(), "{mode:?}");
        assert_ne!(outcomes(&stage).await, ["ok"], "{mode:?}");
    }
}

#[tokio::test]
async fn mode_of_one_turn_does_not_reach_the_next() {
    let write = |path: &str| call("write_file", json!({"path": path, "content": "x"}));
    let stage = unruled(vec![write("a.txt"), text_answer("done"), write("b.txt")]).await;
    let first = stage.turn_with("go", in_mode(ExecutionMode::AcceptEdits)).await;
    let second = stage.turn_with("go on", ExecutionPolicy::default()).await;
    assert_eq!((first.status, second.status), (Outcome::Completed, Outcome::Denied));
}
