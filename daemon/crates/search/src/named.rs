//! The files and windows of a root that a query names: definitions of its names, and files with its
//! paths.

use cairn_index_base::FileTable;
use cairn_protocol::error::Failure;
use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::parsed::{ParsedQuery, QueryKind, QueryName, QueryPath};
use crate::query::QueryRoot;

/// Maximum definitions that are read for a name, and those up to which a name tells its file.
const MAX_ROWS: usize = 200;
const FEW_ROWS: usize = 12;
/// Maximum definitions of a name that become candidates, for a query that is a name and for others.
const NAMED_CANDIDATES: usize = 40;
const FEW_CANDIDATES: usize = 6;
/// Maximum files that a path of the query may mean.
const MAX_FILES: usize = 4;

/// A file that a query names, with how clearly it does: 0 for not at all, 1 for one name or path of
/// full weight that occurs once.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NamedFile {
    pub by_names: f32,
    pub by_path: f32,
}

/// The files that a query names, and the windows in them that it means.
#[derive(Debug, Default)]
pub struct Named {
    pub files: FxHashMap<u32, NamedFile>,
    /// Ids of windows, without duplicates.
    pub chunks: Vec<i64>,
}

/// A definition with one of the names.
struct Definition {
    file: u32,
    start_line: u32,
    is_same_case: bool,
    in_container: bool,
}

impl Named {
    /// Looks up the names and paths of a query.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn find(root: &QueryRoot, query: &ParsedQuery) -> Result<Self, Failure> {
        let mut named = Self::default();
        if query.names.is_empty() && query.paths.is_empty() {
            return Ok(named);
        }
        let conn = root.index.readers.get()?;
        let is_allowed = |file: u32| root.files.as_ref().is_none_or(|files| files.contains(&file));
        let most = match query.kind {
            QueryKind::Identifier => NAMED_CANDIDATES,
            _ => FEW_CANDIDATES,
        };
        for name in &query.names {
            let mut all = definitions(&conn, name)?;
            all.retain(|d| is_allowed(d.file) && root.table.get(d.file).is_some());
            named.add_definitions(&conn, name, &all, most)?;
        }
        for path in &query.paths {
            let files = files_with(&root.table, path);
            let weight = 1.0 / files.len().max(1) as f32;
            for file in files.into_iter().filter(|file| is_allowed(*file)) {
                let known = named.files.entry(file).or_default();
                known.by_path = (known.by_path + weight).min(1.0);
                named.add_chunks(chunks_at(&conn, file, path.line.unwrap_or(1))?);
            }
        }
        Ok(named)
    }

    fn add_definitions(
        &mut self,
        conn: &Connection,
        name: &QueryName,
        all: &[Definition],
        most: usize,
    ) -> Result<(), Failure> {
        // The exact case and the container decide; without either, all are equal.
        let best = all.iter().map(Definition::rank).max().unwrap_or(0);
        let chosen: Vec<&Definition> = all.iter().filter(|d| d.rank() == best).collect();
        if chosen.len() <= FEW_ROWS {
            let files: FxHashSet<u32> = chosen.iter().map(|d| d.file).collect();
            let weight = name.weight / (files.len() as f32).sqrt();
            for file in files {
                self.files.entry(file).or_default().by_names += weight;
            }
        }
        let mut candidates: Vec<&Definition> = all.iter().collect();
        candidates.sort_by_key(|d| std::cmp::Reverse(d.rank()));
        for definition in candidates.into_iter().take(most) {
            self.add_chunks(chunks_at(conn, definition.file, definition.start_line)?);
        }
        Ok(())
    }

    fn add_chunks(&mut self, chunks: Vec<i64>) {
        for chunk in chunks {
            if !self.chunks.contains(&chunk) {
                self.chunks.push(chunk);
            }
        }
    }
}

impl Definition {
    fn rank(&self) -> u8 {
        2 * u8::from(self.is_same_case) + u8::from(self.in_container)
    }
}

fn definitions(conn: &Connection, name: &QueryName) -> Result<Vec<Definition>, StoreError> {
    let mut get = conn.prepare_cached(
        "SELECT file_id, start_line, name, container FROM symbol WHERE folded = ? LIMIT ?",
    )?;
    let rows = get.query_map((&name.folded, MAX_ROWS as i64), |row| {
        let container: Option<String> = row.get(3)?;
        let last = container.as_deref().and_then(|c| c.rsplit(['.', ':', '#', '\\']).next());
        Ok(Definition {
            file: row.get(0)?,
            start_line: row.get(1)?,
            is_same_case: row.get_ref(2)?.as_str().is_ok_and(|n| n == name.name),
            in_container: last.is_some() && last == name.container.as_deref(),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The windows of a file that contain a line.
fn chunks_at(conn: &Connection, file: u32, line: u32) -> Result<Vec<i64>, StoreError> {
    let mut get = conn.prepare_cached(
        "SELECT id FROM chunk WHERE file_id = ?1 AND start_line <= ?2 AND end_line >= ?2",
    )?;
    let rows = get.query_map((file, line), |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The files whose path ends like the path of the query: those that share most of its last
/// components. None if too many share only the file name.
fn files_with(table: &FileTable, path: &QueryPath) -> Vec<u32> {
    let components = |path: &str| path.split('/').rev().map(str::to_owned).collect::<Vec<_>>();
    let parts_of_path = components(&path.path);
    let Some(name) = parts_of_path.first() else { return Vec::new() };
    let (mut best, mut files) = (1, Vec::new());
    for file in table.files.iter().filter(|file| file.path.ends_with(name.as_str())) {
        let parts = file.path.split('/').rev();
        let shared = parts.zip(&parts_of_path).take_while(|(a, b)| a == b).count();
        if shared > best {
            (best, files) = (shared, vec![file.id]);
        } else if shared == best {
            files.push(file.id);
        }
    }
    if files.len() > MAX_FILES { Vec::new() } else { files }
}
