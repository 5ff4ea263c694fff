//! The database of one index: schema, opening and a small pool of readers.

use std::path::{Path, PathBuf};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use cairn_store::rusqlite::{Connection, OptionalExtension, params};
use cairn_store::{Migration, StoreError};

use cairn_index_base::{lock, private_options};

use crate::base_index::{self, Limits};

/// Pending stages of a file: the bits of its column `pending_stages`. The SQL text of other modules
/// uses the same bits as literals.
pub mod pending {
    pub const TEXT: i64 = 1;
    pub const VECTORS: i64 = 2;
    pub const SYMBOLS: i64 = 4;
}

const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, sql: include_str!("schema.sql") },
    // Since this version vectors may have half precision, which an older daemon would not
    // recognise.
    Migration { version: 2, sql: "" },
];
/// Version of the derived data (words, windows, symbols, imports); an index of another format is deleted and
/// rebuilt.
const FORMAT: i64 = 9;
/// Idle readers that stay open.
const MAX_IDLE: usize = 4;

/// The base of an index, as its database refers to it.
#[derive(Debug, Clone)]
pub struct Base {
    pub folder: PathBuf,
    pub limits: Limits,
}

/// Opens the database in `folder` for writing, with that of its base as `base`. A damaged database
/// or one of another format is deleted and rebuilt, since all of it can be derived from the files.
///
/// # Errors
/// [`StoreError::Newer`], [`StoreError::DiskFull`], or an I/O error.
pub fn open(folder: &Path, base: Option<&Base>) -> Result<Connection, StoreError> {
    make_private(folder)?;
    match open_once(folder, base) {
        Ok(Some(conn)) => return Ok(conn),
        Err(StoreError::Corrupt(why)) => {
            tracing::warn!(folder = %folder.display(), why, "index is damaged, rebuilding it")
        }
        Ok(None) => {
            tracing::info!(folder = %folder.display(), "index has a different format, rebuilding it")
        }
        Err(error) => return Err(error),
    }
    clear(folder)?;
    if let Some(name) = base.and_then(|base| base.folder.file_name()) {
        base_index::write_name(folder, &name.to_string_lossy())?;
    }
    open_once(folder, base)?
        .ok_or_else(|| StoreError::Corrupt("a new index has a different format".into()))
}

/// Empties an index folder.
fn clear(folder: &Path) -> Result<(), StoreError> {
    let io = |source| StoreError::Io { path: folder.to_owned(), source };
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(io(e)),
        _ => {}
    }
    make_private(folder)
}

/// Creates the folder with access for its owner only.
///
/// # Errors
/// [`StoreError::Io`].
pub fn make_private(folder: &Path) -> Result<(), StoreError> {
    let mut options = std::fs::DirBuilder::new();
    options.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut options, 0o700);
    options.create(folder).map_err(|source| StoreError::Io { path: folder.to_owned(), source })
}

fn open_once(folder: &Path, base: Option<&Base>) -> Result<Option<Connection>, StoreError> {
    let path = path_in(folder);
    if path.exists() {
        cairn_store::check_length(&path)?;
    } else {
        create(&path)?;
    }
    let conn = cairn_store::open(&path, MIGRATIONS)?;
    // The index can be rebuilt: a commit need not be durable at once, it must only never tear.
    conn.pragma_update(None, "synchronous", "NORMAL")?;
    conn.pragma_update(None, "wal_autocheckpoint", 4000)?;
    conn.pragma_update(None, "cache_size", -16_384)?;
    conn.set_prepared_statement_cache_capacity(64);
    let is_new = meta(&conn, "format")?.is_none();
    // The ids of an index are those of its own base only.
    let expected = base.map(|base| base.limits.chunk);
    if !is_new && meta(&conn, "base_chunks")? != expected {
        return Ok(None);
    }
    if let Some(base) = base {
        attach(&conn, base)?;
        if is_new {
            set_meta(&conn, "base_chunks", base.limits.chunk)?;
            set_meta(&conn, "next_chunk", base.limits.chunk + 1)?;
            conn.execute(
                "INSERT INTO main.sqlite_sequence(name, seq) VALUES('file', ?)",
                [base.limits.file],
            )?;
        }
    }
    match meta(&conn, "format")? {
        Some(FORMAT) => Ok(Some(conn)),
        Some(_) => Ok(None),
        None => {
            set_meta(&conn, "format", FORMAT)?;
            Ok(Some(conn))
        }
    }
}

/// Creates an empty database. It is renamed into place once it is in WAL mode, because switching
/// the mode fails at once while a reader has the file open.
fn create(path: &Path) -> Result<(), StoreError> {
    let new = path.with_extension("new");
    let io = |source| StoreError::Io { path: new.clone(), source };
    private_options().write(true).create(true).truncate(true).open(&new).map_err(io)?;
    let conn = Connection::open(&new)?;
    // Ten vectors fit a page; the page size is fixed by the first write.
    conn.execute_batch(
        "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA user_version = 0",
    )?;
    conn.close().map_err(|(_, error)| error)?;
    std::fs::rename(&new, path).map_err(io)
}

/// The database of the index in a folder.
pub fn path_in(folder: &Path) -> PathBuf {
    folder.join("index.db")
}

/// Checks the structures of an index and of its base, and returns the first damage. It ends early
/// without a finding once `stop` is set.
pub fn find_damage(conn: &mut Connection, stop: &Arc<AtomicBool>) -> Option<String> {
    let is_stopping = Arc::clone(stop);
    let watched =
        conn.progress_handler(CHECK_STEPS, Some(move || is_stopping.load(Ordering::Relaxed)));
    let found = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    let _unwatched = watched.and_then(|()| conn.progress_handler(0, None::<fn() -> bool>));
    match found {
        Ok(text) => (text != "ok").then_some(text),
        Err(error) => match StoreError::from(error) {
            StoreError::Corrupt(text) => Some(text),
            _ => None,
        },
    }
}

/// Steps of SQLite between two looks at the stop flag.
const CHECK_STEPS: i32 = 100_000;

/// True if the derived data have the current format.
///
/// # Errors
/// When the database cannot be read.
pub fn is_current_format(conn: &Connection) -> Result<bool, StoreError> {
    Ok(meta(conn, "format")? == Some(FORMAT))
}

fn attach(conn: &Connection, base: &Base) -> Result<(), StoreError> {
    let path = path_in(&base.folder);
    conn.execute("ATTACH ? AS base", [path.to_string_lossy()])?;
    Ok(())
}

/// Tables as the queries of an index with a base see them. Files of the base count as far as the
/// index's own table names them.
const VIEWS: &str = "
    CREATE TEMP VIEW chunk AS SELECT * FROM main.chunk UNION ALL
        SELECT * FROM base.chunk WHERE file_id IN (SELECT id FROM main.file);
    CREATE TEMP VIEW symbol AS SELECT * FROM main.symbol UNION ALL
        SELECT * FROM base.symbol WHERE file_id IN (SELECT id FROM main.file);
    CREATE TEMP VIEW file_ref AS SELECT * FROM main.file_ref UNION ALL
        SELECT * FROM base.file_ref WHERE file_id IN (SELECT id FROM main.file);
    CREATE TEMP VIEW file_import AS SELECT * FROM main.file_import UNION ALL
        SELECT * FROM base.file_import WHERE file_id IN (SELECT id FROM main.file);
";

/// Reads a number from `meta`.
///
/// # Errors
/// When the database cannot be read.
pub fn meta(conn: &Connection, key: &str) -> Result<Option<i64>, StoreError> {
    let mut get = conn.prepare_cached("SELECT value FROM main.meta WHERE key = ?")?;
    Ok(get.query_row([key], |r| r.get(0)).optional()?)
}

/// Writes a number to `meta`.
///
/// # Errors
/// When the database cannot be written.
pub fn set_meta(conn: &Connection, key: &str, value: i64) -> Result<(), StoreError> {
    let mut put =
        conn.prepare_cached("INSERT OR REPLACE INTO main.meta(key, value) VALUES(?, ?)")?;
    put.execute(params![key, value])?;
    Ok(())
}

/// A pool of read-only connections to one index, opened on demand.
pub struct Readers {
    path: PathBuf,
    base: Option<Base>,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    conns: Vec<Connection>,
    /// Incremented when the pool is cleared: older connections do not return to it.
    generation: u64,
}

impl Readers {
    pub fn new(folder: &Path, base: Option<Base>) -> Self {
        Self { path: path_in(folder), base, idle: Mutex::default() }
    }

    /// Borrows a connection, which returns to the pool when dropped.
    ///
    /// # Errors
    /// When there is no database.
    pub fn get(&self) -> Result<Reader<'_>, StoreError> {
        let (idle, generation) = {
            let mut idle = lock(&self.idle);
            (idle.conns.pop(), idle.generation)
        };
        let conn = match idle {
            Some(conn) => conn,
            None => {
                let conn = cairn_store::open_read_only(&self.path)?;
                // Readers use the mapped file, so that they need no page cache of their own.
                if let Some(base) = &self.base {
                    attach(&conn, base)?;
                    conn.execute_batch(VIEWS)?;
                    conn.pragma_update(Some("base"), "cache_size", -512)?;
                }
                conn.pragma_update(None, "mmap_size", 1_i64 << 40)?;
                conn.pragma_update(None, "cache_size", -512)?;
                conn.set_prepared_statement_cache_capacity(32);
                conn
            }
        };
        Ok(Reader { conn: Some(conn), generation, home: self })
    }

    /// Borrows a connection in a read transaction, which ends when it is dropped: all reads see one
    /// snapshot, and no statement needs to lock the file by itself.
    ///
    /// # Errors
    /// As [`Readers::get`], or when the transaction cannot start.
    pub fn transaction(&self) -> Result<Transaction<'_>, StoreError> {
        let reader = self.get()?;
        reader.execute_batch("BEGIN")?;
        Ok(Transaction(reader))
    }

    /// Closes the idle connections; borrowed ones close when they are dropped.
    pub fn clear(&self) {
        let mut idle = lock(&self.idle);
        idle.conns.clear();
        idle.generation += 1;
    }
}

pub struct Reader<'a> {
    conn: Option<Connection>,
    generation: u64,
    home: &'a Readers,
}

/// A borrowed connection with a read transaction.
pub struct Transaction<'a>(Reader<'a>);

impl std::ops::Deref for Transaction<'_> {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.0.execute_batch("ROLLBACK").is_err() {
            // A connection that is still in an old snapshot must not be reused.
            self.0.generation = u64::MAX;
        }
    }
}

impl std::ops::Deref for Reader<'_> {
    type Target = Connection;
    #[expect(clippy::expect_used, reason = "it is there until drop")]
    fn deref(&self) -> &Connection {
        self.conn.as_ref().expect("present until drop")
    }
}

impl std::ops::DerefMut for Reader<'_> {
    #[expect(clippy::expect_used, reason = "it is there until drop")]
    fn deref_mut(&mut self) -> &mut Connection {
        self.conn.as_mut().expect("present until drop")
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        let mut idle = lock(&self.home.idle);
        if let Some(conn) = self.conn.take()
            && idle.generation == self.generation
            && idle.conns.len() < MAX_IDLE
        {
            idle.conns.push(conn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_index_or_index_of_another_format_is_rebuilt() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path(), None).unwrap());
        let conn = open(dir.path(), None).unwrap();
        assert_eq!(conn.query_row("PRAGMA page_size", [], |r| r.get::<_, i64>(0)).unwrap(), 8192);
        set_meta(&conn, "format", 99).unwrap();
        drop(conn);
        assert_eq!(meta(&open(dir.path(), None).unwrap(), "format").unwrap(), Some(FORMAT));
        std::fs::write(path_in(dir.path()), vec![b'x'; 9000]).unwrap();
        assert_eq!(meta(&open(dir.path(), None).unwrap(), "format").unwrap(), Some(FORMAT));
    }

    #[test]
    fn index_that_was_cut_is_rebuilt() {
        let dir = tempfile::tempdir().unwrap();
        let path = path_in(dir.path());
        let fill = |conn: &Connection| {
            for n in 0..20_000 {
                set_meta(conn, &format!("a longer name of an entry {n}"), n).unwrap();
            }
        };
        let conn = open(dir.path(), None).unwrap();
        conn.execute_batch("BEGIN").unwrap();
        fill(&conn);
        conn.execute_batch("COMMIT").unwrap();
        drop(conn);
        let bytes = std::fs::read(&path).unwrap();
        let entries = |folder: &Path| {
            let conn = open(folder, None).unwrap();
            let query = "SELECT count(*) FROM meta WHERE key LIKE 'a longer%'";
            conn.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap()
        };
        assert_eq!(entries(dir.path()), 20_000, "the control: the complete file");
        let page = 8192;
        for length in [0, 1, 99, 100, 4096, page, page + 1, bytes.len() / 2, bytes.len() - 1] {
            let other = tempfile::tempdir().unwrap();
            // Other files of the folder belong to the index that is lost.
            std::fs::write(other.path().join("words"), "x").unwrap();
            std::fs::write(path_in(other.path()), &bytes[..length]).unwrap();
            assert_eq!(entries(other.path()), 0, "{length}");
            assert!(!other.path().join("words").exists(), "{length}");
        }
    }

    #[test]
    fn transaction_reads_one_snapshot_and_ends_on_drop() {
        let dir = tempfile::tempdir().unwrap();
        let conn = open(dir.path(), None).unwrap();
        let readers = Readers::new(dir.path(), None);
        set_meta(&conn, "n", 1).unwrap();
        let transaction = readers.transaction().unwrap();
        assert_eq!(meta(&transaction, "n").unwrap(), Some(1));
        set_meta(&conn, "n", 2).unwrap();
        assert_eq!(meta(&transaction, "n").unwrap(), Some(1));
        drop(transaction);
        let reader = readers.get().unwrap();
        assert!(reader.is_autocommit());
        assert_eq!(meta(&reader, "n").unwrap(), Some(2));
    }

    #[test]
    fn newer_index_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let conn = open(dir.path(), None).unwrap();
        conn.pragma_update(None, "user_version", 77).unwrap();
        drop(conn);
        assert!(matches!(open(dir.path(), None), Err(StoreError::Newer { found: 77, .. })));
    }
}
