//! Blocked paths: folders and files that no root gives access to. Compared by component, never by
//! string prefix.

use std::path::{Component, Path, PathBuf};

use crate::linked_files::{BlockedFiles, Identity};

/// The blocked paths, each as configured and as the file system resolves it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blocked {
    given: Vec<PathBuf>,
    /// Folders that are closed to a root that contains them, though folders in them can be roots:
    /// those of Cairn's own data, which hold clones and work trees too.
    closed: Vec<PathBuf>,
    files: BlockedFiles,
}

/// Returns both forms of every path now: a path that did not exist when the configuration was read
/// may since have become a symlink.
fn forms(paths: &[PathBuf]) -> impl Iterator<Item = PathBuf> + '_ {
    paths.iter().flat_map(|p| {
        let real = resolve_existing(p);
        std::iter::once(p.clone()).chain((real != *p).then_some(real))
    })
}

impl Blocked {
    pub(crate) fn new(given: Vec<PathBuf>) -> Self {
        let given = given.iter().map(|p| normalize(p)).collect();
        Self { given, closed: vec![], files: BlockedFiles::default() }
    }

    /// Adds folders that are closed to roots around them.
    pub(crate) fn closing(mut self, folders: Vec<PathBuf>) -> Self {
        self.closed.extend(folders.iter().map(|p| normalize(p)));
        self
    }

    /// Returns true if `path` (absolute, normalised or canonical) is a blocked path or lies in one.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        forms(&self.given).any(|b| path.starts_with(b)) || forms(&self.closed).any(|b| path == b)
    }

    /// Returns true if a file with several names has one in a blocked path.
    pub(crate) fn has_file(&self, file: Identity) -> bool {
        self.files.contains(file, forms(&self.given))
    }

    /// Returns the blocked paths below `root`; empty for nearly every root.
    pub(crate) fn below(&self, root: &Path) -> Vec<PathBuf> {
        forms(&self.given).chain(forms(&self.closed)).filter(|b| b.starts_with(root)).collect()
    }
}

/// Removes `.` and `..` from `path` by their names alone. `..` above the top stays at the top.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// Returns the canonical form of the longest part of `path` that exists, followed by the rest
/// unchanged.
pub(crate) fn resolve_existing(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut head = path;
    loop {
        if let Ok(real) = head.canonicalize() {
            return rest.iter().rev().fold(real, |p, name| p.join(name));
        }
        match (head.parent(), head.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name);
                head = parent;
            }
            _ => return path.to_path_buf(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_complete_components() {
        let blocked = Blocked::new(vec!["/home/u/.ssh".into(), "/srv/./x/../secret".into()]);
        for (path, want) in [
            ("/home/u/.ssh", true),
            ("/home/u/.ssh/id", true),
            ("/home/u/.sshx", false),
            ("/home/u/.ss", false),
            ("/home/u", false),
            ("/srv/secret/a", true),
        ] {
            assert_eq!(blocked.covers(Path::new(path)), want, "{path}");
        }
        assert_eq!(blocked.below(Path::new("/home/u")), [PathBuf::from("/home/u/.ssh")]);
        assert!(blocked.below(Path::new("/home/v")).is_empty());
        let data = Blocked::new(vec![]).closing(vec!["/home/u/data".into()]);
        assert!(data.covers(Path::new("/home/u/data")));
        assert!(!data.covers(Path::new("/home/u/data/workspaces/clone")));
        assert_eq!(data.below(Path::new("/home/u")), [PathBuf::from("/home/u/data")]);
        assert!(data.below(Path::new("/home/u/data/workspaces/clone")).is_empty());
    }

    #[test]
    fn normalizes_by_name() {
        for (path, want) in
            [("/a/./b", "/a/b"), ("/a/../../b", "/b"), ("/a/b/..", "/a"), ("/", "/")]
        {
            assert_eq!(normalize(Path::new(path)), Path::new(want), "{path}");
        }
    }
}
