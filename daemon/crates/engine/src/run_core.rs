//! Common parts of turns, explores and single commands: their session, root and rights, and their
//! access to the log and the gate.

use cairn_harness::{Call, Grants};
use cairn_protocol::{
    envelope::{Body, Origin},
    error::Failure,
    event::AgentEvt,
    id::{RunId, SessionId},
};
use cairn_trace::{Append, NewRecord};
use cairn_workspace::Root;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::Engine;

#[derive(Clone)]
pub(crate) struct RunCore {
    pub engine: Engine,
    pub session: SessionId,
    /// `None` for a single command.
    pub run: Option<RunId>,
    pub root: Option<Root>,
    pub grants: Grants,
    pub cancel: CancellationToken,
    pub client: Option<String>,
}

impl RunCore {
    pub fn origin(&self, tool: Option<&str>) -> Option<Origin> {
        let (client, run_id) = (self.client.clone(), self.run.clone());
        let tool = tool.map(str::to_owned);
        (client.is_some() || run_id.is_some() || tool.is_some()).then_some(Origin {
            client,
            run_id,
            tool,
        })
    }

    pub fn record(&self, parent_id: Option<Uuid>, tool: Option<&str>, evt: AgentEvt) -> NewRecord {
        NewRecord {
            id: Uuid::now_v7(),
            parent_id,
            origin: self.origin(tool),
            body: Body::Evt { evt },
        }
    }

    /// Appends events and returns once they are durable.
    pub async fn emit_all(&self, evts: Vec<AgentEvt>) -> Result<(), Failure> {
        if evts.is_empty() {
            return Ok(());
        }
        let records = evts.into_iter().map(|evt| self.record(None, None, evt)).collect();
        self.engine.inner.trace.append(Append::new(&self.session, records)).await?;
        Ok(())
    }

    /// Creates a call with the rights of this run, in its root, cancelled with it.
    pub fn call(&self, command: Option<Uuid>, tool: &str, arguments: serde_json::Value) -> Call {
        Call {
            root: self.root.clone(),
            grants: self.grants.clone(),
            cancel: self.cancel.clone(),
            origin: self.origin(Some(tool)),
            command,
            ..Call::new(self.session.clone(), tool, arguments)
        }
    }

    /// Returns true if the daemon is stopping, so that work which fails now was interrupted.
    pub fn is_cut_off(&self) -> bool {
        self.engine.inner.shutdown.is_cancelled()
    }
}
