//! Sessions as clients see them.

use cairn_protocol::{
    error::{Failure, Reason},
    explore::RunState,
    id::SessionId,
    session::{Page, PageParams, Session, SessionCreateParams},
};
use cairn_trace::NewSession;

use crate::Engine;

/// Scope of the retry keys of `session.create`.
const CREATE: &str = "session.create";
/// Longest title in characters.
const MAX_TITLE: usize = 200;

impl Engine {
    /// Makes a session.
    ///
    /// # Errors
    /// `root_not_found`, `invalid_params`, `request_conflict`.
    pub async fn create_session(&self, params: SessionCreateParams) -> Result<Session, Failure> {
        self.need_open()?;
        let title = params.title.clone().unwrap_or_default();
        if title.chars().count() > MAX_TITLE {
            return Err(Failure::new(
                Reason::InvalidParams,
                format!("title has more than {MAX_TITLE} characters"),
            ));
        }
        let _one_at_a_time = self.inner.starting.lock().await;
        let mut request = None;
        if let Some(key) = &params.request_id {
            let digest = cairn_trace::digest(&params);
            if let Some(receipt) = self.inner.trace.receipt(CREATE, key, &digest).await? {
                return self.inner.trace.session(&session_in(&receipt)?).await;
            }
            request = Some((CREATE.to_owned(), key.clone(), digest));
        }
        let root = self.root_of(params.root.as_deref())?.map(|r| r.path.to_string_lossy().into_owned());
        self.inner.trace.create_session(NewSession { title, root, request }).await
    }

    /// Sessions, newest first.
    ///
    /// # Errors
    /// `invalid_params` for a bad cursor.
    pub async fn sessions(&self, page: PageParams) -> Result<Page<Session>, Failure> {
        self.inner.trace.sessions(page.cursor, page.limit).await
    }

    /// A session.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn session(&self, id: &SessionId) -> Result<Session, Failure> {
        self.inner.trace.session(id).await
    }

    /// Goes on with an interrupted session.
    ///
    /// # Errors
    /// `session_not_found`, `not_resumable`.
    pub async fn resume_session(
        &self,
        id: &SessionId,
    ) -> Result<cairn_protocol::explore::RunReceipt, Failure> {
        self.need_open()?;
        let session = self.inner.trace.session(id).await?;
        if session.state != RunState::Interrupted {
            let text = format!("session {id} is {}, not interrupted", session.state.as_str());
            return Err(Failure::new(Reason::NotResumable, text));
        }
        match self.inner.trace.latest_run(id).await? {
            Some(latest) if latest.op == crate::turns::OP => self.resume_turn(id).await,
            _ => self.resume_explore(id).await,
        }
    }

    /// Deletes a session with its log.
    ///
    /// # Errors
    /// `session_not_found`, `session_busy`.
    pub async fn delete_session(&self, id: &SessionId) -> Result<(), Failure> {
        self.inner.trace.delete_session(id).await
    }
}

/// The session a stored receipt speaks of.
pub(crate) fn session_in(receipt: &serde_json::Value) -> Result<SessionId, Failure> {
    let id = receipt.get("sessionId").and_then(|v| v.as_str()).and_then(|text| text.parse().ok());
    id.ok_or_else(|| Failure::new(Reason::StorageFailed, "a stored receipt names no session"))
}
