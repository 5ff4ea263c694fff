//! The audit row of a call: opened before its handler runs and closed with its outcome.

use std::sync::{Arc, Mutex};

use cairn_engine::DirectCall;
use cairn_protocol::{error::Failure, id::SessionId};
use serde_json::{Value, value::RawValue};

use crate::{
    connection::{Caller, lock},
    method::Audit,
};

/// The open row of a call. The handler may take it, to close it when work ends that outlasts the
/// answer.
#[derive(Clone, Default)]
pub(crate) struct Slot(Arc<Mutex<Option<DirectCall>>>);

impl Slot {
    /// Returns the row; the caller becomes responsible for closing it.
    pub(crate) fn take(&self) -> Option<DirectCall> {
        lock(&self.0).take()
    }

    /// Closes the row unless the handler took it.
    pub(crate) async fn close(&self, failure: Option<&Failure>) {
        let row = self.take();
        if let Some(row) = row {
            row.complete(failure).await;
        }
    }
}

/// Describes the row that a call will leave.
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

    /// Opens the row if the method requires one.
    ///
    /// # Errors
    /// `audit_failed` and `disk_full`, if the call must not act without a row.
    pub(crate) async fn open(self, caller: &Caller) -> Result<Slot, Failure> {
        if matches!(self.audit, Audit::None | Audit::ByGate) {
            return Ok(Slot::default());
        }
        let session = self.params["sessionId"].as_str().and_then(|id| id.parse::<SessionId>().ok());
        match caller.api().engine.begin_direct(self.method, session, self.params).await {
            Ok(row) => {
                *lock(&caller.audit.0) = Some(row);
                Ok(caller.audit.clone())
            }
            Err(cause) if self.audit == Audit::BestEffort => {
                tracing::error!(method = self.method, %cause, "a call could not be recorded in the audit");
                Ok(Slot::default())
            }
            Err(cause) => Err(cause),
        }
    }
}
