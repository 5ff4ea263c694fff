//! Confinement of commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answer of the method `sandbox.probe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxProbe {
    /// Confinement available: `full`, `weaker` or `none`.
    pub tier: String,
    /// Version text of bubblewrap; absent when it is not installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bubblewrap: Option<String>,
    /// Reason why the full tier is unavailable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not_full: Option<String>,
    /// Version of the Landlock interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landlock: Option<i32>,
    /// True if system calls can be filtered.
    pub seccomp: bool,
    /// True if user namespaces can be created.
    pub user_namespaces: bool,
    /// True if a control group limits memory and processes of a command in total.
    pub control_group: bool,
    /// Limits of the confinement: actions that it does not prevent.
    pub notes: Vec<String>,
}
