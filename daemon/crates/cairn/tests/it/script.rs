//! Answers of the scripted model.

use cairn::{Rules, ScriptedAnswer, ScriptedCall, Step, Verdict};
use serde_json::Value;

pub fn text_answer(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::new(vec![Step::Text(text.into())])
}

pub fn call(tool: &str, arguments: Value) -> Step {
    Step::Call(ScriptedCall { id: None, name: tool.into(), arguments })
}

pub fn call_answer(tool: &str, arguments: Value) -> ScriptedAnswer {
    ScriptedAnswer::new(vec![call(tool, arguments)])
}

pub fn allow_all() -> Rules {
    Rules { allow: vec!["*".parse().unwrap()], default: Verdict::Allow, ..Rules::default() }
}
