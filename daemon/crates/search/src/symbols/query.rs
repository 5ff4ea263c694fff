//! Definitions by name and outlines of files.

use std::time::Instant;

use cairn_protocol::error::Failure;
use cairn_protocol::search::{NameMatch, SymbolItem, SymbolsAnswer, SymbolsParams};
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, Row, params};

use crate::filters::{Filters, check_k, check_text, invalid};
use crate::indexes::Indexes;
use crate::live::{FileTable, Live};
use crate::search::no_file;

/// Results of a query and entries of an outline at most.
const MAX_K: u32 = 200;
const MAX_OUTLINE: u32 = 2_000;
/// Likeness below which a name is not close.
const CLOSE: f64 = 0.75;
/// Rows read for one name before filters.
const MAX_ROWS: usize = 5_000;

impl Indexes {
    /// `search.symbols`: definitions by name, or the outline of a file.
    ///
    /// # Errors
    /// `invalid_params`, `bad_pattern`, `root_not_found`, `no_roots`, `path_not_found`, or a storage failure.
    pub fn symbols(&self, params: &SymbolsParams) -> Result<SymbolsAnswer, Failure> {
        let started = Instant::now();
        let filters = Filters::new(params.filters.as_ref(), None)?;
        let lives = self.named(&filters.roots)?;
        let query = params.query.as_deref().filter(|q| !q.is_empty());
        let mut items = match (query, params.path.as_deref()) {
            (None, None) => return Err(invalid("query", "give a name, or a path for its outline")),
            (None, Some(path)) => {
                check_k(params.k, MAX_OUTLINE)?;
                outline(&lives, path, &filters)?
            }
            (Some(query), path) => {
                check_text("query", query)?;
                check_k(params.k, MAX_K)?;
                by_name(&lives, query, path, params.matching, &filters)?
            }
        };
        items.truncate(params.k as usize);
        let complete = lives.iter().all(|l| {
            let p = l.now();
            p.state == Some(cairn_protocol::index::IndexState::Ready)
                && p.counts.symbol_files == p.counts.files
        });
        Ok(SymbolsAnswer { items, complete, took_us: started.elapsed().as_micros() as u64 })
    }
}

const COLUMNS: &str = "SELECT name, kind, container, file_id, start_line, end_line FROM symbol";

/// `path` relative to a root, when it lies in it.
fn relative<'a>(live: &Live, path: &'a str) -> Option<&'a str> {
    if !path.starts_with('/') {
        return Some(path.trim_start_matches("./"));
    }
    std::path::Path::new(path).strip_prefix(&live.root.path).ok()?.to_str()
}

fn outline(
    lives: &[std::sync::Arc<Live>],
    path: &str,
    filters: &Filters,
) -> Result<Vec<SymbolItem>, Failure> {
    for live in lives {
        let Some(rel) = relative(live, path) else { continue };
        let conn = live.readers.get()?;
        let table = live.files(&conn)?;
        let Some(file) = table.files.iter().find(|f| &*f.path == rel) else { continue };
        if live.root.stat(rel).is_err() {
            continue;
        }
        let sql = format!("{COLUMNS} WHERE file_id = ?1 ORDER BY start_line, end_line DESC");
        let mut all = read(&conn, live, &table, &sql, params![file.id], |_| 1.0)?;
        all.retain(|s| filters.kinds.is_empty() || filters.kinds.contains(&s.kind));
        return Ok(all);
    }
    Err(no_file(path))
}

fn by_name(
    lives: &[std::sync::Arc<Live>],
    query: &str,
    path: Option<&str>,
    matching: Option<NameMatch>,
    filters: &Filters,
) -> Result<Vec<SymbolItem>, Failure> {
    // `Type.method` and `module::name` name a container too.
    let (container, name) = match query.rsplit_once(['.', ':', '#']) {
        Some((before, name)) if !name.is_empty() => (Some(before.trim_end_matches(':')), name),
        _ => (None, query),
    };
    let mut items = Vec::new();
    for live in lives {
        let conn = live.readers.get()?;
        let table = live.files(&conn)?;
        let mut found = of_root(&conn, live, &table, name, matching)?;
        found.retain(|s| {
            let file = table.files.binary_search_by(|f| (*f.path).cmp(&s.path)).ok().map(|i| &table.files[i]);
            file.is_some_and(|f| filters.admits(f))
                && (filters.kinds.is_empty() || filters.kinds.contains(&s.kind))
                && path.is_none_or(|p| relative(live, p) == Some(&s.path))
        });
        items.append(&mut found);
    }
    if let Some(container) = container {
        let last = container.rsplit(['.', ':']).next().unwrap_or(container);
        for item in &mut items {
            let inside = item.container.as_deref().is_some_and(|c| c.eq_ignore_ascii_case(last));
            item.score *= if inside { 1.0 } else { 0.6 };
        }
    }
    items.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then_with(|| a.path.cmp(&b.path)).then(a.start_line.cmp(&b.start_line))
    });
    let mut seen = rustc_hash::FxHashMap::default();
    items.retain(|s| {
        let live = lives.iter().find(|l| l.root.id == s.root);
        *seen
            .entry((s.root.clone(), s.path.clone()))
            .or_insert_with(|| live.is_some_and(|l| l.root.stat(&s.path).is_ok()))
    });
    Ok(items)
}

fn of_root(
    conn: &Connection,
    live: &Live,
    table: &FileTable,
    name: &str,
    matching: Option<NameMatch>,
) -> Result<Vec<SymbolItem>, Failure> {
    let folded = name.to_lowercase();
    let exact = |s: &str| if s == name { 1.0 } else { 0.95 };
    let mut found = Vec::new();
    if matches!(matching, None | Some(NameMatch::Exact)) {
        found = read(conn, live, table, &format!("{COLUMNS} WHERE folded = ?1"), params![folded], exact)?;
        if matching.is_some() {
            found.retain(|s| s.name == name);
        }
    }
    if matches!(matching, None | Some(NameMatch::Prefix)) {
        let after = after_prefix(&folded);
        let from = if matching.is_none() { format!("{folded}\0") } else { folded.clone() };
        let share = |s: &str| 0.6 + 0.3 * folded.len() as f64 / s.len().max(1) as f64;
        let sql = format!("{COLUMNS} WHERE folded >= ?1 AND folded < ?2");
        found.extend(read(conn, live, table, &sql, params![from, after], |s| {
            if s.to_lowercase() == folded { exact(s) } else { share(s) }
        })?);
    }
    if matching == Some(NameMatch::Fuzzy) || (matching.is_none() && found.len() < 20) {
        let have: Vec<String> = found.iter().map(|s| s.name.to_lowercase()).collect();
        for (close, likeness) in close_names(conn, &folded)? {
            if matching.is_none() && have.contains(&close) {
                continue;
            }
            found.extend(read(
                conn,
                live,
                table,
                &format!("{COLUMNS} WHERE folded = ?1"),
                params![close],
                |_| likeness,
            )?);
        }
    }
    Ok(found)
}

/// The least text greater than all that begin with `prefix`.
fn after_prefix(prefix: &str) -> String {
    format!("{prefix}\u{10FFFF}")
}

/// Distinct names close to `name` with their likeness: a few edits away, or holding it or its parts in order.
fn close_names(conn: &Connection, name: &str) -> Result<Vec<(String, f64)>, StoreError> {
    let mut all = conn.prepare_cached("SELECT DISTINCT folded FROM symbol")?;
    let mut rows = all.query([])?;
    let mut close: Vec<(String, f64)> = Vec::new();
    let plain: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    while let Some(row) = rows.next()? {
        let candidate = row.get_ref(0)?.as_str().unwrap_or("");
        let longer = candidate.len().max(name.len()).max(1) as f64;
        let likeness = if candidate == name {
            1.0
        } else if name.len() >= 3 && candidate.contains(name) {
            0.5 + 0.3 * name.len() as f64 / longer
        } else if candidate.len().abs_diff(name.len()) <= 2 + name.len() / 4 {
            let same = candidate.chars().filter(|c| c.is_alphanumeric()).eq(plain.chars());
            let edits = if same { 0.9 } else { strsim::normalized_damerau_levenshtein(candidate, name) };
            if edits >= CLOSE { 0.9 * edits } else { continue }
        } else {
            continue;
        };
        close.push((candidate.to_owned(), likeness));
    }
    close.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    close.truncate(MAX_K as usize);
    Ok(close)
}

fn read(
    conn: &Connection,
    live: &Live,
    table: &FileTable,
    sql: &str,
    values: impl cairn_store::rusqlite::Params,
    score: impl Fn(&str) -> f64,
) -> Result<Vec<SymbolItem>, Failure> {
    let mut get = conn.prepare_cached(sql).map_err(StoreError::from)?;
    let mut rows = get.query(values).map_err(StoreError::from)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next().map_err(StoreError::from)? {
        if let Some(item) = item(row, live, table, &score).map_err(StoreError::from)? {
            all.push(item);
        }
        if all.len() >= MAX_ROWS {
            break;
        }
    }
    Ok(all)
}

fn item(
    row: &Row<'_>,
    live: &Live,
    table: &FileTable,
    score: impl Fn(&str) -> f64,
) -> cairn_store::rusqlite::Result<Option<SymbolItem>> {
    let Some(file) = table.get(row.get(3)?) else { return Ok(None) };
    let name: String = row.get(0)?;
    Ok(Some(SymbolItem {
        score: score(&name),
        name,
        kind: row.get(1)?,
        container: row.get(2)?,
        path: file.path.to_string(),
        root: live.root.id.clone(),
        start_line: row.get(4)?,
        end_line: row.get(5)?,
        lang: file.lang.unwrap_or("").to_owned(),
    }))
}
