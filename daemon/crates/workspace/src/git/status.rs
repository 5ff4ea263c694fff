//! Branch, head, remote and changed files.

use std::time::{Duration, Instant};

use cairn_protocol::{
    error::{Failure, Reason},
    git::{GitChange, GitStatus},
};
use git2::{Repository, Status, StatusOptions};

use super::{git_failed, open, without_credentials};
use crate::{
    guard::{IGNORE_FILES, rules_are_readable},
    root::{Root, display_text},
};

/// Most changes of one status.
pub const MAX_CHANGES: usize = 1_000;
/// Time limit of one status; the part known by then is returned, marked as truncated.
pub const STATUS_LIMIT: Duration = Duration::from_secs(5);

/// Returns branch, commit and remote of the repository at `root`, without its changes, which take
/// longer. Blocks up to [`STATUS_LIMIT`].
///
/// # Errors
/// `GitFailed` for a repository that cannot be read.
pub fn git_head(root: &Root) -> Result<GitStatus, Failure> {
    let Some(repo_paths) = open::find(root, ".")? else { return Ok(GitStatus::default()) };
    let what = "the head of a repository";
    let repository = repo_paths.clone();
    let mut reading = open::on_thread(&repository, move |tx| {
        let opened = open::open(&repo_paths);
        let _ = tx.send(opened.map(|repo| repo.map_or_else(GitStatus::default, |r| facts(&r))));
    })?;
    let late =
        |_| Failure::new(Reason::GitFailed, format!("{what}: no answer within {STATUS_LIMIT:?}"));
    let read = reading.next(Instant::now() + STATUS_LIMIT).map_err(late)?;
    read.map_err(|e| git_failed(what, &e))
}

/// Returns the state of the repository that contains the folder at `rel`;
/// [`GitStatus::is_repository`] is false when there is none between it and the root, or one that
/// leads out of the declared roots (a warning is logged then). Untracked folders are named, not
/// entered; submodules are left out. Blocks up to [`STATUS_LIMIT`].
///
/// # Errors
/// `GitFailed` for a repository that cannot be read, and errors of [`crate::list_dir`] for `rel`.
pub fn git_status(root: &Root, rel: &str) -> Result<GitStatus, Failure> {
    let Some(repo_paths) = open::find(root, rel)? else { return Ok(GitStatus::default()) };
    let what = format!("git status of '{}'", display_text(rel));
    let top = repo_paths
        .top
        .strip_prefix(&root.path)
        .map(|p| p.to_string_lossy().into_owned())
        .unwrap_or_default();
    let is_closed = root.closed();
    let deadline = Instant::now() + STATUS_LIMIT;
    // First the cheap part, then the complete one: the first is the answer when the second is late.
    let repository = repo_paths.clone();
    let mut reading = open::on_thread(&repository, move |tx| {
        let result = match open::open(&repo_paths) {
            Ok(Some(repo)) => {
                let facts = facts(&repo);
                let _ = tx.send(Ok(GitStatus { truncated: true, ..facts.clone() }));
                // The most likely trap is detected at once; one further down costs the time limit.
                if !rules_are_readable(&repo_paths.top, &IGNORE_FILES) {
                    return;
                }
                let closed = |path: &str| {
                    let path = repo_paths.top.join(path);
                    is_closed(&path) || is_placeholder(&path)
                };
                changes(&repo, &closed).map(|(changes, truncated)| GitStatus {
                    changes,
                    truncated,
                    ..facts
                })
            }
            Ok(None) => Ok(GitStatus::default()),
            Err(e) => Err(e),
        };
        let _ = tx.send(result);
    })?;
    let mut last = None;
    while let Ok(part) = reading.next(deadline) {
        last = Some(part.map_err(|e| git_failed(&what, &e))?);
    }
    last.map(|status| GitStatus { top, ..status }).ok_or_else(|| {
        Failure::new(Reason::GitFailed, format!("{what}: no answer within {STATUS_LIMIT:?}"))
    })
}

/// Returns true for an empty file by which the sandbox reserves a name while commands run: the only
/// files with this mode, sticky and writable by no user.
fn is_placeholder(path: &std::path::Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::symlink_metadata(path).is_ok_and(|meta| {
        meta.is_file() && meta.len() == 0 && meta.permissions().mode() & 0o7777 == 0o1444
    })
}

fn facts(repo: &Repository) -> GitStatus {
    let head = repo.head().ok();
    let branch = match &head {
        Some(head) if head.is_branch() => head.shorthand().ok().map(str::to_owned),
        Some(_) => None,
        // No commit yet: the branch that the first one will be on.
        None => repo.find_reference("HEAD").ok().and_then(|r| {
            let target = r.symbolic_target().ok().flatten()?.to_owned();
            target.strip_prefix("refs/heads/").map(str::to_owned)
        }),
    };
    let commit = head.and_then(|h| h.peel_to_commit().ok()).map(|c| c.id().to_string());
    let remote =
        repo.find_remote("origin").ok().and_then(|r| r.url().ok().map(without_credentials));
    let (top, changes) = (String::new(), vec![]);
    GitStatus { is_repository: true, top, branch, head: commit, remote, changes, truncated: false }
}

fn changes(
    repo: &Repository,
    closed: &dyn Fn(&str) -> bool,
) -> Result<(Vec<GitChange>, bool), git2::Error> {
    let mut options = StatusOptions::new();
    options
        .include_untracked(true)
        .recurse_untracked_dirs(false)
        .include_ignored(false)
        .exclude_submodules(true)
        .renames_head_to_index(true)
        .update_index(false);
    let mut changes = Vec::new();
    for entry in repo.statuses(Some(&mut options))?.iter() {
        let path = String::from_utf8_lossy(entry.path_bytes()).into_owned();
        let Some(status) = word(entry.status()).filter(|_| !closed(&path)) else { continue };
        if changes.len() == MAX_CHANGES {
            return Ok((changes, true));
        }
        changes.push(GitChange { path, status: status.into() });
    }
    Ok((changes, false))
}

/// Returns the one word for a set of flags: the most important for a reader comes first.
fn word(status: Status) -> Option<&'static str> {
    [
        (Status::CONFLICTED, "conflicted"),
        (Status::WT_NEW, "untracked"),
        (Status::INDEX_NEW, "added"),
        (Status::INDEX_DELETED | Status::WT_DELETED, "deleted"),
        (Status::INDEX_RENAMED | Status::WT_RENAMED, "renamed"),
        (Status::INDEX_TYPECHANGE | Status::WT_TYPECHANGE, "type_changed"),
        (Status::INDEX_MODIFIED | Status::WT_MODIFIED, "modified"),
    ]
    .into_iter()
    .find(|(flags, _)| status.intersects(*flags))
    .map(|(_, word)| word)
}
