//! Reading records.

use cairn_protocol::{envelope::Envelope, id::SessionId};

use crate::{Line, PAGE, Trace, TraceError, records};

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
        self.read(move |conn| {
            // Records that are packed meanwhile are read in one of their two forms.
            let snapshot = conn.unchecked_transaction()?;
            Ok(records::lines(&snapshot, &session, after, limit.min(PAGE) as usize)?)
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
