//! The board: who works where, on what, for what cost, and who waits for an answer.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
};

use cairn_protocol::{
    approval::{Approval, ApprovalListParams},
    board::{Board, BoardParams, BoardRow},
    error::{Failure, Reason},
    explore::RunState,
    id::SessionId,
    session::Session,
    turn::RunStartParams,
};

use crate::{Engine, unattended::first_line};

/// Rows without a limit of the caller, and at most.
const DEFAULT_ROWS: u32 = 20;
const MAX_ROWS: u32 = 100;
/// Sessions that are considered: the latest ones, and all that wait.
const CONSIDERED: u32 = 500;
/// Sessions whose cost is cached.
const MAX_CACHED: usize = 1024;

/// Costs of sessions, each with the number of the last record that it includes.
pub(crate) type CostCache = Mutex<HashMap<SessionId, (u64, Option<u64>)>>;

impl Engine {
    /// Returns the sessions that wait for an answer, then the running ones, then the latest others.
    ///
    /// # Errors
    /// `invalid_params` for a limit out of range; errors of the log.
    pub async fn board(&self, params: BoardParams) -> Result<Board, Failure> {
        let limit = params.limit.unwrap_or(DEFAULT_ROWS);
        if !(1..=MAX_ROWS).contains(&limit) {
            let text = format!("limit must be 1 to {MAX_ROWS}");
            return Err(Failure::new(Reason::InvalidParams, text));
        }
        let mut waiting: BTreeMap<SessionId, Vec<Approval>> = BTreeMap::new();
        let pending = self.approvals(ApprovalListParams::default()).await?;
        for approval in pending.into_iter().filter(|approval| approval.resolution.is_none()) {
            waiting.entry(approval.session_id.clone()).or_default().push(approval);
        }
        let listed = self.inner.trace.sessions(None, Some(CONSIDERED), false).await?;
        let mut sessions = listed.data;
        for session in waiting.keys() {
            if !sessions.iter().any(|listed| listed.session_id == *session) {
                sessions.push(self.session(session).await?);
            }
        }
        sessions.retain(|session| session.head_seq > 0);
        sessions.sort_by_key(|session| {
            let order =
                (!waiting.contains_key(&session.session_id), session.state != RunState::Running);
            (order, std::cmp::Reverse(session.updated_at))
        });
        sessions.truncate(limit as usize);
        let mut rows = Vec::new();
        for session in sessions {
            let waiting = waiting.remove(&session.session_id).unwrap_or_default();
            rows.push(self.board_row(session, waiting).await?);
        }
        Ok(Board { rows })
    }

    async fn board_row(
        &self,
        session: Session,
        waiting: Vec<Approval>,
    ) -> Result<BoardRow, Failure> {
        let id = &session.session_id;
        let latest = self.inner.trace.latest_run(id).await?;
        let turn = latest.and_then(|run| serde_json::from_str::<RunStartParams>(&run.params).ok());
        let parent =
            turn.as_ref().and_then(|turn| turn.metadata.get("parentSession")?.parse().ok());
        let request = turn.map(|turn| first_line(&turn.input.text()));
        let branch = session.root.as_deref().and_then(|root| self.worktree_at(root));
        let unattended = self.unattended_run(id);
        let request = unattended.as_ref().map(|run| run.request.clone()).or(request);
        Ok(BoardRow {
            branch: branch.map(|worktree| worktree.branch),
            request: request.filter(|line| !line.is_empty()),
            parent,
            waiting,
            queued: self.inner.sessions.view(id).queued,
            cost_micro_usd: self.cached_cost(&session).await?,
            unattended,
            session,
        })
    }

    /// Returns the cost of a session; its log is read only if it has grown.
    async fn cached_cost(&self, session: &Session) -> Result<Option<u64>, Failure> {
        let cache = &self.inner.costs;
        let known = {
            let cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
            cache.get(&session.session_id).copied()
        };
        if let Some((_, cost)) = known.filter(|(seq, _)| *seq == session.head_seq) {
            return Ok(cost);
        }
        let cost = self.known_cost_of(&session.session_id).await?;
        let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= MAX_CACHED {
            cache.clear();
        }
        cache.insert(session.session_id.clone(), (session.head_seq, cost));
        Ok(cost)
    }
}
