//! `search.map`: what the index knows of definitions and references, made into a map.

use std::sync::Arc;
use std::time::Instant;

use cairn_protocol::error::Failure;
use cairn_protocol::map::{MAX_BUDGET, MAX_FILES, MapAnswer, MapDefinition, MapFile, MapParams};
use cairn_protocol::search::{SearchFilters, SearchParams};
use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;
use cairn_workspace::View;
use rustc_hash::{FxHashMap, FxHashSet};

use super::central::{MIN_NAME, selectivity};
use super::extract::ident_hash;
use super::map::{Definition, Focus, Mapped, Source, repo_map, text};
use super::query::relative;
use crate::filters::{check_text, invalid};
use crate::indexes::Indexes;
use crate::root_index::{FileTable, RootIndex, symbols_are_complete};
use crate::search::no_file;
use crate::sync::CancelFlag;

/// Definitions that one map weighs at most, of all roots together.
const MAX_DEFINITIONS: usize = 400_000;
/// References that one map weighs at most.
const MAX_REFERENCES: usize = 4_000_000;
/// Results of a search for the query that the map is drawn around.
const FOUND: u32 = 8;
/// Share of the best result's score that the others must have.
const ALIKE: f64 = 0.6;
/// How telling a name must be, so that all definitions of it are what was asked for.
const NAMING: f64 = 0.1;
/// Names that one map is drawn around.
const MAX_NAMES: usize = 64;
/// Rows between two looks at the flag that cancels.
const ROWS: usize = 4096;

/// A definition, its name a part of [`Material::names`].
struct Row {
    file: u32,
    name: (u32, u32),
    kind: u16,
    line: u32,
}

/// What the indexes say, of all roots together.
#[derive(Default)]
struct Material {
    /// Files of each root, in the order of the roots.
    tables: Vec<Arc<FileTable>>,
    names: String,
    kinds: Vec<String>,
    /// By file.
    rows: Vec<Row>,
    /// Hashes of names that a file can refer to.
    known: FxHashSet<u32>,
    /// Those that each file has, by file.
    references: Vec<Vec<u32>>,
    counted: usize,
    /// Something had no room.
    cut: bool,
}

/// What a map is drawn around.
#[derive(Default)]
struct FocusNames {
    files: Vec<String>,
    names: Vec<String>,
}

impl Indexes {
    /// `search.map`: the files and definitions that the rest, or what is worked on, refers to most.
    ///
    /// # Errors
    /// `invalid_params`, `root_not_found`, `no_roots`, `path_not_found`, `cancelled`, or a storage failure.
    pub fn map(&self, params: &MapParams, cancel: &CancelFlag) -> Result<MapAnswer, Failure> {
        let started = Instant::now();
        check(params)?;
        let indexes = self.named(&params.roots)?;
        let was_complete = symbols_are_complete(&indexes);
        let mut material = Material::default();
        let mut positions = Vec::with_capacity(indexes.len());
        for index in &indexes {
            let conn = index.readers.get()?;
            let place = material.add_files(index.files(&conn)?);
            material.add_definitions(&conn, &place, cancel)?;
            positions.push(place);
        }
        // What is defined in any root is known before references are read.
        for (index, place) in indexes.iter().zip(&positions) {
            material.add_references(&*index.readers.get()?, place, cancel)?;
        }
        let focus = self.focus(params, &indexes, &material.tables, cancel)?;
        cancel.check()?;
        let sources = material.sources();
        let files: Vec<&str> = focus.files.iter().map(String::as_str).collect();
        let names: Vec<&str> = focus.names.iter().map(String::as_str).collect();
        let mut map = repo_map(&sources, &Focus { files: &files, names: &names }, params.budget as usize);
        let root_of = |source| indexes.get(material.root_of(source));
        let views: Vec<View> = indexes.iter().map(|index| index.root.view()).collect();
        let shows = |source, path: &str| views.get(material.root_of(source)).is_some_and(|v| v.shows(path));
        map.retain(|m| {
            root_of(m.source).is_some_and(|l| l.root.stat(m.path).is_ok()) && shows(m.source, m.path)
        });
        let text = text(&map);
        let complete = was_complete && !material.cut && symbols_are_complete(&indexes);
        Ok(MapAnswer {
            tokens: text.len().div_ceil(4) as u32,
            text,
            files: map.iter().filter_map(|m| Some(told(m, root_of(m.source)?))).collect(),
            complete,
            took_us: started.elapsed().as_micros() as u64,
            restricted: views.iter().any(|view| !view.is_complete()),
        })
    }

    /// The files that were named, and what a search for the query finds.
    fn focus(
        &self,
        params: &MapParams,
        indexes: &[Arc<RootIndex>],
        tables: &[Arc<FileTable>],
        cancel: &CancelFlag,
    ) -> Result<FocusNames, Failure> {
        let mut focus = FocusNames::default();
        for file in &params.files {
            let known = indexes.iter().zip(tables).find_map(|(index, table)| {
                let path = relative(index, file)?;
                table.files.binary_search_by(|f| (*f.path).cmp(path)).ok().map(|_| path)
            });
            focus.files.push(known.ok_or_else(|| no_file(file))?.to_owned());
        }
        if let Some(query) = &params.query {
            let identifier = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
            let words: Vec<&str> = query.split(|c| !identifier(c)).filter(|w| !w.is_empty()).collect();
            // A plain word of a sentence is no name.
            let named = words.iter().filter(|w| words.len() == 1 || selectivity(w) >= NAMING);
            focus.names.extend(named.map(|w| (*w).to_owned()));
            let found = self.hybrid(&search(query, &params.roots), cancel, &|_| {})?.items;
            let best = found.first().map_or(0.0, |item| item.score);
            for item in found.into_iter().filter(|item| item.score >= best * ALIKE) {
                focus.names.extend(item.symbol.map(|s| s.name).filter(|name| selectivity(name) >= NAMING));
                focus.files.push(item.path);
            }
        }
        focus.names.truncate(MAX_NAMES);
        Ok(focus)
    }
}

fn check(params: &MapParams) -> Result<(), Failure> {
    if !(1..=MAX_BUDGET).contains(&params.budget) {
        return Err(invalid("budget", format_args!("{} is not within 1 to {MAX_BUDGET}", params.budget)));
    }
    if params.files.len() > MAX_FILES {
        return Err(invalid("files", format_args!("{} entries, at most {MAX_FILES}", params.files.len())));
    }
    params.query.as_deref().map_or(Ok(()), |query| check_text("query", query))
}

fn search(query: &str, roots: &[String]) -> SearchParams {
    let filters = SearchFilters { roots: roots.to_vec(), ..SearchFilters::default() };
    SearchParams { k: FOUND, filters: Some(filters), ..SearchParams::new(query) }
}

fn told(mapped: &Mapped<'_>, index: &Arc<RootIndex>) -> MapFile {
    let definition =
        |d: &Definition<'_>| MapDefinition { name: d.name.to_owned(), kind: d.kind.to_owned(), line: d.line };
    MapFile {
        path: mapped.path.to_owned(),
        root: index.root.id.clone(),
        score: mapped.score,
        definitions: mapped.definitions.iter().map(definition).collect(),
    }
}

impl Material {
    /// Adds the files of a root; the places of their ids.
    fn add_files(&mut self, table: Arc<FileTable>) -> FxHashMap<u32, u32> {
        let first = self.references.len() as u32;
        let place = table.files.iter().zip(first..).map(|(f, i)| (f.id, i)).collect();
        self.references.resize_with(self.references.len() + table.files.len(), Vec::new);
        self.tables.push(table);
        place
    }

    fn add_definitions(
        &mut self,
        conn: &Connection,
        place: &FxHashMap<u32, u32>,
        cancel: &CancelFlag,
    ) -> Result<(), Failure> {
        let mut all = conn
            .prepare_cached("SELECT file_id, name, kind, start_line FROM symbol ORDER BY file_id, start_line")
            .map_err(StoreError::from)?;
        let mut rows = all.query([]).map_err(StoreError::from)?;
        while let Some(row) = rows.next().map_err(StoreError::from)? {
            let read = || -> cairn_store::rusqlite::Result<_> {
                let (name, kind) = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
                Ok((row.get::<_, u32>(0)?, name, kind, row.get::<_, u32>(3)?))
            };
            let (file, name, kind, line) = read().map_err(StoreError::from)?;
            let Some(file) = place.get(&file).copied() else { continue };
            if self.rows.len() >= MAX_DEFINITIONS {
                self.cut = true;
                break;
            }
            if self.rows.len().is_multiple_of(ROWS) {
                cancel.check()?;
            }
            if name.len() >= MIN_NAME && !matches!(kind, "module" | "section") {
                self.known.insert(ident_hash(name.as_bytes()));
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

    /// Reads who refers to what is defined; other identifiers take no room.
    fn add_references(
        &mut self,
        conn: &Connection,
        place: &FxHashMap<u32, u32>,
        cancel: &CancelFlag,
    ) -> Result<(), Failure> {
        let mut all =
            conn.prepare_cached("SELECT file_id, idents FROM file_ref").map_err(StoreError::from)?;
        let mut rows = all.query([]).map_err(StoreError::from)?;
        while let Some(row) = rows.next().map_err(StoreError::from)? {
            let Some(file) = place.get(&row.get(0).map_err(StoreError::from)?) else { continue };
            let blob = row.get_ref(1).map_err(StoreError::from)?.as_blob().unwrap_or(&[]);
            let hashes = blob.as_chunks::<4>().0.iter().map(|hash| u32::from_le_bytes(*hash));
            let referred: Vec<u32> = hashes.filter(|hash| self.known.contains(hash)).collect();
            if self.counted + referred.len() > MAX_REFERENCES {
                self.cut = true;
                break;
            }
            self.counted += referred.len();
            self.references[*file as usize] = referred;
            cancel.check()?;
        }
        Ok(())
    }

    /// Which root a source is of.
    fn root_of(&self, source: usize) -> usize {
        let mut last = 0;
        let ends = self.tables.iter().map(|t| {
            last += t.files.len();
            last
        });
        ends.into_iter().position(|end| source < end).unwrap_or(self.tables.len())
    }

    /// Every file with what it defines and refers to, in the order of the roots and tables.
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
