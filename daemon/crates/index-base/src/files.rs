//! Files of an index: created with access for their owner only, and mapped if append-only.
#![expect(
    unsafe_code,
    reason = "mapping a file; it is only appended to, and replaced by renaming, never cut while mapped"
)]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use cairn_store::StoreError;
use memmap2::Mmap;

/// An append-only file with its mapping.
pub struct Mapped {
    pub map: Mmap,
    pub file: File,
}

impl Mapped {
    /// Maps a file.
    ///
    /// # Errors
    /// The I/O error of mapping.
    pub fn new(file: File) -> std::io::Result<Self> {
        // SAFETY: see the module's reason.
        Ok(Self { map: unsafe { Mmap::map(&file)? }, file })
    }

    /// Appends to the first `good` bytes; a failed write is truncated.
    ///
    /// # Errors
    /// The I/O error of writing or mapping.
    pub fn append(&mut self, good: usize, bytes: &[u8]) -> std::io::Result<()> {
        if let Err(error) = self.file.write_all(bytes) {
            self.file.set_len(good as u64)?;
            return Err(error);
        }
        // SAFETY: see the module's reason.
        self.map = unsafe { Mmap::map(&self.file)? };
        Ok(())
    }
}

/// Open options that create files with access for their owner only.
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Writes and syncs a file of the index from consecutive parts, with access for its owner only. An
/// existing file is replaced; a failure leaves no file.
///
/// # Errors
/// [`StoreError::Io`].
pub fn write_file(path: &Path, parts: &[&[u8]]) -> Result<(), StoreError> {
    let written = private_options().write(true).create(true).truncate(true).open(path).and_then(
        |mut file| {
            parts.iter().try_for_each(|part| std::io::Write::write_all(&mut file, part))?;
            file.sync_data()
        },
    );
    written.map_err(|source| {
        let _ = std::fs::remove_file(path);
        StoreError::Io { path: path.to_owned(), source }
    })
}
