//! Unattended runs: turns that go on without a client, and the checks that end them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    id::{ScheduleId, SessionId},
    time::Timestamp,
    turn::RunStartParams,
};

/// Parameters of the method `unattended.start`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UnattendedStartParams {
    /// The first turn. Later ones have its policy.
    pub turn: RunStartParams,
    /// Command line that runs in the sandbox after each turn. The run is complete when it exits
    /// with 0; otherwise its output is the input of the next turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Maximum number of turns, 1 to 100; with `until` 10 when omitted, otherwise 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Maximum cost of all turns in US dollars, by the known prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_usd: Option<f64>,
}

/// Status of an unattended run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnattendedStatus {
    /// A turn or a check runs.
    Running,
    /// A turn waits for the answer to an approval.
    Waiting,
    /// The turn completed, or the check succeeded.
    Completed,
    /// A turn failed, or the check could not run.
    Failed,
    /// The number of turns or the budget is exhausted, and the check did not succeed.
    Exhausted,
    /// A client stopped it.
    Cancelled,
}

impl UnattendedStatus {
    /// Returns true if nothing of the run follows.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Running | Self::Waiting)
    }

    /// Returns its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Exhausted => "exhausted",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A run that goes on without a client, with its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnattendedRun {
    /// Id of its session.
    pub session_id: SessionId,
    /// First line of its request.
    pub request: String,
    /// Status of the run.
    pub status: UnattendedStatus,
    /// Reason for a status that is not success, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of turns that started.
    pub turns: u32,
    /// Maximum number of turns.
    pub max_turns: u32,
    /// Command line that ends the run when it exits with 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Exit status of its latest check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_exit_code: Option<i32>,
    /// Maximum cost in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_usd: Option<f64>,
    /// Schedule that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleId>,
    /// Time at which it started.
    pub started_at: Timestamp,
    /// Time at which it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}
