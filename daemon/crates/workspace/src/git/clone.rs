//! Cloning with the user's own `git`: no prompt, no program that a repository names, no partial
//! clone left behind.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use cairn_protocol::{
    error::{Failure, Reason},
    git::CloneResult,
};

use super::{
    fetch::fetch,
    git_failed,
    run::{Task, command, run},
    source::{CloneSource, Reached},
    url::{same_remote, without_credentials},
};
use crate::root::display_text;

/// Default time limit of a clone.
pub const CLONE_LIMIT: Duration = Duration::from_secs(30 * 60);

/// Longest time without output from a git that reads a folder of this machine, and from one that
/// reads a server: a slow server may take long to prepare a large pack.
const SILENCE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10 * 60));

/// A clone to make: its source and target.
#[derive(Debug)]
pub struct CloneRequest {
    /// The remote, after it was judged.
    pub source: CloneSource,
    /// The branch; the remote's default when `None`.
    pub branch: Option<String>,
    /// The folder to create, absolute; its parent is created if needed.
    pub dest: PathBuf,
    /// Time limit; [`CLONE_LIMIT`] is a good default.
    pub limit: Duration,
}

/// Clones a repository and blocks until it is done; `progress` gets the stage (`counting`,
/// `compressing`, `receiving`, `resolving`, `checkout`) and 0 to 100, `cancelled` is called every
/// 25 ms. The clone is created beside `dest` under a name with `.partial-` in it and renamed when
/// its checkout is verified. An earlier clone of the same remote (and branch) is updated and
/// returned, marked as reused; if the update fails, it is returned unchanged, with the reason.
///
/// # Errors
/// `InvalidParams` (branch), `DestinationExists`, `AuthenticationRequired`, `CloneFailed` (with
/// git's message), `DiskFull`, `Cancelled`, `GitFailed` (no `git` on this machine).
pub fn git_clone(
    request: &CloneRequest,
    progress: &mut dyn FnMut(&'static str, f64),
    cancelled: &dyn Fn() -> bool,
) -> Result<CloneResult, Failure> {
    if let Some(branch) = &request.branch
        && (branch.is_empty()
            || branch.len() > 250
            || branch.starts_with('-')
            || branch.chars().any(char::is_control))
    {
        return Err(Failure::new(
            Reason::InvalidParams,
            format!("'{}' is not a branch name", display_text(branch)),
        ));
    }
    if std::fs::symlink_metadata(&request.dest).is_ok() && !is_empty_dir(&request.dest) {
        return reuse(request, progress, cancelled);
    }
    let partial = Partial::beside(&request.dest)?;
    let mut git = command(partial.0.parent().unwrap_or(Path::new("/")), &request.source);
    git.args(["clone", "--progress", "--origin=origin", "--template=", "--no-recurse-submodules"]);
    if let Some(branch) = &request.branch {
        git.arg(format!("--branch={branch}"));
    }
    git.arg("--").arg(request.source.url()).arg(&partial.0);
    run(git, &request.task("cloning", request.limit), progress, cancelled)?;
    let (head, branch) = checked_out(&partial.0)?;
    std::fs::rename(&partial.0, &request.dest).map_err(|e| match e.kind() {
        std::io::ErrorKind::DirectoryNotEmpty | std::io::ErrorKind::AlreadyExists => {
            exists(&request.dest, "it was created in the meantime")
        }
        _ => io_failed(&request.dest, &e),
    })?;
    Ok(CloneResult {
        path: request.dest.display().to_string(),
        head,
        branch,
        reused: false,
        stale: None,
    })
}

impl CloneRequest {
    pub(super) fn task(&self, what: &'static str, limit: Duration) -> Task<'_> {
        let silence = match self.source.reached {
            Reached::Folder { .. } => SILENCE.0,
            Reached::Host(_) => SILENCE.1,
        };
        Task { what, url: self.source.url(), limit, silence }
    }
}

/// Removes the remains of killed clones in a folder of clones; returns their number. Call it only
/// when no clone is running.
pub fn remove_partials(workspaces: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(workspaces) else { return 0 };
    let partial = |e: &std::fs::DirEntry| {
        e.file_name().to_string_lossy().contains(".partial-")
            && e.file_type().is_ok_and(|t| t.is_dir())
    };
    entries.flatten().filter(partial).filter(|e| std::fs::remove_dir_all(e.path()).is_ok()).count()
}

/// An unfinished clone; removed unless it was renamed.
struct Partial(PathBuf);

impl Partial {
    fn beside(dest: &Path) -> Result<Partial, Failure> {
        let (Some(parent), Some(name)) = (dest.parent(), dest.file_name()) else {
            return Err(Failure::new(
                Reason::InvalidParams,
                format!("'{}' is not a valid location for a clone", dest.display()),
            ));
        };
        std::fs::create_dir_all(parent).map_err(|e| io_failed(parent, &e))?;
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|e| Failure::new(Reason::Internal, format!("cannot get random bytes: {e}")))?;
        let mut partial = name.to_os_string();
        partial.push(format!(".partial-{}", hex::encode(random)));
        Ok(Partial(parent.join(partial)))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if let Err(e) = std::fs::remove_dir_all(&self.0)
            && e.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %self.0.display(), error = %e, "a partial clone could not be removed");
        }
    }
}

/// Returns head and branch of a clone whose checkout exists.
fn checked_out(at: &Path) -> Result<(String, Option<String>), Failure> {
    let bad = |e: git2::Error| match e.code() {
        git2::ErrorCode::UnbornBranch => {
            Failure::new(Reason::CloneFailed, "the repository is empty: it has no commit")
        }
        _ => git_failed("verifying the clone", &e),
    };
    let repo = git2::Repository::open(at).map_err(bad)?;
    let head = repo.head().map_err(bad)?;
    let commit = head.peel_to_commit().map_err(bad)?;
    let branch = head.is_branch().then(|| head.shorthand().ok().map(str::to_owned)).flatten();
    Ok((commit.id().to_string(), branch))
}

/// Returns an earlier clone at the destination, if it is one of the same remote.
fn reuse(
    request: &CloneRequest,
    progress: &mut dyn FnMut(&'static str, f64),
    cancelled: &dyn Fn() -> bool,
) -> Result<CloneResult, Failure> {
    if !std::fs::symlink_metadata(&request.dest).is_ok_and(|meta| meta.is_dir()) {
        return Err(exists(&request.dest, "it is not a folder"));
    }
    let none: [&std::ffi::OsStr; 0] = [];
    let repo =
        git2::Repository::open_ext(&request.dest, git2::RepositoryOpenFlags::NO_SEARCH, none)
            .map_err(|_| exists(&request.dest, "it is not a clone"))?;
    let remote = repo.find_remote("origin").ok().and_then(|r| r.url().ok().map(str::to_owned));
    if !remote.as_deref().is_some_and(|r| same_remote(r, request.source.url())) {
        let other = remote.map_or("no remote".into(), |r| without_credentials(&r));
        return Err(exists(&request.dest, &format!("it is a clone of {other}")));
    }
    let (_, branch) = checked_out(&request.dest)?;
    if request.branch.is_some() && request.branch != branch {
        return Err(exists(&request.dest, "it has another branch checked out"));
    }
    let stale = match branch {
        Some(branch) => fetch(request, &repo, &branch, progress, cancelled)?,
        None => Some("no branch is checked out".to_owned()),
    };
    let (head, branch) = checked_out(&request.dest)?;
    Ok(CloneResult { path: request.dest.display().to_string(), head, branch, reused: true, stale })
}

fn is_empty_dir(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|m| m.is_dir())
        && std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

fn exists(dest: &Path, why: &str) -> Failure {
    Failure::new(Reason::DestinationExists, format!("{} exists: {why}", dest.display()))
}

fn io_failed(path: &Path, error: &std::io::Error) -> Failure {
    let reason = match error.kind() {
        std::io::ErrorKind::StorageFull => Reason::DiskFull,
        _ => Reason::CloneFailed,
    };
    Failure::new(reason, format!("{}: {error}", path.display()))
}
