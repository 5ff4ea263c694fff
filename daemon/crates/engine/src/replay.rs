//! Replaying a trace: the same again, without the network, compared step by step.
//!
//! A turn is taken again by the real agent in a session of its own: its model is the recorded bytes, what changed something
//! is not done again but answered from the record, what only reads is read again and compared. An explore is made again on
//! the same root, and every call and the summary are compared. The first difference is named.

mod compare;
mod explored;
mod turned;

use cairn_protocol::{
    envelope::{Body, Envelope},
    error::{Failure, Reason},
    event::AgentEvt,
    id::SessionId,
    trace::{ReplayParams, ReplayReport},
};

use crate::Engine;

impl Engine {
    /// Replays a trace.
    ///
    /// # Errors
    /// `session_not_found`; `bad_trace` for one that holds no run, or whose recorded bytes are not here.
    pub async fn replay(&self, params: ReplayParams) -> Result<ReplayReport, Failure> {
        self.need_open()?;
        let session = self.inner.trace.session(&params.trace_id).await?;
        let root = self.root_of(params.root.as_deref())?.map(|r| r.path.to_string_lossy().into_owned());
        let records = self.every_record(&session.session_id).await?;
        let has = |pick: fn(&AgentEvt) -> bool| {
            records.iter().any(|r| matches!(&r.body, Body::Evt { evt } if pick(evt)))
        };
        if has(|e| matches!(e, AgentEvt::TurnAccepted { .. })) {
            return self.replay_turns(&session, &records, root.as_deref()).await;
        }
        if has(|e| matches!(e, AgentEvt::Started { op, .. } if op == "explore")) {
            return self.replay_explore(&session, &records, root.as_deref()).await;
        }
        let text = format!("trace {} holds neither a turn nor an explore", params.trace_id);
        Err(Failure::new(Reason::BadTrace, text))
    }

    async fn every_record(&self, session: &SessionId) -> Result<Vec<Envelope>, Failure> {
        let mut all = Vec::new();
        self.inner.trace.for_each_record(session, |record| all.push(record)).await?;
        Ok(all)
    }
}
