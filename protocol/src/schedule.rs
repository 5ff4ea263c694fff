//! Schedules: requests that the daemon starts at set times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    id::{ScheduleId, SessionId},
    time::Timestamp,
    turn::ExecutionPolicy,
};

/// Parameters of the method `schedule.add`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScheduleAddParams {
    /// Times in words (`every weekday 7:00`), or as a cron expression of five fields.
    pub when: String,
    /// Name of the IANA time zone of these times; the daemon's when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The work of each run.
    pub job: ScheduledJob,
    /// Treatment of times at which the daemon was off; `once` when omitted.
    #[serde(default)]
    pub missed: MissedRuns,
}

/// The work of each run of a schedule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScheduledJob {
    /// The request, 1 byte to 64 KiB.
    pub request: String,
    /// Declared root in which the runs work: a path or root id.
    pub root: String,
    /// True if each run has a work tree of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worktree: bool,
    /// Permissions and limits of the turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<ExecutionPolicy>,
    /// As `until` of `unattended.start`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// As `maxTurns` of `unattended.start`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// As `maxUsd` of `unattended.start`, for each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_usd: Option<f64>,
}

/// Treatment of times at which the daemon was off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MissedRuns {
    /// One run follows when the daemon starts, however many were missed.
    #[default]
    Once,
    /// No run follows; the times are listed.
    Skip,
}

/// Parameters that name a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScheduleRef {
    /// Id of the schedule.
    pub schedule_id: ScheduleId,
}

/// A request that starts at set times.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    /// Id of the schedule.
    pub schedule_id: ScheduleId,
    /// Times as they were given.
    pub when: String,
    /// The same times as a cron expression.
    pub cron: String,
    /// Name of the IANA time zone of these times.
    pub timezone: String,
    /// The work of each run.
    pub job: ScheduledJob,
    /// Treatment of times at which the daemon was off.
    pub missed: MissedRuns,
    /// Name of the client that added it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Time at which it was added.
    pub created_at: Timestamp,
    /// Next time at which it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Timestamp>,
    /// Its latest runs and skipped times, newest first, at most 20.
    #[serde(default)]
    pub history: Vec<ScheduleEntry>,
}

/// A run of a schedule, or a time at which none started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleEntry {
    /// Time for which it was scheduled; that of the request for `schedule.run`.
    pub at: Timestamp,
    /// Outcome of the start.
    pub outcome: ScheduleOutcome,
    /// Session of the run, if one was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Number of scheduled times that passed while the daemon was off, this one included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<u32>,
    /// Reason of a failure, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Outcome of a scheduled time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleOutcome {
    /// A run started; its session has the rest.
    Started,
    /// The run could not be started.
    Failed,
    /// The run before it was still active.
    Overlapped,
    /// The daemon was off, and the schedule skips such times.
    Missed,
}
