//! A call as it comes to the gate.

use std::sync::Arc;

use cairn_protocol::{envelope::Origin, id::SessionId};
use cairn_workspace::Root;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{Changes, Grants, WaitClock};

/// A tool call that wants to pass.
#[derive(Debug, Clone)]
pub struct Call {
    /// The session that acts.
    pub session: SessionId,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Value,
    /// The root the session works in.
    pub root: Option<Root>,
    /// What its run may do.
    pub grants: Grants,
    /// Ends the call early.
    pub cancel: CancellationToken,
    /// Who asks: for the records of approvals.
    pub origin: Option<Origin>,
    /// The record that caused it.
    pub command: Option<Uuid>,
    /// The model's id for it, when a model asked.
    pub call_id: Option<String>,
    /// Whether its run was cut off before: then an approval of the same call may exist.
    pub resumed: bool,
    /// Everything but the action itself.
    pub dry_run: bool,
    /// Where changed files are noted.
    pub changes: Changes,
    /// Where the waiting for people is counted.
    pub clock: Arc<WaitClock>,
}

impl Call {
    /// A call without root, grants or origin, that nothing cancels.
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
        }
    }
}
