//! The record: the log stores it, and every client receives the same bytes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{command::AgentCmd, event::AgentEvt, id::SessionId, time::Timestamp};

/// One numbered entry of a session's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// Id of the session that the entry belongs to.
    pub session_id: SessionId,
    /// Position in the session's log: 1, 2, 3, … without gaps.
    pub seq: u64,
    /// Id of this entry (bare UUIDv7).
    pub id: Uuid,
    /// Id of the entry that caused this one: events of a command carry the command's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<Uuid>,
    /// Time at which the entry was appended.
    pub ts: Timestamp,
    /// Client, run and tool that caused the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The command or event itself, under `cmd` or `evt`.
    #[serde(flatten)]
    pub body: Body,
}

/// Client, run and tool that caused an entry, as far as known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// Name of the client that made the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Id of the run that the entry belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<crate::id::RunId>,
    /// Name of the tool that produced the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// A command that was received, or an event that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
pub enum Body {
    /// A command that was received.
    Cmd {
        /// The command that was received.
        cmd: AgentCmd,
    },
    /// An event that happened.
    Evt {
        /// The event that happened.
        evt: AgentEvt,
    },
}

impl Body {
    /// Returns the event; `None` for a command.
    pub fn evt(&self) -> Option<&AgentEvt> {
        match self {
            Body::Evt { evt } => Some(evt),
            Body::Cmd { .. } => None,
        }
    }
}

/// A command as a client sends it in `orchestrate.command`; only `payload` is required.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandEnvelope {
    /// Id chosen by the client, returned as `parentId` of the resulting events; a new one when
    /// omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// Id of the entry that led to this command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<Uuid>,
    /// Time by the client's clock; the log uses the daemon's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ts: Option<Timestamp>,
    /// Always `Cmd` when present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The command to execute.
    pub payload: AgentCmd,
}
