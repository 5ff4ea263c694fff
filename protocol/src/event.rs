//! What happens in a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::explore::{ExplorePlan, ExploreSummary};

/// An event. A run begins with `started` and ends with exactly one of `completed`, `stopped` or `error` whose
/// `op` is the run's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvt {
    /// Work began.
    Started {
        /// What began: a tool's name, or `explore`.
        op: String,
        /// A line for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<String>,
    },
    /// How far it is.
    Progress {
        /// What goes on.
        op: String,
        /// 0 to 100.
        percent: f64,
        /// A line for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A tool's result.
    Result {
        /// The tool.
        op: String,
        /// What `data` is: `search_answer`, `grep_answer`, `span`, `dir_listing`, …
        tag: String,
        /// Always `application/json` for inline data.
        mime: String,
        /// The result itself, when it is 64 KiB or less.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<serde_json::Value>,
        /// Where a larger one lies; read it with `trace.blob`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        blob: Option<BlobRef>,
        /// True when the tool cut its output at a limit.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        truncated: bool,
    },
    /// The plan as it stands after a revision.
    PlanSnapshot {
        /// 1, 2, 3, …
        revision: u32,
        /// The plan.
        plan: ExplorePlan,
    },
    /// Something the user should know that did not stop the work.
    Warning {
        /// What it concerns.
        op: String,
        /// The text.
        message: String,
    },
    /// The daemon ended while this was going on; the session can be resumed.
    Interrupted {
        /// What was cut off.
        op: String,
    },
    /// Interrupted work goes on.
    Resumed {
        /// What goes on.
        op: String,
    },
    /// An explore ended well.
    Completed {
        /// What it found.
        summary: Box<ExploreSummary>,
    },
    /// The run was aborted.
    Stopped {
        /// What was stopped.
        op: String,
        /// By whom or why.
        reason: String,
    },
    /// Work failed; terminal when `op` is the run's own.
    Error {
        /// What failed.
        op: String,
        /// For people.
        message: String,
        /// Whether the same again may succeed.
        retryable: bool,
        /// The stable reason, as in the error table.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// A result stored by the hash of its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlobRef {
    /// SHA-256, hex.
    pub sha256: String,
    /// Bytes.
    pub size: u64,
}

impl AgentEvt {
    /// True for the last event of the run whose operation is `op`.
    pub fn ends(&self, run_op: &str) -> bool {
        match self {
            AgentEvt::Completed { .. } => true,
            AgentEvt::Stopped { op, .. } | AgentEvt::Error { op, .. } => op == run_op,
            _ => false,
        }
    }
}
