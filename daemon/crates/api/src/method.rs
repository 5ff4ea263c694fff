//! A row of the method table: name, types, ordering, effect of a disconnect, required right.

use std::{future::Future, pin::Pin, sync::Arc};

use cairn_protocol::error::{Failure, Reason};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{
    connection::Caller,
    rights::{self, Effect, Effects, Right},
};

/// Ordering of a call among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Runs concurrently with any call.
    Shared,
    /// Runs in order with the other calls of the same session.
    PerSession,
    /// Runs one at a time.
    Global,
}

impl Scope {
    /// Name in the reference.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::PerSession => "session",
            Self::Global => "global",
        }
    }
}

/// Effect of a disconnect on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disconnect {
    /// The call is cancelled.
    Cancel,
    /// The call continues without its client.
    Detach,
}

/// Audit rows that a call leaves. Only methods that change nothing leave none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audit {
    /// None: the call changes nothing.
    None,
    /// One row, opened before the call acts. Without it the call does nothing.
    Required,
    /// One row, but a full disk does not prevent the call, which stops work, answers an approval or
    /// removes rights.
    BestEffort,
    /// One row for each tool call that it makes, written by the gate.
    ByGate,
}

impl Audit {
    /// Name in the reference.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Required => "required",
            Self::BestEffort => "best effort",
            Self::ByGate => "by tool call",
        }
    }
}

/// Notifications that follow the answer of a call until its work is finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowUp {
    /// `index.progress`, until it is done.
    IndexProgress,
    /// `git.progress`, until it is done.
    CloneProgress,
    /// Events of a subscription, until it is gone.
    Events,
}

impl FollowUp {
    /// Returns the field of the answer that identifies the work in its notifications.
    pub fn key(self) -> &'static str {
        match self {
            Self::IndexProgress => "path",
            Self::CloneProgress => "requestId",
            Self::Events => "subscriptionId",
        }
    }
}

/// The pending answer of a handler.
pub type Answer = Pin<Box<dyn Future<Output = Result<Box<RawValue>, Failure>> + Send>>;
type Handler = Box<dyn Fn(Caller, Option<&RawValue>, Audit) -> Answer + Send + Sync>;
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// A row of the method table.
pub struct Method {
    /// Name in the form `namespace.verb`.
    pub name: &'static str,
    /// One line for the reference.
    pub summary: &'static str,
    /// Ordering of the calls; an ordered method must not be cancellable.
    pub scope: Scope,
    /// Effect of a disconnect on the calls.
    pub disconnect: Disconnect,
    /// True if the client can cancel a call although it outlives a disconnect.
    pub cancellable: bool,
    /// Right that a caller needs.
    pub right: Right,
    /// Effects that calls may have, each of which needs a further right.
    pub effects: &'static [Effect],
    pub audit: Audit,
    /// Notifications that follow the answer.
    pub follow_up: Option<FollowUp>,
    pub params: SchemaOf,
    pub result: SchemaOf,
    pub(crate) handler: Handler,
}

impl Method {
    /// Creates a row that is shared, cancelled on disconnect, open to observers and without effect;
    /// setters change that.
    pub fn new<P, R, F, A>(name: &'static str, summary: &'static str, handler: F) -> Self
    where
        P: DeserializeOwned + JsonSchema + Effects + Send + 'static,
        R: Serialize + JsonSchema + 'static,
        F: Fn(Caller, P) -> A + Send + Sync + 'static,
        A: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let call = move |caller: Caller, params: Option<&RawValue>, audit: Audit| -> Answer {
            let read = crate::params::read_raw::<P>(params);
            let row = crate::audit::Row::of(name, params, audit);
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let params = read?;
                rights::require(&params, caller.rights(), &caller.api().engine).await?;
                let slot = row.open(&caller).await?;
                let answer = handler(caller, params).await.and_then(|result| {
                    serde_json::value::to_raw_value(&result).map_err(|e| {
                        Failure::new(
                            Reason::Internal,
                            format!("the answer cannot be serialized: {e}"),
                        )
                    })
                });
                slot.close(answer.as_ref().err()).await;
                answer
            })
        };
        Self {
            name,
            summary,
            scope: Scope::Shared,
            disconnect: Disconnect::Cancel,
            cancellable: false,
            right: Right::Observe,
            effects: P::ALL,
            audit: Audit::None,
            follow_up: None,
            params: SchemaGenerator::subschema_for::<P>,
            result: SchemaGenerator::subschema_for::<R>,
            handler: Box::new(call),
        }
    }

    /// Makes calls outlive a disconnect, and requires `right`. Such calls have effects, so they
    /// leave an audit row.
    pub fn detached(mut self, right: Right) -> Self {
        self.disconnect = Disconnect::Detach;
        self.right = right;
        self.audit = Audit::Required;
        self
    }

    /// Sets the audit rows, if they differ from the default of the method's kind.
    pub(crate) fn audit(mut self, audit: Audit) -> Self {
        self.audit = audit;
        self
    }

    /// Lets clients cancel the calls; the work then ends in a recorded way.
    pub fn cancellable(mut self) -> Self {
        self.cancellable = true;
        self
    }

    /// Declares the notifications that follow the answer.
    pub(crate) fn followed_by(mut self, follow_up: FollowUp) -> Self {
        self.follow_up = Some(follow_up);
        self
    }

    /// Sets the ordering of the calls.
    pub(crate) fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }
}
