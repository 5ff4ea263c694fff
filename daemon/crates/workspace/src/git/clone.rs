//! Cloning with the user's own `git`: no prompt, no program that a repository names, no half clone left behind.

use std::{
    io::Read as _,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use cairn_protocol::{
    error::{Failure, Reason},
    git::CloneResult,
};
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};

use super::{
    git_failed,
    progress::{Words, reason},
    url::{check_url, same_remote, without_credentials},
};
use crate::root::shown;

/// Longest time for a clone unless the request says otherwise.
pub const CLONE_LIMIT: Duration = Duration::from_secs(30 * 60);

/// How often cancelling and the time limit are looked at.
const TICK: Duration = Duration::from_millis(25);
/// How long the output of a git that ended is still waited for; a child of it may hold it open for ever.
const GRACE: Duration = Duration::from_millis(500);

/// Configuration that wins over every file: nothing that a repository or a template brings is run.
const NEUTRAL: [(&str, &str); 10] = [
    ("protocol.ext.allow", "never"),
    ("protocol.fd.allow", "never"),
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.askPass", ""),
    ("credential.interactive", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// What to clone and where to.
#[derive(Debug, Clone)]
pub struct CloneRequest {
    /// The remote; see [`check_url`].
    pub url: String,
    /// The branch; the remote's default when `None`.
    pub branch: Option<String>,
    /// The folder to make, absolute; its parent is made if need be.
    pub dest: PathBuf,
    /// Longest time; [`CLONE_LIMIT`] is a good one.
    pub limit: Duration,
}

/// Clones a repository and blocks until it is done; `progress` gets the stage (`counting`, `compressing`, `receiving`,
/// `resolving`, `checkout`) and 0 to 100, `cancelled` is asked every 25 ms. The clone is made beside `dest` under a name with
/// `.partial-` in it and renamed when its checkout is verified. An earlier clone of the same remote (and branch) is
/// given as it is, marked as reused; it is not fetched, since its own configuration would then decide what runs.
///
/// # Errors
/// `BadUrl`, `InvalidParams` (branch), `DestinationExists`, `AuthenticationRequired`, `CloneFailed` (with git's words),
/// `DiskFull`, `Cancelled`, `GitFailed` (no `git` on this machine).
pub fn git_clone(
    request: &CloneRequest,
    progress: &mut dyn FnMut(&'static str, f64),
    cancelled: &dyn Fn() -> bool,
) -> Result<CloneResult, Failure> {
    check_url(&request.url)?;
    if let Some(branch) = &request.branch
        && (branch.is_empty()
            || branch.len() > 250
            || branch.starts_with('-')
            || branch.chars().any(char::is_control))
    {
        return Err(Failure::new(Reason::InvalidParams, format!("'{}' is not a branch name", shown(branch))));
    }
    if std::fs::symlink_metadata(&request.dest).is_ok() && !is_empty_dir(&request.dest) {
        return reuse(request);
    }
    let partial = Partial::beside(&request.dest)?;
    run(request, &partial.0, progress, cancelled)?;
    let (head, branch) = checked_out(&partial.0)?;
    std::fs::rename(&partial.0, &request.dest).map_err(|e| match e.kind() {
        std::io::ErrorKind::DirectoryNotEmpty | std::io::ErrorKind::AlreadyExists => {
            exists(&request.dest, "it was made meanwhile")
        }
        _ => io_failed(&request.dest, &e),
    })?;
    Ok(CloneResult { path: request.dest.display().to_string(), head, branch, reused: false })
}

/// Removes what clones that were killed left in a folder of clones; gives how many there were. Call it when no clone
/// is at work.
pub fn remove_partials(workspaces: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(workspaces) else { return 0 };
    let partial = |e: &std::fs::DirEntry| {
        e.file_name().to_string_lossy().contains(".partial-") && e.file_type().is_ok_and(|t| t.is_dir())
    };
    entries.flatten().filter(partial).filter(|e| std::fs::remove_dir_all(e.path()).is_ok()).count()
}

/// A clone in the making; removed unless it was renamed.
struct Partial(PathBuf);

impl Partial {
    fn beside(dest: &Path) -> Result<Partial, Failure> {
        let (Some(parent), Some(name)) = (dest.parent(), dest.file_name()) else {
            return Err(Failure::new(
                Reason::InvalidParams,
                format!("'{}' is no place for a clone", dest.display()),
            ));
        };
        std::fs::create_dir_all(parent).map_err(|e| io_failed(parent, &e))?;
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|e| Failure::new(Reason::Internal, format!("no random number: {e}")))?;
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
            tracing::warn!(folder = %self.0.display(), error = %e, "a part of a clone is left");
        }
    }
}

fn command(request: &CloneRequest, to: &Path) -> Command {
    let mut git = Command::new("git");
    git.args(["clone", "--progress", "--origin=origin", "--template=", "--no-recurse-submodules"]);
    if let Some(branch) = &request.branch {
        git.arg(format!("--branch={branch}"));
    }
    git.arg("--").arg(&request.url).arg(to);
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    ] {
        git.env_remove(name);
    }
    for name in [
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
        "GIT_TEMPLATE_DIR",
        "GIT_CONFIG_PARAMETERS",
        "GIT_TRACE",
        "GIT_CURL_VERBOSE",
    ] {
        git.env_remove(name);
    }
    git.env("GIT_CONFIG_COUNT", NEUTRAL.len().to_string());
    for (n, (key, value)) in NEUTRAL.iter().enumerate() {
        git.env(format!("GIT_CONFIG_KEY_{n}"), key).env(format!("GIT_CONFIG_VALUE_{n}"), value);
    }
    git.env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "")
        .env("SSH_ASKPASS", "")
        .env("SSH_ASKPASS_REQUIRE", "never");
    git.env("GCM_INTERACTIVE", "never")
        .env("GIT_LFS_SKIP_SMUDGE", "1")
        .env("GIT_PAGER", "cat")
        .env("LC_ALL", "C");
    if std::env::var_os("GIT_SSH_COMMAND").is_none()
        && std::env::var_os("GIT_SSH").is_none()
        && !has_ssh_command()
    {
        git.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes -o ConnectTimeout=20");
    }
    git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // Its own group, so that its helpers end with it.
    git.process_group(0);
    if let Some(parent) = to.parent() {
        git.current_dir(parent);
    }
    git
}

/// Whether the user's own configuration names an ssh command, which the environment's would override.
fn has_ssh_command() -> bool {
    git2::Config::open_default().is_ok_and(|c| c.get_string("core.sshCommand").is_ok())
}

fn run(
    request: &CloneRequest,
    to: &Path,
    progress: &mut dyn FnMut(&'static str, f64),
    cancelled: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let mut child = command(request, to).spawn().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            Failure::new(Reason::GitFailed, "no git on this machine's path; install git to clone")
        }
        _ => Failure::new(Reason::GitFailed, format!("starting git: {e}")),
    })?;
    let output = read_output(&mut child);
    let mut words = Words::default();
    let end =
        supervise(&mut child, &output, request.limit, cancelled, &mut |bytes| words.feed(bytes, progress));
    // Whatever the end, nothing of its group stays; the leader is waited for so that its id is not reused before.
    if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let status =
        child.wait().map_err(|e| Failure::new(Reason::GitFailed, format!("waiting for git: {e}")))?;
    let url = without_credentials(&request.url);
    match end {
        End::Exited => {}
        End::Cancelled => {
            return Err(Failure::new(Reason::Cancelled, format!("the clone of {url} was cancelled")));
        }
        End::TimedOut => {
            let text = format!("cloning {url}: not done within {} s", request.limit.as_secs());
            return Err(Failure::new(Reason::CloneFailed, text));
        }
    }
    let grace = Instant::now() + GRACE;
    while let Ok(bytes) = output.recv_deadline(grace) {
        words.feed(&bytes, progress);
    }
    if status.success() {
        return Ok(());
    }
    let words = words.finish().replace(&request.url, &url);
    Err(Failure::new(reason(&words), format!("cloning {url}: {words}")))
}

enum End {
    Exited,
    Cancelled,
    TimedOut,
}

fn supervise(
    child: &mut Child,
    output: &Receiver<Vec<u8>>,
    limit: Duration,
    cancelled: &dyn Fn() -> bool,
    feed: &mut dyn FnMut(&[u8]),
) -> End {
    let deadline = Instant::now() + limit;
    let mut open = true;
    loop {
        match open.then(|| output.recv_timeout(TICK)) {
            Some(Ok(bytes)) => feed(&bytes),
            Some(Err(RecvTimeoutError::Disconnected)) => open = false,
            Some(Err(RecvTimeoutError::Timeout)) => {}
            None => std::thread::sleep(TICK),
        }
        if cancelled() {
            return End::Cancelled;
        }
        if Instant::now() >= deadline {
            return End::TimedOut;
        }
        if !matches!(child.try_wait(), Ok(None)) {
            return End::Exited;
        }
    }
}

/// Reads a child's error output on a thread; the thread ends with the output, or when nobody listens any more.
fn read_output(child: &mut Child) -> Receiver<Vec<u8>> {
    let (tx, rx) = bounded(64);
    if let Some(mut stderr) = child.stderr.take() {
        std::thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(n) = stderr.read(&mut block) {
                if n == 0 || tx.send(block[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
    }
    rx
}

/// Head and branch of a clone whose checkout is there.
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

/// An earlier clone at the destination, when it is one of the same remote.
fn reuse(request: &CloneRequest) -> Result<CloneResult, Failure> {
    let none: [&std::ffi::OsStr; 0] = [];
    let repo = git2::Repository::open_ext(&request.dest, git2::RepositoryOpenFlags::NO_SEARCH, none)
        .map_err(|_| exists(&request.dest, "it is not a clone"))?;
    let remote = repo.find_remote("origin").ok().and_then(|r| r.url().ok().map(str::to_owned));
    if !remote.as_deref().is_some_and(|r| same_remote(r, &request.url)) {
        let other = remote.map_or("no remote".into(), |r| without_credentials(&r));
        return Err(exists(&request.dest, &format!("it is a clone of {other}")));
    }
    let (head, branch) = checked_out(&request.dest)?;
    if request.branch.is_some() && request.branch != branch {
        return Err(exists(&request.dest, "it has another branch checked out"));
    }
    Ok(CloneResult { path: request.dest.display().to_string(), head, branch, reused: true })
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
