//! `state.json`: declared roots and the remotes of clones, written atomically.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use cairn_protocol::{
    error::{Failure, Reason},
    git::Worktree,
};
use cairn_workspace::replace_private_file;
use serde::{Deserialize, Serialize};

use crate::{schedules::StoredSchedule, unattended::StoredRun};

/// State that is stored between starts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct State {
    /// Declared roots, as canonical paths.
    pub roots: Vec<PathBuf>,
    /// Remote URL (without credentials) of each clone, by its path.
    pub remotes: BTreeMap<String, String>,
    /// Work trees that were created for tasks.
    pub worktrees: Vec<Worktree>,
    /// Work trees whose creation or removal has started and not ended: they are removed at the next
    /// start.
    pub unfinished_worktrees: Vec<Worktree>,
    /// Unattended runs, oldest first.
    pub unattended: Vec<StoredRun>,
    /// Requests that start at set times, oldest first.
    pub schedules: Vec<StoredSchedule>,
}

/// The file and its content.
pub(crate) struct StateFile {
    path: PathBuf,
    state: Mutex<State>,
}

impl StateFile {
    /// Reads the file; a missing file is an empty state.
    pub fn load(path: PathBuf) -> Result<Self, Failure> {
        let failed = |what: String| {
            Failure::new(Reason::StorageFailed, format!("{}: {what}", path.display()))
        };
        let state = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|e| failed(format!("not a state file: {e}")))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => State::default(),
            Err(error) => return Err(failed(error.to_string())),
        };
        Ok(Self { path, state: Mutex::new(state) })
    }

    /// Returns a copy of the state.
    pub fn get(&self) -> State {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the state; on a failed write the old content stays, on disk and in memory.
    pub fn change(&self, change: impl FnOnce(&mut State)) -> Result<(), Failure> {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = guard.clone();
        change(&mut next);
        let bytes = serde_json::to_vec_pretty(&next).map_err(std::io::Error::other);
        bytes.and_then(|bytes| replace_private_file(&self.path, &bytes)).map_err(|error| {
            let full = error.kind() == std::io::ErrorKind::StorageFull;
            let reason = if full { Reason::DiskFull } else { Reason::StorageFailed };
            Failure::new(reason, format!("{}: {error}", self.path.display()))
        })?;
        *guard = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_persist_after_reload() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.json");
        let file = StateFile::load(path.clone()).unwrap();
        file.change(|s| s.roots.push("/a".into())).unwrap();
        assert_eq!(StateFile::load(path.clone()).unwrap().get().roots, [PathBuf::from("/a")]);
        std::fs::write(&path, "{").unwrap();
        assert!(StateFile::load(path).is_err());
    }
}
