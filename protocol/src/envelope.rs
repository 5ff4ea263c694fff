//! The record: what the log stores and what every client receives, byte for byte the same.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{command::AgentCmd, event::AgentEvt, id::SessionId, time::Timestamp};

/// One numbered entry of a session's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Envelope {
    /// The session it belongs to.
    pub session_id: SessionId,
    /// Position in the session's log: 1, 2, 3, … with no gap.
    pub seq: u64,
    /// This entry's own id (bare UUIDv7).
    pub id: Uuid,
    /// The entry that caused this one: events of a command carry the command's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<Uuid>,
    /// When it was appended.
    pub ts: Timestamp,
    /// Who caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The command or event itself, under `cmd` or `evt`.
    #[serde(flatten)]
    pub body: Body,
}

/// Where an entry comes from, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// Name of the client that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<crate::id::RunId>,
    /// The tool that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// A command that was given or an event that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
pub enum Body {
    /// Something was asked for.
    Cmd {
        /// The command.
        cmd: AgentCmd,
    },
    /// Something happened.
    Evt {
        /// The event.
        evt: AgentEvt,
    },
}

impl Body {
    /// The event, when this is one.
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
    /// Made by the client; the events that answer carry it as `parentId`. A fresh one when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    /// What led to this command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<Uuid>,
    /// The client's own time; the log uses the daemon's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ts: Option<Timestamp>,
    /// `Cmd`, when given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The command.
    pub payload: AgentCmd,
}
