//! Opening a database: modes, private permissions, migrations.

use std::path::Path;

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
    Ok(conn)
}

/// `ok`, or what SQLite's own check found.
///
/// # Errors
/// When the check itself cannot run.
pub fn integrity_check(conn: &Connection) -> Result<String, StoreError> {
    Ok(conn.query_row("PRAGMA integrity_check", [], |r| r.get(0))?)
}

fn prepare(conn: &Connection) -> Result<(), StoreError> {
    conn.busy_timeout(std::time::Duration::from_secs(5))?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "journal_size_limit", 64 * 1024 * 1024)?;
    Ok(())
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
