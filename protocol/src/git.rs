//! Git: clone and status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `git.clone`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CloneParams {
    /// `https://`, `ssh://`, `git://`, `user@host:path` or `file://`; nothing that begins with `-`.
    #[serde(rename = "remoteURL")]
    pub remote_url: String,
    /// The branch; the remote's default when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Name of the folder under the workspaces folder; made from the URL when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dest: Option<String>,
    /// Name for `git.progress` notifications and retry key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Receipt of `git.clone`: the end comes as `git.progress` with `done`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloneReceipt {
    /// The request.
    pub request_id: String,
    /// Where the clone will be.
    pub path: String,
}

/// Result of a finished clone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloneResult {
    /// Absolute path of the checkout.
    pub path: String,
    /// Commit checked out.
    pub head: String,
    /// Branch checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// True when an earlier clone of the same remote was there already; it is brought up to date.
    pub reused: bool,
    /// Why an earlier clone was not brought up to date: it is given as it was. Without a network, what git says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
}

/// Live notification `git.progress`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitProgress {
    /// The request.
    pub request_id: String,
    /// `receiving`, `resolving`, `checkout`, …
    pub stage: String,
    /// 0 to 100.
    pub percent: f64,
    /// True on the last one.
    pub done: bool,
    /// The result, on a good end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CloneResult>,
    /// What failed, on a bad end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The stable reason of a bad end, as in the error table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Parameters of `git.status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitStatusParams {
    /// A folder inside a declared root.
    pub path: String,
}

/// State of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitStatus {
    /// False for a folder without git; the rest is empty then.
    pub is_repository: bool,
    /// Where the repository lies below the root; empty when it is the root. Changes are relative to it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub top: String,
    /// Current branch, when on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Commit checked out, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// URL of `origin`, without credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Changed files, at most 1,000.
    pub changes: Vec<GitChange>,
    /// True when there were more.
    pub truncated: bool,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitChange {
    /// Path relative to the repository.
    pub path: String,
    /// `added`, `modified`, `deleted`, `renamed`, `type_changed`, `untracked` or `conflicted`.
    pub status: String,
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitCommit {
    /// Full hash.
    pub id: String,
    /// First line of the message.
    pub subject: String,
    /// Author's name.
    pub author: String,
    /// Seconds since the epoch.
    pub time: i64,
    /// Paths it changed, at most 200; empty for merges.
    pub paths: Vec<String>,
}
