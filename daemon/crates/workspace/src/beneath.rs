//! Opening and resolving beneath a folder. Opening follows no symlink at all; resolving follows
//! them once, so that the path that is judged afterwards is the one that is opened.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::ffi::OsStrExt as _,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, readlinkat, statat},
    io::Errno,
};

/// Most symlinks on one path; the kernel's own limit.
const MAX_LINKS: u32 = 40;
/// Most entries of a folder that are read to find the real spelling of a name.
const MAX_ENTRIES: usize = 100_000;

/// Opens `rel` (no `..`) beneath `dir`. A symlink anywhere in it, the last component included, is
/// `ELOOP`.
pub(crate) fn open(dir: BorrowedFd<'_>, rel: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        // Not with `NOFOLLOW`: `O_PATH` would then open the link itself.
        match openat2(dir, rel, flags, Mode::empty(), how) {
            // Old kernels, and containers whose filter does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            Err(Errno::XDEV) => return Err(Errno::XDEV.into()),
            other => return Ok(other?),
        }
    }
    open_by_component(dir, rel, flags | OFlags::NOFOLLOW)
}

/// Opens on systems without `openat2`: one look-up for each component, none of which may be a
/// symlink.
fn open_by_component(dir: BorrowedFd<'_>, rel: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = openat(dir, c".", folder, Mode::empty())?;
    let mut names = rel.components().peekable();
    while let Some(name) = names.next() {
        match name {
            Component::CurDir => {}
            Component::Normal(name) if names.peek().is_none() => {
                return Ok(openat(&at, name, flags, Mode::empty())?);
            }
            Component::Normal(name) => {
                at = openat(&at, name, folder, Mode::empty())
                    .map_err(|e| link_or(e, at.as_fd(), name))?;
            }
            _ => return Err(Errno::XDEV.into()),
        }
    }
    Ok(openat(&at, c".", flags & !OFlags::NOFOLLOW, Mode::empty())?)
}

/// Maps `ENOTDIR` for a symlink in the middle of a path to the error for a symlink.
fn link_or(error: Errno, at: BorrowedFd<'_>, name: &OsStr) -> Errno {
    if is_link(at, name) { Errno::LOOP } else { error }
}

fn is_link(at: BorrowedFd<'_>, name: &OsStr) -> bool {
    let stat = statat(at, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::Symlink)
}

/// Result of a resolution, relative to the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolution {
    /// Path with its folders resolved and the last component as it was named.
    pub entry: PathBuf,
    /// Path with every component resolved.
    pub real: PathBuf,
}

/// Reason why a path has no resolution.
#[derive(Debug)]
pub(crate) enum Unresolved {
    /// The path leads out of the folder.
    Outside,
    /// The system's error: a loop, a folder that cannot be opened.
    Io(io::Error),
}

impl From<Errno> for Unresolved {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}

/// Follows every symlink of `rel` (no `..`) beneath `dir`, whose path is `top`. Names are spelled
/// as the file system has them. Components that do not exist are appended unchanged.
pub(crate) fn resolve(
    dir: BorrowedFd<'_>,
    top: &Path,
    rel: &Path,
) -> Result<Resolution, Unresolved> {
    let plain: PathBuf = rel.components().filter(|c| *c != Component::CurDir).collect();
    if plain.as_os_str().is_empty() {
        return Ok(Resolution { entry: PathBuf::new(), real: PathBuf::new() });
    }
    if is_plain(dir, &plain) {
        return Ok(Resolution { entry: plain.clone(), real: plain });
    }
    Walk { dir, top, at: Vec::new(), pending: names(&plain), links: 0, entry: None }.run()
}

/// Returns true if `rel` exists, passes through no symlink, and is spelled as the file system has
/// it.
fn is_plain(dir: BorrowedFd<'_>, rel: &Path) -> bool {
    let Some(text) = rel.to_str().filter(|t| t.is_ascii()) else { return false };
    let exists = if cfg!(target_os = "linux") {
        open(dir, rel, path_only()).is_ok()
    } else {
        // There is no cheap check for the complete path; component by component is the same work.
        false
    };
    exists && !is_same_entry(dir, rel, Path::new(&other_case(text)))
}

#[cfg(target_os = "linux")]
pub(crate) fn path_only() -> OFlags {
    OFlags::PATH
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn path_only() -> OFlags {
    OFlags::RDONLY | OFlags::NONBLOCK
}

fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|c| match c {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        })
        .collect()
}

/// A resolution in progress.
struct Walk<'a> {
    dir: BorrowedFd<'a>,
    top: &'a Path,
    /// Open folders on the path so far.
    at: Vec<(OsString, OwnedFd)>,
    pending: VecDeque<OsString>,
    links: u32,
    entry: Option<PathBuf>,
}

impl Walk<'_> {
    fn here(&self) -> BorrowedFd<'_> {
        self.at.last().map_or(self.dir, |(_, fd)| fd.as_fd())
    }

    fn path(&self) -> PathBuf {
        self.at.iter().map(|(name, _)| name).collect()
    }

    fn run(mut self) -> Result<Resolution, Unresolved> {
        while let Some(name) = self.pending.pop_front() {
            if name == ".." {
                self.at.pop().ok_or(Unresolved::Outside)?;
                continue;
            }
            if self.pending.is_empty() && self.entry.is_none() {
                self.entry = Some(self.path().join(real_name(self.here(), &name)));
            }
            match readlinkat(self.here(), &name, Vec::new()) {
                Ok(target) => self.follow(Path::new(OsStr::from_bytes(target.as_bytes())))?,
                Err(Errno::INVAL) => {
                    let name = real_name(self.here(), &name);
                    if self.pending.is_empty() {
                        let real = self.path().join(name);
                        return self.end(real);
                    }
                    let folder =
                        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    match openat(self.here(), &name, folder, Mode::empty()) {
                        Ok(fd) => self.at.push((name, fd)),
                        // The entry has just been replaced by a link.
                        Err(errno) if is_link(self.here(), &name) => {
                            self.count_link(errno)?;
                            self.pending.push_front(name);
                        }
                        Err(Errno::NOTDIR | Errno::NOENT) => return self.missing(name),
                        Err(errno) => return Err(errno.into()),
                    }
                }
                Err(Errno::NOENT | Errno::NOTDIR) => return self.missing(name),
                Err(errno) => return Err(errno.into()),
            }
        }
        let path = self.path();
        self.end(path)
    }

    fn end(self, real: PathBuf) -> Result<Resolution, Unresolved> {
        Ok(Resolution { entry: self.entry.unwrap_or_else(|| real.clone()), real })
    }

    fn count_link(&mut self, errno: Errno) -> Result<(), Unresolved> {
        self.links += 1;
        if self.links > MAX_LINKS { Err(errno.into()) } else { Ok(()) }
    }

    fn follow(&mut self, target: &Path) -> Result<(), Unresolved> {
        self.count_link(Errno::LOOP)?;
        let rest = if target.is_absolute() {
            self.at.clear();
            target.strip_prefix(self.top).map_err(|_| Unresolved::Outside)?
        } else {
            target
        };
        for name in names(rest).into_iter().rev() {
            self.pending.push_front(name);
        }
        Ok(())
    }

    /// Resolves a missing `name`: it and the remaining components are appended unchanged.
    fn missing(self, name: OsString) -> Result<Resolution, Unresolved> {
        let mut path = self.path().join(name);
        for name in &self.pending {
            if name != ".." {
                path.push(name);
            } else if !path.pop() {
                return Err(Unresolved::Outside);
            }
        }
        let entry = self.entry.unwrap_or_else(|| path.clone());
        Ok(Resolution { entry, real: path })
    }
}

/// Returns a name as its folder has it: on a file system that ignores case, or the form of accents,
/// another spelling opens the same entry.
fn real_name(folder: BorrowedFd<'_>, name: &OsStr) -> OsString {
    let other = name.to_str().filter(|n| n.is_ascii()).map(other_case);
    let doubtful = match &other {
        Some(other) if other.as_str() == name => false,
        Some(other) => is_same_entry(folder, Path::new(name), Path::new(other)),
        None => true,
    };
    let listed = || {
        let inode = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?.st_ino;
        spelled(folder, name, inode)
    };
    doubtful.then(listed).flatten().unwrap_or_else(|| name.to_owned())
}

/// Returns the entry of a folder with this inode: the one with the exact name if there is one.
fn spelled(folder: BorrowedFd<'_>, name: &OsStr, inode: u64) -> Option<OsString> {
    let mut matching_name = None;
    for entry in Dir::read_from(folder).ok()?.take(MAX_ENTRIES).flatten() {
        let own = OsStr::from_bytes(entry.file_name().to_bytes());
        if own == name {
            return Some(own.to_owned());
        }
        if entry.ino() == inode {
            matching_name = matching_name.or_else(|| Some(own.to_owned()));
        }
    }
    matching_name
}

fn other_case(text: &str) -> String {
    let swap = |c: char| {
        if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }
    };
    text.chars().map(swap).collect()
}

/// Returns true if two different names open the same entry.
fn is_same_entry(dir: BorrowedFd<'_>, one: &Path, other: &Path) -> bool {
    let identity =
        |path| statat(dir, path, AtFlags::SYMLINK_NOFOLLOW).map(|s| (s.st_dev, s.st_ino));
    one != other && matches!((identity(one), identity(other)), (Ok(x), Ok(y)) if x == y)
}
