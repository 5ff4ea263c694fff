//! Sessions that changed, for a reader of all sessions: after each commit, without a copy of the
//! records.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use cairn_protocol::id::SessionId;
use cairn_store::rusqlite::params;
use tokio::sync::Notify;

use crate::{Inner, PAGE, Trace, TraceError};

/// Sessions that changed since they were last taken. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    sessions: Arc<Mutex<HashSet<SessionId>>>,
    notify: Arc<Notify>,
}

/// A session with the number of its newest record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionHead {
    pub session: SessionId,
    /// Number of its newest record, 0 without records.
    pub seq: u64,
    /// Folder in which it works.
    pub root: Option<String>,
}

impl Changes {
    fn note(&self, session: &SessionId) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if !sessions.contains(session) {
            sessions.insert(session.clone());
        }
        drop(sessions);
        self.notify.notify_one();
    }

    /// Removes and returns the changed sessions, each once.
    pub fn take(&self) -> HashSet<SessionId> {
        std::mem::take(&mut *self.sessions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for a change after the last call; may also return without one.
    pub async fn changed(&self) {
        self.notify.notified().await;
    }
}

impl Inner {
    /// Notes a change for the reader of all sessions, if there is one.
    pub(crate) fn note_change(&self, session: &SessionId) {
        if let Some(changes) = self.changes.get() {
            changes.note(session);
        }
    }
}

impl Trace {
    /// Notes changed sessions from now on, for one reader.
    pub fn watch_changes(&self) -> Changes {
        self.inner.changes.get_or_init(Changes::default).clone()
    }

    /// Returns sessions with the numbers of their newest records, in the order of their ids, from
    /// after `after` on.
    ///
    /// # Errors
    /// Fails when the database cannot be read.
    pub async fn heads(&self, after: Option<&SessionId>) -> Result<Vec<SessionHead>, TraceError> {
        let after = after.map(SessionId::to_string).unwrap_or_default();
        self.read(move |conn| {
            let query = "SELECT id, head_seq, root FROM session WHERE id > ?1 ORDER BY id LIMIT ?2";
            let mut statement = conn.prepare_cached(query)?;
            let rows = statement.query_map(params![after, PAGE], |row| {
                Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?))
            })?;
            let all = rows.collect::<Result<Vec<(String, u64, Option<String>)>, _>>()?;
            let heads = all.into_iter().filter_map(|(id, seq, root)| {
                Some(SessionHead { session: id.parse().ok()?, seq, root })
            });
            Ok(heads.collect())
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Append, NewRecord, NewSession};

    #[tokio::test]
    async fn changed_sessions_are_returned_once_and_heads_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        let trace = Trace::open(&dir.path().join("trace.db")).unwrap();
        let a = trace.create_session(NewSession::default()).await.unwrap().session_id;
        let b = trace.create_session(NewSession::default()).await.unwrap().session_id;
        let changes = trace.watch_changes();
        for _ in 0..3 {
            let evt = cairn_protocol::event::AgentEvt::Progress {
                op: "x".into(),
                percent: 1.0,
                message: None,
            };
            let body = cairn_protocol::envelope::Body::Evt { evt };
            let id = uuid::Uuid::now_v7();
            let record = NewRecord { id, parent_id: None, origin: None, body };
            trace.append(Append::new(&b, vec![record])).await.unwrap();
        }
        changes.changed().await;
        assert_eq!(changes.take(), HashSet::from([b.clone()]));
        assert!(changes.take().is_empty());
        let heads = trace.heads(None).await.unwrap();
        let seqs: Vec<_> = heads.iter().map(|head| (head.session.clone(), head.seq)).collect();
        assert_eq!(seqs, [(a.clone(), 0), (b.clone(), 3)]);
        assert_eq!(trace.heads(Some(&a)).await.unwrap()[0].session, b);
        assert!(trace.heads(Some(&b)).await.unwrap().is_empty());
    }
}
