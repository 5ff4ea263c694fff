//! Limits for connections that have not presented a token yet: few at once and each for a short
//! time.
//!
//! The user's clients cannot be told from strangers before their first request. New connections are
//! therefore never refused because of existing ones: the oldest is evicted. A client needs its slot
//! for one request only.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    extract::{ConnectInfo, FromRequestParts},
    http::request::Parts,
};
use tokio_util::sync::CancellationToken;

/// Maximum number of unauthenticated connections.
pub const MAX_CONNECTIONS: usize = 128;
/// Time limit of each.
pub const TIME_LIMIT: Duration = Duration::from_secs(10);
/// File descriptors reserved for authenticated clients.
const RESERVED: u64 = 64;

/// The unauthenticated connections of a listener. Clones share them.
#[derive(Clone, Default)]
pub struct UnauthenticatedLimit(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    next: u64,
    /// Open connections, the oldest first.
    open: VecDeque<(u64, CancellationToken)>,
}

/// Records whether the client of one connection has authenticated. Clones share it; dropping the
/// last one releases the slot.
#[derive(Clone, Default)]
pub struct Proof(Option<Arc<Entry>>);

struct Entry {
    all: UnauthenticatedLimit,
    id: u64,
    cut: CancellationToken,
    given: AtomicBool,
}

impl UnauthenticatedLimit {
    /// Reserves a slot for a new connection.
    pub fn enter(&self) -> Proof {
        self.enter_if(descriptors_are_short)
    }

    fn enter_if(&self, short: impl Fn() -> bool) -> Proof {
        let waiting = self.state().open.len();
        if waiting >= MAX_CONNECTIONS || (waiting > 0 && short()) {
            self.evict_oldest();
        }
        let mut state = self.state();
        let cut = CancellationToken::new();
        let id = state.next;
        state.next += 1;
        state.open.push_back((id, cut.clone()));
        drop(state);
        Proof(Some(Arc::new(Entry { all: self.clone(), id, cut, given: AtomicBool::new(false) })))
    }

    /// Closes the oldest connection; false if there was none.
    pub fn evict_oldest(&self) -> bool {
        let oldest = self.state().open.pop_front();
        if let Some((id, cut)) = &oldest {
            tracing::debug!(id, "closing a connection without a token to accept another");
            cut.cancel();
        }
        oldest.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proof {
    /// Marks the client as authenticated, which lifts the time limit.
    pub fn mark_authenticated(&self) {
        if let Some(entry) = &self.0
            && !entry.given.swap(true, Ordering::AcqRel)
        {
            entry.release();
        }
    }

    /// Returns true if the client has authenticated.
    pub fn is_authenticated(&self) -> bool {
        self.0.as_ref().is_none_or(|entry| entry.given.load(Ordering::Acquire))
    }

    /// Resolves when the connection must end: its time is over, or another one needs its slot.
    pub fn expired(&self, limit: Duration) -> impl Future<Output = ()> + Send + 'static {
        let cut = self.0.as_ref().map(|entry| entry.cut.clone()).unwrap_or_default();
        async move {
            let _either = tokio::time::timeout(limit, cut.cancelled()).await;
        }
    }
}

impl Entry {
    fn release(&self) {
        self.all.state().open.retain(|(id, _)| *id != self.id);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.release();
    }
}

/// The proof of a request's connection; an empty one where the listener authenticates otherwise.
impl<S: Send + Sync> FromRequestParts<S> for Proof {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::of(parts))
    }
}

impl Proof {
    /// Returns the proof that the extractor would.
    pub fn of(parts: &Parts) -> Self {
        parts.extensions.get::<ConnectInfo<Proof>>().map(|info| info.0.clone()).unwrap_or_default()
    }
}

/// Returns true if fewer descriptors are free than are reserved; false if the number is unknown.
fn descriptors_are_short() -> bool {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let (Some(limit), Ok(open)) = (limit, std::fs::read_dir("/proc/self/fd")) else { return false };
    open.count() as u64 + RESERVED > limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_unauthenticated_connection_is_evicted() {
        let all = UnauthenticatedLimit::default();
        let first = all.enter_if(|| false);
        let proven = all.enter_if(|| false);
        proven.mark_authenticated();
        let rest: Vec<Proof> = (1..MAX_CONNECTIONS).map(|_| all.enter_if(|| false)).collect();
        let cut = |proof: &Proof| proof.0.as_ref().unwrap().cut.is_cancelled();
        assert!(!cut(&first) && proven.is_authenticated() && !first.is_authenticated());
        let late = all.enter_if(|| false);
        assert!(cut(&first) && !cut(&rest[0]) && !cut(&proven) && !cut(&late));
        assert_eq!(all.state().open.len(), MAX_CONNECTIONS);
        // When descriptors are short, a new connection evicts another whatever their number.
        let _short = all.enter_if(|| true);
        assert!(cut(&rest[0]) && !cut(&rest[1]));
        drop((rest, late));
        assert_eq!(all.state().open.len(), 1);
    }
}
