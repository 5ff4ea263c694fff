//! Git: clone, status, log and changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of the method `git.clone`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CloneParams {
    /// URL of the repository: `https://`, `ssh://`, `git://`, `user@host:path` or `file://`; it
    /// must not begin with `-`.
    #[serde(rename = "remoteURL")]
    pub remote_url: String,
    /// Branch to check out; the remote's default when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Name of the folder under the workspaces folder; derived from the URL when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dest: Option<String>,
    /// Retry key, and name for `git.progress` notifications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Receipt of `git.clone`; the result arrives as `git.progress` with `done`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloneReceipt {
    /// Id of the request.
    pub request_id: String,
    /// Path of the future clone.
    pub path: String,
}

/// Result of a finished clone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloneResult {
    /// Absolute path of the checkout.
    pub path: String,
    /// Hash of the checked-out commit.
    pub head: String,
    /// Name of the checked-out branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// True when an earlier clone of the same remote existed; it is updated.
    pub reused: bool,
    /// Reason why an earlier clone was not updated but returned unchanged; git's message when the
    /// network fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<String>,
}

/// Payload of the live notification `git.progress`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitProgress {
    /// Id of the request.
    pub request_id: String,
    /// Stage of the clone: `receiving`, `resolving`, `checkout`, …
    pub stage: String,
    /// Progress in percent, 0 to 100.
    pub percent: f64,
    /// True on the last notification.
    pub done: bool,
    /// Result of a successful clone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CloneResult>,
    /// Error message of a failed clone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Stable reason of a failure, as in the error table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Parameters of the method `git.status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitStatusParams {
    /// Path of a folder inside a declared root.
    pub path: String,
}

/// State of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitStatus {
    /// False for a folder without git; the other fields are then empty.
    pub is_repository: bool,
    /// Path of the repository below the root; empty when it is the root. Changes are relative to
    /// it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub top: String,
    /// Current branch; absent when HEAD is detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Hash of the checked-out commit, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// URL of `origin`, without credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Changed files, at most 1,000.
    pub changes: Vec<GitChange>,
    /// True when there were more changes.
    pub truncated: bool,
}

/// One changed file of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitChange {
    /// Path relative to the repository.
    pub path: String,
    /// Kind of change: `added`, `modified`, `deleted`, `renamed`, `type_changed`, `untracked` or
    /// `conflicted`.
    pub status: String,
}

/// One commit of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitCommit {
    /// Full hash of the commit.
    pub id: String,
    /// First line of the message.
    pub subject: String,
    /// Name of the author.
    pub author: String,
    /// Commit time, in seconds since the Unix epoch.
    pub time: i64,
    /// Paths that the commit changed, at most 200; empty for merges.
    pub paths: Vec<String>,
}

/// Changes between a revision and the work tree; answer of the tool `git_changes`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitChanges {
    /// Full hash of the revision's commit.
    pub base: String,
    /// Number of commits since the revision.
    pub ahead: u64,
    /// Number of commits of the revision that the checked-out commit does not have.
    pub behind: u64,
    /// Commits since the revision, newest first; at most 1,000.
    pub commits: Vec<GitCommit>,
    /// Changed files, untracked ones included; at most 5,000.
    pub files: Vec<GitFileChange>,
    /// True if the time or a limit left out commits, files or numbers of lines.
    pub truncated: bool,
}

/// Changed file with its numbers of lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitFileChange {
    /// Path relative to the repository.
    pub path: String,
    /// Former path of a renamed file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_path: Option<String>,
    /// Kind of change: `added`, `modified`, `deleted`, `renamed`, `type_changed` or `conflicted`.
    pub status: String,
    /// Number of added lines; zero for binary files.
    pub added_lines: u64,
    /// Number of deleted lines; zero for binary files.
    pub deleted_lines: u64,
}

/// Parameters of the method `worktree.create`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorktreeCreateParams {
    /// Declared root with the repository: a path or root id.
    pub root: String,
    /// Name of the branch to create; `cairn/` and a random word if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Revision at which the branch begins; the current commit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// A work tree that was created for a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Worktree {
    /// Path of the work tree, which is a declared root.
    pub path: String,
    /// Path of the repository that it belongs to.
    pub repository: String,
    /// Name of its branch.
    pub branch: String,
    /// Hash of the commit at which it began.
    pub base: String,
    /// Number of files with uncommitted changes; absent if its folder cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncommitted: Option<u64>,
    /// Number of commits since its base; absent if its folder cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits: Option<u64>,
    /// Outcome of its set-up command; absent if none ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<WorktreeSetup>,
}

/// Outcome of the set-up command of a work tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorktreeSetup {
    /// The command line of `worktrees.setup`.
    pub command: String,
    /// Exit status; absent if it did not run to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Reason why it did not run to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl WorktreeSetup {
    /// Returns true if the command ran and exited with 0.
    pub fn succeeded(&self) -> bool {
        self.exit_code == Some(0)
    }
}

/// Parameters that name a work tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorktreeRef {
    /// Path of the work tree.
    pub path: String,
}

/// Changes of a work tree since its base.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorktreeDiff {
    /// Unified diff of committed and uncommitted changes, cut at 1 MiB.
    pub diff: String,
    /// Paths of the changed files.
    pub paths: Vec<String>,
    /// True when the diff was cut.
    pub truncated: bool,
}

/// Parameters of the method `worktree.remove`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorktreeRemoveParams {
    /// Path of the work tree.
    pub path: String,
    /// True to lose uncommitted changes.
    #[serde(default)]
    pub discard: bool,
}

/// Result of the method `worktree.remove`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorktreeRemoved {
    /// Name of its branch.
    pub branch: String,
    /// True if the branch was removed too, because the repository's head has all of its commits.
    pub branch_removed: bool,
}
