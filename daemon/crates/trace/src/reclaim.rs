//! Freeing the space of deleted sessions, in steps short enough that other writes do not wait.

use std::time::{Duration, Instant};

use cairn_protocol::id::SessionId;
use cairn_store::{
    StoreError,
    rusqlite::{OptionalExtension, Savepoint, params},
};

use crate::{Trace, TraceError, records};

/// Longest time of one step, except for its last row.
const STEP: Duration = Duration::from_millis(10);
/// Rows between two looks at the clock.
const ROWS: u32 = 16;
/// Pages that one step returns to the file system.
const PAGES: u32 = 128;

/// Deletes a session's rows; its records and blobs become garbage, which [`step`] deletes.
pub fn delete(tx: &Savepoint<'_>, session: &SessionId) -> Result<(), StoreError> {
    let id = session.as_str();
    tx.execute(
        "INSERT OR IGNORE INTO orphan_blob SELECT r.sha256 FROM blob_ref r
         WHERE r.session_id = ?1 AND NOT EXISTS
             (SELECT 1 FROM blob_ref o WHERE o.sha256 = r.sha256 AND o.session_id <> ?1)",
        [id],
    )?;
    tx.execute("DELETE FROM session WHERE id = ?1", [id])?;
    tx.execute("UPDATE session_key SET id = NULL WHERE id = ?1", [id])?;
    Ok(())
}

/// Deletes a part of the garbage, or returns unused pages; true if there is more to do.
fn step(tx: &Savepoint<'_>) -> Result<bool, StoreError> {
    let start = Instant::now();
    while delete_some(tx)? {
        if start.elapsed() >= STEP {
            return Ok(true);
        }
    }
    Ok(cairn_store::shrink(tx, PAGES)? > 0)
}

/// Deletes some garbage; false if there is none.
fn delete_some(tx: &Savepoint<'_>) -> Result<bool, StoreError> {
    Ok(delete_blob(tx)? || delete_frame(tx)? || delete_records(tx)?)
}

fn delete_blob(tx: &Savepoint<'_>) -> Result<bool, StoreError> {
    let blob: Option<String> = tx
        .prepare_cached("SELECT sha256 FROM orphan_blob LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    let Some(blob) = blob else { return Ok(false) };
    // A session may have stored the same content meanwhile.
    tx.execute(
        "DELETE FROM blob WHERE sha256 = ?1 AND NOT EXISTS (SELECT 1 FROM blob_ref WHERE sha256 = ?1)",
        [&blob],
    )?;
    tx.execute("DELETE FROM orphan_blob WHERE sha256 = ?1", [&blob])?;
    Ok(true)
}

fn delete_frame(tx: &Savepoint<'_>) -> Result<bool, StoreError> {
    let deleted = tx
        .prepare_cached(
            "DELETE FROM packed_record WHERE id = (SELECT p.id FROM session_key k
             JOIN packed_record p ON p.session = k.num WHERE k.id IS NULL LIMIT 1)",
        )?
        .execute([])?;
    Ok(deleted > 0)
}

fn delete_records(tx: &Savepoint<'_>) -> Result<bool, StoreError> {
    let key: Option<i64> = tx
        .prepare_cached("SELECT num FROM session_key WHERE id IS NULL LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    let Some(key) = key else { return Ok(false) };
    let rows: Vec<(i64, i64)> = tx
        .prepare_cached("SELECT seq, record FROM session_record WHERE session = ?1 LIMIT ?2")?
        .query_map([key, i64::from(ROWS)], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    if rows.is_empty() && crate::history::delete_some(tx, key, ROWS)? {
        return Ok(true);
    }
    for (seq, record) in &rows {
        records::remove(tx, key, *seq, *record)?;
    }
    if rows.is_empty() {
        tx.execute("DELETE FROM session_key WHERE num = ?1", params![key])?;
    }
    Ok(true)
}

impl Trace {
    /// Frees the space of deleted sessions and returns unused pages to the file system, step by
    /// step; other writes proceed between the steps. A second call waits for the first.
    ///
    /// # Errors
    /// Fails when the log cannot be written.
    pub async fn reclaim(&self) -> Result<(), TraceError> {
        let _one_at_a_time = self.inner.reclaiming.lock().await;
        while self.inner.writer.write(step).await? {}
        Ok(())
    }
}
