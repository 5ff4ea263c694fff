//! Positions of the mirror: the last record of each session that the broker has confirmed.
//!
//! A lost or old file does no harm: the broker refuses a record that it has, and the mirror then
//! reads the position from the broker.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use cairn_protocol::{error::Failure, id::SessionId};
use cairn_store::{
    Migration, StoreError,
    rusqlite::{Connection, OptionalExtension, params},
};

const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    sql: "
CREATE TABLE position (
    session TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    stream_seq INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE identity (value TEXT NOT NULL);
CREATE TABLE pool_session (session TEXT PRIMARY KEY) WITHOUT ROWID;
",
}];

/// Position of one session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// Number of the last confirmed record, 0 for none.
    pub seq: u64,
    /// Number of its message in the stream, 0 for none.
    pub stream_seq: u64,
}

/// The stored positions. Clones share them.
#[derive(Clone)]
pub struct Positions {
    conn: Arc<Mutex<Connection>>,
}

impl Positions {
    /// Opens or creates the file.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let conn = cairn_store::open(path, MIGRATIONS)?;
        Ok(Self { conn: Arc::new(Mutex::new(conn)) })
    }

    /// Returns the identity of this data folder, which is created at the first call.
    pub fn identity(&self) -> Result<String, StoreError> {
        let conn = self.conn.lock().unwrap_or_else(PoisonError::into_inner);
        let stored: Option<String> =
            conn.query_row("SELECT value FROM identity", [], |row| row.get(0)).optional()?;
        if let Some(identity) = stored {
            return Ok(identity);
        }
        let identity = uuid::Uuid::now_v7().simple().to_string();
        conn.execute("INSERT INTO identity VALUES (?1)", [&identity])?;
        Ok(identity)
    }

    /// Returns the sessions of runs of pools.
    pub fn pool_sessions(&self) -> Result<HashSet<SessionId>, StoreError> {
        let conn = self.conn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut statement = conn.prepare("SELECT session FROM pool_session")?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
        let all = rows.collect::<Result<Vec<_>, _>>()?;
        Ok(all.iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// Stores that a session has a run of a pool.
    pub async fn add_pool_session(&self, session: &SessionId) -> Result<(), Failure> {
        let session = session.to_string();
        self.blocking(move |conn| {
            conn.execute("INSERT OR IGNORE INTO pool_session VALUES (?1)", [session])?;
            Ok(())
        })
        .await
    }

    /// Returns the position of a session.
    pub async fn get(&self, session: &SessionId) -> Result<Position, Failure> {
        let session = session.to_string();
        self.blocking(move |conn| {
            let query = "SELECT seq, stream_seq FROM position WHERE session = ?1";
            let found = conn
                .prepare_cached(query)?
                .query_row([session], |row| {
                    Ok(Position { seq: row.get(0)?, stream_seq: row.get(1)? })
                })
                .optional()?;
            Ok(found.unwrap_or_default())
        })
        .await
    }

    /// Returns the numbers of the last confirmed records of all sessions.
    pub async fn all(&self) -> Result<HashMap<String, u64>, Failure> {
        self.blocking(|conn| {
            let mut statement = conn.prepare("SELECT session, seq FROM position")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Returns the highest number in the stream of all positions, 0 without positions.
    pub async fn last_stream_seq(&self) -> Result<u64, Failure> {
        self.blocking(|conn| {
            let query = "SELECT coalesce(max(stream_seq), 0) FROM position";
            Ok(conn.query_row(query, [], |row| row.get(0))?)
        })
        .await
    }

    /// Removes the positions after a number in the stream, whose messages the broker lost.
    pub async fn remove_after(&self, stream_seq: u64) -> Result<(), Failure> {
        self.blocking(move |conn| {
            conn.execute("DELETE FROM position WHERE stream_seq > ?1", [stream_seq])?;
            Ok(())
        })
        .await
    }

    /// Removes the positions of sessions that the log no longer has.
    pub async fn remove(&self, sessions: Vec<String>) -> Result<(), Failure> {
        self.blocking(move |conn| {
            let tx = conn.unchecked_transaction()?;
            for session in &sessions {
                tx.execute("DELETE FROM position WHERE session = ?1", [session])?;
                tx.execute("DELETE FROM pool_session WHERE session = ?1", [session])?;
            }
            tx.commit()?;
            Ok(())
        })
        .await
    }

    /// Stores positions in one transaction.
    pub async fn put(&self, changed: Vec<(SessionId, Position)>) -> Result<(), Failure> {
        self.blocking(move |conn| {
            let tx = conn.unchecked_transaction()?;
            for (session, position) in &changed {
                tx.prepare_cached("INSERT OR REPLACE INTO position VALUES (?1, ?2, ?3)")?
                    .execute(params![session.as_str(), position.seq, position.stream_seq])?;
            }
            tx.commit()?;
            Ok(())
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Failure> {
        let conn = Arc::clone(&self.conn);
        let work = move || job(&conn.lock().unwrap_or_else(PoisonError::into_inner));
        let done = tokio::task::spawn_blocking(work).await;
        let failed = |error: StoreError| {
            Failure::new(error.reason(), format!("the positions of the mirror: {error}"))
        };
        match done {
            Ok(outcome) => outcome.map_err(failed),
            Err(error) => Err(Failure::new(
                cairn_protocol::error::Reason::Internal,
                format!("the positions of the mirror: {error}"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn positions_and_identity_persist() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fleet.db");
        let session = SessionId::new();
        let position = Position { seq: 7, stream_seq: 90 };
        let first = Positions::open(&path).unwrap();
        assert_eq!(first.get(&session).await.unwrap(), Position::default());
        first.put(vec![(session.clone(), position)]).await.unwrap();
        let identity = first.identity().unwrap();
        drop(first);
        let second = Positions::open(&path).unwrap();
        assert_eq!(second.get(&session).await.unwrap(), position);
        assert_eq!(second.identity().unwrap(), identity);
        assert_eq!(second.all().await.unwrap()[session.as_str()], 7);
    }
}
