//! Opens databases: modes, private permissions and migrations.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::StoreError;

/// One step of a schema. Versions count from 1 without gaps.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// The schema version after this step.
    pub version: u32,
    /// The SQL statements of this step.
    pub sql: &'static str,
}

/// Opens or creates the database at `path`, applies pending `migrations`, and sets write-ahead
/// logging and `synchronous=FULL`. Files are private to the user.
///
/// # Errors
/// [`StoreError::Newer`] for a database of a newer build; [`StoreError::Corrupt`] for a file that
/// is not a database.
pub fn open(path: &Path, migrations: &[Migration]) -> Result<Connection, StoreError> {
    open_with(path, migrations, false)
}

/// Opens a database as [`open`] does, one whose file shrinks by [`shrink`]. The file of an older
/// build is rewritten when it is migrated, because SQLite can change this only so.
///
/// # Errors
/// As [`open`].
pub fn open_shrinking(path: &Path, migrations: &[Migration]) -> Result<Connection, StoreError> {
    open_with(path, migrations, true)
}

fn open_with(
    path: &Path,
    migrations: &[Migration],
    shrinks: bool,
) -> Result<Connection, StoreError> {
    make_private(path)?;
    let mut conn = Connection::open(path)?;
    prepare(&conn)?;
    let latest = migrations.last().map_or(0, |m| m.version);
    let version: u32 = conn.query_row("PRAGMA user_version", [], |r| r.get(0))?;
    if version > latest {
        return Err(StoreError::Newer { path: path.to_owned(), found: version, known: latest });
    }
    if version < latest {
        // The modes are stored in the file. Setting them needs the lock, so they are only set if
        // there are migrations; the way to shrink only before the first table.
        if shrinks {
            conn.pragma_update(None, "page_size", PAGE)?;
            conn.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        }
        conn.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(()))?;
        let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        for step in migrations.iter().filter(|m| m.version > version) {
            tx.execute_batch(step.sql)?;
        }
        tx.pragma_update(None, "user_version", latest)?;
        tx.commit()?;
        let mode: u32 = conn.query_row("PRAGMA auto_vacuum", [], |row| row.get(0))?;
        if shrinks && mode != INCREMENTAL {
            conn.query_row("PRAGMA journal_mode=DELETE", [], |_| Ok(()))?;
            conn.pragma_update(None, "page_size", PAGE)?;
            conn.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
            conn.execute_batch("VACUUM")?;
            conn.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(()))?;
        }
    }
    Ok(conn)
}

/// Bytes of a page of a shrinking database. Rows of 1 to 3 KB fill such pages to 80 % or more, those
/// of SQLite's default to 55 %.
const PAGE: u32 = 8192;
/// Number of the incremental mode of `auto_vacuum`.
const INCREMENTAL: u32 = 2;

/// Returns up to `pages` unused pages to the file system and returns the number of those that
/// remain unused. Only a database of [`open_shrinking`] has an effect.
///
/// # Errors
/// When the file cannot be written.
pub fn shrink(conn: &Connection, pages: u32) -> Result<u64, StoreError> {
    if pages > 0 {
        let mut statement = conn.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
    }
    Ok(conn.query_row("PRAGMA freelist_count", [], |row| row.get(0))?)
}

/// Opens an existing database for reading.
///
/// # Errors
/// When the file does not exist or is not a database.
pub fn open_read_only(path: &Path) -> Result<Connection, StoreError> {
    let conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.busy_timeout(std::time::Duration::from_secs(5))?;
    conn.pragma_update(None, "cache_size", -2048)?;
    enable_stable_plans(&conn)?;
    Ok(conn)
}

/// Enables query plans that do not depend on bound values. Otherwise SQLite recompiles a statement
/// with a range for every new value, which a search would do for each window it reads. In return, a
/// statement can use a partial index only if it contains the index's condition literally, and `LIKE
/// ?` cannot use an index.
fn enable_stable_plans(conn: &Connection) -> Result<(), StoreError> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Fails for a file that ends before its last page, which SQLite reports only when it reads there.
/// A file whose write-ahead log has content is not judged: pages may be in the log alone.
///
/// # Errors
/// [`StoreError::Corrupt`], or when the file cannot be read.
pub fn check_length(path: &Path) -> Result<(), StoreError> {
    let io = |source| StoreError::Io { path: path.to_owned(), source };
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    if Path::new(&wal).metadata().is_ok_and(|meta| meta.len() > 0) {
        return Ok(());
    }
    let mut header = [0; HEADER];
    let mut file = std::fs::File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let cut = |what: String| StoreError::Corrupt(format!("{}: {what}", path.display()));
    if length < HEADER as u64 {
        return Err(cut(format!("the file has only {length} bytes")));
    }
    std::io::Read::read_exact(&mut file, &mut header).map_err(io)?;
    let number = |at: usize| {
        let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        u64::from(u32::from_be_bytes(bytes))
    };
    let page = match u16::from_be_bytes([header[16], header[17]]) {
        // The largest size does not fit its two bytes.
        1 => 65_536,
        size => u64::from(size),
    };
    // The number of pages is only valid if the same change has written both counters.
    let expected = number(PAGES) * page;
    if number(CHANGES) == number(VALID_FOR) && length < expected {
        return Err(cut(format!("the file has {length} of {expected} bytes")));
    }
    Ok(())
}

/// Bytes of the header of a database file, and positions in it: counter of changes, number of
/// pages, and the counter that the number of pages belongs to.
const HEADER: usize = 100;
const CHANGES: usize = 24;
const PAGES: usize = 28;
const VALID_FOR: usize = 92;

/// Runs SQLite's integrity check and returns `ok` or its findings.
///
/// # Errors
/// When the check cannot run.
pub fn integrity_check(conn: &Connection) -> Result<String, StoreError> {
    Ok(conn.query_row("PRAGMA integrity_check", [], |r| r.get(0))?)
}

/// Limits the bytes of the page caches of all databases of this process together; caches evict
/// pages to stay below. Zero removes the limit.
///
/// # Errors
/// When SQLite rejects the limit.
pub fn limit_memory(bytes: u64) -> Result<(), StoreError> {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let sql = format!("PRAGMA soft_heap_limit = {bytes}");
    Ok(Connection::open_in_memory()?.query_row(&sql, [], |_| Ok(()))?)
}

fn prepare(conn: &Connection) -> Result<(), StoreError> {
    conn.busy_timeout(std::time::Duration::from_secs(5))?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
    enable_stable_plans(conn)
}

fn make_private(path: &Path) -> Result<(), StoreError> {
    let io = |source| StoreError::Io { path: path.to_owned(), source };
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(io).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: Migration = Migration { version: 1, sql: "CREATE TABLE a(x)" };
    const V2: Migration = Migration { version: 2, sql: "CREATE TABLE b(x)" };

    #[test]
    fn older_database_is_migrated_and_newer_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.db");
        drop(open(&path, &[V1]).unwrap());
        let conn = open(&path, &[V1, V2]).unwrap();
        conn.execute("INSERT INTO b VALUES (1)", []).unwrap();
        assert_eq!(integrity_check(&conn).unwrap(), "ok");
        drop(conn);
        let error = open(&path, &[V1]).unwrap_err();
        assert!(matches!(error, StoreError::Newer { found: 2, known: 1, .. }), "{error}");
    }

    #[test]
    fn file_of_an_older_build_shrinks_after_its_migration() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.db");
        let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
                    INSERT INTO a SELECT randomblob(4000) FROM n";
        drop(open(&path, &[V1]).unwrap());
        let conn = open_shrinking(&path, &[V1, V2]).unwrap();
        conn.execute(fill, []).unwrap();
        conn.execute("DELETE FROM a", []).unwrap();
        let unused = shrink(&conn, 0).unwrap();
        assert!(unused > 200, "{unused}");
        assert_eq!(shrink(&conn, 100).unwrap(), unused - 100);
        assert_eq!(shrink(&conn, 10_000).unwrap(), 0);
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        assert!(path.metadata().unwrap().len() < 100_000);
        assert_eq!(integrity_check(&conn).unwrap(), "ok");
    }

    #[test]
    #[expect(unsafe_code, reason = "SQLite's memory counter has no safe wrapper")]
    fn page_caches_stay_within_their_limit() {
        let dir = tempfile::tempdir().unwrap();
        let conn = open(&dir.path().join("t.db"), &[V1]).unwrap();
        conn.pragma_update(None, "synchronous", "OFF").unwrap();
        let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000)
                    INSERT INTO a SELECT randomblob(4000) FROM n";
        conn.execute(fill, []).unwrap();
        let used_after_a_scan = || {
            let conn = open(&dir.path().join("t.db"), &[V1]).unwrap();
            conn.pragma_update(None, "cache_size", -1_000_000).unwrap();
            conn.query_row("SELECT sum(length(hex(x))) FROM a", [], |_| Ok(())).unwrap();
            // SAFETY: the function reads a counter and has no arguments.
            unsafe { rusqlite::ffi::sqlite3_memory_used() }
        };
        const MIB: i64 = 1024 * 1024;
        drop(conn);
        let free = used_after_a_scan();
        limit_memory(4 * MIB as u64).unwrap();
        let limited = used_after_a_scan();
        limit_memory(0).unwrap();
        assert!(free > 24 * MIB, "without a limit the table fills the cache: {free}");
        assert!(limited < 10 * MIB, "{limited}");
    }

    #[test]
    fn statements_are_compiled_once() {
        const SPANS: Migration = Migration {
            version: 1,
            sql: "CREATE TABLE span(file INTEGER, start INTEGER, end INTEGER); CREATE INDEX of ON span(file)",
        };
        let reprepare_count = |conn: &Connection| {
            let mut get = conn
                .prepare(
                    "SELECT * FROM span WHERE file = ? AND start <= ? AND end >= ? ORDER BY start",
                )
                .unwrap();
            for n in 0..3 {
                assert!(!get.exists([n, n + 1, n]).unwrap());
            }
            get.get_status(rusqlite::StatementStatus::RePrepare)
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.db");
        assert_eq!(reprepare_count(&open(&path, &[SPANS]).unwrap()), 0);
        assert_eq!(reprepare_count(&open_read_only(&path).unwrap()), 0);
        assert_ne!(
            reprepare_count(&Connection::open(&path).unwrap()),
            0,
            "the control: without stable plans"
        );
    }

    #[test]
    fn file_that_is_not_a_database_is_corrupt() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.db");
        std::fs::write(&path, vec![b'x'; 8192]).unwrap();
        assert!(matches!(open(&path, &[V1]).unwrap_err(), StoreError::Corrupt(_)));
    }

    #[cfg(unix)]
    #[test]
    fn database_files_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.db");
        drop(open(&path, &[V1]).unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
