//! End records for work that an earlier daemon left open: running sessions, operations and audit
//! rows.

use std::collections::{BTreeSet, HashMap};

use cairn_protocol::{
    approval::{ApprovalDecision, Resolution},
    envelope::{Body, Envelope, Origin},
    event::AgentEvt,
    explore::RunState,
    id::SessionId,
    time::Timestamp,
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
        self.close_orphaned_approvals().await?;
        Ok(marked)
    }

    /// Denies the approvals that a dead daemon left open and that no call will wait for again, and
    /// ends the operations that waited for them.
    async fn close_orphaned_approvals(&self) -> Result<(), TraceError> {
        let now = Timestamp::now();
        let mut sessions = BTreeSet::new();
        for approval in self.orphaned_approvals(now).await? {
            let (by, why) = match approval.expires_at <= now {
                true => ("deadline", "no answer in time"),
                false => ("cancelled", "the daemon stopped during the call"),
            };
            let resolution = Resolution {
                decision: ApprovalDecision::Deny,
                by: by.to_owned(),
                reason: Some(why.to_owned()),
                pattern: None,
                at: now,
            };
            let evt = AgentEvt::ApprovalResolved {
                approval_id: approval.approval_id.clone(),
                resolution: resolution.clone(),
            };
            let origin = Origin {
                client: Some(by.to_owned()),
                run_id: approval.run_id,
                tool: Some(approval.tool),
            };
            let append = Append::new(&approval.session_id, vec![end(None, Some(origin), evt)]);
            self.append_if_there(append.answer(&approval.approval_id, &resolution)).await?;
            sessions.insert(approval.session_id);
        }
        for session in sessions {
            let records = self.open_operations(&session).await?;
            if !records.is_empty() {
                self.append_if_there(Append::new(&session, records)).await?;
            }
        }
        Ok(())
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

fn end(parent_id: Option<Uuid>, origin: Option<Origin>, evt: AgentEvt) -> NewRecord {
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

#[cfg(test)]
mod tests {
    use cairn_protocol::{
        approval::{Approval, ApprovalListParams, Preview},
        command::{AgentCmd, ToolCall},
        id::ApprovalId,
    };

    use super::*;
    use crate::NewSession;

    fn approval(session: &SessionId, expires_at: Timestamp) -> Approval {
        Approval {
            approval_id: ApprovalId::new(),
            session_id: session.clone(),
            run_id: None,
            tool: "write_file".into(),
            arguments: serde_json::Value::Null,
            preview: Preview::default(),
            rule: "default".into(),
            project: None,
            grants: vec![],
            patterns: vec![],
            form: None,
            created_at: Timestamp(0),
            expires_at,
            resolution: None,
            shortened: false,
        }
    }

    /// A direct call is not repeated after a crash: its request and its command are closed.
    #[tokio::test]
    async fn request_of_a_direct_call_is_closed_after_a_crash() {
        let dir = tempfile::tempdir().unwrap();
        let trace = Trace::open(&dir.path().join("trace.db")).unwrap();
        let later = Timestamp(Timestamp::now().0 + 3_600_000);
        for (expires_at, by) in [(later, "cancelled"), (Timestamp(1), "deadline")] {
            let session = trace.create_session(NewSession::default()).await.unwrap().session_id;
            let command = Uuid::now_v7();
            let arguments = serde_json::json!({"path": "a"});
            let cmd = AgentCmd::from_call(ToolCall { name: "write_file".into(), arguments });
            let opening =
                NewRecord { id: command, parent_id: None, origin: None, body: Body::Cmd { cmd } };
            trace.append(Append::new(&session, vec![opening])).await.unwrap();
            let approval = approval(&session, expires_at);
            let evt = AgentEvt::ApprovalRequired { approval: Box::new(approval.clone()) };
            let request = end(Some(command), None, evt);
            trace.append(Append::new(&session, vec![request]).ask(&approval, None)).await.unwrap();
            trace.mark_interrupted().await.unwrap();
            let open = trace.approvals(ApprovalListParams::default()).await.unwrap();
            assert_eq!(open, [], "{by}");
            let stored = trace.approval(&approval.approval_id).await.unwrap().resolution.unwrap();
            assert_eq!((stored.decision, stored.by.as_str()), (ApprovalDecision::Deny, by));
            let mut ends = Vec::new();
            trace.for_each_record(&session, |record| ends.push(record)).await.unwrap();
            let last = ends.last().unwrap();
            assert_eq!(last.parent_id, Some(command), "{last:?}");
            assert!(matches!(last.body.evt(), Some(AgentEvt::Error { .. })), "{last:?}");
        }
    }
}
