//! The board: sessions with the data that people need to steer them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{approval::Approval, session::Session, unattended::UnattendedRun};

/// Parameters of the method `session.board`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BoardParams {
    /// Maximum number of sessions, 1 to 100; 20 when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Answer of the method `session.board`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Board {
    /// Sessions that wait for an answer, then running ones, then the latest others.
    pub rows: Vec<BoardRow>,
}

/// A session of the board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BoardRow {
    /// State of the session itself.
    pub session: Session,
    /// Branch of the work tree in which it works; absent outside of created work trees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// First line of the input of its latest turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Session of the agent that started it as a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<crate::id::SessionId>,
    /// Requests that wait for an answer.
    pub waiting: Vec<Approval>,
    /// Number of turns in the queue.
    pub queued: u64,
    /// Cost of all its answers in millionths of a dollar; absent if no price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
    /// Its unattended run, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unattended: Option<UnattendedRun>,
}
