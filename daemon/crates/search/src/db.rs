//! The database of one index: schema, opening, and a small pool of readers.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cairn_store::rusqlite::{Connection, OptionalExtension, params};
use cairn_store::{Migration, StoreError};

use crate::mapped::private;
use crate::sync::lock;

/// What is still to do for a file, as bits of `file.due`.
pub mod due {
    /// Its text.
    pub const TEXT: i64 = 1;
    /// Its vectors.
    pub const VECTORS: i64 = 2;
    /// Its symbols.
    pub const SYMBOLS: i64 = 4;
}

const MIGRATIONS: &[Migration] = &[
    Migration { version: 1, sql: include_str!("schema.sql") },
    // From here on vectors may be of half precision, which an older daemon would take for none.
    Migration { version: 2, sql: "" },
];
/// How words, windows and symbols are made; an index made otherwise is thrown away and made anew.
const FORMAT: i64 = 5;
/// Readers kept open.
const MAX_IDLE: usize = 4;

/// Opens the database in `folder` for writing. A damaged one or one of another format is made anew: all of it can be
/// derived from the files.
///
/// # Errors
/// [`StoreError::Newer`], [`StoreError::DiskFull`], or what the system says.
pub fn open(folder: &Path) -> Result<Connection, StoreError> {
    make_private(folder)?;
    match open_once(folder) {
        Ok(Some(conn)) => return Ok(conn),
        Err(StoreError::Corrupt(why)) => {
            tracing::warn!(folder = %folder.display(), why, "index is damaged, building it anew")
        }
        Ok(None) => tracing::info!(folder = %folder.display(), "index has another format, building it anew"),
        Err(error) => return Err(error),
    }
    clear(folder)?;
    open_once(folder)?.ok_or_else(|| StoreError::Corrupt("a fresh index has another format".into()))
}

/// Deletes what an index folder holds.
fn clear(folder: &Path) -> Result<(), StoreError> {
    let io = |source| StoreError::Io { path: folder.to_owned(), source };
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(io(e)),
        _ => {}
    }
    make_private(folder)
}

/// Makes the folder, for its owner alone.
///
/// # Errors
/// What the system says.
pub fn make_private(folder: &Path) -> Result<(), StoreError> {
    let mut options = std::fs::DirBuilder::new();
    options.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut options, 0o700);
    options.create(folder).map_err(|source| StoreError::Io { path: folder.to_owned(), source })
}

fn open_once(folder: &Path) -> Result<Option<Connection>, StoreError> {
    let path = path_in(folder);
    if !path.exists() {
        create(&path)?;
    }
    let conn = cairn_store::open(&path, MIGRATIONS)?;
    // The index can be made again: a commit need not reach the disk at once, it must only never tear.
    conn.pragma_update(None, "synchronous", "NORMAL")?;
    conn.pragma_update(None, "wal_autocheckpoint", 4000)?;
    conn.pragma_update(None, "cache_size", -16_384)?;
    conn.set_prepared_statement_cache_capacity(64);
    match meta(&conn, "format")? {
        Some(FORMAT) => Ok(Some(conn)),
        Some(_) => Ok(None),
        None => {
            set_meta(&conn, "format", FORMAT)?;
            Ok(Some(conn))
        }
    }
}

/// Makes an empty database. It gets its name when it is in WAL mode: the change of the mode waits for no reader and would fail.
fn create(path: &Path) -> Result<(), StoreError> {
    let new = path.with_extension("new");
    let io = |source| StoreError::Io { path: new.clone(), source };
    private().write(true).create(true).truncate(true).open(&new).map_err(io)?;
    let conn = Connection::open(&new)?;
    // Ten vectors to a page; the size is fixed by the first write.
    conn.execute_batch("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA user_version = 0")?;
    conn.close().map_err(|(_, error)| error)?;
    std::fs::rename(&new, path).map_err(io)
}

/// Writes a file of the index from parts that follow each other, for its owner alone and to the disk; what was there is
/// replaced. A failure leaves none.
///
/// # Errors
/// [`StoreError::Io`].
pub fn write_file(path: &Path, parts: &[&[u8]]) -> Result<(), StoreError> {
    let written = private().write(true).create(true).truncate(true).open(path).and_then(|mut file| {
        parts.iter().try_for_each(|part| std::io::Write::write_all(&mut file, part))?;
        file.sync_data()
    });
    written.map_err(|source| {
        let _ = std::fs::remove_file(path);
        StoreError::Io { path: path.to_owned(), source }
    })
}

fn path_in(folder: &Path) -> PathBuf {
    folder.join("index.db")
}

/// A number in `meta`.
///
/// # Errors
/// What SQLite says.
pub fn meta(conn: &Connection, key: &str) -> Result<Option<i64>, StoreError> {
    let mut get = conn.prepare_cached("SELECT value FROM meta WHERE key = ?")?;
    Ok(get.query_row([key], |r| r.get(0)).optional()?)
}

/// Sets a number in `meta`.
///
/// # Errors
/// What SQLite says.
pub fn set_meta(conn: &Connection, key: &str, value: i64) -> Result<(), StoreError> {
    let mut put = conn.prepare_cached("INSERT OR REPLACE INTO meta(key, value) VALUES(?, ?)")?;
    put.execute(params![key, value])?;
    Ok(())
}

/// Read-only connections of one index, opened when needed, a few kept.
pub struct Readers {
    path: PathBuf,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    conns: Vec<Connection>,
    /// Grows when the database is replaced: older connections are not taken back.
    generation: u64,
}

impl Readers {
    /// Readers of the database in `folder`.
    pub fn new(folder: &Path) -> Self {
        Self { path: path_in(folder), idle: Mutex::default() }
    }

    /// A connection; it goes back when dropped.
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
                // Pages come from the file's mapping, so that readers hold no copies of their own.
                conn.pragma_update(None, "mmap_size", 1_i64 << 40)?;
                conn.pragma_update(None, "cache_size", -512)?;
                conn.set_prepared_statement_cache_capacity(32);
                conn
            }
        };
        Ok(Reader { conn: Some(conn), generation, home: self })
    }

    /// The same in one read transaction, which ends when it is dropped: what is read between is of one moment, and no
    /// statement has to take the lock of the file by itself.
    ///
    /// # Errors
    /// As [`Readers::get`], or when a transaction cannot be begun.
    pub fn transaction(&self) -> Result<Transaction<'_>, StoreError> {
        let reader = self.get()?;
        reader.execute_batch("BEGIN")?;
        Ok(Transaction(reader))
    }

    /// Closes the idle ones and takes none back that is open now.
    pub fn clear(&self) {
        let mut idle = lock(&self.idle);
        idle.conns.clear();
        idle.generation += 1;
    }
}

/// A borrowed connection.
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
            // Nobody may get a connection that still holds a moment of the past.
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
    fn a_damaged_or_foreign_index_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path()).unwrap());
        let conn = open(dir.path()).unwrap();
        assert_eq!(conn.query_row("PRAGMA page_size", [], |r| r.get::<_, i64>(0)).unwrap(), 8192);
        set_meta(&conn, "format", 99).unwrap();
        drop(conn);
        assert_eq!(meta(&open(dir.path()).unwrap(), "format").unwrap(), Some(FORMAT));
        std::fs::write(path_in(dir.path()), vec![b'x'; 9000]).unwrap();
        assert_eq!(meta(&open(dir.path()).unwrap(), "format").unwrap(), Some(FORMAT));
    }

    #[test]
    fn a_transaction_is_of_one_moment_and_ends() {
        let dir = tempfile::tempdir().unwrap();
        let conn = open(dir.path()).unwrap();
        let readers = Readers::new(dir.path());
        set_meta(&conn, "n", 1).unwrap();
        let held = readers.transaction().unwrap();
        assert_eq!(meta(&held, "n").unwrap(), Some(1));
        set_meta(&conn, "n", 2).unwrap();
        assert_eq!(meta(&held, "n").unwrap(), Some(1));
        drop(held);
        let again = readers.get().unwrap();
        assert!(again.is_autocommit());
        assert_eq!(meta(&again, "n").unwrap(), Some(2));
    }

    #[test]
    fn a_newer_index_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let conn = open(dir.path()).unwrap();
        conn.pragma_update(None, "user_version", 77).unwrap();
        drop(conn);
        assert!(matches!(open(dir.path()), Err(StoreError::Newer { found: 77, .. })));
    }
}
