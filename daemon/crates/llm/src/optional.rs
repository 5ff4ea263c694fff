//! Fields of a request that some servers refuse: left out once a server has refused them.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use serde_json::Value;

use crate::LlmError;

/// Fields without which a request still works.
const OPTIONAL: &[&str] = &[
    "temperature",
    "return_progress",
    "stream_options",
    "reasoning_effort",
    "reasoning",
    "include",
    "thinking",
    "think",
];

/// Fields of these that follow a setting of the user.
pub(crate) const SETTINGS: &[&str] =
    &["temperature", "reasoning_effort", "reasoning", "thinking", "think"];

/// Fields that one server has refused.
#[derive(Debug, Default)]
pub(crate) struct RefusedFields(Mutex<BTreeSet<&'static str>>);

impl RefusedFields {
    /// Removes the refused fields from a body.
    pub(crate) fn remove_from(&self, body: &mut Value) {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        remove(body, &refused.iter().copied().collect::<Vec<_>>());
    }

    /// Adds fields, after a request without them has succeeded.
    pub(crate) fn add(&self, fields: &[&'static str]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(fields);
    }
}

/// Returns the fields that a refused request may leave out: those that the refusal names, or else
/// those of `unsure` that the body has.
pub(crate) fn to_omit(body: &Value, error: &LlmError, unsure: &[&str]) -> Vec<&'static str> {
    let text = error.to_string().to_lowercase();
    let present: Vec<_> =
        OPTIONAL.iter().copied().filter(|field| body.get(field).is_some()).collect();
    let named: Vec<_> = present.iter().copied().filter(|field| text.contains(field)).collect();
    if named.is_empty() {
        present.into_iter().filter(|field| unsure.contains(field)).collect()
    } else {
        named
    }
}

pub(crate) fn remove(body: &mut Value, fields: &[&str]) {
    if let Some(object) = body.as_object_mut() {
        object.retain(|field, _| !fields.contains(&field.as_str()));
    }
}
