//! Cache of the folder of each session, which every tool call needs.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use cairn_protocol::id::SessionId;

use crate::{Trace, TraceError};

/// Maximum number of cached sessions.
const MAX_ROOTS: usize = 1024;

#[derive(Default)]
pub struct Roots(Mutex<Known>);

#[derive(Default)]
struct Known {
    roots: HashMap<SessionId, Option<String>>,
    /// Counter of changes: a value read before a change is not cached after it.
    changes: u64,
}

impl Roots {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a session from the cache after a change.
    pub fn forget(&self, id: &SessionId) {
        let mut known = self.known();
        known.changes += 1;
        known.roots.remove(id);
    }

    fn remember(&self, id: &SessionId, root: Option<String>, before: u64) {
        let mut known = self.known();
        if known.changes != before {
            return;
        }
        if known.roots.len() >= MAX_ROOTS {
            known.roots.clear();
        }
        known.roots.insert(id.clone(), root);
    }
}

impl Trace {
    /// Returns the root of a session, if it has one.
    ///
    /// # Errors
    /// `session_not_found`, or when the database cannot be read.
    pub async fn session_root(&self, id: &SessionId) -> Result<Option<String>, TraceError> {
        let before = {
            let known = self.inner.roots.known();
            if let Some(root) = known.roots.get(id) {
                return Ok(root.clone());
            }
            known.changes
        };
        let root = self.session(id).await?.root;
        self.inner.roots.remember(id, root.clone(), before);
        Ok(root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_before_a_change_is_not_cached() {
        let (roots, id) = (Roots::default(), SessionId::new());
        let before = roots.known().changes;
        roots.remember(&id, Some("/a".into()), before);
        assert_eq!(roots.known().roots.get(&id), Some(&Some("/a".into())));
        roots.forget(&id);
        roots.remember(&id, Some("/a".into()), before);
        assert_eq!(roots.known().roots.get(&id), None);
        for _ in 0..=MAX_ROOTS {
            let now = roots.known().changes;
            roots.remember(&SessionId::new(), None, now);
        }
        assert!(roots.known().roots.len() <= MAX_ROOTS);
    }
}
