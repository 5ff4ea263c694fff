//! Opening a database: modes, private permissions, migrations.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::StoreError;

/// One step of a schema. Versions count from 1 without gaps.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// The version this step reaches.
    pub version: u32,
    /// Its statements.
    pub sql: &'static str,
}

/// Opens (or makes) the database at `path`, brings it to the last of `migrations`, sets write-ahead logging and
/// `synchronous=FULL`. Files are private to the user.
///
/// # Errors
/// [`StoreError::Newer`] for a database of a newer build; [`StoreError::Corrupt`] for a file that is none.
pub fn open(path: &Path, migrations: &[Migration]) -> Result<Connection, StoreError> {
    make_private(path)?;
    let mut conn = Connection::open(path)?;
    prepare(&conn)?;
    let known = migrations.last().map_or(0, |m| m.version);
    let found: u32 = conn.query_row("PRAGMA user_version", [], |r| r.get(0))?;
    if found > known {
        return Err(StoreError::Newer { path: path.to_owned(), found, known });
    }
    if found < known {
        // The mode is kept in the file; setting it needs the lock, so only where there is something to write.
        conn.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(()))?;
        let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        for step in migrations.iter().filter(|m| m.version > found) {
            tx.execute_batch(step.sql)?;
        }
        tx.pragma_update(None, "user_version", known)?;
        tx.commit()?;
    }
    Ok(conn)
}

/// Opens an existing database for reading.
///
/// # Errors
/// When the file is not there or not a database.
pub fn open_read_only(path: &Path) -> Result<Connection, StoreError> {
    let conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.busy_timeout(std::time::Duration::from_secs(5))?;
    conn.pragma_update(None, "cache_size", -2048)?;
    keep_plans(&conn)?;
    Ok(conn)
}

/// Makes a statement keep its plan whatever is bound to it. Without it SQLite compiles a statement with a range anew for
/// each new value, as a search's for every window it reads. The price: only a statement that spells out the condition of a
/// partial index can use it, not one that binds it, and `LIKE ?` finds no index.
fn keep_plans(conn: &Connection) -> Result<(), StoreError> {
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// `ok`, or what SQLite's own check found.
///
/// # Errors
/// When the check itself cannot run.
pub fn integrity_check(conn: &Connection) -> Result<String, StoreError> {
    Ok(conn.query_row("PRAGMA integrity_check", [], |r| r.get(0))?)
}

/// Sets how many bytes the page caches of all databases of this process may take together; they give pages back rather than
/// go over it. Zero is no limit.
///
/// # Errors
/// When SQLite does not take it.
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
    keep_plans(conn)
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
    fn migrates_up_and_refuses_down() {
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
    #[expect(unsafe_code, reason = "SQLite's own count of its bytes has no safe form")]
    fn caches_stay_within_their_limit() {
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
            // SAFETY: it reads a counter and takes nothing.
            unsafe { rusqlite::ffi::sqlite3_memory_used() }
        };
        const MIB: i64 = 1024 * 1024;
        drop(conn);
        let free = used_after_a_scan();
        limit_memory(4 * MIB as u64).unwrap();
        let limited = used_after_a_scan();
        limit_memory(0).unwrap();
        assert!(free > 24 * MIB, "the table fills a cache without limit: {free}");
        assert!(limited < 10 * MIB, "{limited}");
    }

    #[test]
    fn statements_are_compiled_once() {
        const SPANS: Migration = Migration {
            version: 1,
            sql: "CREATE TABLE span(file INTEGER, start INTEGER, end INTEGER); CREATE INDEX of ON span(file)",
        };
        let compiled_anew = |conn: &Connection| {
            let mut get = conn
                .prepare("SELECT * FROM span WHERE file = ? AND start <= ? AND end >= ? ORDER BY start")
                .unwrap();
            for n in 0..3 {
                assert!(!get.exists([n, n + 1, n]).unwrap());
            }
            get.get_status(rusqlite::StatementStatus::RePrepare)
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.db");
        assert_eq!(compiled_anew(&open(&path, &[SPANS]).unwrap()), 0);
        assert_eq!(compiled_anew(&open_read_only(&path).unwrap()), 0);
        assert_ne!(compiled_anew(&Connection::open(&path).unwrap()), 0, "as it is without");
    }

    #[test]
    fn a_file_that_is_no_database_is_named_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.db");
        std::fs::write(&path, vec![b'x'; 8192]).unwrap();
        assert!(matches!(open(&path, &[V1]).unwrap_err(), StoreError::Corrupt(_)));
    }

    #[cfg(unix)]
    #[test]
    fn files_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.db");
        drop(open(&path, &[V1]).unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
