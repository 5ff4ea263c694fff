//! The files that run later in each workspace, as they are expected to be. All processes that run in a
//! workspace at one time share one expectation, since nobody can tell which of them made a change.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cairn_protocol::id::RootId;
use cairn_workspace::{AutorunChange, AutorunClass, AutorunState, Root};

/// Most commands whose rejected files are stored.
const MAX_REJECTED: usize = 100;
/// Most workspaces whose last look is stored while nothing runs in them.
const MAX_IDLE: usize = 8;

/// The workspaces in which processes run or ran, and the folder of what was put aside.
#[derive(Debug)]
pub(crate) struct AutorunWatch {
    workspaces: Mutex<Vec<(RootId, Arc<Workspace>)>>,
    rejected: PathBuf,
}

/// A workspace with its expected files.
#[derive(Debug, Default)]
pub(super) struct Workspace(Mutex<Expected>);

#[derive(Debug, Default)]
struct Expected {
    state: AutorunState,
    /// Number of processes that may be writing.
    running: usize,
    /// Changes that a call decides about now.
    claimed: Vec<AutorunChange>,
}

/// A process that may write in a workspace.
pub(super) struct Writing {
    workspace: Arc<Workspace>,
    root: Root,
    pub is_partial: bool,
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.workspace.expected().running -= 1;
    }
}

impl AutorunWatch {
    /// Creates one that stores what it puts aside in a folder.
    pub fn new(rejected: PathBuf) -> Self {
        Self { workspaces: Mutex::default(), rejected }
    }

    /// Returns the folder of what is put aside now. Earlier ones beyond a number are removed.
    pub(super) fn rejected_folder(&self) -> PathBuf {
        let entries = std::fs::read_dir(&self.rejected).into_iter().flatten().flatten();
        let mut earlier: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        // Their names are times.
        earlier.sort();
        let surplus = (earlier.len() + 1).saturating_sub(MAX_REJECTED);
        for folder in earlier.into_iter().take(surplus) {
            let _in_use = std::fs::remove_dir_all(folder);
        }
        self.rejected.join(uuid::Uuid::now_v7().simple().to_string())
    }

    fn workspaces(&self) -> MutexGuard<'_, Vec<(RootId, Arc<Workspace>)>> {
        self.workspaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the workspace of a root, and forgets those that were not used for longest.
    fn workspace(&self, root: &Root) -> Arc<Workspace> {
        let mut all = self.workspaces();
        let found = all.iter().position(|(id, _)| *id == root.id);
        let entry = found.map_or_else(|| (root.id.clone(), Arc::default()), |at| all.remove(at));
        let workspace = Arc::clone(&entry.1);
        all.push(entry);
        let mut surplus = all.len().saturating_sub(MAX_IDLE);
        all.retain(|(_, known)| {
            let is_idle = Arc::strong_count(known) == 1;
            let stays = surplus == 0 || !is_idle;
            surplus -= usize::from(!stays);
            stays
        });
        workspace
    }

    /// Looks at the files before a process starts: what was changed while none ran is as the user
    /// wants it. This blocks on file I/O.
    pub(super) fn begin(&self, root: &Root) -> Option<Writing> {
        let workspace = self.workspace(root);
        let mut expected = workspace.expected();
        if expected.running == 0 {
            match root.autorun_state(Some(&expected.state)) {
                Ok(mut state) => {
                    // A change without a decision is not expected either.
                    for change in &expected.claimed {
                        state.restore(&expected.state, &change.path);
                    }
                    expected.state = state;
                }
                Err(error) => {
                    tracing::warn!(%error, "files that run later cannot be compared");
                    return None;
                }
            }
        }
        expected.running += 1;
        let is_partial = expected.state.is_partial;
        drop(expected);
        Some(Writing { workspace, root: root.clone(), is_partial })
    }

    /// Expects what a tool of Cairn's own has written: exactly this content, or no file.
    pub fn expect(&self, root: &Root, path: &str, content: Option<&[u8]>) {
        let known = self.workspaces().iter().find(|(id, _)| *id == root.id).cloned();
        let Some((_, workspace)) = known else { return };
        let mut expected = workspace.expected();
        expected.state.expect(root, path, content);
        expected.claimed.retain(|change| change.path != path);
    }
}

impl Workspace {
    fn expected(&self) -> MutexGuard<'_, Expected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a change still waits for its decision: a later write of a tool replaces it.
    pub fn is_claimed(&self, change: &AutorunChange) -> bool {
        self.expected().claimed.iter().any(|claimed| claimed.is_same(change))
    }

    /// Ends the decision about a change, which stays or was put back.
    pub fn release(&self, change: &AutorunChange, is_accepted: bool) {
        let mut expected = self.expected();
        if is_accepted {
            expected.state.accept(change);
        }
        expected.claimed.retain(|claimed| !claimed.is_same(change));
    }
}

impl Writing {
    /// Returns the sockets in the workspace at which programs may listen that were there before.
    pub fn sockets(&self) -> Vec<PathBuf> {
        let sockets = self.workspace.expected().state.live_sockets();
        sockets.into_iter().map(|rel| self.root.path.join(rel)).collect()
    }

    /// Returns the changes that nobody decides about yet. This blocks on file I/O.
    pub fn end(self) -> (Arc<Workspace>, Vec<AutorunChange>) {
        let mut expected = self.workspace.expected();
        let changes = self.root.autorun_changes(&expected.state).unwrap_or_default();
        // Removing a file runs nothing, unless the file was there to forbid something.
        let counts = |change: &AutorunChange| {
            change.autorun.class == AutorunClass::Own || !change.is_removal()
        };
        let is_new =
            |change: &AutorunChange| !expected.claimed.iter().any(|known| known.is_same(change));
        let changes: Vec<AutorunChange> =
            changes.into_iter().filter(|change| counts(change) && is_new(change)).collect();
        expected.claimed.extend(changes.iter().cloned());
        drop(expected);
        (Arc::clone(&self.workspace), changes)
    }
}

/// Puts a change back as it was before, if it still waits for a decision.
pub(super) fn put_back(
    workspace: &Workspace,
    root: &Root,
    change: &AutorunChange,
    rejected: &Path,
) -> std::io::Result<()> {
    if !workspace.is_claimed(change) {
        return Ok(());
    }
    let done = root.put_back(change, rejected);
    workspace.release(change, false);
    done
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cairn_workspace::Roots;

    use super::*;

    struct Scene {
        dir: tempfile::TempDir,
        rejected: tempfile::TempDir,
        watch: AutorunWatch,
        root: Root,
    }

    impl Scene {
        fn new() -> Self {
            let (dir, rejected) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            fs::write(dir.path().join(".envrc"), "old").unwrap();
            let root = Roots::new(vec![]).declare(dir.path()).unwrap();
            let watch = AutorunWatch::new(rejected.path().to_owned());
            Self { dir, rejected, watch, root }
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.dir.path().join(name), text).unwrap();
        }

        fn read(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.dir.path().join(name)).ok()
        }

        fn begin(&self) -> Writing {
            self.watch.begin(&self.root).unwrap()
        }

        fn put_back(&self, workspace: &Workspace, changes: &[AutorunChange]) {
            for change in changes {
                put_back(workspace, &self.root, change, self.rejected.path()).unwrap();
            }
        }
    }

    fn paths(changes: &[AutorunChange]) -> Vec<&str> {
        changes.iter().map(|change| change.path.as_str()).collect()
    }

    #[test]
    fn change_of_processes_at_one_time_is_decided_about_once() {
        let scene = Scene::new();
        let (one, two) = (scene.begin(), scene.begin());
        scene.write(".envrc", "evil");
        let (workspace, changes) = two.end();
        assert_eq!(paths(&changes), [".envrc"]);
        // The other one does not ask again, and one that begins meanwhile does not expect it.
        assert!(one.end().1.is_empty());
        let third = scene.begin();
        scene.put_back(&workspace, &changes);
        assert_eq!(scene.read(".envrc").as_deref(), Some("old"));
        assert!(third.end().1.is_empty());
        assert_eq!(scene.read(".envrc").as_deref(), Some("old"));
    }

    #[test]
    fn accepted_change_and_writes_of_tools_and_of_the_user_are_expected() {
        let scene = Scene::new();
        let (one, two) = (scene.begin(), scene.begin());
        scene.write(".envrc", "accepted");
        let (workspace, changes) = one.end();
        workspace.release(&changes[0], true);
        assert!(two.end().1.is_empty());
        // A tool writes while a process runs.
        let running = scene.begin();
        scene.write(".envrc", "by a tool");
        scene.write(".npmrc", "by a tool");
        scene.watch.expect(&scene.root, ".envrc", Some(b"by a tool"));
        scene.watch.expect(&scene.root, ".npmrc", Some(b"by a tool"));
        scene.write(".npmrc", "by the process");
        let (workspace, changes) = running.end();
        assert_eq!(paths(&changes), [".npmrc"]);
        scene.put_back(&workspace, &changes);
        assert_eq!(scene.read(".npmrc").as_deref(), Some("by a tool"));
        // The user writes while none runs.
        scene.write(".envrc", "by the user");
        assert!(scene.begin().end().1.is_empty());
    }

    #[test]
    fn later_write_of_a_tool_replaces_a_change_that_waits() {
        let scene = Scene::new();
        let running = scene.begin();
        scene.write(".envrc", "evil");
        let (workspace, changes) = running.end();
        scene.write(".envrc", "by a tool");
        scene.watch.expect(&scene.root, ".envrc", Some(b"by a tool"));
        scene.put_back(&workspace, &changes);
        assert_eq!(scene.read(".envrc").as_deref(), Some("by a tool"));
    }

    #[test]
    fn placeholder_of_another_process_is_no_change() {
        use std::os::unix::fs::PermissionsExt as _;
        let scene = Scene::new();
        let running = scene.begin();
        scene.write(".cairn.json", "");
        let mode = fs::Permissions::from_mode(cairn_workspace::PLACEHOLDER_MODE);
        fs::set_permissions(scene.dir.path().join(".cairn.json"), mode).unwrap();
        assert!(running.end().1.is_empty());
        // Control: the same name with a content.
        let running = scene.begin();
        fs::remove_file(scene.dir.path().join(".cairn.json")).unwrap();
        scene.write(".cairn.json", "{}");
        assert_eq!(paths(&running.end().1), [".cairn.json"]);
    }

    #[test]
    fn idle_workspaces_are_forgotten() {
        let scene = Scene::new();
        let roots = Roots::new(vec![]);
        for n in 0..MAX_IDLE + 3 {
            let folder = scene.dir.path().join(n.to_string());
            fs::create_dir(&folder).unwrap();
            scene.watch.begin(&roots.declare(&folder).unwrap()).unwrap().end();
        }
        assert!(scene.watch.workspaces().len() <= MAX_IDLE + 1);
    }
}
