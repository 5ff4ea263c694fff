//! Costs of model requests and forced tool calls, as the configuration sets them.

use serde_json::json;

use super::{ConfiguredDaemon, model_config};
use crate::{
    fake_model::{Answer, FakeModel},
    sealed::tree,
};

/// Form of tool calls: `llm.toolCalls`.
#[test]
fn tool_calls_are_forced_by_a_schema() {
    let model = FakeModel::start(|number, _| match number {
        0 => Answer::Text("{\"call\": \"read_file\", \"arguments\": {\"path\": \"a.txt\"}}"),
        _ => Answer::Text("{\"answer\": \"it is read\"}"),
    });
    let config = json!({"llm": {"toolCalls": "schema"}});
    let fixture = ConfiguredDaemon::started(&model_config("openai-compatible", &model, &config));
    tree(&fixture.folder, &[("a.txt", "the text of it\n")]);
    let done = fixture.turn("read it");
    assert_eq!(done["finalOutput"], "it is read", "{done}");
    let request = model.latest().body;
    assert!(request.get("tools").is_none() && request["response_format"].is_object(), "{request}");
    assert!(request["messages"].to_string().contains("the text of it"), "{request}");
}

/// Limits in money: `models.maxUsdPerTurn`, `models.maxUsdPerSession`, `models.maxUsdPerDay`.
#[test]
fn costs_are_limited_as_configured() {
    // The answer to a prompt is a call, so that each turn requires a second request.
    let model = FakeModel::start(|_, body| {
        let last = body["messages"].as_array().and_then(|all| all.last()).cloned();
        match last.unwrap_or_default()["role"] == "tool" {
            true => Answer::Text("done"),
            false => Answer::Call("read_file", json!({"path": "a.txt"})),
        }
    });
    // The model has a price only under its provider's name.
    let config = |limit: &str| {
        let llm = json!({"model": "gpt-4o", "apiKey": "k"});
        let models = json!({limit: 0.000001});
        model_config("openai", &model, &json!({"llm": llm, "models": models}))
    };
    for limit in ["maxUsdPerTurn", "maxUsdPerSession", "maxUsdPerDay"] {
        let fixture = ConfiguredDaemon::started(&config(limit));
        let done = fixture.turn("hi");
        assert!(done["usage"]["costMicroUsd"].as_u64() > Some(0), "{limit}: {done}");
        assert_eq!(done["error"]["reason"], "budget_exceeded", "{limit}: {done}");
        assert!(done.to_string().contains(&format!("models.{limit}")), "{limit}: {done}");
    }
}
