//! What an interrupted run has done already, so that a resumed one does not do it twice.

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

/// Outcomes in the log by the call they answer.
#[derive(Debug, Default)]
pub struct Recorded(HashMap<String, RecordedOutcome>);

#[derive(Debug)]
enum RecordedOutcome {
    Inline(serde_json::Value),
    Blob(BlobRef),
    Failed(Failure),
}

impl Recorded {
    /// Reads what the run `run` of `session` did.
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

    /// The outcome of an equal call.
    ///
    /// # Errors
    /// Those of the log; the inner failure is the call's own.
    pub async fn find(
        &self,
        trace: &Trace,
        call: &ToolCall,
    ) -> Result<Option<Result<serde_json::Value, Failure>>, Failure> {
        // As the log has it, where arguments that were left out have their defaults.
        let logged = AgentCmd::from_call(call.clone()).into_call();
        match self.0.get(&key(&logged)) {
            None => Ok(None),
            Some(RecordedOutcome::Inline(value)) => Ok(Some(Ok(value.clone()))),
            Some(RecordedOutcome::Blob(blob)) => Ok(whole_blob(trace, blob).await?.map(Ok)),
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

/// A failure that is a fact about the call. What was cut off or had no room says nothing of it and is tried again.
fn failure(message: String, reason: Option<&str>) -> Option<Failure> {
    let reason = *Reason::ALL.iter().find(|known| Some(known.as_str()) == reason)?;
    (!reason.retryable()).then(|| Failure::new(reason, message))
}

/// A blob that holds JSON; `None` when it cannot be read as that.
pub(crate) async fn whole_blob(trace: &Trace, blob: &BlobRef) -> Result<Option<serde_json::Value>, Failure> {
    let text = trace.whole_blob(&blob.sha256).await?;
    // A stored result that cannot be read is as good as none: the call is made again.
    Ok(serde_json::from_str(&text).ok())
}
