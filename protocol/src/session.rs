//! Sessions and following them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    envelope::{CommandEnvelope, Envelope},
    explore::RunState,
    id::{SessionId, SubscriptionId},
    time::Timestamp,
};

/// Parameters of `session.create`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionCreateParams {
    /// A name for people, at most 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The declared root its commands work in: a path or root id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Retry key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Its id, which is also its trace id.
    pub session_id: SessionId,
    /// Its name.
    pub title: String,
    /// The root its commands work in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// State of its latest run.
    pub state: RunState,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its log last grew.
    pub updated_at: Timestamp,
    /// Sequence number of the newest record, 0 when there is none.
    pub head_seq: u64,
    /// Whether it is put away: lists leave it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
}

/// Parameters of `session.fork`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ForkParams {
    /// The session.
    pub session_id: SessionId,
    /// The turn before which the new session begins to differ; the whole past when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_turn_id: Option<String>,
    /// A name for people; the old one's when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Parameters of `session.archive`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchiveParams {
    /// The session.
    pub session_id: SessionId,
    /// Whether to put it away (so when omitted) or to take it out again.
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
    /// Where to go on, from `nextCursor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Entries wanted, at most 500.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Whether those that are put away are listed too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
}

/// A page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PageOf{T}")]
pub struct Page<T> {
    /// The entries.
    pub data: Vec<T>,
    /// Cursor of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Where a subscription starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum After {
    /// After this sequence number; 0 for everything.
    Seq(u64),
    /// `"live"`: only what comes from now on.
    Word(LiveWord),
}

/// The word `live`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LiveWord {
    /// From the head.
    Live,
}

/// Parameters of `orchestrate.subscribe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubscribeParams {
    /// The session.
    pub session_id: SessionId,
    /// Where to start; from the beginning when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<After>,
}

/// Answer of `orchestrate.subscribe`; the events follow as `orchestrate.event`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscribeResult {
    /// Carried by every notification of this subscription.
    pub subscription_id: SubscriptionId,
    /// Newest record now.
    pub head_seq: u64,
    /// Oldest record that is kept.
    pub oldest_seq: u64,
}

/// Parameters of `orchestrate.unsubscribe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UnsubscribeParams {
    /// The subscription.
    pub subscription_id: SubscriptionId,
}

/// Notification `orchestrate.event`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventNotification {
    /// The subscription.
    pub subscription_id: SubscriptionId,
    /// The record, its fields beside `subscriptionId`.
    #[serde(flatten)]
    pub record: Envelope,
}

/// Notification `orchestrate.synced`: the backlog is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncedNotification {
    /// The subscription.
    pub subscription_id: SubscriptionId,
    /// The last record sent.
    pub seq: u64,
}

/// Notification `orchestrate.lagged`: this client fell behind and now reads from the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LaggedNotification {
    /// The subscription.
    pub subscription_id: SubscriptionId,
    /// The next record it will be sent, from the log.
    pub from_seq: u64,
}

/// Parameters of `orchestrate.command`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandParams {
    /// The session.
    pub session_id: SessionId,
    /// The command in its envelope.
    pub cmd: CommandEnvelope,
    /// Retry key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Receipt of `orchestrate.command`; the outcome comes as events with this `commandId` as `parentId`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandReceipt {
    /// The session.
    pub session_id: SessionId,
    /// The command's id.
    pub command_id: uuid::Uuid,
    /// Sequence number of the command's record; it is durable.
    pub seq: u64,
}

/// An empty object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}
