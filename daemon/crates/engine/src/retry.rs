//! Retries: the same request again gets the answer it got before.

use cairn_protocol::error::{Failure, Reason};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Engine, keyed_locks::KeyedGuard};

/// A request that may have come before: where its key counts, the key, and what it asks for.
pub(crate) struct Retry {
    scope: String,
    key: Option<String>,
    digest: String,
}

impl Retry {
    pub fn new(scope: &str, key: Option<&String>, params: &impl Serialize) -> Self {
        Self { scope: scope.to_owned(), key: key.cloned(), digest: cairn_trace::digest(params) }
    }

    /// Scope, key and digest, for whoever stores the receipt; nothing for a request without a key.
    pub fn stored(self) -> Option<(String, String, String)> {
        self.key.map(|key| (self.scope, key, self.digest))
    }
}

impl Engine {
    /// Makes requests with the same retry key wait for each other, until the answer of this is dropped.
    pub(crate) async fn lock_retries(&self, retry: &Retry) -> Option<KeyedGuard<'_>> {
        let key = retry.key.as_ref()?;
        Some(self.inner.retries.lock(format!("{}/{key}", retry.scope)).await)
    }

    /// What the same request was answered before, if it came before.
    ///
    /// # Errors
    /// `request_conflict`; `storage_failed` for a receipt that is none.
    pub(crate) async fn answered<T: DeserializeOwned>(&self, retry: &Retry) -> Result<Option<T>, Failure> {
        let Some(key) = &retry.key else { return Ok(None) };
        let Some(receipt) = self.inner.trace.receipt(&retry.scope, key, &retry.digest).await? else {
            return Ok(None);
        };
        let unreadable =
            |e| Failure::new(Reason::StorageFailed, format!("a stored receipt cannot be read: {e}"));
        serde_json::from_value(receipt).map(Some).map_err(unreadable)
    }
}
