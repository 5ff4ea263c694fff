//! The store: entries as files of one folder.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cairn_protocol::{
    memory::{MemoryChange, MemoryEntry},
    session::Page,
    time::Timestamp,
};
use serde_json::Value;

use crate::{MAX_ENTRIES, MAX_ENTRY, MemoryError, Name};

/// Page size of search results: default and maximum.
pub(crate) const RESULT_PAGE: (usize, usize) = (10, 20);
/// Page size of lists: default and maximum.
pub(crate) const LIST_PAGE: (usize, usize) = (50, 200);
/// Number of keywords: default and maximum.
pub(crate) const KEYWORD_PAGE: (usize, usize) = (200, 500);
/// Start of the names of files that are not entries yet.
const UNFINISHED: &str = ".new";
/// Separates appended text from the text before it.
const SEPARATOR: &str = "\n\n---\n\n";

/// A knowledge store in one folder. Clones share its state.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    is_general: bool,
    /// Locked while an entry changes, because appending reads before it writes.
    writing: Mutex<()>,
    names: Mutex<Option<CachedNames>>,
}

/// Names of the entries, and the state of the folder that they were read from: its modification
/// time, which changes with every entry added or removed, and its inode.
#[derive(Debug)]
struct CachedNames {
    stamp: (i64, i64, u64),
    names: Arc<[Name]>,
}

pub(crate) struct EntryFile {
    pub name: Name,
    bytes: u64,
    modified: Timestamp,
}

impl Store {
    /// Opens the store in `folder`, which is created together with the first entry. Unfinished
    /// entries of a process that was killed are removed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self::open(folder.into(), false)
    }

    /// Opens the store of the entries that every project reads.
    pub(crate) fn general(folder: impl Into<PathBuf>) -> Self {
        Self::open(folder.into(), true)
    }

    fn open(folder: PathBuf, is_general: bool) -> Self {
        remove_unfinished(&folder);
        let writing = Mutex::default();
        let names = Mutex::default();
        Self { inner: Arc::new(Inner { folder, is_general, writing, names }) }
    }

    pub fn folder(&self) -> &Path {
        &self.inner.folder
    }

    /// Returns true for the user's entries that every project reads.
    pub(crate) fn is_general(&self) -> bool {
        self.inner.is_general
    }

    /// Returns the names of the entries. They are cached: without a change they cost one `stat` of
    /// the folder.
    pub(crate) fn names(&self) -> Result<Arc<[Name]>, MemoryError> {
        let Ok(meta) = fs::metadata(&self.inner.folder) else { return Ok(Arc::default()) };
        let stamp = (meta.mtime(), meta.mtime_nsec(), meta.ino());
        let mut cached = self.inner.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = cached.as_ref().filter(|known| known.stamp == stamp) {
            return Ok(Arc::clone(&known.names));
        }
        let names: Arc<[Name]> = self.files()?.into_iter().map(|entry| entry.name).collect();
        *cached = Some(CachedNames { stamp, names: Arc::clone(&names) });
        Ok(names)
    }

    /// Drops the cached names explicitly: file system clocks may be too coarse to show two
    /// changes apart.
    fn invalidate_names(&self) {
        *self.inner.names.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.inner.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, name: &Name) -> PathBuf {
        self.inner.folder.join(name.file())
    }

    /// Returns true if a regular file has this name. Symbolic links do not count: their targets lie
    /// outside of the store.
    pub(crate) fn exists(&self, name: &Name) -> bool {
        fs::symlink_metadata(self.path(name)).is_ok_and(|meta| meta.is_file())
    }

    /// Removes an entry's file.
    pub(crate) fn remove(&self, name: &Name) -> Result<(), MemoryError> {
        fs::remove_file(self.path(name))
            .and_then(|()| self.sync_folder())
            .map_err(|e| self.file_error(name, "deleted", e))?;
        self.invalidate_names();
        Ok(())
    }

    pub(crate) fn read(&self, name: &Name) -> Result<String, MemoryError> {
        let path = self.path(name);
        let meta = fs::symlink_metadata(&path).map_err(|e| self.file_error(name, "read", e))?;
        if !meta.is_file() {
            return Err(MemoryError::NotAFile { file: name.file() });
        }
        if meta.len() > 2 * MAX_ENTRY as u64 {
            return Err(MemoryError::StoredTooLarge { file: name.file(), bytes: meta.len() });
        }
        let bytes = fs::read(&path).map_err(|e| self.file_error(name, "read", e))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Replaces the entry's text atomically.
    pub(crate) fn write(&self, name: &Name, text: &str) -> Result<(), MemoryError> {
        if text.trim().is_empty() {
            return Err(MemoryError::EmptyText);
        }
        if text.len() > MAX_ENTRY {
            return Err(MemoryError::TextTooLarge { file: name.file(), bytes: text.len() });
        }
        if !self.exists(name) && self.files()?.len() >= MAX_ENTRIES {
            return Err(MemoryError::Full);
        }
        let persist = || -> std::io::Result<()> {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.inner.folder)?;
            let mut file =
                tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.inner.folder)?;
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(self.path(name))?;
            self.sync_folder()
        };
        persist().map_err(|e| self.file_error(name, "written", e))?;
        self.invalidate_names();
        Ok(())
    }

    /// Makes the names in the folder durable; without it a power cut may undo a change.
    fn sync_folder(&self) -> std::io::Result<()> {
        fs::File::open(&self.inner.folder)?.sync_all()
    }

    /// Lists the entries by name; files that are not entries are skipped.
    pub(crate) fn files(&self) -> Result<Vec<EntryFile>, MemoryError> {
        let entries = match fs::read_dir(&self.inner.folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
            Err(source) => {
                return Err(MemoryError::Folder { folder: self.inner.folder.clone(), source });
            }
        };
        let one = |entry: fs::DirEntry| {
            let name = Name::of_file(entry.file_name().to_str()?)?;
            // `DirEntry::metadata` does not follow symbolic links.
            let meta = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let millis = meta.mtime().saturating_mul(1000) + meta.mtime_nsec() / 1_000_000;
            Some(EntryFile { name, bytes: meta.len(), modified: Timestamp(millis) })
        };
        let mut found: Vec<EntryFile> =
            entries.filter_map(Result::ok).filter_map(one).take(2 * MAX_ENTRIES).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    fn file_error(&self, name: &Name, change: &'static str, source: std::io::Error) -> MemoryError {
        let file = name.file();
        match source.kind() {
            std::io::ErrorKind::NotFound => MemoryError::NotFound { file },
            _ => MemoryError::File { file, change, source },
        }
    }
}

/// Returns a text with further text below it.
pub(crate) fn joined(before: &str, more: &str) -> String {
    format!("{}{SEPARATOR}{more}", before.trim_end())
}

fn remove_unfinished(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter(|e| e.file_name().to_string_lossy().starts_with(UNFINISHED));
    for entry in names {
        // It is not an entry; a failure only leaves it where it is.
        let _remains = fs::remove_file(entry.path());
    }
}

impl EntryFile {
    pub(crate) fn to_entry(&self) -> MemoryEntry {
        MemoryEntry {
            name: self.name.to_string(),
            keywords: self.name.keywords().map(str::to_owned).collect(),
            bytes: self.bytes,
            modified: self.modified,
            fixed: self.name.is_fixed(),
            general: false,
            excerpt: None,
        }
    }
}

pub(crate) fn change(name: &Name, bytes: usize, message: String) -> MemoryChange {
    MemoryChange { name: name.to_string(), bytes: bytes as u64, message }
}

/// Cuts one page out of `all`; a cursor is an offset into it.
pub(crate) fn page<T>(
    all: Vec<T>,
    limit: Option<usize>,
    (default, max): (usize, usize),
    cursor: Option<&str>,
) -> Result<Page<T>, MemoryError> {
    let from = cursor.map_or(Ok(0), |c| c.parse::<usize>().map_err(|_| MemoryError::BadCursor))?;
    if from > all.len() {
        return Err(MemoryError::BadCursor);
    }
    let limit = limit.unwrap_or(default).clamp(1, max);
    let next_cursor = (all.len() - from > limit).then(|| (from + limit).to_string());
    Ok(Page { data: all.into_iter().skip(from).take(limit).collect(), next_cursor })
}

pub(crate) fn to_json(value: &impl serde::Serialize) -> Result<Value, MemoryError> {
    serde_json::to_value(value).map_err(MemoryError::Answer)
}
