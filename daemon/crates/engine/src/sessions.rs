//! Requests of clients about sessions.

use cairn_protocol::{
    error::{Failure, Reason},
    explore::RunState,
    id::SessionId,
    session::{
        ArchiveParams, ForkParams, Page, PageParams, Session, SessionCreateParams, WorktreeUse,
    },
};
use cairn_trace::NewSession;

use crate::{Engine, fork, retry::Retry, session::Request};

/// Scope of the retry keys of `session.create`.
const CREATE: &str = "session.create";
/// Longest title in characters.
const MAX_TITLE: usize = 200;

impl Engine {
    /// Creates a session, and the work tree in which it works if that is requested. The set-up
    /// command of a new work tree ends before this returns.
    ///
    /// # Errors
    /// `root_not_found`, `invalid_params`, `request_conflict`; as [`Engine::create_worktree`].
    pub async fn create_session(&self, params: SessionCreateParams) -> Result<Session, Failure> {
        self.require_open()?;
        let title = params.title.clone().unwrap_or_default();
        if title.chars().count() > MAX_TITLE {
            return Err(Failure::new(
                Reason::InvalidParams,
                format!("title has more than {MAX_TITLE} characters"),
            ));
        }
        let retry = Retry::new(CREATE, params.request_id.as_ref(), &params);
        let _retries = self.lock_retries(&retry).await;
        if let Some(receipt) = self.answered::<serde_json::Value>(&retry).await? {
            let mut session = self.inner.trace.session(&session_in(&receipt)?).await?;
            let path = session.root.as_deref().filter(|_| params.worktree.is_some());
            session.worktree = path.and_then(|path| self.worktree_at(path));
            return Ok(session);
        }
        let request = retry.stored();
        let mut worktree = self.session_worktree(&params).await?;
        let is_new = params.worktree == Some(WorktreeUse::New);
        let root = match &worktree {
            Some(worktree) => Some(worktree.path.clone()),
            None => self
                .root_of(params.root.as_deref())?
                .map(|root| root.path.to_string_lossy().into_owned()),
        };
        let new = NewSession { title, root, request };
        let mut created = match self.inner.trace.create_session(new).await {
            Ok(created) => created,
            Err(error) => {
                if let Some(worktree) = worktree.filter(|_| is_new) {
                    self.discard_new_worktree(&worktree).await;
                }
                return Err(error.into());
            }
        };
        self.notify_session_start(&created).await;
        if let Some(worktree) = worktree.as_mut().filter(|_| is_new) {
            self.set_up_worktree(&created.session_id, worktree).await?;
        }
        created.worktree = worktree;
        Ok(created)
    }

    /// Returns sessions, newest first.
    ///
    /// # Errors
    /// `invalid_params` for a bad cursor, or a part of an id that is too short or no part of one.
    pub async fn sessions(&self, page: PageParams) -> Result<Page<Session>, Failure> {
        if let Some(part) = &page.id {
            return Ok(self.inner.trace.sessions_by_id(part, page.limit, page.archived).await?);
        }
        Ok(self.inner.trace.sessions(page.cursor, page.limit, page.archived).await?)
    }

    /// Returns a session by its id.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn session(&self, id: &SessionId) -> Result<Session, Failure> {
        Ok(self.inner.trace.session(id).await?)
    }

    /// Resumes an interrupted session.
    ///
    /// # Errors
    /// `session_not_found`, `not_resumable`.
    pub async fn resume_session(
        &self,
        id: &SessionId,
    ) -> Result<cairn_protocol::explore::RunReceipt, Failure> {
        self.require_open()?;
        let session = self.inner.trace.session(id).await?;
        // `running` without a run: its terminal record could not be written.
        let is_stuck = session.state == RunState::Running && self.inner.sessions.view(id).is_idle();
        if session.state != RunState::Interrupted && !is_stuck {
            let text = format!("session {id} is {}, not interrupted", session.state.as_str());
            return Err(Failure::new(Reason::NotResumable, text));
        }
        self.notify_session_start(&session).await;
        match self.inner.trace.latest_run(id).await? {
            Some(latest) if latest.op == crate::turns::OP => {
                self.request(id, Request::Resume(None)).await?.receipt()
            }
            _ => self.resume_explore(id).await,
        }
    }

    /// Creates a session with the history of another, up to a turn.
    ///
    /// # Errors
    /// `session_not_found`, `session_busy`, `run_not_found` when there is no such turn.
    pub async fn fork_session(&self, params: ForkParams) -> Result<Session, Failure> {
        let ForkParams { session_id, before_turn_id: before, title } = params;
        let created =
            self.request(&session_id, Request::Fork { before, title }).await?.session()?;
        self.notify_session_start(&created).await;
        Ok(created)
    }

    /// Performs the fork, on request of the session's actor.
    pub(crate) async fn fork(
        &self,
        from: &SessionId,
        before: Option<&str>,
        title: Option<String>,
    ) -> Result<Session, Failure> {
        let old = self.inner.trace.session(from).await?;
        let cut = fork::cut(&self.inner.trace, from, before).await?;
        let title = title.unwrap_or(old.title).chars().take(MAX_TITLE).collect();
        Ok(self.inner.trace.fork(from, cut, title).await?)
    }

    /// Archives a session, or restores it.
    ///
    /// # Errors
    /// `session_not_found`.
    pub async fn archive_session(&self, params: ArchiveParams) -> Result<Session, Failure> {
        let request = Request::Archive(params.archived);
        let session = self.request(&params.session_id, request).await?.session()?;
        if params.archived {
            self.end_session(&params.session_id).await;
        } else {
            self.notify_session_start(&session).await;
        }
        Ok(session)
    }

    /// Deletes a session with its log.
    ///
    /// # Errors
    /// `session_not_found`, `session_busy`.
    pub async fn delete_session(&self, id: &SessionId) -> Result<(), Failure> {
        self.request(id, Request::Delete).await?;
        self.end_session(id).await;
        self.reclaim_later();
        Ok(())
    }
}

/// Returns the session id in a stored receipt.
pub(crate) fn session_in(receipt: &serde_json::Value) -> Result<SessionId, Failure> {
    let id = receipt.get("sessionId").and_then(|v| v.as_str()).and_then(|text| text.parse().ok());
    id.ok_or_else(|| {
        Failure::new(Reason::StorageFailed, "a stored receipt does not name a session")
    })
}
