//! Daemons that share a broker: their state, pools of runs, and copies of their records.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    explore::RunState,
    id::{ApprovalId, SessionId},
    remote::Right,
    time::Timestamp,
    turn::ExecutionPolicy,
};

/// Longest name of a daemon or pool, in bytes.
pub const MAX_NAME: usize = 64;

/// Returns true for a name of a daemon or pool: one token of a subject, and a part of a stream's
/// name. The name that subjects use otherwise is reserved.
pub fn is_name(text: &str) -> bool {
    (1..=MAX_NAME).contains(&text.len())
        && text != "pool"
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// Returns the rights of a connection over the broker: each right includes those before it.
pub fn rights_up_to(level: Right) -> &'static [Right] {
    let all: &'static [Right] = &Right::ALL;
    &all[..=level as usize]
}

/// Answer of the method `fleet.status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetStatus {
    /// Name of this daemon in the fleet.
    pub name: String,
    /// Address of the broker, without credentials.
    pub server: String,
    /// True if the broker can be reached.
    pub connected: bool,
    /// Reason why the broker cannot be used, or why this daemon does not take part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The copying of records to the broker; absent if nothing is mirrored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<MirrorStatus>,
    /// Pools of which this daemon takes runs, and those of the other daemons.
    pub pools: Vec<PoolStatus>,
    /// Connected daemons by their names, this one included; at most 1,000, those that confirmed
    /// their state last.
    pub daemons: Vec<FleetDaemon>,
    /// True if more daemons are connected than are listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// State of the copying of records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MirrorStatus {
    /// Records that the broker confirmed since the daemon's start.
    pub confirmed: u64,
    /// Sessions with records that the broker does not have yet.
    pub waiting: u64,
    /// Messages that the broker refused because of their order.
    pub refused: u64,
    /// Reason why no record is copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// State of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolStatus {
    /// Name of the pool.
    pub name: String,
    /// Number of runs that no daemon has taken.
    pub queued: u64,
    /// Number of runs that daemons have taken and not finished.
    pub active: u64,
    /// Names of the connected daemons that take its runs.
    pub daemons: Vec<String>,
}

/// A daemon of the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetDaemon {
    /// Name of the daemon.
    pub name: String,
    /// Identity of its data folder.
    pub identity: String,
    /// Id of its process.
    pub instance: String,
    /// Version of its program.
    pub version: String,
    /// Time at which it was last seen, by the broker's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<Timestamp>,
    /// Pools of which it takes runs.
    pub pools: Vec<String>,
    /// Number of its active sessions.
    pub running: u32,
    /// Number of its approvals that wait for an answer.
    pub waiting: u32,
    /// Maximum number of runs of pools that it takes at once.
    pub max_runs: u32,
    /// Its latest sessions of which the records are mirrored, at most 20.
    pub sessions: Vec<FleetSession>,
}

/// A session of a daemon of the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetSession {
    /// Id of the session on its daemon.
    pub session_id: SessionId,
    /// Title of the session.
    pub title: String,
    /// State of the session.
    pub state: RunState,
    /// First line of the input of its latest turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Approvals that wait for an answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<FleetApproval>,
}

/// An approval that waits on a daemon of the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetApproval {
    /// Id of the approval.
    pub approval_id: ApprovalId,
    /// Name of the tool.
    pub tool: String,
    /// Summary of the call in one line.
    pub summary: String,
}

/// Parameters of the method `fleet.run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FleetRunParams {
    /// Name of the pool.
    pub pool: String,
    /// Id of the run, chosen by the client, 1 to 128 letters, digits, `-` and `_`: a repeated id
    /// adds nothing and returns the state of the first one. A random one when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// Work of the run.
    pub work: FleetWork,
    /// Repository to work in. When omitted, `root` is a folder of this machine whose remote and
    /// commit are taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<FleetRepository>,
    /// Declared root: of this machine if its repository is taken, otherwise of the daemon that
    /// takes the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Title of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Metadata that is returned unchanged; at most 32 entries.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// Work of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum FleetWork {
    /// A turn of an agent.
    Turn {
        /// Input of the turn.
        input: String,
        /// Permissions and limits of the turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<Box<ExecutionPolicy>>,
    },
    /// An explore of the repository.
    Explore {
        /// Goals of the explore.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        goals: Vec<String>,
    },
}

/// A repository, whatever folder a daemon has it in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FleetRepository {
    /// URL of its remote.
    #[serde(rename = "remoteURL")]
    pub remote_url: String,
    /// Commit to work on, in a work tree of its own; the daemon's checkout when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// State of a run of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FleetRunState {
    /// No daemon has taken it yet.
    Queued,
    /// A daemon has taken it.
    Running,
    /// The agent finished its work.
    Completed,
    /// The work failed, for the reason beside it.
    Failed,
    /// A client cancelled it.
    Cancelled,
    /// No daemon of the pool may or can do it.
    Refused,
}

impl FleetRunState {
    /// Returns true if nothing of the run follows.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }

    /// Returns its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
        }
    }
}

/// A run of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetRun {
    /// Name of the pool.
    pub pool: String,
    /// Id of the run.
    pub turn_id: String,
    /// First line of the request.
    pub request: String,
    /// State of the run.
    pub state: FleetRunState,
    /// Reason for a state that is not success, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The attempts so far; the last one is the current one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<FleetAttempt>,
    /// Daemons that refused the run, with their reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<FleetRefusal>,
    /// True if a client cancelled the run while a daemon had it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelling: bool,
    /// Name of the daemon that added the run.
    pub sent_by: String,
    /// Metadata of the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// An attempt at a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetAttempt {
    /// Name of the daemon.
    pub daemon: String,
    /// Identity of the daemon's data folder.
    pub identity: String,
    /// Id of the session on that daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// A daemon's refusal of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetRefusal {
    /// Name of the daemon.
    pub daemon: String,
    /// Reason of the refusal, for people.
    pub reason: String,
}

/// Parameters that name a run of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FleetRunRef {
    /// Name of the pool.
    pub pool: String,
    /// Id of the run.
    pub turn_id: String,
}

/// Parameters of the method `fleet.runs`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FleetRunsParams {
    /// Name of the pool.
    pub pool: String,
    /// Id of the only run to return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// Most runs of the answer, 1 to 1000; 100 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Cursor from the `nextCursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Parameters of the method `fleet.call`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FleetCallParams {
    /// Name of the daemon that is called.
    pub daemon: String,
    /// Name of the method.
    pub method: String,
    /// Parameters of the method.
    #[serde(default)]
    pub params: serde_json::Value,
}

/// Parameters of the method `fleet.records`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FleetRecordsParams {
    /// Name of the daemon that has the session.
    pub daemon: String,
    /// Id of the session.
    pub session_id: SessionId,
    /// Number of the record after which records are returned; 0 for the first one.
    #[serde(default)]
    pub after: u64,
    /// Maximum number of records, 1 to 500; 100 when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Longest wait for a record when there is none, in milliseconds, at most 30,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_millis: Option<u32>,
}

/// Answer of the method `fleet.records`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetRecords {
    /// Records in order, as the broker has them.
    pub records: Vec<serde_json::Value>,
    /// Number of the first record that the broker has, if it is not the session's first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_single_tokens() {
        for good in ["a", "build-1", "Lab_2"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "pool", "a.b", "a b", "*", ">", "é", &"x".repeat(65)] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
