//! Forking a session: a new session with the same history.

use cairn_protocol::{
    envelope::{Body, Envelope},
    event::AgentEvt,
    explore::RunState,
    id::SessionId,
    session::Session,
    time::Timestamp,
};
use cairn_store::{
    StoreError,
    rusqlite::{OptionalExtension, Savepoint, params},
};

use crate::{
    NewRecord, Trace, TraceError,
    records::{self, Owner},
};

/// The part of a session's history that a fork receives.
#[derive(Debug, Clone, Default)]
pub struct ForkCut {
    /// Number of the last record copied.
    pub upto: u64,
    /// Numbers of earlier records of turns that the fork omits, in ascending order.
    pub omitted: Vec<u64>,
    /// Records appended after the copied ones: the ends of interrupted turns, which do not
    /// continue in the fork.
    pub ends: Vec<NewRecord>,
}

impl Trace {
    /// Creates a session with the history, artifacts and blobs of `from`. Records retain their ids
    /// and times, and their numbers if none before them is omitted; they refer to the new session.
    ///
    /// # Errors
    /// `session_not_found`; `session_busy` while a run of the session is active.
    pub async fn fork(
        &self,
        from: &SessionId,
        cut: ForkCut,
        title: String,
    ) -> Result<Session, TraceError> {
        let (old, new) = (from.clone(), SessionId::new());
        let created = new.clone();
        let busy = self.inner.writer.write(move |tx| copy(tx, &old, &created, cut, &title)).await?;
        match busy {
            None => Err(TraceError::SessionNotFound(from.clone())),
            Some(true) => Err(TraceError::SessionBusy(from.clone())),
            Some(false) => {
                self.inner.note_change(&new);
                self.session(&new).await
            }
        }
    }

    /// Archives a session, or restores it: lists omit an archived session, everything else still
    /// works.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn archive(&self, id: &SessionId, archived: bool) -> Result<Session, TraceError> {
        let key = id.clone();
        let query = "UPDATE session SET archived = ?2 WHERE id = ?1";
        self.inner
            .writer
            .write(move |tx| Ok(tx.execute(query, params![key.as_str(), archived])?))
            .await?;
        self.session(id).await
    }
}

/// Copies the history; returns true if the session is running, `None` if it does not exist.
fn copy(
    tx: &Savepoint<'_>,
    old: &SessionId,
    new: &SessionId,
    cut: ForkCut,
    title: &str,
) -> Result<Option<bool>, StoreError> {
    let query = "SELECT state, head_seq FROM session WHERE id = ?1";
    let row: Option<(String, u64)> =
        tx.query_row(query, [old.as_str()], |r| Ok((r.get(0)?, r.get(1)?))).optional()?;
    let Some((state, head)) = row else { return Ok(None) };
    if state == RunState::Running.as_str() {
        return Ok(Some(true));
    }
    let last = cut.upto.min(head);
    let new_seq = |seq: u64| seq - cut.omitted.partition_point(|omitted| *omitted <= seq) as u64;
    let head = new_seq(last) + cut.ends.len() as u64;
    tx.execute(
        "INSERT INTO session (id, title, root, state, created_ms, updated_ms, head_seq, provider, model, endpoint)
         SELECT ?2, ?3, root, 'idle', ?4, ?4, ?5, provider, model, endpoint FROM session WHERE id = ?1",
        params![old.as_str(), new.as_str(), title, Timestamp::now().0, head],
    )?;
    let (Some(old_key), new_key) = (records::key(tx, old)?, records::add_key(tx, new)?) else {
        return Ok(None);
    };
    let (from, to) = (Owner { session: old, key: old_key }, Owner { session: new, key: new_key });
    let unchanged = cut.omitted.first().map_or(last, |omitted| last.min(omitted - 1));
    let shared = records::share(tx, from, to, unchanged)?;
    let mut copied = 0;
    let mut failed = None;
    // Records after the last one may be damaged, and are not read.
    if shared < last {
        records::visit(tx, old, shared, |seq, text| {
            if seq <= last && cut.omitted.binary_search(&seq).is_err() {
                let outcome = renamed(text, new, seq, new_seq).and_then(|(ts, kind, seq, json)| {
                    copied += json.len();
                    records::insert(tx, to, seq, (ts, kind), &json)
                });
                failed = outcome.err();
            }
            seq < last && failed.is_none()
        })?;
    }
    if let Some(error) = failed {
        return Err(error);
    }
    let now = Timestamp::now();
    for (seq, record) in (new_seq(last) + 1..).zip(cut.ends) {
        let NewRecord { id, parent_id, origin, body } = record;
        let envelope =
            Envelope { session_id: new.clone(), seq, id, parent_id, ts: now, origin, body };
        let json = serde_json::to_string(&envelope)
            .map_err(|e| StoreError::Corrupt(format!("record cannot be serialized: {e}")))?;
        copied += json.len();
        records::insert(tx, to, seq, (now.0, "Evt"), &json)?;
    }
    tx.execute("UPDATE session SET bytes = ?2 WHERE id = ?1", params![new.as_str(), copied])?;
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

/// Returns a copied record with its time and kind, for the session `new`.
fn renamed(
    text: &str,
    new: &SessionId,
    seq: u64,
    new_seq: impl Fn(u64) -> u64,
) -> Result<(i64, &'static str, u64, String), StoreError> {
    let broken = |e: serde_json::Error| StoreError::Corrupt(format!("record {seq}: {e}"));
    let mut envelope: Envelope = serde_json::from_str(text).map_err(broken)?;
    envelope.session_id = new.clone();
    envelope.seq = new_seq(seq);
    let mut kind = "Cmd";
    if let Body::Evt { evt } = &mut envelope.body {
        renumber(evt, new_seq);
        kind = "Evt";
    }
    let json = serde_json::to_string(&envelope).map_err(broken)?;
    Ok((envelope.ts.0, kind, envelope.seq, json))
}

/// Adjusts the record numbers inside an event.
fn renumber(evt: &mut AgentEvt, new_seq: impl Fn(u64) -> u64) {
    match evt {
        AgentEvt::ModelAnswer(answer) => answer.heard_seq = new_seq(answer.heard_seq),
        AgentEvt::Compacted { heard_seq, .. } => *heard_seq = new_seq(*heard_seq),
        _ => {}
    }
}
