//! Background commands: commands of a session that continue after the call that started them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{id::SessionId, time::Timestamp};

/// State of a background command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackgroundState {
    /// The command is running.
    Running,
    /// The command exited by itself.
    Exited,
    /// A client or the model stopped the command.
    Stopped,
    /// The command reached the limit of its lifetime.
    TimedOut,
    /// The command was stopped when its session was deleted or archived.
    SessionClosed,
    /// The command ended with the daemon.
    DaemonStopped,
}

/// A background command of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundCommand {
    /// Id of the command, unique in its session.
    pub id: String,
    /// Command line as it was given.
    pub command: String,
    /// State of the command.
    pub state: BackgroundState,
    /// Exit code, once it has ended: 128 plus the number of the signal that killed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Time of the start.
    pub started_at: Timestamp,
    /// Time of the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Bytes of output so far.
    pub bytes: u64,
}

/// Parameters of the method `background.output`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackgroundOutputParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of the command.
    pub id: String,
    /// Position to read from, as returned by an earlier call; 0 by default.
    #[serde(default)]
    pub cursor: u64,
}

/// A reference to a background command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackgroundRef {
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of the command.
    pub id: String,
}

/// New output of a background command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackgroundOutput {
    /// The command with its state.
    pub command: BackgroundCommand,
    /// Output from the position on, both streams in the order of arrival.
    pub output: String,
    /// Position for the next call.
    pub cursor: u64,
    /// Bytes that are no longer stored, between the requested position and `output`.
    pub dropped: u64,
    /// True if more output is already available at `cursor`.
    pub more: bool,
}
