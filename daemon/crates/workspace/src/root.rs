//! One declared root: a folder whose files are opened beneath it by the kernel.

use std::{
    fs::File,
    io,
    os::fd::{AsFd as _, AsRawFd},
    path::{Path, PathBuf},
    sync::{Arc, RwLock, Weak},
};

use cairn_protocol::{content::EntryKind, id::RootId};
use cap_std::fs::{Dir, Metadata, MetadataExt as _};
use rustix::fs::{AtFlags, OFlags, statat};
use sha2::{Digest as _, Sha256};

use crate::{
    ReadRules, ResolvedPath, View, WorkspaceError,
    beneath::{self, Unresolved},
    blocked::{Blocked, normalize},
    git::KnownCommits,
    lines::LineCounts,
    roots::Declared,
};

/// A declared root. Cheap to clone; equal clones share one handle of the folder.
#[derive(Clone)]
pub struct Root {
    /// Identifier, stable for a path.
    pub id: RootId,
    /// Canonical path of the folder.
    pub path: PathBuf,
    inner: Arc<Inner>,
}

struct Inner {
    /// The open folder and its identity; reopened when the path is another folder now.
    dir: RwLock<(Arc<Dir>, Identity)>,
    blocked: Arc<Blocked>,
    /// Blocked paths inside this root.
    blocked_below: Vec<PathBuf>,
    declared: Weak<Declared>,
    commits: KnownCommits,
    line_counts: LineCounts,
}

type Identity = (u64, u64);

/// Metadata of a file, without its content. Size, time and inode together are the change key of a
/// file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    pub size: u64,
    /// Time of the last modification, in nanoseconds since the epoch.
    pub mtime_ns: i64,
    pub inode: u64,
    /// Kind of the entry; a symlink is never followed here.
    pub kind: EntryKind,
}

impl std::fmt::Debug for Root {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Root")
            .field("id", &self.id)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Root {
    /// Opens the folder at `path`, which must be canonical and not blocked.
    pub(crate) fn open(
        path: PathBuf,
        blocked: Arc<Blocked>,
        declared: Weak<Declared>,
    ) -> io::Result<Root> {
        let dir = open_folder(&path)?;
        let blocked_below = blocked.below(&path);
        Ok(Root {
            id: Self::id_of(&path),
            path,
            inner: Arc::new(Inner {
                dir: RwLock::new(dir),
                blocked,
                blocked_below,
                declared,
                commits: KnownCommits::default(),
                line_counts: LineCounts::default(),
            }),
        })
    }

    /// Returns the id of the root at a canonical path, whether it is declared or not.
    pub fn id_of(path: &Path) -> RootId {
        let digest = hex::encode(Sha256::digest(path.as_os_str().as_encoded_bytes()));
        RootId(format!("root_{}", &digest[..16]).into())
    }

    /// Resolves a path of this root: the single place where symlinks are followed. It need not
    /// exist.
    ///
    /// # Errors
    /// `PathOutsideRoots` when it or a link on its way leads out, `PathBlocked`, `PathNotFound` for
    /// a loop of links, `PathUnreadable`, `InvalidParams`.
    pub fn locate(&self, rel: &str) -> Result<ResolvedPath, WorkspaceError> {
        let folded = folded(rel)?;
        let dir = self.dir(rel)?;
        let resolution =
            beneath::resolve(dir.as_fd(), &self.path, Path::new(&folded)).map_err(|e| match e {
                Unresolved::Outside => outside(rel),
                Unresolved::Io(error) => failure(error, rel),
            })?;
        let text = |path: PathBuf| match path.into_os_string().into_string() {
            Ok(text) if text.is_empty() => Ok(".".to_owned()),
            Ok(text) => Ok(text),
            Err(_) => Err(WorkspaceError::TargetNotUtf8 { path: rel.to_owned() }),
        };
        let (entry, real) = (text(resolution.entry)?, text(resolution.real)?);
        self.check_blocked(&self.path.join(&entry), rel)?;
        self.check_blocked(&self.path.join(&real), rel)?;
        Ok(ResolvedPath { root: self.clone(), requested: folded, entry, real })
    }

    /// Resolves a path whose content will be displayed.
    ///
    /// # Errors
    /// As [`Root::locate`]; `PathBlocked` with the rule for a path that may not be read.
    pub fn resolve(&self, rel: &str) -> Result<ResolvedPath, WorkspaceError> {
        let target = self.locate(rel)?;
        self.view().require(&target, false)?;
        Ok(target)
    }

    /// Returns the view of this root under the current rules.
    pub fn view(&self) -> View {
        match self.inner.declared.upgrade() {
            Some(declared) => View::new(self, declared.read_rules(&self.id)),
            None => View::default(),
        }
    }

    /// Returns the view of this root under these rules.
    pub fn view_by(&self, rules: ReadRules) -> View {
        View::new(self, rules)
    }

    /// Returns the identity of the file or folder at `rel`: device and inode. No symlink is
    /// followed.
    ///
    /// # Errors
    /// As [`Root::stat`].
    pub fn identity_of(&self, rel: &str) -> Result<(u64, u64), WorkspaceError> {
        let dir = self.dir(rel)?;
        let opened = beneath::open(dir.as_fd(), &inside(rel)?, beneath::path_only());
        let stat = opened.and_then(|fd| Ok(rustix::fs::fstat(fd)?)).map_err(|e| failure(e, rel))?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// Opens a regular file for reading; no symlink is followed ([`Root::locate`] resolves them
    /// before).
    ///
    /// # Errors
    /// `PathOutsideRoots`, `PathBlocked`, `PathNotFound` (a symlink too), `NotAFile` (folders,
    /// pipes, sockets, devices; never blocks on them), `PathUnreadable`, `InvalidParams`.
    pub fn open_file(&self, rel: &str) -> Result<File, WorkspaceError> {
        self.opener()?.open_file(rel).map(|(file, _)| file)
    }

    /// Returns an opener for many files in a row: the root's folder is looked up once.
    ///
    /// # Errors
    /// `PathNotFound` when the root does not exist any more, `PathUnreadable`.
    pub fn opener(&self) -> Result<Opener, WorkspaceError> {
        Ok(Opener { dir: self.dir("")?, root: self.clone() })
    }

    fn open_in(&self, dir: &Dir, rel: &str) -> Result<(File, u64), WorkspaceError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let path = inside(rel)?;
        let opened = beneath::open(dir.as_fd(), &path, flags).map_err(|e| failure(e, rel))?;
        let file = File::from(opened);
        if !self.inner.blocked_below.is_empty() {
            self.check_real(dir, &file, rel)?;
        }
        let meta = file.metadata().map_err(|e| failure(e, rel))?;
        if !meta.is_file() {
            return Err(WorkspaceError::NotAFile { path: rel.to_owned() });
        }
        use std::os::unix::fs::MetadataExt as _;
        // Blocked is the file, whatever its name.
        if meta.nlink() > 1 && self.inner.blocked.has_file((meta.dev(), meta.ino())) {
            return Err(WorkspaceError::Blocked { path: rel.to_owned() });
        }
        Ok((file, meta.len()))
    }

    /// Returns the metadata of `rel`; no symlink is followed, the last component included.
    ///
    /// # Errors
    /// As [`Root::open_file`], without `NotAFile`.
    pub fn stat(&self, rel: &str) -> Result<FileStat, WorkspaceError> {
        let dir = self.dir(rel)?;
        let path = inside(rel)?;
        let (parent, name) = (path.parent(), path.file_name());
        let (Some(parent), Some(name)) = (parent.filter(|p| !p.as_os_str().is_empty()), name)
        else {
            return dir
                .symlink_metadata(&path)
                .map(|m| FileStat::of(&m))
                .map_err(|e| failure(e, rel));
        };
        let folder = beneath::open(dir.as_fd(), parent, FOLDER).map_err(|e| failure(e, rel))?;
        let folder = Dir::from_std_file(File::from(folder));
        folder.symlink_metadata(name).map(|m| FileStat::of(&m)).map_err(|e| failure(e, rel))
    }

    /// Returns the names in the folder at `rel`, with true for folders; none if it cannot be read.
    pub(crate) fn names(&self, rel: &str) -> Vec<(String, bool)> {
        let Ok((dir, _)) = self.open_dir(rel) else { return vec![] };
        let entries = dir.entries().into_iter().flatten().flatten();
        let name = |e: cap_std::fs::DirEntry| {
            Some((e.file_name().into_string().ok()?, e.file_type().is_ok_and(|t| t.is_dir())))
        };
        entries.filter_map(name).collect()
    }

    /// Returns the identity of the file at `rel` if it is a regular one with several names.
    pub(crate) fn linked(&self, rel: &str) -> Option<(u64, u64)> {
        use std::os::unix::fs::MetadataExt as _;
        let meta = self.open_file(rel).ok()?.metadata().ok()?;
        (meta.nlink() > 1).then(|| (meta.dev(), meta.ino()))
    }

    /// Returns true if the file at `rel` has another name that rules hide.
    pub fn is_other_name_of_hidden(&self, rel: &str) -> bool {
        self.view().is_other_name_of_hidden(self, rel)
    }

    /// Opens the folder at `rel`; no symlink is followed.
    pub(crate) fn open_dir(&self, rel: &str) -> Result<(Dir, PathBuf), WorkspaceError> {
        let dir = self.dir(rel)?;
        let path = inside(rel)?;
        let opened =
            beneath::open(dir.as_fd(), &path, FOLDER).map_err(|e| match e.raw_os_error() {
                Some(code)
                    if code == rustix::io::Errno::NOTDIR.raw_os_error()
                        && dir.symlink_metadata(&path).is_ok() =>
                {
                    WorkspaceError::NotADirectory { path: rel.to_owned() }
                }
                _ => failure(e, rel),
            })?;
        let file = File::from(opened);
        let real = self.check_real(&dir, &file, rel)?;
        Ok((Dir::from_std_file(file), real))
    }

    /// Returns the path of the open folder according to the kernel; not known on every system.
    pub(crate) fn opened_path(&self) -> Option<PathBuf> {
        let dir = self.inner.dir.read().unwrap_or_else(|e| e.into_inner()).0.clone();
        if !cfg!(target_os = "linux") {
            return None;
        }
        std::fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd())).ok()
    }

    /// Returns true if this absolute path is blocked.
    pub(crate) fn is_blocked(&self, path: &Path) -> bool {
        !self.inner.blocked_below.is_empty()
            && self.inner.blocked_below.iter().any(|b| path.starts_with(b))
    }

    /// Returns true if a path beneath `folder` (absolute) is blocked or hidden by rules.
    pub(crate) fn closed_below(&self, folder: &Path) -> bool {
        let masked = self.view().masked(self);
        masked.cut
            || self.inner.blocked_below.iter().any(|blocked| blocked.starts_with(folder))
            || masked.paths.iter().any(|rel| self.path.join(rel).starts_with(folder))
    }

    /// Returns a predicate for absolute paths that are blocked or hidden by the current rules.
    pub(crate) fn closed(&self) -> impl Fn(&Path) -> bool + Send + Sync + use<> {
        let (blocked, view, top) =
            (self.inner.blocked_below.clone(), self.view(), self.path.clone());
        move |path| {
            let hidden = || {
                path.strip_prefix(&top)
                    .ok()
                    .and_then(Path::to_str)
                    .is_some_and(|rel| !view.shows(rel))
            };
            blocked.iter().any(|b| path.starts_with(b)) || hidden()
        }
    }

    /// Returns the programs and scripts in this folder that the daemon's configuration names,
    /// relative to it.
    pub fn named_programs(&self) -> Arc<Vec<String>> {
        let declared = self.inner.declared.upgrade();
        declared.map(|declared| declared.named_programs(&self.path)).unwrap_or_default()
    }

    /// The lines of the files that were counted.
    pub(crate) fn line_counts(&self) -> &LineCounts {
        &self.inner.line_counts
    }

    /// The commits of the last log.
    pub(crate) fn commits(&self) -> &KnownCommits {
        &self.inner.commits
    }

    /// Returns true if a canonical path lies in this root or in any other declared one.
    pub(crate) fn declared_contains(&self, path: &Path) -> bool {
        let beside = || self.inner.declared.upgrade().is_some_and(|d| d.contains(path));
        !self.inner.blocked.covers(path) && (path.starts_with(&self.path) || beside())
    }

    fn check_blocked(&self, path: &Path, rel: &str) -> Result<(), WorkspaceError> {
        if self.is_blocked(path)
            || (!self.inner.blocked_below.is_empty() && self.inner.blocked.covers(path))
        {
            return Err(WorkspaceError::Blocked { path: rel.to_owned() });
        }
        Ok(())
    }

    /// Returns the real path of an open file; rejects blocked paths that were reached through a
    /// symlink inside the root.
    fn check_real(&self, dir: &Dir, file: &File, rel: &str) -> Result<PathBuf, WorkspaceError> {
        if self.inner.blocked_below.is_empty() && !file_is_dir(file) {
            return Ok(PathBuf::new());
        }
        // The kernel reports the path of the descriptor, so nothing can be swapped in between;
        // where there is no such list, the path is resolved once more beneath the root.
        let named = if cfg!(target_os = "linux") {
            std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
        } else {
            None
        };
        let real = match named {
            Some(path) => path,
            None => self.path.join(dir.canonicalize(&inside(rel)?).map_err(|e| failure(e, rel))?),
        };
        self.check_blocked(&real, rel)?;
        Ok(real)
    }

    /// Returns the folder's handle. A folder that was deleted and created again under the same path
    /// is the root again.
    fn dir(&self, rel: &str) -> Result<Arc<Dir>, WorkspaceError> {
        self.check_blocked(&self.path.join(inside(rel)?), rel)?;
        let map_error = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => WorkspaceError::RootRemoved { root: self.path.clone() },
            _ => WorkspaceError::RootUnreadable { root: self.path.clone(), source: e },
        };
        let now = identity(&self.path).map_err(map_error)?;
        let current = self.inner.dir.read().unwrap_or_else(|e| e.into_inner()).clone();
        if current.1 == now {
            return Ok(current.0);
        }
        let fresh = open_folder(&self.path).map_err(map_error)?;
        *self.inner.dir.write().unwrap_or_else(|e| e.into_inner()) = fresh.clone();
        Ok(fresh.0)
    }
}

/// Opens files of one root as [`Root::open_file`] does, with the root's folder as it was on
/// creation.
pub struct Opener {
    root: Root,
    dir: Arc<Dir>,
}

impl Opener {
    /// Returns a regular file and its size in bytes.
    ///
    /// # Errors
    /// As [`Root::open_file`].
    pub fn open_file(&self, rel: &str) -> Result<(File, u64), WorkspaceError> {
        self.root.check_blocked(&normalize(&self.root.path.join(rel)), rel)?;
        self.root.open_in(&self.dir, rel)
    }
}

/// Metadata that distinguishes a changed file from an unchanged one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    pub size: u64,
    /// Time of the last change of content or attributes, in nanoseconds since 1970; no program can
    /// set it.
    pub changed_ns: i64,
    pub inode: u64,
}

impl Facts {
    /// Returns the facts of an open file.
    ///
    /// # Errors
    /// The error of the system.
    pub fn of(file: &File) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let meta = file.metadata()?;
        let changed_ns = nanos(meta.ctime(), meta.ctime_nsec());
        Ok(Self { size: meta.len(), changed_ns, inode: meta.ino() })
    }
}

impl Opener {
    /// Returns the facts of the entry at `rel`, by one plain look-up that follows symlinks of
    /// folders to any target: only for comparison with known facts. `None` when it does not exist.
    pub fn facts(&self, rel: &str) -> Option<Facts> {
        let stat = statat(&*self.dir, Path::new(rel), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Facts {
            size: u64::try_from(stat.st_size).ok()?,
            changed_ns: nanos(stat.st_ctime, i64::try_from(stat.st_ctime_nsec).ok()?),
            inode: stat.st_ino,
        })
    }
}

impl FileStat {
    fn of(meta: &Metadata) -> FileStat {
        let kind = meta.file_type();
        let kind = kind_of(kind.is_file(), kind.is_dir(), kind.is_symlink());
        let mtime_ns = nanos(meta.mtime(), meta.mtime_nsec());
        FileStat { size: meta.len(), mtime_ns, inode: meta.ino(), kind }
    }

    /// Converts the standard library's metadata.
    pub fn of_std(meta: &std::fs::Metadata) -> FileStat {
        use std::os::unix::fs::MetadataExt as _;
        let kind = kind_of(meta.is_file(), meta.is_dir(), meta.is_symlink());
        let mtime_ns = nanos(meta.mtime(), meta.mtime_nsec());
        FileStat { size: meta.len(), mtime_ns, inode: meta.ino(), kind }
    }
}

/// Returns the kind of a file from the system's flags.
pub(crate) fn kind_of(file: bool, dir: bool, symlink: bool) -> EntryKind {
    match (file, dir, symlink) {
        (true, ..) => EntryKind::File,
        (_, true, _) => EntryKind::Dir,
        (.., true) => EntryKind::Symlink,
        _ => EntryKind::Other,
    }
}

fn nanos(seconds: i64, nanos: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

fn file_is_dir(file: &File) -> bool {
    file.metadata().is_ok_and(|m| m.is_dir())
}

fn identity(path: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = std::fs::symlink_metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}

/// Opens the folder at a canonical path: no symlink is followed in any component, so a folder above
/// the root that was replaced by one is an error.
fn open_folder(path: &Path) -> io::Result<(Arc<Dir>, Identity)> {
    use std::os::unix::fs::MetadataExt as _;
    let top = File::open("/")?;
    let rel = path.strip_prefix("/").unwrap_or(path);
    let rel = if rel.as_os_str().is_empty() { Path::new(".") } else { rel };
    let file = File::from(beneath::open(top.as_fd(), rel, FOLDER)?);
    let meta = file.metadata()?;
    Ok((Arc::new(Dir::from_std_file(file)), (meta.dev(), meta.ino())))
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Returns the path to look up beneath the root's handle, with `..` folded.
fn inside(rel: &str) -> Result<std::borrow::Cow<'_, Path>, WorkspaceError> {
    if rel.contains('\0') {
        return Err(WorkspaceError::NulByte);
    }
    if rel.starts_with('/') || rel.split('/').any(|part| part == "..") {
        return Ok(PathBuf::from(folded(rel)?).into());
    }
    Ok(Path::new(if rel.is_empty() { "." } else { rel }).into())
}

/// Returns a relative path without empty components, `.` and `..`; `.` for the root itself.
pub(crate) fn folded(rel: &str) -> Result<String, WorkspaceError> {
    if rel.contains('\0') {
        return Err(WorkspaceError::NulByte);
    }
    if rel.starts_with('/') {
        return Err(outside(rel));
    }
    let mut names: Vec<&str> = Vec::new();
    for name in crate::pattern::parts(rel) {
        if name != ".." {
            names.push(name);
        } else if names.pop().is_none() {
            return Err(outside(rel));
        }
    }
    Ok(if names.is_empty() { ".".into() } else { names.join("/") })
}

fn outside(rel: &str) -> WorkspaceError {
    WorkspaceError::LeavesRoot { path: rel.to_owned() }
}

/// Returns a path for a message: bounded and printable.
pub(crate) fn display_text(path: &str) -> String {
    path.chars().take(300).flat_map(char::escape_debug).collect()
}

/// Maps an I/O error on `rel`.
pub(crate) fn failure(error: io::Error, rel: &str) -> WorkspaceError {
    use rustix::io::Errno;
    let path = rel.to_owned();
    match (error.kind(), Errno::from_io_error(&error)) {
        // An attempt to leave the root has no system error behind it.
        (io::ErrorKind::PermissionDenied, None) | (_, Some(Errno::XDEV)) => {
            WorkspaceError::LeavesRoot { path }
        }
        (io::ErrorKind::NotFound, _) | (_, Some(Errno::NOTDIR)) => {
            WorkspaceError::NotFound { path }
        }
        (_, Some(Errno::LOOP)) => WorkspaceError::DanglingLink { path },
        (_, Some(Errno::NAMETOOLONG)) => WorkspaceError::NameTooLong { path },
        (_, Some(Errno::NXIO | Errno::ISDIR | Errno::NODEV)) => WorkspaceError::NotAFile { path },
        _ => WorkspaceError::Unreadable { path, source: error },
    }
}
