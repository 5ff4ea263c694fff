//! The configuration as a table: key, value, source; secrets not shown.

use serde_json::Value;

use crate::{
    keys,
    load::{Loaded, Source},
    model::Config,
};

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Dotted key.
    pub key: String,
    /// The value, or `"(set)"` for a secret.
    pub value: Value,
    /// Where it comes from.
    pub source: Source,
}

/// The whole configuration as JSON, secrets replaced by `"(set)"`.
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
        // A URL may carry a user's password.
        let addresses = [
            ("llm.endpoint", config.llm.endpoint.as_deref()),
            ("telemetry.endpoint", config.telemetry.endpoint.as_deref()),
        ];
        for (key, endpoint) in addresses {
            let Some(endpoint) = endpoint.filter(|e| e.contains('@')) else { continue };
            let shown = endpoint.split_once("://").and_then(|(scheme, rest)| {
                rest.split_once('@').map(|(_, host)| format!("{scheme}://(set)@{host}"))
            });
            keys::set(map, key, shown.unwrap_or_else(|| "(set)".into()).into());
        }
    }
    value
}

/// Every value with its source, by key.
pub fn rows(loaded: &Loaded) -> Vec<Row> {
    let Value::Object(map) = redacted(&loaded.config) else { return vec![] };
    keys::flatten(&map)
        .into_iter()
        .map(|(key, value)| {
            let source = loaded.sources.get(&key).cloned().unwrap_or(Source::Default);
            Row { key, value: value.clone(), source }
        })
        .collect()
}

fn is_secret(key: &str) -> bool {
    // Keys of other services are what these are for.
    if key.starts_with("telemetry.headers.") {
        return true;
    }
    if key.starts_with("mcp.servers.") && [".env.", ".headers."].iter().any(|part| key.contains(part)) {
        return true;
    }
    let name = key.rsplit('.').next().unwrap_or(key).to_lowercase();
    ["api_key", "apikey", "token", "secret", "password"].iter().any(|s| name.ends_with(s))
}
