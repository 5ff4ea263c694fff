//! Connections whose client has not shown a token yet: few at once and each for a short time.
//!
//! Nobody can tell a client of the user's from a stranger before its first request. So a new connection is never refused for
//! those that are there: the oldest of them makes way. A client needs its place for one request and no longer.

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

/// Connections at once.
pub const MOST: usize = 128;
/// Longest time of one.
pub const LIMIT: Duration = Duration::from_secs(10);
/// Descriptors that are kept back for clients with a token.
const RESERVED: u64 = 64;

/// The connections of a listener. Clones share them.
#[derive(Clone, Default)]
pub struct Unproven(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    next: u64,
    /// In the order of their coming.
    open: VecDeque<(u64, CancellationToken)>,
}

/// Says of one connection whether its client has shown a token. Clones share it; the last one gives the place back.
#[derive(Clone, Default)]
pub struct Proof(Option<Arc<Entry>>);

struct Entry {
    all: Unproven,
    id: u64,
    cut: CancellationToken,
    given: AtomicBool,
}

impl Unproven {
    /// A place for a new connection.
    pub fn enter(&self) -> Proof {
        self.enter_if(descriptors_are_short)
    }

    fn enter_if(&self, short: impl Fn() -> bool) -> Proof {
        let waiting = self.state().open.len();
        if waiting >= MOST || (waiting > 0 && short()) {
            self.cut_oldest();
        }
        let (mut state, cut) = (self.state(), CancellationToken::new());
        let id = state.next;
        state.next += 1;
        state.open.push_back((id, cut.clone()));
        drop(state);
        Proof(Some(Arc::new(Entry { all: self.clone(), id, cut, given: AtomicBool::new(false) })))
    }

    /// Ends the connection that has waited longest; whether there was one.
    pub fn cut_oldest(&self) -> bool {
        let oldest = self.state().open.pop_front();
        if let Some((id, cut)) = &oldest {
            tracing::debug!(id, "a connection without a token makes way for another");
            cut.cancel();
        }
        oldest.is_some()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proof {
    /// The client has shown its token: the connection lasts as long as it likes.
    pub fn give(&self) {
        if let Some(entry) = &self.0
            && !entry.given.swap(true, Ordering::AcqRel)
        {
            entry.leave();
        }
    }

    /// True if it was given.
    pub fn is_given(&self) -> bool {
        self.0.as_ref().is_none_or(|entry| entry.given.load(Ordering::Acquire))
    }

    /// Ends when the connection must: its time is over, or another needs its place.
    pub fn over(&self, limit: Duration) -> impl Future<Output = ()> + Send + 'static {
        let cut = self.0.as_ref().map(|entry| entry.cut.clone()).unwrap_or_default();
        async move {
            let _either = tokio::time::timeout(limit, cut.cancelled()).await;
        }
    }
}

impl Entry {
    fn leave(&self) {
        self.all.state().open.retain(|(id, _)| *id != self.id);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The proof of a request's connection; one that says nothing where the listener knows its clients otherwise.
impl<S: Send + Sync> FromRequestParts<S> for Proof {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::of(parts))
    }
}

impl Proof {
    /// As the extractor has it.
    pub fn of(parts: &Parts) -> Self {
        parts.extensions.get::<ConnectInfo<Proof>>().map(|info| info.0.clone()).unwrap_or_default()
    }
}

/// True if fewer descriptors are free than are kept back. Unknown counts as no.
fn descriptors_are_short() -> bool {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let (Some(limit), Ok(open)) = (limit, std::fs::read_dir("/proc/self/fd")) else { return false };
    open.count() as u64 + RESERVED > limit
}

#[cfg(test)]
mod tests {
    use super::*;

    // K1
    #[test]
    fn the_oldest_connection_without_a_token_makes_way() {
        let all = Unproven::default();
        let first = all.enter_if(|| false);
        let proven = all.enter_if(|| false);
        proven.give();
        let rest: Vec<Proof> = (1..MOST).map(|_| all.enter_if(|| false)).collect();
        let cut = |proof: &Proof| proof.0.as_ref().unwrap().cut.is_cancelled();
        assert!(!cut(&first) && proven.is_given() && !first.is_given());
        let late = all.enter_if(|| false);
        assert!(cut(&first) && !cut(&rest[0]) && !cut(&proven) && !cut(&late));
        assert_eq!(all.state().open.len(), MOST);
        // Where descriptors are short, a new one takes the place of another whatever their number.
        let _short = all.enter_if(|| true);
        assert!(cut(&rest[0]) && !cut(&rest[1]));
        drop((rest, late));
        assert_eq!(all.state().open.len(), 1);
    }
}
