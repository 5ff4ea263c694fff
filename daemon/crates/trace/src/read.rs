//! Reading records.

use cairn_protocol::{envelope::Envelope, id::SessionId};
use cairn_store::rusqlite::params;

use crate::{Line, PAGE, Trace, TraceError};

impl Trace {
    /// Returns records after `after`, as stored.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn lines(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Line>, TraceError> {
        let session = session.clone();
        // SQLite uses signed 64-bit integers; no record has a larger number.
        let after = after.min(i64::MAX as u64);
        self.read(move |conn| {
            let query =
                "SELECT payload FROM trace_event WHERE session_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
            let mut statement = conn.prepare_cached(query)?;
            let rows = statement.query_map(params![session.as_str(), after, limit.min(PAGE)], |r| {
                r.get::<_, String>(0).map(Line::from)
            })?;
            rows.collect::<Result<_, _>>().map_err(TraceError::from)
        })
        .await
    }

    /// Returns records after `after`, parsed.
    ///
    /// # Errors
    /// Fails when the database cannot be read, or a record is invalid.
    pub async fn records(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Envelope>, TraceError> {
        let lines = self.lines(session, after, limit).await?;
        lines.iter().map(|line| parse(line)).collect()
    }

    /// Calls `visit` with each record of a session in order, and loads one page at a time. Returns
    /// the number of the last one, 0 without records.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn for_each_record(
        &self,
        session: &SessionId,
        mut visit: impl FnMut(Envelope),
    ) -> Result<u64, TraceError> {
        let mut seq = 0;
        loop {
            let page = self.records(session, seq, PAGE).await?;
            let Some(last) = page.last() else { return Ok(seq) };
            seq = last.seq;
            page.into_iter().for_each(&mut visit);
        }
    }
}

/// Parses a stored record.
pub fn parse(line: &str) -> Result<Envelope, TraceError> {
    serde_json::from_str(line).map_err(TraceError::UnreadableRecord)
}
