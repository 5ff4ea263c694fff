//! Search in the log of sessions: questions, answers, commands, approvals and changed files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{id::SessionId, time::Timestamp};

/// Kind of an entry of the history.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum HistoryKind {
    /// A message of the user.
    Question,
    /// The last text of a turn, or the purpose that an explore found.
    Answer,
    /// A command line that was run.
    Command,
    /// A call that waited for an approval.
    Approval,
    /// Paths of files that a turn changed.
    File,
    /// Message of a commit.
    Commit,
}

impl HistoryKind {
    /// All kinds in the order of their names in the log.
    pub const ALL: [Self; 6] =
        [Self::Question, Self::Answer, Self::Command, Self::Approval, Self::File, Self::Commit];

    /// Returns the name as written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Answer => "answer",
            Self::Command => "command",
            Self::Approval => "approval",
            Self::File => "file",
            Self::Commit => "commit",
        }
    }

    /// Returns the kind of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Parameters of the method `session.search`: a query, a file, or both; the newest entries without.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HistoryParams {
    /// Words, of which an entry has all, or some if none has all; at most 1,000 characters. A word
    /// also finds longer ones that begin with it.
    #[serde(default)]
    pub query: String,
    /// Path of a file, or its end: only sessions that changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Kinds of entries; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<HistoryKind>>,
    /// Path of a root: only its sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Maximum number of entries, at most 100; 20 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// An entry of the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    /// Id of the session.
    pub session_id: SessionId,
    /// Title of the session.
    pub title: String,
    /// Root of the session, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Number of the record in the session.
    pub seq: u64,
    /// Time of the record.
    pub ts: Timestamp,
    /// Kind of the entry.
    pub kind: HistoryKind,
    /// The part of the text around the first word that was found, at most some 300 characters.
    pub text: String,
}

/// Result of the method `session.search`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryAnswer {
    /// The entries, best first; for a file without a query, newest first.
    pub data: Vec<HistoryEntry>,
    /// Number of sessions whose latest records are not searched yet; 0 for a complete answer.
    pub pending: u64,
}
