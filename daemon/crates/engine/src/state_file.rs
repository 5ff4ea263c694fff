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
use serde_json::Value;

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

/// The way out of a file that cannot be read.
const REPAIR: &str = "'cairn doctor --repair' shows what can be rescued";

/// Returns the content of a damaged state file without the parts that cannot be read, and those
/// parts, one line each; none if it is intact.
pub fn rescue_state(bytes: &[u8]) -> (Vec<u8>, Vec<String>) {
    if serde_json::from_slice::<State>(bytes).is_ok() {
        return (bytes.to_vec(), vec![]);
    }
    let mut lost = Vec::new();
    let mut intact = serde_json::Map::new();
    match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Object(parts)) => {
            for (name, value) in parts {
                if let Some(value) = readable(&name, value, &mut lost) {
                    intact.insert(name, value);
                }
            }
        }
        Ok(_) => lost.push("roots, work trees, runs and schedules: it is not an object".into()),
        Err(error) => lost.push(format!("roots, work trees, runs and schedules: {error}")),
    }
    (serde_json::to_vec_pretty(&intact).unwrap_or_else(|_| b"{}".to_vec()), lost)
}

/// Returns what can be read of one part: all of it, or the entries of a list that can be read.
fn readable(name: &str, value: Value, lost: &mut Vec<String>) -> Option<Value> {
    let check = |value: &Value| {
        let part = serde_json::json!({ name: value });
        serde_json::from_value::<State>(part).map(drop)
    };
    let error = match check(&value) {
        Ok(()) => return Some(value),
        Err(error) => error,
    };
    let Value::Array(entries) = value else {
        lost.push(format!("{name}: {error}"));
        return None;
    };
    let mut rest = Vec::new();
    for entry in entries {
        match check(&Value::Array(vec![entry.clone()])) {
            Ok(()) => rest.push(entry),
            Err(error) => lost.push(format!("an entry of {name}: {error}")),
        }
    }
    Some(Value::Array(rest))
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
                .map_err(|e| failed(format!("not a state file: {e}; {REPAIR}")))?,
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
        let error = StateFile::load(path).err().unwrap();
        assert!(error.message.contains("cairn doctor --repair"), "{error}");
    }

    #[test]
    fn readable_parts_of_a_damaged_file_are_rescued() {
        let intact = br#"{"roots": ["/a"]}"#;
        assert_eq!(rescue_state(intact), (intact.to_vec(), vec![]));
        let damaged = br#"{"roots": ["/a", 7], "remotes": "x", "schedules": []}"#;
        let (rescued, lost) = rescue_state(damaged);
        let state: State = serde_json::from_slice(&rescued).unwrap();
        assert_eq!(state.roots, [PathBuf::from("/a")]);
        assert_eq!(lost.len(), 2, "{lost:?}");
        let (rescued, lost) = rescue_state(b"{\"roots\": [");
        assert!(serde_json::from_slice::<State>(&rescued).is_ok() && lost.len() == 1, "{lost:?}");
    }
}
