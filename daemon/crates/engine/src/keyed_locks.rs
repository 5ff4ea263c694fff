//! Locks by name: requests with the same retry key wait for each other, and for no others.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::OwnedMutexGuard;

type Lock = Arc<tokio::sync::Mutex<()>>;

/// The names that are locked now; there are never more than active requests.
#[derive(Debug, Default)]
pub(crate) struct KeyedLocks(Mutex<HashMap<String, Lock>>);

/// A locked name; a name without further waiters is removed with it.
pub(crate) struct KeyedGuard<'a> {
    locks: &'a KeyedLocks,
    name: String,
    guard: Option<OwnedMutexGuard<()>>,
}

impl KeyedLocks {
    fn map(&self) -> MutexGuard<'_, HashMap<String, Lock>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub async fn lock(&self, name: String) -> KeyedGuard<'_> {
        let lock = Arc::clone(self.map().entry(name.clone()).or_default());
        // Before the wait, so that a cancelled wait cleans up as well.
        let mut guard = KeyedGuard { locks: self, name, guard: None };
        guard.guard = Some(lock.lock_owned().await);
        guard
    }
}

impl Drop for KeyedGuard<'_> {
    fn drop(&mut self) {
        let mut map = self.locks.map();
        self.guard = None;
        // Clones are made under the map's lock: a count of one is the map's own.
        if map.get(&self.name).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            map.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn equal_keys_wait_and_unused_keys_are_removed() {
        let locks = KeyedLocks::default();
        let first = locks.lock("a".into()).await;
        let other = locks.lock("b".into()).await;
        let mut second = Box::pin(locks.lock("a".into()));
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        let second = second.await;
        drop((second, other));
        assert!(locks.map().is_empty());
    }
}
