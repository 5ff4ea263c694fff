//! Transactions that clients do not notice.

use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;

/// Runs `work` in a transaction that does not advance the clock, because clients see no change.
pub fn write_without_clock<T>(
    conn: &mut Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let tx = conn.transaction()?;
    let value = work(&tx)?;
    tx.commit()?;
    Ok(value)
}
