//! `search.map`: reads definitions and references from the index and builds a map.

use std::sync::Arc;
use std::time::Instant;

use cairn_protocol::error::Failure;
use cairn_protocol::map::{MAX_BUDGET, MAX_FILES, MapAnswer, MapDefinition, MapFile, MapParams};
use cairn_protocol::search::{SearchFilters, SearchParams};
use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;
use cairn_workspace::View;
use rustc_hash::{FxHashMap, FxHashSet};

use super::centrality::{Links, MIN_NAME, selectivity};
use super::query::relative;
use super::repo_map::{Definition, Focus, Listed, MapEntry, Source, repo_map, text};
use super::signature::signature;
use crate::filters::{check_text, invalid};
use crate::indexes::Indexes;
use cairn_index_base::FileTable;

use crate::root_index::{RootIndex, symbols_are_complete};
use crate::search::no_file;
use cairn_index_base::CancelFlag;
use cairn_symbols::extract::ident_hash;

/// Maximum definitions that one map considers, over all roots.
const MAX_DEFINITIONS: usize = 400_000;
/// Maximum references that one map considers.
const MAX_REFERENCES: usize = 4_000_000;
/// Number of search results for the query that become the focus.
const SEARCH_RESULTS: u32 = 8;
/// Minimum score of those results, relative to the best one.
const MIN_SCORE_SHARE: f64 = 0.6;
/// Minimum selectivity of names in the query that become the focus.
const MIN_SELECTIVITY: f64 = 0.1;
/// Maximum number of names in the focus.
const MAX_NAMES: usize = 64;
/// Rows between two checks for cancellation.
const CHECK_INTERVAL: usize = 4096;

/// A definition; its name is a range of [`MapInput::names`].
struct Row {
    file: u32,
    name: (u32, u32),
    kind: u16,
    line: u32,
}

/// Definitions and references of all roots.
#[derive(Default)]
struct MapInput {
    /// File table of each root, in the order of the roots.
    tables: Vec<Arc<FileTable>>,
    names: String,
    kinds: Vec<String>,
    /// Definitions ordered by file.
    rows: Vec<Row>,
    /// Hashes of the names that files can refer to.
    referable: FxHashSet<u32>,
    /// The hashes that each file refers to.
    references: Vec<Vec<u32>>,
    reference_count: usize,
    /// True if a limit was reached.
    is_truncated: bool,
}

/// Owned names and paths of the focus.
#[derive(Default)]
struct FocusNames {
    files: Vec<String>,
    names: Vec<String>,
}

impl Indexes {
    /// `search.map`: the files and definitions that the rest of the code, or the focus, refers to
    /// most.
    ///
    /// # Errors
    /// `invalid_params`, `root_not_found`, `no_roots`, `path_not_found`, `cancelled`, or a storage
    /// failure.
    pub fn map(&self, params: &MapParams, cancel: &CancelFlag) -> Result<MapAnswer, Failure> {
        let started = Instant::now();
        check(params)?;
        let indexes = self.named(&params.roots)?;
        let was_complete = symbols_are_complete(&indexes);
        let mut input = MapInput::default();
        let mut all_positions = Vec::with_capacity(indexes.len());
        for index in &indexes {
            let conn = index.readers.get()?;
            let positions = input.add_files(index.files(&conn)?);
            input.add_definitions(&conn, &positions, cancel)?;
            all_positions.push(positions);
        }
        // All definitions are read before references, because references may cross roots.
        for (index, positions) in indexes.iter().zip(&all_positions) {
            input.add_references(&*index.readers.get()?, positions, cancel)?;
        }
        let focus = self.focus(params, &indexes, &input.tables, cancel)?;
        cancel.check()?;
        let mut links = Links::default();
        for index in &indexes {
            links.add(&*index.resolved(&*index.readers.get()?)?);
        }
        let sources = input.sources();
        let files: Vec<&str> = focus.files.iter().map(String::as_str).collect();
        let names: Vec<&str> = focus.names.iter().map(String::as_str).collect();
        let root_of = |source| indexes.get(input.root_of(source));
        let views: Vec<View> = indexes.iter().map(|index| index.root.view()).collect();
        let shows =
            |source, path: &str| views.get(input.root_of(source)).is_some_and(|v| v.shows(path));
        let focus = Focus { files: &files, names: &names };
        let mut texts: FxHashMap<usize, Option<String>> = FxHashMap::default();
        let sign = |source: usize, definition: &Definition<'_>| {
            let text = texts.entry(source).or_insert_with(|| {
                let path = sources.get(source)?.path;
                let bytes = root_of(source).filter(|_| shows(source, path))?.read_file(path)?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            });
            signature(text.as_deref()?, definition.line, definition.name, definition.kind)
        };
        let mut map = repo_map(&sources, &focus, &links, params.budget as usize, sign);
        map.retain(|m| {
            root_of(m.source).is_some_and(|l| l.root.stat(m.path).is_ok())
                && shows(m.source, m.path)
        });
        let text = text(&map);
        let complete = was_complete && !input.is_truncated && symbols_are_complete(&indexes);
        Ok(MapAnswer {
            tokens: text.len().div_ceil(4) as u32,
            text,
            files: map.iter().filter_map(|m| Some(map_file(m, root_of(m.source)?))).collect(),
            complete,
            took_us: started.elapsed().as_micros() as u64,
            restricted: views.iter().any(|view| !view.is_complete()),
        })
    }

    /// The focus: the named files, and the results of a search for the query.
    fn focus(
        &self,
        params: &MapParams,
        indexes: &[Arc<RootIndex>],
        tables: &[Arc<FileTable>],
        cancel: &CancelFlag,
    ) -> Result<FocusNames, Failure> {
        let mut focus = FocusNames::default();
        for file in &params.files {
            let found = indexes.iter().zip(tables).find_map(|(index, table)| {
                let path = relative(index, file)?;
                table.files.binary_search_by(|f| (*f.path).cmp(path)).ok().map(|_| path)
            });
            focus.files.push(found.ok_or_else(|| no_file(file))?.to_owned());
        }
        if let Some(query) = &params.query {
            let identifier = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
            let words: Vec<&str> =
                query.split(|c| !identifier(c)).filter(|w| !w.is_empty()).collect();
            // Plain words of a sentence are not names.
            let selective =
                words.iter().filter(|w| words.len() == 1 || selectivity(w) >= MIN_SELECTIVITY);
            focus.names.extend(selective.map(|w| (*w).to_owned()));
            let results = self.hybrid(&search(query, &params.roots), cancel, &|_| {})?.items;
            let best = results.first().map_or(0.0, |item| item.score);
            for item in results.into_iter().filter(|item| item.score >= best * MIN_SCORE_SHARE) {
                focus.names.extend(
                    item.symbol.map(|s| s.name).filter(|name| selectivity(name) >= MIN_SELECTIVITY),
                );
                focus.files.push(item.path);
            }
        }
        focus.names.truncate(MAX_NAMES);
        Ok(focus)
    }
}

fn check(params: &MapParams) -> Result<(), Failure> {
    if !(1..=MAX_BUDGET).contains(&params.budget) {
        return Err(invalid(
            "budget",
            format_args!("{} is not between 1 and {MAX_BUDGET}", params.budget),
        ));
    }
    if params.files.len() > MAX_FILES {
        return Err(invalid(
            "files",
            format_args!("has {} entries; the limit is {MAX_FILES}", params.files.len()),
        ));
    }
    params.query.as_deref().map_or(Ok(()), |query| check_text("query", query))
}

fn search(query: &str, roots: &[String]) -> SearchParams {
    let filters = SearchFilters { roots: roots.to_vec(), ..SearchFilters::default() };
    SearchParams { k: SEARCH_RESULTS, filters: Some(filters), ..SearchParams::new(query) }
}

fn map_file(mapped: &MapEntry<'_>, index: &Arc<RootIndex>) -> MapFile {
    let definition = |listed: &Listed<'_>| MapDefinition {
        name: listed.definition.name.to_owned(),
        kind: listed.definition.kind.to_owned(),
        line: listed.definition.line,
        signature: listed.signature.clone(),
    };
    MapFile {
        path: mapped.path.to_owned(),
        root: index.root.id.clone(),
        score: mapped.score,
        definitions: mapped.definitions.iter().map(definition).collect(),
    }
}

impl MapInput {
    /// Adds the files of a root and returns the positions of their ids.
    fn add_files(&mut self, table: Arc<FileTable>) -> FxHashMap<u32, u32> {
        let first = self.references.len() as u32;
        let positions = table.files.iter().zip(first..).map(|(f, i)| (f.id, i)).collect();
        self.references.resize_with(self.references.len() + table.files.len(), Vec::new);
        self.tables.push(table);
        positions
    }

    fn add_definitions(
        &mut self,
        conn: &Connection,
        positions: &FxHashMap<u32, u32>,
        cancel: &CancelFlag,
    ) -> Result<(), Failure> {
        let mut all = conn
            .prepare_cached(
                "SELECT file_id, name, kind, start_line FROM symbol ORDER BY file_id, start_line",
            )
            .map_err(StoreError::from)?;
        let mut rows = all.query([]).map_err(StoreError::from)?;
        while let Some(row) = rows.next().map_err(StoreError::from)? {
            let read = || -> cairn_store::rusqlite::Result<_> {
                let (name, kind) = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
                Ok((row.get::<_, u32>(0)?, name, kind, row.get::<_, u32>(3)?))
            };
            let (file, name, kind, line) = read().map_err(StoreError::from)?;
            let Some(file) = positions.get(&file).copied() else { continue };
            if self.rows.len() >= MAX_DEFINITIONS {
                self.is_truncated = true;
                break;
            }
            if self.rows.len().is_multiple_of(CHECK_INTERVAL) {
                cancel.check()?;
            }
            if name.len() >= MIN_NAME && !matches!(kind, "module" | "section") {
                self.referable.insert(ident_hash(name.as_bytes()));
            }
            let from = self.names.len() as u32;
            self.names.push_str(name);
            let kind = self.kind(kind);
            self.rows.push(Row { file, name: (from, self.names.len() as u32), kind, line });
        }
        Ok(())
    }

    fn kind(&mut self, kind: &str) -> u16 {
        let known = self.kinds.iter().position(|k| k == kind);
        let at = known.unwrap_or_else(|| {
            self.kinds.push(kind.to_owned());
            self.kinds.len() - 1
        });
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    /// Reads the references to known definitions and ignores other identifiers.
    fn add_references(
        &mut self,
        conn: &Connection,
        positions: &FxHashMap<u32, u32>,
        cancel: &CancelFlag,
    ) -> Result<(), Failure> {
        let mut all = conn
            .prepare_cached("SELECT file_id, idents FROM file_ref")
            .map_err(StoreError::from)?;
        let mut rows = all.query([]).map_err(StoreError::from)?;
        while let Some(row) = rows.next().map_err(StoreError::from)? {
            let Some(file) = positions.get(&row.get(0).map_err(StoreError::from)?) else {
                continue;
            };
            let blob = row.get_ref(1).map_err(StoreError::from)?.as_blob().unwrap_or(&[]);
            let hashes = blob.as_chunks::<4>().0.iter().map(|hash| u32::from_le_bytes(*hash));
            let referred: Vec<u32> = hashes.filter(|hash| self.referable.contains(hash)).collect();
            if self.reference_count + referred.len() > MAX_REFERENCES {
                self.is_truncated = true;
                break;
            }
            self.reference_count += referred.len();
            self.references[*file as usize] = referred;
            cancel.check()?;
        }
        Ok(())
    }

    /// The position of a source's root.
    fn root_of(&self, source: usize) -> usize {
        let mut last = 0;
        let ends = self.tables.iter().map(|t| {
            last += t.files.len();
            last
        });
        ends.into_iter().position(|end| source < end).unwrap_or(self.tables.len())
    }

    /// All files with their definitions and references, ordered by root and table.
    fn sources(&self) -> Vec<Source<'_>> {
        let paths = self.tables.iter().flat_map(|t| &t.files).map(|f| &*f.path);
        let mut sources: Vec<Source<'_>> = paths
            .zip(&self.references)
            .map(|(path, references)| Source { path, definitions: Vec::new(), references })
            .collect();
        for row in &self.rows {
            let name = self.names.get(row.name.0 as usize..row.name.1 as usize).unwrap_or_default();
            let kind = self.kinds.get(usize::from(row.kind)).map_or("", String::as_str);
            if let Some(source) = sources.get_mut(row.file as usize) {
                source.definitions.push(Definition { name, kind, line: row.line });
            }
        }
        sources
    }
}
