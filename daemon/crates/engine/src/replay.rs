//! Replay of a trace: the same run again, without the network, compared step by step.
//!
//! A turn is run again by the real agent in a new session: its model returns the recorded bytes,
//! calls with an effect are answered from the record, and calls that only read are made again and
//! compared. An explore is run again on the same root, and every call and the summary are compared.
//! The first difference is reported.

mod compare;
mod explores;
mod turns;

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
    /// `session_not_found`; `bad_trace` for one without a run, or whose recorded bytes are missing.
    pub async fn replay(&self, params: ReplayParams) -> Result<ReplayReport, Failure> {
        self.require_open()?;
        let session = self.inner.trace.session(&params.trace_id).await?;
        let root =
            self.root_of(params.root.as_deref())?.map(|r| r.path.to_string_lossy().into_owned());
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
        let text = format!("trace {} contains neither a turn nor an explore", params.trace_id);
        Err(Failure::new(Reason::BadTrace, text))
    }

    async fn every_record(&self, session: &SessionId) -> Result<Vec<Envelope>, Failure> {
        let mut all = Vec::new();
        self.inner.trace.for_each_record(session, |record| all.push(record)).await?;
        Ok(all)
    }
}
