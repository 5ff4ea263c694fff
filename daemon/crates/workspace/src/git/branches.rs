//! Branches, stashes and former contents of files, without running anything that a repository
//! names: libgit2 knows neither hooks nor filter programs.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use cairn_protocol::error::{Failure, Reason};
use git2::{
    BranchType, Diff, Oid, Repository, RepositoryState, Signature, StashApplyOptions, StashFlags,
    Tree, build::CheckoutBuilder,
};

use super::{commit::DEFAULT_AUTHOR, git_failed, open, pipes};
use crate::{MAX_WRITTEN_BYTES, root::Root};

/// Time limit of one operation.
const LIMIT: Duration = Duration::from_secs(30);
/// Most files that one operation may change.
const MAX_FILES: usize = 10_000;
/// Maximum number of stashes in a list.
const MAX_STASHES: usize = 100;

/// An operation on the branches of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BranchChange {
    /// Creates a branch at the head and switches to it.
    Create(String),
    /// Switches to a local branch; changes of files are carried over or refused.
    Switch(String),
}

/// A stash of uncommitted changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stash {
    /// Position, 0 for the newest.
    pub index: usize,
    /// Message of the stash.
    pub message: String,
    /// Id of its commit.
    pub id: String,
}

/// Opens the repository at the root for an operation on another thread.
pub(super) fn with_repository<T: Send + 'static>(
    root: &Root,
    what: &'static str,
    writes: bool,
    work: impl FnOnce(&mut Repository) -> Result<T, git2::Error> + Send + 'static,
) -> Result<T, Failure> {
    let refused = |text: String| Failure::new(Reason::GitFailed, format!("{what}: {text}"));
    let found = open::find(root, ".")?.filter(|repo_paths| repo_paths.top == root.path);
    let Some(repo_paths) = found else {
        return Err(refused("the workspace's root is not a repository".into()));
    };
    if writes
        && let Some(foreign) = repo_paths.git_dirs.iter().find_map(|dir| pipes::find_foreign(dir))
    {
        let path = foreign.display();
        return Err(refused(format!("'{path}' is not a regular file or folder of the repository")));
    }
    let repository = repo_paths.clone();
    let mut reading: open::Reading<Result<T, git2::Error>> =
        open::on_thread(&repository, move |tx| {
            let result = match open::open(&repo_paths) {
                Ok(Some(repo)) if writes && repo.state() != RepositoryState::Clean => Err(
                    git2::Error::from_str("a merge, rebase or similar operation is in progress"),
                ),
                Ok(Some(mut repo)) => work(&mut repo),
                Ok(None) => Err(git2::Error::from_str("its work tree is elsewhere")),
                Err(error) => Err(error),
            };
            let _receiver_gone = tx.send(result);
        })?;
    match reading.next(Instant::now() + LIMIT) {
        Ok(result) => result.map_err(|error| git_failed(what, &error)),
        Err(_) => Err(refused(format!("no answer within {LIMIT:?}"))),
    }
}

/// Returns the tree of the commit that an operation leads to.
fn target_tree<'r>(repo: &'r Repository, change: &BranchChange) -> Result<Tree<'r>, git2::Error> {
    match change {
        BranchChange::Create(_) => repo.head()?.peel_to_tree(),
        BranchChange::Switch(name) => {
            repo.find_branch(name, BranchType::Local)?.get().peel_to_tree()
        }
    }
}

pub(super) fn paths_of(diff: &Diff<'_>) -> Result<Vec<String>, git2::Error> {
    let mut paths = BTreeSet::new();
    for delta in diff.deltas() {
        for file in [delta.old_file(), delta.new_file()] {
            paths.extend(file.path_bytes().map(|p| String::from_utf8_lossy(p).into_owned()));
        }
        if paths.len() > MAX_FILES {
            return Err(git2::Error::from_str("it would change more than 10,000 files"));
        }
    }
    Ok(paths.into_iter().collect())
}

/// Returns the files that a change of the branch replaces, relative to the root.
///
/// # Errors
/// `git_failed` without a repository, without such a branch, or for too many files.
pub fn branch_paths(root: &Root, change: &BranchChange) -> Result<Vec<String>, Failure> {
    let change = change.clone();
    with_repository(root, "the branch", false, move |repo| {
        let tree = target_tree(repo, &change)?;
        let head = repo.head()?.peel_to_tree()?;
        paths_of(&repo.diff_tree_to_tree(Some(&head), Some(&tree), None)?)
    })
}

/// Creates a branch, or switches to one. Uncommitted changes that the switch would overwrite refuse
/// it. Returns the id of the head.
///
/// # Errors
/// `git_failed` with git's reason: a conflict, an invalid or unknown name, a branch of another work
/// tree.
pub fn git_branch(root: &Root, change: BranchChange) -> Result<String, Failure> {
    with_repository(root, "the branch", true, move |repo| {
        let head = repo.head()?.peel_to_commit()?;
        let name = match &change {
            BranchChange::Create(name) => {
                repo.branch(name, &head, false)?;
                name
            }
            BranchChange::Switch(name) => name,
        };
        let commit = repo.find_branch(name, BranchType::Local)?.get().peel_to_commit()?;
        repo.checkout_tree(commit.as_object(), Some(CheckoutBuilder::new().safe()))?;
        if let Err(error) = repo.set_head(&format!("refs/heads/{name}")) {
            // Another work tree has the branch: the files return to the former head.
            repo.checkout_tree(head.as_object(), Some(CheckoutBuilder::new().safe()))?;
            return Err(error);
        }
        Ok(commit.id().to_string())
    })
}

/// Lists the stashes, newest first.
///
/// # Errors
/// `git_failed`.
pub fn git_stashes(root: &Root) -> Result<Vec<Stash>, Failure> {
    with_repository(root, "the stashes", false, |repo| {
        let mut stashes = Vec::new();
        repo.stash_foreach(|index, message, id| {
            let (message, id) = (message.to_owned(), id.to_string());
            stashes.push(Stash { index, message, id });
            stashes.len() < MAX_STASHES
        })?;
        Ok(stashes)
    })
}

/// Returns the files that a push would reset, relative to the root.
///
/// # Errors
/// `git_failed`.
pub fn stash_push_paths(root: &Root, untracked: bool) -> Result<Vec<String>, Failure> {
    with_repository(root, "the stash", false, move |repo| {
        let head = repo.head()?.peel_to_tree()?;
        let mut options = git2::DiffOptions::new();
        options.include_untracked(untracked).recurse_untracked_dirs(untracked);
        paths_of(&repo.diff_tree_to_workdir_with_index(Some(&head), Some(&mut options))?)
    })
}

/// Returns the files that the newest stash changes, relative to the root, with its id.
///
/// # Errors
/// `git_failed` without a stash.
pub fn stash_pop_paths(root: &Root) -> Result<(String, Vec<String>), Failure> {
    with_repository(root, "the stash", false, |repo| {
        let id = newest(repo)?;
        let commit = repo.find_commit(id)?;
        let base = commit.parent(0)?.tree()?;
        let diff = repo.diff_tree_to_tree(Some(&base), Some(&commit.tree()?), None)?;
        let mut paths = paths_of(&diff)?;
        // The third parent has the untracked files.
        if let Ok(untracked) = commit.parent(2) {
            paths.extend(paths_of(&repo.diff_tree_to_tree(
                None,
                Some(&untracked.tree()?),
                None,
            )?)?);
        }
        Ok((id.to_string(), paths))
    })
}

fn newest(repo: &mut Repository) -> Result<Oid, git2::Error> {
    let mut found = None;
    repo.stash_foreach(|_, _, id| {
        found = Some(*id);
        false
    })?;
    found.ok_or_else(|| git2::Error::from_str("there is no stash"))
}

/// Stores the changes of tracked files, and with `untracked` other files, and resets them. Returns
/// the id of the stash.
///
/// # Errors
/// `git_failed`, also when nothing has changed.
pub fn stash_push(
    root: &Root,
    message: Option<String>,
    untracked: bool,
) -> Result<String, Failure> {
    with_repository(root, "the stash", true, move |repo| {
        let who =
            repo.signature().or_else(|_| Signature::now(DEFAULT_AUTHOR.0, DEFAULT_AUTHOR.1))?;
        let flags = if untracked { StashFlags::INCLUDE_UNTRACKED } else { StashFlags::DEFAULT };
        let id = repo.stash_save2(&who, message.as_deref(), Some(flags))?;
        Ok(id.to_string())
    })
}

/// Applies the newest stash and removes it; a conflict changes nothing. `expected` is the id of the
/// stash that was approved.
///
/// # Errors
/// `git_failed`, also when another stash is the newest by now.
pub fn stash_pop(root: &Root, expected: String) -> Result<(), Failure> {
    with_repository(root, "the stash", true, move |repo| {
        if newest(repo)?.to_string() != expected {
            return Err(git2::Error::from_str("another stash is the newest by now"));
        }
        let mut checkout = CheckoutBuilder::new();
        checkout.safe();
        repo.stash_pop(0, Some(StashApplyOptions::new().checkout_options(checkout)))
    })
}

/// Returns the contents of files in a revision, or in the index without one; `None` for a file that
/// is not in it.
///
/// # Errors
/// `revision_not_found`, `too_large`, `git_failed` for a path that is no regular file there.
pub fn files_at(
    root: &Root,
    revision: Option<&str>,
    paths: &[String],
) -> Result<Vec<Option<Vec<u8>>>, Failure> {
    if let Some(revision) = revision {
        super::check_revision(revision)?;
    }
    let revision = revision.map(str::to_owned);
    let paths = paths.to_vec();
    with_repository(root, "the checkout", false, move |repo| {
        let tree = revision.map(|name| repo.revparse_single(&name)?.peel_to_tree()).transpose()?;
        let index = repo.index()?;
        let mut contents = Vec::new();
        for path in &paths {
            let entry = match &tree {
                Some(tree) => {
                    let entry = tree.get_path(path.as_ref()).ok();
                    entry.map(|entry| (entry.id(), entry.filemode().cast_unsigned()))
                }
                None => index.get_path(path.as_ref(), 0).map(|entry| (entry.id, entry.mode)),
            };
            let Some((id, mode)) = entry else {
                contents.push(None);
                continue;
            };
            if mode & 0o170_000 != 0o100_000 {
                let text = format!("'{path}' is not a regular file there");
                return Err(git2::Error::from_str(&text));
            }
            let blob = repo.find_blob(id)?;
            if blob.size() as u64 > MAX_WRITTEN_BYTES {
                return Err(git2::Error::from_str(&format!("'{path}' is too large")));
            }
            contents.push(Some(blob.content().to_vec()));
        }
        Ok(contents)
    })
}
