//! Sessions and subscriptions to their logs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    envelope::{CommandEnvelope, Envelope},
    explore::RunState,
    git::Worktree,
    id::{SessionId, SubscriptionId},
    time::Timestamp,
};

/// Parameters of the method `session.setMcpServers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetMcpServersParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// The servers, at most 16, in place of those that were set before.
    pub servers: Vec<SessionMcpServer>,
}

/// An MCP server of one session: a program, or an address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionMcpServer {
    /// Name of the server, a part of the names of its tools.
    pub name: String,
    /// Program of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Arguments of the program.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables of the program, taken literally.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Address of the server, instead of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of every request, taken literally.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

/// Answer of the method `session.setMcpServers`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionMcpServers {
    /// The servers and their state.
    pub servers: Vec<SessionMcpStatus>,
}

/// State of an MCP server of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionMcpStatus {
    /// Name of the server.
    pub name: String,
    /// Names of its tools in the session.
    pub tools: Vec<String>,
    /// Reason why it cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Parameters of the method `session.create`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionCreateParams {
    /// Title for people, at most 200 characters; the first line of the first turn's input if
    /// absent or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Declared root in which the session's commands work: a path or root id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Work tree of the repository in `root` in which the session works instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<WorktreeUse>,
    /// Branch of the work tree: the name of the new one (`cairn/` and a random word if absent), or
    /// that of the existing one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Revision at which the branch of a new work tree begins; the current commit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Retry key of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Work tree of a new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorktreeUse {
    /// A work tree that is created for it, and prepared by the command `worktrees.setup`.
    New,
    /// A work tree that `worktree.list` lists: `root` is its path, or `branch` its branch.
    Existing,
}

/// State of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Id of the session, which is also its trace id.
    pub session_id: SessionId,
    /// Title of the session.
    pub title: String,
    /// Root in which the session's commands work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// State of the latest run.
    pub state: RunState,
    /// Time at which the session was created.
    pub created_at: Timestamp,
    /// Time at which the log last grew.
    pub updated_at: Timestamp,
    /// Sequence number of the newest record; 0 when there is none.
    pub head_seq: u64,
    /// True if the session is archived, which hides it from lists.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// The work tree in which it works; set in the answer of `session.create` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
}

/// Parameters of the method `session.fork`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForkParams {
    /// Id of the session to fork.
    pub session_id: SessionId,
    /// Id of the turn before which the new session diverges; the complete history when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_turn_id: Option<String>,
    /// Title for people; the original's when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Parameters of the method `session.archive`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchiveParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// True (the default) archives the session, false restores it.
    #[serde(default = "yes")]
    pub archived: bool,
}

fn yes() -> bool {
    true
}

/// Page parameters of lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PageParams {
    /// Cursor from the `nextCursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Maximum number of entries, at most 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Includes archived entries in the list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
    /// Lists only entries whose id begins or ends with this, 4 to 36 characters; `ses_` may be
    /// omitted at the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// One page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PageOf{T}")]
pub struct Page<T> {
    /// Entries of the page.
    pub data: Vec<T>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Position at which a subscription starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum After {
    /// Records after this sequence number; 0 for all.
    Seq(u64),
    /// `"live"`: only records appended from now on.
    Word(LiveWord),
}

/// The literal word `live`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LiveWord {
    /// Records after the current head.
    Live,
}

/// Parameters of the method `orchestrate.subscribe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubscribeParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Position to start at; the first record when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<After>,
}

/// Answer of `orchestrate.subscribe`; the events follow as `orchestrate.event`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscribeResult {
    /// Id of the subscription, present in each of its notifications.
    pub subscription_id: SubscriptionId,
    /// Sequence number of the newest record.
    pub head_seq: u64,
    /// Sequence number of the oldest retained record.
    pub oldest_seq: u64,
}

/// Parameters of the method `orchestrate.unsubscribe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UnsubscribeParams {
    /// Id of the subscription.
    pub subscription_id: SubscriptionId,
}

/// Payload of the notification `orchestrate.event`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventNotification {
    /// Id of the subscription.
    pub subscription_id: SubscriptionId,
    /// The record, with its fields beside `subscriptionId`.
    #[serde(flatten)]
    pub record: Envelope,
}

/// Notification `orchestrate.synced`: the backlog was sent completely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncedNotification {
    /// Id of the subscription.
    pub subscription_id: SubscriptionId,
    /// Sequence number of the last record sent.
    pub seq: u64,
}

/// Notification `orchestrate.lagged`: this client fell behind and is now served from the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LaggedNotification {
    /// Id of the subscription.
    pub subscription_id: SubscriptionId,
    /// Sequence number of the next record, read from the log.
    pub from_seq: u64,
}

/// Parameters of the method `orchestrate.command`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// The command in its envelope.
    pub cmd: CommandEnvelope,
    /// Retry key of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Receipt of `orchestrate.command`; the outcome arrives as events with this `commandId` as
/// `parentId`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandReceipt {
    /// Id of the session.
    pub session_id: SessionId,
    /// Id of the command.
    pub command_id: uuid::Uuid,
    /// Sequence number of the command's durable record.
    pub seq: u64,
}

/// An object without fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}
