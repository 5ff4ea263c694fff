//! Declaration and removal of roots.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::Duration,
};

use cairn_protocol::{
    error::{Failure, Reason},
    id::RootId,
    index::{AddRootParams, IndexReceipt, RootRef},
};
use cairn_search::Until;
use cairn_workspace::Root;

use crate::Engine;

/// Longest wait for an index before its readers are compared.
const INDEX_WAIT: Duration = Duration::from_secs(900);

impl Engine {
    /// Returns the declared roots, for a host that watches their files.
    pub fn roots(&self) -> Vec<Root> {
        self.inner.roots.list()
    }

    /// Returns true if a folder is a declared root, by id or path.
    pub fn is_declared(&self, root: &str) -> bool {
        self.inner.roots.find(root).is_ok()
    }

    /// Declares a root, stores it and starts indexing it. Declaring it again has no effect.
    ///
    /// # Errors
    /// `path_not_found`, `not_a_directory`, `path_blocked`, `disk_full`.
    pub async fn add_root(&self, params: AddRootParams) -> Result<IndexReceipt, Failure> {
        self.require_open()?;
        if !Path::new(&params.path).is_absolute() {
            let text = format!("path '{}' is not absolute", params.path.escape_default());
            return Err(Failure::new(Reason::InvalidParams, text));
        }
        let root = self.declare(PathBuf::from(&params.path)).await?;
        Ok(receipt(&root, params.request_id))
    }

    /// Declares, stores and indexes a folder.
    pub(crate) async fn declare(&self, path: PathBuf) -> Result<Root, Failure> {
        let engine = self.clone();
        blocking(move || {
            let root = engine.inner.roots.declare(&path)?;
            engine.refresh_root(&root);
            let known = engine.inner.state.get().roots.contains(&root.path);
            if !known {
                engine.inner.state.change(|state| state.roots.push(root.path.clone()))?;
            }
            engine.inner.indexes.add_root(root.clone())?;
            Ok(root)
        })
        .await
    }

    /// Returns the declared root at a path, with its settings and its index.
    pub(crate) async fn declared(&self, path: String) -> Result<Root, Failure> {
        let engine = self.clone();
        blocking(move || {
            let root = engine.inner.roots.find(&path)?;
            engine.refresh_root(&root);
            engine.inner.indexes.add_root(root.clone())?;
            Ok(root)
        })
        .await
    }

    /// Removes a root and deletes its index.
    ///
    /// # Errors
    /// `root_not_found`.
    pub async fn remove_root(&self, params: RootRef) -> Result<IndexReceipt, Failure> {
        self.require_open()?;
        let root = match self.inner.roots.find(&params.root) {
            Ok(root) => root,
            Err(error) => {
                return self.forget_unavailable(&params).unwrap_or(Err(error.into()));
            }
        };
        self.inner.state.change(|state| state.roots.retain(|path| *path != root.path))?;
        self.release_root(root.clone()).await?;
        Ok(receipt(&root, params.request_id))
    }

    /// Removes a stored root whose folder could not be declared, because it was moved or deleted;
    /// `None` if there is none. The next start deletes its index.
    fn forget_unavailable(&self, params: &RootRef) -> Option<Result<IndexReceipt, Failure>> {
        let stored = self.inner.state.get().roots;
        let matches = |path: &&PathBuf| {
            *path.as_path() == *params.root || *Root::id_of(path).0 == *params.root
        };
        let path = stored.iter().find(matches)?;
        let changed = self.inner.state.change(|state| state.roots.retain(|other| other != path));
        Some(changed.map(|()| IndexReceipt {
            root: Root::id_of(path),
            path: path.to_string_lossy().into_owned(),
            request_id: params.request_id.clone(),
        }))
    }

    /// Ends the work on a root that is no longer stored, and deletes its index.
    pub(crate) async fn release_root(&self, root: Root) -> Result<(), Failure> {
        let engine = self.clone();
        blocking(move || {
            engine.inner.roots.remove(&root.id);
            engine.forget_root_settings(&root.id);
            engine.inner.indexes.remove_root(&root.id).map(drop)
        })
        .await
    }

    /// Returns the ids of the declared roots and of those that are stored and not available now.
    pub fn known_roots(&self) -> HashSet<RootId> {
        let stored = self.inner.state.get().roots;
        let declared = self.inner.roots.list().into_iter().map(|root| root.id);
        stored.iter().map(|path| Root::id_of(path)).chain(declared).collect()
    }

    /// Returns the path of a declared root, and the index that serves it: progress of that one does
    /// not include a rebuild.
    ///
    /// # Errors
    /// `root_not_found`.
    pub fn index_of(&self, root: &str) -> Result<(String, String), Failure> {
        let root = self.inner.roots.find(root)?;
        let folder = self.inner.indexes.folder(&root.id)?;
        let name =
            folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok((root.path.to_string_lossy().into_owned(), name))
    }

    /// Rebuilds a root's index; the old one serves queries until the new one is complete, and then
    /// a notice is published.
    ///
    /// # Errors
    /// `root_not_found`.
    pub async fn rebuild(&self, params: RootRef) -> Result<IndexReceipt, Failure> {
        self.require_open()?;
        let engine = self.clone();
        blocking(move || {
            let root = engine.inner.roots.find(&params.root)?;
            engine.inner.indexes.rebuild(&root.id)?;
            Ok(receipt(&root, params.request_id))
        })
        .await
    }

    /// Makes a root's index compare itself with the tree, regardless of watch events. Ignored for a
    /// removed root.
    pub fn rescan_root(&self, root: &RootId) {
        if let Err(cause) = self.inner.indexes.rescan(root) {
            tracing::debug!(%root, %cause, "the root was not rescanned");
        }
    }

    /// Waits until the index of a declared root matches the current tree. Returns at once for an
    /// undeclared folder.
    ///
    /// # Errors
    /// `index_failed`, also when it takes longer than [`INDEX_WAIT`].
    pub(crate) async fn index_is_current(&self, root: &str) -> Result<(), Failure> {
        let Ok(root) = self.inner.roots.find(root) else { return Ok(()) };
        let wait = self.cancellable(move |indexes, flag| {
            indexes.build_and_wait(&root.id, Until::Everything, flag).map(|_| ())
        });
        match tokio::time::timeout(INDEX_WAIT, wait).await {
            Ok(done) => done,
            Err(_) => {
                let text = format!("the index is not complete after {} s", INDEX_WAIT.as_secs());
                Err(Failure::new(Reason::IndexFailed, text))
            }
        }
    }

    /// Declares the configured and the stored roots. A root that cannot be declared is logged, not
    /// fatal.
    pub(crate) async fn declare_remembered(&self, configured: &[PathBuf]) {
        let remembered = self.inner.state.get().roots;
        for path in configured.iter().cloned().chain(remembered) {
            let display_path = path.display().to_string();
            if let Err(error) = self.declare(path).await {
                tracing::warn!(path = display_path, %error, "root is not available");
            }
        }
    }
}

fn receipt(root: &Root, request_id: Option<String>) -> IndexReceipt {
    IndexReceipt {
        root: root.id.clone(),
        path: root.path.to_string_lossy().into_owned(),
        request_id,
    }
}

/// Runs blocking work off the async threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    cairn_harness::off_thread("blocking work", work).await
}
