//! Forking a session: a new one with the same past.

use cairn_protocol::{
    envelope::Envelope,
    error::{Failure, Reason},
    explore::RunState,
    id::SessionId,
    session::Session,
    time::Timestamp,
};
use cairn_store::{
    StoreError,
    rusqlite::{OptionalExtension, Savepoint, params},
};

use crate::Trace;

impl Trace {
    /// Makes a session with the records of `from` up to `upto`, its artifacts and blobs. Numbers, ids and times of the records
    /// stay; they speak of the new session.
    ///
    /// # Errors
    /// `session_not_found`; `session_busy` while a run is at work in it.
    pub async fn fork(&self, from: &SessionId, upto: u64, title: String) -> Result<Session, Failure> {
        let (old, new) = (from.clone(), SessionId::new());
        let made = new.clone();
        let busy = self.inner.writer.write(move |tx| copy(tx, &old, &made, upto, &title)).await?;
        match busy {
            None => Err(Failure::new(Reason::SessionNotFound, format!("there is no session {from}"))),
            Some(true) => {
                Err(Failure::new(Reason::SessionBusy, format!("a run is at work in session {from}")))
            }
            Some(false) => self.session(&new).await,
        }
    }

    /// Puts a session away, or takes it out again: lists leave it out, everything else still works.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn archive(&self, id: &SessionId, archived: bool) -> Result<Session, Failure> {
        let key = id.clone();
        let query = "UPDATE session SET archived = ?2 WHERE id = ?1";
        self.inner.writer.write(move |tx| Ok(tx.execute(query, params![key.as_str(), archived])?)).await?;
        self.session(id).await
    }
}

/// Copies; whether the session is at work, `None` when it is not there.
fn copy(
    tx: &Savepoint<'_>,
    old: &SessionId,
    new: &SessionId,
    upto: u64,
    title: &str,
) -> Result<Option<bool>, StoreError> {
    let query = "SELECT state, head_seq FROM session WHERE id = ?1";
    let found: Option<(String, u64)> =
        tx.query_row(query, [old.as_str()], |r| Ok((r.get(0)?, r.get(1)?))).optional()?;
    let Some((state, head)) = found else { return Ok(None) };
    if state == RunState::Running.as_str() {
        return Ok(Some(true));
    }
    let last = upto.min(head);
    tx.execute(
        "INSERT INTO session (id, title, root, state, created_ms, updated_ms, head_seq, provider, model, endpoint)
         SELECT ?2, ?3, root, 'idle', ?4, ?4, ?5, provider, model, endpoint FROM session WHERE id = ?1",
        params![old.as_str(), new.as_str(), title, Timestamp::now().0, last],
    )?;
    let mut read =
        tx.prepare("SELECT ts, kind, seq, payload FROM trace_event WHERE session_id = ?1 AND seq <= ?2")?;
    let mut write = tx.prepare(
        "INSERT INTO trace_event (session_id, seq, ts, kind, payload) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut rows = read.query(params![old.as_str(), last])?;
    while let Some(row) = rows.next()? {
        let (ts, kind, seq): (i64, String, u64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let payload: String = row.get(3)?;
        let broken = |e: serde_json::Error| StoreError::Corrupt(format!("record {seq} of {old}: {e}"));
        let mut envelope: Envelope = serde_json::from_str(&payload).map_err(broken)?;
        envelope.session_id = new.clone();
        let json = serde_json::to_string(&envelope).map_err(broken)?;
        write.execute(params![new.as_str(), seq, ts, kind, json])?;
    }
    tx.execute(
        "INSERT INTO artifact (session_id, name, created_ms, content)
         SELECT ?2, name, created_ms, content FROM artifact WHERE session_id = ?1 AND name LIKE 'prompt%'",
        params![old.as_str(), new.as_str()],
    )?;
    tx.execute(
        "INSERT INTO blob_ref (session_id, sha256) SELECT ?2, sha256 FROM blob_ref WHERE session_id = ?1",
        params![old.as_str(), new.as_str()],
    )?;
    Ok(Some(false))
}
