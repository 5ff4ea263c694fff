//! What a method is: its name, types, what may run beside it, what a disconnect means, who may call it.

use std::{future::Future, pin::Pin, sync::Arc};

use cairn_protocol::error::{Failure, Reason};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::{
    connection::Caller,
    rights::{self, Effect, Effects, Right},
};

/// What a call may run beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Beside anything.
    Shared,
    /// In order with others of the same session.
    PerSession,
    /// One at a time.
    Global,
}

impl Scope {
    /// As the reference tells it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::PerSession => "session",
            Self::Global => "global",
        }
    }
}

/// What happens to a call when its client goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disconnect {
    /// It is cancelled.
    Cancel,
    /// It goes on.
    Detach,
}

/// Rows of the audit that a call leaves. Each method but those that change nothing has some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audit {
    /// None: the call changes nothing.
    None,
    /// One of its own, opened before the call acts. Without it nothing is done.
    Required,
    /// One of its own, but a disk that is full does not prevent the call: it stops work, answers a question or takes rights
    /// away.
    BestEffort,
    /// One for each tool call that it makes, written by the gate.
    ByGate,
}

impl Audit {
    /// As the reference names it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Required => "required",
            Self::BestEffort => "best effort",
            Self::ByGate => "by tool call",
        }
    }
}

/// An answer on its way.
pub type Answer = Pin<Box<dyn Future<Output = Result<Box<RawValue>, Failure>> + Send>>;
type Handler = Box<dyn Fn(Caller, Option<&RawValue>, Audit) -> Answer + Send + Sync>;
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// A row of the method table.
pub struct Method {
    /// `namespace.verb`.
    pub name: &'static str,
    /// One line for the reference.
    pub summary: &'static str,
    /// What it may run beside; a scope that orders calls needs a call that nobody cancels.
    pub scope: Scope,
    /// What a disconnect means.
    pub disconnect: Disconnect,
    /// Whether its client can cancel it although it outlives its client.
    pub stoppable: bool,
    /// Who may call it.
    pub right: Right,
    /// Effects that its calls may have, which need a right beside this one.
    pub effects: &'static [Effect],
    /// Rows of the audit that a call leaves.
    pub audit: Audit,
    /// Schema of the parameters.
    pub params: SchemaOf,
    /// Schema of the result.
    pub result: SchemaOf,
    pub(crate) handler: Handler,
}

impl Method {
    /// A row that is shared, cancelled on disconnect, open to observers and without effect; change it with the setters.
    pub fn new<P, R, F, A>(name: &'static str, summary: &'static str, handler: F) -> Self
    where
        P: DeserializeOwned + JsonSchema + Effects + Send + 'static,
        R: Serialize + JsonSchema + 'static,
        F: Fn(Caller, P) -> A + Send + Sync + 'static,
        A: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let call = move |caller: Caller, params: Option<&RawValue>, audit: Audit| -> Answer {
            let read = read_params::<P>(name, params);
            let row = crate::audit::Row::of(name, params, audit);
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let params = read?;
                rights::require(&params, caller.rights(), &caller.api().engine).await?;
                let slot = row.open(&caller).await?;
                let answer = handler(caller, params).await.and_then(|result| {
                    serde_json::value::to_raw_value(&result).map_err(|e| {
                        Failure::new(Reason::Internal, format!("the answer cannot be written: {e}"))
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
            stoppable: false,
            right: Right::Observe,
            effects: P::ALL,
            audit: Audit::None,
            params: SchemaGenerator::subschema_for::<P>,
            result: SchemaGenerator::subschema_for::<R>,
            handler: Box::new(call),
        }
    }

    /// Goes on when its client leaves, and needs `right`. It has an effect, so a row of the audit.
    pub fn detached(mut self, right: Right) -> Self {
        self.disconnect = Disconnect::Detach;
        self.right = right;
        self.audit = Audit::Required;
        self
    }

    /// Sets the rows of the audit that a call leaves, where they are not those of a method with an effect.
    pub(crate) fn audit(mut self, audit: Audit) -> Self {
        self.audit = audit;
        self
    }

    /// Ends when its client cancels it, in a way that what was begun is recorded to its end.
    pub fn stoppable(mut self) -> Self {
        self.stoppable = true;
        self
    }

    /// Sets what it may run beside.
    pub(crate) fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }
}

/// Parameters by name; absent ones are an empty object.
fn read_params<P: DeserializeOwned>(method: &str, params: Option<&RawValue>) -> Result<P, Failure> {
    let text = params.map_or("{}", RawValue::get);
    if !text.trim_start().starts_with('{') {
        return Err(Failure::new(
            Reason::InvalidParams,
            format!("{method}: params must be an object, by name"),
        ));
    }
    // A field that is null is one that is left out, whatever its type has for it.
    let without_nulls = text.contains("null").then(|| without_nulls(text)).flatten();
    let text = without_nulls.as_deref().unwrap_or(text);
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let at = if path == "." { String::new() } else { format!("{path}: ") };
        let details = serde_json::json!({"path": path});
        Failure::new(Reason::InvalidParams, format!("{method}: {at}{}", error.inner())).with_details(details)
    })
}

/// Parameters without those that are null; none where all have a value.
fn without_nulls(text: &str) -> Option<String> {
    let mut fields: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    let all = fields.len();
    fields.retain(|_, value| value.get() != "null");
    if fields.len() == all { None } else { serde_json::to_string(&fields).ok() }
}

#[cfg(test)]
mod tests {
    use cairn_protocol::{explore::ExploreStartParams, search::SearchParams};

    use super::*;

    // R6
    #[test]
    fn a_null_is_a_field_that_is_left_out() {
        let read = |text: &str| {
            let raw = RawValue::from_string(text.to_owned()).unwrap();
            read_params::<SearchParams>("m", Some(&raw)).map(|params| (params.query.clone(), params.k))
        };
        assert_eq!(
            read(r#"{"query": "a null b", "k": null}"#).unwrap(),
            read(r#"{"query": "a null b"}"#).unwrap()
        );
        assert!(read(r#"{"query": null}"#).is_err(), "what is needed is needed");
        let raw = RawValue::from_string(r#"{"root": "/a", "goals": null, "policy": null}"#.into()).unwrap();
        assert!(read_params::<ExploreStartParams>("m", Some(&raw)).unwrap().goals.is_empty());
    }
}
