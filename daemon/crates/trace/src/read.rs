//! Reading records.

use cairn_protocol::{
    envelope::Envelope,
    error::{Failure, Reason},
    id::SessionId,
};
use cairn_store::rusqlite::params;

use crate::{Line, PAGE, Trace, sql};

impl Trace {
    /// Records after `after`, as they are stored.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn lines(&self, session: &SessionId, after: u64, limit: u32) -> Result<Vec<Line>, Failure> {
        let session = session.clone();
        // SQLite counts in signed 64 bits; no record lies beyond.
        let after = after.min(i64::MAX as u64);
        self.read(move |conn| {
            let query =
                "SELECT payload FROM trace_event WHERE session_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
            let mut statement = conn.prepare_cached(query).map_err(sql)?;
            let rows = statement
                .query_map(params![session.as_str(), after, limit.min(PAGE)], |r| {
                    r.get::<_, String>(0).map(Line::from)
                })
                .map_err(sql)?;
            rows.collect::<Result<_, _>>().map_err(sql)
        })
        .await
    }

    /// Records after `after`, parsed.
    ///
    /// # Errors
    /// When the database cannot be read, or a record is not one.
    pub async fn records(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Envelope>, Failure> {
        let lines = self.lines(session, after, limit).await?;
        lines.iter().map(|line| parse(line)).collect()
    }
}

/// A stored record.
pub fn parse(line: &str) -> Result<Envelope, Failure> {
    serde_json::from_str(line).map_err(|error| {
        Failure::new(Reason::StorageFailed, format!("a stored record cannot be read: {error}"))
    })
}
