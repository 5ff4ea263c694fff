//! Appending records, together with related changes, in one transaction.

use std::sync::{Arc, atomic::Ordering};

use cairn_protocol::{
    approval::{Approval, Resolution},
    envelope::{Body, Envelope, Origin},
    event::AgentEvt,
    explore::RunState,
    id::{ApprovalId, RunId, SessionId},
    model::Part,
    time::Timestamp,
    turn::ModelChoice,
};
use cairn_store::{
    StoreError,
    rusqlite::{OptionalExtension, Savepoint, params},
};
use uuid::Uuid;

use crate::{
    Line, Trace, TraceError, approval, blob, receipt,
    records::{self, Owner, SessionKey},
};

/// Maximum characters of a title that is derived from a request.
const MAX_DERIVED_TITLE: usize = 80;

/// A record without a sequence number.
#[derive(Debug, Clone)]
pub struct NewRecord {
    /// Id of the record.
    pub id: Uuid,
    /// Id of the entry that caused the record.
    pub parent_id: Option<Uuid>,
    /// Client, run and tool that caused the record.
    pub origin: Option<Origin>,
    pub body: Body,
}

/// Records for one session, with related changes: all are written or none.
#[derive(Debug, Clone)]
pub struct Append {
    session: SessionId,
    records: Vec<NewRecord>,
    state: Option<RunState>,
    run: Option<(RunId, &'static str, String)>,
    model: Option<ModelChoice>,
    change: Option<approval::Change>,
    receipt: Option<receipt::NewReceipt>,
    blobs: Vec<(String, Vec<u8>)>,
    artifact: Option<(String, String)>,
    only_if: Option<Vec<RunState>>,
}

/// Sequence numbers of appended records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// Number of the first record.
    pub first: u64,
    /// Number of the last record.
    pub last: u64,
}

impl Append {
    /// Creates an append of `records` to `session`, in order.
    pub fn new(session: &SessionId, records: Vec<NewRecord>) -> Self {
        let session = session.clone();
        Self {
            session,
            records,
            state: None,
            run: None,
            model: None,
            change: None,
            receipt: None,
            blobs: vec![],
            artifact: None,
            only_if: None,
        }
    }

    /// Sets the state of the session.
    pub fn state(mut self, state: RunState) -> Self {
        self.state = Some(state);
        self
    }

    /// Requires that the session is in one of `states`; otherwise nothing is written and the append
    /// fails with `session_busy`.
    pub fn only_if(mut self, states: &[RunState]) -> Self {
        self.only_if = Some(states.to_vec());
        self
    }

    /// Sets `run` of the operation `op` as the session's latest run, with the parameters for
    /// starting it again.
    pub fn run(mut self, run: &RunId, op: &'static str, params: String) -> Self {
        self.run = Some((run.clone(), op, params));
        self
    }

    /// Sets the model that the session uses.
    pub fn model(mut self, model: ModelChoice) -> Self {
        self.model = Some(model);
        self
    }

    /// Stores a pending approval.
    pub fn ask(mut self, approval: &Approval, call: Option<&str>) -> Self {
        self.change =
            Some(approval::Change::Ask(Box::new(approval.clone()), call.map(str::to_owned)));
        self
    }

    /// Answers an approval; if it is already answered, nothing is written and the append fails with
    /// `approval_resolved`.
    pub fn answer(mut self, id: &ApprovalId, resolution: &Resolution) -> Self {
        self.change = Some(approval::Change::Answer(id.clone(), resolution.clone()));
        self
    }

    /// Stores a receipt for a retry key. The `seq` of the first record is filled in.
    pub fn receipt(
        mut self,
        scope: &str,
        request_id: &str,
        digest: String,
        receipt: serde_json::Value,
    ) -> Self {
        let (scope, request_id) = (scope.to_owned(), request_id.to_owned());
        self.receipt = Some(receipt::NewReceipt { scope, request_id, digest, receipt });
        self
    }

    /// Stores a blob that the records refer to.
    pub fn blob(mut self, sha256: String, content: Vec<u8>) -> Self {
        self.blobs.push((sha256, content));
        self
    }

    /// Saves an artifact of the session, and replaces an earlier one of that name.
    pub fn artifact(mut self, name: &str, content: String) -> Self {
        self.artifact = Some((name.to_owned(), content));
        self
    }

    fn write(self, tx: &Savepoint<'_>) -> Result<Written, StoreError> {
        let session = self.session.clone();
        let now = Timestamp::now();
        let row: Option<(u64, String, SessionKey)> = tx
            .prepare_cached(
                "SELECT s.head_seq, s.state, k.num FROM session s JOIN session_key k ON k.id = s.id
                 WHERE s.id = ?1",
            )?
            .query_row([session.as_str()], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))
            .optional()?;
        let Some((head, state, key)) = row else {
            return Ok(Written::refused(session.clone(), TraceError::SessionNotFound(session)));
        };
        if let Some(allowed) = &self.only_if
            && !RunState::parse(&state).is_some_and(|s| allowed.contains(&s))
        {
            return Ok(Written::refused(session.clone(), TraceError::WrongState(session)));
        }
        if let Some(change) = &self.change
            && let Some(refusal) = change.write(tx)?
        {
            return Ok(Written::refused(session, refusal));
        }
        let owner = Owner { session: &session, key };
        let mut lines = Vec::with_capacity(self.records.len());
        let mut bytes = 0;
        let title = self.records.iter().find_map(|record| title_of(record.body.evt()?));
        for (seq, record) in (head + 1..).zip(self.records) {
            let NewRecord { id, parent_id, origin, body } = record;
            let kind = if body.evt().is_some() { "Evt" } else { "Cmd" };
            let envelope =
                Envelope { session_id: session.clone(), seq, id, parent_id, ts: now, origin, body };
            let json = serde_json::to_string(&envelope).map_err(|e| rusqlite_error(&e))?;
            records::insert(tx, owner, seq, (now.0, kind), &json)?;
            bytes += json.len();
            lines.push(Line::from(json));
        }
        let last = head + lines.len() as u64;
        tx.prepare_cached(
            "UPDATE session SET head_seq = ?2, updated_ms = ?3, state = coalesce(?4, state),
                 bytes = bytes + ?5 WHERE id = ?1",
        )?
        .execute(params![
            session.as_str(),
            last,
            now.0,
            self.state.map(RunState::as_str),
            bytes
        ])?;
        if let Some(title) = title {
            tx.prepare_cached("UPDATE session SET title = ?2 WHERE id = ?1 AND title = ''")?
                .execute(params![session.as_str(), title])?;
        }
        write_run(tx, &session, self.run.as_ref())?;
        write_model(tx, &session, self.model.as_ref())?;
        if let Some(receipt) = self.receipt {
            receipt.write(tx, &session, head + 1)?;
        }
        for (sha256, content) in &self.blobs {
            blob::write(tx, &session, sha256, content)?;
        }
        if let Some((name, content)) = &self.artifact {
            tx.execute(
                "INSERT OR REPLACE INTO artifact VALUES (?1, ?2, ?3, ?4)",
                params![session.as_str(), name, now.0, content],
            )?;
        }
        Ok(Written { session, first: head + 1, lines, refused: None })
    }
}

/// Returns the title of a session without one whose first turn this is: the first line of the
/// user's words.
fn title_of(evt: &AgentEvt) -> Option<String> {
    let AgentEvt::TurnAccepted { input, .. } = evt else { return None };
    // The context comes first, the user's own words last.
    let text = input.iter().rev().find_map(|part| match part {
        Part::Text { text } => Some(text),
        Part::Image { .. } => None,
    })?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().filter(|c| !c.is_control()).take(MAX_DERIVED_TITLE).collect())
}

fn write_run(
    tx: &Savepoint<'_>,
    session: &SessionId,
    run: Option<&(RunId, &'static str, String)>,
) -> Result<(), StoreError> {
    let Some((run, op, run_params)) = run else { return Ok(()) };
    tx.execute(
        "UPDATE session SET run_id = ?2, run_op = ?3, run_params = ?4 WHERE id = ?1",
        params![session.as_str(), run.as_str(), op, run_params],
    )?;
    Ok(())
}

fn write_model(
    tx: &Savepoint<'_>,
    session: &SessionId,
    model: Option<&ModelChoice>,
) -> Result<(), StoreError> {
    let Some(ModelChoice { provider, model, endpoint }) = model else { return Ok(()) };
    tx.execute(
        "UPDATE session SET provider = ?2, model = ?3, endpoint = ?4 WHERE id = ?1",
        params![session.as_str(), provider, model, endpoint],
    )?;
    Ok(())
}

fn rusqlite_error(error: &serde_json::Error) -> StoreError {
    StoreError::Corrupt(format!("record cannot be serialized: {error}"))
}

/// Result of a committed append.
struct Written {
    session: SessionId,
    first: u64,
    lines: Vec<Line>,
    refused: Option<TraceError>,
}

impl Written {
    fn refused(session: SessionId, refusal: TraceError) -> Self {
        Self { session, first: 0, lines: vec![], refused: Some(refusal) }
    }
}

impl Trace {
    /// Appends records and waits for the commit; followers see the records after that.
    ///
    /// # Errors
    /// `session_not_found`, `session_busy` (see [`Append::only_if`]), `overloaded`, `disk_full`,
    /// `storage_failed`.
    pub async fn append(&self, append: Append) -> Result<Appended, TraceError> {
        self.append_with(append, false, |_| Ok(())).await.0
    }

    /// Appends records together with other rows in the same transaction. If the log refuses the
    /// records, the rows are written only with `anyway`.
    pub(crate) async fn append_with<T: Send + 'static>(
        &self,
        append: Append,
        anyway: bool,
        rows: impl FnOnce(&Savepoint<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> (Result<Appended, TraceError>, Option<T>) {
        let inner = Arc::downgrade(&self.inner);
        let publish = move |(written, _): &(Written, Option<T>)| {
            if let Some(inner) = inner.upgrade() {
                inner.appended.fetch_add(written.lines.len() as u64, Ordering::Relaxed);
                inner.live.publish(&written.session, written.first, &written.lines);
                inner.note_change(&written.session);
            }
        };
        let job = move |tx: &Savepoint<'_>| {
            let written = append.write(tx)?;
            let rows = (anyway || written.refused.is_none()).then(|| rows(tx)).transpose()?;
            Ok((written, rows))
        };
        let wait = match self.inner.writer.submit(job, publish) {
            Ok(wait) => wait,
            Err(error) => return (Err(error.into()), None),
        };
        match wait.await.unwrap_or(Err(StoreError::Closed)) {
            Ok((written, rows)) => (written.outcome(), rows),
            Err(error) => (Err(error.into()), None),
        }
    }
}

impl Written {
    fn outcome(self) -> Result<Appended, TraceError> {
        let written = self;
        match written.refused {
            Some(refusal) => Err(refusal),
            None => {
                let last = written.first + (written.lines.len() as u64).max(1) - 1;
                Ok(Appended { first: written.first, last })
            }
        }
    }
}

impl Trace {
    /// Emits an ephemeral event, which is not logged and has no number, to the current followers of
    /// `session`. It costs nothing without followers.
    pub fn pass(
        &self,
        session: &SessionId,
        origin: Option<Origin>,
        parent_id: Option<Uuid>,
        evt: &AgentEvt,
    ) {
        let line = || {
            let mut value = serde_json::json!({
                "sessionId": session, "id": Uuid::now_v7(), "ts": Timestamp::now(), "kind": "Evt", "evt": evt,
            });
            if let (Some(origin), Some(object)) = (origin, value.as_object_mut()) {
                object.insert("origin".into(), serde_json::to_value(origin).ok()?);
            }
            if let (Some(parent), Some(object)) = (parent_id, value.as_object_mut()) {
                object.insert("parentId".into(), parent.to_string().into());
            }
            Some(value.to_string().into())
        };
        self.inner.live.pass(session, line);
    }
}
