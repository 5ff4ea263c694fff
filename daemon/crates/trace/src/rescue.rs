//! Damage of a log: what is damaged, and a new log with all that is intact.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use cairn_protocol::{explore::RunState, id::SessionId};
use cairn_store::{
    StoreError,
    rusqlite::{self, Connection, params, params_from_iter, types::Value},
};
use sha2::{Digest as _, Sha256};

use crate::{
    read::parse,
    records::{self, Owner, SessionKey},
    schema,
};

/// Maximum findings of one answer.
const MAX_FINDINGS: usize = 200;
/// Bytes of the first page of a log.
const PAGE: usize = 8192;
/// Tables that are copied row by row, with their keys. The others are derived, or follow from the
/// sessions.
const COPIED: [(&str, &[&str]); 7] = [
    ("receipt", &["scope", "request_id"]),
    ("artifact", &["session_id", "name"]),
    ("approval", &["id"]),
    ("blob_ref", &["session_id", "sha256"]),
    ("blob_part", &["session_id", "sha256", "start"]),
    ("audit", &["id"]),
    ("notice", &["name"]),
];

/// Content of a rescued log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rescue {
    pub sessions: u64,
    pub records: u64,
    pub blobs: u64,
    /// Parts that are lost, one line each.
    pub lost: Vec<String>,
}

impl Rescue {
    fn lose(&mut self, what: String) {
        match self.lost.len() {
            MAX_FINDINGS => self.lost.push("and more".into()),
            0..MAX_FINDINGS => self.lost.push(what),
            _ => {}
        }
    }
}

/// Returns the damage of a log, one line each; none if it is intact.
///
/// # Errors
/// When the database cannot be opened at all.
pub fn inspect(path: &Path) -> Result<Vec<String>, StoreError> {
    let conn = cairn_store::open_read_only(path)?;
    let mut findings = Vec::new();
    // Reading all of it may fail where the check itself does not.
    if let Err(error) = find_structural(&conn, &mut findings) {
        findings.push(error.to_string());
    }
    if findings.is_empty()
        && let Err(error) = find_content(&conn, &mut findings)
    {
        findings.push(error.to_string());
    }
    findings.truncate(MAX_FINDINGS);
    Ok(findings)
}

fn find_structural(conn: &Connection, findings: &mut Vec<String>) -> Result<(), StoreError> {
    let mut check = conn.prepare(&format!("PRAGMA integrity_check({MAX_FINDINGS})"))?;
    let mut rows = check.query([])?;
    while let Some(row) = rows.next()? {
        let line: String = row.get(0)?;
        if line != "ok" {
            findings.push(line);
        }
    }
    Ok(())
}

fn find_content(conn: &Connection, findings: &mut Vec<String>) -> Result<(), StoreError> {
    let mut ids = conn.prepare(
        "SELECT id FROM session UNION SELECT id FROM session_key WHERE id IS NOT NULL ORDER BY 1",
    )?;
    let ids = ids.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    for id in ids {
        let Ok(session) = id.parse::<SessionId>() else {
            findings.push(format!("session '{}' has no valid id", id.escape_default()));
            continue;
        };
        if let Err(error) = records::visit(conn, &session, 0, |_, _| true) {
            findings.push(error.to_string());
        }
        if findings.len() >= MAX_FINDINGS {
            return Ok(());
        }
    }
    let mut blobs = conn.prepare("SELECT sha256, content FROM blob")?;
    let mut rows = blobs.query([])?;
    while let Some(row) = rows.next()? {
        let hash: String = row.get(0)?;
        if !is_intact(&hash, row.get_ref(1)?.as_blob().unwrap_or(&[])) {
            findings.push(format!("blob {} does not match its hash", hash.escape_default()));
        }
    }
    Ok(())
}

fn is_intact(hash: &str, content: &[u8]) -> bool {
    hex::encode(Sha256::digest(content)) == hash
}

/// Writes the intact parts of a damaged log to a new one at `rescued`, whose folder must have room
/// for two copies. A session has its records up to the first damaged one.
///
/// # Errors
/// When nothing can be read from the damaged log, or the new one cannot be written.
pub fn rescue(damaged: &Path, rescued: &Path) -> Result<Rescue, StoreError> {
    let from = open_damaged(damaged, rescued)?;
    let mut to = cairn_store::open_shrinking(rescued, schema::MIGRATIONS)?;
    to.pragma_update(None, "foreign_keys", false)?;
    let tx = to.transaction()?;
    let mut rescue = Rescue::default();
    copy_sessions(&from, &tx, &mut rescue)?;
    copy_blobs(&from, &tx, &mut rescue)?;
    for (table, key) in COPIED {
        let rows = rows_of(&from, table, key, "1", &mut rescue)?;
        insert_rows(&tx, table, &rows)?;
    }
    for table in ["receipt", "artifact", "approval", "blob_ref", "blob_part"] {
        let query = format!("DELETE FROM {table} WHERE session_id NOT IN (SELECT id FROM session)");
        tx.execute(&query, [])?;
    }
    tx.execute("DELETE FROM blob_ref WHERE sha256 NOT IN (SELECT sha256 FROM blob)", [])?;
    tx.commit()?;
    to.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(rescue)
}

/// Opens a damaged log for reading. If its first page is lost, a copy beside `rescued` has that of
/// a new log, whose tables begin at the same pages.
fn open_damaged(path: &Path, rescued: &Path) -> Result<Connection, StoreError> {
    let opened = readable(path);
    let Err(StoreError::Corrupt(_)) = opened else { return opened };
    let copy = rescued.with_extension("copy");
    let template = rescued.with_extension("template");
    let outcome = repaired_copy(path, &copy, &template);
    for suffix in ["", "-wal", "-shm"] {
        let _absent = std::fs::remove_file(with_suffix(&template, suffix));
    }
    outcome?;
    let opened = readable(&copy);
    // On Unix an open file remains readable. Its write-ahead log is empty.
    for suffix in ["", "-wal", "-shm"] {
        let _absent = std::fs::remove_file(with_suffix(&copy, suffix));
    }
    opened
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn repaired_copy(path: &Path, copy: &Path, template: &Path) -> Result<(), StoreError> {
    let io = |source| StoreError::Io { path: copy.to_owned(), source };
    let conn = cairn_store::open_shrinking(template, schema::MIGRATIONS)?;
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    drop(conn);
    let mut page = std::fs::read(template).map_err(io)?;
    page.truncate(PAGE);
    let mut bytes = std::fs::read(path).map_err(io)?;
    bytes.resize(bytes.len().next_multiple_of(PAGE).max(PAGE), 0);
    // A number of pages that belongs to another change is not used: the file's length counts.
    if let Some(counter) = page.get_mut(92..96) {
        counter.fill(0);
    }
    bytes.splice(..PAGE.min(page.len()), page);
    std::fs::write(copy, bytes).map_err(io)
}

/// Opens a log whose tables can be read at least in part.
fn readable(path: &Path) -> Result<Connection, StoreError> {
    let conn = cairn_store::open_read_only(path)?;
    let version: u32 = conn.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = crate::SCHEMA_VERSION;
    if version > known {
        return Err(StoreError::Newer { path: path.to_owned(), found: version, known });
    }
    conn.prepare("SELECT head_seq FROM session")?;
    conn.prepare("SELECT sum FROM session_record")?;
    Ok(conn)
}

/// A row by the names of its columns.
type NamedRow = BTreeMap<String, Value>;

/// Returns the rows of a table that can be read, from both of its ends, so that a damaged page
/// hides no more than its own. `condition` is one of SQL.
fn rows_of(
    conn: &Connection,
    table: &str,
    key: &[&str],
    condition: &str,
    rescue: &mut Rescue,
) -> Result<Vec<NamedRow>, StoreError> {
    let mut rows = Vec::new();
    for direction in ["ASC", "DESC"] {
        let order: Vec<String> = key.iter().map(|column| format!("{column} {direction}")).collect();
        let query =
            format!("SELECT * FROM {table} WHERE {condition} ORDER BY {}", order.join(", "));
        match read_rows(conn, &query, &mut rows) {
            Ok(()) => return Ok(rows),
            Err(error) if is_damage(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    rescue.lose(format!("rows of the table '{table}' in a damaged page"));
    Ok(rows)
}

fn read_rows(
    conn: &Connection,
    query: &str,
    into: &mut Vec<NamedRow>,
) -> Result<(), rusqlite::Error> {
    let mut statement = conn.prepare(query)?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let values = names.iter().enumerate().map(|(at, name)| Ok((name.clone(), row.get(at)?)));
        // A value of another type than any has only this row.
        if let Ok(row) = values.collect::<Result<NamedRow, rusqlite::Error>>() {
            into.push(row);
        }
    }
    Ok(())
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        None | Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase)
    )
}

/// Inserts rows that do not exist yet. A row that the table refuses is damaged.
fn insert_rows(tx: &Connection, table: &str, rows: &[NamedRow]) -> Result<(), StoreError> {
    for row in rows {
        let names: Vec<&str> = row.keys().map(String::as_str).collect();
        let marks = vec!["?"; names.len()].join(", ");
        let query =
            format!("INSERT OR IGNORE INTO {table} ({}) VALUES ({marks})", names.join(", "));
        match tx.prepare_cached(&query)?.execute(params_from_iter(row.values())) {
            Ok(_) => {}
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn copy_sessions(
    from: &Connection,
    to: &Connection,
    rescue: &mut Rescue,
) -> Result<(), StoreError> {
    let text = |row: &NamedRow, name: &str| match row.get(name) {
        Some(Value::Text(text)) => text.parse::<SessionId>().ok(),
        _ => None,
    };
    let mut rows: BTreeMap<String, Option<NamedRow>> = BTreeMap::new();
    let mut keys: BTreeMap<String, SessionKey> = BTreeMap::new();
    for row in rows_of(from, "session_key", &["num"], "id IS NOT NULL", rescue)? {
        if let (Some(id), Some(Value::Integer(num))) = (text(&row, "id"), row.get("num")) {
            keys.insert(id.to_string(), *num);
            rows.insert(id.to_string(), None);
        }
    }
    for row in rows_of(from, "session", &["id"], "1", rescue)? {
        if let Some(id) = text(&row, "id") {
            rows.insert(id.to_string(), Some(row));
        }
    }
    for (id, row) in rows {
        let (Ok(session), Some(key)) = (id.parse::<SessionId>(), keys.get(&id)) else {
            rescue.lose(format!("session {id}: its records cannot be found"));
            continue;
        };
        copy_session(from, to, Owner { session: &session, key: *key }, row, rescue)?;
    }
    Ok(())
}

/// The records of a session that were copied.
struct Copied {
    /// Number of the last one.
    last: u64,
    bytes: usize,
    /// Times of the first and of the last one.
    first_ts: Option<i64>,
    last_ts: i64,
    /// Damage of the record after the last one.
    damage: Option<String>,
}

/// Returns the kind of a record that this build cannot read as a whole.
fn kind_of(line: &str) -> &'static str {
    #[derive(serde::Deserialize)]
    struct Kind {
        kind: String,
    }
    match serde_json::from_str::<Kind>(line) {
        Ok(Kind { kind }) if kind == "Evt" => "Evt",
        _ => "Cmd",
    }
}

/// Copies the records of a session up to the first damaged one. `updated` is the time of a record
/// whose own cannot be read.
fn copy_records(
    from: &Connection,
    to: &Connection,
    (owner, new): (Owner<'_>, Owner<'_>),
    head: u64,
    updated: i64,
) -> Result<Copied, StoreError> {
    let mut copied = Copied { last: 0, bytes: 0, first_ts: None, last_ts: updated, damage: None };
    let mut failed = None;
    let read = records::visit_of(from, owner, head, 0, |seq, line| {
        let (ts, kind) = match parse(line) {
            Ok(record) => (record.ts.0, if record.body.evt().is_some() { "Evt" } else { "Cmd" }),
            // It is what was written, whatever this build makes of it.
            Err(_) => (copied.last_ts, kind_of(line)),
        };
        failed = records::insert(to, new, seq, (ts, kind), line).err();
        copied.last = seq;
        copied.bytes += line.len();
        copied.last_ts = ts;
        copied.first_ts.get_or_insert(ts);
        failed.is_none()
    });
    match (failed, read) {
        (Some(error), _) => Err(error),
        (None, Ok(())) => Ok(copied),
        (None, Err(StoreError::DamagedRecord { what, .. })) => {
            Ok(Copied { damage: Some(what), ..copied })
        }
        (None, Err(error)) => Err(error),
    }
}

fn copy_session(
    from: &Connection,
    to: &Connection,
    owner: Owner<'_>,
    row: Option<NamedRow>,
    rescue: &mut Rescue,
) -> Result<(), StoreError> {
    let id = owner.session.as_str();
    let integer = |name: &str| match row.as_ref()?.get(name) {
        Some(Value::Integer(number)) => Some(*number),
        _ => None,
    };
    let head = integer("head_seq").and_then(|head| u64::try_from(head).ok()).unwrap_or(0);
    let updated = integer("updated_ms").unwrap_or(0);
    let new = Owner { session: owner.session, key: records::add_key(to, owner.session)? };
    let copied = copy_records(from, to, (owner, new), head, updated)?;
    let (last, is_cut) = (copied.last, copied.damage.is_some());
    if let Some(what) = copied.damage {
        let first = last + 1;
        rescue.lose(match head.checked_sub(first) {
            Some(_) => format!("session {id}: records {first} to {head} ({what})"),
            None => format!("session {id}: records from {first} on ({what})"),
        });
    }
    let has_row = row.is_some();
    let mut values = row.unwrap_or_default();
    let has_run = !matches!(values.get("run_id"), None | Some(Value::Null));
    let mut set = |name: &str, value: Value| drop(values.insert(name.to_owned(), value));
    let number = |n: u64| Value::Integer(i64::try_from(n).unwrap_or(i64::MAX));
    set("id", Value::Text(id.to_owned()));
    set("head_seq", number(last));
    set("bytes", number(copied.bytes as u64));
    set("packed_seq", Value::Integer(0));
    set("history_seq", Value::Integer(0));
    if !has_row {
        rescue.lose(format!("session {id}: its title and settings"));
        set("title", Value::Text(String::new()));
        set("created_ms", Value::Integer(copied.first_ts.unwrap_or(copied.last_ts)));
        set("updated_ms", Value::Integer(copied.last_ts));
    } else if is_cut && has_run {
        // The next start appends the end of the run whose records are cut.
        set("state", Value::Text(RunState::Running.as_str().to_owned()));
    }
    insert_rows(to, "session", &[values])?;
    let exists = "SELECT 1 FROM session WHERE id = ?1";
    if to.prepare_cached(exists)?.exists([id])? {
        rescue.sessions += 1;
        rescue.records += last;
        return Ok(());
    }
    rescue.lose(format!("session {id}: its row is damaged"));
    to.execute("UPDATE session_key SET id = NULL WHERE id = ?1", params![id])?;
    Ok(())
}

fn copy_blobs(from: &Connection, to: &Connection, rescue: &mut Rescue) -> Result<(), StoreError> {
    for row in rows_of(from, "blob", &["rowid"], "1", rescue)? {
        let (Some(Value::Text(hash)), Some(Value::Blob(content))) =
            (row.get("sha256"), row.get("content"))
        else {
            continue;
        };
        if !is_intact(hash, content) {
            rescue.lose(format!("blob {}", hash.escape_default()));
            continue;
        }
        let mut insert = to.prepare_cached("INSERT OR IGNORE INTO blob VALUES (?1, ?2, ?3)")?;
        rescue.blobs += insert.execute(params![hash, content.len(), content])? as u64;
    }
    Ok(())
}
