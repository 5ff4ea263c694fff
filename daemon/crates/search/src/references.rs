//! References to a definition, found on demand: files with the identifier are parsed, and scopes and
//! imports decide. Impact: the files that import another.

use std::sync::Arc;
use std::time::Instant;

use cairn_code_graph::{
    Confidence, Direction, FileId, Reference, ReferenceKind, Target, Views, is_default_export,
    references_in, subclasses_in,
};
use cairn_index_base::CancelFlag;
use cairn_protocol::error::Failure;
use cairn_protocol::search::{
    ImpactAnswer, ImpactItem, ImpactParams, NameMatch, ReferenceConfidence, ReferenceItem,
    ReferenceUse, ReferencesAnswer, ReferencesParams, SearchFilters, SymbolItem, SymbolRef,
    SymbolsParams,
};
use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;
use cairn_symbols::extract::ident_hash;
use cairn_workspace::language_of;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::filters::{check_k, invalid};
use crate::graph::Resolved;
use crate::indexes::Indexes;
use crate::root_index::{RootIndex, symbols_are_complete};
use crate::search::no_file;
use crate::symbols::relative;

/// Maximum results of a request.
pub const MAX_K: u32 = 2_000;
/// Maximum files that are parsed for one request.
const MAX_FILES: usize = 2_000;
/// Maximum bytes of a file that is parsed.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// Maximum characters of a line in an answer.
const MAX_LINE: usize = 300;
/// Levels of subclasses that are followed.
const SUBCLASS_ROUNDS: usize = 3;
/// Other definitions of the name in an answer.
pub const MAX_OTHERS: usize = 20;

impl Indexes {
    /// `search.references`: uses of a definition, by scope and imports.
    ///
    /// # Errors
    /// `invalid_params`, `root_not_found`, `no_roots`, `path_not_found`, `cancelled`, or a storage
    /// failure.
    pub fn references(
        &self,
        params: &ReferencesParams,
        flag: &CancelFlag,
    ) -> Result<ReferencesAnswer, Failure> {
        let started = Instant::now();
        check_k(params.k, MAX_K)?;
        let index = self.single(params.root.as_deref())?;
        let indexes = [Arc::clone(&index)];
        let complete = symbols_are_complete(&indexes);
        let mut definitions = self.definitions(&index, params)?;
        let definition = definitions.remove(0);
        definitions.truncate(MAX_OTHERS);
        let conn = index.readers.get()?;
        let resolved = index.resolved(&conn)?;
        let is_unique = definitions.is_empty();
        let (mut items, is_cut) = find(&index, &conn, &resolved, &definition, is_unique, flag)?;
        items.retain(|item| params.kinds.is_empty() || params.kinds.contains(&item.kind));
        let truncated = is_cut || items.len() > params.k as usize;
        items.truncate(params.k as usize);
        Ok(ReferencesAnswer {
            definition,
            others: definitions,
            items,
            truncated,
            complete: complete && symbols_are_complete(&indexes),
            took_us: started.elapsed().as_micros() as u64,
        })
    }

    /// `search.impact`: files that import a file, directly or by others.
    ///
    /// # Errors
    /// `invalid_params`, `root_not_found`, `no_roots`, `path_not_found`, or a storage failure.
    pub fn impact(&self, params: &ImpactParams) -> Result<ImpactAnswer, Failure> {
        let started = Instant::now();
        check_k(params.k, MAX_K)?;
        if !(1..=20).contains(&params.depth) {
            return Err(invalid("depth", "must be 1 to 20"));
        }
        let index = self.single(params.root.as_deref())?;
        let complete = symbols_are_complete(&[Arc::clone(&index)]);
        let conn = index.readers.get()?;
        let resolved = index.resolved(&conn)?;
        let view = index.root.view();
        let path = relative(&index, &params.path).ok_or_else(|| no_file(&params.path))?;
        let file = resolved.id(path).filter(|_| view.shows(path));
        let file = file.ok_or_else(|| no_file(&params.path))?;
        let most = params.k as usize + 1;
        let found = resolved.graph.reachable(file, Direction::Dependents, params.depth, most);
        let mut items: Vec<ImpactItem> = found
            .into_iter()
            .map(|(id, steps)| ImpactItem { path: resolved.path(id).to_owned(), steps })
            .filter(|item| view.shows(&item.path))
            .collect();
        let truncated = items.len() > params.k as usize;
        items.truncate(params.k as usize);
        Ok(ImpactAnswer {
            path: path.to_owned(),
            items,
            truncated,
            complete,
            took_us: started.elapsed().as_micros() as u64,
        })
    }

    /// The root of a request: the named one, or the only one.
    pub(crate) fn single(&self, root: Option<&str>) -> Result<Arc<RootIndex>, Failure> {
        let named: Vec<String> = root.map(str::to_owned).into_iter().collect();
        let mut indexes = self.named(&named)?;
        if indexes.len() > 1 {
            return Err(invalid("root", "several roots are declared: name one"));
        }
        indexes.pop().ok_or_else(|| invalid("root", "no root is declared"))
    }

    /// The definitions that a request names, the requested one first.
    pub(crate) fn definitions(
        &self,
        index: &RootIndex,
        params: &ReferencesParams,
    ) -> Result<Vec<SymbolItem>, Failure> {
        let filters =
            SearchFilters { roots: vec![index.root.id.to_string()], ..SearchFilters::default() };
        let outline = |path: &String| {
            let request = SymbolsParams {
                path: Some(path.clone()),
                k: MAX_K,
                filters: Some(filters.clone()),
                query: None,
                matching: None,
            };
            self.symbols(&request).map(|answer| answer.items)
        };
        let in_file = match (&params.path, params.line) {
            (Some(path), line) => {
                let is_meant = |item: &SymbolItem| {
                    line.is_none_or(|line| (item.start_line..=item.end_line).contains(&line))
                        && params.symbol.as_ref().is_none_or(|name| is_named(item, name))
                };
                let mut inner: Vec<SymbolItem> =
                    outline(path)?.into_iter().filter(is_meant).collect();
                // The innermost definition around a line, else the first of the name.
                inner.sort_by_key(|item| if line.is_some() { !item.start_line } else { 0 });
                let missing = match line {
                    Some(_) => invalid("line", "no definition is at this line"),
                    None => invalid("path", "the file has no definition of this name"),
                };
                Some(inner.into_iter().next().ok_or(missing)?)
            }
            (None, _) => None,
        };
        if params.symbol.is_none() && params.line.is_none() {
            return Err(invalid("symbol", "specify a name, or a path and a line"));
        }
        let name = match (&in_file, &params.symbol) {
            (Some(item), _) => item.name.clone(),
            (None, Some(symbol)) => symbol.clone(),
            (None, None) => return Err(invalid("path", "specify the file of the line")),
        };
        let request = SymbolsParams {
            query: Some(name.clone()),
            matching: Some(NameMatch::Exact),
            k: 200,
            filters: Some(filters.clone()),
            path: None,
        };
        let mut all = self.symbols(&request)?.items;
        all.retain(|item| !["module", "section"].contains(&item.kind.as_str()));
        if let Some(first) = in_file {
            all.retain(|item| item.path != first.path || item.start_line != first.start_line);
            all.insert(0, first);
        }
        if all.is_empty() {
            return Err(invalid("symbol", format!("there is no definition of '{name}'")));
        }
        Ok(all)
    }
}

/// True if a definition has this name, which may have its container before it.
fn is_named(item: &SymbolItem, name: &str) -> bool {
    match name.rsplit_once(['.', ':', '#']) {
        Some((container, last)) => {
            let container = container.trim_end_matches(':');
            item.name == last && item.container.as_deref() == Some(container)
        }
        None => item.name == name,
    }
}

impl Resolved {
    /// The number of a file in the graph.
    pub fn id(&self, path: &str) -> Option<FileId> {
        let at = self.table.files.binary_search_by(|file| (*file.path).cmp(path)).ok()?;
        FileId::try_from(at).ok()
    }

    pub fn path(&self, id: FileId) -> &str {
        &self.table.files[id as usize].path
    }
}

/// A file that may refer to the definition, with its text.
pub struct Candidate {
    pub id: FileId,
    pub lang: &'static str,
    pub text: Vec<u8>,
}

/// Finds the references; true if there were too many candidate files.
pub fn find(
    index: &RootIndex,
    conn: &Connection,
    resolved: &Resolved,
    definition: &SymbolItem,
    is_unique: bool,
    flag: &CancelFlag,
) -> Result<(Vec<ReferenceItem>, bool), Failure> {
    let home = resolved.id(&definition.path).ok_or_else(|| no_file(&definition.path))?;
    let mut texts: FxHashMap<FileId, Candidate> = FxHashMap::default();
    let Some(source) = candidate(index, resolved, home) else {
        return Err(no_file(&definition.path));
    };
    let mut target = Target {
        name: definition.name.clone(),
        kind: definition.kind.clone(),
        container: definition.container.clone(),
        path: definition.path.clone(),
        line: definition.start_line,
        is_default: false,
        is_unique,
    };
    target.is_default = is_default_export(&source.text, target.importable());
    texts.insert(home, source);
    let imports = |id: FileId| resolved.imports.get(&id).map(|(lang, imports)| (*lang, imports));
    let mut views = Views::new(&resolved.resolver, &resolved.graph, &imports, &target, home);
    let mut searched: FxHashSet<FileId> = FxHashSet::default();
    for _ in 0..if target.is_member() { SUBCLASS_ROUNDS } else { 0 } {
        let seen: Vec<FileId> = views.files().chain([home]).take(MAX_FILES).collect();
        for id in seen.into_iter().filter(|id| searched.insert(*id)) {
            flag.check()?;
            let view = views.of(id, resolved.path(id));
            let Some(other) = candidate(index, resolved, id) else { continue };
            let path = resolved.path(id);
            let classes = subclasses_in(other.lang, path, &other.text, &target, &view, &index.stop);
            for class in classes {
                views.add_subclass(&resolved.resolver, &resolved.graph, &imports, (id, &class));
            }
        }
    }
    let mut names: FxHashSet<u32> = FxHashSet::from_iter([ident_hash(target.name.as_bytes())]);
    if target.kind == "constructor" || target.name == "constructor" {
        names.extend(target.container.iter().map(|class| ident_hash(class.as_bytes())));
    }
    for id in views.files() {
        let view = views.of(id, resolved.path(id));
        names.extend(view.names.iter().map(|name| ident_hash(name.as_bytes())));
    }
    let mut files = files_with(conn, resolved, &names)?;
    files.retain(|id| index.root.view().shows(resolved.path(*id)));
    let is_cut = files.len() > MAX_FILES;
    files.truncate(MAX_FILES);
    let found: Vec<Vec<ReferenceItem>> = index.opts.helpers.install(|| {
        let search = |id: &FileId| -> Result<Vec<ReferenceItem>, Failure> {
            flag.check()?;
            let Some(file) = candidate(index, resolved, *id) else { return Ok(Vec::new()) };
            let path = resolved.path(file.id);
            let view = views.of(file.id, path);
            let found = references_in(file.lang, path, &file.text, &target, &view, &index.stop);
            Ok(items(path, &file.text, &found.unwrap_or_default()))
        };
        files.par_iter().map(search).collect::<Result<_, _>>()
    })?;
    Ok((found.into_iter().flatten().collect(), is_cut))
}

/// Reads a file as it is on the disk.
pub fn candidate(index: &RootIndex, resolved: &Resolved, id: FileId) -> Option<Candidate> {
    let path = resolved.path(id);
    let lang = language_of(path)?;
    let text = index.root.read_file(path, MAX_BYTES).ok()??;
    Some(Candidate { id, lang, text })
}

/// The files that contain one of the identifiers, in order of their paths.
fn files_with(
    conn: &Connection,
    resolved: &Resolved,
    names: &FxHashSet<u32>,
) -> Result<Vec<FileId>, StoreError> {
    let positions: FxHashMap<u32, FileId> =
        resolved.table.files.iter().zip(0..).map(|(file, at)| (file.id, at)).collect();
    let mut all = conn.prepare_cached("SELECT file_id, idents FROM file_ref")?;
    let mut rows = all.query([])?;
    let mut files = Vec::new();
    while let Some(row) = rows.next()? {
        let Some(at) = positions.get(&row.get(0)?) else { continue };
        let idents = row.get_ref(1)?.as_blob().unwrap_or(&[]).as_chunks::<4>().0;
        let has =
            |name: &u32| idents.binary_search_by_key(name, |b| u32::from_le_bytes(*b)).is_ok();
        if names.iter().any(has) {
            files.push(*at);
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn items(path: &str, text: &[u8], found: &[Reference]) -> Vec<ReferenceItem> {
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let line_text = |line: u32| {
        let line = lines.get(line.saturating_sub(1) as usize).copied().unwrap_or(&[]);
        String::from_utf8_lossy(line).trim().chars().take(MAX_LINE).collect()
    };
    let item = |reference: &Reference| ReferenceItem {
        path: path.to_owned(),
        line: reference.line,
        column: reference.column,
        text: line_text(reference.line),
        kind: match reference.kind {
            ReferenceKind::Definition => ReferenceUse::Definition,
            ReferenceKind::Import => ReferenceUse::Import,
            ReferenceKind::Call => ReferenceUse::Call,
            ReferenceKind::Type => ReferenceUse::Type,
            ReferenceKind::Write => ReferenceUse::Write,
            ReferenceKind::Read => ReferenceUse::Read,
        },
        confidence: match reference.confidence {
            Confidence::Exact => ReferenceConfidence::Exact,
            Confidence::Likely => ReferenceConfidence::Likely,
            Confidence::Ambiguous => ReferenceConfidence::Ambiguous,
        },
        enclosing: reference.enclosing.as_ref().map(|enclosing| SymbolRef {
            name: enclosing.name.clone(),
            kind: enclosing.kind.to_owned(),
        }),
    };
    let mut items: Vec<ReferenceItem> = found.iter().map(item).collect();
    // A name and its alias are one import.
    let is_import = |item: &ReferenceItem| item.kind == ReferenceUse::Import;
    items.dedup_by(|a, b| is_import(a) && is_import(b) && a.line == b.line);
    items
}
