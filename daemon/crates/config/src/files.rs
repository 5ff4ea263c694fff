//! Reading of configuration files, behind a trait so that tests can supply file contents.

use std::{
    io::{self, Read as _},
    path::Path,
};

pub const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A source of configuration files.
pub trait Files {
    /// Reads a file; `None` when it does not exist.
    ///
    /// # Errors
    /// The file exists and cannot be read.
    fn read(&self, path: &Path) -> io::Result<Option<String>>;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct DiskFiles;

impl Files for DiskFiles {
    fn read(&self, path: &Path) -> io::Result<Option<String>> {
        // Opening a FIFO would block until a writer appears.
        match std::fs::metadata(path) {
            Ok(meta) if meta.is_file() => {}
            Ok(_) => return Err(io::Error::other("it is not a regular file")),
            Err(e)
                if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
            {
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
