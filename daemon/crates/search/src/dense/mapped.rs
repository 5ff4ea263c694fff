//! A file that is only appended to, and its mapping.
#![expect(
    unsafe_code,
    reason = "mapping a file; it is only appended to, and replaced by renaming, never cut while mapped"
)]

use std::fs::{File, OpenOptions};
use std::io::Write;

use memmap2::Mmap;

/// An append-only file and its mapping.
pub struct Mapped {
    map: Mmap,
    file: File,
}

impl Mapped {
    /// Maps a file that is open for appending.
    pub fn new(file: File) -> std::io::Result<Self> {
        // SAFETY: see the module's reason.
        Ok(Self { map: unsafe { Mmap::map(&file)? }, file })
    }

    /// Appends behind the first `good` bytes; a failed write is cut off again.
    pub fn append(&mut self, good: usize, bytes: &[u8]) -> std::io::Result<()> {
        if let Err(error) = self.file.write_all(bytes) {
            self.file.set_len(good as u64)?;
            return Err(error);
        }
        // SAFETY: see the module's reason.
        self.map = unsafe { Mmap::map(&self.file)? };
        Ok(())
    }

    /// Cuts off what was appended behind the first `good` bytes and is in no mapping that is read.
    pub fn cut(&self, good: usize) -> std::io::Result<()> {
        self.file.set_len(good as u64)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }
}

/// How files are made: for their owner alone.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
