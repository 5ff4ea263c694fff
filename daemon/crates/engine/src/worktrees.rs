//! Work trees for tasks: each is a declared root of its own, on a branch of its own.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use cairn_harness::RepositoryOf;
use cairn_protocol::{
    error::{Failure, Reason},
    git::{
        Worktree, WorktreeCreateParams, WorktreeDiff, WorktreeRef, WorktreeRemoveParams,
        WorktreeRemoved, WorktreeSetup,
    },
    id::SessionId,
    session::{Empty, Page, SessionCreateParams, WorktreeUse},
};
use cairn_workspace::{Root, git};
use uuid::Uuid;

use crate::{Engine, roots::blocking};

/// Maximum bytes of a diff in an answer.
const MAX_DIFF: usize = 1024 * 1024;
/// Maximum number of work trees.
const MAX_WORKTREES: usize = 256;
/// Maximum number of work trees of work trees that are followed to their repository.
const MAX_CHAIN: usize = 8;

impl Engine {
    /// Creates a work tree with a new branch, and declares it.
    ///
    /// # Errors
    /// `root_not_found`; `invalid_params` for a bad name; `git_failed`; `overloaded` at 256.
    pub async fn create_worktree(&self, params: WorktreeCreateParams) -> Result<Worktree, Failure> {
        self.require_open()?;
        let state = self.inner.state.get();
        if state.worktrees.len() + state.unfinished_worktrees.len() >= MAX_WORKTREES {
            let text = format!("there are {MAX_WORKTREES} work trees already: remove some");
            return Err(Failure::new(Reason::Overloaded, text));
        }
        let root = self.inner.roots.find(&params.root)?;
        let id = Uuid::now_v7().simple().to_string();
        // The last digits are random.
        let word = &id[id.len() - 8..];
        let branch = match params.branch {
            Some(name) => git::checked_branch(&name)?,
            None => format!("cairn/{word}"),
        };
        let name = root.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let folder = self.new_worktree_folder(&root, &branch).await?;
        let path = folder.join(format!("{}-{word}", name.unwrap_or_default()));
        let mut worktree = Worktree {
            path: path.to_string_lossy().into_owned(),
            repository: root.path.to_string_lossy().into_owned(),
            branch: branch.clone(),
            base: String::new(),
            uncommitted: Some(0),
            commits: Some(0),
            setup: None,
        };
        // Stored before git begins: a daemon that is killed meanwhile removes it at its next start.
        let unfinished = worktree.clone();
        self.inner.state.change(|state| state.unfinished_worktrees.push(unfinished))?;
        let new = git::NewWorktree { path, branch, base: params.base };
        let repository = root.clone();
        match blocking(move || git::add_worktree(&repository, new)).await {
            Ok(base) => worktree.base = base,
            Err(error) => {
                self.discard_worktree(&worktree, &root).await?;
                return Err(error);
            }
        }
        if let Err(error) = self.declare_worktree(&worktree).await {
            self.begin_removal(&worktree).await?;
            self.discard_worktree(&worktree, &root).await?;
            return Err(error);
        }
        Ok(worktree)
    }

    /// Creates the folder of work trees, and checks that a branch can be created.
    async fn new_worktree_folder(&self, root: &Root, branch: &str) -> Result<PathBuf, Failure> {
        let folder = self.worktrees_folder();
        let (root, branch) = (root.clone(), branch.to_owned());
        blocking(move || {
            if git::has_branch(&root, branch.clone())? {
                let text = format!("the worktree: a branch named '{branch}' already exists");
                return Err(Failure::new(Reason::GitFailed, text));
            }
            let io = |error: std::io::Error| {
                Failure::new(Reason::StorageFailed, format!("{}: {error}", folder.display()))
            };
            std::fs::create_dir_all(&folder).map_err(io)?;
            folder.canonicalize().map_err(io)
        })
        .await
    }

    fn worktrees_folder(&self) -> PathBuf {
        self.inner.workspaces.join("worktrees")
    }

    /// Lists a work tree that git has created, and declares it.
    async fn declare_worktree(&self, worktree: &Worktree) -> Result<(), Failure> {
        let path = PathBuf::from(&worktree.path);
        self.inner.state.change(|state| {
            state.unfinished_worktrees.retain(|w| w.path != worktree.path);
            state.worktrees.push(worktree.clone());
            state.roots.push(path.clone());
        })?;
        self.declare(path).await.map(drop)
    }

    /// Marks a work tree as one that is being removed, and removes its root with the index.
    async fn begin_removal(&self, worktree: &Worktree) -> Result<(), Failure> {
        self.inner.state.change(|state| {
            state.worktrees.retain(|w| w.path != worktree.path);
            state.unfinished_worktrees.retain(|w| w.path != worktree.path);
            state.roots.retain(|path| *path != *worktree.path);
            state.unfinished_worktrees.push(worktree.clone());
        })?;
        match self.inner.roots.find(&worktree.path) {
            Ok(root) => self.release_root(root).await,
            Err(_) => Ok(()),
        }
    }

    /// Removes all parts of a work tree that is being created or removed.
    async fn discard_worktree(&self, worktree: &Worktree, root: &Root) -> Result<(), Failure> {
        let (root, path) = (root.clone(), PathBuf::from(&worktree.path));
        let branch = worktree.branch.clone();
        blocking(move || git::discard_worktree(&root, path, branch)).await?;
        self.finish_removal(worktree)
    }

    fn finish_removal(&self, worktree: &Worktree) -> Result<(), Failure> {
        self.inner.state.change(|state| {
            state.unfinished_worktrees.retain(|w| w.path != worktree.path);
        })
    }

    /// Removes the work trees whose creation or removal an earlier daemon did not finish. Those that
    /// cannot be removed are tried again at the next start.
    pub(crate) async fn remove_unfinished_worktrees(&self) {
        let Ok(folder) = self.worktrees_folder().canonicalize() else { return };
        for worktree in self.inner.state.get().unfinished_worktrees {
            // The file may have been edited.
            if !PathBuf::from(&worktree.path).starts_with(&folder) {
                continue;
            }
            let removed = match self.inner.roots.find(&worktree.repository) {
                Ok(root) => self.discard_worktree(&worktree, &root).await,
                Err(error) => Err(error.into()),
            };
            if let Err(error) = removed {
                tracing::warn!(path = worktree.path, %error, "an unfinished work tree remains");
            }
        }
    }

    /// Returns the work tree in which a new session works, created if that is requested; `None`
    /// for a session without one.
    ///
    /// # Errors
    /// `invalid_params` for parameters without a work tree, or a branch that several have; as
    /// [`Engine::create_worktree`]; `path_not_found` for one that is not listed.
    pub(crate) async fn session_worktree(
        &self,
        params: &SessionCreateParams,
    ) -> Result<Option<Worktree>, Failure> {
        let bad = |text: &str| Err(Failure::new(Reason::InvalidParams, text));
        let Some(worktree) = params.worktree else {
            return match (&params.branch, &params.base) {
                (None, None) => Ok(None),
                _ => bad("branch and base need worktree"),
            };
        };
        let Some(root) = params.root.clone() else {
            return bad("worktree needs root: the repository, or the work tree");
        };
        let (branch, base) = (params.branch.clone(), params.base.clone());
        match (worktree, branch) {
            (WorktreeUse::New, branch) => {
                let params = WorktreeCreateParams { root, branch, base };
                self.create_worktree(params).await.map(Some)
            }
            (WorktreeUse::Existing, _) if base.is_some() => bad("base needs a new work tree"),
            (WorktreeUse::Existing, None) => {
                let root = self.inner.roots.find(&root)?;
                self.find_worktree(&root.path.to_string_lossy()).map(Some)
            }
            (WorktreeUse::Existing, Some(branch)) => {
                let repository = self.inner.roots.find(&root)?.path;
                let all = self.inner.state.get().worktrees.into_iter();
                let mut found = all.filter(|w| repository == *w.repository && w.branch == branch);
                found.next().map(Some).ok_or_else(|| {
                    let branch = branch.chars().take(300).flat_map(char::escape_default);
                    let text =
                        format!("no work tree has the branch '{}'", branch.collect::<String>());
                    Failure::new(Reason::PathNotFound, text)
                })
            }
        }
    }

    /// Runs the set-up command of a new work tree, if the configuration names one, and stores its
    /// outcome. A failure leaves the work tree and its session as they are, for the caller to
    /// decide.
    ///
    /// # Errors
    /// `storage_failed`.
    pub(crate) async fn set_up_worktree(
        &self,
        session: &SessionId,
        worktree: &mut Worktree,
    ) -> Result<(), Failure> {
        let root = self.inner.roots.find(&worktree.path)?;
        let settings = self.turn_settings(Some(&root));
        let Some(command) = settings.worktree_setup.clone() else { return Ok(()) };
        let stop = self.inner.shutdown.child_token();
        let (exit_code, error) = match self.run_confined(session, &command, None, &stop).await {
            Ok(end) => (Some(end.exit_code), None),
            Err(failure) => (None, Some(failure.message)),
        };
        worktree.setup = Some(WorktreeSetup { command, exit_code, error });
        let stored = worktree.clone();
        self.inner.state.change(|state| {
            if let Some(known) = state.worktrees.iter_mut().find(|w| w.path == stored.path) {
                known.setup = stored.setup;
            }
        })
    }

    /// Returns the listed work tree at a path.
    pub(crate) fn worktree_at(&self, path: &str) -> Option<Worktree> {
        self.inner.state.get().worktrees.into_iter().find(|worktree| worktree.path == path)
    }

    /// Removes a work tree whose session could not be created.
    pub(crate) async fn discard_new_worktree(&self, worktree: &Worktree) {
        let params = WorktreeRemoveParams { path: worktree.path.clone(), discard: true };
        if let Err(failure) = self.remove_worktree(params).await {
            tracing::warn!(path = worktree.path, %failure, "a work tree without session remains");
        }
    }

    /// Returns the folder whose trust decides about `folder`: for a folder in a work tree that was
    /// created here, the same folder of its repository; otherwise `None`. The list of work trees
    /// decides, not a `.git` file, which anybody can write; the file must agree with it. Reads
    /// files.
    pub fn repository_folder(&self, folder: &Path) -> Option<PathBuf> {
        let all = self.inner.state.get().worktrees;
        let repository_of = |folder: &Path| {
            all.iter().find_map(|worktree| {
                let rest = folder.strip_prefix(&worktree.path).ok()?;
                let repository = Path::new(&worktree.repository);
                git::is_worktree_of(Path::new(&worktree.path), repository)
                    .then(|| repository.join(rest))
            })
        };
        let mut found = repository_of(folder)?;
        for _ in 0..MAX_CHAIN {
            match repository_of(&found) {
                Some(next) => found = next,
                None => return Some(found),
            }
        }
        None
    }

    /// Returns [`Self::repository_folder`] as a value that does not keep the engine alive.
    pub fn repository_folders(&self) -> Arc<RepositoryOf> {
        let weak = Arc::downgrade(&self.inner);
        Arc::new(move |folder| Self { inner: weak.upgrade()? }.repository_folder(folder))
    }

    /// Lists the work trees with their changes.
    ///
    /// # Errors
    /// None at present; the signature is that of other lists.
    pub async fn worktrees(&self, _: Empty) -> Result<Page<Worktree>, Failure> {
        let mut data = self.inner.state.get().worktrees;
        for worktree in &mut data {
            let state = self.worktree_state(worktree).await;
            (worktree.uncommitted, worktree.commits) = match state {
                Ok(state) => (Some(state.uncommitted), Some(state.commits)),
                Err(_) => (None, None),
            };
        }
        Ok(Page { data, next_cursor: None })
    }

    async fn worktree_state(&self, worktree: &Worktree) -> Result<git::WorktreeState, Failure> {
        let root = self.inner.roots.find(&worktree.path)?;
        let base = worktree.base.clone();
        blocking(move || git::worktree_state(&root, base)).await
    }

    fn find_worktree(&self, path: &str) -> Result<Worktree, Failure> {
        let all = self.inner.state.get().worktrees;
        let given = PathBuf::from(path);
        let given = given.canonicalize().unwrap_or(given);
        all.into_iter().find(|worktree| given == *worktree.path).ok_or_else(|| {
            let path: String = path.chars().take(300).flat_map(char::escape_default).collect();
            let text = format!("'{path}' is not a work tree that was created here");
            Failure::new(Reason::PathNotFound, text)
        })
    }

    /// Returns the changes of a work tree since its base.
    ///
    /// # Errors
    /// `path_not_found`, `git_failed`.
    pub async fn worktree_diff(&self, params: WorktreeRef) -> Result<WorktreeDiff, Failure> {
        let worktree = self.find_worktree(&params.path)?;
        let (patch, paths) = self.worktree_patch(&worktree).await?;
        let mut diff = String::from_utf8_lossy(&patch).into_owned();
        let truncated = diff.len() > MAX_DIFF;
        if truncated {
            let mut end = MAX_DIFF;
            while !diff.is_char_boundary(end) {
                end -= 1;
            }
            diff.truncate(end);
        }
        Ok(WorktreeDiff { diff, paths, truncated })
    }

    async fn worktree_patch(&self, worktree: &Worktree) -> Result<(Vec<u8>, Vec<String>), Failure> {
        let root = self.inner.roots.find(&worktree.path)?;
        let base = worktree.base.clone();
        blocking(move || git::worktree_patch(&root, base)).await
    }

    /// Applies the changes of a work tree to the files of its repository: all or none.
    ///
    /// # Errors
    /// `path_not_found`; `git_failed` where the repository's files have changed otherwise.
    pub async fn apply_worktree(&self, params: WorktreeRef) -> Result<WorktreeDiff, Failure> {
        let worktree = self.find_worktree(&params.path)?;
        let repository = self.inner.roots.find(&worktree.repository)?;
        let (patch, paths) = self.worktree_patch(&worktree).await?;
        if !patch.is_empty() {
            blocking(move || git::apply_patch_to(&repository, patch)).await?;
        }
        Ok(WorktreeDiff { diff: String::new(), paths, truncated: false })
    }

    /// Removes a work tree with its folder and its root. Its branch remains if it has commits that
    /// the repository's head does not have.
    ///
    /// # Errors
    /// `path_not_found`; `invalid_params` for uncommitted changes without `discard`; `session_busy`
    /// while a session works in it; `git_failed`.
    pub async fn remove_worktree(
        &self,
        params: WorktreeRemoveParams,
    ) -> Result<WorktreeRemoved, Failure> {
        let worktree = self.find_worktree(&params.path)?;
        let is_there = PathBuf::from(&worktree.path).exists();
        if is_there && !params.discard {
            let state = self.worktree_state(&worktree).await?;
            if state.uncommitted > 0 {
                let text = format!(
                    "the work tree has {} files with uncommitted changes, which would be lost",
                    state.uncommitted
                );
                return Err(Failure::new(Reason::InvalidParams, text));
            }
        }
        self.require_unused(&worktree).await?;
        let repository = self.inner.roots.find(&worktree.repository)?;
        self.begin_removal(&worktree).await?;
        let (path, branch) = (PathBuf::from(&worktree.path), worktree.branch.clone());
        match blocking(move || git::remove_worktree(&repository, path, branch)).await {
            Ok(branch_removed) => {
                self.finish_removal(&worktree)?;
                Ok(WorktreeRemoved { branch: worktree.branch, branch_removed })
            }
            Err(error) => {
                // The caller can try again, or continue to work in it.
                self.declare_worktree(&worktree).await?;
                Err(error)
            }
        }
    }

    /// Refuses while a run of a session is active in the work tree.
    async fn require_unused(&self, worktree: &Worktree) -> Result<(), Failure> {
        let running = self.inner.trace.running_in(&worktree.path).await?;
        match running.first() {
            None => Ok(()),
            Some(session) => {
                let text = format!("session {session} works in {}", worktree.path);
                Err(Failure::new(Reason::SessionBusy, text))
            }
        }
    }
}
