//! End records for work that an earlier daemon left open: running sessions, operations and audit
//! rows.

use std::collections::{BTreeSet, HashMap};

use cairn_protocol::{
    envelope::{Body, Envelope},
    event::AgentEvt,
    explore::RunState,
    id::SessionId,
};
use cairn_store::StoreError;
use uuid::Uuid;

use crate::{Append, INTERRUPTED, NewRecord, Trace, TraceError};

/// An operation whose start is in the log.
struct Operation {
    name: String,
    /// The model's id of the call, if a turn made it.
    call: Option<String>,
    record: Envelope,
}

impl Trace {
    /// Marks every session that a crashed daemon left running as interrupted, and appends an end
    /// record for each interrupted operation; returns the sessions that were running. Called once,
    /// before any work starts.
    ///
    /// # Errors
    /// Fails when the log cannot be written.
    pub async fn mark_interrupted(&self) -> Result<Vec<SessionId>, TraceError> {
        let query = "SELECT id, run_op FROM session WHERE state = 'running'";
        let rows: Vec<(String, String)> = self
            .read(move |conn| {
                let mut statement = conn.prepare(query)?;
                let rows = statement.query_map([], |r| Ok((r.get(0)?, r.get(1)?)))?;
                rows.collect::<Result<_, _>>().map_err(TraceError::from)
            })
            .await?;
        let running: Vec<(SessionId, String)> =
            rows.into_iter().filter_map(|(id, op)| Some((id.parse().ok()?, op))).collect();
        let acted: BTreeSet<SessionId> = self.close_audit().await?.into_iter().collect();
        for session in &acted {
            if !running.iter().any(|(id, _)| id == session) {
                let records = self.open_operations(session).await?;
                if !records.is_empty() {
                    self.append_if_there(Append::new(session, records)).await?;
                }
            }
        }
        let mut marked = Vec::new();
        for (id, op) in running {
            let mut records = self.open_operations(&id).await?;
            records.push(end(None, None, AgentEvt::Interrupted { op }));
            self.append(Append::new(&id, records).state(RunState::Interrupted)).await?;
            marked.push(id);
        }
        Ok(marked)
    }

    /// Appends unless the session was deleted, because the audit outlives its session.
    async fn append_if_there(&self, append: Append) -> Result<(), TraceError> {
        match self.append(append).await {
            Err(TraceError::SessionNotFound(_)) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Returns end records for the open operations of a session. A call that waits for an approval
    /// is not interrupted: it continues to wait.
    async fn open_operations(&self, session: &SessionId) -> Result<Vec<NewRecord>, TraceError> {
        let mut open: HashMap<Uuid, Operation> = HashMap::new();
        let mut pending_approvals: HashMap<cairn_protocol::id::ApprovalId, Uuid> = HashMap::new();
        let read =
            self.for_each_record(session, |record| take(record, &mut open, &mut pending_approvals));
        match read.await {
            // One damaged session must not prevent the start. Whoever reads it receives the error.
            Err(TraceError::Store(StoreError::DamagedRecord { .. })) => return Ok(vec![]),
            read => read.map(drop)?,
        }
        for waiting in pending_approvals.into_values() {
            open.remove(&waiting);
        }
        let mut open: Vec<Operation> = open.into_values().collect();
        open.sort_by_key(|operation| operation.record.seq);
        let end_record = |Operation { name, record, .. }: Operation| {
            let evt = AgentEvt::Error {
                op: name,
                message: "the daemon stopped while it was running".into(),
                retryable: true,
                reason: Some(INTERRUPTED.into()),
            };
            end(Some(record.id), record.origin, evt)
        };
        Ok(open.into_iter().map(end_record).collect())
    }
}

fn end(
    parent_id: Option<Uuid>,
    origin: Option<cairn_protocol::envelope::Origin>,
    evt: AgentEvt,
) -> NewRecord {
    NewRecord { id: Uuid::now_v7(), parent_id, origin, body: Body::Evt { evt } }
}

fn take(
    record: Envelope,
    open: &mut HashMap<Uuid, Operation>,
    pending_approvals: &mut HashMap<cairn_protocol::id::ApprovalId, Uuid>,
) {
    let parent = record.parent_id;
    match &record.body {
        Body::Cmd { cmd } => {
            let name = cmd.clone().into_call().name;
            open.insert(record.id, Operation { name, call: None, record });
        }
        Body::Evt { evt } => match evt {
            AgentEvt::ToolCall { call_id, name, .. } => {
                let (name, call) = (name.clone(), Some(call_id.clone()));
                // A repeated call replaces the interrupted one.
                open.retain(|_, operation| operation.call != call);
                open.insert(record.id, Operation { name, call, record });
            }
            AgentEvt::ToolResult(outcome) => {
                open.retain(|_, operation| operation.call.as_ref() != Some(&outcome.call_id));
            }
            AgentEvt::Result { .. } | AgentEvt::Error { .. } => {
                parent.and_then(|id| open.remove(&id));
            }
            AgentEvt::ApprovalRequired { approval } => {
                if let Some(parent) = parent {
                    pending_approvals.insert(approval.approval_id.clone(), parent);
                }
            }
            AgentEvt::ApprovalResolved { approval_id, .. } => {
                pending_approvals.remove(approval_id);
            }
            // Operations left open by a finished run are not closed here.
            AgentEvt::RunCompleted { .. }
            | AgentEvt::Stopped { .. }
            | AgentEvt::Completed { .. } => {
                let run = record.origin.as_ref().and_then(|o| o.run_id.clone());
                let of = |operation: &Operation| {
                    operation.record.origin.as_ref().and_then(|o| o.run_id.clone())
                };
                open.retain(|_, operation| run.is_none() || of(operation) != run);
            }
            _ => {}
        },
    }
}
