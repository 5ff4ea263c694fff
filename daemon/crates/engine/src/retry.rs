//! Retries: a repeated request gets the same answer as before.

use cairn_protocol::error::{Failure, Reason};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Engine, keyed_locks::KeyedGuard};

/// A request that may be a repetition: the scope of its key, the key, and its content.
pub(crate) struct Retry {
    scope: String,
    key: Option<String>,
    digest: String,
}

impl Retry {
    pub fn new(scope: &str, key: Option<&String>, params: &impl Serialize) -> Self {
        Self { scope: scope.to_owned(), key: key.cloned(), digest: cairn_trace::digest(params) }
    }

    /// Returns scope, key and digest, for the receipt; `None` for a request without a key.
    pub fn stored(self) -> Option<(String, String, String)> {
        self.key.map(|key| (self.scope, key, self.digest))
    }
}

impl Engine {
    /// Makes requests with the same retry key wait for each other, until the returned guard is
    /// dropped.
    pub(crate) async fn lock_retries(&self, retry: &Retry) -> Option<KeyedGuard<'_>> {
        let key = retry.key.as_ref()?;
        Some(self.inner.retries.lock(format!("{}/{key}", retry.scope)).await)
    }

    /// Returns the stored answer of the same request, if it was received before.
    ///
    /// # Errors
    /// `request_conflict`; `storage_failed` for an invalid receipt.
    pub(crate) async fn answered<T: DeserializeOwned>(
        &self,
        retry: &Retry,
    ) -> Result<Option<T>, Failure> {
        let Some(key) = &retry.key else { return Ok(None) };
        let Some(receipt) = self.inner.trace.receipt(&retry.scope, key, &retry.digest).await?
        else {
            return Ok(None);
        };
        let unreadable = |e| {
            Failure::new(Reason::StorageFailed, format!("a stored receipt cannot be read: {e}"))
        };
        serde_json::from_value(receipt).map(Some).map_err(unreadable)
    }
}
