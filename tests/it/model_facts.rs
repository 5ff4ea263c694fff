//! `cairn models --update`: newer facts about models than those of the program.

use serde_json::{Value, json};

use crate::sealed;

/// A table in the form of litellm, of `count` models.
fn table(count: u32) -> String {
    let model = |number: u32| {
        let model = json!({
            "litellm_provider": "openai", "mode": "chat", "max_input_tokens": 1000 + number,
            "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6
        });
        (format!("m-{number}"), model)
    };
    Value::Object((0..count).map(model).collect()).to_string()
}

#[test]
fn table_replaces_the_facts_and_other_files_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    };
    let home = dir.path().join("home");
    let update =
        |file: &str| sealed::cairn(&home, dir.path(), &["--json", "models", "--update", file]);
    let presets = home.join("model-presets.json");
    // A few models are a sign of another format.
    for (name, text) in [("none.json", "{"), ("other.json", "{\"a\": 1}"), ("few.json", &table(3))]
    {
        let (code, _, error) = update(&file(name, text));
        assert_eq!(code, 2, "{name}");
        assert!(error.contains(name) && !presets.exists(), "{error}");
    }
    assert_ne!(update(&dir.path().join("gone").to_string_lossy()).0, 0);
    let (code, output, error) = update(&file("prices.json", &table(20)));
    assert_eq!(code, 0, "{error}");
    let report: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((&report["models"], &report["source"]), (&json!(20), &json!("prices.json")));
    let stored: Value = serde_json::from_slice(&std::fs::read(&presets).unwrap()).unwrap();
    assert_eq!(stored["providers"]["openai"]["m-7"]["contextTokens"], 1007);
    assert_eq!(stored["providers"]["openai"]["m-7"]["price"]["output"], 2.0);
}
