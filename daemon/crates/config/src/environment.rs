//! Values from the environment. Each key has a variable: `listen.port` is set by
//! `CAIRN_LISTEN_PORT`.

use serde_json::{Map, Value};

use crate::{
    keys,
    load::{ConfigError, Layer, Source},
    model::Config,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    /// The dotted key that the variable sets.
    pub key: String,
}

/// Variables of the shell tool that predate the general scheme.
const SHELL_VARIABLES: [(&str, &str); 6] = [
    ("SHELL_TOOL_ENABLED", "tools.builtin.run_shell.enabled"),
    ("SHELL_TOOL_MODE", "tools.builtin.run_shell.mode"),
    ("SHELL_TOOL_TIMEOUT_MS", "tools.builtin.run_shell.timeoutSeconds"),
    ("SHELL_TOOL_MAX_OUTPUT_CHARS", "tools.builtin.run_shell.maxOutputChars"),
    ("SHELL_TOOL_ALLOWED_PREFIXES", "tools.builtin.run_shell.allowedPrefixes"),
    ("SHELL_TOOL_CWD", "tools.builtin.run_shell.cwd"),
];

/// Variables that Cairn reads and that are not configuration.
const OTHER_VARIABLES: [&str; 6] =
    ["CAIRN_HOME", "CAIRN_CONFIG", "CAIRN_LOG", "CAIRN_TOKEN", "CAIRN_PROJECT", "CAIRN_SESSION"];

/// Lists every variable. A value is JSON, plain text or, for a list, words separated by commas.
pub fn variables() -> Vec<Variable> {
    let fixed = keys::leaves().iter().filter(|key| !key.contains(keys::WILDCARD));
    let mut all: Vec<Variable> =
        fixed.map(|key| Variable { name: name_of(key), key: key.clone() }).collect();
    all.extend(
        SHELL_VARIABLES
            .iter()
            .map(|(name, key)| Variable { name: (*name).into(), key: (*key).into() }),
    );
    all
}

fn name_of(key: &str) -> String {
    let mut name = String::from("CAIRN_");
    for c in key.chars() {
        match c {
            '.' => name.push('_'),
            c if c.is_ascii_uppercase() => {
                name.push('_');
                name.push(c);
            }
            c => name.push(c.to_ascii_uppercase()),
        }
    }
    name
}

/// Returns one layer per variable, and unknown `CAIRN_` variables with the closest known name.
pub(crate) fn layers(
    env: &[(String, String)],
    errors: &mut Vec<ConfigError>,
) -> (Vec<Layer>, Vec<(String, Option<String>)>) {
    let known = variables();
    let mut layers = Vec::new();
    let mut unknown = Vec::new();
    for (name, text) in env {
        let Some(variable) = known.iter().find(|v| v.name == *name) else {
            if name.starts_with("CAIRN_") && !OTHER_VARIABLES.contains(&name.as_str()) {
                let nearest = known.iter().map(|v| (strsim::jaro_winkler(name, &v.name), &v.name));
                let best = nearest.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|b| b.0 > 0.9);
                unknown.push((name.clone(), best.map(|b| b.1.clone())));
            }
            continue;
        };
        let source = Source::Env(name.clone());
        match parse(&variable.key, name, text) {
            Ok(values) => {
                layers.push(Layer { source, values, is_project: false, is_trusted: false })
            }
            Err(message) => errors.push(ConfigError {
                origin: source,
                key: Some(variable.key.clone()),
                message,
            }),
        }
    }
    (layers, unknown)
}

/// Reads `text` as the first of JSON, plain text and list that the key accepts.
fn parse(key: &str, name: &str, text: &str) -> Result<Map<String, Value>, String> {
    let mut readings: Vec<Value> = serde_json::from_str(text).into_iter().collect();
    if name == "SHELL_TOOL_TIMEOUT_MS" {
        readings = text
            .trim()
            .parse::<u64>()
            .map(|ms| Value::from(ms.div_ceil(1000)))
            .into_iter()
            .collect();
    } else {
        readings.push(Value::from(text));
        let words = text.split(',').map(str::trim).filter(|w| !w.is_empty());
        readings.push(words.map(Value::from).collect());
    }
    let mut problem = "not a number".to_owned();
    for (n, reading) in readings.into_iter().enumerate() {
        let mut values = Map::new();
        keys::set(&mut values, key, reading);
        match serde_path_to_error::deserialize::<_, Config>(Value::Object(values.clone())) {
            Ok(_) => return Ok(values),
            Err(e) if n == 0 => problem = e.inner().to_string(),
            Err(_) => {}
        }
    }
    Err(problem)
}
