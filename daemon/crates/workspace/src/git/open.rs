//! Finding and opening a repository that may be hostile: a look at its git folder first, then libgit2, then a check
//! that it did not lead elsewhere; all of it on a thread that is given up when it takes too long.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use cairn_protocol::error::{Failure, Reason};
use git2::{Repository, RepositoryOpenFlags};

use crate::root::Root;

/// Most reads at work at once, those given up included: a pipe in a hostile repository may hold one for ever.
const MAX_AT_WORK: usize = 16;
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// What libgit2 reads by itself in a git folder.
const READ_AT_ONCE: [&str; 16] = [
    "HEAD",
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "index",
    "info",
    "info/attributes",
    "info/exclude",
    "objects",
    "objects/info",
    "objects/info/alternates",
    "objects/pack",
    "packed-refs",
    "refs",
    "shallow",
];

/// A repository that was looked at.
pub(super) struct Found {
    /// The folder with `.git` in it, canonical.
    pub(super) top: PathBuf,
}

/// The repository that holds the folder at `rel`: the nearest `.git` from there up to the root, never above it.
/// `None` when there is none, or one that leads out of the declared roots or cannot be read without waiting.
pub(super) fn find(root: &Root, rel: &str) -> Result<Option<Found>, Failure> {
    let (_, real) = root.open_dir(rel)?;
    for top in real.ancestors().take_while(|a| a.starts_with(&root.path)) {
        let dot_git = top.join(".git");
        if std::fs::symlink_metadata(&dot_git).is_err() {
            continue;
        }
        return Ok(match look_at(root, top, &dot_git) {
            Ok(()) => Some(Found { top: top.to_path_buf() }),
            Err(why) => {
                tracing::warn!(folder = %dot_git.display(), why, "not taken as a repository");
                None
            }
        });
    }
    Ok(None)
}

/// Opens what [`find`] found. `None` when its configuration puts its files elsewhere.
pub(super) fn open(found: &Found) -> Result<Option<Repository>, git2::Error> {
    let none: [&std::ffi::OsStr; 0] = [];
    let repo = Repository::open_ext(&found.top, RepositoryOpenFlags::NO_SEARCH, none)?;
    let here = repo.workdir().and_then(|w| w.canonicalize().ok()).is_some_and(|w| w == found.top);
    if !here {
        tracing::warn!(folder = %found.top.display(), "not taken as a repository: its work tree lies elsewhere");
    }
    Ok(here.then_some(repo))
}

/// Whether a git folder, and whatever it names, lies in declared roots and is made of files and folders.
fn look_at(root: &Root, top: &Path, dot_git: &Path) -> Result<(), &'static str> {
    let meta = std::fs::symlink_metadata(dot_git).map_err(|_| "it cannot be read")?;
    let git_dir = match () {
        () if meta.is_dir() => dot_git.to_path_buf(),
        () if meta.is_symlink() => dot_git.to_path_buf(),
        () if meta.is_file() => {
            let text = read_short(dot_git).ok_or("its .git file cannot be read")?;
            let target = text.trim().strip_prefix("gitdir:").ok_or("its .git file names no folder")?;
            top.join(target.trim())
        }
        () => return Err("its .git is neither a folder nor a file"),
    };
    let git_dir = contained(root, &git_dir)?;
    look_inside(root, &git_dir)?;
    if let Some(text) = read_short(&git_dir.join("commondir")) {
        let common = contained(root, &git_dir.join(text.trim()))?;
        look_inside(root, &common)?;
    }
    Ok(())
}

fn look_inside(root: &Root, git_dir: &Path) -> Result<(), &'static str> {
    for name in READ_AT_ONCE {
        let path = git_dir.join(name);
        let Ok(meta) = std::fs::symlink_metadata(&path) else { continue };
        if meta.is_symlink() {
            contained(root, &path)?;
        }
        match std::fs::metadata(&path) {
            Ok(meta) if meta.is_file() || meta.is_dir() => {}
            _ => return Err("a part of its git folder is neither a folder nor a file"),
        }
    }
    let alternates = git_dir.join("objects/info/alternates");
    if std::fs::symlink_metadata(&alternates).is_ok() {
        let text = read_short(&alternates).ok_or("its list of alternates cannot be read")?;
        for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
            contained(root, &git_dir.join("objects").join(line))?;
        }
    }
    Ok(())
}

fn contained(root: &Root, path: &Path) -> Result<PathBuf, &'static str> {
    let real = path.canonicalize().map_err(|_| "it names a folder that does not exist")?;
    if root.declared_contains(&real) { Ok(real) } else { Err("it leads out of the declared roots") }
}

/// A short text file, when it is one.
fn read_short(path: &Path) -> Option<String> {
    let file =
        std::fs::File::open(std::fs::metadata(path).ok().filter(|m| m.is_file()).map(|_| path)?).ok()?;
    let mut text = String::new();
    file.take(64 * 1024).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Runs `work` on a thread of its own; what it sends can be waited for. A thread that never ends is left behind, up to
/// [`MAX_AT_WORK`] of them.
pub(super) fn on_thread<T: Send + 'static>(
    work: impl FnOnce(&mpsc::Sender<T>) + Send + 'static,
) -> Result<mpsc::Receiver<T>, Failure> {
    struct Slot;
    impl Drop for Slot {
        fn drop(&mut self) {
            AT_WORK.fetch_sub(1, Ordering::AcqRel);
        }
    }
    let before = AT_WORK.fetch_add(1, Ordering::AcqRel);
    let slot = Slot;
    if before >= MAX_AT_WORK {
        return Err(Failure::new(
            Reason::Overloaded,
            format!("{MAX_AT_WORK} reads of git repositories are at work"),
        ));
    }
    let (tx, rx) = mpsc::channel();
    std::thread::Builder::new()
        .name("git".into())
        .spawn(move || {
            let _slot = slot;
            work(&tx);
        })
        .map_err(|e| Failure::new(Reason::GitFailed, format!("starting a thread: {e}")))?;
    Ok(rx)
}
