//! Files with messages that name them, checksums, and archives that are the same when built twice.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};

/// A file of a package.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Path in the package, without a leading slash.
    pub path: String,
    pub bytes: Vec<u8>,
    pub is_executable: bool,
}

impl Entry {
    pub fn text(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), bytes: text.into().into_bytes(), is_executable: false }
    }

    pub fn program(path: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { path: path.into(), bytes, is_executable: true }
    }

    pub fn mode(&self) -> u32 {
        if self.is_executable { 0o755 } else { 0o644 }
    }

    /// Writes the file below a folder.
    pub fn write_below(&self, folder: &Path) -> Result<(), String> {
        let path = folder.join(&self.path);
        write(&path, &self.bytes)?;
        set_mode(&path, self.mode())
    }
}

fn failure(path: &Path) -> impl FnOnce(std::io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}

pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(failure(path))
}

pub fn read_text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(failure(path))
}

/// Writes a file, and first the folders above it.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failure(folder))?;
    }
    fs::write(path, bytes).map_err(failure(path))
}

/// Removes a folder with its contents, and creates it empty.
pub fn empty_folder(path: &Path) -> Result<(), String> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(failure(path)(error));
        }
        _ => {}
    }
    fs::create_dir_all(path).map_err(failure(path))
}

pub fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(|e| format!("{} to {}: {e}", from.display(), to.display()))
}

#[cfg(unix)]
pub fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failure(path))
}

#[cfg(not(unix))]
pub fn set_mode(_path: &Path, _mode: u32) -> Result<(), String> {
    Ok(())
}

/// Returns the files of a folder and those below it, sorted, relative to it.
pub fn files_below(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut pending = vec![folder.to_path_buf()];
    let mut all = Vec::new();
    while let Some(current) = pending.pop() {
        for entry in fs::read_dir(&current).map_err(failure(&current))? {
            let path = entry.map_err(failure(&current))?.path();
            if path.is_dir() {
                pending.push(path);
            } else if let Ok(relative) = path.strip_prefix(folder) {
                all.push(relative.to_path_buf());
            }
        }
    }
    all.sort();
    Ok(all)
}

/// Returns the SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Compresses as `gzip -9n` does: without a name and a time.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|e| format!("gzip: {e}"))
}

/// Packs files as `tar.gz`, owned by root, all with the same time.
pub fn tar_gz(entries: &[Entry], time: u64) -> Result<Vec<u8>, String> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut append = |entry: &Entry| -> std::io::Result<()> {
        let mut header = tar::Header::new_ustar();
        header.set_size(entry.bytes.len() as u64);
        header.set_mode(entry.mode());
        header.set_mtime(time);
        header.set_username("root")?;
        header.set_groupname("root")?;
        builder.append_data(&mut header, &entry.path, entry.bytes.as_slice())
    };
    for entry in entries {
        append(entry).map_err(|e| format!("{}: {e}", entry.path))?;
    }
    gzip(&builder.into_inner().map_err(|e| format!("tar: {e}"))?)
}

/// Packs files as a zip archive; all have the same time, the first that the format knows.
pub fn zip(entries: &[Entry]) -> Result<Vec<u8>, String> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for entry in entries {
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .compression_level(Some(9))
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(entry.mode());
        writer.start_file(&entry.path, options).map_err(|e| format!("{}: {e}", entry.path))?;
        writer.write_all(&entry.bytes).map_err(|e| format!("{}: {e}", entry.path))?;
    }
    Ok(writer.finish().map_err(|e| format!("zip: {e}"))?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_of_the_same_files_are_the_same() {
        let entries = [Entry::program("bin/a", vec![1, 2, 3]), Entry::text("share/b", "b\n")];
        assert_eq!(tar_gz(&entries, 7).unwrap(), tar_gz(&entries, 7).unwrap());
        assert_eq!(zip(&entries).unwrap(), zip(&entries).unwrap());
        let other = [entries[0].clone(), Entry::text("share/b", "c\n")];
        assert_ne!(tar_gz(&entries, 7).unwrap(), tar_gz(&other, 7).unwrap());
    }
}
