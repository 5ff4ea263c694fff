//! Empty placeholders reserve protected names that do not exist yet while commands run, so that a
//! command cannot create them. The last run in that workspace removes them, whichever daemon it
//! belongs to.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};

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

/// The mode that distinguishes a placeholder from any other empty file: sticky, and writable by no
/// user.
const MODE: u32 = 0o1444;

/// Placeholders of one run.
pub(super) struct Placeholders {
    /// The workspace, with a shared lock that marks a run in it.
    folder: Option<File>,
    root: PathBuf,
}

/// Creates placeholders for the protected names of `root` that do not exist.
///
/// # Errors
/// A placeholder that cannot be created: the workspace then cannot be protected.
pub(super) fn create_placeholders(root: &Path) -> io::Result<Placeholders> {
    let folder = File::open(root)?;
    flock(&folder, FlockOperation::LockShared)?;
    let placeholders = Placeholders { folder: Some(folder), root: root.to_owned() };
    for (name, form) in PROTECTED {
        let path = root.join(name);
        let created = match form {
            Form::Folder => fs::DirBuilder::new().mode(MODE).create(&path),
            Form::File => {
                fs::OpenOptions::new().write(true).create_new(true).mode(MODE).open(&path).map(drop)
            }
        };
        match created {
            // The umask of the process may have removed bits.
            Ok(()) => fs::set_permissions(&path, fs::Permissions::from_mode(MODE))?,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Ok(placeholders)
}

impl Drop for Placeholders {
    fn drop(&mut self) {
        // Another run in this workspace still needs them.
        let Some(folder) = self.folder.take() else { return };
        if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            self.remove();
        }
        // Explicit unlock: a child that is starting at this moment has a copy of the open folder,
        // and would keep the lock.
        let _unlocked = flock(&folder, FlockOperation::Unlock);
    }
}

impl Placeholders {
    /// Returns patterns by which git ignores the placeholders; files of the user with these names
    /// are not among them.
    pub(super) fn ignore_patterns(&self) -> String {
        let is_placeholder = |name: &str| {
            fs::symlink_metadata(self.root.join(name))
                .is_ok_and(|meta| meta.permissions().mode() & 0o7777 == MODE)
        };
        let names = PROTECTED.iter().map(|(name, _)| *name).filter(|name| is_placeholder(name));
        names.map(|name| format!("/{name}\n")).collect()
    }

    fn remove(&self) {
        for (name, form) in PROTECTED {
            let path = self.root.join(name);
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            if meta.permissions().mode() & 0o7777 != MODE {
                continue;
            }
            // Neither call removes anything that is not empty.
            let _result = match form {
                Form::Folder if meta.is_dir() => fs::remove_dir(&path),
                Form::File if meta.is_file() && meta.len() == 0 => fs::remove_file(&path),
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
        let first = create_placeholders(root).unwrap();
        let second = create_placeholders(root).unwrap();
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
