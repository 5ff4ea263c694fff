//! A frozen index that the indexes of several roots share, such as those of a repository's work
//! trees.
//!
//! An index with a base has a table `file` of its own with all its files. A file whose content is
//! in the base has the base's id there, and its windows, words, trigrams, vectors and symbols are
//! those of the base; what differs has higher ids and is stored in the index itself. The base is
//! visible to an index exactly as far as its table `file` names it. The file [`NAME_FILE`] in an
//! index folder names the folder of its base; a folder without a root or an index that names it is
//! deleted.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cairn_index_base::IndexContext;
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, OptionalExtension, params};
use cairn_vectors::{DenseIndex, Embedder};
use cairn_workspace::{FileStat, git::GitStamp};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::db;

/// File in an index folder with the name of the folder of its base.
const NAME_FILE: &str = "base";
/// Longest name of a folder.
const MAX_NAME: usize = 128;

/// A frozen index, open for reading.
pub struct BaseIndex {
    /// Name of its folder beside those of the other indexes.
    pub name: String,
    pub limits: Limits,
    /// Segments of words; documents are dead that were removed before it was frozen.
    pub words: Vec<Arc<cairn_text_index::Segment>>,
    /// Segments of trigrams, oldest first.
    pub grams: Vec<Arc<cairn_trigram_index::Segment>>,
    pub dense: Arc<DenseIndex>,
}

/// Greatest ids in a base. Everything that an index adds has higher ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub file: i64,
    pub chunk: i64,
    pub symbol: i64,
}

impl BaseIndex {
    /// Opens the index in a folder that is not written any more.
    ///
    /// # Errors
    /// When it is damaged, has another format or the vectors of another model.
    pub fn open(folder: &Path, embedder: &Embedder) -> Result<Self, StoreError> {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let corrupt = |what: &str| StoreError::Corrupt(format!("{}: {what}", folder.display()));
        cairn_store::check_length(&db::path_in(folder))?;
        let conn = cairn_store::open_read_only(&db::path_in(folder))?;
        if !db::is_current_format(&conn)? || db::meta(&conn, "model")? != Some(model(embedder)) {
            return Err(corrupt("another format or model"));
        }
        let context = IndexContext {
            folder: folder.to_owned(),
            root: folder.to_owned(),
            stop: Arc::new(AtomicBool::new(false)),
        };
        let postings = cairn_text_index::Postings::new(context);
        postings.open(&conn)?;
        if let Some(problem) = postings.verify(&conn)?.first() {
            return Err(corrupt(problem));
        }
        let dense = DenseIndex::new(folder, embedder.dim(), *embedder.hash());
        dense.open().map_err(|source| StoreError::Io { path: folder.to_owned(), source })?;
        let removed = cairn_text_index::removed_chunks(&conn)?;
        let words = postings.snapshot().segments.clone();
        let windows: usize = words.iter().map(|s| (s.docs() - s.dead()) as usize).sum();
        if dense.size().0 < windows {
            return Err(corrupt("vectors are missing"));
        }
        dense.mark_dead(removed);
        Ok(Self {
            name: name.ok_or_else(|| corrupt("no folder"))?,
            limits: Limits::read(&conn)?,
            words,
            grams: cairn_trigram_index::TrigramIndex::open_frozen(&conn, folder)?,
            dense: Arc::new(dense),
        })
    }
}

impl Limits {
    fn read(conn: &Connection) -> Result<Self, StoreError> {
        let greatest = |sql: &str| {
            conn.query_row(sql, [], |r| r.get::<_, Option<i64>>(0)).map(Option::unwrap_or_default)
        };
        let sequence = "SELECT max(seq) FROM sqlite_sequence WHERE name = 'file'";
        let last_file = greatest("SELECT max(id) FROM file")?.max(greatest(sequence)?);
        Ok(Self {
            file: last_file,
            chunk: db::meta(conn, "next_chunk")?.unwrap_or(1) - 1,
            symbol: greatest("SELECT max(id) FROM symbol")?,
        })
    }
}

/// The number in `meta` that identifies the model of an index's vectors.
pub fn model(embedder: &Embedder) -> i64 {
    model_number(embedder.hash())
}

/// A number that identifies a model with this hash.
pub fn model_number(hash: &[u8; 32]) -> i64 {
    hash.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes))
}

/// The name of the base of the index in a folder.
pub fn name_in(folder: &Path) -> Option<String> {
    let name = std::fs::read_to_string(folder.join(NAME_FILE)).ok()?;
    let is_name = !name.is_empty()
        && name.len() <= MAX_NAME
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
        && !name.starts_with('.');
    is_name.then_some(name)
}

/// Records the base of the index in a folder.
///
/// # Errors
/// [`StoreError::Io`].
pub fn write_name(folder: &Path, name: &str) -> Result<(), StoreError> {
    cairn_index_base::write_file(&folder.join(NAME_FILE), &[name.as_bytes()])
}

/// Records git's hashes of the files of an index that have not changed since git recorded them.
///
/// # Errors
/// When the database cannot be written.
pub fn write_blobs(conn: &mut Connection, stamps: &[(String, GitStamp)]) -> Result<(), StoreError> {
    let tx = conn.transaction()?;
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS file_blob(file_id INTEGER PRIMARY KEY, blob BLOB NOT NULL);
         DELETE FROM file_blob",
    )?;
    {
        let mut get = tx.prepare_cached(
            "SELECT id, size_bytes, mtime_ns, inode FROM file
             WHERE path = ? AND pending_stages = 0",
        )?;
        let mut add = tx.prepare_cached("INSERT INTO file_blob(file_id, blob) VALUES(?, ?)")?;
        for (path, stamp) in stamps {
            let row = get
                .query_row([path], |r| {
                    let stat = FileStat {
                        size: r.get::<_, i64>(1)? as u64,
                        mtime_ns: r.get(2)?,
                        inode: r.get::<_, i64>(3)? as u64,
                        kind: cairn_protocol::content::EntryKind::File,
                    };
                    Ok((r.get::<_, i64>(0)?, stat))
                })
                .optional()?;
            if let Some((id, _)) = row.filter(|(_, stat)| stamp.is_current(stat)) {
                add.execute(params![id, stamp.blob])?;
            }
        }
    }
    Ok(tx.commit()?)
}

/// A file of a base.
struct BaseFile {
    id: i64,
    size: u64,
    blob: [u8; 20],
}

/// The files of a base whose hash git recorded, by path.
pub struct BlobTable(FxHashMap<Box<str>, BaseFile>);

impl BlobTable {
    /// Reads the files of the base in `folder`.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn read(folder: &Path) -> Result<Self, StoreError> {
        let conn = cairn_store::open_read_only(&db::path_in(folder))?;
        let mut all = conn.prepare(
            "SELECT f.path, f.id, f.size_bytes, b.blob
             FROM file_blob b JOIN file f ON f.id = b.file_id",
        )?;
        let mut rows = all.query([])?;
        let mut table = FxHashMap::default();
        while let Some(row) = rows.next()? {
            let path: Box<str> = row.get_ref(0)?.as_str().unwrap_or("").into();
            let (id, size, blob) = (row.get(1)?, row.get::<_, i64>(2)? as u64, row.get(3)?);
            table.insert(path, BaseFile { id, size, blob });
        }
        Ok(Self(table))
    }

    /// The file of the base at a path with the content that git recorded. Its size is compared as
    /// well, because a checkout may convert line ends.
    pub fn find(&self, path: &str, stamp: &GitStamp, stat: &FileStat) -> Option<i64> {
        let file = self.0.get(path)?;
        let is_equal = file.blob == stamp.blob && file.size == stat.size && stamp.is_current(stat);
        is_equal.then_some(file.id)
    }

    /// The hash of the file at a path.
    pub fn blob(&self, path: &str) -> Option<[u8; 20]> {
        self.0.get(path).map(|file| file.blob)
    }
}

/// True if at least half of the files have the hash that `blob_of` returns for their path.
pub fn are_mostly_equal(
    stamps: &[(String, GitStamp)],
    blob_of: impl Fn(&str) -> Option<[u8; 20]>,
) -> bool {
    let is_equal = |(path, stamp): &&(String, GitStamp)| blob_of(path) == Some(stamp.blob);
    2 * stamps.iter().filter(is_equal).count() >= stamps.len()
}

/// The files that a new root has in common with its base, for its first walk.
pub struct Adoption {
    pub blobs: BlobTable,
    pub stamps: FxHashMap<String, GitStamp>,
}

impl Adoption {
    /// Reads both sides. `None` if there is no git index, or the base has no hashes of files.
    pub fn read(root: &cairn_workspace::Root, base: &Path) -> Option<Self> {
        let stamps = cairn_workspace::git::git_stamps(root)?;
        Some(Self { blobs: BlobTable::read(base).ok()?, stamps: stamps.into_iter().collect() })
    }

    /// The file of the base with the content of a file of the root.
    pub fn find(&self, rel: &str, stat: &FileStat) -> Option<i64> {
        self.blobs.find(rel, self.stamps.get(rel)?, stat)
    }
}

/// Ids of the files of the base that an index has.
///
/// # Errors
/// When the database cannot be read.
pub fn visible_files(conn: &Connection, limits: &Limits) -> Result<FxHashSet<u32>, StoreError> {
    let mut all = conn.prepare_cached("SELECT id FROM file WHERE id <= ?")?;
    Ok(all.query_map([limits.file], |r| r.get(0))?.collect::<Result<_, _>>()?)
}

/// Adds the row of a file whose content is that of the base's file `id`.
///
/// # Errors
/// When the database cannot be written.
pub fn insert_from_base(
    tx: &Connection,
    id: i64,
    rel: &str,
    stat: &FileStat,
    clock: i64,
) -> Result<(), StoreError> {
    let mut add = tx.prepare_cached(
        "INSERT INTO main.file(id, path, lang, size_bytes, mtime_ns, inode, sha256, indexed_at,
         skipped, clock, pending_stages, grams)
         SELECT id, ?2, lang, ?3, ?4, ?5, sha256, indexed_at, skipped, ?6, 0, grams
         FROM base.file WHERE id = ?1",
    )?;
    let (size, inode) = (stat.size as i64, stat.inode as i64);
    add.execute(params![id, rel, size, stat.mtime_ns, inode, clock])?;
    Ok(())
}
