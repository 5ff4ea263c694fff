//! Linked work trees of a repository, one for each task: created, compared, applied and removed
//! without running anything that the repository names.

use std::path::{Path, PathBuf};

use cairn_protocol::error::{Failure, Reason};
use git2::{
    ApplyLocation, BranchType, Diff, DiffFormat, DiffOptions, Repository, StatusOptions,
    WorktreeAddOptions, WorktreePruneOptions,
};

use super::branches::with_repository;
use crate::root::Root;

/// Maximum bytes of the changes of a work tree.
const MAX_PATCH: usize = 64 * 1024 * 1024;

/// A work tree to be created.
#[derive(Debug, Clone)]
pub struct NewWorktree {
    /// Folder that will be created.
    pub path: PathBuf,
    /// Branch that will be created.
    pub branch: String,
    /// Revision at which the branch begins; the head if absent.
    pub base: Option<String>,
}

/// Changes of a work tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreeState {
    /// Number of files with uncommitted changes, untracked ones included.
    pub uncommitted: u64,
    /// Number of commits since its base.
    pub commits: u64,
}

/// Returns true if the repository at a root has a branch of this name.
///
/// # Errors
/// `git_failed` without a repository.
pub fn has_branch(root: &Root, name: String) -> Result<bool, Failure> {
    with_repository(root, "the worktree", false, move |repo| {
        Ok(repo.find_branch(&name, BranchType::Local).is_ok())
    })
}

/// Creates a work tree on a new branch and returns the id of its first commit.
///
/// # Errors
/// `git_failed`: no repository at the root, an unknown revision, an existing branch, a folder that
/// exists.
pub fn add_worktree(root: &Root, new: NewWorktree) -> Result<String, Failure> {
    with_repository(root, "the worktree", false, move |repo| {
        let commit = match &new.base {
            Some(revision) => repo.revparse_single(revision)?.peel_to_commit()?,
            None => repo.head()?.peel_to_commit()?,
        };
        let mut branch = repo.branch(&new.branch, &commit, false)?;
        let name = name_of(&new.path)?;
        let mut options = WorktreeAddOptions::new();
        options.reference(Some(branch.get()));
        let added = repo.worktree(&name, &new.path, Some(&options));
        if let Err(error) = added {
            branch.delete()?;
            return Err(error);
        }
        Ok(commit.id().to_string())
    })
}

/// Returns the name that a repository has for the work tree of a folder.
fn name_of(path: &Path) -> Result<String, git2::Error> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    name.ok_or_else(|| git2::Error::from_str("its folder has no name"))
}

/// Returns the changes of the work tree at a root since the commit `base`.
///
/// # Errors
/// `git_failed`.
pub fn worktree_state(root: &Root, base: String) -> Result<WorktreeState, Failure> {
    with_repository(root, "the worktree", false, move |repo| {
        let mut options = StatusOptions::new();
        options.include_untracked(true).recurse_untracked_dirs(true);
        let uncommitted = repo.statuses(Some(&mut options))?.len() as u64;
        let head = repo.head()?.peel_to_commit()?.id();
        let base = repo.revparse_single(&base)?.peel_to_commit()?.id();
        let (commits, _) = repo.graph_ahead_behind(head, base)?;
        Ok(WorktreeState { uncommitted, commits: commits as u64 })
    })
}

/// Returns all changes of the work tree at a root since the commit `base`, committed or not, as a
/// patch, and the changed paths.
///
/// # Errors
/// `git_failed`, also for more than 64 MiB.
pub fn worktree_patch(root: &Root, base: String) -> Result<(Vec<u8>, Vec<String>), Failure> {
    with_repository(root, "the worktree", false, move |repo| {
        let tree = repo.revparse_single(&base)?.peel_to_tree()?;
        let mut options = DiffOptions::new();
        options.include_untracked(true).recurse_untracked_dirs(true);
        options.show_untracked_content(true).show_binary(true);
        let diff = repo.diff_tree_to_workdir_with_index(Some(&tree), Some(&mut options))?;
        let paths = super::branches::paths_of(&diff)?;
        let mut patch = Vec::new();
        let printed = diff.print(DiffFormat::Patch, |_, _, line| {
            if matches!(line.origin(), '+' | '-' | ' ') {
                patch.push(line.origin() as u8);
            }
            patch.extend_from_slice(line.content());
            patch.len() <= MAX_PATCH
        });
        match printed {
            Err(_) if patch.len() > MAX_PATCH => {
                Err(git2::Error::from_str("its changes have more than 64 MiB"))
            }
            outcome => outcome.map(|()| (patch, paths)),
        }
    })
}

/// Applies a patch to the files of the repository at a root: completely, or not at all.
///
/// # Errors
/// `git_failed` where a file differs from what the patch changes.
pub fn apply_patch_to(root: &Root, patch: Vec<u8>) -> Result<(), Failure> {
    with_repository(root, "the changes", true, move |repo| {
        let diff = Diff::from_buffer(&patch)?;
        repo.apply(&diff, ApplyLocation::WorkDir, None)
    })
}

/// Removes a work tree of the repository at a root with its folder, and its branch if the
/// repository's head contains all of its commits. Returns true if the branch was removed.
///
/// # Errors
/// `git_failed`.
pub fn remove_worktree(root: &Root, path: PathBuf, branch: String) -> Result<bool, Failure> {
    with_repository(root, "the worktree", false, move |repo| {
        if let Ok(worktree) = repo.find_worktree(&name_of(&path)?) {
            // Another folder of the same name is not the one that was created.
            let is_same = worktree.path().canonicalize().ok() == path.canonicalize().ok();
            if is_same {
                let mut options = WorktreePruneOptions::new();
                options.valid(true).working_tree(true).locked(false);
                worktree.prune(Some(&mut options))?;
            }
        }
        delete_merged(repo, &branch)
    })
}

/// Removes everything of a work tree whose creation or removal was interrupted: its folder, git's
/// notes about it, and its branch if the repository's head contains all of its commits. Parts that
/// are missing are skipped. Nothing else may use the folder.
///
/// # Errors
/// `git_failed`, also when a part cannot be removed.
pub fn discard_worktree(root: &Root, path: PathBuf, branch: String) -> Result<(), Failure> {
    with_repository(root, "the worktree", false, move |repo| {
        let notes = repo.commondir().join("worktrees").join(name_of(&path)?);
        for folder in [&path, &notes] {
            match std::fs::remove_dir_all(folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    let text = format!("{}: {error}", folder.display());
                    return Err(git2::Error::from_str(&text));
                }
                _ => {}
            }
        }
        remove_branch_lock(repo, &branch)?;
        delete_merged(repo, &branch).map(drop)
    })
}

/// Removes the lock of a branch that a killed daemon left while it deleted the branch. libgit2
/// would refuse every later deletion.
fn remove_branch_lock(repo: &Repository, branch: &str) -> Result<(), git2::Error> {
    let lock = repo.commondir().join("refs/heads").join(format!("{branch}.lock"));
    match std::fs::remove_file(&lock) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(git2::Error::from_str(&format!("{}: {error}", lock.display())))
        }
        _ => Ok(()),
    }
}

fn delete_merged(repo: &Repository, name: &str) -> Result<bool, git2::Error> {
    let Ok(mut branch) = repo.find_branch(name, BranchType::Local) else { return Ok(false) };
    let tip = branch.get().peel_to_commit()?.id();
    let head = repo.head()?.peel_to_commit()?.id();
    let is_merged = tip == head || repo.graph_descendant_of(head, tip)?;
    if is_merged {
        branch.delete()?;
    }
    Ok(is_merged)
}

/// Returns the name of a branch if git accepts it.
///
/// # Errors
/// `invalid_params` for a name that git refuses.
pub fn checked_branch(name: &str) -> Result<String, Failure> {
    if git2::Branch::name_is_valid(name).unwrap_or(false) {
        return Ok(name.to_owned());
    }
    let escaped: String = name.chars().take(100).flat_map(char::escape_default).collect();
    Err(Failure::new(Reason::InvalidParams, format!("'{escaped}' is no name for a branch")))
}
