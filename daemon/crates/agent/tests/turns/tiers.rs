//! The fixed part of a prompt by the model's context: its tokens, its prefix, what it leaves out.

use std::sync::Arc;

use cairn_engine::{TurnSettings, model::Models};
use cairn_llm::{Provider, Script, Scripted, ScriptedAnswer};
use cairn_protocol::{
    error::Failure,
    event::AgentEvt,
    model::Message,
    prompt::PromptShowParams,
    session::SessionCreateParams,
    turn::{ExecutionPolicy, ModelChoice, Outcome, ProviderInfo, ProviderSetParams},
};
use serde_json::json;

use crate::stage::{Stage, allow_all, text_answer};

fn script(context_tokens: Option<u64>, answers: Vec<ScriptedAnswer>) -> Scripted {
    Scripted::of(Script { answers, context_tokens, ..Script::default() })
}

/// Settings of a daemon, with the repository map.
fn settings() -> TurnSettings {
    TurnSettings::default()
}

/// Opens a session in the sample project of the integration tests.
async fn in_project(stage: &mut Stage) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/it/fixtures/sample");
    let root = std::path::Path::new(root).canonicalize().unwrap().to_string_lossy().into_owned();
    let params = serde_json::from_value(json!({"path": root})).unwrap();
    stage.engine.add_root(params).await.unwrap();
    let params = SessionCreateParams { root: Some(root.clone()), ..Default::default() };
    stage.session = stage.engine.create_session(params).await.unwrap().session_id;
}

/// Tokens of system text and tools in the last request, by the provider's estimate.
fn fixed(script: &Arc<Scripted>) -> u64 {
    let request = script.requests().pop().unwrap();
    let tools = request.tools.iter().map(|tool| {
        script.count_tokens(tool.description())
            + script.count_tokens(&tool.input_schema().to_string())
            + 8
    });
    script.count_tokens(&request.system) + tools.sum::<u64>()
}

#[tokio::test]
async fn fixed_prompt_fits_the_context_of_the_model() {
    for (context, limit) in
        [(4096, 1500), (8192, 1500), (16_384, 3000), (32_768, 6000), (200_000, 6000)]
    {
        let model = script(Some(context), vec![text_answer("hello")]);
        let mut stage = Stage::with(model, allow_all(), settings()).await;
        in_project(&mut stage).await;
        let result = stage.turn("hi").await;
        assert_eq!(result.status, Outcome::Completed, "{context}: {result:?}");
        assert_eq!(result.final_output.as_deref(), Some("hello"));
        let request = stage.script.requests().pop().unwrap();
        let tokens = fixed(&stage.script);
        eprintln!("{context}: {tokens} tokens, {} tools", request.tools.len());
        assert!(tokens <= limit, "{context}: {tokens} tokens\n{}", request.system);
        assert!(u64::from(request.max_tokens) <= context / 4, "room for the answer");
        let names: Vec<&str> = request.tools.iter().map(|t| t.name()).collect();
        for needed in ["read_file", "search_code", "edit_file"] {
            assert!(names.contains(&needed), "{context}: {names:?}");
        }
        let is_reported = request.system.contains(&format!("context has {context} tokens"));
        assert_eq!(is_reported, context < 32_000, "a short prompt says that it is one");
    }
}

#[tokio::test]
async fn prompt_lists_exactly_the_offered_tools() {
    for context in [8192, 16_384, 200_000] {
        let ops = ["read_file", "search_code", "edit_file", "plan"].map(str::to_owned).to_vec();
        for ops in [None, Some(ops)] {
            let policy = ExecutionPolicy { ops, ..ExecutionPolicy::default() };
            offered_tools_are_listed(context, policy).await;
        }
    }
}

async fn offered_tools_are_listed(context: u64, policy: ExecutionPolicy) {
    let model = script(Some(context), vec![text_answer("hello")]);
    let stage = Stage::with(model, allow_all(), settings()).await;
    let params =
        PromptShowParams { session_id: stage.session.clone(), policy: Some(policy.clone()) };
    let displayed = stage.engine.show_prompt(params).await.unwrap().system;
    stage.turn_with("hi", policy).await;
    let request = stage.script.requests().pop().unwrap();
    assert_eq!(displayed, request.system, "{context}");
    let section = request.system.split("# Active tools\n\n").nth(1).unwrap();
    let section = section.split("\n\n").next().unwrap();
    let listed: Vec<&str> = if section.starts_with("- ") {
        section.lines().filter_map(|l| l.strip_prefix("- ")?.split(' ').next()).collect()
    } else {
        section.split(", ").collect()
    };
    let offered: Vec<&str> = request.tools.iter().map(|t| t.name()).collect();
    assert_eq!(listed, offered, "{context}");
}

#[tokio::test]
async fn prompts_of_sessions_are_equal_up_to_the_clock() {
    let model = script(None, vec![text_answer("a"), text_answer("b")]);
    let mut stage = Stage::with(model, allow_all(), settings()).await;
    in_project(&mut stage).await;
    stage.turn("hi").await;
    let first = stage.script.requests().pop().unwrap();
    in_project(&mut stage).await;
    stage.turn("hi").await;
    let second = stage.script.requests().pop().unwrap();
    let prefix = |system: &str| {
        let (prefix, date) = system.split_once("# Date\n\n").unwrap();
        assert!(!date.contains('#'), "the date is last: {date}");
        prefix.to_owned()
    };
    assert_eq!(prefix(&first.system), prefix(&second.system));
    assert_eq!(first.tools, second.tools);
}

#[tokio::test]
async fn conversation_is_condensed_by_the_context_of_the_model() {
    // 40,000 tokens are more than the fallback of 32,000 and far less than 200,000.
    let long = "word ".repeat(40_000);
    for (context, condensed) in [(Some(200_000), false), (None, true)] {
        let answers = (0..3).map(|_| text_answer("fine")).collect();
        let stage = Stage::with(script(context, answers), allow_all(), settings()).await;
        stage.turn("hi").await;
        let result = stage.turn(&long).await;
        let compacted =
            stage.records().await.iter().any(|e| matches!(e, AgentEvt::Compacted { .. }));
        assert_eq!(compacted, condensed, "{context:?}: {result:?}");
        let request = stage.script.requests().pop().unwrap();
        let complete = request.messages.iter().any(|m| match m {
            Message::User { .. } => serde_json::to_string(m).unwrap().len() > long.len(),
            _ => false,
        });
        assert_eq!(complete, !condensed);
    }
}

/// Two models, "wide" and "narrow".
struct TwoModels(Arc<Scripted>, Arc<Scripted>);

impl Models for TwoModels {
    fn default_choice(&self) -> ModelChoice {
        ModelChoice { provider: String::new(), model: "wide".into(), endpoint: None }
    }
    fn provider(&self, choice: &ModelChoice) -> Result<Arc<dyn Provider>, Failure> {
        Ok(if choice.model == "narrow" { self.1.clone() } else { self.0.clone() })
    }
    fn list(&self) -> Vec<ProviderInfo> {
        vec![]
    }
}

#[tokio::test]
async fn smaller_context_is_announced_and_the_history_stays() {
    let stage = Stage::new(vec![]).await;
    let named = |model: &str, tokens, text: &str| {
        let answers = vec![text_answer(text)];
        let context_tokens = Some(tokens);
        Arc::new(Scripted::of(Script { answers, context_tokens, model: model.into() }))
    };
    let (wide, narrow) = (named("wide", 200_000, "Hello Ada"), named("narrow", 16_384, "Ada"));
    stage.engine.set_models(Arc::new(TwoModels(wide, Arc::clone(&narrow))));
    stage.turn("I am Ada").await;
    let params = ProviderSetParams {
        session_id: stage.session.clone(),
        provider: None,
        model: Some("narrow".into()),
        endpoint: None,
    };
    let set = stage.engine.set_model(params, None).await.unwrap();
    assert!(set.warnings[0].contains("older turns may be condensed"), "{:?}", set.warnings);
    stage.turn("who am I?").await;
    assert_eq!(narrow.requests()[0].messages.len(), 3);
}
