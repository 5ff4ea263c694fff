//! Connections that live over several HTTP requests, each named by an id that nobody can guess.

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

/// Connections held at most.
const MOST: usize = 256;
/// How long one lives without any request.
pub const IDLE: Duration = Duration::from_secs(300);

/// What a connection is told besides answers, for the one who reads it.
pub struct Notes {
    /// Notifications as they come.
    pub receiver: mpsc::Receiver<Outgoing>,
    /// Session → the subscription whose events were sent last.
    pub subscriptions: HashMap<String, String>,
}

struct Entry<C> {
    connection: C,
    /// Whoever began it: a token or a device.
    owner: String,
    notes: Arc<Seat<Notes>>,
    /// Counts the readers of `notes`: a reader leaves when another one comes.
    reader: watch::Sender<u64>,
    used: Mutex<Used>,
}

struct Used {
    requests: usize,
    last: Instant,
}

/// All of them.
pub struct Held<C = CloseOnDrop> {
    entries: Mutex<HashMap<String, Arc<Entry<C>>>>,
}

impl<C> Default for Held<C> {
    fn default() -> Self {
        Self { entries: Mutex::default() }
    }
}

/// A held connection while a request uses it; meanwhile it does not expire.
pub struct Lease<C = CloseOnDrop>(Arc<Entry<C>>);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<C> Held<C> {
    /// Keeps a connection for `owner`; the answer is its id.
    ///
    /// # Errors
    /// `overloaded` when as many are held as may be.
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
        let mut entries = locked(&self.entries);
        if entries.len() >= MOST {
            let text = format!("{MOST} connections over HTTP are held; end one with DELETE /rpc");
            return Err(Failure::new(Reason::Overloaded, text));
        }
        entries.insert(id.clone(), Arc::new(entry));
        Ok(id)
    }

    /// The connection of that id, if it was begun by the same client.
    pub fn find(&self, id: &str, owner: &str) -> Option<Lease<C>> {
        let entry = locked(&self.entries).get(id).map(Arc::clone)?;
        if !bool::from(entry.owner.as_bytes().ct_eq(owner.as_bytes())) {
            return None;
        }
        let mut used = locked(&entry.used);
        used.requests += 1;
        drop(used);
        Some(Lease(entry))
    }

    /// Ends a connection; false when there is none such.
    pub fn remove(&self, id: &str, owner: &str) -> bool {
        let Some(lease) = self.find(id, owner) else { return false };
        locked(&self.entries).remove(id);
        // Whoever reads its notifications leaves, and with the last request it is closed.
        lease.0.reader.send_modify(|reader| *reader += 1);
        true
    }

    /// Ends those that nobody has used for [`IDLE`].
    pub fn sweep(&self, now: Instant) {
        let idle = |entry: &Entry<C>| {
            let used = locked(&entry.used);
            used.requests == 0 && now.saturating_duration_since(used.last) >= IDLE
        };
        locked(&self.entries).retain(|_, entry| !idle(entry));
    }

    /// Ends all.
    pub fn clear(&self) {
        locked(&self.entries).clear();
    }
}

impl Lease {
    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.0.connection.0
    }
}

impl<C> Lease<C> {
    /// The notifications, if nobody reads them.
    pub fn free_notes(&self) -> Option<OwnedMutexGuard<Notes>> {
        Arc::clone(&self.0.notes).try_lock_owned().ok()
    }

    /// The notifications; whoever reads them leaves. The second value changes when another reader wants them.
    pub async fn take_notes(&self) -> (OwnedMutexGuard<Notes>, watch::Receiver<u64>) {
        self.0.reader.send_modify(|reader| *reader += 1);
        let next = self.0.reader.subscribe();
        (Arc::clone(&self.0.notes).lock_owned().await, next)
    }

    /// Changes when a reader wants the notifications.
    pub fn wanted(&self) -> watch::Receiver<u64> {
        self.0.reader.subscribe()
    }
}

impl<C> Drop for Lease<C> {
    fn drop(&mut self) {
        let mut used = locked(&self.0.used);
        used.requests -= 1;
        used.last = Instant::now();
    }
}

/// 128 random bits in hexadecimal.
fn random_id() -> Result<String, Failure> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|e| Failure::new(Reason::Internal, format!("the system gives no random bytes: {e}")))?;
    Ok(hex::encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(held: &Held<()>, token: &str) -> Result<String, Failure> {
        held.insert((), mpsc::channel(1).1, token)
    }

    #[test]
    fn an_id_is_of_one_token() {
        let held = Held::default();
        let id = insert(&held, "secret").unwrap();
        assert_eq!(id.len(), 32);
        assert!(held.find(&id, "secret").is_some());
        for (id, token) in [(&*id, "another"), (&*id, ""), ("0", "secret"), ("", "secret")] {
            assert!(held.find(id, token).is_none() && !held.remove(id, token), "{id} {token}");
        }
        assert!(held.remove(&id, "secret") && held.find(&id, "secret").is_none());
    }

    #[test]
    fn what_nobody_uses_expires_and_there_is_a_most() {
        let held = Held::default();
        let used = insert(&held, "t").unwrap();
        let lease = held.find(&used, "t").unwrap();
        let idle = insert(&held, "t").unwrap();
        for _ in 2..MOST {
            insert(&held, "t").unwrap();
        }
        assert_eq!(insert(&held, "t").unwrap_err().reason, Reason::Overloaded);
        held.sweep(Instant::now() + IDLE / 2);
        assert!(held.find(&idle, "t").is_some());
        held.sweep(Instant::now() + IDLE + Duration::from_secs(1));
        assert!(held.find(&idle, "t").is_none() && held.find(&used, "t").is_some());
        drop(lease);
        insert(&held, "t").unwrap();
    }

    #[tokio::test]
    async fn a_reader_leaves_when_another_comes() {
        let held = Held::default();
        let lease = {
            let id = insert(&held, "t").unwrap();
            held.find(&id, "t").unwrap()
        };
        let (notes, mut wanted) = lease.take_notes().await;
        assert!(lease.free_notes().is_none());
        let next = tokio::join!(lease.take_notes(), async {
            wanted.changed().await.unwrap();
            drop(notes);
        });
        drop(next);
        assert!(lease.free_notes().is_some());
    }
}
