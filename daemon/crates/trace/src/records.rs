//! The rows of records: what a session's history consists of, shared by its forks and packed when
//! it is old.
//!
//! A record is one row of `record`, in the order of its commit, so that pages fill up.
//! `session_record` has the numbers of each session; a fork has numbers of its own for the same
//! rows (`shared_record` counts them). The oldest records of a session that is not in use are
//! frames of compressed lines (`packed_record`), which are read like the others.

use cairn_protocol::id::SessionId;
use cairn_store::{
    StoreError,
    rusqlite::{Connection, OptionalExtension, params},
};

use crate::{Line, integrity};

/// Start of each record as this build writes it.
const BEGIN: &str = "{\"sessionId\":\"";
/// Maximum bytes of the lines of one frame, unless a single line is longer.
pub const FRAME: usize = 256 * 1024;
/// Level of compression: above it, frames are hardly smaller.
const LEVEL: i32 = 6;

/// Number of a session in the tables of records. Numbers are never used again.
pub type SessionKey = i64;

/// Returns the number of a session.
pub fn key(conn: &Connection, session: &SessionId) -> Result<Option<SessionKey>, StoreError> {
    Ok(conn
        .prepare_cached("SELECT num FROM session_key WHERE id = ?1")?
        .query_row([session.as_str()], |row| row.get(0))
        .optional()?)
}

/// Assigns a number to a new session.
pub fn add_key(conn: &Connection, session: &SessionId) -> Result<SessionKey, StoreError> {
    conn.prepare_cached("INSERT INTO session_key (id) VALUES (?1)")?.execute([session.as_str()])?;
    Ok(conn.last_insert_rowid())
}

/// A session with its number in the tables of records.
#[derive(Clone, Copy)]
pub struct Owner<'a> {
    pub session: &'a SessionId,
    pub key: SessionKey,
}

/// Adds a record with its number in the session.
pub fn insert(
    conn: &Connection,
    owner: Owner<'_>,
    seq: u64,
    (ts, kind): (i64, &str),
    line: &str,
) -> Result<(), StoreError> {
    conn.prepare_cached("INSERT INTO record (ts, kind, payload) VALUES (?1, ?2, ?3)")?
        .execute(params![ts, kind, line])?;
    let record = conn.last_insert_rowid();
    add_number(conn, owner, seq, record, line)
}

/// Gives a session a number for an existing record, whose text is `line`.
fn add_number(
    conn: &Connection,
    owner: Owner<'_>,
    seq: u64,
    record: i64,
    line: &str,
) -> Result<(), StoreError> {
    let sum = integrity::record_sum(owner.session.as_str(), seq, line.as_bytes());
    conn.prepare_cached(
        "INSERT INTO session_record (session, seq, record, sum) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![owner.key, seq, record, sum])?;
    Ok(())
}

/// Gives the session `to` the records of `from` up to number `upto` under the same numbers, without
/// copies, and returns the last number that it has; a record that is packed or cannot be shared ends
/// this.
pub fn share(
    conn: &Connection,
    from: Owner<'_>,
    to: Owner<'_>,
    upto: u64,
) -> Result<u64, StoreError> {
    let mut rows = conn.prepare_cached(
        "SELECT e.seq, e.record, r.payload, e.sum FROM session_record e
         JOIN record r ON r.id = e.record WHERE e.session = ?1 AND e.seq <= ?2 ORDER BY e.seq",
    )?;
    let mut count = conn.prepare_cached(
        "INSERT INTO shared_record VALUES (?1, 2) ON CONFLICT DO UPDATE SET uses = uses + 1",
    )?;
    let mut rows = rows.query(params![from.key, upto])?;
    let mut last = 0;
    while let Some(row) = rows.next()? {
        let (seq, record): (u64, i64) = (row.get(0)?, row.get(1)?);
        let text = row.get_ref(2)?.as_str().map_err(cairn_store::rusqlite::Error::from)?;
        if seq != last + 1 || !is_movable(text) {
            break;
        }
        // A damaged record would be intact in the fork, by a checksum of its own.
        integrity::check_record(from.session, seq, text, row.get(3)?)?;
        add_number(conn, to, seq, record, text)?;
        count.execute([record])?;
        last = seq;
    }
    Ok(last)
}

/// Removes a record from a session, and deletes it unless another session has it.
pub fn remove(conn: &Connection, key: SessionKey, seq: i64, record: i64) -> Result<(), StoreError> {
    conn.prepare_cached("DELETE FROM session_record WHERE session = ?1 AND seq = ?2")?
        .execute([key, seq])?;
    let uses: Option<u64> = conn
        .prepare_cached("SELECT uses FROM shared_record WHERE record = ?1")?
        .query_row([record], |row| row.get(0))
        .optional()?;
    let query = match uses {
        None => "DELETE FROM record WHERE id = ?1",
        Some(..=2) => "DELETE FROM shared_record WHERE record = ?1",
        Some(_) => "UPDATE shared_record SET uses = uses - 1 WHERE record = ?1",
    };
    conn.prepare_cached(query)?.execute([record])?;
    Ok(())
}

/// Calls `visit` with the number and the text of each record after `after`, in order, until it
/// returns false. A deleted session has none.
///
/// # Errors
/// `DamagedRecord` for a record that is missing or does not match its checksum: records are never
/// left out.
pub fn visit(
    conn: &Connection,
    session: &SessionId,
    after: u64,
    visit: impl FnMut(u64, &str) -> bool,
) -> Result<(), StoreError> {
    let head: Option<u64> = conn
        .prepare_cached("SELECT head_seq FROM session WHERE id = ?1")?
        .query_row([session.as_str()], |row| row.get(0))
        .optional()
        .map_err(|error| integrity::named(session, None, error))?;
    match (head, key(conn, session)?) {
        (None, None) | (Some(0), None) => Ok(()),
        (Some(head), Some(key)) => visit_of(conn, Owner { session, key }, head, after, visit),
        (None, Some(_)) => Err(integrity::damaged(session, None, "its row is missing")),
        (Some(_), None) => Err(integrity::damaged(session, None, "its number is missing")),
    }
}

/// As [`visit`], for a session whose last record has the number `head`.
pub fn visit_of(
    conn: &Connection,
    owner: Owner<'_>,
    head: u64,
    after: u64,
    mut visit: impl FnMut(u64, &str) -> bool,
) -> Result<(), StoreError> {
    // SQLite uses signed 64-bit integers; no record has a larger number.
    let mut after = after.min(i64::MAX as u64);
    while let Some(frame) = frame_after(conn, owner, after)? {
        for (seq, line) in (frame.first..).zip(frame.text.lines()).filter(|(seq, _)| *seq > after) {
            if !visit(seq, line) {
                return Ok(());
            }
        }
        after = frame.last;
    }
    let session = owner.session;
    // A record whose row is missing is not left out of the answer.
    let mut statement = conn.prepare_cached(
        "SELECT e.seq, r.payload, e.sum FROM session_record e LEFT JOIN record r ON r.id = e.record
         WHERE e.session = ?1 AND e.seq > ?2 ORDER BY e.seq",
    )?;
    let mut rows = statement.query(params![owner.key, after])?;
    loop {
        let named = |error| integrity::named(session, Some(after + 1), error);
        let Some(row) = rows.next().map_err(named)? else { break };
        let seq: u64 = row.get(0).map_err(named)?;
        let value = row.get_ref(1).map_err(named)?;
        let text = value.as_str_or_null().map_err(|error| named(error.into()))?;
        let text = text.filter(|_| seq == after + 1);
        let missing = || integrity::damaged(session, Some(after + 1), "it is missing");
        let text = text.ok_or_else(missing)?;
        integrity::check_record(session, seq, text, row.get(2).map_err(named)?)?;
        let proceed = match moved(text, session) {
            Some(line) => visit(seq, &line),
            None => visit(seq, text),
        };
        if !proceed {
            return Ok(());
        }
        after = seq;
    }
    if after < head {
        return Err(integrity::damaged(session, Some(after + 1), "it is missing"));
    }
    Ok(())
}

/// Returns up to `limit` records after `after`.
pub fn lines(
    conn: &Connection,
    session: &SessionId,
    after: u64,
    limit: usize,
) -> Result<Vec<Line>, StoreError> {
    let mut lines = Vec::new();
    if limit > 0 {
        visit(conn, session, after, |_, line| {
            lines.push(Line::from(line.to_owned()));
            lines.len() < limit
        })?;
    }
    Ok(lines)
}

/// Consecutive records of a session, unpacked.
struct Frame {
    /// Number of the first record.
    first: u64,
    last: u64,
    /// The records, each with a line feed.
    text: String,
}

/// A row of packed records.
struct FrameRow {
    first: u64,
    last: u64,
    /// Bytes of the records.
    size: u64,
    frame: Vec<u8>,
    sum: Option<u32>,
}

impl FrameRow {
    fn read(row: &cairn_store::rusqlite::Row<'_>) -> cairn_store::rusqlite::Result<Self> {
        Ok(Self {
            first: row.get(0)?,
            last: row.get(1)?,
            size: row.get(2)?,
            frame: row.get(3)?,
            sum: row.get(4)?,
        })
    }
}

/// Returns the frame with the first packed record after `after`.
fn frame_after(
    conn: &Connection,
    owner: Owner<'_>,
    after: u64,
) -> Result<Option<Frame>, StoreError> {
    let row = conn
        .prepare_cached(
            "SELECT first, last, size, frame, sum FROM packed_record
             WHERE session = ?1 AND last > ?2 ORDER BY last LIMIT 1",
        )?
        .query_row(params![owner.key, after], FrameRow::read)
        .optional()
        .map_err(|error| integrity::named(owner.session, Some(after + 1), error))?;
    let Some(FrameRow { first, last, size, frame, sum }) = row else { return Ok(None) };
    let broken = |what: &str| integrity::damaged(owner.session, Some(after + 1), what);
    // The size is trusted by the decompression, and so it is among what the checksum covers.
    if sum != Some(integrity::frame_sum(owner.session.as_str(), (first, last), size, &frame)) {
        return Err(broken("packed records do not match their checksum"));
    }
    if first > after + 1 {
        return Err(broken("it is missing"));
    }
    let size = usize::try_from(size).map_err(|_| broken("the size of packed records"))?;
    let text = zstd::bulk::decompress(&frame, size).map_err(|error| broken(&error.to_string()))?;
    let text = String::from_utf8(text).map_err(|_| broken("packed records are not text"))?;
    Ok(Some(Frame { first, last, text }))
}

/// Compresses the lines of one frame, each with a line feed.
pub fn compress(text: &str) -> Result<Vec<u8>, StoreError> {
    zstd::bulk::compress(text.as_bytes(), LEVEL)
        .map_err(|error| StoreError::Corrupt(format!("records cannot be compressed: {error}")))
}

/// Returns the record with the id of `session` if its text has the id of the session that it was
/// forked from.
fn moved(text: &str, session: &SessionId) -> Option<String> {
    let rest = text.strip_prefix(BEGIN)?;
    let (origin, rest) = rest.split_once('"')?;
    (origin != session.as_str()).then(|| format!("{BEGIN}{session}\"{rest}"))
}

/// True if a fork can refer to this record: its text begins with the id of a session.
pub fn is_movable(text: &str) -> bool {
    text.strip_prefix(BEGIN)
        .and_then(|rest| rest.split_once('"'))
        .is_some_and(|(id, _)| id.parse::<SessionId>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_a_fork_have_its_id() {
        let (old, new) = (SessionId::new(), SessionId::new());
        let text = format!("{BEGIN}{old}\",\"seq\":1,\"say\":\"{old}\"}}");
        assert!(is_movable(&text));
        assert_eq!(moved(&text, &old), None);
        let line = moved(&text, &new).unwrap();
        assert_eq!(line, format!("{BEGIN}{new}\",\"seq\":1,\"say\":\"{old}\"}}"));
        assert!(!is_movable("{\"seq\":1,\"sessionId\":\"ses_0\"}"));
        assert!(!is_movable(&format!("{BEGIN}../x\"}}")));
    }
}
