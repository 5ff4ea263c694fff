//! Writing beneath a root: atomically, and never outside it.

use std::io::{self, Read as _, Write as _};

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _, PermissionsExt as _};

use crate::{
    Autorun, AutorunClass, WorkspaceError, autorun, is_version_control,
    root::{Root, failure},
};

/// Largest file that is written or edited, in bytes.
pub const MAX_WRITTEN_BYTES: u64 = 16 * 1024 * 1024;

impl Root {
    /// Reads the complete file at `rel`, of at most `limit` bytes; `None` when there is none.
    ///
    /// # Errors
    /// As [`Root::open_file`], without `PathNotFound`; `TooLarge`.
    pub fn read_file(&self, rel: &str, limit: u64) -> Result<Option<Vec<u8>>, WorkspaceError> {
        let file = match self.open_file(rel) {
            Ok(file) => file,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes).map_err(|e| failure(e, rel))?;
        if bytes.len() as u64 > limit {
            return Err(WorkspaceError::FileTooLarge { path: rel.to_owned(), limit });
        }
        Ok(Some(bytes))
    }

    /// Replaces the file at `rel` by `bytes`, or creates it with the folders above it. Readers see
    /// the old file or the new one; its mode is retained. No symlink is followed: resolve the path
    /// first.
    ///
    /// # Errors
    /// As [`Root::open_file`]; `NotAFile` for a symlink; `PathBlocked` for folders of version
    /// control and for files that Cairn itself runs or reads; `TooLarge`; `DiskFull`.
    pub fn write_file(&self, rel: &str, bytes: &[u8]) -> Result<(), WorkspaceError> {
        self.write_file_as(rel, bytes, None)
    }

    /// Returns true if its owner may execute the file at `rel`.
    ///
    /// # Errors
    /// As [`Root::open_file`].
    pub fn is_executable(&self, rel: &str) -> Result<bool, WorkspaceError> {
        use std::os::unix::fs::PermissionsExt as _;
        let meta = self.open_file(rel)?.metadata().map_err(|e| failure(e, rel))?;
        Ok(meta.permissions().mode() & 0o100 != 0)
    }

    /// Writes a file as [`Root::write_file`] does, and makes it executable for those who may read
    /// it, or for nobody; `None` retains the mode.
    ///
    /// # Errors
    /// As [`Root::write_file`].
    pub fn write_file_as(
        &self,
        rel: &str,
        bytes: &[u8],
        executable: Option<bool>,
    ) -> Result<(), WorkspaceError> {
        if bytes.len() as u64 > MAX_WRITTEN_BYTES {
            return Err(WorkspaceError::ContentTooLarge {
                path: rel.to_owned(),
                limit: MAX_WRITTEN_BYTES,
            });
        }
        let (folder, name) = self.writable(rel, true)?;
        let mode = match folder.symlink_metadata(&name) {
            Ok(meta) if meta.is_file() => Some(meta.permissions()),
            Ok(_) => return Err(no_file(rel)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(written(e, rel)),
        };
        let fresh = unfinished_name(&name);
        let write = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o666);
            let mut file = folder.open_with(&fresh, &options)?;
            file.write_all(bytes)?;
            // A new file has the mode that the mask of the process leaves.
            let usual = match &mode {
                Some(mode) => mode.mode() & 0o7777,
                None => file.metadata()?.permissions().mode() & 0o7777,
            };
            let wished = match executable {
                Some(true) => usual | (usual & 0o444) >> 2,
                Some(false) => usual & !0o111,
                None => usual,
            };
            if mode.is_some() || wished != usual {
                file.set_permissions(cap_std::fs::Permissions::from_mode(wished))?;
            }
            file.sync_all()?;
            folder.rename(&fresh, &folder, &name)
        };
        write().map_err(|e| {
            // The partial file is of no use.
            let _result = folder.remove_file(&fresh);
            written(e, rel)
        })
    }

    /// Removes the file at `rel`; a symlink itself, not its target.
    ///
    /// # Errors
    /// `PathNotFound`, `NotAFile` for folders, and errors of [`Root::write_file`].
    pub fn remove_file(&self, rel: &str) -> Result<(), WorkspaceError> {
        let (folder, name) = self.writable(rel, false)?;
        let meta = folder.symlink_metadata(&name).map_err(|e| failure(e, rel))?;
        if meta.is_dir() {
            return Err(no_file(rel));
        }
        folder.remove_file(&name).map_err(|e| written(e, rel))
    }

    /// Returns the folder that contains the file at `rel` (created when `make`), and the file's
    /// name in it.
    fn writable(&self, rel: &str, make: bool) -> Result<(Dir, String), WorkspaceError> {
        let real = normal(rel)?;
        closed(&real)?;
        self.require_not_own(&real)?;
        let (parent, name) = real.rsplit_once('/').map_or(("", real.as_str()), |(p, n)| (p, n));
        if name.is_empty() {
            return Err(no_file(rel));
        }
        if make && !parent.is_empty() {
            self.make_folders(parent, rel)?;
        }
        let (folder, folder_path) = self.open_dir(parent)?;
        // The folder is open now; its path when it was opened decides, even if it is swapped
        // meanwhile.
        if let Ok(beneath) = folder_path.strip_prefix(&self.path) {
            let opened = beneath.join(name);
            let opened = opened.to_string_lossy();
            closed(&opened)?;
            self.require_not_own(&opened)?;
        } else if !folder_path.as_os_str().is_empty() && folder_path != self.path {
            return Err(WorkspaceError::LeavesRoot { path: rel.to_owned() });
        }
        if self.is_blocked(&folder_path.join(name)) {
            return Err(WorkspaceError::Blocked { path: rel.to_owned() });
        }
        Ok((folder, name.to_owned()))
    }

    /// Returns the class of the file at `rel` if something runs it later: by its name, or because
    /// the daemon's configuration names it as a program.
    pub fn autorun(&self, rel: &str) -> Option<Autorun> {
        let named = || {
            let own = Autorun { class: AutorunClass::Own, reader: "Cairn" };
            self.named_programs().iter().any(|path| is_named(path, rel)).then_some(own)
        };
        let by_name = autorun(rel);
        match by_name {
            Some(known) if known.class == AutorunClass::Own => by_name,
            _ => named().or(by_name),
        }
    }

    /// Returns the class of a link that stands in the place of a folder with files that run later.
    pub(crate) fn autorun_link(&self, rel: &str) -> Option<Autorun> {
        let own = Autorun { class: AutorunClass::Own, reader: "Cairn" };
        let is_named = self.named_programs().iter().any(|path| is_below(path, rel));
        is_named.then_some(own).or_else(|| crate::autorun::autorun_link(rel))
    }

    fn require_not_own(&self, rel: &str) -> Result<(), WorkspaceError> {
        match self.autorun(rel) {
            Some(known) if known.class == AutorunClass::Own => {
                Err(WorkspaceError::OwnFile { path: rel.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Creates the folders above the file at `rel`.
    pub(crate) fn make_folders_of(&self, rel: &str) -> Result<(), WorkspaceError> {
        rel.rsplit_once('/').map_or(Ok(()), |(parent, _)| self.make_folders(parent, rel))
    }

    fn make_folders(&self, parent: &str, rel: &str) -> Result<(), WorkspaceError> {
        let mut at = String::new();
        for part in parent.split('/') {
            match self.open_dir(&at)?.0.create_dir(part) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(written(e, rel)),
            }
            at = if at.is_empty() { part.to_owned() } else { format!("{at}/{part}") };
        }
        Ok(())
    }
}

/// Returns true if an entry of the named programs is the file at `rel`, or a folder around it.
pub(crate) fn is_named(entry: &str, rel: &str) -> bool {
    if entry.ends_with('/') { rel.starts_with(entry) } else { rel == entry }
}

/// Returns true if an entry of the named programs is below the folder at `rel`, or that folder.
pub(crate) fn is_below(entry: &str, rel: &str) -> bool {
    entry.strip_prefix(rel).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the path without empty and dotted parts; `..` is removed where it stays inside.
fn normal(rel: &str) -> Result<String, WorkspaceError> {
    let mut parts: Vec<&str> = Vec::new();
    for part in rel.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return Err(WorkspaceError::LeavesRoot { path: rel.to_owned() });
                }
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

fn closed(rel: &str) -> Result<(), WorkspaceError> {
    match rel.split('/').find(|part| is_version_control(part)) {
        Some(part) => {
            Err(WorkspaceError::WriteProtected { path: rel.to_owned(), folder: part.to_owned() })
        }
        None => Ok(()),
    }
}

/// Returns the name of a file that is written before it takes the place of `name`.
pub(crate) fn unfinished_name(name: &str) -> String {
    let short: String = name.chars().take(100).collect();
    format!(".{short}.cairn-{}", uuid::Uuid::now_v7().simple())
}

fn no_file(rel: &str) -> WorkspaceError {
    WorkspaceError::NotAFile { path: rel.to_owned() }
}

fn written(error: io::Error, rel: &str) -> WorkspaceError {
    use rustix::io::Errno;
    match Errno::from_io_error(&error) {
        Some(Errno::NOSPC | Errno::DQUOT) => {
            WorkspaceError::DiskFull { path: rel.to_owned(), source: error }
        }
        _ => failure(error, rel),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use cairn_protocol::error::Reason;

    use super::*;
    use crate::Roots;

    fn root(dir: &std::path::Path) -> Root {
        Roots::new(vec![]).declare(dir).unwrap()
    }

    #[test]
    fn files_are_written_atomically_with_mode_and_parent_folders() {
        let dir = tempfile::tempdir().unwrap();
        let root = root(dir.path());
        root.write_file("a/b/c.txt", b"one").unwrap();
        let path = dir.path().join("a/b/c.txt");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
        root.write_file("a/./b/../b/c.txt", b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o751);
        let entries: Vec<_> = std::fs::read_dir(dir.path().join("a/b")).unwrap().collect();
        assert_eq!(entries.len(), 1, "nothing is left beside it");
        root.remove_file("a/b/c.txt").unwrap();
        assert_eq!(root.remove_file("a/b/c.txt").unwrap_err().reason(), Reason::PathNotFound);
        assert_eq!(root.remove_file("a/b").unwrap_err().reason(), Reason::NotAFile);
        assert_eq!(root.write_file("a/b", b"x").unwrap_err().reason(), Reason::NotAFile);
        assert_eq!(root.read_file("none", 10).unwrap(), None);
    }

    #[test]
    fn symlinks_inside_root_are_followed_and_others_refused() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let root = root(dir.path());
        std::fs::write(dir.path().join("real"), "x").unwrap();
        symlink("real", dir.path().join("link")).unwrap();
        assert_eq!(root.write_file("link", b"y").unwrap_err().reason(), Reason::NotAFile);
        root.write_file(root.locate("link").unwrap().real(), b"y").unwrap();
        assert!(dir.path().join("link").symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read(dir.path().join("real")).unwrap(), b"y");
        symlink(outside.path(), dir.path().join("out")).unwrap();
        symlink(outside.path().join("f"), dir.path().join("file")).unwrap();
        std::fs::write(outside.path().join("f"), "safe").unwrap();
        for path in ["out/f", "out/new", "file", "../x", "a/../../x", "out/../../x"] {
            assert!(root.write_file(path, b"bad").is_err(), "{path}");
            assert_eq!(root.locate(path).unwrap_err().reason(), Reason::PathOutsideRoots, "{path}");
        }
        assert!(root.remove_file("out/f").is_err());
        assert_eq!(std::fs::read(outside.path().join("f")).unwrap(), b"safe");
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
        // A link itself may be removed; its target remains.
        root.remove_file("file").unwrap();
        assert!(outside.path().join("f").exists());
    }

    #[test]
    fn version_control_folders_and_own_files_are_closed() {
        let dir = tempfile::tempdir().unwrap();
        let root = root(dir.path());
        std::fs::create_dir_all(dir.path().join("sub/.git")).unwrap();
        symlink("sub/.git", dir.path().join("alias")).unwrap();
        for path in [
            ".git/config",
            ".GIT/hooks/x",
            "sub/.git/config",
            "x/.git/y",
            "alias/config",
            "sub/./.git/hooks/h",
        ] {
            let real = root.locate(path).unwrap();
            assert_eq!(
                root.write_file(real.real(), b"x").unwrap_err().reason(),
                Reason::PathBlocked,
                "{path}"
            );
        }
        root.write_file("sub/.gitignore", b"x").unwrap();
        std::fs::write(dir.path().join(".mcp.json"), "{}").unwrap();
        symlink(".mcp.json", dir.path().join("notes")).unwrap();
        for path in [".cairn.json", "a/.claude/settings.json", ".mcp.json", "notes"] {
            let real = root.locate(path).unwrap();
            let refused = [root.write_file(real.real(), b"x"), root.remove_file(real.real())];
            for refused in refused {
                assert_eq!(refused.unwrap_err().reason(), Reason::PathBlocked, "{path}");
            }
        }
        root.write_file(".claude/agents/a.md", b"x").unwrap();
    }
}
