//! One declared root: a folder whose files are opened beneath it by the kernel.

use std::{
    fs::File,
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    sync::{Arc, RwLock, Weak},
};

use cairn_protocol::{
    content::EntryKind,
    error::{Failure, Reason},
    id::RootId,
};
use cap_std::fs::{Dir, Metadata, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use rustix::fs::{AtFlags, statat};
use sha2::{Digest as _, Sha256};

use crate::{
    blocked::{Blocked, normalize},
    roots::Declared,
};

/// A declared root. Cheap to clone; equal clones share one handle of the folder.
#[derive(Clone)]
pub struct Root {
    /// Its id: stable for a path.
    pub id: RootId,
    /// Its canonical path.
    pub path: PathBuf,
    inner: Arc<Inner>,
}

struct Inner {
    /// The open folder and which one it is; reopened when another folder now stands at the path.
    dir: RwLock<(Arc<Dir>, Identity)>,
    blocked: Arc<Blocked>,
    /// Blocked paths that lie inside this root.
    blocked_below: Vec<PathBuf>,
    declared: Weak<Declared>,
}

type Identity = (u64, u64);

/// What a file is, without reading it. Size, time and inode together are the change key of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// Bytes.
    pub size: u64,
    /// Time of the last modification, in nanoseconds since the epoch.
    pub mtime_ns: i64,
    /// Inode number.
    pub inode: u64,
    /// What it is; a symlink is a symlink here, wherever it leads.
    pub kind: EntryKind,
}

impl std::fmt::Debug for Root {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Root").field("id", &self.id).field("path", &self.path).finish_non_exhaustive()
    }
}

impl Root {
    /// Opens the folder at `path`, which must be canonical and not blocked.
    pub(crate) fn open(path: PathBuf, blocked: Arc<Blocked>, declared: Weak<Declared>) -> io::Result<Root> {
        let dir = open_folder(&path)?;
        let blocked_below = blocked.below(&path);
        let digest = hex::encode(Sha256::digest(path.as_os_str().as_encoded_bytes()));
        let id = RootId(format!("root_{}", &digest[..16]).into());
        Ok(Root {
            id,
            path,
            inner: Arc::new(Inner { dir: RwLock::new(dir), blocked, blocked_below, declared }),
        })
    }

    /// Opens a regular file for reading. The kernel keeps the look-up beneath the root: `..` and symlinks may lead
    /// about inside it, never out of it, whatever is swapped meanwhile.
    ///
    /// # Errors
    /// `PathOutsideRoots`, `PathBlocked`, `PathNotFound`, `NotAFile` (folders, pipes, sockets, devices; never waits
    /// for them), `PathUnreadable`, `InvalidParams`.
    pub fn open_file(&self, rel: &str) -> Result<File, Failure> {
        self.opener()?.open_file(rel).map(|(file, _)| file)
    }

    /// For opening many files in a row: the root's folder is looked up once.
    ///
    /// # Errors
    /// `PathNotFound` when the root is gone, `PathUnreadable`.
    pub fn opener(&self) -> Result<Opener, Failure> {
        Ok(Opener { dir: self.dir("")?, root: self.clone() })
    }

    fn open_in(&self, dir: &Dir, rel: &str) -> Result<(File, u64), Failure> {
        let mut options = OpenOptions::new();
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.read(true).custom_flags(flags.bits() as i32);
        let file = dir.open_with(inside(rel)?, &options).map_err(|e| failure(&e, rel))?.into_std();
        if !self.inner.blocked_below.is_empty() {
            self.check_real(dir, &file, rel)?;
        }
        let meta = file.metadata().map_err(|e| failure(&e, rel))?;
        if !meta.is_file() {
            return Err(Failure::new(Reason::NotAFile, format!("'{}' is not a regular file", shown(rel))));
        }
        Ok((file, meta.len()))
    }

    /// What lies at `rel`, without following a symlink in the last place.
    ///
    /// # Errors
    /// As [`Root::open_file`], without `NotAFile`.
    pub fn stat(&self, rel: &str) -> Result<FileStat, Failure> {
        let dir = self.dir(rel)?;
        let path = inside(rel)?;
        if !self.inner.blocked_below.is_empty() {
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let real = dir.canonicalize(parent).map_err(|e| failure(&e, rel))?;
            let name = path.file_name().map(PathBuf::from).unwrap_or_default();
            self.check_blocked(&self.path.join(real).join(name), rel)?;
        }
        dir.symlink_metadata(path).map(|m| FileStat::of(&m)).map_err(|e| failure(&e, rel))
    }

    /// Opens the folder at `rel`.
    pub(crate) fn open_dir(&self, rel: &str) -> Result<(Dir, PathBuf), Failure> {
        let dir = self.dir(rel)?;
        let path = inside(rel)?;
        let opened = dir.open_dir(path).map_err(|e| match e.raw_os_error() {
            Some(code)
                if code == rustix::io::Errno::NOTDIR.raw_os_error() && dir.symlink_metadata(path).is_ok() =>
            {
                Failure::new(Reason::NotADirectory, format!("'{}' is not a folder", shown(rel)))
            }
            _ => failure(&e, rel),
        })?;
        let file = opened.try_clone().map_err(|e| failure(&e, rel))?.into_std_file();
        let real = self.check_real(&dir, &file, rel)?;
        Ok((opened, real))
    }

    /// Where the folder that is held open lies, as the kernel names it; not known on every system.
    pub(crate) fn opened_path(&self) -> Option<PathBuf> {
        let held = self.inner.dir.read().unwrap_or_else(|e| e.into_inner()).0.clone();
        if !cfg!(target_os = "linux") {
            return None;
        }
        std::fs::read_link(format!("/proc/self/fd/{}", held.as_raw_fd())).ok()
    }

    /// Whether this absolute path is blocked.
    pub(crate) fn is_blocked(&self, path: &Path) -> bool {
        !self.inner.blocked_below.is_empty() && self.inner.blocked_below.iter().any(|b| path.starts_with(b))
    }

    /// Blocked paths inside this root.
    pub(crate) fn blocked_below(&self) -> &[PathBuf] {
        &self.inner.blocked_below
    }

    /// Whether a canonical path lies in this root or in any other that is declared beside it.
    pub(crate) fn declared_contains(&self, path: &Path) -> bool {
        let beside = || self.inner.declared.upgrade().is_some_and(|d| d.contains(path));
        !self.inner.blocked.covers(path) && (path.starts_with(&self.path) || beside())
    }

    fn check_blocked(&self, path: &Path, rel: &str) -> Result<(), Failure> {
        if self.is_blocked(path) || (!self.inner.blocked_below.is_empty() && self.inner.blocked.covers(path))
        {
            return Err(Failure::new(Reason::PathBlocked, format!("'{}' is a blocked path", shown(rel))));
        }
        Ok(())
    }

    /// Where an open file really lies; refuses blocked places that were reached through a symlink inside the root.
    fn check_real(&self, dir: &Dir, file: &File, rel: &str) -> Result<PathBuf, Failure> {
        if self.inner.blocked_below.is_empty() && !file_is_dir(file) {
            return Ok(PathBuf::new());
        }
        // The kernel names what the descriptor is, so nothing can be swapped in between; where there is no such
        // list, the path is resolved once more beneath the root.
        let named = if cfg!(target_os = "linux") {
            std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
        } else {
            None
        };
        let real = match named {
            Some(path) => path,
            None => self.path.join(dir.canonicalize(inside(rel)?).map_err(|e| failure(&e, rel))?),
        };
        self.check_blocked(&real, rel)?;
        Ok(real)
    }

    /// The root's handle, for writing to `rel`.
    pub(crate) fn dir_for_writing(&self, rel: &str) -> Result<Arc<Dir>, Failure> {
        self.dir(rel)
    }

    /// The folder's handle. A folder that was deleted and made again under the same path is the root again.
    fn dir(&self, rel: &str) -> Result<Arc<Dir>, Failure> {
        self.check_blocked(&normalize(&self.path.join(inside(rel)?)), rel)?;
        let gone = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => {
                Failure::new(Reason::PathNotFound, format!("root {} is gone", self.path.display()))
            }
            _ => Failure::new(Reason::PathUnreadable, format!("root {}: {e}", self.path.display())),
        };
        let now = identity(&self.path).map_err(gone)?;
        let held = self.inner.dir.read().unwrap_or_else(|e| e.into_inner()).clone();
        if held.1 == now {
            return Ok(held.0);
        }
        let fresh = open_folder(&self.path).map_err(gone)?;
        *self.inner.dir.write().unwrap_or_else(|e| e.into_inner()) = fresh.clone();
        Ok(fresh.0)
    }
}

/// Opens files of one root as [`Root::open_file`] does, with the root's folder as it was when this was made.
pub struct Opener {
    root: Root,
    dir: Arc<Dir>,
}

impl Opener {
    /// A regular file and its size in bytes.
    ///
    /// # Errors
    /// As [`Root::open_file`].
    pub fn open_file(&self, rel: &str) -> Result<(File, u64), Failure> {
        self.root.check_blocked(&normalize(&self.root.path.join(inside(rel)?)), rel)?;
        self.root.open_in(&self.dir, rel)
    }
}

/// By what a file that changed is told from one that did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Size in bytes.
    pub size: u64,
    /// When its content or its attributes last changed, in nanoseconds since 1970; no program can set it.
    pub changed_ns: i64,
    /// The inode.
    pub inode: u64,
}

impl Facts {
    /// Of an open file.
    ///
    /// # Errors
    /// What the system says.
    pub fn of(file: &File) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let meta = file.metadata()?;
        let changed_ns = nanos(meta.ctime(), meta.ctime_nsec());
        Ok(Self { size: meta.len(), changed_ns, inode: meta.ino() })
    }
}

impl Opener {
    /// The facts of what lies at `rel`, by one plain look-up that follows symlinks of folders wherever they lead: only to
    /// be compared with facts that are known. `None` when there is nothing.
    pub fn facts(&self, rel: &str) -> Option<Facts> {
        let stat = statat(&*self.dir, inside(rel).ok()?, AtFlags::SYMLINK_NOFOLLOW).ok()?;
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

    /// The same facts from the standard library's form.
    pub fn of_std(meta: &std::fs::Metadata) -> FileStat {
        use std::os::unix::fs::MetadataExt as _;
        let kind = kind_of(meta.is_file(), meta.is_dir(), meta.is_symlink());
        let mtime_ns = nanos(meta.mtime(), meta.mtime_nsec());
        FileStat { size: meta.len(), mtime_ns, inode: meta.ino(), kind }
    }
}

/// What a file is, by what the system says that it is.
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

fn open_folder(path: &Path) -> io::Result<(Arc<Dir>, Identity)> {
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    let meta = file.metadata()?;
    Ok((Arc::new(Dir::from_std_file(file)), (meta.dev(), meta.ino())))
}

/// The path to look up beneath the root's handle.
fn inside(rel: &str) -> Result<&Path, Failure> {
    if rel.contains('\0') {
        return Err(Failure::new(Reason::InvalidParams, "a path holds a NUL byte"));
    }
    Ok(Path::new(if rel.is_empty() { "." } else { rel }))
}

/// A path for a message: bounded and printable.
pub(crate) fn shown(path: &str) -> String {
    path.chars().take(300).flat_map(char::escape_debug).collect()
}

/// The failure that an I/O error on `rel` is.
pub(crate) fn failure(error: &io::Error, rel: &str) -> Failure {
    use rustix::io::Errno;
    let what = shown(rel);
    let errno = Errno::from_io_error(error);
    match (error.kind(), errno) {
        // An attempt to leave the root has no system error behind it.
        (io::ErrorKind::PermissionDenied, None) | (_, Some(Errno::XDEV)) => {
            Failure::new(Reason::PathOutsideRoots, format!("'{what}' leads out of its root"))
        }
        (io::ErrorKind::NotFound, _) | (_, Some(Errno::NOTDIR)) => {
            Failure::new(Reason::PathNotFound, format!("'{what}' does not exist"))
        }
        (_, Some(Errno::LOOP)) => {
            Failure::new(Reason::PathNotFound, format!("'{what}' is a loop of symlinks"))
        }
        (_, Some(Errno::NAMETOOLONG)) => {
            Failure::new(Reason::InvalidParams, format!("'{what}' is too long a path"))
        }
        (_, Some(Errno::NXIO | Errno::ISDIR | Errno::NODEV)) => {
            Failure::new(Reason::NotAFile, format!("'{what}' is not a regular file"))
        }
        _ => Failure::new(Reason::PathUnreadable, format!("'{what}': {error}")),
    }
}
