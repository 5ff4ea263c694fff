//! Skills, switches and plugins, as seen by a turn.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use cairn_engine::plugin::{HookAnswer, HookEvent, Plugin};
use cairn_llm::Scripted;
use cairn_protocol::{
    error::Reason,
    event::AgentEvt,
    skill::{SkillFile, SkillInfo},
    turn::Outcome,
};

use crate::stage::{Stage, allow_all, calls, quick, text_answer};

fn skill(id: &str, text: &str, tools: &[&str], enabled: bool) -> SkillInfo {
    let skill = SkillFile {
        id: id.into(),
        version: "1".into(),
        description: format!("About {id}."),
        prompt_block: Some(text.into()),
        tools: tools.iter().map(|t| (*t).to_owned()).collect(),
        policy: Default::default(),
    };
    SkillInfo { skill, enabled, reason: None, folder: None }
}

async fn system(stage: &Stage) -> String {
    stage.turn("go").await;
    stage.script.requests().last().unwrap().system.clone()
}

#[tokio::test]
async fn prompt_lists_only_enabled_skills() {
    let stage = Stage::new(vec![text_answer("a"), text_answer("b")]).await;
    let without = system(&stage).await;
    assert!(!without.contains("# Skills"), "the engine runs with none");
    stage.engine.set_skills(Arc::new(|_| {
        vec![
            skill("alpha", "Alpha text.", &["look"], true),
            skill("beta", "Beta text.", &[], true),
            skill("off", "Off text.", &[], false),
            skill("toolless", "Toolless text.", &["nothing_of_the_kind"], true),
        ]
    }));
    let with = system(&stage).await;
    let block = "# Skills\n\n- alpha — About alpha.\n- beta — About beta.\n\n#";
    assert!(with.contains(block), "{with}");
    assert!(!with.contains("Alpha text."), "texts are read by a tool");
}

#[tokio::test]
async fn disabled_tool_is_neither_offered_nor_called() {
    let stage = Stage::new(vec![
        calls(&[("change", "x")]),
        text_answer("done"),
        calls(&[("change", "y")]),
        text_answer("done"),
    ])
    .await;
    let switches = BTreeMap::from([("change".to_owned(), false), ("shell".to_owned(), true)]);
    stage.engine.set_access(vec![], vec![], switches);
    stage.turn("go").await;
    let offered: Vec<String> =
        stage.script.requests()[0].tools.iter().map(|t| t.name().to_owned()).collect();
    assert!(!offered.contains(&"change".to_owned()), "{offered:?}");
    // The skill's form of the shell is offered in place of the tool's own.
    assert!(
        offered.contains(&"shell".to_owned()) && !offered.contains(&"run_shell".to_owned()),
        "{offered:?}"
    );
    assert_eq!(stage.writes.load(std::sync::atomic::Ordering::SeqCst), 0);
    let observed = stage.records().await.into_iter().find_map(|evt| match evt {
        AgentEvt::ToolResult(result) => result.error,
        _ => None,
    });
    assert!(observed.unwrap().message.contains("disabled in tool-access.json"));
    stage.engine.set_access(vec![], vec![], BTreeMap::new());
    stage.turn("again").await;
    assert_eq!(stage.writes.load(std::sync::atomic::Ordering::SeqCst), 1, "on again");
}

#[tokio::test]
async fn skill_rules_restrict_other_rules() {
    let stage = Stage::new(vec![calls(&[("change", "x")]), text_answer("done")]).await;
    stage.engine.set_access(vec!["change".parse().unwrap()], vec![], BTreeMap::new());
    stage.turn("go").await;
    assert_eq!(stage.writes.load(std::sync::atomic::Ordering::SeqCst), 0);
}

/// Records its events, and refuses the configured ones.
struct Guard {
    events: Arc<Mutex<Vec<String>>>,
    refuses: &'static str,
}

#[async_trait::async_trait]
impl Plugin for Guard {
    fn name(&self) -> &str {
        "guard"
    }

    async fn on(&self, event: &HookEvent) -> Result<HookAnswer, String> {
        let observed = match event {
            HookEvent::BeforeTool { tool, arguments, .. } => {
                format!("before {tool} {}", arguments["word"])
            }
            HookEvent::AfterTool { tool, outcome, .. } => format!("after {tool} {outcome}"),
            HookEvent::BeforeModel { messages, .. } => format!("before model {messages}"),
            HookEvent::AfterModel { outcome, .. } => format!("after model {outcome}"),
            HookEvent::SessionStart { .. } => "start".into(),
            HookEvent::SessionStop { .. } => "stop".into(),
            HookEvent::UserPrompt { prompt, .. } => format!("prompt {prompt}"),
            HookEvent::TurnStop { active, text, .. } => format!("turn stop {active} {text}"),
            HookEvent::SubagentStop { .. } => "agent stop".into(),
            HookEvent::BeforeCompact { .. } => "compact".into(),
            HookEvent::Notification { message, .. } => format!("notify {message}"),
        };
        let refuse = (observed == self.refuses).then(|| "not today".to_owned());
        self.events.lock().unwrap().push(observed);
        Ok(HookAnswer { refuse, ..HookAnswer::default() })
    }
}

async fn guarded(script: Scripted, refuses: &'static str) -> (Stage, Arc<Mutex<Vec<String>>>) {
    let stage = Stage::with(script, allow_all(), quick()).await;
    let events = Arc::new(Mutex::new(vec![]));
    stage.engine.set_plugins(vec![Arc::new(Guard { events: Arc::clone(&events), refuses })]);
    (stage, events)
}

#[tokio::test]
async fn plugins_receive_all_events_of_turn_and_session_end() {
    let script = Scripted::new(vec![calls(&[("look", "a")]), text_answer("done")]);
    let (stage, events) = guarded(script, "").await;
    assert_eq!(stage.turn("go").await.status, Outcome::Completed);
    stage.engine.delete_session(&stage.session).await.unwrap();
    let want = [
        "prompt go",
        "before model 1",
        "after model ok",
        "before look \"a\"",
        "after look ok",
        "before model 3",
        "after model ok",
        "turn stop false done",
        "stop",
    ];
    assert_eq!(*events.lock().unwrap(), want);
}

#[tokio::test]
async fn refused_tool_is_a_result_and_refused_model_ends_turn() {
    let script = Scripted::new(vec![calls(&[("change", "x")]), text_answer("done")]);
    let (stage, _) = guarded(script, "before change \"x\"").await;
    assert_eq!(stage.turn("go").await.status, Outcome::Completed);
    assert_eq!(stage.writes.load(std::sync::atomic::Ordering::SeqCst), 0);
    let observed = stage.records().await.into_iter().find_map(|evt| match evt {
        AgentEvt::ToolResult(result) => result.error,
        _ => None,
    });
    let observed = observed.unwrap();
    assert_eq!(observed.reason, Reason::PluginRefused.as_str());
    assert!(observed.message.contains("guard: not today"), "{observed:?}");
    let (stage, _) = guarded(Scripted::new(vec![text_answer("never")]), "before model 1").await;
    let end = stage.turn("go").await;
    assert_eq!(end.error.unwrap().reason, Reason::PluginRefused.as_str());
    assert!(stage.script.requests().is_empty(), "the model was not asked");
}

#[tokio::test]
async fn model_plan_is_emitted_as_event() {
    use cairn_llm::{ScriptedAnswer, ScriptedCall, Step};
    use serde_json::json;
    let plan = |status: &str| {
        let arguments = json!({"items": [{"text": "read", "status": status}, {"text": "write"}]});
        ScriptedAnswer::new(vec![Step::Call(ScriptedCall {
            id: None,
            name: "plan".into(),
            arguments,
        })])
    };
    let stage = Stage::new(vec![plan("in_progress"), plan("done"), text_answer("done")]).await;
    assert_eq!(stage.turn("go").await.status, Outcome::Completed);
    let plans: Vec<Vec<String>> = stage
        .records()
        .await
        .into_iter()
        .filter_map(|evt| match evt {
            AgentEvt::PlanUpdate { items } => {
                Some(items.iter().map(|i| format!("{} {:?}", i.text, i.status)).collect())
            }
            _ => None,
        })
        .collect();
    assert_eq!(plans, [["read InProgress", "write Pending"], ["read Done", "write Pending"]]);
}

#[tokio::test]
async fn compacting_short_conversation_is_no_failure() {
    let stage = Stage::new(vec![text_answer("hello")]).await;
    stage.turn("hi").await;
    let done = stage.engine.compress(&stage.session).await.unwrap();
    assert_eq!(done.tokens_before, done.tokens_after);
    assert_eq!(stage.script.requests().len(), 1, "no model was asked");
}
