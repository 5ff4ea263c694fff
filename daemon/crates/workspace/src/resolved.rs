//! A path after its one resolution.

use std::path::PathBuf;

use crate::Root;

/// A path as it was requested and where it leads, all relative to its root, `.` for the root itself. Only the resolver constructs it,
/// so whoever has one knows that nothing of it leads out of the root or into a blocked path, and opening [`Self::real`] follows no
/// symlink: a link swapped in afterwards is an error, never another file.
#[derive(Debug, Clone)]
pub struct ResolvedPath {
    pub(crate) root: Root,
    pub(crate) requested: String,
    pub(crate) entry: String,
    pub(crate) real: String,
}

impl ResolvedPath {
    /// The root that it lies in.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// As it was requested, `.` and `..` folded.
    pub fn requested(&self) -> &str {
        &self.requested
    }

    /// The entry of its folder that it names: symlinks of folders followed, the last component not.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// Where it leads: every symlink followed, names spelled as the file system has them.
    pub fn real(&self) -> &str {
        &self.real
    }

    /// The absolute form of [`Self::real`].
    pub fn absolute(&self) -> PathBuf {
        self.root.path.join(&self.real)
    }

    /// The different spellings, the requested one first.
    pub fn spellings(&self) -> impl Iterator<Item = &str> {
        let entry = (self.entry != self.requested).then_some(self.entry.as_str());
        let real = (self.real != self.requested && self.real != self.entry).then_some(self.real.as_str());
        std::iter::once(self.requested.as_str()).chain(entry).chain(real)
    }
}
