//! An explore whose plan a model writes.

use cairn_agent::Explorer;
use cairn_llm::{Fault, FaultKind, ScriptedAnswer, Step};
use cairn_protocol::{
    envelope::Body,
    event::AgentEvt,
    explore::{ExplorePolicy, ExploreStartParams, Overview, PlannerKind},
    session::After,
};

use crate::stage::Stage;

/// Returns the events of a guided explore, in order: `plan`, the calls, `written`, `warning`,
/// `end`.
async fn explored(answers: Vec<ScriptedAnswer>) -> Vec<String> {
    run(answers).await.0
}

/// Returns the events of a guided explore, and the overview of its summary.
async fn run(answers: Vec<ScriptedAnswer>) -> (Vec<String>, Option<Overview>) {
    let stage = Stage::new(answers).await;
    stage.engine.set_explorer(std::sync::Arc::new(Explorer));
    let root = stage.dir.path().join("repo");
    std::fs::create_dir_all(root.join("src")).unwrap();
    std::fs::write(root.join("src/main.rs"), "fn main() {}\n").unwrap();
    std::fs::write(root.join("README.md"), "# Repo\n").unwrap();
    let stripes = format!("{}pub fn paint_zebra() {{}}\n", "// filler\n".repeat(900));
    std::fs::write(root.join("src/stripes.rs"), stripes).unwrap();
    let params = ExploreStartParams {
        root: Some(root.to_string_lossy().into_owned()),
        planner: Some(PlannerKind::Model),
        policy: Some(ExplorePolicy::default()),
        ..Default::default()
    };
    let receipt = stage.engine.start_explore(params, None).await.unwrap();
    let (follower, _) =
        stage.engine.trace().follow(&receipt.session_id, &After::Seq(0)).await.unwrap();
    let mut watch = crate::stage::Watch::of(follower);
    let mut events = Vec::new();
    loop {
        let record = watch.record().await;
        match record.body {
            Body::Cmd { cmd } => {
                let call = cmd.into_call();
                events.push(format!("call {} {}", call.name, call.arguments));
            }
            Body::Evt { evt: AgentEvt::PlanSnapshot { plan, .. } } => {
                events.push(format!("plan {}", serde_json::to_string(&plan.next_ops).unwrap()));
            }
            Body::Evt { evt: AgentEvt::Progress { op, message, .. } } if op == "plan" => {
                events.push(format!("written {}", message.unwrap_or_default()));
            }
            Body::Evt { evt: AgentEvt::Warning { op, message } }
                if op == "plan" || op == "overview" =>
            {
                events.push(format!("warning {message}"));
            }
            Body::Evt { evt: AgentEvt::Completed { summary } } => {
                events.push("end".into());
                return (events, summary.details.overview);
            }
            Body::Evt { evt: AgentEvt::Error { op, message, .. } } if op == "explore" => {
                panic!("{message}")
            }
            Body::Evt { .. } => {}
        }
    }
}

fn at(events: &[String], what: &str) -> usize {
    events.iter().position(|t| t.contains(what)).unwrap_or_else(|| panic!("{what} in {events:#?}"))
}

#[tokio::test]
async fn operations_start_before_plan_is_complete() {
    let plan = ScriptedAnswer::new(vec![
        Step::Text(r#"{"goals": ["look"], "nextOps": [{"type": "grep", "pattern": "zebra"#.into()),
        Step::Text(r#"_one"}, {"type": "#.into()),
        Step::DelayMs(400),
        Step::Text(r#""grep", "pattern": "zebra_two"}]}"#.into()),
    ]);
    let events = explored(vec![
        plan,
        ScriptedAnswer::new(vec![Step::Text(r#"{"goals": [], "nextOps": []}"#.into())]),
    ])
    .await;
    let second = at(&events, "written the model planned 2");
    let (one, two) = (at(&events, "zebra_one"), at(&events, "zebra_two"));
    let call =
        events.iter().position(|t| t.starts_with("call") && t.contains("zebra_one")).unwrap();
    assert!(one < two && call < two && call < second, "{events:#?}");
    assert_eq!(events.last().unwrap(), "end");
}

#[tokio::test]
async fn builtin_plan_is_used_with_warning_when_planning_fails() {
    let fault = Step::Fault(Fault {
        kind: FaultKind::Unavailable,
        text: "down".into(),
        retry_after_ms: None,
    });
    for answer in [vec![fault], vec![Step::Text("I would look around.".into())]] {
        let events = explored(vec![ScriptedAnswer::new(answer)]).await;
        assert!(events[at(&events, "warning")].contains("using the built-in plan"), "{events:#?}");
        assert_eq!(events.last().unwrap(), "end");
    }
}

fn text(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::new(vec![Step::Text(text.into())])
}

const NO_PLAN: &str = r#"{"goals": [], "nextOps": []}"#;

#[tokio::test]
async fn statements_of_the_overview_are_borne_out_by_lines() {
    let answer = r#"{"statements": [
        {"text": "It paints a zebra.", "citations": ["src/stripes.rs:901", "src/stripes.rs:902"]},
        {"text": "The repo starts in `main`.", "citations": ["README.md:1", "src/main.rs:99"]},
        {"text": "It paints elephants.", "citations": ["src/main.rs:1", "src/none.rs:1", "../x:1"]},
        {"text": "It paints zebras without evidence.", "citations": []},
        {"text": "It paints a zebra far away.", "citations": ["src/stripes.rs:400"]}
    ]}"#;
    let (events, overview) = run(vec![text(NO_PLAN), text(answer)]).await;
    assert!(at(&events, "written the model planned 0") < events.len());
    let overview = overview.unwrap();
    let statements: Vec<(String, Vec<String>)> = overview
        .statements
        .iter()
        .map(|statement| {
            let lines = statement.citations.iter().map(|c| format!("{}:{}", c.path, c.line));
            (statement.text.clone(), lines.collect())
        })
        .collect();
    assert_eq!(
        statements,
        [
            ("It paints a zebra".to_owned(), vec!["src/stripes.rs:901".to_owned()]),
            ("The repo starts in main".to_owned(), vec!["README.md:1".to_owned()]),
        ]
    );
    assert_eq!((overview.dropped_citations, overview.dropped_statements), (6, 3));
}

#[tokio::test]
async fn findings_remain_where_a_model_writes_no_overview() {
    for answer in ["I like zebras.", r#"{"statements": []}"#] {
        let (events, overview) = run(vec![text(NO_PLAN), text(answer)]).await;
        assert!(events[at(&events, "wrote no overview")].starts_with("warning"), "{events:#?}");
        assert_eq!(overview, None);
        assert_eq!(events.last().unwrap(), "end");
    }
}

#[tokio::test]
async fn summaries_read_the_beginnings_of_files() {
    let plan = r#"{"goals": [], "nextOps": [{"type": "summarize", "paths": ["src/stripes.rs", "src/none.rs"]},
        {"type": "semantic", "query": "zebra", "k": 3}, {"type": "index_repo", "path": "."}]}"#;
    let events = explored(vec![text(plan), text(NO_PLAN)]).await;
    at(&events, "written the model planned 3");
    at(&events, r#""path":"src/stripes.rs","start":1"#);
    assert!(events.iter().any(|e| e.starts_with("call search_semantic")), "{events:#?}");
}
