//! Finding and opening a repository that may be hostile: a check of its git folder first, then
//! libgit2, then a check that it did not lead elsewhere; all of it on a thread that is abandoned
//! when it takes too long.

use std::{
    collections::BTreeMap,
    io::Read as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use cairn_protocol::error::{Failure, Reason};
use git2::{Repository, RepositoryOpenFlags};

use super::pipes;
use crate::root::Root;

/// Most simultaneous reads of one repository and of all, abandoned ones included: a hostile
/// repository may block a read for ever.
const MAX_OF_REPOSITORY: usize = 4;
const MAX_RUNNING: usize = 64;
static RUNNING: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

/// Wait for an answer before named pipes that may block it are searched; interval in which their
/// other ends are opened then; and how long that continues after the caller has given up.
const PATIENCE: Duration = Duration::from_millis(250);
const RELEASE_EVERY: Duration = Duration::from_millis(4);
const RELEASE_FOR: Duration = Duration::from_secs(10);

/// Most alternates in a chain; libgit2 follows as many.
const MAX_ALTERNATES: usize = 5;

/// Paths in a git folder that libgit2 reads by itself.
const READ_AT_ONCE: [&str; 20] = [
    "HEAD",
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "index",
    "info",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "logs",
    "logs/HEAD",
    "modules",
    "objects",
    "objects/info",
    "objects/info/alternates",
    "objects/pack",
    "packed-refs",
    "refs",
    "shallow",
];

/// A repository that was checked.
#[derive(Debug, Clone)]
pub(super) struct RepoPaths {
    /// The folder that contains `.git`, canonical; the git folder itself for a bare repository.
    pub(super) top: PathBuf,
    /// The git folder, and the one that it shares with other work trees.
    pub(super) git_dirs: Vec<PathBuf>,
}

/// Returns the repository that contains the folder at `rel`: the nearest `.git` from there up to
/// the root, never above it. `None` when there is none, or one that leads out of the declared
/// roots.
///
/// # Errors
/// Errors of opening the folder; `GitFailed` for a repository that cannot be read without blocking.
pub(super) fn find(root: &Root, rel: &str) -> Result<Option<RepoPaths>, Failure> {
    let (_, real) = root.open_dir(rel)?;
    for top in real.ancestors().take_while(|a| a.starts_with(&root.path)) {
        let dot_git = top.join(".git");
        if std::fs::symlink_metadata(&dot_git).is_err() {
            continue;
        }
        return match look_at(root, top, &dot_git) {
            Ok(repo_paths) => without_traps(repo_paths).map(Some),
            Err(why) => {
                tracing::warn!(folder = %dot_git.display(), why, "not recognized as a repository");
                Ok(None)
            }
        };
    }
    Ok(None)
}

/// Returns the repository in exactly this folder, with or without a work tree, for a clone of it.
///
/// # Errors
/// `GitFailed` with the reason why it cannot be read.
pub(super) fn find_here(root: &Root, folder: &Path) -> Result<RepoPaths, Failure> {
    let dot_git = folder.join(".git");
    let repo_paths = if std::fs::symlink_metadata(&dot_git).is_ok() {
        look_at(root, folder, &dot_git)
    } else {
        let repo_paths =
            RepoPaths { top: folder.to_path_buf(), git_dirs: vec![folder.to_path_buf()] };
        look_inside(root, folder).map(|()| repo_paths)
    };
    let refuse = |why| {
        Failure::new(
            Reason::GitFailed,
            format!("'{}': {why}", crate::root::display_text(&folder.to_string_lossy())),
        )
    };
    without_traps(repo_paths.map_err(refuse)?)
}

fn without_traps(repo_paths: RepoPaths) -> Result<RepoPaths, Failure> {
    let trap = repo_paths
        .git_dirs
        .iter()
        .find_map(|dir| pipes::find_trap(&repo_paths.top, dir, &READ_AT_ONCE));
    let Some(trap) = trap else { return Ok(repo_paths) };
    let trap = crate::root::display_text(&trap.to_string_lossy());
    Err(Failure::new(
        Reason::GitFailed,
        format!("'{trap}' is a pipe, socket or device: the repository is not read"),
    ))
}

/// Opens the result of [`find`]. `None` when its configuration places its files elsewhere.
pub(super) fn open(repo_paths: &RepoPaths) -> Result<Option<Repository>, git2::Error> {
    let none: [&std::ffi::OsStr; 0] = [];
    let repo = Repository::open_ext(&repo_paths.top, RepositoryOpenFlags::NO_SEARCH, none)?;
    let here =
        repo.workdir().and_then(|w| w.canonicalize().ok()).is_some_and(|w| w == repo_paths.top);
    if !here {
        tracing::warn!(folder = %repo_paths.top.display(), "not recognized as a repository: its work tree is elsewhere");
    }
    Ok(here.then_some(repo))
}

/// Checks a git folder: it and all paths that it names must lie in declared roots.
fn look_at(root: &Root, top: &Path, dot_git: &Path) -> Result<RepoPaths, &'static str> {
    let meta = std::fs::symlink_metadata(dot_git).map_err(|_| "it cannot be read")?;
    let git_dir = match () {
        () if meta.is_dir() => dot_git.to_path_buf(),
        () if meta.is_symlink() => dot_git.to_path_buf(),
        () if meta.is_file() => {
            let text = read_short(dot_git).ok_or("its .git file cannot be read")?;
            let target = text
                .trim()
                .strip_prefix("gitdir:")
                .ok_or("its .git file does not name a folder")?;
            top.join(target.trim())
        }
        () => return Err("its .git is neither a folder nor a file"),
    };
    let git_dir = contained(root, &git_dir).or_else(|why| linked(dot_git, &git_dir).ok_or(why))?;
    look_inside(root, &git_dir)?;
    let common = read_short(&git_dir.join("commondir"));
    let mut git_dirs = vec![git_dir];
    if let Some(text) = common {
        let git_dir = &git_dirs[0];
        let named = git_dir.join(text.trim());
        // A linked work tree has its git folder in `worktrees` of the common one.
        let above = || {
            let common = named.canonicalize().ok()?;
            (git_dir.parent()? == common.join("worktrees")).then_some(common)
        };
        let common = contained(root, &named).or_else(|why| above().ok_or(why))?;
        look_inside(root, &common)?;
        git_dirs.push(common);
    }
    Ok(RepoPaths { top: top.to_path_buf(), git_dirs })
}

/// Returns true if the folder `worktree` is a linked work tree of the repository in `repository`:
/// its `.git` file names a git folder there, which names the work tree in turn.
pub fn is_worktree_of(worktree: &Path, repository: &Path) -> bool {
    let common = |top: &Path| -> Option<PathBuf> {
        let dot_git = top.join(".git");
        if std::fs::symlink_metadata(&dot_git).ok()?.is_dir() {
            return dot_git.canonicalize().ok();
        }
        let text = read_short(&dot_git)?;
        let git_dir = linked(&dot_git, &top.join(text.trim().strip_prefix("gitdir:")?.trim()))?;
        let common = git_dir.join(read_short(&git_dir.join("commondir"))?.trim());
        let common = common.canonicalize().ok()?;
        (git_dir.parent()? == common.join("worktrees")).then_some(common)
    };
    let is_file = std::fs::symlink_metadata(worktree.join(".git")).is_ok_and(|m| m.is_file());
    is_file && common(worktree).is_some_and(|dir| common(repository) == Some(dir))
}

/// Returns the git folder outside of the declared roots that a `.git` file names, if that folder
/// names the work tree in turn: as linked work trees and submodules do. A file from elsewhere that
/// points to another repository has no such entry there.
fn linked(dot_git: &Path, git_dir: &Path) -> Option<PathBuf> {
    if !std::fs::symlink_metadata(dot_git).is_ok_and(|meta| meta.is_file()) {
        return None;
    }
    let git_dir = git_dir.canonicalize().ok().filter(|dir| is_own(dir))?;
    let top = dot_git.parent()?.canonicalize().ok()?;
    let is_worktree = || {
        let named = PathBuf::from(read_short(&git_dir.join("gitdir"))?.trim());
        let named = if named.is_absolute() { named } else { git_dir.join(named) };
        Some(named.canonicalize().ok()? == top.join(".git"))
    };
    let is_submodule = || {
        let config = read_short(&git_dir.join("config"))?;
        let named = config.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim().eq_ignore_ascii_case("worktree")).then(|| value.trim().to_owned())
        })?;
        Some(git_dir.join(named).canonicalize().ok()? == top)
    };
    (is_worktree() == Some(true) || is_submodule() == Some(true)).then_some(git_dir)
}

/// True for a folder of this user.
fn is_own(folder: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let uid = rustix::process::geteuid().as_raw();
        std::fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir() && meta.uid() == uid)
    }
    #[cfg(not(unix))]
    {
        let _unknown = folder;
        false
    }
}

fn look_inside(root: &Root, git_dir: &Path) -> Result<(), &'static str> {
    for name in READ_AT_ONCE {
        let path = git_dir.join(name);
        let Ok(meta) = std::fs::symlink_metadata(&path) else { continue };
        if meta.is_symlink() {
            contained(root, &path)?;
        }
    }
    check_alternates(root, &git_dir.join("objects"), 0)
}

/// Checks the object folders of other repositories that a clone borrows from, as `git clone
/// --shared` sets up. They add objects, not references, so that nothing is read of them but what a
/// commit of this repository names; outside of the declared roots they must belong to this user.
fn check_alternates(root: &Root, objects: &Path, depth: usize) -> Result<(), &'static str> {
    let alternates = objects.join("info/alternates");
    // A pipe is rejected as such.
    if !std::fs::metadata(&alternates).is_ok_and(|meta| meta.is_file()) {
        return Ok(());
    }
    if depth == MAX_ALTERNATES {
        return Err("its alternates have too many of their own");
    }
    let text = read_short(&alternates).ok_or("its list of alternates cannot be read")?;
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let named = objects.join(line);
        let borrowed = contained(root, &named).or_else(|why| {
            let real = named.canonicalize().map_err(|_| why)?;
            let parts = ["pack", "info"].map(|part| real.join(part));
            let is_plain =
                |part: &PathBuf| std::fs::symlink_metadata(part).is_err() || is_own(part);
            if is_own(&real) && parts.iter().all(is_plain) { Ok(real) } else { Err(why) }
        })?;
        check_alternates(root, &borrowed, depth + 1)?;
    }
    Ok(())
}

fn contained(root: &Root, path: &Path) -> Result<PathBuf, &'static str> {
    let real = path.canonicalize().map_err(|_| "it names a folder that does not exist")?;
    if root.declared_contains(&real) {
        Ok(real)
    } else {
        Err("it leads outside the declared roots")
    }
}

/// Reads a text file if it is a short one.
fn read_short(path: &Path) -> Option<String> {
    let file =
        std::fs::File::open(std::fs::metadata(path).ok().filter(|m| m.is_file()).map(|_| path)?)
            .ok()?;
    let mut text = String::new();
    file.take(64 * 1024).read_to_string(&mut text).ok()?;
    Some(text)
}

/// A repository that is being read on a separate thread.
pub(super) struct Reading<T> {
    answers: mpsc::Receiver<T>,
    is_finished: Arc<AtomicBool>,
    repo_paths: RepoPaths,
    pipes: Option<Vec<PathBuf>>,
}

impl<T> Reading<T> {
    /// Returns the next answer. If it is late, named pipes of the repository that may block it are
    /// opened and closed at their other end, so that their reader finds them empty.
    ///
    /// # Errors
    /// `Timeout` at the deadline, `Disconnected` when there are no more.
    pub(super) fn next(&mut self, deadline: Instant) -> Result<T, mpsc::RecvTimeoutError> {
        let patient = Instant::now() + PATIENCE;
        loop {
            let now = Instant::now();
            let pause = match &self.pipes {
                Some(pipes) if !pipes.is_empty() => RELEASE_EVERY,
                Some(_) => deadline.saturating_duration_since(now),
                None => patient.saturating_duration_since(now),
            };
            match self.answers.recv_timeout(pause.min(deadline.saturating_duration_since(now))) {
                Err(mpsc::RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                end => return end,
            }
            let pipes = self.pipes.get_or_insert_with(|| pipes::below(&self.repo_paths.folders()));
            pipes::release(pipes);
        }
    }
}

impl RepoPaths {
    /// Returns the folders that a reader of the repository may read.
    fn folders(&self) -> Vec<PathBuf> {
        let outside = self.git_dirs.iter().filter(|dir| !dir.starts_with(&self.top));
        std::iter::once(&self.top).chain(outside).cloned().collect()
    }
}

impl<T> Drop for Reading<T> {
    fn drop(&mut self) {
        if self.is_finished.load(Ordering::Acquire) {
            return;
        }
        let (is_finished, folders) = (Arc::clone(&self.is_finished), self.repo_paths.folders());
        // Releases a thread that blocks at a pipe, so that it does not count against the repository
        // for ever.
        let _unreleased = std::thread::Builder::new().name("git-release".into()).spawn(move || {
            let until = Instant::now() + RELEASE_FOR;
            let pipes = pipes::below(&folders);
            while !pipes.is_empty()
                && !is_finished.load(Ordering::Acquire)
                && Instant::now() < until
            {
                pipes::release(&pipes);
                std::thread::sleep(RELEASE_EVERY);
            }
        });
    }
}

/// A running read, counted for its repository.
struct Slot {
    top: PathBuf,
    is_finished: Arc<AtomicBool>,
}

impl Slot {
    fn take(top: &Path) -> Result<Slot, Failure> {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let (own, all) = (running.get(top).copied().unwrap_or(0), running.values().sum::<usize>());
        if own >= MAX_OF_REPOSITORY || all >= MAX_RUNNING {
            let text = format!("{own} reads of this git repository and {all} in total are running");
            return Err(Failure::new(Reason::Overloaded, text));
        }
        running.insert(top.to_path_buf(), own + 1);
        Ok(Slot { top: top.to_path_buf(), is_finished: Arc::default() })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        match running.get_mut(&self.top) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(running.remove(&self.top)),
        }
        self.is_finished.store(true, Ordering::Release);
    }
}

/// Runs `work` on a separate thread; its messages can be received with a deadline. A thread that
/// never finishes is abandoned, up to [`MAX_OF_REPOSITORY`] of them for a repository.
///
/// # Errors
/// `Overloaded`; `GitFailed` without a thread.
pub(super) fn on_thread<T: Send + 'static>(
    repo_paths: &RepoPaths,
    work: impl FnOnce(&mpsc::Sender<T>) + Send + 'static,
) -> Result<Reading<T>, Failure> {
    let slot = Slot::take(&repo_paths.top)?;
    let is_finished = Arc::clone(&slot.is_finished);
    let (tx, answers) = mpsc::channel();
    std::thread::Builder::new()
        .name("git".into())
        .spawn(move || {
            let _slot = slot;
            work(&tx);
        })
        .map_err(|e| Failure::new(Reason::GitFailed, format!("starting a thread: {e}")))?;
    Ok(Reading { answers, is_finished, repo_paths: repo_paths.clone(), pipes: None })
}
