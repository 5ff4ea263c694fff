//! Import of a trace, complete or part by part.

use std::sync::Arc;

use cairn_protocol::{
    envelope::Envelope,
    explore::RunState,
    id::SessionId,
    session::Session,
    time::Timestamp,
    trace::{TraceBlobLine, TraceHeader},
};
use cairn_store::{
    StoreError,
    rusqlite::{OptionalExtension, Savepoint, params},
};

use sha2::{Digest as _, Sha256};

use crate::{
    Line, Trace, TraceError,
    checksum::{self, Checksum},
    records,
};

/// Start of a line with a part of a blob.
const BLOB: &str = "{\"blob\":";
/// Maximum bytes of a session's artifacts.
const MAX_ARTIFACTS: usize = 8 * 1024 * 1024;
/// Maximum bytes of a blob.
const MAX_BLOB: u64 = 64 * 1024 * 1024;

/// A validated part of an export.
struct Part {
    /// Header of the first part, which creates the session.
    header: Option<TraceHeader>,
    session: SessionId,
    /// Number of the first record; `None` without records.
    first: Option<u64>,
    lines: Vec<Entry>,
    /// Checksum after the last record. An export of an older version has none.
    checksum: Option<Checksum>,
    blobs: Vec<TraceBlobLine>,
}

type Entry = (Timestamp, &'static str, Line);

/// Result of importing a part.
enum Import {
    /// The part is in the log.
    Done,
    /// A session of that id exists that was not imported up to this part.
    Refused(TraceError),
    /// The imported records differ from the exported ones.
    Damaged,
}

impl Trace {
    /// Imports an export, or its next part: the first part starts with the header and creates the
    /// session, each further one continues after the previous one. The session retains its id; a
    /// local session is never changed.
    ///
    /// # Errors
    /// `bad_trace` with the line; `session_exists`; `session_not_found` for a part without its
    /// first part.
    pub async fn import(&self, jsonl: &str) -> Result<Session, TraceError> {
        let part = check(jsonl)?;
        let id = part.session.clone();
        let live = Arc::downgrade(&self.inner);
        let (session, first) = (id.clone(), part.first);
        let lines: Vec<Line> = part.lines.iter().map(|(_, _, line)| line.clone()).collect();
        let publish = move |outcome: &Import| {
            if let (Import::Done, Some(inner), Some(first)) = (outcome, live.upgrade(), first) {
                inner.live.publish(&session, first, &lines);
                inner.note_change(&session);
            }
        };
        let wait = self.inner.writer.submit(move |tx| part.write(tx), publish)?;
        match wait.await.unwrap_or(Err(StoreError::Closed))? {
            Import::Done => self.session(&id).await,
            Import::Refused(error) => Err(error),
            Import::Damaged => {
                // Earlier parts of a damaged trace are worthless.
                match self.delete_session(&id).await {
                    Err(TraceError::SessionNotFound(_)) | Ok(()) => {}
                    Err(error) => return Err(error),
                }
                let text =
                    format!("session {id}: the records do not match the checksum of the export");
                Err(TraceError::BadTrace(text))
            }
        }
    }
}

impl Part {
    /// Writes the complete part, or nothing.
    fn write(self, tx: &Savepoint<'_>) -> Result<Import, StoreError> {
        tx.execute_batch("SAVEPOINT part")?;
        let outcome = self.put(tx)?;
        if !matches!(outcome, Import::Done) {
            tx.execute_batch("ROLLBACK TO part")?;
        }
        tx.execute_batch("RELEASE part")?;
        Ok(outcome)
    }

    fn put(self, tx: &Savepoint<'_>) -> Result<Import, StoreError> {
        let id = &self.session;
        let first = self.first.unwrap_or(1);
        let last = first + self.lines.len() as u64 - 1;
        let row: Option<(u64, bool)> = tx
            .prepare_cached("SELECT head_seq, imported FROM session WHERE id = ?1")?
            .query_row([id.as_str()], |r| Ok((r.get(0)?, r.get(1)?)))
            .optional()?;
        let refused = |error| Ok(Import::Refused(error));
        match (&self.header, row) {
            (Some(_), Some(_)) => {
                return refused(TraceError::SessionExists(id.clone()));
            }
            (Some(header), None) => insert_session(tx, header, last)?,
            (None, None) => return refused(TraceError::ImportNotStarted(id.clone())),
            (None, Some((_, false))) => {
                return refused(TraceError::SessionNotImported(id.clone()));
            }
            (None, Some((head, true))) if self.first.is_some_and(|first| head + 1 != first) => {
                let text = format!(
                    "session {id} continues with record {}, this part begins with {first}",
                    head + 1
                );
                return refused(TraceError::BadTrace(text));
            }
            (None, Some((_, true))) if self.first.is_none() => {}
            (None, Some((_, true))) => {
                tx.execute(
                    "UPDATE session SET head_seq = ?2 WHERE id = ?1",
                    params![id.as_str(), last],
                )?;
            }
        }
        let Some(key) = records::key(tx, id)? else {
            return refused(TraceError::SessionNotFound(id.clone()));
        };
        let owner = records::Owner { session: id, key };
        let mut bytes = 0;
        for (seq, (ts, kind, line)) in (first..).zip(&self.lines) {
            records::insert(tx, owner, seq, (ts.0, kind), line)?;
            bytes += line.len();
        }
        tx.prepare_cached("UPDATE session SET bytes = bytes + ?2 WHERE id = ?1")?
            .execute(params![id.as_str(), bytes])?;
        if let Some(checksum) = &self.checksum
            && !checksum.fits(tx)?
        {
            return Ok(Import::Damaged);
        }
        for blob in &self.blobs {
            if let Some(why) = take(tx, blob)? {
                return refused(TraceError::BadTrace(why));
            }
        }
        Ok(Import::Done)
    }
}

/// Stores a part of a blob; the last one completes the blob, which is then checked. Returns the
/// reason of a refusal.
fn take(tx: &Savepoint<'_>, line: &TraceBlobLine) -> Result<Option<String>, StoreError> {
    let TraceBlobLine { blob, session_id, offset, size, text } = line;
    let (session, blob_text) = (session_id.as_str(), blob.escape_default());
    let known: bool = tx
        .prepare_cached("SELECT 1 FROM blob_ref WHERE session_id = ?1 AND sha256 = ?2")?
        .exists([session, blob])?;
    if known {
        return Ok(Some(format!("blob {blob_text} already exists")));
    }
    let mut so_far = tx.prepare_cached(
        "SELECT text FROM blob_part WHERE session_id = ?1 AND sha256 = ?2 ORDER BY start",
    )?;
    let parts: Vec<String> =
        so_far.query_map([session, blob], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let before: u64 = parts.iter().map(|p| p.len() as u64).sum();
    if before != *offset {
        return Ok(Some(format!(
            "blob {blob_text} continues at {before}, this part begins at {offset}"
        )));
    }
    let after = before + text.len() as u64;
    if after > *size || *size > MAX_BLOB || (text.is_empty() && *size > 0) {
        return Ok(Some(format!(
            "blob {blob_text} does not have the declared size, or has more than {MAX_BLOB} bytes"
        )));
    }
    if after < *size {
        tx.prepare_cached("INSERT INTO blob_part VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![session, blob, offset, text])?;
        return Ok(None);
    }
    let complete_text = parts.concat() + text;
    if hex::encode(Sha256::digest(complete_text.as_bytes())) != *blob {
        return Ok(Some(format!("blob {blob_text} does not match its hash")));
    }
    tx.execute("DELETE FROM blob_part WHERE session_id = ?1 AND sha256 = ?2", [session, blob])?;
    crate::blob::write(tx, session_id, blob, complete_text.as_bytes())?;
    Ok(None)
}

fn insert_session(tx: &Savepoint<'_>, header: &TraceHeader, head: u64) -> Result<(), StoreError> {
    let (artifacts, header) = (&header.artifacts, &header.session);
    // A run that was active in the trace does not run here.
    let state =
        if header.state == RunState::Running { RunState::Interrupted } else { header.state };
    tx.execute(
        "INSERT INTO session (id, title, root, state, created_ms, updated_ms, head_seq, imported)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1)",
        params![
            header.session_id.as_str(),
            crate::session::cut_title(&header.title),
            header.root,
            state.as_str(),
            header.created_at.0,
            header.updated_at.0,
            head
        ],
    )?;
    records::add_key(tx, &header.session_id)?;
    let mut insert = tx.prepare_cached("INSERT INTO artifact VALUES (?1, ?2, ?3, ?4)")?;
    for (name, content) in artifacts {
        insert.execute(params![header.session_id.as_str(), name, header.updated_at.0, content])?;
    }
    Ok(())
}

/// Creates a part without records.
fn continued(session: SessionId) -> Part {
    Part {
        header: None,
        session,
        first: None,
        lines: Vec::new(),
        checksum: None,
        blobs: Vec::new(),
    }
}

fn bad(line: usize, what: String) -> TraceError {
    TraceError::BadTrace(format!("line {line}: {what}"))
}

fn parsed<T: serde::de::DeserializeOwned>(
    line: usize,
    text: &str,
    what: &str,
) -> Result<T, TraceError> {
    serde_json::from_str(text).map_err(|e| bad(line, format!("not {what}: {e}")))
}

fn check(jsonl: &str) -> Result<Part, TraceError> {
    let mut lines =
        jsonl.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
    let (at, first) =
        *lines.peek().ok_or_else(|| bad(1, "there is neither header nor record".into()))?;
    let mut part = match serde_json::from_str::<Envelope>(first) {
        Ok(record) => Part { first: Some(record.seq), ..continued(record.session_id) },
        Err(_) if first.starts_with(checksum::BEGIN) => {
            continued(parsed::<Checksum>(at + 1, first, "a checksum")?.session_id)
        }
        Err(_) if first.starts_with(BLOB) => {
            continued(parsed::<TraceBlobLine>(at + 1, first, "a part of a blob")?.session_id)
        }
        Err(_) => {
            lines.next();
            let header = header(at + 1, first)?;
            let session = header.session.session_id.clone();
            Part { header: Some(header), first: Some(1), ..continued(session) }
        }
    };
    for (at, line) in lines {
        part.take(at + 1, line)?;
    }
    Ok(part)
}

fn header(at: usize, text: &str) -> Result<TraceHeader, TraceError> {
    let header: TraceHeader = parsed(at, text, "a trace header")?;
    if header.format != "cairn-trace" || header.version != 1 {
        return Err(bad(
            at,
            format!("format {} {} is not supported", header.format, header.version),
        ));
    }
    let size: usize = header.artifacts.iter().map(|(name, text)| name.len() + text.len()).sum();
    if size > MAX_ARTIFACTS {
        return Err(bad(at, format!("artifacts have {size} bytes; the limit is {MAX_ARTIFACTS}")));
    }
    Ok(header)
}

impl Part {
    /// Parses a line after the first: a record, then the checksum, then parts of blobs.
    fn take(&mut self, at: usize, line: &str) -> Result<(), TraceError> {
        if line.starts_with(BLOB) {
            let blob: TraceBlobLine = parsed(at, line, "a part of a blob")?;
            if blob.session_id != self.session {
                return Err(bad(at, format!("belongs to session {}", blob.session_id)));
            }
            self.blobs.push(blob);
            return Ok(());
        }
        if line.starts_with(checksum::BEGIN) {
            let checksum: Checksum = parsed(at, line, "a checksum")?;
            if checksum.session_id != self.session
                || self.checksum.is_some()
                || !self.blobs.is_empty()
            {
                return Err(bad(at, "a misplaced checksum".into()));
            }
            self.checksum = Some(checksum);
            return Ok(());
        }
        if !self.blobs.is_empty() || self.checksum.is_some() {
            return Err(bad(at, "a record after the checksum or a blob".into()));
        }
        let record: Envelope = parsed(at, line, "a record")?;
        if record.session_id != self.session {
            return Err(bad(at, format!("belongs to session {}", record.session_id)));
        }
        let expected = self.first.unwrap_or(1) + self.lines.len() as u64;
        if record.seq != expected {
            return Err(bad(at, format!("has number {}, {expected} was expected", record.seq)));
        }
        let kind = if record.body.evt().is_some() { "Evt" } else { "Cmd" };
        self.lines.push((record.ts, kind, Line::from(line.to_owned())));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cairn_protocol::{envelope::Body, event::AgentEvt, session::After};
    use uuid::Uuid;

    use super::*;
    use cairn_protocol::error::Reason;

    use crate::{Append, NewRecord, NewSession, Step};

    fn record(text: &str) -> NewRecord {
        let evt = AgentEvt::Warning { op: "t".into(), message: text.into() };
        NewRecord { id: Uuid::now_v7(), parent_id: None, origin: None, body: Body::Evt { evt } }
    }

    /// Exports a session with more than one part of records: returns its trace, its id and the
    /// parts.
    async fn exported(dir: &std::path::Path) -> (Trace, SessionId, Vec<String>) {
        let trace = Trace::open(&dir.join("a.db")).unwrap();
        let id = trace.create_session(NewSession::default()).await.unwrap().session_id;
        let text = "x".repeat(50_000);
        for _ in 0..5 {
            trace.append(Append::new(&id, (0..10).map(|_| record(&text)).collect())).await.unwrap();
        }
        let (mut parts, mut cursor) = (Vec::new(), None);
        loop {
            let part = trace.export(&id, cursor.as_deref()).await.unwrap();
            parts.push(part.jsonl);
            cursor = part.next_cursor;
            if cursor.is_none() {
                return (trace, id, parts);
            }
        }
    }

    // R3
    #[tokio::test]
    async fn tampered_trace_is_refused_and_stores_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (_trace, id, parts) = exported(dir.path()).await;
        let complete_text = parts.concat();
        let mut databases = 0;
        let mut import = async |parts: &[String]| {
            databases += 1;
            let other = Trace::open(&dir.path().join(format!("other{databases}.db"))).unwrap();
            for part in parts {
                if let Err(failure) = other.import(part).await {
                    assert!(other.session(&id).await.is_err(), "nothing of it stays");
                    return Some(failure.reason());
                }
            }
            None
        };
        let forged = complete_text.replacen("xxxx", "xyxx", 1);
        assert_eq!(import(&[forged]).await, Some(Reason::BadTrace), "a letter of a record");
        // The same in parts, for any division.
        let mut in_parts = parts.clone();
        in_parts[0] = in_parts[0].replacen("xxxx", "xyxx", 1);
        assert_eq!(import(&in_parts).await, Some(Reason::BadTrace));
        let lines: Vec<&str> = complete_text.lines().collect();
        let last = lines.iter().position(|line| line.starts_with(checksum::BEGIN)).unwrap();
        let shorter = [&lines[..last - 1], &lines[last..]].concat().join("\n");
        assert_eq!(import(&[shorter]).await, Some(Reason::BadTrace), "the last record is gone");
        let (head, tail) = (lines[..last].join("\n"), lines[last..].join("\n"));
        assert_eq!(import(&[head.clone(), tail.clone()]).await, None, "the control: as it was");
        assert_eq!(import(&[head.replacen("xxxx", "xyxx", 1), tail]).await, Some(Reason::BadTrace));
        // An export of an older version has no checksum.
        assert_eq!(import(&[head]).await, None);
    }

    #[tokio::test]
    async fn trace_is_imported_in_parts() {
        let dir = tempfile::tempdir().unwrap();
        let (trace, id, parts) = exported(dir.path()).await;
        assert!(parts.len() > 2);
        let other = Trace::open(&dir.path().join("b.db")).unwrap();
        let reason = |e: Result<Session, TraceError>| e.unwrap_err().reason();
        assert_eq!(reason(other.import(&parts[1]).await), Reason::SessionNotFound);
        let partial = other.import(&parts[0]).await.unwrap();
        assert!(partial.head_seq < 50);
        let (mut follower, _) = other.follow(&id, &After::Seq(partial.head_seq)).await.unwrap();
        assert!(matches!(follower.step().await.unwrap(), Step::Synced(_)));
        assert_eq!(reason(other.import(&parts[2]).await), Reason::BadTrace, "a part is missing");
        assert_eq!(reason(other.import(&parts[0]).await), Reason::SessionExists);
        for part in &parts[1..] {
            other.import(part).await.unwrap();
        }
        assert!(
            matches!(follower.step().await.unwrap(), Step::Records(_)),
            "the follower receives it"
        );
        assert_eq!(reason(other.import(&parts[1]).await), Reason::BadTrace, "it already exists");
        assert_eq!(other.session(&id).await.unwrap().head_seq, 50);
        assert_eq!(
            other.lines(&id, 0, 100).await.unwrap(),
            trace.lines(&id, 0, 100).await.unwrap()
        );
        // Blobs that records refer to are exported with them.
        let large = "y".repeat(700_000);
        let sha256 = hex::encode(Sha256::digest(large.as_bytes()));
        let append = Append::new(&id, vec![record("with a blob")])
            .blob(sha256.clone(), large.clone().into_bytes());
        trace.append(append).await.unwrap();
        let third = Trace::open(&dir.path().join("c.db")).unwrap();
        let mut cursor = None;
        let mut all = Vec::new();
        loop {
            let part = trace.export(&id, cursor.as_deref()).await.unwrap();
            third.import(&part.jsonl).await.unwrap();
            all.push(part.jsonl);
            cursor = part.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(third.complete_blob(&sha256).await.unwrap(), large);
        assert_eq!(third.session(&id).await.unwrap().head_seq, 51);
        // A single letter of the blob differs.
        let forger = Trace::open(&dir.path().join("d.db")).unwrap();
        let forged = all.concat().replace("yyyyyyyyyy\"}", "yyyyyyyyyz\"}");
        assert_eq!(reason(forger.import(&forged).await), Reason::BadTrace);
        assert!(forger.session(&id).await.is_err(), "nothing of it is taken");
        // An import cannot continue a local session.
        let mut forged = parts[1].clone();
        forged.truncate(forged.find('\n').unwrap());
        let created = trace.session(&id).await.unwrap();
        assert_eq!(reason(trace.import(&forged).await), Reason::SessionExists);
        assert_eq!(trace.session(&id).await.unwrap(), created);
    }
}
