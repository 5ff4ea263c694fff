//! Empty placeholders reserve protected names that do not exist yet while commands run, so that a
//! command cannot create them. The last run in that workspace removes them, whichever daemon it
//! belongs to.

use std::{
    fs, io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use cairn_workspace::PLACEHOLDER_MODE;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, RawMode, Stat, fchmod, flock, fstat, mkdirat,
    openat, statat, unlinkat,
};

use super::spec::Expected;

/// Names at the top of a workspace that make programs run or loosen safety: read-only, also if they
/// do not exist.
pub(super) const PROTECTED: &[(&str, Form)] = &[
    (".git", Form::Folder),
    (".vscode", Form::Folder),
    (".idea", Form::Folder),
    (".envrc", Form::File),
    (".cairn.json", Form::File),
];

/// Protected if they exist: start files of shells and similar, for a workspace that is a home
/// folder.
pub(super) const PROTECTED_IF_THERE: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".gitconfig",
    ".gitmodules",
    ".mcp.json",
    ".claude",
    ".cursor",
    ".husky",
    ".ssh",
    ".gnupg",
    ".config",
];

/// Kind of a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Folder,
    File,
}

const MODE: RawMode = PLACEHOLDER_MODE;

/// Placeholders of one run.
pub(super) struct Placeholders {
    /// The workspace, with a shared lock that marks a run in it. Every placeholder is created and
    /// removed relative to it, so that a folder that takes the workspace's path gets none.
    folder: OwnedFd,
}

/// Creates placeholders for the protected names of `root` that do not exist. `expected` is the
/// judged identity of the folder, which another one does not have.
///
/// # Errors
/// A folder that was replaced, or a placeholder that cannot be created: the workspace then cannot
/// be protected.
pub(super) fn create_placeholders(
    root: &Path,
    expected: Option<&Expected>,
) -> io::Result<Placeholders> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(root, flags, Mode::empty())?;
    if let Some(expected) = expected
        && !expected.is(&fstat(&folder)?)
    {
        let text = format!("'{}' was replaced by another folder", root.display());
        return Err(io::Error::other(text));
    }
    flock(&folder, FlockOperation::LockShared)?;
    let placeholders = Placeholders { folder };
    for (name, form) in PROTECTED {
        match create(placeholders.folder.as_fd(), name, *form) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Ok(placeholders)
}

/// Creates one placeholder in an open folder, and follows no link.
fn create(folder: impl AsFd, name: &str, form: Form) -> io::Result<()> {
    let mode = Mode::from_raw_mode(MODE);
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let created = match form {
        Form::Folder => {
            mkdirat(&folder, name, mode)?;
            openat(&folder, name, flags | OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?
        }
        Form::File => {
            openat(&folder, name, flags | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, mode)?
        }
    };
    // The umask of the process may have removed bits.
    Ok(fchmod(&created, mode)?)
}

/// Returns true if an entry has the mode that only placeholders have.
fn is_placeholder(entry: &Stat) -> bool {
    entry.st_mode & 0o7777 == MODE
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        // Another run in this workspace still needs them.
        if flock(&self.folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            self.remove();
        }
        // Explicit unlock: a child that is starting at this moment has a copy of the open folder,
        // and would keep the lock.
        let _unlocked = flock(&self.folder, FlockOperation::Unlock);
    }
}

impl Placeholders {
    /// Returns patterns by which git ignores the placeholders; files of the user with these names
    /// are not among them.
    pub(super) fn ignore_patterns(&self) -> String {
        let names = PROTECTED.iter().map(|(name, _)| *name);
        let own = names.filter(|name| self.entry(name).is_some_and(|entry| is_placeholder(&entry)));
        own.map(|name| format!("/{name}\n")).collect()
    }

    /// Returns the state of an entry of the workspace, without following a link.
    fn entry(&self, name: &str) -> Option<Stat> {
        statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    fn remove(&self) {
        for (name, form) in PROTECTED {
            let Some(entry) = self.entry(name).filter(is_placeholder) else { continue };
            // Neither call removes anything that is not empty.
            let _result = match (form, FileType::from_raw_mode(entry.st_mode)) {
                (Form::Folder, FileType::Directory) => {
                    unlinkat(&self.folder, *name, AtFlags::REMOVEDIR)
                }
                (Form::File, FileType::RegularFile) if entry.st_size == 0 => {
                    unlinkat(&self.folder, *name, AtFlags::empty())
                }
                _ => Ok(()),
            };
        }
    }
}

/// Returns every `.git` beneath `root`, at any depth, without descending into one; at most `most`.
pub(super) fn repositories(root: &Path, most: usize) -> Vec<PathBuf> {
    let (mut repos, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name == ".git" {
                repos.push(entry.path());
                if repos.len() >= most {
                    return repos;
                }
            } else if entry.file_type().is_ok_and(|t| t.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    repos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_removed_with_last_run_only() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir(root.join(".vscode")).unwrap();
        fs::write(root.join(".envrc"), "x").unwrap();
        let first = create_placeholders(root, None).unwrap();
        let second = create_placeholders(root, None).unwrap();
        assert!(root.join(".git").is_dir() && root.join(".cairn.json").is_file());
        assert_eq!(first.ignore_patterns(), "/.git\n/.idea\n/.cairn.json\n");
        drop(first);
        assert!(root.join(".git").is_dir());
        drop(second);
        let mut names: Vec<_> =
            fs::read_dir(root).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".envrc", ".vscode"]);
    }

    /// Returns the identity of a folder, as it was judged.
    fn judged(path: &Path) -> Expected {
        use std::os::unix::fs::MetadataExt as _;
        let stat = fs::metadata(path).unwrap();
        Expected { path: path.to_owned(), device: stat.dev(), inode: stat.ino() }
    }

    #[test]
    fn folder_that_replaces_the_workspace_gets_no_placeholder() {
        let dir = tempfile::tempdir().unwrap();
        let [root, outside, away] = ["root", "outside", "away"].map(|n| dir.path().join(n));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&outside).unwrap();
        let expected = judged(&root);
        // Swapped before the start: by a link, and by the folder itself.
        fs::rename(&root, &away).unwrap();
        std::os::unix::fs::symlink(&outside, &root).unwrap();
        assert!(create_placeholders(&root, Some(&expected)).is_err());
        fs::remove_file(&root).unwrap();
        fs::rename(&outside, &root).unwrap();
        assert!(create_placeholders(&root, Some(&expected)).is_err());
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
        // Swapped during the run: those of the judged folder are removed, and nothing else.
        fs::rename(&root, &outside).unwrap();
        fs::rename(&away, &root).unwrap();
        let placeholders = create_placeholders(&root, Some(&expected)).unwrap();
        fs::rename(&root, &away).unwrap();
        std::os::unix::fs::symlink(&outside, &root).unwrap();
        let other = outside.join(".envrc");
        fs::write(&other, "").unwrap();
        let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o1444);
        fs::set_permissions(&other, mode).unwrap();
        assert_eq!(placeholders.ignore_patterns().lines().count(), PROTECTED.len());
        drop(placeholders);
        assert!(other.exists());
        assert_eq!(fs::read_dir(&away).unwrap().count(), 0);
    }

    #[test]
    fn no_placeholder_is_created_outside_while_the_path_is_swapped() {
        let dir = tempfile::tempdir().unwrap();
        let [root, outside, link] = ["root", "outside", "link"].map(|n| dir.path().join(n));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        let expected = judged(&root);
        let over = std::sync::atomic::AtomicBool::new(false);
        let is_over = || over.load(std::sync::atomic::Ordering::SeqCst);
        let (created, leaked) = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over() {
                    exchange(&root, &link);
                }
            });
            let (mut created, mut leaked) = (0, 0);
            for _ in 0..4000 {
                if let Ok(placeholders) = create_placeholders(&root, Some(&expected)) {
                    created += 1;
                    leaked += fs::read_dir(&outside).unwrap().count();
                    drop(placeholders);
                }
            }
            over.store(true, std::sync::atomic::Ordering::SeqCst);
            (created, leaked)
        });
        assert!(created > 0, "the race was never won by the workspace");
        assert_eq!(leaked + fs::read_dir(&outside).unwrap().count(), 0);
    }

    /// Swaps two names in one step, so that each always exists.
    #[cfg(target_os = "linux")]
    fn exchange(a: &Path, b: &Path) {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
    }

    #[cfg(not(target_os = "linux"))]
    fn exchange(a: &Path, b: &Path) {
        let third = a.with_extension("third");
        fs::rename(a, &third).unwrap();
        fs::rename(b, a).unwrap();
        fs::rename(&third, b).unwrap();
    }

    #[test]
    fn finds_repositories_at_any_depth() {
        let dir = tempfile::tempdir().unwrap();
        for path in [".git/x/.git", "a/b/c/.git", "d"] {
            fs::create_dir_all(dir.path().join(path)).unwrap();
        }
        fs::write(dir.path().join("d/.git"), "gitdir: x").unwrap();
        let mut repos = repositories(dir.path(), 100);
        repos.sort();
        let want: Vec<_> =
            [".git", "a/b/c/.git", "d/.git"].iter().map(|p| dir.path().join(p)).collect();
        assert_eq!(repos, want);
    }
}
