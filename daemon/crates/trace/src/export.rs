//! Taking a trace away as JSONL, and bringing one in.

use cairn_protocol::{
    envelope::Envelope,
    error::{Failure, Reason},
    explore::RunState,
    id::SessionId,
    session::Session,
    time::Timestamp,
    trace::{TraceExportPart, TraceHeader},
};
use cairn_store::rusqlite::params;

use crate::{PAGE, Trace};

/// Bytes of one part, about: an export of any size is made of bounded parts.
const PART_BYTES: usize = 1024 * 1024;

impl Trace {
    /// One part of an export. The first begins with a header line; a part ends after a whole line.
    ///
    /// # Errors
    /// `session_not_found`; `invalid_params` for a cursor that is none.
    pub async fn export(&self, id: &SessionId, cursor: Option<&str>) -> Result<TraceExportPart, Failure> {
        let bad = |_| Failure::new(Reason::InvalidParams, "cursor is not one of this export");
        let mut after: u64 = cursor.map_or(Ok(0), str::parse).map_err(bad)?;
        let session = self.session(id).await?;
        let mut jsonl = String::new();
        if cursor.is_none() {
            let head = TraceHeader {
                format: "cairn-trace".into(),
                version: 1,
                session,
                exported_at: Timestamp::now(),
            };
            let line = serde_json::to_string(&head)
                .map_err(|e| Failure::new(Reason::Internal, format!("header cannot be written: {e}")))?;
            jsonl.push_str(&line);
            jsonl.push('\n');
        }
        loop {
            let lines = self.lines(id, after, PAGE).await?;
            let count = lines.len();
            for line in lines {
                jsonl.push_str(&line);
                jsonl.push('\n');
                after += 1;
                if jsonl.len() >= PART_BYTES {
                    return Ok(TraceExportPart { jsonl, next_cursor: Some(after.to_string()) });
                }
            }
            if count < PAGE as usize {
                return Ok(TraceExportPart { jsonl, next_cursor: None });
            }
        }
    }

    /// Brings in an export. The session keeps its id; one that is here already is not touched.
    ///
    /// # Errors
    /// `bad_trace` naming the line; `session_exists`.
    pub async fn import(&self, jsonl: &str) -> Result<Session, Failure> {
        let (session, lines) = check(jsonl)?;
        let id = session.session_id.clone();
        if self.session(&id).await.is_ok() {
            return Err(Failure::new(Reason::SessionExists, format!("session {id} is here already")));
        }
        // Nothing runs here that the trace left running.
        let state = if session.state == RunState::Running { RunState::Interrupted } else { session.state };
        let head = lines.len() as u64;
        let made = Session { state, head_seq: head, ..session };
        let stored = made.clone();
        self.inner
            .writer
            .write(move |tx| {
                tx.execute(
                    "INSERT INTO session (id, title, root, state, created_ms, updated_ms, head_seq, imported)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1)",
                    params![
                        stored.session_id.as_str(),
                        stored.title,
                        stored.root,
                        stored.state.as_str(),
                        stored.created_at.0,
                        stored.updated_at.0,
                        head
                    ],
                )?;
                let mut insert = tx.prepare_cached("INSERT INTO trace_event VALUES (?1, ?2, ?3, ?4, ?5)")?;
                for (seq, ts, kind, line) in &lines {
                    insert.execute(params![stored.session_id.as_str(), seq, ts.0, kind, line])?;
                }
                Ok(())
            })
            .await?;
        Ok(made)
    }
}

type Line = (u64, Timestamp, &'static str, String);

fn check(jsonl: &str) -> Result<(Session, Vec<Line>), Failure> {
    let bad = |line: usize, what: String| Failure::new(Reason::BadTrace, format!("line {line}: {what}"));
    let mut lines = jsonl.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, first) = lines.next().ok_or_else(|| bad(1, "there is no header".into()))?;
    let header: TraceHeader =
        serde_json::from_str(first).map_err(|e| bad(1, format!("not a trace header: {e}")))?;
    if header.format != "cairn-trace" || header.version != 1 {
        return Err(bad(1, format!("format {} {} is not known here", header.format, header.version)));
    }
    let mut out: Vec<Line> = Vec::new();
    for (at, line) in lines {
        let record: Envelope =
            serde_json::from_str(line).map_err(|e| bad(at + 1, format!("not a record: {e}")))?;
        if record.session_id != header.session.session_id {
            return Err(bad(at + 1, format!("belongs to session {}", record.session_id)));
        }
        if record.seq != out.len() as u64 + 1 {
            return Err(bad(at + 1, format!("has number {}, {} was expected", record.seq, out.len() + 1)));
        }
        let kind = if record.body.evt().is_some() { "Evt" } else { "Cmd" };
        out.push((record.seq, record.ts, kind, line.to_owned()));
    }
    Ok((header.session, out))
}
