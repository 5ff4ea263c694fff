//! Sessions: create, list, find, delete.

use cairn_protocol::{
    explore::RunState,
    id::{RunId, SessionId},
    session::{Page, Session},
    time::Timestamp,
    turn::ModelChoice,
};
use cairn_store::rusqlite::{OptionalExtension, Row, params};

use crate::{PAGE, Trace, TraceError, integrity, receipt, reclaim, records};

/// A session to be created.
#[derive(Debug, Clone, Default)]
pub struct NewSession {
    /// Title displayed to the user.
    pub title: String,
    /// Root in which the session's commands work.
    pub root: Option<String>,
    /// Scope, retry key and request digest, if the client sent a key.
    pub request: Option<(String, String, String)>,
}

/// The latest run of a session.
#[derive(Debug, Clone)]
pub struct LatestRun {
    pub run: RunId,
    /// Operation of the run: `explore` or `turn`.
    pub op: String,
    /// Parameters of the run's start, as JSON.
    pub params: String,
}

/// Truncates a title to its limit.
pub(crate) fn cut_title(title: &str) -> String {
    title.chars().take(MAX_TITLE).collect()
}

/// Maximum characters of a title; the rest is dropped.
const MAX_TITLE: usize = 500;
const COLUMNS: &str = "id, title, root, state, created_ms, updated_ms, head_seq, archived";

fn row(r: &Row<'_>) -> cairn_store::rusqlite::Result<(String, Session)> {
    let id: String = r.get(0)?;
    let state: String = r.get(3)?;
    let session = Session {
        session_id: id.parse().unwrap_or_else(|_| SessionId::new()),
        title: r.get(1)?,
        root: r.get(2)?,
        state: RunState::parse(&state).unwrap_or(RunState::Idle),
        created_at: Timestamp(r.get(4)?),
        updated_at: Timestamp(r.get(5)?),
        head_seq: r.get(6)?,
        archived: r.get(7)?,
        worktree: None,
    };
    Ok((id, session))
}

impl Trace {
    /// Creates a session and returns once it is durable.
    ///
    /// # Errors
    /// Fails when it cannot be stored.
    pub async fn create_session(&self, new: NewSession) -> Result<Session, TraceError> {
        let now = Timestamp::now();
        let NewSession { title, root, request } = new;
        // Lists show the complete title.
        let title = cut_title(&title);
        let (session_id, state) = (SessionId::new(), RunState::Idle);
        let created = Session {
            session_id,
            title,
            root,
            state,
            created_at: now,
            updated_at: now,
            head_seq: 0,
            archived: false,
            worktree: None,
        };
        let session = created.clone();
        self.inner
            .writer
            .write(move |tx| {
                tx.execute(
                    "INSERT INTO session (id, title, root, created_ms, updated_ms) VALUES (?1, ?2, ?3, ?4, ?4)",
                    params![session.session_id.as_str(), session.title, session.root, now.0],
                )?;
                records::add_key(tx, &session.session_id)?;
                if let Some((scope, request_id, digest)) = request {
                    let receipt = serde_json::json!({"sessionId": session.session_id});
                    let new = receipt::NewReceipt { scope, request_id, digest, receipt };
                    new.write(tx, &session.session_id, 0)?;
                }
                Ok(())
            })
            .await?;
        Ok(created)
    }

    /// Returns a session by id.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn session(&self, id: &SessionId) -> Result<Session, TraceError> {
        let key = id.clone();
        let row = self
            .read(move |conn| {
                let query = format!("SELECT {COLUMNS} FROM session WHERE id = ?1");
                let mut statement = conn.prepare_cached(&query)?;
                let found = statement
                    .query_row([key.as_str()], row)
                    .optional()
                    .map_err(|error| integrity::named(&key, None, error))?;
                if found.is_none() && records::key(conn, &key)?.is_some() {
                    return Err(integrity::damaged(&key, None, "its row is missing").into());
                }
                Ok(found)
            })
            .await?;
        let missing = || TraceError::SessionNotFound(id.clone());
        row.map(|(_, session)| session).ok_or_else(missing)
    }

    /// Returns sessions, newest first; archived ones only with `archived`. The cursor is the id of
    /// the last session of the previous page.
    ///
    /// # Errors
    /// `invalid_params` for an invalid cursor.
    pub async fn sessions(
        &self,
        cursor: Option<String>,
        limit: Option<u32>,
        archived: bool,
    ) -> Result<Page<Session>, TraceError> {
        let cursor: Option<SessionId> =
            cursor.map(|c| c.parse()).transpose().map_err(TraceError::SessionCursor)?;
        let limit = limit.unwrap_or(100).clamp(1, PAGE);
        self.read(move |conn| {
            // Ids contain a UUIDv7, so that they sort by creation time.
            let query = format!(
                "SELECT {COLUMNS} FROM session WHERE id < ?1 AND archived <= ?3 ORDER BY id DESC LIMIT ?2"
            );
            let mut statement = conn.prepare_cached(&query)?;
            let before = cursor.as_ref().map_or("ses_g", SessionId::as_str);
            let rows = statement.query_map(params![before, limit + 1, archived], row)?;
            let mut data: Vec<(String, Session)> = rows.collect::<Result<_, _>>()?;
            let more = data.len() > limit as usize;
            data.truncate(limit as usize);
            let next_cursor = more.then(|| data.last().map(|(id, _)| id.clone())).flatten();
            Ok(Page { data: data.into_iter().map(|(_, s)| s).collect(), next_cursor })
        })
        .await
    }

    /// Returns the sessions whose id begins or ends with `part`, newest first, at most `limit`.
    /// Archived ones are included if `archived` is set.
    ///
    /// # Errors
    /// `invalid_params` for a part that is no hexadecimal number of 4 to 32 digits, or when the
    /// database cannot be read.
    pub async fn sessions_by_id(
        &self,
        part: &str,
        limit: Option<u32>,
        archived: bool,
    ) -> Result<Page<Session>, TraceError> {
        let part = part.strip_prefix("ses_").unwrap_or(part).to_ascii_lowercase();
        let is_hex = part.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_hex || !(4..=32).contains(&part.len()) {
            return Err(TraceError::SessionPart(part));
        }
        let limit = limit.unwrap_or(100).clamp(1, PAGE);
        self.read(move |conn| {
            let query = format!(
                "SELECT {COLUMNS} FROM session WHERE (id BETWEEN ?1 AND ?1 || 'g' OR \
                 substr(id, -length(?2)) = ?2) AND archived <= ?4 ORDER BY id DESC LIMIT ?3"
            );
            let mut statement = conn.prepare_cached(&query)?;
            let first = format!("ses_{part}");
            let rows = statement.query_map(params![first, part, limit, archived], row)?;
            let data: Vec<(String, Session)> = rows.collect::<Result<_, _>>()?;
            Ok(Page { data: data.into_iter().map(|(_, s)| s).collect(), next_cursor: None })
        })
        .await
    }

    /// Returns the sessions with an active run in a root.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn running_in(&self, root: &str) -> Result<Vec<SessionId>, TraceError> {
        let root = root.to_owned();
        self.read(move |conn| {
            let query = "SELECT id FROM session WHERE state = 'running' AND root = ?1";
            let mut statement = conn.prepare_cached(query)?;
            let rows = statement.query_map([root], |row| row.get::<_, String>(0))?;
            let ids = rows.collect::<Result<Vec<_>, _>>()?;
            Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
        })
        .await
    }

    /// Returns the number of sessions.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn session_count(&self) -> Result<u64, TraceError> {
        self.read(|conn| {
            conn.query_row("SELECT count(*) FROM session", [], |r| r.get(0))
                .map_err(TraceError::from)
        })
        .await
    }

    /// Returns the latest run of a session.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn latest_run(&self, id: &SessionId) -> Result<Option<LatestRun>, TraceError> {
        let key = id.clone();
        let row: Option<(Option<String>, Option<String>, String)> = self
            .read(move |conn| {
                let query = "SELECT run_id, run_params, run_op FROM session WHERE id = ?1";
                conn.query_row(query, [key.as_str()], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))
                    .optional()
                    .map_err(TraceError::from)
            })
            .await?;
        Ok(row.and_then(|(run, params, op)| {
            Some(LatestRun { run: run?.parse().ok()?, op, params: params? })
        }))
    }

    /// Returns the provider and model chosen for a session, if any.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn chosen_model(&self, id: &SessionId) -> Result<Option<ModelChoice>, TraceError> {
        let key = id.clone();
        let row: Option<(Option<String>, Option<String>, Option<String>)> = self
            .read(move |conn| {
                let query = "SELECT provider, model, endpoint FROM session WHERE id = ?1";
                conn.query_row(query, [key.as_str()], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))
                    .optional()
                    .map_err(TraceError::from)
            })
            .await?;
        Ok(row.and_then(|(provider, model, endpoint)| {
            Some(ModelChoice { provider: provider?, model: model?, endpoint })
        }))
    }

    /// Sets the root of a session.
    ///
    /// # Errors
    /// Fails when the log cannot be written.
    pub async fn set_root(&self, id: &SessionId, root: &str) -> Result<(), TraceError> {
        let (key, root) = (id.clone(), root.to_owned());
        let query = "UPDATE session SET root = ?2 WHERE id = ?1";
        self.inner
            .writer
            .write(move |tx| Ok(tx.execute(query, params![key.as_str(), root])?))
            .await?;
        self.inner.roots.forget(id);
        Ok(())
    }

    /// Returns an artifact of a session by name.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn artifact(&self, id: &SessionId, name: &str) -> Result<Option<String>, TraceError> {
        let (key, name) = (id.clone(), name.to_owned());
        self.read(move |conn| {
            let query = "SELECT content FROM artifact WHERE session_id = ?1 AND name = ?2";
            conn.query_row(query, params![key.as_str(), name], |r| r.get(0))
                .optional()
                .map_err(TraceError::from)
        })
        .await
    }

    /// Removes an artifact of a session, if it exists.
    ///
    /// # Errors
    /// Fails when the log cannot be written.
    pub async fn remove_artifact(&self, id: &SessionId, name: &str) -> Result<(), TraceError> {
        let (key, name) = (id.clone(), name.to_owned());
        let query = "DELETE FROM artifact WHERE session_id = ?1 AND name = ?2";
        self.inner
            .writer
            .write(move |tx| Ok(tx.execute(query, params![key.as_str(), name])?))
            .await?;
        Ok(())
    }

    /// Deletes a session with its receipts, artifacts, records, and blobs that no other session
    /// uses. [`Trace::reclaim`] frees the space of the last two. Fails while the session is
    /// running.
    ///
    /// # Errors
    /// `session_not_found`, `session_busy`.
    pub async fn delete_session(&self, id: &SessionId) -> Result<(), TraceError> {
        let key = id.clone();
        let state: Option<String> = self
            .inner
            .writer
            .write(move |tx| {
                let query = "SELECT state FROM session WHERE id = ?1";
                let state: Option<String> =
                    tx.query_row(query, [key.as_str()], |r| r.get(0)).optional()?;
                if state.as_deref().is_some_and(|s| s != RunState::Running.as_str()) {
                    reclaim::delete(tx, &key)?;
                }
                Ok(state)
            })
            .await?;
        match state.as_deref() {
            None => Err(TraceError::SessionNotFound(id.clone())),
            Some("running") => Err(TraceError::SessionBusy(id.clone())),
            Some(_) => {
                self.inner.roots.forget(id);
                self.inner.live.deleted(id);
                Ok(())
            }
        }
    }
}
