//! Changes since a revision, as an explore reports them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::git::GitFileChange;

/// Changes between a revision and the work tree, and the code that they touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExploreChanges {
    /// Requested revision, as the caller wrote it.
    pub since: String,
    /// Full hash of its commit.
    pub base: String,
    /// Number of commits since the revision.
    pub commits: u64,
    /// Number of commits of the revision that the checked-out commit does not have.
    #[serde(default)]
    pub behind: u64,
    /// Number of changed files.
    pub files: u64,
    /// Number of added lines.
    pub added_lines: u64,
    /// Number of deleted lines.
    pub deleted_lines: u64,
    /// Changes by component, the system's own first, then most lines first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<ComponentChanges>,
    /// Changed files, most lines first; at most 200.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_files: Vec<GitFileChange>,
    /// Commits since the revision, newest first; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<ChangeCommit>,
    /// Changed files that other files import, most importing files first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub impact: Vec<ChangeImpact>,
    /// Changes that deserve a closer look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<ChangeRisk>,
    /// True if commits, files or contents could not be read; the numbers are then lower bounds.
    #[serde(default)]
    pub truncated: bool,
}

/// Changes of a component.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentChanges {
    /// Name of the component; for files outside of all components that of their folder, or `other
    /// files`.
    pub name: String,
    /// Path of the component or folder; empty for other files at the top.
    pub path: String,
    /// Number of commits that changed its files; merges are not counted.
    pub commits: u64,
    /// Number of added files.
    pub added: u64,
    /// Number of modified files.
    pub modified: u64,
    /// Number of deleted files.
    pub deleted: u64,
    /// Number of renamed files.
    pub renamed: u64,
    /// Number of added lines.
    pub added_lines: u64,
    /// Number of deleted lines.
    pub deleted_lines: u64,
}

/// Commit since a revision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeCommit {
    /// Full hash of the commit.
    pub id: String,
    /// First line of the message.
    pub subject: String,
}

/// Changed file that other files import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeImpact {
    /// Path of the changed file, relative to the root.
    pub path: String,
    /// Number of files that import it directly.
    pub direct: u64,
    /// Number of files that import it directly or by up to two others.
    pub total: u64,
    /// True if there are more files than that.
    #[serde(default)]
    pub truncated: bool,
    /// Paths of some files that import it, nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependents: Vec<String>,
    /// Names of the components of all these files, most files first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
}

/// Change that deserves a closer look.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeRisk {
    /// Path of the changed file, relative to the root.
    pub path: String,
    /// Kind of risk: `entrypoint`, `manifest`, `public_root`, `central`, `deleted`, `renamed`,
    /// `conflict` or `workflow`.
    pub kind: String,
    /// Reason, as `entrypoint: command 'tidepool'`.
    pub reason: String,
}
