//! Approvals in the database: requested once, answered once.

use cairn_protocol::{
    approval::{Approval, ApprovalDecision, ApprovalListParams, Resolution},
    id::{ApprovalId, RunId, SessionId},
    time::Timestamp,
};
use cairn_store::{
    StoreError,
    rusqlite::{OptionalExtension, Row, Savepoint, params},
};

use crate::{PAGE, Trace, TraceError};

/// Change of approvals by an append.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// Stores a new pending approval, with the id of its call.
    Ask(Box<Approval>, Option<String>),
    /// Stores the answer of an approval.
    Answer(ApprovalId, Resolution),
}

impl Change {
    /// Writes the change; returns the reason if it is refused.
    pub fn write(&self, tx: &Savepoint<'_>) -> Result<Option<TraceError>, StoreError> {
        match self {
            Change::Ask(approval, call) => {
                let request = json(approval)?;
                tx.prepare_cached(
                    "INSERT INTO approval (id, session_id, call_id, request, grants, expires_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    approval.approval_id.as_str(),
                    approval.session_id.as_str(),
                    call,
                    request,
                    json(&approval.grants)?,
                    approval.expires_at.0
                ])?;
                Ok(None)
            }
            Change::Answer(id, resolution) => {
                let pattern = resolution.pattern.as_ref().map(json).transpose()?;
                let changed = tx
                    .prepare_cached(
                        "UPDATE approval SET decision = ?2, decided_by = ?3, reason = ?4, decided_ms = ?5,
                                grants = COALESCE(?6, grants)
                         WHERE id = ?1 AND decision IS NULL",
                    )?
                    .execute(params![
                        id.as_str(),
                        resolution.decision.as_str(),
                        resolution.by,
                        resolution.reason,
                        resolution.at.0,
                        pattern
                    ])?;
                if changed > 0 {
                    return Ok(None);
                }
                let known = tx
                    .query_row("SELECT 1 FROM approval WHERE id = ?1", [id.as_str()], |_| Ok(()))
                    .optional()?;
                Ok(Some(match known {
                    Some(()) => TraceError::ApprovalResolved,
                    None => TraceError::ApprovalNotFound(id.clone()),
                }))
            }
        }
    }
}

fn json(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|e| StoreError::Corrupt(format!("approval cannot be serialized: {e}")))
}

const COLUMNS: &str = "request, decision, decided_by, reason, decided_ms, grants";

/// Reads a stored approval with its answer. An unreadable row counts as missing.
fn row(r: &Row<'_>) -> cairn_store::rusqlite::Result<Option<Approval>> {
    let request: String = r.get(0)?;
    let decision: Option<String> = r.get(1)?;
    let Ok(mut approval) = serde_json::from_str::<Approval>(&request) else { return Ok(None) };
    if let Some(decision) = decision.as_deref().and_then(ApprovalDecision::parse) {
        let by: Option<String> = r.get(2)?;
        let at: Option<i64> = r.get(4)?;
        let granted: String = r.get(5)?;
        let Ok(granted) = serde_json::from_str::<Vec<String>>(&granted) else { return Ok(None) };
        approval.resolution = Some(Resolution {
            decision,
            by: by.unwrap_or_default(),
            reason: r.get(3)?,
            pattern: Some(granted).filter(|granted| *granted != approval.grants),
            at: Timestamp(at.unwrap_or_default()),
        });
    }
    Ok(Some(approval))
}

impl Trace {
    /// Returns approvals, newest first: the pending ones, or all.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn approvals(&self, list: ApprovalListParams) -> Result<Vec<Approval>, TraceError> {
        self.read(move |conn| {
            let query = format!(
                "SELECT {COLUMNS} FROM approval WHERE (?1 IS NULL OR session_id = ?1) AND (?2 OR decision IS NULL)
                 ORDER BY id DESC LIMIT {PAGE}"
            );
            let mut statement = conn.prepare_cached(&query)?;
            let session = list.session_id.as_ref().map(SessionId::as_str);
            let rows = statement.query_map(params![session, list.resolved], row)?;
            rows.filter_map(Result::transpose).map(|r| r.map_err(TraceError::from)).collect()
        })
        .await
    }

    /// Returns one approval by id.
    ///
    /// # Errors
    /// `approval_not_found`.
    pub async fn approval(&self, id: &ApprovalId) -> Result<Approval, TraceError> {
        let key = id.clone();
        let approval = self
            .read(move |conn| {
                let query = format!("SELECT {COLUMNS} FROM approval WHERE id = ?1");
                let mut statement = conn.prepare_cached(&query)?;
                statement.query_row([key.as_str()], row).optional().map_err(TraceError::from)
            })
            .await?;
        let missing = || TraceError::ApprovalNotFound(id.clone());
        approval.flatten().ok_or_else(missing)
    }

    /// Returns the latest approval of a call in a session, if any.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn approval_of_call(
        &self,
        session: &SessionId,
        call: &str,
    ) -> Result<Option<Approval>, TraceError> {
        let (session, call) = (session.clone(), call.to_owned());
        self.read(move |conn| {
            let query = format!(
                "SELECT {COLUMNS} FROM approval WHERE session_id = ?1 AND call_id = ?2 ORDER BY id DESC LIMIT 1"
            );
            let mut statement = conn.prepare_cached(&query)?;
            statement.query_row(params![session.as_str(), call], row).optional().map_err(TraceError::from)
        })
        .await
        .map(Option::flatten)
    }

    /// Returns the pending approvals that no call will wait for again, with those past their time:
    /// only a call of an interrupted turn, which has an id, is repeated with its own approval.
    /// Called when no call waits yet.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub(crate) async fn orphaned_approvals(
        &self,
        now: Timestamp,
    ) -> Result<Vec<Approval>, TraceError> {
        self.read(move |conn| {
            let query = "SELECT request, decision, decided_by, reason, decided_ms, grants,
                                call_id IS NOT NULL AND s.state = 'interrupted', s.run_id
                         FROM approval JOIN session s ON s.id = session_id WHERE decision IS NULL";
            let mut statement = conn.prepare_cached(query)?;
            let mut rows = statement.query([])?;
            let mut orphans = Vec::new();
            while let Some(one) = rows.next()? {
                let Some(approval) = row(one)? else { continue };
                let may_repeat: bool = one.get(6)?;
                let run: Option<String> = one.get(7)?;
                let is_own = approval.run_id.as_ref().map(RunId::as_str) == run.as_deref();
                let is_repeated = may_repeat && is_own && approval.form.is_none();
                if !is_repeated || approval.expires_at <= now {
                    orphans.push(approval);
                }
            }
            Ok(orphans)
        })
        .await
    }

    /// Returns the rules that approvals granted for the life of a session.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn session_grants(&self, session: &SessionId) -> Result<Vec<String>, TraceError> {
        let session = session.clone();
        self.read(move |conn| {
            let query = "SELECT DISTINCT grants FROM approval WHERE session_id = ?1 AND decision = 'session'";
            let mut statement = conn.prepare_cached(query)?;
            let rows = statement.query_map([session.as_str()], |r| r.get::<_, String>(0))?;
            let texts = rows.collect::<Result<Vec<_>, _>>()?;
            // An unreadable list grants nothing.
            let lists = texts.iter().filter_map(|text| serde_json::from_str::<Vec<String>>(text).ok());
            Ok(lists.flatten().collect())
        })
        .await
    }
}
