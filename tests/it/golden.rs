//! Stability of the wire: requests and answers of an earlier version are replayed. An answer may
//! gain fields, but it must not lose a field or change its type.
//!
//! `CAIRN_UPDATE=1` records only missing entries; existing ones are changed only by hand, together
//! with the protocol's version.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::{Map, Value, json};

use crate::{
    contents::complete,
    sealed::{Daemon, ends, tree},
};

/// Strings that clients compare: their values must not change, in addition to their type.
const WORDS: [&str; 7] = ["type", "kind", "state", "reason", "op", "protocolVersion", "lang"];

fn fixture() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("it/fixtures/wire-1.json")
}

/// Returns the requests in order; `{root}` and `{session}` are placeholders for values found during
/// the run.
fn questions() -> Vec<(&'static str, Value)> {
    let absent = "ses_00000000000000000000000000000000";
    vec![
        ("daemon.status", json!({})),
        ("daemon.stats", json!({})),
        ("index.list", json!({})),
        ("index.status", json!({})),
        ("search.lexical", json!({"query": "open_ledger"})),
        ("search.hybrid", json!({"query": "open ledger", "explain": true, "includeText": true})),
        ("search.grep", json!({"pattern": "ledger"})),
        ("search.symbols", json!({"query": "open_ledger"})),
        ("search.map", json!({})),
        ("content.getSpan", json!({"path": "{root}/app.py", "start": 1, "end": 2})),
        ("fs.listDir", json!({"path": "{root}"})),
        ("orchestrate.explore.status", json!({"sessionId": "{session}"})),
        ("orchestrate.run.status", json!({"sessionId": "{session}"})),
        ("session.list", json!({})),
        ("session.get", json!({"sessionId": "{session}"})),
        ("trace.list", json!({})),
        ("trace.get", json!({"traceId": "{session}", "limit": 500})),
        ("trace.replay", json!({"traceId": "{session}"})),
        ("audit.query", json!({})),
        ("tool.list", json!({})),
        (
            "tool.call",
            json!({"name": "search_grep", "arguments": {"pattern": "ledger"}, "sessionId": "{session}"}),
        ),
        ("approval.list", json!({})),
        ("permission.list", json!({})),
        ("provider.list", json!({})),
        ("skill.list", json!({})),
        ("memory.list", json!({})),
        ("orchestrate.subscribe", json!({"sessionId": "{session}", "after": "live"})),
        ("session.get", json!({"sessionId": absent})),
        ("search.lexical", json!({"query": 7})),
        ("no.method", json!({})),
    ]
}

fn filled(value: &Value, known: &BTreeMap<&str, String>) -> Value {
    let text = known
        .iter()
        .fold(value.to_string(), |text, (name, is)| text.replace(&format!("{{{name}}}"), is));
    serde_json::from_str(&text).unwrap()
}

/// True for a string that programs compare; strings with blanks are for people.
fn is_word(name: &str, text: &str) -> bool {
    WORDS.contains(&name) && !text.is_empty() && !text.contains(' ')
}

/// Removes values that differ between runs from an answer; keeps one element of each shape in a
/// list.
fn plain(name: &str, value: &Value) -> Value {
    match value {
        Value::Number(_) => json!(0),
        Value::String(text) if !is_word(name, text) => json!(""),
        Value::Array(list) => {
            let mut shapes: Vec<Value> = Vec::new();
            for item in list.iter().map(|item| plain("", item)) {
                if !shapes.contains(&item) {
                    shapes.push(item);
                }
            }
            Value::Array(shapes)
        }
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(name, value)| (name.clone(), plain(name, value)))
                .collect::<Map<_, _>>(),
        ),
        other => other.clone(),
    }
}

/// Returns the first path where `now` lacks a field of `then`, or has another type.
fn lost(name: &str, path: &str, then: &Value, now: &Value) -> Option<String> {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => then.iter().find_map(|(name, then)| {
            let path = format!("{path}/{name}");
            now.get(name)
                .map_or(Some(format!("{path} is gone")), |now| lost(name, &path, then, now))
        }),
        (Value::Array(then), Value::Array(now)) => {
            then.iter().enumerate().find_map(|(at, then)| {
                let path = format!("{path}/{at}");
                let all: Vec<Option<String>> =
                    now.iter().map(|now| lost("", &path, then, now)).collect();
                let fits = all.iter().any(Option::is_none);
                (!fits).then(|| {
                    all.into_iter().flatten().next().unwrap_or_else(|| format!("{path} is gone"))
                })
            })
        }
        (Value::String(then), Value::String(now)) if is_word(name, then) && then != now => {
            Some(format!("{path} was {then} and is {now}"))
        }
        _ if std::mem::discriminant(then) == std::mem::discriminant(now) => None,
        _ => Some(format!("{path} was {then} and is {now}")),
    }
}

#[test]
fn lost_or_changed_field_is_detected() {
    let then = json!({"a": 0, "list": [{"type": "x", "b": ""}]});
    for (now, fits) in [
        (
            json!({"a": 7, "list": [{"type": "y"}, {"type": "x", "b": "text", "new": true}], "new": 1}),
            true,
        ),
        (json!({"list": [{"type": "x", "b": ""}]}), false),
        (json!({"a": "7", "list": [{"type": "x", "b": ""}]}), false),
        (json!({"a": 7, "list": [{"type": "x"}]}), false),
        (json!({"a": 7, "list": [{"type": "z", "b": ""}]}), false),
        (json!({"a": 7, "list": []}), false),
    ] {
        assert_eq!(lost("", "", &then, &now).is_none(), fits, "{now}");
    }
}

#[tokio::test]
async fn answers_retain_their_fields() {
    let daemon = Daemon::start();
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let code = "def open_ledger(path):\n    return path\n\n\ndef main():\n    open_ledger(\"x\")\n";
    tree(&root, &[("app.py", code), ("README.md", "# Ledger\n\nHow it is kept.\n")]);
    let mut raw = daemon.client().await;
    let records = raw.explore(&root, &["where is the ledger kept"]).await;
    assert!(ends(records.last().unwrap()));
    complete(&mut raw).await;
    let session = records[0]["sessionId"].as_str().unwrap().to_owned();
    let known = BTreeMap::from([("root", root.to_str().unwrap().to_owned()), ("session", session)]);
    let mut then: Vec<Value> =
        std::fs::read(fixture()).map(|b| serde_json::from_slice(&b).unwrap()).unwrap_or_default();
    let mut wrong = Vec::new();
    for (method, params) in questions() {
        let mut answer = raw.call(method, filled(&params, &known)).await;
        answer.as_object_mut().unwrap().remove("id");
        match then.iter().find(|t| t["method"] == method && t["params"] == params) {
            Some(before) => wrong.extend(lost("", method, &before["answer"], &answer)),
            None if std::env::var_os("CAIRN_UPDATE").is_some() => {
                then.push(
                    json!({"method": method, "params": params, "answer": plain("", &answer)}),
                );
            }
            None => {
                wrong.push(format!("{method} {params} is not recorded: run with CAIRN_UPDATE=1"))
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    if std::env::var_os("CAIRN_UPDATE").is_some() {
        std::fs::write(fixture(), serde_json::to_string_pretty(&then).unwrap() + "\n").unwrap();
    }
}
