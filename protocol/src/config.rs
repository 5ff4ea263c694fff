//! The configuration in force.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of the method `config.get`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigGetParams {
    /// Id or path of the root whose configuration is returned; the daemon's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// Answer of the method `config.get`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigAnswer {
    /// Values by dotted key; secrets read `"(set)"`.
    pub values: BTreeMap<String, ConfigValue>,
    /// Warnings about settings that are ignored, with the reason.
    pub warnings: Vec<String>,
}

/// Value and source of a setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigValue {
    /// The value that is in force.
    pub value: serde_json::Value,
    /// The file, variable or flag that sets it; `default` for the built-in value.
    pub source: String,
    /// Value in the files, when it takes effect only after the daemon restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<serde_json::Value>,
}

/// Answer of the method `config.reload`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigReloaded {
    /// Keys whose new value takes effect only after a restart.
    pub pending: Vec<String>,
    /// Warnings about settings that are ignored, with the reason.
    pub warnings: Vec<String>,
}
