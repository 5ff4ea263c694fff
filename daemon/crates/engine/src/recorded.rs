//! Completed calls of an interrupted run, so that a resumed one does not repeat them.

use std::collections::HashMap;

use cairn_protocol::{
    command::{AgentCmd, ToolCall},
    envelope::{Body, Envelope},
    error::{Failure, Reason},
    event::{AgentEvt, BlobRef},
    id::{RunId, SessionId},
};
use cairn_trace::Trace;
use uuid::Uuid;

use crate::queue::key;

/// Outcomes in the log by their call.
#[derive(Debug, Default)]
pub struct Recorded(HashMap<String, RecordedOutcome>);

#[derive(Debug)]
enum RecordedOutcome {
    Inline(serde_json::Value),
    Blob(BlobRef),
    Failed(Failure),
}

impl Recorded {
    /// Reads the outcomes of the run `run` of `session`.
    pub async fn read(trace: &Trace, session: &SessionId, run: &RunId) -> Result<Self, Failure> {
        let mut calls: HashMap<Uuid, ToolCall> = HashMap::new();
        let mut outcomes = HashMap::new();
        let visit = |record: Envelope| {
            if record.origin.as_ref().and_then(|origin| origin.run_id.as_ref()) == Some(run) {
                take(record, &mut calls, &mut outcomes);
            }
        };
        trace.for_each_record(session, visit).await?;
        Ok(Self(outcomes))
    }

    /// Returns the outcome of an equal call.
    ///
    /// # Errors
    /// Errors of the log; the inner failure is the call's own.
    pub async fn find(
        &self,
        trace: &Trace,
        call: &ToolCall,
    ) -> Result<Option<Result<serde_json::Value, Failure>>, Failure> {
        // In the form of the log, where omitted arguments have their defaults.
        let logged = AgentCmd::from_call(call.clone()).into_call();
        match self.0.get(&key(&logged)) {
            None => Ok(None),
            Some(RecordedOutcome::Inline(value)) => Ok(Some(Ok(value.clone()))),
            Some(RecordedOutcome::Blob(blob)) => Ok(read_json_blob(trace, blob).await?.map(Ok)),
            Some(RecordedOutcome::Failed(failure)) => Ok(Some(Err(failure.clone()))),
        }
    }
}

fn take(
    record: Envelope,
    calls: &mut HashMap<Uuid, ToolCall>,
    outcomes: &mut HashMap<String, RecordedOutcome>,
) {
    let outcome = match record.body {
        Body::Cmd { cmd } => {
            calls.insert(record.id, cmd.into_call());
            return;
        }
        Body::Evt { evt: AgentEvt::Result { data, blob, .. } } => {
            data.map(RecordedOutcome::Inline).or(blob.map(RecordedOutcome::Blob))
        }
        Body::Evt { evt: AgentEvt::Error { message, reason, .. } } => {
            failure(message, reason.as_deref()).map(RecordedOutcome::Failed)
        }
        Body::Evt { .. } => return,
    };
    let call = record.parent_id.and_then(|id| calls.remove(&id));
    if let (Some(call), Some(outcome)) = (call, outcome) {
        outcomes.insert(key(&call), outcome);
    }
}

/// Returns a failure that is a fact about the call. A call that was interrupted or had no resources
/// is retried.
fn failure(message: String, reason: Option<&str>) -> Option<Failure> {
    let reason = *Reason::ALL.iter().find(|known| Some(known.as_str()) == reason)?;
    (!reason.retryable()).then(|| Failure::new(reason, message))
}

/// Reads a blob that contains JSON; `None` when it cannot be read as that.
pub(crate) async fn read_json_blob(
    trace: &Trace,
    blob: &BlobRef,
) -> Result<Option<serde_json::Value>, Failure> {
    let text = trace.complete_blob(&blob.sha256).await?;
    // An unreadable stored result counts as none: the call is made again.
    Ok(serde_json::from_str(&text).ok())
}
