//! A path after its single resolution.

use std::path::PathBuf;

use crate::Root;

/// A requested path and its target, all relative to its root, `.` for the root itself. Only the
/// resolver constructs it, so every value is proof that no part of it leads out of the root or into
/// a blocked path, and opening [`Self::real`] follows no symlink: a link swapped in afterwards is
/// an error, never another file.
#[derive(Debug, Clone)]
pub struct ResolvedPath {
    pub(crate) root: Root,
    pub(crate) requested: String,
    pub(crate) entry: String,
    pub(crate) real: String,
}

impl ResolvedPath {
    /// Returns the root that contains it.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// Returns the requested path, `.` and `..` folded.
    pub fn requested(&self) -> &str {
        &self.requested
    }

    /// Returns the folder entry that it names: symlinks of folders followed, the last component
    /// not.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// Returns its target: every symlink followed, names spelled as the file system has them.
    pub fn real(&self) -> &str {
        &self.real
    }

    /// Returns the absolute form of [`Self::real`].
    pub fn absolute(&self) -> PathBuf {
        self.root.path.join(&self.real)
    }

    /// Returns the different spellings, the requested one first.
    pub fn spellings(&self) -> impl Iterator<Item = &str> {
        let entry = (self.entry != self.requested).then_some(self.entry.as_str());
        let real =
            (self.real != self.requested && self.real != self.entry).then_some(self.real.as_str());
        std::iter::once(self.requested.as_str()).chain(entry).chain(real)
    }
}
