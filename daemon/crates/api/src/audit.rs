//! The audit row of a call: opened before its handler runs, closed with its outcome.

use std::sync::{Arc, Mutex};

use cairn_engine::DirectCall;
use cairn_protocol::{error::Failure, id::SessionId};
use serde_json::{Value, value::RawValue};

use crate::{
    connection::{Caller, locked},
    method::Audit,
};

/// The open row of a call. Its handler may take it, to close it when work ends that outlasts the answer.
#[derive(Clone, Default)]
pub(crate) struct Slot(Arc<Mutex<Option<DirectCall>>>);

impl Slot {
    /// The row, which the caller closes from here on.
    pub(crate) fn take(&self) -> Option<DirectCall> {
        locked(&self.0).take()
    }

    /// Closes the row, unless the handler took it.
    pub(crate) async fn close(&self, failure: Option<&Failure>) {
        let row = self.take();
        if let Some(row) = row {
            row.complete(failure).await;
        }
    }
}

/// The row that a call is to leave.
pub(crate) struct Row {
    method: &'static str,
    params: Value,
    audit: Audit,
}

impl Row {
    pub(crate) fn of(method: &'static str, params: Option<&RawValue>, audit: Audit) -> Self {
        let has_row = matches!(audit, Audit::Required | Audit::BestEffort);
        let read = || params.and_then(|params| serde_json::from_str(params.get()).ok());
        Self { method, params: has_row.then(read).flatten().unwrap_or_default(), audit }
    }

    /// Opens the row, if there is to be one.
    ///
    /// # Errors
    /// `audit_failed`, `disk_full` where nothing may be done without it.
    pub(crate) async fn open(self, caller: &Caller) -> Result<Slot, Failure> {
        if matches!(self.audit, Audit::None | Audit::ByGate) {
            return Ok(Slot::default());
        }
        let session = self.params["sessionId"].as_str().and_then(|id| id.parse::<SessionId>().ok());
        match caller.api().engine.begin_direct(self.method, session, self.params).await {
            Ok(row) => {
                *locked(&caller.audit.0) = Some(row);
                Ok(caller.audit.clone())
            }
            Err(cause) if self.audit == Audit::BestEffort => {
                tracing::error!(method = self.method, %cause, "a call is not in the audit");
                Ok(Slot::default())
            }
            Err(cause) => Err(cause),
        }
    }
}
