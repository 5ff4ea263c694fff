//! Content of an index, row by row, and source files to fill one.

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use cairn_store::rusqlite::{Connection, OpenFlags, types::ValueRef};
use serde_json::json;

use crate::sealed::{Raw, wait_for};

/// Rows that two indexes of the same tree must have in common, without ids, clocks and times.
const TABLES: &[(&str, &str)] = &[
    ("file", "SELECT path, lang, size_bytes, mtime_ns, inode, sha256, skipped, pending_stages FROM file"),
    (
        "chunk",
        "SELECT f.path, c.start_line, c.end_line, c.byte_range_start, c.byte_range_end, c.text, c.fingerprint, v.dim, v.vec
         FROM chunk c LEFT JOIN file f ON f.id = c.file_id LEFT JOIN chunk_vec v ON v.chunk_id = c.id",
    ),
    (
        "symbol",
        "SELECT f.path, s.name, s.kind, s.container, s.start_line, s.end_line
         FROM symbol s LEFT JOIN file f ON f.id = s.file_id",
    ),
    ("ref", "SELECT f.path, r.idents FROM file_ref r LEFT JOIN file f ON f.id = r.file_id"),
    ("vectors", "SELECT count(*) FROM chunk_vec"),
];

fn open(db: &Path) -> Connection {
    Connection::open_with_flags(db, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

/// Lists every `*.db` of a home: the log and the indexes.
fn databases(home: &Path) -> Vec<std::path::PathBuf> {
    let mut paths = vec![home.join("trace.db")];
    for folder in std::fs::read_dir(home.join("index")).into_iter().flatten().flatten() {
        let files = std::fs::read_dir(folder.path()).into_iter().flatten().flatten();
        paths.extend(files.map(|f| f.path()).filter(|p| p.extension().is_some_and(|e| e == "db")));
    }
    paths
}

/// Runs SQLite's integrity check on every database of a home.
pub fn check_integrity(home: &Path) {
    for db in databases(home).iter().filter(|d| d.exists()) {
        let connection = open(db);
        connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        let result: String =
            connection.query_row("PRAGMA integrity_check", [], |r| r.get(0)).unwrap();
        assert_eq!(result, "ok", "{}", db.display());
    }
}

/// Returns the rows of the only index of a home. Files are named by path, so that trees in
/// different locations compare only when `stats` is false.
pub fn rows(home: &Path, stats: bool) -> BTreeSet<String> {
    let mut dbs = databases(home).split_off(1);
    assert_eq!(dbs.len(), 1, "{dbs:?}");
    let connection = open(&dbs.remove(0));
    let mut all = BTreeSet::new();
    for (table, sql) in TABLES {
        let sql = if stats { (*sql).to_owned() } else { sql.replace("mtime_ns, inode, ", "") };
        let mut statement = connection.prepare(&sql).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let mut line = (*table).to_owned();
            for column in 0..columns {
                match row.get_ref(column).unwrap() {
                    ValueRef::Null => line.push_str(" -"),
                    ValueRef::Integer(n) => write!(line, " {n}").unwrap(),
                    ValueRef::Real(n) => write!(line, " {n}").unwrap(),
                    ValueRef::Text(t) => write!(line, " {}", String::from_utf8_lossy(t)).unwrap(),
                    ValueRef::Blob(b) => write!(line, " {}:{:x}", b.len(), fnv(b)).unwrap(),
                }
            }
            all.insert(line);
        }
    }
    all
}

/// Asserts that both sets are equal, and shows the first differences.
pub fn assert_same(actual: &BTreeSet<String>, fresh: &BTreeSet<String>) {
    let stale: Vec<_> = actual.difference(fresh).take(5).collect();
    let missed: Vec<_> = fresh.difference(actual).take(5).collect();
    assert!(stale.is_empty() && missed.is_empty(), "stale {stale:#?}, missed {missed:#?}");
}

/// FNV-1a hash of 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// Waits until the only index is complete, and returns its status.
pub async fn complete(raw: &mut Raw) -> serde_json::Value {
    let until = std::time::Instant::now() + crate::sealed::PATIENCE;
    loop {
        let status = raw.ok("index.status", json!({})).await["roots"][0].clone();
        if status["complete"] == true && status["pending"] == 0 {
            return status;
        }
        assert!(std::time::Instant::now() < until, "never complete: {status}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Adds a root and waits until its index is complete.
pub async fn index(raw: &mut Raw, root: &Path) {
    raw.ok("index.addRoot", json!({"path": root})).await;
    complete(raw).await;
}

/// Returns the rows of a new index of a tree.
pub async fn fresh_rows(tree: &Path) -> BTreeSet<String> {
    let daemon = crate::sealed::Daemon::start();
    let mut raw = daemon.client().await;
    index(&mut raw, tree).await;
    rows(&daemon.home, true)
}

/// Writes `count` source files in folders of 50.
pub fn sources(root: &Path, count: usize) {
    for n in 0..count {
        let folder = root.join(format!("part{}", n / 50));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("unit{n}.py")), source(n)).unwrap();
    }
}

/// Returns one source file; `n` makes its words unique.
pub fn source(n: usize) -> String {
    let mut text = format!(
        "\"\"\"Unit {n} keeps ledger{n}.\"\"\"\nimport part{}.unit{}\n\n\n",
        n / 100,
        n / 2
    );
    for m in 0..6 {
        write!(
            text,
            "def take{n}_{m}(account, amount):\n    # moves an amount of {m} between the accounts of ledger{n}\n    \
             balance = account.balance - amount * {m}\n    return take{}_{m}(balance, amount)\n\n\n",
            n / 2
        )
        .unwrap();
    }
    text
}

/// Reads a count from the environment, with a small default.
pub fn count(variable: &str, lean: usize) -> usize {
    std::env::var(variable).ok().map_or(lean, |n| n.parse().unwrap())
}

/// Waits until the condition is true.
pub fn until(what: &str, ask: impl FnMut() -> bool) {
    let mut ask = ask;
    wait_for(what, || ask().then_some(()));
}
