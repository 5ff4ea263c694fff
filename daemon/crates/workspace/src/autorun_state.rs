//! The files of a root that cause programs to run later, before and after a command: a command can
//! write any name in its workspace, so its effect on these is compared, and put back if nobody
//! accepts it.
//!
//! A change of a folder or a file is recognised by its inode and its time of change, which no
//! program can set; contents are compared where these differ.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
    sync::Arc,
};

use rustix::fs::{
    AtFlags, Dir, DirEntry, FileType, Mode, OFlags, openat, readlinkat, statat, symlinkat,
};

use crate::{
    Autorun, AutorunClass, Root, WorkspaceError,
    autorun::{is_package_folder, may_be_autorun, may_be_folder, may_be_link},
    is_version_control, sockets,
    write::{is_below, is_named, unfinished_name},
};

/// Most entries of a workspace that are looked at.
const MAX_ENTRIES: usize = 1_000_000;
/// Most bytes of one file that are stored, and of all together.
const MAX_CONTENT: (u64, u64) = (1 << 20, 16 << 20);
/// Most entries of a folder of version control that are looked at.
const MAX_CONTROL: usize = 1_000;
/// Most bytes of a rejected file that are stored.
const MAX_REJECTED: u64 = 256 << 20;
/// The mode that distinguishes a placeholder from any other empty file: sticky, and writable by no
/// user.
pub const PLACEHOLDER_MODE: u32 = 0o1444;
/// Most folders inside one another.
const MAX_DEPTH: usize = 128;

/// Identity of an entry and the time of its last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    changed: (i64, i64),
    size: i64,
    mode: u32,
}

/// One file, as it was.
#[derive(Debug, Clone)]
struct Known {
    autorun: Autorun,
    stamp: Stamp,
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Bytes(Arc<[u8]>),
    Link(Vec<u8>),
    /// Too large, or not readable: it cannot be put back.
    Unknown,
}

/// A folder as it was: without a change its entries are the same.
#[derive(Debug, Clone)]
struct KnownFolder {
    stamp: Stamp,
    folders: Vec<String>,
    files: Vec<(String, FileType)>,
    sockets: Vec<String>,
    /// Folders of version control, whose sockets alone count.
    control: Vec<String>,
}

impl KnownFolder {
    fn new(stamp: Stamp) -> Self {
        Self { stamp, folders: vec![], files: vec![], sockets: vec![], control: vec![] }
    }

    fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.files.is_empty() && self.control.is_empty()
    }
}

/// The files that run later in one root.
#[derive(Debug, Default)]
pub struct AutorunState {
    files: BTreeMap<String, Known>,
    folders: HashMap<String, KnownFolder>,
    /// Paths of Unix sockets, relative to the root.
    sockets: Vec<String>,
    /// True if the workspace has more than could be looked at.
    pub is_partial: bool,
}

/// A file that runs later and was created, changed or removed.
#[derive(Debug, Clone)]
pub struct AutorunChange {
    /// Path relative to the root.
    pub path: String,
    pub autorun: Autorun,
    before: Option<Known>,
    after: Option<Known>,
}

impl AutorunChange {
    /// Returns the content before and after, where it is known text.
    pub fn texts(&self) -> (Option<String>, Option<String>) {
        let text = |known: Option<&Known>| match &known?.content {
            Content::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Content::Link(target) => Some(format!("link to {}\n", String::from_utf8_lossy(target))),
            Content::Unknown => None,
        };
        (text(self.before.as_ref()), text(self.after.as_ref()))
    }

    /// Returns true if the file does not exist any more.
    pub fn is_removal(&self) -> bool {
        self.after.is_none()
    }

    /// Returns true if both leave the same file with the same content.
    pub fn is_same(&self, other: &Self) -> bool {
        let same = |(one, other): (&Known, &Known)| one.is_same(other);
        let contents = self.after.as_ref().zip(other.after.as_ref());
        self.path == other.path && contents.map_or(self.is_removal() == other.is_removal(), same)
    }
}

impl Known {
    fn is_same(&self, other: &Self) -> bool {
        self.stamp == other.stamp
            || (self.content == other.content
                && self.content != Content::Unknown
                && self.stamp.mode == other.stamp.mode)
    }
}

impl AutorunState {
    /// Makes a change part of this state: it is no change any more.
    pub fn accept(&mut self, change: &AutorunChange) {
        self.set(&change.path, change.after.clone());
    }

    /// Takes the state of one path from another look.
    pub fn restore(&mut self, other: &Self, path: &str) {
        self.set(path, other.files.get(path).cloned());
    }

    /// Returns the paths, relative to the root, of Unix sockets at which a program may listen now.
    pub fn live_sockets(&self) -> Vec<String> {
        sockets::live(self.sockets.clone())
    }

    /// Makes a write of Cairn's own part of this state: exactly this content, or no file. What
    /// another process makes of the file at the same moment is a change.
    pub fn expect(&mut self, root: &Root, path: &str, content: Option<&[u8]>) {
        let known = content.and_then(|content| {
            let autorun = root.autorun(path).filter(|known| known.class != AutorunClass::Source)?;
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
            let (folder, _) = root.open_dir(parent).ok()?;
            let mode = stamp_of(folder.as_fd(), Some(name)).ok()?.mode;
            // No file has this stamp, so that contents are compared.
            let stamp = Stamp { inode: 0, changed: (0, 0), size: 0, mode };
            Some(Known { autorun, stamp, content: Content::Bytes(content.into()) })
        });
        self.set(path, known);
    }

    fn set(&mut self, path: &str, known: Option<Known>) {
        match known {
            Some(known) => self.files.insert(path.to_owned(), known),
            None => self.files.remove(path),
        };
    }
}

struct Scan<'a> {
    root: &'a Root,
    named: Arc<Vec<String>>,
    last: Option<&'a AutorunState>,
    state: AutorunState,
    entries: usize,
    room: u64,
}

impl Root {
    /// Looks at all files that run later. Contents of those that are unchanged since `last` are not
    /// read again.
    ///
    /// # Errors
    /// The root cannot be opened.
    pub fn autorun_state(
        &self,
        last: Option<&AutorunState>,
    ) -> Result<AutorunState, WorkspaceError> {
        let (top, _) = self.open_dir("")?;
        let mut scan = Scan {
            root: self,
            named: self.named_programs(),
            last,
            state: AutorunState::default(),
            entries: 0,
            room: MAX_CONTENT.1,
        };
        scan.folder(top.as_fd(), "", (false, false), 0);
        Ok(scan.state)
    }

    /// Compares these files with those of an earlier look. Folders without changed entries are not
    /// read again.
    ///
    /// # Errors
    /// The root cannot be opened.
    pub fn autorun_changes(
        &self,
        before: &AutorunState,
    ) -> Result<Vec<AutorunChange>, WorkspaceError> {
        let after = self.autorun_state(Some(before))?;
        let mut all = Vec::new();
        for (path, now) in &after.files {
            let then = before.files.get(path);
            let same = then.is_some_and(|then| then.is_same(now));
            if !same {
                all.push(AutorunChange {
                    path: path.clone(),
                    autorun: now.autorun,
                    before: then.cloned(),
                    after: Some(now.clone()),
                });
            }
        }
        for (path, then) in before.files.iter().filter(|(path, _)| !after.files.contains_key(*path))
        {
            all.push(AutorunChange {
                path: path.clone(),
                autorun: then.autorun,
                before: Some(then.clone()),
                after: None,
            });
        }
        Ok(all)
    }

    /// Undoes a change. What the file contains now is stored in the folder `rejected` first, under its
    /// path, so that nothing is lost.
    ///
    /// # Errors
    /// Errors of the file system; a former content that was too large to store.
    pub fn put_back(&self, change: &AutorunChange, rejected: &Path) -> Result<(), io::Error> {
        let (parent, name) = change.path.rsplit_once('/').unwrap_or(("", &change.path));
        let lost = |e: WorkspaceError| io::Error::other(e.to_string());
        let before = change.before.as_ref().map(|known| (&known.content, known.stamp.mode));
        if let Some((Content::Unknown, _)) = before {
            return Err(io::Error::other("its former content was too large to store"));
        }
        if change.before.is_some() {
            self.make_folders_of(&change.path).map_err(lost)?;
        }
        let folder = match self.open_dir(parent) {
            Ok((folder, _)) => folder,
            // A folder that is gone has no new file.
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(lost(error)),
        };
        let fd = folder.as_fd();
        if let Some(known) = &change.after {
            store_rejected(rejected, &change.path, (fd, name), &known.content)?;
        }
        match before {
            None => Ok(rustix::fs::unlinkat(fd, name, AtFlags::empty())?),
            Some((Content::Link(target), _)) => {
                let fresh = unfinished_name(name);
                symlinkat(OsStr::from_bytes(target), fd, &fresh)?;
                Ok(rustix::fs::renameat(fd, &fresh, fd, name)?)
            }
            Some((Content::Bytes(bytes), mode)) => {
                let fresh = unfinished_name(name);
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let mode = Mode::from_raw_mode(mode & 0o7777);
                let mut file = std::fs::File::from(openat(fd, &fresh, flags, mode)?);
                file.write_all(bytes)?;
                rustix::fs::fchmod(&file, mode)?;
                file.sync_all()?;
                Ok(rustix::fs::renameat(fd, &fresh, fd, name)?)
            }
            Some((Content::Unknown, _)) => Ok(()),
        }
    }
}

/// Stores what a file contains now in a folder, under its path.
fn store_rejected(
    rejected: &Path,
    rel: &str,
    (folder, name): (BorrowedFd<'_>, &str),
    content: &Content,
) -> io::Result<()> {
    let path = rejected.join(rel);
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    match content {
        Content::Bytes(bytes) => std::fs::write(path, bytes),
        Content::Link(target) => std::fs::write(path, target),
        Content::Unknown => {
            // A pipe in its place must not block.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = std::fs::File::from(openat(folder, name, flags, Mode::empty())?);
            if file.metadata()?.is_file() {
                io::copy(&mut file.take(MAX_REJECTED), &mut std::fs::File::create(path)?)?;
            }
            Ok(())
        }
    }
}

impl Scan<'_> {
    /// Reads a folder. `within` says that a row names a folder on the way to it, and that it is one
    /// of installed packages, in which only what such an installation adds counts.
    fn folder(&mut self, fd: BorrowedFd<'_>, rel: &str, within: (bool, bool), depth: usize) {
        let Ok(stamp) = stamp_of(fd, None) else { return };
        let last = self.last.and_then(|last| last.folders.get(rel));
        let known = match last.filter(|last| last.stamp == stamp) {
            Some(last) => last.clone(),
            None => self.entries_of(fd, rel, stamp, within),
        };
        let join =
            |name: &str| if rel.is_empty() { name.to_owned() } else { format!("{rel}/{name}") };
        for (name, kind) in &known.files {
            self.file(fd, name, join(name), *kind);
        }
        self.state.sockets.extend(known.sockets.iter().map(|name| join(name)));
        for name in &known.control {
            self.sockets_in(fd, name, &join(name));
        }
        for name in &known.folders {
            if depth >= MAX_DEPTH {
                self.state.is_partial = true;
                break;
            }
            if let Some(leaf) = self.unchanged_leaf(fd, name, &join(name)) {
                self.state.folders.insert(join(name), leaf);
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened: Result<OwnedFd, _> = openat(fd, name, flags, Mode::empty());
            if let Ok(inner) = opened {
                let within = (within.0 || may_be_folder(name), is_package_folder(name));
                self.folder(inner.as_fd(), &join(name), within, depth + 1);
            }
        }
        self.state.folders.insert(rel.to_owned(), known);
    }

    /// Returns a folder that is as it was and has nothing that matters, without opening it: most
    /// folders of a workspace are such.
    fn unchanged_leaf(&self, parent: BorrowedFd<'_>, name: &str, rel: &str) -> Option<KnownFolder> {
        let last = self.last?.folders.get(rel)?;
        let is_leaf = last.is_empty() && last.sockets.is_empty();
        (is_leaf && stamp_of(parent, Some(name)).ok()? == last.stamp).then(|| last.clone())
    }

    /// Looks for sockets in a folder of version control, as of git's monitor of files.
    fn sockets_in(&mut self, parent: BorrowedFd<'_>, name: &str, rel: &str) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(folder) = openat(parent, name, flags, Mode::empty()) else { return };
        let Ok(entries) = Dir::read_from(&folder) else { return };
        for entry in entries.flatten().take(MAX_CONTROL) {
            if let Ok(name) = entry.file_name().to_str()
                && kind_of(&entry, folder.as_fd()) == Some(FileType::Socket)
            {
                self.state.sockets.push(format!("{rel}/{name}"));
            }
        }
    }

    /// Reads the entries of a folder that matter: its folders, and the files that may run later.
    fn entries_of(
        &mut self,
        fd: BorrowedFd<'_>,
        rel: &str,
        stamp: Stamp,
        (named, installed): (bool, bool),
    ) -> KnownFolder {
        let mut known = KnownFolder::new(stamp);
        let Ok(entries) = Dir::read_from(fd) else { return known };
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                self.state.is_partial = true;
                break;
            }
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name == "." || name == ".." {
                continue;
            }
            let Some(kind) = kind_of(&entry, fd) else { continue };
            if is_version_control(name) {
                if kind == FileType::Directory {
                    known.control.push(name.to_owned());
                }
                continue;
            }
            let is_program = || {
                let path = if rel.is_empty() { name.to_owned() } else { format!("{rel}/{name}") };
                self.named.iter().any(|entry| is_named(entry, &path))
            };
            let leads_to_program = || {
                let path = if rel.is_empty() { name.to_owned() } else { format!("{rel}/{name}") };
                self.named.iter().any(|entry| is_below(entry, &path))
            };
            match kind {
                FileType::Socket => known.sockets.push(name.to_owned()),
                FileType::Directory if installed && name != ".bin" => {}
                FileType::Directory => known.folders.push(name.to_owned()),
                FileType::RegularFile | FileType::Symlink
                    if named || may_be_autorun(name) || is_program() =>
                {
                    known.files.push((name.to_owned(), kind));
                }
                // A link in the place of a folder brings all files of that folder.
                FileType::Symlink if may_be_link(name) || leads_to_program() => {
                    known.files.push((name.to_owned(), kind));
                }
                _ => {}
            }
        }
        known
    }

    fn file(&mut self, folder: BorrowedFd<'_>, name: &str, path: String, kind: FileType) {
        let by_name = self.root.autorun(&path).filter(|known| known.class != AutorunClass::Source);
        let by_link = || (kind == FileType::Symlink).then(|| self.root.autorun_link(&path))?;
        let Some(autorun) = by_name.or_else(by_link) else { return };
        let Ok(stamp) = stamp_of(folder, Some(name)) else { return };
        // A name that is reserved while commands run is no file of theirs.
        if stamp.size == 0 && stamp.mode & 0o7777 == PLACEHOLDER_MODE {
            return;
        }
        let last = self.last.and_then(|last| last.files.get(&path));
        let content = match last.filter(|last| last.stamp == stamp) {
            Some(last) => last.content.clone(),
            None if kind == FileType::Symlink => match readlinkat(folder, name, Vec::new()) {
                Ok(target) => Content::Link(target.into_bytes()),
                Err(_) => Content::Unknown,
            },
            None => self.read(folder, name, stamp),
        };
        if let Content::Bytes(bytes) = &content {
            self.room = self.room.saturating_sub(bytes.len() as u64);
        }
        self.state.files.insert(path, Known { autorun, stamp, content });
    }

    fn read(&self, folder: BorrowedFd<'_>, name: &str, stamp: Stamp) -> Content {
        let limit = MAX_CONTENT.0.min(self.room);
        if u64::try_from(stamp.size).unwrap_or(u64::MAX) > limit {
            return Content::Unknown;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = openat(folder, name, flags, Mode::empty()) else { return Content::Unknown };
        let mut bytes = Vec::new();
        let read = std::fs::File::from(file).take(limit + 1).read_to_end(&mut bytes);
        match read {
            Ok(_) if bytes.len() as u64 <= limit => Content::Bytes(bytes.into()),
            _ => Content::Unknown,
        }
    }
}

/// Returns the kind of an entry, which some file systems do not list.
fn kind_of(entry: &DirEntry, folder: BorrowedFd<'_>) -> Option<FileType> {
    match (entry.file_type(), entry.file_name().to_str()) {
        (FileType::Unknown, Ok(name)) => {
            Some(FileType::from_raw_mode(stamp_of(folder, Some(name)).ok()?.mode))
        }
        (kind, _) => Some(kind),
    }
}

/// Returns the stamp of an entry of a folder, or of the folder itself.
fn stamp_of(folder: BorrowedFd<'_>, name: Option<&str>) -> io::Result<Stamp> {
    let stat = match name {
        Some(name) => statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?,
        None => rustix::fs::fstat(folder)?,
    };
    Ok(Stamp {
        inode: stat.st_ino,
        changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        size: stat.st_size,
        mode: stat.st_mode,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::Roots;

    #[test]
    fn changes_are_found_and_put_back_with_the_new_content_stored() {
        let dir = tempfile::tempdir().unwrap();
        let rejected = tempfile::tempdir().unwrap();
        let at = |rel: &str| dir.path().join(rel);
        for folder in [".vscode", "deep/er", "node_modules/.bin", "node_modules/p", ".git"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at(".vscode/settings.json"), "{}").unwrap();
        fs::write(at(".envrc"), "old").unwrap();
        fs::write(at("deep/er/.npmrc"), "same").unwrap();
        std::os::unix::fs::symlink("../p/cli", at("node_modules/.bin/p")).unwrap();
        let root = Roots::new(vec![]).declare(dir.path()).unwrap();
        let before = root.autorun_state(None).unwrap();
        assert!(root.autorun_changes(&before).unwrap().is_empty());
        // A command's work.
        fs::write(at(".envrc"), "evil").unwrap();
        fs::create_dir_all(at("new/.zed")).unwrap();
        fs::write(at("new/.zed/tasks.json"), "[]").unwrap();
        fs::write(at("deep/er/.npmrc"), "same").unwrap();
        fs::remove_file(at(".vscode/settings.json")).unwrap();
        fs::write(at("node_modules/p/.envrc"), "of a package").unwrap();
        fs::write(at(".git/hook"), "closed by itself").unwrap();
        fs::write(at("main.rs"), "fn main() {}").unwrap();
        std::os::unix::fs::symlink("../q/cli", at("node_modules/.bin/q")).unwrap();
        let changes = root.autorun_changes(&before).unwrap();
        let paths: Vec<_> = changes.iter().map(|c| (c.path.as_str(), c.is_removal())).collect();
        assert_eq!(
            paths,
            [
                (".envrc", false),
                ("new/.zed/tasks.json", false),
                ("node_modules/.bin/q", false),
                (".vscode/settings.json", true),
            ]
        );
        for change in &changes {
            root.put_back(change, rejected.path()).unwrap();
        }
        assert!(root.autorun_changes(&before).unwrap().is_empty());
        assert_eq!(fs::read_to_string(at(".envrc")).unwrap(), "old");
        assert!(!at("new/.zed/tasks.json").exists());
        assert!(at("node_modules/.bin/q").symlink_metadata().is_err());
        assert_eq!(fs::read_to_string(at(".vscode/settings.json")).unwrap(), "{}");
        assert_eq!(fs::read_to_string(rejected.path().join(".envrc")).unwrap(), "evil");
    }

    /// A link in the place of a folder brings files that the command wrote under another name.
    #[test]
    fn link_that_stands_for_a_folder_is_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let rejected = tempfile::tempdir().unwrap();
        let at = |rel: &str| dir.path().join(rel);
        fs::create_dir_all(at("plain")).unwrap();
        fs::write(at("plain/tasks.json"), "evil").unwrap();
        let root = Roots::new(vec![]).declare(dir.path()).unwrap();
        let before = root.autorun_state(None).unwrap();
        let strict = [".zed", "sub/.VSCODE", "venv/bin", ".claude", "node_modules/.bin", ".github"];
        let free = ["docs", "sub/src", "lib64", "node_modules/venv"];
        for link in strict.iter().chain(&free) {
            fs::create_dir_all(at(link).parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(at("plain"), at(link)).unwrap();
        }
        let changes = root.autorun_changes(&before).unwrap();
        let mut paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        paths.sort_unstable();
        let mut expected = strict.to_vec();
        expected.sort_unstable();
        assert_eq!(paths, expected);
        for change in &changes {
            root.put_back(change, rejected.path()).unwrap();
        }
        assert!(strict.iter().all(|link| fs::symlink_metadata(at(link)).is_err()));
        assert!(free.iter().all(|link| fs::symlink_metadata(at(link)).is_ok()));
        assert_eq!(fs::read_to_string(at("plain/tasks.json")).unwrap(), "evil");
    }
}
