//! Checksums of records. SQLite detects damage of its own structures and not of their content, and
//! a damaged page can also hide rows: so every record has a checksum of its session, its number and
//! its text, and numbers have no gap.

use cairn_protocol::id::SessionId;
use cairn_store::{
    StoreError,
    rusqlite::{self, Connection, ErrorCode, OptionalExtension, params},
};
use crc32fast::Hasher;

/// Rows whose checksums are computed in one transaction, when an older database is opened.
const ROWS: u32 = 1000;
/// Name of the notice that every row has a checksum.
const COMPLETE: &str = "checksums";

/// Returns the checksum of a record. The session and the number are covered, so that a row that
/// leads to another record is detected as well.
pub fn record_sum(session: &str, seq: u64, text: &[u8]) -> u32 {
    let mut sum = Hasher::new();
    sum.update(session.as_bytes());
    sum.update(&seq.to_le_bytes());
    sum.update(text);
    sum.finalize()
}

/// Returns the checksum of packed records from the first number to the last one.
pub fn frame_sum(session: &str, (first, last): (u64, u64), size: u64, frame: &[u8]) -> u32 {
    let mut sum = Hasher::new();
    sum.update(session.as_bytes());
    for number in [first, last, size] {
        sum.update(&number.to_le_bytes());
    }
    sum.update(frame);
    sum.finalize()
}

/// Fails if a record does not match its checksum.
pub fn check_record(
    session: &SessionId,
    seq: u64,
    text: &str,
    sum: Option<u32>,
) -> Result<(), StoreError> {
    if sum == Some(record_sum(session.as_str(), seq, text.as_bytes())) {
        return Ok(());
    }
    Err(damaged(session, Some(seq), "it does not match its checksum"))
}

/// Returns the error for a damaged record, or for a damaged session.
pub fn damaged(session: &SessionId, seq: Option<u64>, what: &str) -> StoreError {
    StoreError::DamagedRecord { session: session.to_string(), seq, what: what.to_owned() }
}

/// Adds the session and the number to an error of the database that is due to damage; other errors
/// stay as they are.
pub fn named(session: &SessionId, seq: Option<u64>, error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        // Without a code a value has another type than the one that was written.
        None | Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            damaged(session, seq, &error.to_string())
        }
        Some(_) => error.into(),
    }
}

/// Computes the checksums of the rows of an older database.
pub fn complete(conn: &mut Connection) -> Result<(), StoreError> {
    let query = "SELECT 1 FROM notice WHERE name = ?1";
    if conn.prepare_cached(query)?.exists([COMPLETE])? {
        return Ok(());
    }
    loop {
        let tx = conn.transaction()?;
        if complete_records(&tx)? || complete_frame(&tx)? {
            tx.commit()?;
            continue;
        }
        // From here on a row without a checksum is a damaged one.
        tx.execute("INSERT OR REPLACE INTO notice VALUES (?1, 0)", [COMPLETE])?;
        tx.commit()?;
        return Ok(());
    }
}

fn complete_records(conn: &Connection) -> Result<bool, StoreError> {
    let mut query = conn.prepare_cached(
        "SELECT e.session, e.seq, coalesce(k.id, ''), r.payload FROM session_record e
         JOIN session_key k ON k.num = e.session JOIN record r ON r.id = e.record
         WHERE e.sum IS NULL LIMIT ?1",
    )?;
    let rows: Vec<(i64, u64, u32)> = query
        .query_map([ROWS], |row| {
            let seq: u64 = row.get(1)?;
            let session: String = row.get(2)?;
            let text = row.get_ref(3)?.as_bytes()?;
            Ok((row.get(0)?, seq, record_sum(&session, seq, text)))
        })?
        .collect::<Result<_, _>>()?;
    let mut update =
        conn.prepare_cached("UPDATE session_record SET sum = ?3 WHERE session = ?1 AND seq = ?2")?;
    for (session, seq, sum) in &rows {
        update.execute(params![session, seq, sum])?;
    }
    Ok(!rows.is_empty())
}

fn complete_frame(conn: &Connection) -> Result<bool, StoreError> {
    let row: Option<(i64, u32)> = conn
        .prepare_cached(
            "SELECT p.id, coalesce(k.id, ''), p.first, p.last, p.size, p.frame
             FROM packed_record p JOIN session_key k ON k.num = p.session
             WHERE p.sum IS NULL LIMIT 1",
        )?
        .query_row([], |row| {
            let session: String = row.get(1)?;
            let frame: Vec<u8> = row.get(5)?;
            let numbers = (row.get(2)?, row.get(3)?);
            Ok((row.get(0)?, frame_sum(&session, numbers, row.get(4)?, &frame)))
        })
        .optional()?;
    let Some((id, sum)) = row else { return Ok(false) };
    conn.execute("UPDATE packed_record SET sum = ?2 WHERE id = ?1", params![id, sum])?;
    Ok(true)
}
