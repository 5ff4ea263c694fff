//! File contents that a session's model has seen: an edit of any other content is a guess.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use cairn_protocol::id::SessionId;
use sha2::{Digest as _, Sha256};

/// Most sessions that are stored.
const MAX_SESSIONS: usize = 256;
/// Most files of one session that are stored.
const MAX_FILES: usize = 4096;

type Hash = [u8; 32];

/// Hashes of file contents as sessions last saw or wrote them. In memory alone: after a restart
/// files must be read again.
#[derive(Debug, Default)]
pub struct Seen(Mutex<HashMap<SessionId, HashMap<String, Hash>>>);

impl Seen {
    fn map(&self) -> MutexGuard<'_, HashMap<SessionId, HashMap<String, Hash>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the content that the session saw or wrote.
    pub fn note(&self, session: &SessionId, path: &str, content: &[u8]) {
        let mut map = self.map();
        if map.len() >= MAX_SESSIONS && !map.contains_key(session) {
            map.clear();
        }
        let files = map.entry(session.clone()).or_default();
        if files.len() >= MAX_FILES {
            files.clear();
        }
        files.insert(path.to_owned(), Sha256::digest(content).into());
    }

    /// Returns true if the session has seen the current content of the file.
    pub fn knows(&self, session: &SessionId, path: &str, content: &[u8]) -> bool {
        let hash: Hash = Sha256::digest(content).into();
        self.map().get(session).and_then(|files| files.get(path)) == Some(&hash)
    }
}
