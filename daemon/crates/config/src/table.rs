//! The configuration as rows of key, value and source, with secrets replaced.

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    keys,
    load::{Loaded, Source},
    model::Config,
};

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub key: String,
    /// The value, or `"(set)"` for a secret.
    pub value: Value,
    /// A part of the value is secret, and `value` does not have it.
    pub is_redacted: bool,
    pub source: Source,
}

/// Serialises the configuration with secrets replaced by `"(set)"`.
pub fn redacted(config: &Config) -> Value {
    let mut value = serde_json::to_value(config).unwrap_or_default();
    if let Value::Object(map) = &mut value {
        let secrets: Vec<String> = keys::flatten(map)
            .into_iter()
            .filter(|(key, value)| is_secret(key) && !value.is_null())
            .map(|(key, _)| key)
            .collect();
        for key in secrets {
            keys::set(map, &key, "(set)".into());
        }
        // A URL can contain a password.
        let addresses = [
            ("llm.endpoint", config.llm.endpoint.as_deref()),
            ("telemetry.endpoint", config.telemetry.endpoint.as_deref()),
        ];
        for (key, endpoint) in addresses {
            let Some(endpoint) = endpoint.filter(|e| e.contains('@')) else { continue };
            let redacted = endpoint.split_once("://").and_then(|(scheme, rest)| {
                rest.split_once('@').map(|(_, host)| format!("{scheme}://(set)@{host}"))
            });
            keys::set(map, key, redacted.unwrap_or_else(|| "(set)".into()).into());
        }
    }
    value
}

/// Lists every value with its source, by key.
pub fn rows(loaded: &Loaded) -> Vec<Row> {
    let Value::Object(map) = redacted(&loaded.config) else { return vec![] };
    let plain = serde_json::to_value(&loaded.config).unwrap_or_default();
    let plain: HashMap<String, &Value> =
        plain.as_object().map(keys::flatten).unwrap_or_default().into_iter().collect();
    keys::flatten(&map)
        .into_iter()
        .map(|(key, value)| {
            let is_redacted = plain.get(&key).copied() != Some(value);
            let source = loaded.sources.get(&key).cloned().unwrap_or(Source::Default);
            Row { key, value: value.clone(), is_redacted, source }
        })
        .collect()
}

fn is_secret(key: &str) -> bool {
    // Headers and variables for other services often contain their keys.
    if key.starts_with("telemetry.headers.") {
        return true;
    }
    // The addresses of webhooks contain tokens in their path.
    if key == "notifications.webhook" {
        return true;
    }
    if key.starts_with("mcp.servers.")
        && [".env.", ".headers."].iter().any(|part| key.contains(part))
    {
        return true;
    }
    let name = key.rsplit('.').next().unwrap_or(key).to_lowercase();
    ["api_key", "apikey", "token", "secret", "password"].iter().any(|s| name.ends_with(s))
}
