//! Files that only this user can read.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use serde::de::DeserializeOwned;

/// Maximum size of a list, in bytes.
const MOST: u64 = 1024 * 1024;

/// Atomically writes a file that only its owner can read (0600); creates its folder with access for
/// the owner only (0700).
///
/// # Errors
/// Errors of the file system.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let temporary = path.with_extension(format!("{}.tmp", hex::encode(random)));
    let written = fill(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one to report.
        let _ignored = std::fs::remove_file(&temporary);
        return written;
    }
    // Makes the file name as durable as the content.
    File::open(folder)?.sync_all()
}

fn fill(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Reads a JSON file; returns the default if the file is missing.
///
/// # Errors
/// Errors of the file system; a file over 1 MiB or of the wrong type, with its path.
pub fn read_json<T: DeserializeOwned + Default>(path: &Path) -> io::Result<T> {
    let named = |e: &dyn std::fmt::Display| io::Error::other(format!("{}: {e}", path.display()));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(T::default()),
        Err(error) => return Err(named(&error)),
    };
    serde_json::from_reader(io::BufReader::new(io::Read::take(file, MOST))).map_err(|e| named(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_private_and_written_atomically() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("remote/list.json");
        assert_eq!(read_json::<Vec<u8>>(&path).unwrap(), Vec::<u8>::new());
        write_private(&path, b"[1]").unwrap();
        write_private(&path, b"[1,2]").unwrap();
        assert_eq!(read_json::<Vec<u8>>(&path).unwrap(), [1, 2]);
        #[cfg(unix)]
        for (path, want) in [(path.as_path(), 0o600), (path.parent().unwrap(), 0o700)] {
            let mode =
                std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
            assert_eq!(mode & 0o777, want, "{}", path.display());
        }
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        std::fs::write(&path, "{").unwrap();
        assert!(read_json::<Vec<u8>>(&path).unwrap_err().to_string().contains("list.json"));
    }
}
