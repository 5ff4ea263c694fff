//! A log file that is renamed when it has reached its size; some earlier files remain.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Size in bytes that a file does not exceed, unless one line does.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// Earlier files that remain: `daemon.log.1` is the latest.
const MAX_OLD: u32 = 3;

/// The log as a writer: each call of `write` is a complete line.
#[derive(Debug)]
pub struct RotatingLog {
    path: PathBuf,
    file: File,
    bytes: u64,
    max_bytes: u64,
}

impl RotatingLog {
    /// Opens the log at `path`, to be appended to.
    ///
    /// # Errors
    /// The folder or the file cannot be created.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            crate::instance::create_private_dir(dir)?;
        }
        let file = open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, bytes, max_bytes: MAX_BYTES })
    }

    /// Renames the files and starts an empty one. If that fails, the current one grows further: a
    /// large log is better than none.
    fn rotate(&mut self) {
        for number in (1..MAX_OLD).rev() {
            let _may_not_exist = std::fs::rename(self.old(number), self.old(number + 1));
        }
        let renamed = std::fs::rename(&self.path, self.old(1));
        if let Ok(file) = renamed.and_then(|()| open(&self.path)) {
            self.file = file;
        }
        self.bytes = 0;
    }

    fn old(&self, number: u32) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        name.into()
    }
}

impl Write for RotatingLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.bytes > 0 && self.bytes + line.len() as u64 > self.max_bytes {
            self.rotate();
        }
        let written = self.file.write(line)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_is_bounded_and_recent_lines_remain() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("logs/daemon.log");
        let mut log = RotatingLog { max_bytes: 100, ..RotatingLog::open(&path).unwrap() };
        for number in 0..100 {
            log.write_all(format!("line {number:>4}\n").as_bytes()).unwrap();
        }
        let names = ["daemon.log", "daemon.log.1", "daemon.log.2", "daemon.log.3"];
        let texts = names.map(|n| std::fs::read_to_string(path.with_file_name(n)).unwrap());
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), names.len());
        assert!(texts.iter().all(|text| (10..=100).contains(&text.len())), "{texts:?}");
        assert!(texts[0].ends_with("line   99\n") && texts[3].starts_with("line   60\n"));
        // Reopened, it continues.
        drop(log);
        RotatingLog::open(&path).unwrap().write_all(b"x\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}x\n", texts[0]));
    }

    #[cfg(unix)]
    #[test]
    fn log_that_cannot_be_renamed_grows() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        let mut log = RotatingLog { max_bytes: 20, ..RotatingLog::open(&path).unwrap() };
        // Folders with contents are in the way, for root too.
        for name in ["daemon.log.1", "daemon.log.2", "daemon.log.3"] {
            std::fs::create_dir_all(path.with_file_name(name).join("x")).unwrap();
        }
        for _ in 0..9 {
            log.write_all(b"0123456789\n").unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.len(), 99);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
