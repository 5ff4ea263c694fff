//! The size of the log: what it consists of, which sessions may be removed, and packing those that
//! are not in use.

use cairn_protocol::{
    id::SessionId,
    time::Timestamp,
    usage::{LogUsage, SessionUsage},
};
use cairn_store::{
    StoreError,
    rusqlite::{Connection, OptionalExtension, Savepoint, params},
};

use crate::{Trace, TraceError, integrity, records};

/// Limits of the log. A limit of `None` does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Time after the last use of a session, after which it is removed, in milliseconds.
    pub max_age_ms: Option<i64>,
    /// Bytes of the log above which the least recently used sessions are removed.
    pub max_bytes: Option<u64>,
    /// Number of the most recently used sessions that remain in any case.
    pub keep: u32,
    /// Time after the last use of a session, after which its records are compressed, in
    /// milliseconds.
    pub pack_after_ms: Option<i64>,
}

impl Retention {
    /// The limits of a log that is never shortened.
    pub const UNLIMITED: Self =
        Self { max_age_ms: None, max_bytes: None, keep: 0, pack_after_ms: None };
}

/// Maximum sessions of one answer.
const LIMIT: u32 = 1000;
/// Bytes of a session without records.
const MIN_BYTES: u64 = 512;

impl Trace {
    /// Returns the sessions that the limits remove at the time `now`, least recently used first, at
    /// most 1,000. Running sessions remain, and those with a question that waits for an answer.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn expired(
        &self,
        limits: Retention,
        now: Timestamp,
    ) -> Result<Vec<SessionUsage>, TraceError> {
        self.read(move |conn| Ok(expired(conn, limits, now)?)).await
    }

    /// Returns what the log consists of, with the `top` largest sessions.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn usage(&self, top: u32) -> Result<LogUsage, TraceError> {
        let file_bytes = self.bytes();
        self.read(move |conn| {
            let number = |query: &str| conn.query_row(query, [], |row| row.get::<_, u64>(0));
            let page = number("PRAGMA page_size")?;
            Ok(LogUsage {
                file_bytes,
                free_bytes: number("PRAGMA freelist_count")? * page,
                sessions: number("SELECT count(*) FROM session")?,
                records: number("SELECT coalesce(sum(head_seq), 0) FROM session")?,
                record_bytes: number("SELECT coalesce(sum(bytes), 0) FROM session")?,
                packed_bytes: number("SELECT coalesce(sum(length(frame)), 0) FROM packed_record")?,
                unpacked_bytes: number("SELECT coalesce(sum(size), 0) FROM packed_record")?,
                blob_bytes: number("SELECT coalesce(sum(size), 0) FROM blob")?,
                artifact_bytes: number(
                    "SELECT coalesce(sum(octet_length(content)), 0) FROM artifact",
                )?,
                audit_rows: number("SELECT count(*) FROM audit")?,
                largest: largest(conn, top.min(LIMIT))?,
            })
        })
        .await
    }

    /// Compresses the records of sessions that were last used before `before`, step by step, and
    /// returns the number of sessions.
    ///
    /// # Errors
    /// Fails when the log cannot be written.
    pub async fn pack(&self, before: Timestamp) -> Result<u64, TraceError> {
        let _one_at_a_time = self.inner.reclaiming.lock().await;
        let mut packed = 0;
        while let Some(session) = self.next_to_pack(before).await? {
            let target = session.clone();
            while self
                .inner
                .writer
                .write({
                    let target = target.clone();
                    move |tx| pack_frame(tx, &target, before)
                })
                .await?
            {}
            packed += 1;
        }
        Ok(packed)
    }

    async fn next_to_pack(&self, before: Timestamp) -> Result<Option<SessionId>, TraceError> {
        self.read(move |conn| {
            let id: Option<String> = conn
                .prepare_cached(
                    "SELECT id FROM session WHERE updated_ms < ?1 AND packed_seq < head_seq
                     AND state <> 'running' ORDER BY updated_ms LIMIT 1",
                )?
                .query_row([before.0], |row| row.get(0))
                .optional()?;
            Ok(id.and_then(|id| id.parse().ok()))
        })
        .await
    }

    /// Records a reading of the clock and returns the time since which it has not jumped by more
    /// than seven days forward, or back.
    ///
    /// # Errors
    /// Fails when the log cannot be written.
    pub async fn clock_steady_since(&self, now: Timestamp) -> Result<Timestamp, TraceError> {
        let since = self.inner.writer.write(move |tx| {
            let read = |name: &str| -> Result<Option<i64>, StoreError> {
                let query = "SELECT ms FROM notice WHERE name = ?1";
                Ok(tx.query_row(query, [name], |row| row.get(0)).optional()?)
            };
            let is_steady = read(CLOCK_READ)?.is_some_and(|last| {
                (last - MAX_CLOCK_CORRECTION_MS..=last + MAX_CLOCK_GAP_MS).contains(&now.0)
            });
            let since = read(CLOCK_STEADY)?.filter(|_| is_steady).unwrap_or(now.0);
            for (name, ms) in [(CLOCK_READ, now.0), (CLOCK_STEADY, since)] {
                tx.execute("INSERT OR REPLACE INTO notice VALUES (?1, ?2)", params![name, ms])?;
            }
            Ok(since)
        });
        Ok(Timestamp(since.await?))
    }

    /// Records that a notice was issued and returns the time of its first issue.
    ///
    /// # Errors
    /// Fails when the log cannot be written.
    pub async fn notice(
        &self,
        name: &'static str,
        now: Timestamp,
    ) -> Result<Timestamp, TraceError> {
        let first: i64 = self
            .inner
            .writer
            .write(move |tx| {
                tx.execute("INSERT OR IGNORE INTO notice VALUES (?1, ?2)", params![name, now.0])?;
                let query = "SELECT ms FROM notice WHERE name = ?1";
                Ok(tx.query_row(query, [name], |row| row.get(0))?)
            })
            .await?;
        Ok(Timestamp(first))
    }
}

/// Name of the notice with the time at which the clock was last read.
const CLOCK_READ: &str = "clock_read";
/// Name of the notice with the time since which the clock has not jumped.
const CLOCK_STEADY: &str = "clock_steady";
/// Longest time between two readings that is not a jump: a machine may be off for some days.
const MAX_CLOCK_GAP_MS: i64 = 7 * 24 * 3600 * 1000;
/// Time by which a clock that is corrected may go back.
const MAX_CLOCK_CORRECTION_MS: i64 = 60 * 1000;

/// Compresses the next records of a session into one frame; true if there are more.
fn pack_frame(
    tx: &Savepoint<'_>,
    session: &SessionId,
    before: Timestamp,
) -> Result<bool, StoreError> {
    let row: Option<(u64, u64)> = tx
        .prepare_cached(
            "SELECT packed_seq, head_seq FROM session
             WHERE id = ?1 AND updated_ms < ?2 AND state <> 'running'",
        )?
        .query_row(params![session.as_str(), before.0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (Some((packed, head)), Some(key)) = (row, records::key(tx, session)?) else {
        return Ok(false);
    };
    let (mut text, mut last) = (String::new(), packed);
    let read = records::visit(tx, session, packed, |seq, line| {
        if !text.is_empty() && text.len() + line.len() >= records::FRAME {
            return false;
        }
        text.push_str(line);
        text.push('\n');
        last = seq;
        true
    });
    let is_damaged = matches!(read, Err(StoreError::DamagedRecord { .. }));
    if !is_damaged {
        read?;
    }
    if last == packed || is_damaged {
        // A damaged session stays as it is, and must not be looked for again and again.
        tx.prepare_cached("UPDATE session SET packed_seq = ?2 WHERE id = ?1")?
            .execute(params![session.as_str(), head])?;
        return Ok(false);
    }
    let frame = records::compress(&text)?;
    let bytes = frame.len() as i64 - text.len() as i64;
    let (first, size) = (packed + 1, text.len() as u64);
    let sum = integrity::frame_sum(session.as_str(), (first, last), size, &frame);
    tx.prepare_cached(
        "INSERT INTO packed_record (session, first, last, size, frame, sum)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![key, first, last, size, frame, sum])?;
    let rows: Vec<(i64, i64)> = tx
        .prepare_cached("SELECT seq, record FROM session_record WHERE session = ?1 AND seq <= ?2")?
        .query_map(params![key, last], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    for (seq, record) in rows {
        records::remove(tx, key, seq, record)?;
    }
    tx.prepare_cached(
        "UPDATE session SET packed_seq = ?2, bytes = max(0, bytes + ?3) WHERE id = ?1",
    )?
    .execute(params![session.as_str(), last, bytes])?;
    Ok(last < head)
}

/// The columns of [`usage_row`]; blobs count for each session that has them.
const USAGE: &str =
    "SELECT s.id, s.title, s.root, s.updated_ms, s.bytes + coalesce((SELECT sum(b.size)
    FROM blob_ref r JOIN blob b ON b.sha256 = r.sha256 WHERE r.session_id = s.id), 0)";

fn usage_row(row: &cairn_store::rusqlite::Row<'_>) -> cairn_store::rusqlite::Result<SessionUsage> {
    let id: String = row.get(0)?;
    Ok(SessionUsage {
        session_id: id.parse().unwrap_or_else(|_| SessionId::nil()),
        title: row.get(1)?,
        root: row.get(2)?,
        updated_at: Timestamp(row.get(3)?),
        bytes: row.get(4)?,
    })
}

fn largest(conn: &Connection, top: u32) -> Result<Vec<SessionUsage>, StoreError> {
    let query = format!("{USAGE} AS total FROM session s ORDER BY total DESC LIMIT ?1");
    let mut statement = conn.prepare_cached(&query)?;
    Ok(statement.query_map([top], usage_row)?.collect::<Result<_, _>>()?)
}

fn expired(
    conn: &Connection,
    limits: Retention,
    now: Timestamp,
) -> Result<Vec<SessionUsage>, StoreError> {
    let pages: u64 = conn.query_row("PRAGMA page_count", [], |row| row.get(0))?;
    let unused: u64 = conn.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
    let page: u64 = conn.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    let mut used = (pages - unused) * page;
    let count: u64 = conn.query_row("SELECT count(*) FROM session", [], |row| row.get(0))?;
    let removable = count.saturating_sub(u64::from(limits.keep)).min(u64::from(LIMIT));
    // The least recently used sessions, without the newest `keep`.
    let query = format!(
        "{USAGE} FROM session s WHERE s.id IN
             (SELECT id FROM session ORDER BY updated_ms, id LIMIT ?1)
         AND s.state <> 'running' AND NOT EXISTS (SELECT 1 FROM approval a
             WHERE a.session_id = s.id AND a.decision IS NULL AND a.expires_ms > ?2)
         ORDER BY s.updated_ms, s.id"
    );
    let mut statement = conn.prepare(&query)?;
    let rows = statement.query_map(params![removable, now.0], usage_row)?;
    let mut expired = Vec::new();
    for row in rows {
        let session = row?;
        let is_old = limits.max_age_ms.is_some_and(|age| session.updated_at.0 < now.0 - age);
        let is_over = limits.max_bytes.is_some_and(|bytes| used > bytes);
        if !is_old && !is_over {
            break;
        }
        used = used.saturating_sub(session.bytes.max(MIN_BYTES));
        expired.push(session);
    }
    Ok(expired)
}
