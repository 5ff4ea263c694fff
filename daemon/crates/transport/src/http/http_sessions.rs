//! HTTP sessions: connections that span several requests, each identified by an unguessable id.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use cairn_api::{Connection, Outgoing};
use cairn_protocol::error::{Failure, Reason};
use subtle::ConstantTimeEq;
use tokio::sync::{Mutex as Seat, OwnedMutexGuard, mpsc, watch};

use crate::ws::CloseOnDrop;

/// Maximum number of sessions.
const MAX_SESSIONS: usize = 256;
/// Time without requests after which a session expires.
pub const IDLE_LIMIT: Duration = Duration::from_secs(300);

/// The notifications of a session, for the one reader that it can have.
pub struct Notes {
    pub receiver: mpsc::Receiver<Outgoing>,
    /// Maps a session to the subscription whose events were sent last.
    pub subscriptions: HashMap<String, String>,
}

struct Entry<C> {
    connection: C,
    /// The client that created it: the token or a device.
    owner: String,
    notes: Arc<Seat<Notes>>,
    /// Counts the readers of `notes`: a reader stops when the next one starts.
    reader: watch::Sender<u64>,
    used: Mutex<Used>,
}

struct Used {
    requests: usize,
    last: Instant,
}

/// HTTP sessions by id, each with its owner.
pub struct HttpSessions<C = CloseOnDrop> {
    entries: Mutex<HashMap<String, Arc<Entry<C>>>>,
}

impl<C> Default for HttpSessions<C> {
    fn default() -> Self {
        Self { entries: Mutex::default() }
    }
}

/// A session in use by a request; it cannot expire meanwhile.
pub struct Lease<C = CloseOnDrop>(Arc<Entry<C>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<C> HttpSessions<C> {
    /// Stores a connection for `owner` and returns its id.
    ///
    /// # Errors
    /// `overloaded` when the limit is reached.
    pub fn insert(
        &self,
        connection: C,
        receiver: mpsc::Receiver<Outgoing>,
        owner: &str,
    ) -> Result<String, Failure> {
        let id = random_id()?;
        let notes = Notes { receiver, subscriptions: HashMap::new() };
        let entry = Entry {
            connection,
            owner: owner.to_owned(),
            notes: Arc::new(Seat::new(notes)),
            reader: watch::Sender::new(0),
            used: Mutex::new(Used { requests: 0, last: Instant::now() }),
        };
        self.sweep(Instant::now());
        let mut entries = lock(&self.entries);
        if entries.len() >= MAX_SESSIONS {
            let text =
                format!("{MAX_SESSIONS} connections over HTTP are open; end one with DELETE /rpc");
            return Err(Failure::new(Reason::Overloaded, text));
        }
        entries.insert(id.clone(), Arc::new(entry));
        Ok(id)
    }

    /// Finds a session of the same client.
    pub fn find(&self, id: &str, owner: &str) -> Option<Lease<C>> {
        let entry = lock(&self.entries).get(id).map(Arc::clone)?;
        if !bool::from(entry.owner.as_bytes().ct_eq(owner.as_bytes())) {
            return None;
        }
        let mut used = lock(&entry.used);
        used.requests += 1;
        drop(used);
        Some(Lease(entry))
    }

    /// Closes a session; false when there is none.
    pub fn remove(&self, id: &str, owner: &str) -> bool {
        let Some(lease) = self.find(id, owner) else { return false };
        lock(&self.entries).remove(id);
        // The reader of its notifications stops, and the connection closes with its last request.
        lease.0.reader.send_modify(|reader| *reader += 1);
        true
    }

    /// Closes sessions that have been unused for [`IDLE_LIMIT`].
    pub fn sweep(&self, now: Instant) {
        let idle = |entry: &Entry<C>| {
            let used = lock(&entry.used);
            used.requests == 0 && now.saturating_duration_since(used.last) >= IDLE_LIMIT
        };
        lock(&self.entries).retain(|_, entry| !idle(entry));
    }

    pub fn clear(&self) {
        lock(&self.entries).clear();
    }
}

impl Lease {
    pub fn connection(&self) -> &Connection {
        &self.0.connection.0
    }
}

impl<C> Lease<C> {
    /// Returns the notifications unless they have a reader.
    pub fn free_notes(&self) -> Option<OwnedMutexGuard<Notes>> {
        Arc::clone(&self.0.notes).try_lock_owned().ok()
    }

    /// Takes over the notifications from their reader. The watch changes when the next reader
    /// requests them.
    pub async fn take_notes(&self) -> (OwnedMutexGuard<Notes>, watch::Receiver<u64>) {
        self.0.reader.send_modify(|reader| *reader += 1);
        let next = self.0.reader.subscribe();
        (Arc::clone(&self.0.notes).lock_owned().await, next)
    }

    /// Changes when a reader requests the notifications.
    pub fn takeover(&self) -> watch::Receiver<u64> {
        self.0.reader.subscribe()
    }
}

impl<C> Drop for Lease<C> {
    fn drop(&mut self) {
        let mut used = lock(&self.0.used);
        used.requests -= 1;
        used.last = Instant::now();
    }
}

/// Returns 128 random bits in hexadecimal.
fn random_id() -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|e| Failure::new(Reason::Internal, format!("cannot get random bytes: {e}")))?;
    Ok(hex::encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(sessions: &HttpSessions<()>, token: &str) -> Result<String, Failure> {
        sessions.insert((), mpsc::channel(1).1, token)
    }

    #[test]
    fn session_belongs_to_one_owner() {
        let sessions = HttpSessions::default();
        let id = insert(&sessions, "secret").unwrap();
        assert_eq!(id.len(), 32);
        assert!(sessions.find(&id, "secret").is_some());
        for (id, token) in [(&*id, "another"), (&*id, ""), ("0", "secret"), ("", "secret")] {
            assert!(
                sessions.find(id, token).is_none() && !sessions.remove(id, token),
                "{id} {token}"
            );
        }
        assert!(sessions.remove(&id, "secret") && sessions.find(&id, "secret").is_none());
    }

    #[test]
    fn idle_sessions_expire_and_number_is_limited() {
        let sessions = HttpSessions::default();
        let used = insert(&sessions, "t").unwrap();
        let lease = sessions.find(&used, "t").unwrap();
        let idle = insert(&sessions, "t").unwrap();
        for _ in 2..MAX_SESSIONS {
            insert(&sessions, "t").unwrap();
        }
        assert_eq!(insert(&sessions, "t").unwrap_err().reason, Reason::Overloaded);
        sessions.sweep(Instant::now() + IDLE_LIMIT / 2);
        assert!(sessions.find(&idle, "t").is_some());
        sessions.sweep(Instant::now() + IDLE_LIMIT + Duration::from_secs(1));
        assert!(sessions.find(&idle, "t").is_none() && sessions.find(&used, "t").is_some());
        drop(lease);
        insert(&sessions, "t").unwrap();
    }

    #[tokio::test]
    async fn reader_stops_when_another_takes_over() {
        let sessions = HttpSessions::default();
        let lease = {
            let id = insert(&sessions, "t").unwrap();
            sessions.find(&id, "t").unwrap()
        };
        let (notes, mut takeover) = lease.take_notes().await;
        assert!(lease.free_notes().is_none());
        let next = tokio::join!(lease.take_notes(), async {
            takeover.changed().await.unwrap();
            drop(notes);
        });
        drop(next);
        assert!(lease.free_notes().is_some());
    }
}
