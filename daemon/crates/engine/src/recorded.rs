//! What an interrupted run has done already, so that a resumed one does not do it twice.

use std::collections::HashMap;

use cairn_protocol::{
    command::ToolCall,
    envelope::{Body, Envelope},
    error::Failure,
    event::{AgentEvt, BlobRef},
    id::SessionId,
};
use cairn_trace::{PAGE, Trace};
use uuid::Uuid;

use crate::queue::key;

/// Results in the log by the call they answer.
#[derive(Debug, Default)]
pub struct Recorded(HashMap<String, Kept>);

#[derive(Debug)]
enum Kept {
    Inline(serde_json::Value),
    Blob(BlobRef),
}

impl Recorded {
    /// Reads the records of `session` after `after`, where its latest run began.
    pub async fn read(trace: &Trace, session: &SessionId, after: u64) -> Result<Self, Failure> {
        let mut calls: HashMap<Uuid, ToolCall> = HashMap::new();
        let mut kept = HashMap::new();
        let mut at = after;
        loop {
            let page = trace.records(session, at, PAGE).await?;
            let Some(last) = page.last() else { return Ok(Self(kept)) };
            at = last.seq;
            for record in page {
                take(record, &mut calls, &mut kept);
            }
        }
    }

    /// The result of an equal call. Calls that bring the index up to date are always made again.
    pub async fn find(&self, trace: &Trace, call: &ToolCall) -> Result<Option<serde_json::Value>, Failure> {
        if call.name.starts_with("index_") {
            return Ok(None);
        }
        match self.0.get(&key(call)) {
            None => Ok(None),
            Some(Kept::Inline(value)) => Ok(Some(value.clone())),
            Some(Kept::Blob(blob)) => whole_blob(trace, blob).await,
        }
    }
}

fn take(record: Envelope, calls: &mut HashMap<Uuid, ToolCall>, kept: &mut HashMap<String, Kept>) {
    match record.body {
        Body::Cmd { cmd } => {
            calls.insert(record.id, cmd.into_call());
        }
        Body::Evt { evt: AgentEvt::Result { data, blob, .. } } => {
            let call = record.parent_id.and_then(|id| calls.remove(&id));
            let value = data.map(Kept::Inline).or(blob.map(Kept::Blob));
            if let (Some(call), Some(value)) = (call, value) {
                kept.insert(key(&call), value);
            }
        }
        Body::Evt { .. } => {}
    }
}

/// A blob that holds JSON; `None` when it cannot be read as that.
pub(crate) async fn whole_blob(trace: &Trace, blob: &BlobRef) -> Result<Option<serde_json::Value>, Failure> {
    let text = trace.whole_blob(&blob.sha256).await?;
    // A stored result that cannot be read is as good as none: the call is made again.
    Ok(serde_json::from_str(&text).ok())
}
