//! The entries of each project, and the general ones of the user that every project reads.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use rustc_hash::FxHashMap;
use sha2::{Digest as _, Sha256};

use crate::{MemoryView, Store};

/// Folder in that of the general entries, with one folder for each project.
const PROJECTS: &str = "projects";
/// Characters of a project's own name in the name of its folder: enough for a person to find it.
const NAME_LENGTH: usize = 40;
/// Hexadecimal digits of the hash in the name of a project's folder. A repository may choose its
/// name, so that another project's folder must not be reachable by a collision.
const HASH_LENGTH: usize = 32;

/// Returns the repository of a folder that is in one of its work trees.
pub type RepositoryOf = dyn Fn(&Path) -> Option<PathBuf> + Send + Sync;

/// The knowledge of a host. Clones share its state.
#[derive(Clone)]
pub struct Memory(Arc<Inner>);

struct Inner {
    general: Store,
    per_project: bool,
    projects: Mutex<FxHashMap<PathBuf, Store>>,
    repositories: OnceLock<Arc<RepositoryOf>>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("general", &self.0.general).finish_non_exhaustive()
    }
}

impl Memory {
    /// Opens the knowledge of a user with many projects: general entries in `folder`, and those of
    /// projects below it.
    pub fn per_project(folder: impl Into<PathBuf>) -> Self {
        Self::open(Store::general(folder), true)
    }

    /// Opens the knowledge of a host that has one store, whatever the folder of a session is.
    pub fn single(folder: impl Into<PathBuf>) -> Self {
        Self::open(Store::new(folder), false)
    }

    fn open(general: Store, per_project: bool) -> Self {
        let projects = Mutex::default();
        let repositories = OnceLock::new();
        Self(Arc::new(Inner { general, per_project, projects, repositories }))
    }

    /// Sets the source of the repositories of work trees, which have the entries of their
    /// repository. Later calls have no effect.
    pub fn set_repositories(&self, repositories: Arc<RepositoryOf>) {
        let _already_set = self.0.repositories.set(repositories);
    }

    /// Returns the entries of the project in `folder`, with the general ones. Without a folder they
    /// are the general ones, which cannot be changed there. Reads files.
    pub fn project(&self, folder: Option<&Path>) -> MemoryView {
        if !self.0.per_project {
            return self.general();
        }
        let own = folder.map(|folder| {
            let repository = self.0.repositories.get().and_then(|of| of(folder));
            self.store(repository.unwrap_or_else(|| folder.to_owned()))
        });
        MemoryView { own, general: Some(self.0.general.clone()) }
    }

    /// Returns the general entries, for their owner.
    pub fn general(&self) -> MemoryView {
        MemoryView { own: Some(self.0.general.clone()), general: None }
    }

    /// Returns the store of a project. It is opened once, because its lock protects appending.
    fn store(&self, project: PathBuf) -> Store {
        let mut all = self.0.projects.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = self.0.general.folder().join(PROJECTS).join(folder_name(&project));
        all.entry(project).or_insert_with(|| Store::new(folder)).clone()
    }
}

/// Returns the name of the folder for a project's entries.
fn folder_name(project: &Path) -> String {
    let name = project.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
    // The name is cut by characters that have at most four bytes, so that it fits a file name.
    let name: String = name.chars().take(NAME_LENGTH).map(plain).collect();
    let digest = Sha256::digest(project.as_os_str().as_encoded_bytes());
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{name}-{}", hash.get(..HASH_LENGTH).unwrap_or(&hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_projects_are_distinct_plain_names() {
        let names = ["/a/site", "/b/site", "/", "/a/../b", "/x/a b\n\u{202e}", "/x/.git"]
            .map(|path| folder_name(Path::new(path)));
        for (at, name) in names.iter().enumerate() {
            assert!(!name.contains(['/', '.', '\n', ' ', '\u{202e}']), "{name}");
            assert!(!names[..at].contains(name), "{name}");
        }
        assert!(folder_name(Path::new(&format!("/{}", "日".repeat(300)))).len() < 255);
    }
}
