//! The configuration that is in force.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `config.get`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigGetParams {
    /// The root whose configuration is meant, by id or path; that of the daemon itself when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// Answer of `config.get`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigAnswer {
    /// Each setting by its dotted key; secrets read `"(set)"`.
    pub values: BTreeMap<String, ConfigValue>,
    /// Lines about settings that are not taken, and why.
    pub warnings: Vec<String>,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigValue {
    /// The value in force.
    pub value: serde_json::Value,
    /// The file, variable or flag that set it; `default` for the built-in one.
    pub source: String,
    /// The value in the files, when it takes effect at the next start of the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<serde_json::Value>,
}

/// Answer of `config.reload`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigReloaded {
    /// Keys whose new value takes effect at the next start.
    pub pending: Vec<String>,
    /// Lines about settings that are not taken, and why.
    pub warnings: Vec<String>,
}
