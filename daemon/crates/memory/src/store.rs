//! The store: entries as files of one folder.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cairn_protocol::{
    memory::{
        MemoryChange, MemoryEntry, MemoryKeyword, MemoryKeywordsParams, MemoryListParams, MemoryOp,
        MemorySearchParams, MemoryText,
    },
    session::Page,
    time::Timestamp,
};
use serde_json::Value;

use crate::{MAX_ENTRIES, MAX_ENTRY, MemoryError, Name, rank, vocabulary};

/// Page size of search results: default and maximum.
const RESULT_PAGE: (usize, usize) = (10, 20);
/// Page size of lists: default and maximum.
const LIST_PAGE: (usize, usize) = (50, 200);
/// Number of keywords: default and maximum.
const KEYWORD_PAGE: (usize, usize) = (200, 500);
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
    /// Locked while an entry changes, because appending reads before it writes.
    writing: Mutex<()>,
    vocabulary: Mutex<Option<vocabulary::CachedLine>>,
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
        let folder = folder.into();
        remove_unfinished(&folder);
        let writing = Mutex::default();
        let vocabulary = Mutex::default();
        Self { inner: Arc::new(Inner { folder, writing, vocabulary }) }
    }

    pub fn folder(&self) -> &Path {
        &self.inner.folder
    }

    /// Applies one operation. This blocks on file I/O.
    ///
    /// # Errors
    /// `invalid_params` for bad keywords, a bad cursor or a fixed entry; `path_not_found` for a
    /// missing entry; `too_large`; `storage_failed`.
    pub fn apply(&self, op: MemoryOp) -> Result<Value, MemoryError> {
        match op {
            MemoryOp::Search(params) => to_json(&self.search(&params)?),
            MemoryOp::List(params) => to_json(&self.list(&params)?),
            MemoryOp::Keywords(params) => to_json(&self.keywords(&params)?),
            MemoryOp::Load(entry) => to_json(&self.load(&entry.keywords)?),
            MemoryOp::Save(params) => to_json(&self.save(&params.keywords, &params.content)?),
            MemoryOp::Append(params) => to_json(&self.append(&params.keywords, &params.content)?),
            MemoryOp::Delete(entry) => to_json(&self.delete(&entry.keywords)?),
        }
    }

    /// Finds entries for a query, best first.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn search(&self, params: &MemorySearchParams) -> Result<Page<MemoryEntry>, MemoryError> {
        let entries = self.files()?;
        let texts = entries.iter().map(|e| self.read(&e.name).unwrap_or_default());
        let hits = rank::rank(&params.query, entries.iter().map(|e| &e.name).zip(texts))?;
        let one = |hit: rank::Hit| MemoryEntry {
            excerpt: Some(hit.excerpt),
            ..entries[hit.index].to_entry()
        };
        page(
            hits.into_iter().map(one).collect(),
            params.limit,
            RESULT_PAGE,
            params.cursor.as_deref(),
        )
    }

    /// Lists entries by name.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn list(&self, params: &MemoryListParams) -> Result<Page<MemoryEntry>, MemoryError> {
        let entries = self.files()?.iter().map(EntryFile::to_entry).collect();
        page(entries, params.limit, LIST_PAGE, params.cursor.as_deref())
    }

    /// Lists keywords, most used first.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn keywords(
        &self,
        params: &MemoryKeywordsParams,
    ) -> Result<Page<MemoryKeyword>, MemoryError> {
        let mut all = vocabulary::count_keywords(&self.files()?);
        all.truncate(params.limit.unwrap_or(KEYWORD_PAGE.0).clamp(1, KEYWORD_PAGE.1));
        Ok(Page { data: all, next_cursor: None })
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn load(&self, keywords: &str) -> Result<MemoryText, MemoryError> {
        let name = Name::of(keywords)?;
        let content = self.read(&name)?;
        Ok(MemoryText { name: name.to_string(), content, fixed: name.is_fixed() })
    }

    /// Creates or replaces an entry.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn save(&self, keywords: &str, content: &str) -> Result<MemoryChange, MemoryError> {
        let _guard = self.lock();
        let name = self.require_changeable(keywords, "changed")?;
        let existed = self.exists(&name);
        self.write(&name, content.trim_end())?;
        let bytes = content.trim_end().len();
        let what = if existed { "replaced" } else { "created" };
        Ok(change(&name, bytes, format!("{what} \"{}\" ({bytes} bytes)", name.file())))
    }

    /// Appends to an entry, or creates it.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn append(&self, keywords: &str, content: &str) -> Result<MemoryChange, MemoryError> {
        let _guard = self.lock();
        let name = self.require_changeable(keywords, "appended to")?;
        let more = content.trim_end();
        if !self.exists(&name) {
            self.write(&name, more)?;
            let text = format!("created \"{}\" ({} bytes)", name.file(), more.len());
            return Ok(change(&name, more.len(), text));
        }
        let before = self.read(&name)?;
        let content_after = format!("{}{SEPARATOR}{more}", before.trim_end());
        self.write(&name, &content_after)?;
        let text = format!(
            "updated \"{}\" (+{} B → {} B total)",
            name.file(),
            more.len(),
            content_after.len()
        );
        Ok(change(&name, content_after.len(), text))
    }

    /// Deletes an entry.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn delete(&self, keywords: &str) -> Result<MemoryChange, MemoryError> {
        let _guard = self.lock();
        let name = self.require_changeable(keywords, "deleted")?;
        fs::remove_file(self.path(&name))
            .and_then(|()| self.sync_folder())
            .map_err(|e| self.file_error(&name, "deleted", e))?;
        self.invalidate_vocabulary();
        Ok(change(&name, 0, format!("deleted \"{}\"", name.file())))
    }

    /// Renders the keywords as one line for the system text. The result is cached: without a change
    /// it costs one `stat` of the folder, and equal entries give equal bytes.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn vocabulary(&self) -> Result<String, MemoryError> {
        let Ok(meta) = fs::metadata(&self.inner.folder) else { return Ok(String::new()) };
        let stamp = (meta.mtime(), meta.mtime_nsec(), meta.ino());
        let mut cached = self.inner.vocabulary.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = cached.as_ref().filter(|line| line.stamp == stamp) {
            return Ok(line.text.clone());
        }
        let text =
            vocabulary::render_line(&vocabulary::count_keywords(&self.files()?), KEYWORD_PAGE.0);
        *cached = Some(vocabulary::CachedLine { stamp, text: text.clone() });
        Ok(text)
    }

    /// Drops the cached vocabulary explicitly: file system clocks may be too coarse to show two
    /// changes apart.
    fn invalidate_vocabulary(&self) {
        *self.inner.vocabulary.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.inner.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, name: &Name) -> PathBuf {
        self.inner.folder.join(name.file())
    }

    /// Returns true if a regular file has this name. Symbolic links do not count: their targets lie
    /// outside of the store.
    fn exists(&self, name: &Name) -> bool {
        fs::symlink_metadata(self.path(name)).is_ok_and(|meta| meta.is_file())
    }

    fn require_changeable(
        &self,
        keywords: &str,
        change: &'static str,
    ) -> Result<Name, MemoryError> {
        let name = Name::of(keywords)?;
        if name.is_fixed() && self.exists(&name) {
            return Err(MemoryError::Immutable { file: name.file(), change });
        }
        Ok(name)
    }

    fn read(&self, name: &Name) -> Result<String, MemoryError> {
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
    fn write(&self, name: &Name, text: &str) -> Result<(), MemoryError> {
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
        self.invalidate_vocabulary();
        Ok(())
    }

    /// Makes the names in the folder durable; without it a power cut may undo a change.
    fn sync_folder(&self) -> std::io::Result<()> {
        fs::File::open(&self.inner.folder)?.sync_all()
    }

    /// Lists the entries by name; files that are not entries are skipped.
    fn files(&self) -> Result<Vec<EntryFile>, MemoryError> {
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

fn remove_unfinished(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter(|e| e.file_name().to_string_lossy().starts_with(UNFINISHED));
    for entry in names {
        // It is not an entry; a failure only leaves it where it is.
        let _remains = fs::remove_file(entry.path());
    }
}

impl EntryFile {
    fn to_entry(&self) -> MemoryEntry {
        MemoryEntry {
            name: self.name.to_string(),
            keywords: self.name.keywords().map(str::to_owned).collect(),
            bytes: self.bytes,
            modified: self.modified,
            fixed: self.name.is_fixed(),
            excerpt: None,
        }
    }
}

fn change(name: &Name, bytes: usize, message: String) -> MemoryChange {
    MemoryChange { name: name.to_string(), bytes: bytes as u64, message }
}

/// Cuts one page out of `all`; a cursor is an offset into it.
fn page<T>(
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

fn to_json(value: &impl serde::Serialize) -> Result<Value, MemoryError> {
    serde_json::to_value(value).map_err(MemoryError::Answer)
}
