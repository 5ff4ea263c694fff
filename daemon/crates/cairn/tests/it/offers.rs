//! The tools of a session in the form that models are offered them.

use cairn::Session;
use cairn_llm::{Scripted, ToolOffer};
use serde_json::{Value, json};

/// Keywords that OpenAI and Anthropic refuse at the top of a tool's schema.
const REFUSED: &[&str] = &["oneOf", "anyOf", "allOf", "enum", "not", "const", "$ref"];

#[tokio::test]
async fn every_registered_tool_is_offered_as_an_object_schema() {
    let dir = tempfile::tempdir().unwrap();
    let session = Session::provider(std::sync::Arc::new(Scripted::new(vec![])))
        .data(dir.path().join("data"))
        .memory(dir.path().join("memory"))
        .init()
        .await
        .unwrap();
    // Hidden tools are among them: a policy can offer each.
    let tools = session.engine().tools();
    let find = |name: &str| tools.iter().find(|tool| tool.name == name).unwrap();
    for name in ["datetime", "memory", "web", "fs", "llm_call", "run_shell", "undo_turn"] {
        find(name);
    }
    let offer = |name: &str| {
        let tool = find(name);
        let offer = ToolOffer::new(&tool.name, &tool.description, &tool.input_schema);
        offer.unwrap_or_else(|| panic!("{name} is not offered"))
    };
    for tool in &tools {
        let offer = offer(&tool.name);
        let schema = offer.input_schema();
        assert_eq!(schema["type"], "object", "{}: {schema}", tool.name);
        let properties = schema["properties"].as_object().unwrap();
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten() {
            assert!(properties.contains_key(name.as_str().unwrap()), "{}: {name}", tool.name);
        }
        for keyword in REFUSED {
            assert!(schema.get(keyword).is_none(), "{}: {keyword}: {schema}", tool.name);
        }
    }
    let web = offer("web");
    let schema = web.input_schema();
    assert_eq!(schema["properties"]["action"]["enum"], json!(["fetch", "search"]));
    assert_eq!(schema["required"], json!(["action"]));
    let text = web.description();
    assert!(text.contains("action = \"search\", max_results?, query"), "{text}");
    // Control: the gate's own schemas of these tools are unions, or have no properties.
    assert!(find("web").input_schema.get("oneOf").is_some());
    assert!(find("datetime").input_schema.get("properties").is_none());
}
