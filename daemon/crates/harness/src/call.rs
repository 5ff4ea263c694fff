//! A tool call as the gate receives it.

use std::sync::Arc;

use cairn_protocol::{envelope::Origin, id::SessionId};
use cairn_workspace::Root;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{Changes, Grants, OutputSink, WaitClock};

/// A request to call a tool.
#[derive(Debug, Clone)]
pub struct Call {
    pub session: SessionId,
    pub name: String,
    pub arguments: Value,
    /// The session's root, if it has one.
    pub root: Option<Root>,
    /// Limits of the run that calls.
    pub grants: Grants,
    /// Cancels the call when triggered.
    pub cancel: CancellationToken,
    /// Origin of the call, for the records of approvals.
    pub origin: Option<Origin>,
    /// Record that caused the call.
    pub command: Option<Uuid>,
    /// The model's id for the call, when a model made it.
    pub call_id: Option<String>,
    /// True if its run was interrupted before: an approval of the same call may exist then.
    pub resumed: bool,
    /// Performs every check and records the call, but does not run the tool.
    pub dry_run: bool,
    /// Collects the files that the call changes.
    pub changes: Changes,
    /// Counts the time spent waiting for approvers.
    pub clock: Arc<WaitClock>,
    /// Receiver of the output of its command while it runs.
    pub sink: Option<OutputSink>,
}

impl Call {
    /// Creates a call without root, grants or origin, with a token of its own.
    pub fn new(session: SessionId, name: &str, arguments: Value) -> Self {
        Self {
            session,
            name: name.to_owned(),
            arguments,
            root: None,
            grants: Grants::default(),
            cancel: CancellationToken::new(),
            origin: None,
            command: None,
            call_id: None,
            resumed: false,
            dry_run: false,
            changes: Changes::default(),
            clock: Arc::default(),
            sink: None,
        }
    }
}
