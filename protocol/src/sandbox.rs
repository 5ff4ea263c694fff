//! How commands are confined.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answer of `sandbox.probe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxProbe {
    /// `full`, `weaker` or `none`.
    pub tier: String,
    /// What bubblewrap calls itself; absent where it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bubblewrap: Option<String>,
    /// Why the full tier does not work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not_full: Option<String>,
    /// Version of Landlock's interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landlock: Option<i32>,
    /// Whether system calls can be filtered.
    pub seccomp: bool,
    /// Whether user namespaces can be made.
    pub user_namespaces: bool,
    /// Whether memory and processes are bounded by a control group, for all of a command together.
    pub control_group: bool,
    /// What it does not stop.
    pub notes: Vec<String>,
}
