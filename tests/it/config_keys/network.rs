//! The network by domain and background commands, as the configuration sets them.

use serde_json::{Value, json};

use super::{ConfiguredDaemon, model_config};
use crate::fake_model::{Answer, FakeModel};

/// Answers every prompt with a call of `run_shell`, and every result with a text.
fn caller() -> FakeModel {
    FakeModel::start(|_, body| {
        let last = body["messages"].as_array().and_then(|all| all.last()).cloned();
        let last = last.unwrap_or_default();
        if last["role"] == "tool" {
            return Answer::Text("done");
        }
        let text = last["content"].as_str().unwrap_or_default();
        let command = text.split("RUN ").nth(1).unwrap_or("true").to_owned();
        let background = text.contains("BACKGROUND");
        Answer::Call("run_shell", json!({"command": command, "background": background}))
    })
}

/// Returns the result of the latest call, as the model received it.
fn result(model: &FakeModel) -> String {
    let body = model.latest().body;
    let last = body["messages"].as_array().and_then(|all| all.last()).cloned();
    last.unwrap_or_default().to_string()
}

fn open(model: &FakeModel, more: &Value) -> Value {
    let open = json!({
        "permissions": {"allow": ["run_shell"]}, "safety": {"requireConfirmation": []},
        "tools": {"builtin": {"run_shell": {"enabled": true}}}
    });
    let mut config = model_config("openai-compatible", model, &open);
    super::merge(&mut config, more);
    config
}

/// `network.domains`, `network.ports`, `network.ask`. The names resolve nowhere.
#[test]
fn commands_reach_configured_domains() {
    let model = caller();
    let config =
        json!({"network": {"domains": ["*.cairn.invalid"], "ports": [8081], "ask": false}});
    let fixture = ConfiguredDaemon::started(&open(&model, &config));
    for (url, want) in [
        ("http://a.cairn.invalid/", "cannot be resolved"),
        ("http://a.cairn.invalid:8081/", "cannot be resolved"),
        ("http://a.cairn.invalid:8082/", "network.ports"),
        ("http://other.invalid/", "in no list"),
    ] {
        fixture.turn(&format!("RUN curl -sS -m 20 {url}"));
        assert!(result(&model).contains(want), "{url}: {}", result(&model));
    }
    let web = model.latest().body["tools"].to_string();
    assert!(web.contains("web_fetch"), "{web}");
    // A list that allows nothing, and no question, is no network at all.
    fixture.reload(&open(&model, &json!({"network": {"ask": false}})));
    fixture.turn("RUN env");
    assert!(!result(&model).contains("PROXY"), "{}", result(&model));
    assert!(!model.latest().body["tools"].to_string().contains("web_fetch"));
}

/// Limits of background commands: `sandbox.maxBackground`, `sandbox.backgroundSeconds`.
#[tokio::test]
async fn background_commands_are_limited_as_configured() {
    let model = caller();
    let limits = json!({"sandbox": {"maxBackground": 0}});
    let fixture = ConfiguredDaemon::started(&open(&model, &limits));
    fixture.turn("BACKGROUND RUN sleep 60");
    assert!(result(&model).contains("sandbox.maxBackground"), "{}", result(&model));
    fixture.reload(&open(&model, &json!({"sandbox": {"backgroundSeconds": 1}})));
    let done = fixture.turn("BACKGROUND RUN sleep 60");
    assert!(result(&model).contains("running"), "{}", result(&model));
    let session = done["sessionId"].clone();
    let mut raw = fixture.daemon().client().await;
    let timed_out = |page: &Value| (page["data"][0]["state"] == "timed_out").then_some(());
    raw.poll("background.list", json!({"sessionId": session}), timed_out).await;
}
