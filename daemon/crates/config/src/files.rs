//! Reading configuration files: behind a trait, so that layers can be tested as tables.

use std::{
    io::{self, Read as _},
    path::Path,
};

/// Largest configuration file.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Where files are read from.
pub trait Files {
    /// The text of a file; `None` when there is none.
    ///
    /// # Errors
    /// When it is there and cannot be read.
    fn read(&self, path: &Path) -> io::Result<Option<String>>;
}

/// The file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiskFiles;

impl Files for DiskFiles {
    fn read(&self, path: &Path) -> io::Result<Option<String>> {
        // Asked before opening: a pipe of that name would wait for its writer.
        match std::fs::metadata(path) {
            Ok(meta) if meta.is_file() => {}
            Ok(_) => return Err(io::Error::other("it is not a regular file")),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(e) => return Err(e),
        }
        let mut text = String::new();
        let read = std::fs::File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
        if read as u64 > MAX_FILE_BYTES {
            return Err(io::Error::other("it is over 1 MiB"));
        }
        Ok(Some(text))
    }
}

impl<S: std::hash::BuildHasher> Files for std::collections::HashMap<std::path::PathBuf, String, S> {
    fn read(&self, path: &Path) -> io::Result<Option<String>> {
        Ok(self.get(path).cloned())
    }
}
