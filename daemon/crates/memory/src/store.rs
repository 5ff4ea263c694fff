//! The files of the store.

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

use crate::{MAX_ENTRIES, MAX_ENTRY, MemoryError, Name, find, vocabulary};

/// Results of a search: by default, and at most.
const RESULTS: (usize, usize) = (10, 20);
/// Entries of a list: by default, and at most.
const LISTED: (usize, usize) = (50, 200);
/// Keywords: by default, and at most.
const KEYWORDS: (usize, usize) = (200, 500);
/// Stands between what was there and what is appended.
const BETWEEN: &str = "\n\n---\n\n";

/// The knowledge store in one folder. Clones share it.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    /// Held while an entry is changed: an addition reads first.
    writing: Mutex<()>,
    vocabulary: Mutex<Option<vocabulary::Kept>>,
}

/// A file of the store.
pub(crate) struct Found {
    pub name: Name,
    bytes: u64,
    modified: Timestamp,
}

impl Store {
    /// The store in `folder`, which is made when the first entry is.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let (writing, vocabulary) = (Mutex::default(), Mutex::default());
        Self { inner: Arc::new(Inner { folder: folder.into(), writing, vocabulary }) }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.inner.folder
    }

    /// Does what is asked. Blocks.
    ///
    /// # Errors
    /// `invalid_params` for bad keywords or a bad cursor, and for a fixed entry; `path_not_found` for one that is not there;
    /// `too_large`; `storage_failed`.
    pub fn apply(&self, op: MemoryOp) -> Result<Value, MemoryError> {
        match op {
            MemoryOp::Search(params) => written(&self.search(&params)?),
            MemoryOp::List(params) => written(&self.list(&params)?),
            MemoryOp::Keywords(params) => written(&self.keywords(&params)?),
            MemoryOp::Load(entry) => written(&self.load(&entry.keywords)?),
            MemoryOp::Save(params) => written(&self.save(&params.keywords, &params.content)?),
            MemoryOp::Append(params) => written(&self.append(&params.keywords, &params.content)?),
            MemoryOp::Delete(entry) => written(&self.delete(&entry.keywords)?),
        }
    }

    /// Entries that fit a query, the best first.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn search(&self, params: &MemorySearchParams) -> Result<Page<MemoryEntry>, MemoryError> {
        let entries = self.files()?;
        let texts = entries.iter().map(|e| self.read(&e.name).unwrap_or_default());
        let hits = find::rank(&params.query, entries.iter().map(|e| &e.name).zip(texts))?;
        let one = |hit: find::Hit| MemoryEntry { excerpt: Some(hit.excerpt), ..entries[hit.at].told() };
        page(hits.into_iter().map(one).collect(), params.limit, RESULTS, params.cursor.as_deref())
    }

    /// The entries by name.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn list(&self, params: &MemoryListParams) -> Result<Page<MemoryEntry>, MemoryError> {
        let entries = self.files()?.iter().map(Found::told).collect();
        page(entries, params.limit, LISTED, params.cursor.as_deref())
    }

    /// The keywords, those with most entries first.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn keywords(&self, params: &MemoryKeywordsParams) -> Result<Page<MemoryKeyword>, MemoryError> {
        let mut all = vocabulary::counted(&self.files()?);
        all.truncate(params.limit.unwrap_or(KEYWORDS.0).clamp(1, KEYWORDS.1));
        Ok(Page { data: all, next_cursor: None })
    }

    /// An entry's text.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn load(&self, keywords: &str) -> Result<MemoryText, MemoryError> {
        let name = Name::of(keywords)?;
        let content = self.read(&name)?;
        Ok(MemoryText { name: name.to_string(), content, fixed: name.is_fixed() })
    }

    /// Makes an entry, or replaces it.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn save(&self, keywords: &str, content: &str) -> Result<MemoryChange, MemoryError> {
        let _one_at_a_time = self.lock();
        let name = self.changeable(keywords, "changed")?;
        let existed = self.exists(&name);
        self.write(&name, content.trim_end())?;
        let bytes = content.trim_end().len();
        let what = if existed { "replaced" } else { "created" };
        Ok(change(&name, bytes, format!("{what} \"{}\" ({bytes} bytes)", name.file())))
    }

    /// Adds to an entry, or makes it.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn append(&self, keywords: &str, content: &str) -> Result<MemoryChange, MemoryError> {
        let _one_at_a_time = self.lock();
        let name = self.changeable(keywords, "appended to")?;
        let more = content.trim_end();
        if !self.exists(&name) {
            self.write(&name, more)?;
            let text = format!("created \"{}\" ({} bytes)", name.file(), more.len());
            return Ok(change(&name, more.len(), text));
        }
        let before = self.read(&name)?;
        let whole = format!("{}{BETWEEN}{more}", before.trim_end());
        self.write(&name, &whole)?;
        let text = format!("updated \"{}\" (+{} B → {} B total)", name.file(), more.len(), whole.len());
        Ok(change(&name, whole.len(), text))
    }

    /// Deletes an entry.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn delete(&self, keywords: &str) -> Result<MemoryChange, MemoryError> {
        let _one_at_a_time = self.lock();
        let name = self.changeable(keywords, "deleted")?;
        fs::remove_file(self.path(&name)).map_err(|e| self.failed(&name, "deleted", e))?;
        self.forget();
        Ok(change(&name, 0, format!("deleted \"{}\"", name.file())))
    }

    /// The keywords as the system text has them, one line; the same bytes for the same entries. One look at the folder when
    /// nothing changed.
    ///
    /// # Errors
    /// See [`Self::apply`].
    pub fn vocabulary(&self) -> Result<String, MemoryError> {
        let Ok(meta) = fs::metadata(&self.inner.folder) else { return Ok(String::new()) };
        let stamp = (meta.mtime(), meta.mtime_nsec(), meta.ino());
        let mut kept = self.inner.vocabulary.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.as_ref().filter(|known| known.stamp == stamp) {
            return Ok(known.text.clone());
        }
        let text = vocabulary::line(&vocabulary::counted(&self.files()?), KEYWORDS.0);
        *kept = Some(vocabulary::Kept { stamp, text: text.clone() });
        Ok(text)
    }

    /// Clocks of file systems may be too coarse to tell two changes apart.
    fn forget(&self) {
        *self.inner.vocabulary.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.inner.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, name: &Name) -> PathBuf {
        self.inner.folder.join(name.file())
    }

    /// Whether a plain file bears the name. A link is none: what it leads to is not the store's.
    fn exists(&self, name: &Name) -> bool {
        fs::symlink_metadata(self.path(name)).is_ok_and(|meta| meta.is_file())
    }

    fn changeable(&self, keywords: &str, change: &'static str) -> Result<Name, MemoryError> {
        let name = Name::of(keywords)?;
        if name.is_fixed() && self.exists(&name) {
            return Err(MemoryError::Immutable { file: name.file(), change });
        }
        Ok(name)
    }

    fn read(&self, name: &Name) -> Result<String, MemoryError> {
        let path = self.path(name);
        let meta = fs::symlink_metadata(&path).map_err(|e| self.failed(name, "read", e))?;
        if !meta.is_file() {
            return Err(MemoryError::NotAFile { file: name.file() });
        }
        if meta.len() > 2 * MAX_ENTRY as u64 {
            return Err(MemoryError::StoredTooLarge { file: name.file(), bytes: meta.len() });
        }
        let bytes = fs::read(&path).map_err(|e| self.failed(name, "read", e))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Puts the text in the place of what is there, whole or not at all.
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
        let put = || -> std::io::Result<()> {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.inner.folder)?;
            let mut file = tempfile::Builder::new().prefix(".new").tempfile_in(&self.inner.folder)?;
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(self.path(name))?;
            Ok(())
        };
        put().map_err(|e| self.failed(name, "written", e))?;
        self.forget();
        Ok(())
    }

    /// The entries by name. What is not an entry's file is passed over.
    fn files(&self) -> Result<Vec<Found>, MemoryError> {
        let entries = match fs::read_dir(&self.inner.folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
            Err(source) => {
                return Err(MemoryError::Folder { folder: self.inner.folder.clone(), source });
            }
        };
        let one = |entry: fs::DirEntry| {
            let name = Name::of_file(entry.file_name().to_str()?)?;
            // Of the link itself, where it is one.
            let meta = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let millis = meta.mtime().saturating_mul(1000) + meta.mtime_nsec() / 1_000_000;
            Some(Found { name, bytes: meta.len(), modified: Timestamp(millis) })
        };
        let mut found: Vec<Found> =
            entries.filter_map(Result::ok).filter_map(one).take(2 * MAX_ENTRIES).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    fn failed(&self, name: &Name, change: &'static str, source: std::io::Error) -> MemoryError {
        let file = name.file();
        match source.kind() {
            std::io::ErrorKind::NotFound => MemoryError::NotFound { file },
            _ => MemoryError::File { file, change, source },
        }
    }
}

impl Found {
    fn told(&self) -> MemoryEntry {
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

/// A page of what there is; cursors are places in the list.
fn page<T>(
    all: Vec<T>,
    limit: Option<usize>,
    (usual, most): (usize, usize),
    cursor: Option<&str>,
) -> Result<Page<T>, MemoryError> {
    let from = cursor.map_or(Ok(0), |c| c.parse::<usize>().map_err(|_| MemoryError::BadCursor))?;
    if from > all.len() {
        return Err(MemoryError::BadCursor);
    }
    let limit = limit.unwrap_or(usual).clamp(1, most);
    let next_cursor = (all.len() - from > limit).then(|| (from + limit).to_string());
    Ok(Page { data: all.into_iter().skip(from).take(limit).collect(), next_cursor })
}

fn written(value: &impl serde::Serialize) -> Result<Value, MemoryError> {
    serde_json::to_value(value).map_err(MemoryError::Answer)
}
