//! The content that git's index records for the files of a work tree.

use std::time::{Duration, Instant};

use super::open;
use crate::root::{FileStat, Root};

/// Time limit for reading an index.
const LIMIT: Duration = Duration::from_secs(5);

/// A file as git's index records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitStamp {
    /// Hash of the content as git stores it.
    pub blob: [u8; 20],
    size: u32,
    mtime_ns: i64,
    inode: u32,
}

impl GitStamp {
    /// True if a file has not changed since git recorded it.
    ///
    /// Git stores the low 32 bits of a size and an inode number.
    pub fn is_current(&self, stat: &FileStat) -> bool {
        self.size == stat.size as u32
            && self.mtime_ns == stat.mtime_ns
            && self.inode == stat.inode as u32
    }
}

/// Reads the index of the work tree whose top folder is the root: path and stamp of each regular
/// file, in git's order. `None` if there is no such work tree, or its index cannot be read in time.
/// Files that changed too shortly before git wrote the index to be distinguished are left out.
pub fn git_stamps(root: &Root) -> Option<Vec<(String, GitStamp)>> {
    let repo_paths = open::find(root, "").ok().flatten().filter(|paths| paths.top == root.path)?;
    let paths = repo_paths.clone();
    let mut reading = open::on_thread(&repo_paths, move |tx| {
        let result = open::open(&paths).ok().flatten().and_then(|repo| read(&repo).ok());
        let _no_receiver = tx.send(result);
    })
    .ok()?;
    reading.next(Instant::now() + LIMIT).ok().flatten()
}

fn read(repo: &git2::Repository) -> Result<Vec<(String, GitStamp)>, git2::Error> {
    let index = repo.index()?;
    let written = index.path().and_then(|path| path.metadata().ok());
    let written = written.map_or(0, |meta| FileStat::of_std(&meta).mtime_ns);
    let mut stamps = Vec::with_capacity(index.len());
    for entry in index.iter() {
        let time = entry.mtime;
        let mtime_ns = i64::from(time.seconds()) * 1_000_000_000 + i64::from(time.nanoseconds());
        let is_file = entry.mode & 0o170_000 == 0o100_000;
        let (Ok(path), Ok(blob)) = (String::from_utf8(entry.path), entry.id.as_bytes().try_into())
        else {
            continue;
        };
        if is_file && mtime_ns < written {
            let (size, inode) = (entry.file_size, entry.ino);
            stamps.push((path, GitStamp { blob, size, mtime_ns, inode }));
        }
    }
    Ok(stamps)
}
