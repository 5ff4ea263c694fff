//! Sessions as clients see them.

use cairn_protocol::{
    error::{Failure, Reason},
    event::AgentEvt,
    explore::RunState,
    id::SessionId,
    plugin::HookEvent,
    session::{ArchiveParams, ForkParams, Page, PageParams, Session, SessionCreateParams},
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
        let made = self.inner.trace.create_session(NewSession { title, root, request }).await?;
        self.tell_start(&made).await;
        Ok(made)
    }

    /// Sessions, newest first.
    ///
    /// # Errors
    /// `invalid_params` for a bad cursor.
    pub async fn sessions(&self, page: PageParams) -> Result<Page<Session>, Failure> {
        self.inner.trace.sessions(page.cursor, page.limit, page.archived).await
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
        self.tell_start(&session).await;
        match self.inner.trace.latest_run(id).await? {
            Some(latest) if latest.op == crate::turns::OP => self.resume_turn(id).await,
            _ => self.resume_explore(id).await,
        }
    }

    /// Makes a session with the past of another, up to a turn.
    ///
    /// # Errors
    /// `session_not_found`, `session_busy`, `run_not_found` when there is no such turn.
    pub async fn fork_session(&self, params: ForkParams) -> Result<Session, Failure> {
        let old = self.inner.trace.session(&params.session_id).await?;
        let upto = match &params.before_turn_id {
            None => old.head_seq,
            Some(turn) => self.before_turn(&old.session_id, turn).await?,
        };
        let title = params.title.unwrap_or(old.title).chars().take(MAX_TITLE).collect();
        let made = self.inner.trace.fork(&old.session_id, upto, title).await?;
        self.tell_start(&made).await;
        Ok(made)
    }

    async fn before_turn(&self, session: &SessionId, turn: &str) -> Result<u64, Failure> {
        let mut at = 0;
        loop {
            let page = self.inner.trace.records(session, at, cairn_trace::PAGE).await?;
            let Some(last) = page.last() else {
                let text = format!("session {session} has no turn '{}'", turn.escape_default());
                return Err(Failure::new(Reason::RunNotFound, text));
            };
            at = last.seq;
            let begins = |r: &cairn_protocol::envelope::Envelope| matches!(r.body.evt(), Some(AgentEvt::TurnAccepted { turn_id, .. }) if turn_id == turn);
            if let Some(record) = page.iter().find(|r| begins(r)) {
                return Ok(record.seq - 1);
            }
        }
    }

    /// Puts a session away, or takes it out again.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn archive_session(&self, params: ArchiveParams) -> Result<Session, Failure> {
        self.inner.trace.session(&params.session_id).await?;
        let session = self.inner.trace.archive(&params.session_id, params.archived).await?;
        if params.archived {
            self.tell(|| HookEvent::SessionStop { session_id: params.session_id }).await;
        } else {
            self.tell_start(&session).await;
        }
        Ok(session)
    }

    /// Deletes a session with its log.
    ///
    /// # Errors
    /// `session_not_found`, `session_busy`.
    pub async fn delete_session(&self, id: &SessionId) -> Result<(), Failure> {
        self.inner.trace.delete_session(id).await?;
        self.tell(|| HookEvent::SessionStop { session_id: id.clone() }).await;
        Ok(())
    }
}

/// The session a stored receipt speaks of.
pub(crate) fn session_in(receipt: &serde_json::Value) -> Result<SessionId, Failure> {
    let id = receipt.get("sessionId").and_then(|v| v.as_str()).and_then(|text| text.parse().ok());
    id.ok_or_else(|| Failure::new(Reason::StorageFailed, "a stored receipt names no session"))
}
