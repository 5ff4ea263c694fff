//! Queries for definitions by name, and outlines of files.

use std::time::Instant;

use cairn_protocol::error::Failure;
use cairn_protocol::id::RootId;
use cairn_protocol::search::{NameMatch, SymbolItem, SymbolsAnswer, SymbolsParams};
use cairn_store::StoreError;
use cairn_store::rusqlite::{Connection, OptionalExtension as _, Row, params};
use rustc_hash::FxHashSet;

use crate::filters::{Filters, check_k, check_text, invalid};
use crate::indexes::Indexes;
use cairn_index_base::FileTable;

use crate::root_index::{RootIndex, symbols_are_complete};
use crate::search::no_file;
use crate::symbols::names;

/// Maximum results of a query.
const MAX_K: u32 = 200;
/// Maximum entries of an outline.
const MAX_OUTLINE: u32 = 2_000;
/// Maximum names that are looked up for one query.
const MAX_NAMES: usize = 2_000;
/// Maximum rows read for one name before filtering.
const MAX_ROWS: usize = 5_000;

impl Indexes {
    /// `search.symbols`: definitions by name, or the outline of a file.
    ///
    /// # Errors
    /// `invalid_params`, `bad_pattern`, `root_not_found`, `no_roots`, `path_not_found`, or a
    /// storage failure.
    pub fn symbols(&self, params: &SymbolsParams) -> Result<SymbolsAnswer, Failure> {
        let started = Instant::now();
        let filters = Filters::new(params.filters.as_ref(), None)?;
        if filters.hidden {
            return Err(invalid("filters.hidden", "applies to searches and grep only"));
        }
        let indexes = self.named(&filters.roots)?;
        let was_complete = symbols_are_complete(&indexes);
        let query = params.query.as_deref().filter(|q| !q.is_empty());
        let mut items = match (query, params.path.as_deref()) {
            (None, None) => {
                return Err(invalid("query", "specify a name, or a path for its outline"));
            }
            (None, Some(path)) => {
                check_k(params.k, MAX_OUTLINE)?;
                outline(&indexes, path, &filters)?
            }
            (Some(query), path) => {
                check_text("query", query)?;
                check_k(params.k, MAX_K)?;
                find_by_name(&indexes, query, path, params, &filters)?
            }
        };
        items.truncate(params.k as usize);
        let complete =
            was_complete && symbols_are_complete(&indexes) && are_current(&indexes, &items)?;
        let restricted = indexes.iter().any(|index| !index.root.view().is_complete());
        Ok(SymbolsAnswer {
            items,
            complete,
            took_us: started.elapsed().as_micros() as u64,
            restricted,
        })
    }
}

/// True if the files of an answer are unchanged on disk. This detects changes that the watch has
/// not reported yet.
fn are_current(
    indexes: &[std::sync::Arc<RootIndex>],
    items: &[SymbolItem],
) -> Result<bool, Failure> {
    let files: FxHashSet<(&RootId, &str)> =
        items.iter().map(|item| (&item.root, item.path.as_str())).collect();
    for (root, path) in files {
        let Some(index) = indexes.iter().find(|index| index.root.id == *root) else {
            return Ok(false);
        };
        let conn = index.readers.get()?;
        let indexed = conn
            .prepare_cached("SELECT size_bytes, mtime_ns, inode FROM file WHERE path = ?1")
            .and_then(|mut file| {
                file.query_row([path], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?))).optional()
            })
            .map_err(StoreError::from)?;
        let on_disk = index
            .root
            .stat(path)
            .ok()
            .map(|stat| (stat.size as i64, stat.mtime_ns, stat.inode as i64));
        let indexed: Option<(i64, i64, i64)> = indexed;
        if on_disk.is_none() || on_disk != indexed {
            return Ok(false);
        }
    }
    Ok(true)
}

const COLUMNS: &str = "SELECT name, kind, container, file_id, start_line, end_line FROM symbol";

/// `path` relative to a root, if it is inside the root.
pub fn relative<'a>(index: &RootIndex, path: &'a str) -> Option<&'a str> {
    if !path.starts_with('/') {
        return Some(path.trim_start_matches("./"));
    }
    std::path::Path::new(path).strip_prefix(&index.root.path).ok()?.to_str()
}

fn outline(
    indexes: &[std::sync::Arc<RootIndex>],
    path: &str,
    filters: &Filters,
) -> Result<Vec<SymbolItem>, Failure> {
    for index in indexes {
        let Some(rel) = relative(index, path) else { continue };
        let conn = index.readers.get()?;
        let table = index.files(&conn)?;
        let Some(file) = table.files.iter().find(|f| &*f.path == rel) else { continue };
        let is_hidden = !index.root.view().shows(rel) || index.root.is_other_name_of_hidden(rel);
        if index.root.stat(rel).is_err() || is_hidden {
            continue;
        }
        let mut all = of_file(&conn, index, &table, file.id)?;
        all.retain(|s| filters.kinds.is_empty() || filters.kinds.contains(&s.kind));
        return Ok(all);
    }
    Err(no_file(path))
}

/// A query for a name, with an optional container.
struct NameQuery<'q> {
    full_name: &'q str,
    name: &'q str,
    container: Option<&'q str>,
}

impl<'q> NameQuery<'q> {
    /// Parses `Type.method`, `Type#method`, `module::name()` and the like into container and name.
    fn new(query: &'q str) -> Self {
        let full_name = query.trim().trim_end_matches("()").trim_end_matches(['.', ':', '#', '\\']);
        match full_name.rsplit_once(['.', ':', '#', '\\']) {
            Some((before, name)) if !name.is_empty() => {
                let before = before.trim_end_matches([':', '.', '#', '\\']);
                Self {
                    full_name,
                    name,
                    container: Some(last_part(before)).filter(|c| !c.is_empty()),
                }
            }
            _ => Self { full_name, name: full_name, container: None },
        }
    }

    /// The factor for a definition's location: 1 in the requested container, less in a file of that
    /// name, 0.5 elsewhere.
    fn location_factor(&self, item: &SymbolItem) -> f64 {
        let Some(container) =
            self.container.filter(|_| !item.name.eq_ignore_ascii_case(self.full_name))
        else {
            return 1.0;
        };
        let is_equal = |a: &str| letters(a).eq(letters(container));
        let stem = || {
            let mut parts = item.path.rsplit('/');
            let file = parts.next().unwrap_or("").split('.').next().unwrap_or("");
            is_equal(file)
                || (matches!(file, "mod" | "lib" | "index" | "__init__")
                    && parts.next().is_some_and(is_equal))
        };
        match item.container.as_deref().map(last_part) {
            Some(c) if is_equal(c) => 1.0,
            _ if stem() => 0.9,
            Some(c) if c.to_lowercase().starts_with(&container.to_lowercase()) => 0.65,
            _ => 0.5,
        }
    }
}

/// The last name of `a::b`, `a.b` or `a\b`.
fn last_part(path: &str) -> &str {
    path.rsplit(['.', ':', '#', '\\']).next().unwrap_or(path)
}

/// The letters and digits of a name in lower case.
fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

/// Definitions by name, best first: by the score of the name ([`super::names`]) and the location of
/// the definition ([`NameQuery::location_factor`]); then code before tests and the like, types and
/// functions before constants, constants before headings, short names before long ones; then by
/// path and line.
fn find_by_name(
    indexes: &[std::sync::Arc<RootIndex>],
    query: &str,
    path: Option<&str>,
    params: &SymbolsParams,
    filters: &Filters,
) -> Result<Vec<SymbolItem>, Failure> {
    let name_query = NameQuery::new(query);
    let mut items = Vec::new();
    for index in indexes {
        let conn = index.readers.get()?;
        let table = index.files(&conn)?;
        let view = index.root.view();
        let is_match = |s: &SymbolItem| {
            let at = table.files.binary_search_by(|f| (*f.path).cmp(&s.path));
            at.is_ok_and(|i| filters.matches(&table.files[i]))
                && view.shows(&s.path)
                && (filters.kinds.is_empty() || filters.kinds.contains(&s.kind))
                && path.is_none_or(|p| relative(index, p) == Some(&s.path))
        };
        find_in_root(&conn, index, &table, &name_query, params, &is_match, &mut items)?;
    }
    Ok(best_first(items, &name_query, indexes, params.k as usize))
}

/// The best `k` definitions whose files exist.
fn best_first(
    items: Vec<SymbolItem>,
    name_query: &NameQuery<'_>,
    indexes: &[std::sync::Arc<RootIndex>],
    k: usize,
) -> Vec<SymbolItem> {
    // Sort keys are computed once per item; existence is only checked for items that may be
    // returned.
    let mut ranked: Vec<((bool, u8, usize), SymbolItem)> = items
        .into_iter()
        .map(|mut s| {
            s.score *= name_query.location_factor(&s);
            ((crate::rank::is_secondary(&s.path), kind_class(&s.kind), s.name.len()), s)
        })
        .collect();
    ranked.sort_unstable_by(|(a_rank, a), (b_rank, b)| {
        b.score
            .total_cmp(&a.score)
            .then(a_rank.cmp(b_rank))
            .then_with(|| a.path.cmp(&b.path))
            .then(a.start_line.cmp(&b.start_line))
            .then_with(|| (&a.root, &a.name).cmp(&(&b.root, &b.name)))
    });
    let mut seen = rustc_hash::FxHashMap::default();
    let mut exists = |s: &SymbolItem| {
        let index = indexes.iter().find(|l| l.root.id == s.root);
        let key = (s.root.clone(), s.path.clone());
        *seen.entry(key).or_insert_with(|| {
            let shows = |root: &cairn_workspace::Root| {
                root.stat(&s.path).is_ok() && !root.is_other_name_of_hidden(&s.path)
            };
            index.is_some_and(|l| shows(&l.root))
        })
    };
    ranked.into_iter().map(|(_, s)| s).filter(|s| exists(s)).take(k).collect()
}

/// The order of kinds among equal scores.
fn kind_class(kind: &str) -> u8 {
    match kind {
        "constant" | "variable" | "property" => 1,
        "section" => 2,
        _ => 0,
    }
}

/// The visible definitions of exactly this name, in order of the index.
pub fn by_name(
    conn: &Connection,
    index: &RootIndex,
    table: &FileTable,
    name: &str,
) -> Result<Vec<SymbolItem>, Failure> {
    let sql = format!("{COLUMNS} WHERE folded = ?1");
    let mut all = read(conn, index, table, &sql, params![name.to_lowercase()], |_| 1.0)?;
    let view = index.root.view();
    all.retain(|item| item.name == name && view.shows(&item.path));
    Ok(all)
}

/// The definitions of a file by their lines, outer ones first.
pub fn of_file(
    conn: &Connection,
    index: &RootIndex,
    table: &FileTable,
    file_id: u32,
) -> Result<Vec<SymbolItem>, Failure> {
    let sql = format!("{COLUMNS} WHERE file_id = ?1 ORDER BY start_line, end_line DESC");
    read(conn, index, table, &sql, params![file_id], |_| 1.0)
}

fn find_in_root(
    conn: &Connection,
    index: &RootIndex,
    table: &FileTable,
    name_query: &NameQuery<'_>,
    params: &SymbolsParams,
    is_match: &dyn Fn(&SymbolItem) -> bool,
    items: &mut Vec<SymbolItem>,
) -> Result<(), Failure> {
    let sql = format!("{COLUMNS} WHERE folded = ?1");
    let mut collect = |folded: &str, score: &dyn Fn(&str) -> f64| -> Result<usize, Failure> {
        let mut rows_found = read(conn, index, table, &sql, params![folded], score)?;
        rows_found.retain(|s| s.score > 0.0 && is_match(s));
        items.append(&mut rows_found);
        Ok(items.len())
    };
    let folded = name_query.name.to_lowercase();
    let only_exact = params.matching == Some(NameMatch::Exact);
    let equal = |query: &str, name: &str| match name == query {
        true => names::EQUAL,
        false if only_exact => 0.0,
        false => names::EQUAL_FOLDED,
    };
    // Equal names are read from the database itself, which has them as soon as their file is
    // indexed.
    collect(&folded, &|s| equal(name_query.name, s))?;
    if name_query.container.is_some() {
        collect(&name_query.full_name.to_lowercase(), &|s| equal(name_query.full_name, s))?;
    }
    if only_exact {
        return Ok(());
    }
    let names = index.names.get(conn, &index.progress())?;
    // With a container any of the names may match; without one, the best names suffice.
    let enough = params.k as usize * if name_query.container.is_some() { 8 } else { 1 };
    for (score, name) in names.find_similar(name_query.name, params.matching, MAX_NAMES) {
        if name != folded && collect(name, &|_| score)? >= enough {
            break;
        }
    }
    Ok(())
}

fn read(
    conn: &Connection,
    index: &RootIndex,
    table: &FileTable,
    sql: &str,
    values: impl cairn_store::rusqlite::Params,
    score: impl Fn(&str) -> f64,
) -> Result<Vec<SymbolItem>, Failure> {
    let mut get = conn.prepare_cached(sql).map_err(StoreError::from)?;
    let mut rows = get.query(values).map_err(StoreError::from)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next().map_err(StoreError::from)? {
        if let Some(item) = item(row, index, table, &score).map_err(StoreError::from)? {
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
    index: &RootIndex,
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
        root: index.root.id.clone(),
        start_line: row.get(4)?,
        end_line: row.get(5)?,
        lang: file.lang().unwrap_or("").to_owned(),
    }))
}
