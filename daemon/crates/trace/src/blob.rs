//! Blobs: results too large for the log, stored by the hash of their content.

use cairn_protocol::{
    id::SessionId,
    trace::{BlobParams, BlobPart},
};
use cairn_store::{
    StoreError,
    rusqlite::{OptionalExtension, Savepoint, params},
};

use sha2::{Digest as _, Sha256};

use crate::{Trace, TraceError};

/// Maximum bytes of one part.
const PART: u32 = 256 * 1024;

/// Stores a blob once and records that `session` uses it.
pub fn write(
    tx: &Savepoint<'_>,
    session: &SessionId,
    sha256: &str,
    content: &[u8],
) -> Result<(), StoreError> {
    tx.execute(
        "INSERT OR IGNORE INTO blob VALUES (?1, ?2, ?3)",
        params![sha256, content.len(), content],
    )?;
    tx.execute(
        "INSERT OR IGNORE INTO blob_ref VALUES (?1, ?2)",
        params![session.as_str(), sha256],
    )?;
    Ok(())
}

impl Trace {
    /// Returns the complete text of a blob of any size.
    ///
    /// # Errors
    /// `blob_not_found`.
    pub async fn complete_blob(&self, sha256: &str) -> Result<String, TraceError> {
        let mut text = String::new();
        let mut offset = Some(0);
        while let Some(at) = offset {
            let part = self
                .blob(BlobParams { sha256: sha256.to_owned(), offset: at, limit: None })
                .await?;
            text.push_str(&part.text);
            offset = part.next_offset;
        }
        Ok(text)
    }

    /// Returns a part of a blob, which ends between characters.
    ///
    /// # Errors
    /// `blob_not_found`, or `invalid_params` for an offset inside a character or past the end.
    pub async fn blob(&self, params: BlobParams) -> Result<BlobPart, TraceError> {
        let hash = params.sha256.clone();
        let content: Option<Vec<u8>> = self
            .read(move |conn| {
                conn.query_row("SELECT content FROM blob WHERE sha256 = ?1", [hash], |r| r.get(0))
                    .optional()
                    .map_err(TraceError::from)
            })
            .await?;
        let missing = || TraceError::BlobNotFound(params.sha256.clone());
        // Readers of a complete blob begin at its start; further parts are not hashed again.
        if let Some(bytes) = content.as_ref().filter(|_| params.offset == 0)
            && hex::encode(Sha256::digest(bytes)) != params.sha256
        {
            return Err(TraceError::DamagedBlob(params.sha256));
        }
        let text = content.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(missing)?;
        let bad = || TraceError::BlobOffset(params.offset);
        let start = usize::try_from(params.offset).map_err(|_| bad())?;
        let rest = text.get(start..).ok_or_else(bad)?;
        let limit = params.limit.unwrap_or(PART).clamp(4, PART) as usize;
        let mut end = rest.len().min(limit);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let next_offset = (end < rest.len()).then_some((start + end) as u64);
        Ok(BlobPart { text: rest[..end].to_owned(), size: text.len() as u64, next_offset })
    }
}
