//! The declared roots: the allowlist that every path from outside is resolved against.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
};

use cairn_protocol::id::RootId;

use crate::{
    NamedPrograms, ResolvedPath, Visibility, WorkspaceError,
    blocked::{Blocked, normalize, resolve_existing},
    root::{Root, failure, folded},
    visibility::ReadRules,
};

/// Longest path from outside, in bytes.
pub const MAX_PATH_BYTES: usize = 4096;

/// The declared roots. All methods take `&self`; share it in an `Arc`.
#[derive(Debug)]
pub struct Roots {
    declared: Arc<Declared>,
    blocked: Arc<Blocked>,
}

/// The set itself, to which each root has a weak reference (a worktree's git folder may lie in
/// another root).
#[derive(Debug, Default)]
pub(crate) struct Declared {
    roots: RwLock<BTreeMap<RootId, Root>>,
    visibility: RwLock<Visibility>,
    programs: RwLock<Option<Arc<dyn NamedPrograms>>>,
}

impl Declared {
    pub(crate) fn contains(&self, path: &Path) -> bool {
        self.roots
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .values()
            .any(|r| path.starts_with(&r.path))
    }

    /// Returns the programs that the daemon's configuration names in the folder of a root.
    pub(crate) fn named_programs(&self, root: &Path) -> Arc<Vec<String>> {
        let programs = self.programs.read().unwrap_or_else(|e| e.into_inner()).clone();
        programs.map(|programs| programs.named_in(root)).unwrap_or_default()
    }

    pub(crate) fn read_rules(&self, id: &RootId) -> ReadRules {
        self.visibility.read().unwrap_or_else(|e| e.into_inner()).of(id)
    }
}

impl Roots {
    /// Creates an empty set; `blocked` are absolute paths that stay inaccessible even inside a
    /// root.
    pub fn new(blocked: Vec<PathBuf>) -> Self {
        Self { declared: Arc::default(), blocked: Arc::new(Blocked::new(blocked)) }
    }

    /// Closes folders to every root that contains them, though folders in them can be roots.
    #[must_use]
    pub fn closing(self, folders: Vec<PathBuf>) -> Self {
        let blocked = Blocked::clone(&self.blocked).closing(folders);
        Self { blocked: Arc::new(blocked), ..self }
    }

    /// Declares the folder at an absolute path. Declaring it again returns the same root.
    ///
    /// # Errors
    /// `InvalidParams` for a relative path or a name that is not UTF-8, `PathNotFound`,
    /// `NotADirectory`, `PathUnreadable`, `PathBlocked` when it lies in a blocked path.
    pub fn declare(&self, path: &Path) -> Result<Root, WorkspaceError> {
        self.declare_if(path, &|_| Ok(()))
    }

    /// Declares a folder that `check` accepts. It receives the real path of the same folder that is
    /// declared, even if its path is replaced meanwhile.
    ///
    /// # Errors
    /// As [`Roots::declare`], and errors of `check`.
    pub fn declare_if<E: From<WorkspaceError>>(
        &self,
        path: &Path,
        check: &dyn Fn(&Path) -> Result<(), E>,
    ) -> Result<Root, E> {
        let text = path.to_str().ok_or(WorkspaceError::RootNotUtf8)?;
        check_text(text)?;
        if !path.is_absolute() {
            return Err(WorkspaceError::RootNotAbsolute { path: text.to_owned() }.into());
        }
        if self.blocked.covers(&normalize(path)) {
            return Err(blocked(text).into());
        }
        let real = path.canonicalize().map_err(|e| failure(e, text))?;
        let real_text = real.to_str().ok_or(WorkspaceError::RootNotUtf8)?;
        if self.blocked.covers(&real) {
            return Err(blocked(real_text).into());
        }
        if let Some(why) = no_tree_of_files(&real) {
            return Err(WorkspaceError::UnfitRoot { path: text.to_owned(), why }.into());
        }
        if !real.is_dir() {
            return Err(WorkspaceError::NotADirectory { path: text.to_owned() }.into());
        }
        check(&real)?;
        std::fs::read_dir(&real).map_err(|e| failure(e, text))?;
        let fresh = Root::open(real.clone(), self.blocked.clone(), Arc::downgrade(&self.declared))
            .map_err(|e| failure(e, text))?;
        if fresh.opened_path().is_some_and(|opened| opened != real) {
            return Err(WorkspaceError::RootReplaced { path: text.to_owned() }.into());
        }
        let mut all = self.declared.roots.write().unwrap_or_else(|e| e.into_inner());
        Ok(all.entry(fresh.id.clone()).or_insert(fresh).clone())
    }

    /// Removes and returns a root; existing clones of it remain usable.
    pub fn remove(&self, id: &RootId) -> Option<Root> {
        self.declared.roots.write().unwrap_or_else(|e| e.into_inner()).remove(id)
    }

    /// Returns the root with this id.
    pub fn get(&self, id: &RootId) -> Option<Root> {
        self.declared.roots.read().unwrap_or_else(|e| e.into_inner()).get(id).cloned()
    }

    /// Returns all roots, by path.
    pub fn list(&self) -> Vec<Root> {
        let mut all: Vec<Root> = self
            .declared
            .roots
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .values()
            .cloned()
            .collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    }

    /// Returns the root with this id or path.
    ///
    /// # Errors
    /// `RootNotFound`, `InvalidParams`.
    pub fn find(&self, root: &str) -> Result<Root, WorkspaceError> {
        check_text(root)?;
        if let Some(declared) = self.get(&RootId(root.into())) {
            return Ok(declared);
        }
        let path = Path::new(root);
        let declared = path.is_absolute().then(|| {
            let (plain, all) = (normalize(path), self.list());
            let by = |path: &Path| all.iter().find(|r| r.path == path).cloned();
            // Links are followed only for a path that is not itself a root.
            by(&plain).or_else(|| by(&resolve_existing(path)))
        });
        declared.flatten().ok_or_else(|| WorkspaceError::UnknownRoot { root: root.to_owned() })
    }

    /// Sets the source of programs that the daemon's configuration names below roots.
    pub fn set_programs(&self, programs: Arc<dyn NamedPrograms>) {
        *self.declared.programs.write().unwrap_or_else(|e| e.into_inner()) = Some(programs);
    }

    /// Sets the hidden paths, for later answers.
    pub fn set_visibility(&self, visibility: Visibility) {
        *self.declared.visibility.write().unwrap_or_else(|e| e.into_inner()) = visibility;
    }

    /// Resolves a path whose content will be displayed.
    ///
    /// # Errors
    /// As [`Roots::locate`]; `PathBlocked` with the rule for a path that may not be read.
    pub fn resolve(&self, path: &str, root: Option<&str>) -> Result<ResolvedPath, WorkspaceError> {
        let target = self.locate(path, root)?;
        target.root.view().require(&target, false)?;
        Ok(target)
    }

    /// Finds the root of a path and resolves it there.
    ///
    /// An absolute path must lie in a declared root, the innermost one wins, and with `root` given
    /// it must lie in that one; a prefix that is a symlink is resolved. A relative path belongs to
    /// `root`, or to the only root there is. The path need not exist.
    ///
    /// # Errors
    /// `InvalidParams`, `NoRoots`, `RootNotFound`, `RootAmbiguous`, and errors of [`Root::locate`].
    pub fn locate(&self, path: &str, root: Option<&str>) -> Result<ResolvedPath, WorkspaceError> {
        check_text(path)?;
        let given = root.map(|r| self.find(r)).transpose()?;
        let all = self.list();
        if all.is_empty() {
            return Err(WorkspaceError::NoRoots);
        }
        let (root, rel) = if Path::new(path).is_absolute() {
            let candidates = given.map_or(all, |g| vec![g]);
            find_absolute(&candidates, Path::new(path)).ok_or_else(|| outside(path))?
        } else {
            let root = match given {
                Some(root) => root,
                None if all.len() == 1 => all.into_iter().next().ok_or_else(|| outside(path))?,
                None => {
                    let roots = all.len();
                    return Err(WorkspaceError::AmbiguousRoot { path: path.to_owned(), roots });
                }
            };
            (root, PathBuf::from(folded(path).map_err(|_| outside(path))?))
        };
        if root.is_blocked(&root.path.join(&rel)) {
            return Err(blocked(path));
        }
        root.locate(rel.to_str().filter(|r| !r.is_empty()).unwrap_or("."))
    }
}

/// Returns the reason why a folder cannot be a root: it contains the kernel's files, or the
/// complete machine.
fn no_tree_of_files(real: &Path) -> Option<&'static str> {
    const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];
    if real == Path::new("/") {
        return Some("is the whole file system: declare individual folders");
    }
    let kernel =
        KERNEL.iter().any(|folder| real.starts_with(folder)) && !real.starts_with("/dev/shm");
    kernel.then_some("contains kernel objects, not files")
}

/// Returns the innermost of `roots` that contains an absolute path, by name first, then with the
/// existing part resolved.
fn find_absolute(roots: &[Root], path: &Path) -> Option<(Root, PathBuf)> {
    let innermost = |path: &Path| {
        let holder = roots
            .iter()
            .filter(|r| path.starts_with(&r.path))
            .max_by_key(|r| r.path.components().count())?;
        Some((holder.clone(), path.strip_prefix(&holder.path).ok()?.to_path_buf()))
    };
    let plain = normalize(path);
    innermost(&plain)
        .or_else(|| {
            let parent = plain.parent().map(resolve_existing)?;
            plain.file_name().and_then(|name| innermost(&parent.join(name)))
        })
        .or_else(|| innermost(&resolve_existing(&plain)))
}

fn check_text(path: &str) -> Result<(), WorkspaceError> {
    match path {
        "" => Err(WorkspaceError::EmptyPath),
        p if p.contains('\0') => Err(WorkspaceError::NulByte),
        p if p.len() > MAX_PATH_BYTES => Err(WorkspaceError::PathTooLong { limit: MAX_PATH_BYTES }),
        _ => Ok(()),
    }
}

fn outside(path: &str) -> WorkspaceError {
    WorkspaceError::OutsideRoots { path: path.to_owned() }
}

fn blocked(path: &str) -> WorkspaceError {
    WorkspaceError::Blocked { path: path.to_owned() }
}
