//! Updates an earlier clone: with the same safety as the clone, or not at all.

use std::{path::Path, time::Duration};

use cairn_protocol::error::{Failure, Reason};
use git2::Repository;

use super::{
    CloneRequest, pipes,
    run::{command, run},
};

/// Time limit of a fetch; an outdated clone is better than a long wait for an unavailable network.
const LIMIT: Duration = Duration::from_secs(120);
/// Most bytes of a clone's configuration; git writes a few hundred.
const MAX_CONFIG: u64 = 64 * 1024;

/// Keys that git writes into the configuration of a clone. None of them names a program.
const WRITTEN_BY_CLONE: [&str; 10] = [
    "core.repositoryformatversion",
    "core.filemode",
    "core.bare",
    "core.logallrefupdates",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "extensions.objectformat",
    "remote.origin.url",
    "remote.origin.fetch",
];
/// Keys that git writes for each branch.
const WRITTEN_OF_BRANCHES: [&str; 3] = ["remote", "merge", "rebase"];

/// Fetches `branch` and checks it out; returns the reason if that failed. Nothing of the user's is
/// lost: changed files and their own commits remain.
///
/// # Errors
/// `Cancelled`.
pub(super) fn fetch(
    request: &CloneRequest,
    repo: &Repository,
    branch: &str,
    progress: &mut dyn FnMut(&'static str, f64),
    cancelled: &dyn Fn() -> bool,
) -> Result<Option<String>, Failure> {
    if let Err(why) = plain(&request.dest) {
        return Ok(Some(format!("not fetched: {why}")));
    }
    let remote = format!("refs/remotes/origin/{branch}");
    let head = || repo.head().ok()?.target();
    let theirs = || repo.refname_to_id(&remote).ok();
    if head() != theirs() {
        return Ok(Some("not fetched: it has local commits".into()));
    }
    let git = || {
        let mut git = command(&request.dest, &request.source);
        git.arg("--git-dir").arg(request.dest.join(".git")).arg("--work-tree").arg(&request.dest);
        git
    };
    let task = request.task("fetching", request.limit.min(LIMIT));
    let mut get = git();
    get.args(["fetch", "--progress", "--no-tags", "--no-recurse-submodules", "--"])
        .arg(request.source.url())
        .arg(format!("+refs/heads/{branch}:{remote}"));
    if let Some(why) = failed(run(get, &task, progress, cancelled))? {
        return Ok(Some(format!("not fetched: {why}")));
    }
    if head() == theirs() {
        return Ok(None);
    }
    let mut take = git();
    // Fails if a file that must change has local changes.
    take.args(["reset", "--quiet", "--keep", &remote]);
    let why = failed(run(take, &task, progress, cancelled))?;
    Ok(why.map(|why| format!("fetched and not checked out: {why}")))
}

/// Returns the reason of a failure; cancellation is passed on as an error.
fn failed(outcome: Result<(), Failure>) -> Result<Option<String>, Failure> {
    match outcome {
        Ok(()) => Ok(None),
        Err(failure) if failure.reason == Reason::Cancelled => Err(failure),
        Err(failure) => Ok(Some(failure.message)),
    }
}

/// Checks that a clone is as git created it: a folder of its own and a configuration that names no
/// program.
fn plain(dest: &Path) -> Result<(), &'static str> {
    let dir = dest.join(".git");
    let meta = |path: &Path| std::fs::symlink_metadata(path).ok();
    if !meta(&dir).is_some_and(|m| m.is_dir()) {
        return Err("its .git is not a folder");
    }
    if pipes::find_foreign(&dir).is_some() {
        return Err("a part of its .git is neither a file nor a folder");
    }
    let file = dir.join("config");
    if !meta(&file).is_some_and(|m| m.is_file() && m.len() <= MAX_CONFIG) {
        return Err("its configuration cannot be read");
    }
    let config = git2::Config::open(&file).map_err(|_| "its configuration cannot be read")?;
    let mut entries = config.entries(None).map_err(|_| "its configuration cannot be read")?;
    while let Some(entry) = entries.next() {
        let known = entry.ok().and_then(|e| e.name().ok().map(written_by_git)).unwrap_or(false);
        if !known {
            return Err("its configuration was changed since it was cloned");
        }
    }
    Ok(())
}

fn written_by_git(key: &str) -> bool {
    let of_branch = || {
        let (_, last) = key.strip_prefix("branch.")?.rsplit_once('.')?;
        Some(WRITTEN_OF_BRANCHES.contains(&last))
    };
    WRITTEN_BY_CLONE.contains(&key) || of_branch().unwrap_or(false)
}
