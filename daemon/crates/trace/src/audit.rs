//! The audit: one row for each tool call, written before the action and completed after it.

use cairn_protocol::{id::SessionId, time::Timestamp, trace::AuditEntry, trace::AuditQueryParams};
use cairn_store::rusqlite::params;
use cairn_store::{StoreError, rusqlite::Savepoint};

use crate::{Append, PAGE, Trace, TraceError};

/// Outcome of a call that was interrupted by the daemon's exit, and reason of its end record.
pub const INTERRUPTED: &str = "interrupted";

/// A call that is about to run, or was refused.
#[derive(Debug, Clone)]
pub struct AuditIntent {
    pub session: SessionId,
    /// Name of the tool, or method of a direct call.
    pub tool: String,
    /// SHA-256 (hex) of the arguments.
    pub args_digest: String,
    /// Decision of the gate, `allow` or `deny`.
    pub decision: &'static str,
    /// Rule that led to the decision.
    pub rule: String,
    /// Id of the model's call, if any.
    pub call: Option<String>,
    /// Command line and folder of a shell call; the caller removes secrets.
    pub command: Option<String>,
}

/// Outcome of a call.
#[derive(Debug, Clone)]
pub struct AuditOutcome {
    pub millis: u64,
    /// `ok`, or the reason of the failure.
    pub outcome: String,
    /// Exit code of the process.
    pub exit_code: Option<i32>,
    /// True if the output was cut.
    pub truncated: bool,
}

impl AuditIntent {
    fn write(&self, tx: &Savepoint<'_>) -> Result<u64, StoreError> {
        tx.prepare_cached(
            "INSERT INTO audit (ts, session_id, tool, args_digest, decision, rule, call_id, command)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            Timestamp::now().0,
            self.session.as_str(),
            self.tool,
            self.args_digest,
            self.decision,
            self.rule,
            self.call,
            self.command
        ])?;
        Ok(u64::try_from(tx.last_insert_rowid()).unwrap_or_default())
    }
}

impl AuditOutcome {
    fn write(&self, tx: &Savepoint<'_>, id: u64) -> Result<(), StoreError> {
        tx.prepare_cached(
            "UPDATE audit SET millis = ?2, outcome = ?3, exit_code = ?4, truncated = ?5 WHERE id = ?1",
        )?
        .execute(params![id, self.millis, self.outcome, self.exit_code, self.truncated])?;
        Ok(())
    }
}

impl Trace {
    /// Stores the intent and returns once it is durable. `opening` are records of the same call:
    /// both are written or neither.
    ///
    /// # Errors
    /// Fails when it cannot be stored: the call must then not run.
    pub async fn audit_intent(
        &self,
        intent: AuditIntent,
        opening: Option<Append>,
    ) -> Result<u64, TraceError> {
        let rows = move |tx: &Savepoint<'_>| intent.write(tx);
        let id = match opening {
            None => self.inner.writer.write(rows).await?,
            Some(opening) => {
                let (appended, id) = self.append_with(opening, false, rows).await;
                appended.map(|_| id.unwrap_or_default())?
            }
        };
        self.notify_audit();
        Ok(id)
    }

    /// Completes an intent. `closing` are records of the same call: the log never contains the
    /// result of a call without an outcome in the audit. The outcome is stored even if the log
    /// refuses the records, as for a deleted session.
    ///
    /// # Errors
    /// Fails when it cannot be stored.
    pub async fn audit_outcome(
        &self,
        id: u64,
        outcome: AuditOutcome,
        closing: Option<Append>,
    ) -> Result<(), TraceError> {
        let rows = move |tx: &Savepoint<'_>| outcome.write(tx, id);
        let written = match closing {
            None => self.inner.writer.write(rows).await.map_err(TraceError::from),
            Some(closing) => self.append_with(closing, true, rows).await.0.map(drop),
        };
        // The row may have been written although the records were refused.
        self.notify_audit();
        written
    }

    fn notify_audit(&self) {
        self.inner.audit_writes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Returns a count that changes when a row was written or completed.
    pub fn audit_writes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.inner.audit_writes.subscribe()
    }

    /// Returns the id of the newest entry; 0 if there is none.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn audit_head(&self) -> Result<u64, TraceError> {
        self.read(|conn| {
            let query = "SELECT coalesce(max(id), 0) FROM audit";
            Ok(conn.query_row(query, [], |r| r.get(0))?)
        })
        .await
    }

    /// Returns true if an allowed call of a session has no outcome: it may or may not have acted.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn audit_open(&self, session: &SessionId, call: &str) -> Result<bool, TraceError> {
        let (session, call) = (session.clone(), call.to_owned());
        self.read(move |conn| {
            let query = "SELECT count(*) FROM audit
                WHERE session_id = ?1 AND call_id = ?2 AND decision = 'allow'
                AND (outcome IS NULL OR outcome = 'interrupted')";
            let open: u64 = conn.query_row(query, params![session.as_str(), call], |r| r.get(0))?;
            Ok(open > 0)
        })
        .await
    }

    /// Completes the rows of calls that were running when an earlier daemon exited, and returns
    /// their sessions. Called once, before any work starts.
    ///
    /// # Errors
    /// Fails when the database cannot be read or written.
    pub(crate) async fn close_audit(&self) -> Result<Vec<SessionId>, TraceError> {
        let sessions = self
            .inner
            .writer
            .write(|tx| {
                let open = "FROM audit WHERE decision = 'allow' AND outcome IS NULL";
                let query = format!("SELECT DISTINCT session_id {open}");
                let rows: Vec<String> =
                    tx.prepare(&query)?.query_map([], |r| r.get(0))?.collect::<Result<_, _>>()?;
                if !rows.is_empty() {
                    tx.execute(
                        "UPDATE audit SET outcome = ?1 WHERE decision = 'allow' AND outcome IS NULL",
                        [INTERRUPTED],
                    )?;
                }
                Ok(rows)
            })
            .await?;
        Ok(sessions.into_iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// Returns entries, oldest first.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn audit_query(
        &self,
        query: AuditQueryParams,
    ) -> Result<Vec<AuditEntry>, TraceError> {
        self.read(move |conn| {
            let text = "SELECT id, ts, session_id, tool, args_digest, decision, rule, millis, outcome, exit_code, truncated, command
                FROM audit WHERE id > ?1 AND (?2 IS NULL OR session_id = ?2) AND (?3 IS NULL OR tool = ?3) ORDER BY id LIMIT ?4";
            let mut statement = conn.prepare_cached(text)?;
            let session = query.session_id.as_ref().map(SessionId::as_str);
            let after = query.after.min(i64::MAX as u64);
            let limit = query.limit.unwrap_or(100).clamp(1, PAGE);
            let rows = statement
                .query_map(params![after, session, query.tool, limit], |r| {
                    let session: String = r.get(2)?;
                    Ok(session.parse::<SessionId>().ok().map(|session_id| entry(r, session_id)))
                })?;
            let entries = rows.filter_map(Result::transpose);
            entries.map(|row| row.and_then(|entry| entry).map_err(TraceError::from)).collect()
        })
        .await
    }
}

fn entry(
    r: &cairn_store::rusqlite::Row<'_>,
    session_id: SessionId,
) -> cairn_store::rusqlite::Result<AuditEntry> {
    Ok(AuditEntry {
        id: r.get(0)?,
        ts: Timestamp(r.get(1)?),
        session_id,
        tool: r.get(3)?,
        args_digest: r.get(4)?,
        decision: r.get(5)?,
        rule: r.get(6)?,
        millis: r.get(7)?,
        outcome: r.get(8)?,
        exit_code: r.get(9)?,
        truncated: r.get(10)?,
        command: r.get(11)?,
    })
}
