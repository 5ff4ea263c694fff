//! Receipts: a retry with the same key and content returns the first answer.

use cairn_protocol::id::SessionId;
use cairn_store::{
    StoreError,
    rusqlite::{OptionalExtension, Savepoint, params},
};
use sha2::{Digest, Sha256};

use crate::{Trace, TraceError};

/// A receipt to be stored.
#[derive(Debug, Clone)]
pub struct NewReceipt {
    /// Session id or method that the key belongs to.
    pub scope: String,
    pub request_id: String,
    /// SHA-256 (hex) of the request.
    pub digest: String,
    /// The answer without its `seq`.
    pub receipt: serde_json::Value,
}

impl NewReceipt {
    /// Stores the receipt with the sequence number of its first record.
    pub fn write(
        mut self,
        tx: &Savepoint<'_>,
        session: &SessionId,
        seq: u64,
    ) -> Result<(), StoreError> {
        if let Some(object) = self.receipt.as_object_mut() {
            object.insert("seq".into(), seq.into());
        }
        tx.execute(
            "INSERT INTO receipt VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                self.scope,
                self.request_id,
                session.as_str(),
                self.digest,
                self.receipt.to_string()
            ],
        )?;
        Ok(())
    }
}

/// Returns the SHA-256 (hex) of a value's JSON.
pub fn digest(value: &impl serde::Serialize) -> String {
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    hex::encode(Sha256::digest(bytes))
}

impl Trace {
    /// Returns the receipt stored for a retry key, if any.
    ///
    /// # Errors
    /// `request_conflict` when the key was used with other content.
    pub async fn receipt(
        &self,
        scope: &str,
        request_id: &str,
        digest: &str,
    ) -> Result<Option<serde_json::Value>, TraceError> {
        if request_id.is_empty() || request_id.len() > 128 {
            return Err(TraceError::RequestId);
        }
        let key = (scope.to_owned(), request_id.to_owned());
        let row: Option<(String, String)> = self
            .read(move |conn| {
                conn.prepare_cached(
                    "SELECT digest, receipt FROM receipt WHERE scope = ?1 AND request_id = ?2",
                )
                .and_then(|mut s| {
                    s.query_row([key.0, key.1], |r| Ok((r.get(0)?, r.get(1)?))).optional()
                })
                .map_err(TraceError::from)
            })
            .await?;
        match row {
            None => Ok(None),
            Some((known, receipt)) if known == digest => Ok(serde_json::from_str(&receipt).ok()),
            Some(_) => Err(TraceError::RequestConflict(request_id.to_owned())),
        }
    }
}
