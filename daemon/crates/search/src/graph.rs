//! The graph of imports between the files of a root, resolved when it is first requested after a
//! change.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use cairn_code_graph::{
    FileId, FileImports, ImportGraph, ImportKind, Resolver, SourceFile, SourceTree,
};
use cairn_index_base::{FileTable, lock};
use cairn_protocol::error::Failure;
use cairn_protocol::explore::{CodeGraph, GraphEdge, GraphFile, GraphGroup};
use cairn_protocol::id::RootId;
use cairn_store::StoreError;
use cairn_store::rusqlite::Connection;
use cairn_workspace::{Root, language_of};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::KnownFlows;
use crate::indexes::Indexes;
use crate::rank::is_secondary;
use crate::root_index::RootIndex;

/// Maximum bytes of a manifest.
const MAX_MANIFEST: u64 = 4 * 1024 * 1024;
/// Maximum files of an answer.
const MAX_FILES: usize = 1_000;
/// Maximum packages from elsewhere of an answer.
const MAX_EXTERNALS: usize = 60;
/// Files of a package of Go whose pairs are considered: more are generated.
const MAX_PACKAGE: usize = 500;
/// Files that are listed for a group.
const KEY_FILES: usize = 6;

/// The resolved graph of a root with the state of the index that it was made from.
#[derive(Default)]
pub struct GraphCache(Mutex<Option<(Version, Arc<Resolved>)>>);

/// Counters of changes of the file table and of the imports.
type Version = (u64, u64);

/// The edges of a root; a file's id is its position in the table.
pub struct Resolved {
    pub table: Arc<FileTable>,
    pub graph: ImportGraph,
    pub resolver: Resolver,
    /// Language and imports of each file that has any.
    pub imports: FxHashMap<FileId, (&'static str, FileImports)>,
    pub flows: KnownFlows,
    /// Bytes and lines of each file.
    sizes: Vec<(u64, u64)>,
    is_secondary: Vec<bool>,
}

/// The files of a root as the resolver reads them.
struct Tree<'a> {
    root: &'a Root,
    paths: Vec<String>,
}

impl SourceTree for Tree<'_> {
    fn files(&self) -> &[String] {
        &self.paths
    }

    fn read(&self, path: &str) -> Option<String> {
        let bytes = self.root.read_file(path, MAX_MANIFEST).ok()??;
        String::from_utf8(bytes).ok()
    }
}

impl RootIndex {
    /// The graph of the current imports.
    pub fn resolved(&self, conn: &Connection) -> Result<Arc<Resolved>, StoreError> {
        let version = (
            self.files_version.load(Ordering::Acquire),
            self.imports_version.load(Ordering::Acquire),
        );
        if let Some((built_from, graph)) = &*lock(&self.graph.0)
            && *built_from == version
        {
            return Ok(Arc::clone(graph));
        }
        let graph = Arc::new(resolve(&self.root, self.files(conn)?, conn)?);
        *lock(&self.graph.0) = Some((version, Arc::clone(&graph)));
        Ok(graph)
    }
}

fn resolve(root: &Root, table: Arc<FileTable>, conn: &Connection) -> Result<Resolved, StoreError> {
    let positions: FxHashMap<u32, usize> =
        table.files.iter().enumerate().map(|(at, file)| (file.id, at)).collect();
    let mut imports: Vec<(usize, FileImports)> = Vec::new();
    let mut all = conn.prepare_cached("SELECT file_id, imports FROM file_import")?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let at = positions.get(&row.get(0)?);
        let stored = FileImports::decode(row.get_ref(1)?.as_blob().unwrap_or(&[]));
        if let (Some(at), Some(stored)) = (at, stored) {
            imports.push((*at, stored));
        }
    }
    let sources: Vec<SourceFile<'_>> = imports
        .iter()
        .filter_map(|(at, imports)| {
            let path = &table.files[*at].path;
            Some(SourceFile { path, lang: language_of(path)?, imports })
        })
        .collect();
    let paths = table.files.iter().map(|file| file.path.to_string()).collect();
    let resolver = Resolver::new(&Tree { root, paths }, &sources);
    let id = |path: &str| {
        let at = table.files.binary_search_by(|file| (*file.path).cmp(path));
        at.ok().and_then(|at| FileId::try_from(at).ok())
    };
    let graph = ImportGraph::build(&resolver, &sources, id);
    let imports = imports
        .into_iter()
        .filter_map(|(at, imports)| {
            let lang = language_of(&table.files[at].path)?;
            Some((FileId::try_from(at).ok()?, (lang, imports)))
        })
        .collect();
    Ok(Resolved {
        graph,
        resolver,
        imports,
        flows: KnownFlows::default(),
        sizes: sizes(conn, &positions, table.files.len())?,
        is_secondary: table.files.iter().map(|file| is_secondary(&file.path)).collect(),
        table,
    })
}

/// Bytes and lines of the files.
fn sizes(
    conn: &Connection,
    positions: &FxHashMap<u32, usize>,
    count: usize,
) -> Result<Vec<(u64, u64)>, StoreError> {
    let mut sizes = vec![(0, 0); count];
    let mut bytes = conn.prepare_cached("SELECT id, size_bytes FROM file")?;
    let mut rows = bytes.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(at) = positions.get(&row.get(0)?) {
            sizes[*at].0 = row.get(1)?;
        }
    }
    let mut lines =
        conn.prepare_cached("SELECT file_id, max(end_line) FROM chunk GROUP BY file_id")?;
    let mut rows = lines.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(at) = positions.get(&row.get(0)?) {
            sizes[*at].1 = row.get(1)?;
        }
    }
    Ok(sizes)
}

impl Indexes {
    /// The imports of a root: its most imported files, and the imports between `groups`, which are
    /// folders and files. `shows` limits the files.
    ///
    /// # Errors
    /// `root_not_found`, or a storage failure.
    pub fn code_graph(
        &self,
        root: &RootId,
        groups: &[String],
        k: usize,
        shows: &dyn Fn(&str) -> bool,
    ) -> Result<CodeGraph, Failure> {
        let index = self.index(root)?;
        let conn = index.readers.get()?;
        let resolved = index.resolved(&conn)?;
        let view = index.root.view();
        let visible: Vec<bool> = resolved
            .table
            .files
            .iter()
            .map(|file| view.shows(&file.path) && shows(&file.path))
            .collect();
        Ok(CodeGraph {
            files: resolved.files(&visible, k.min(MAX_FILES)),
            groups: resolved.groups(groups, &visible),
            externals: resolved.externals(&visible),
        })
    }
}

impl Resolved {
    /// Size of a file in bytes.
    pub fn bytes(&self, file: FileId) -> u64 {
        self.sizes[file as usize].0
    }

    /// Pairs of a visible file and one that it imports, each once.
    fn pairs<'a>(&'a self, visible: &'a [bool]) -> impl Iterator<Item = (usize, usize)> + 'a {
        let mut last = None;
        self.graph.edges().iter().filter_map(move |edge| {
            let pair = (edge.from as usize, edge.to as usize);
            let is_new = last.replace(pair) != Some(pair);
            (is_new && visible[pair.0] && visible[pair.1]).then_some(pair)
        })
    }

    /// Pairs of a file and one whose definitions it can name: its imports, what those export again,
    /// and in Go the files of its package.
    pub fn seen(&self) -> impl Iterator<Item = (FileId, FileId)> + '_ {
        let direct = self.graph.edges().iter().map(|edge| (edge.from, edge.to));
        let exported = self.graph.edges().iter().flat_map(|edge| {
            let is_root = self.is_root_module(edge.to);
            let again = self.graph.dependencies(edge.to).iter();
            let again = again.filter(move |e| is_root || e.kind == ImportKind::ReExport);
            again.map(|e| (edge.from, e.to))
        });
        let mut folders: FxHashMap<&str, Vec<FileId>> = FxHashMap::default();
        for (file, (lang, _)) in &self.imports {
            if *lang == "go" {
                let path: &str = &self.table.files[*file as usize].path;
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                folders.entry(folder).or_default().push(*file);
            }
        }
        let packages = folders.into_values().filter(|files| files.len() <= MAX_PACKAGE);
        let same = packages.flat_map(|files| {
            let pairs = files
                .clone()
                .into_iter()
                .flat_map(move |from| files.clone().into_iter().map(move |to| (from, to)));
            pairs.collect::<Vec<_>>()
        });
        direct.chain(exported).chain(same)
    }

    /// True for a module that stands for its folder, whose imports others take from it.
    fn is_root_module(&self, file: FileId) -> bool {
        let path: &str = &self.table.files[file as usize].path;
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.split('.').next().unwrap_or(name);
        ["__init__", "index", "mod", "lib"].contains(&stem)
    }

    /// True if the imports of a file say what it sees of others. In C they name headers, and the
    /// definitions are elsewhere.
    pub fn has_scope(&self, at: usize) -> bool {
        let lang = FileId::try_from(at).ok().and_then(|file| self.imports.get(&file));
        lang.is_some_and(|(lang, _)| !["c", "cpp", "objc"].contains(lang))
    }

    fn files(&self, visible: &[bool], k: usize) -> Vec<GraphFile> {
        let mut counts: FxHashMap<usize, (u32, u32)> = FxHashMap::default();
        for (from, to) in self.pairs(visible) {
            counts.entry(from).or_default().1 += 1;
            let target = counts.entry(to).or_default();
            target.0 += u32::from(!self.is_secondary[from]);
        }
        // Files that no import connects are files as well.
        for at in self.imports.keys().map(|at| *at as usize).filter(|at| visible[*at]) {
            counts.entry(at).or_default();
        }
        let mut files: Vec<(usize, (u32, u32))> = counts.into_iter().collect();
        let size = |at: usize| (!self.is_secondary[at], self.sizes[at].0);
        files.sort_by(|a, b| {
            b.1.cmp(&a.1).then_with(|| size(b.0).cmp(&size(a.0))).then(a.0.cmp(&b.0))
        });
        files.truncate(k);
        let file = |(at, (dependents, dependencies)): (usize, (u32, u32))| GraphFile {
            path: self.table.files[at].path.to_string(),
            bytes: self.sizes[at].0,
            dependents,
            dependencies,
        };
        files.into_iter().map(file).collect()
    }

    fn groups(&self, groups: &[String], visible: &[bool]) -> Vec<GraphGroup> {
        let by_path = groups_by_path(groups);
        let member: Vec<Option<usize>> =
            self.table.files.iter().map(|file| group_of(&by_path, &file.path)).collect();
        let mut answer: Vec<GraphGroup> = groups
            .iter()
            .map(|path| GraphGroup { path: path.clone(), ..GraphGroup::default() })
            .collect();
        for (at, group) in member.iter().enumerate().filter(|(at, _)| visible[*at]) {
            let has_code = language_of(&self.table.files[at].path).is_some_and(is_program_text);
            if let Some(group) = group.filter(|_| has_code) {
                answer[group].files += 1;
                answer[group].lines += self.sizes[at].1;
            }
        }
        let mut between: BTreeMap<(usize, usize), u32> = BTreeMap::new();
        let mut dependents: FxHashMap<usize, u32> = FxHashMap::default();
        for (from, to) in self.pairs(visible) {
            if self.is_secondary[from] && !self.is_secondary[to] {
                continue;
            }
            *dependents.entry(to).or_default() += 1;
            if let (Some(a), Some(b)) = (member[from], member[to])
                && a != b
            {
                *between.entry((a, b)).or_default() += 1;
            }
        }
        for ((from, to), imports) in between {
            answer[from].depends_on.push(GraphEdge { name: groups[to].clone(), imports });
        }
        let mut best: Vec<(usize, u32)> = dependents.into_iter().collect();
        best.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        for (at, _) in best {
            if let Some(group) = member[at]
                && answer[group].key_files.len() < KEY_FILES
            {
                answer[group].key_files.push(self.table.files[at].path.to_string());
            }
        }
        for group in &mut answer {
            group.depends_on.sort_by(|a, b| b.imports.cmp(&a.imports).then(a.name.cmp(&b.name)));
        }
        answer
    }

    fn externals(&self, visible: &[bool]) -> Vec<GraphEdge> {
        let mut all: Vec<GraphEdge> = self
            .graph
            .externals()
            .iter()
            .filter_map(|(name, uses)| {
                let files: FxHashSet<FileId> = uses
                    .iter()
                    .map(|(file, _)| *file)
                    .filter(|file| visible[*file as usize] && !self.is_secondary[*file as usize])
                    .collect();
                let imports = u32::try_from(files.len()).unwrap_or(u32::MAX);
                (imports > 0).then(|| GraphEdge { name: name.clone(), imports })
            })
            .collect();
        all.sort_by(|a, b| b.imports.cmp(&a.imports).then(a.name.cmp(&b.name)));
        all.truncate(MAX_EXTERNALS);
        all
    }
}

/// True for a language of programs, not of text or data.
fn is_program_text(lang: &str) -> bool {
    const TEXTS: &[&str] = &[
        "css",
        "csv",
        "diff",
        "dockerfile",
        "go_mod",
        "html",
        "ini",
        "json",
        "less",
        "log",
        "markdown",
        "rst",
        "scss",
        "svg",
        "text",
        "toml",
        "xml",
        "yaml",
    ];
    !TEXTS.contains(&lang)
}

/// The position of each group by its path, which is empty for the root; of equal groups the first.
pub fn groups_by_path(groups: &[String]) -> FxHashMap<&str, usize> {
    let mut by_path = FxHashMap::default();
    for (at, group) in groups.iter().enumerate() {
        let path = group.strip_prefix("./").unwrap_or(group).trim_end_matches('/');
        by_path.entry(if path == "." { "" } else { path }).or_insert(at);
    }
    by_path
}

/// The group with the longest path that contains a file; a file beside a folder of its name, such
/// as `query.rs` of `query/`, belongs to that folder.
pub fn group_of(by_path: &FxHashMap<&str, usize>, path: &str) -> Option<usize> {
    let folders = path.rmatch_indices('/').map(|(end, _)| &path[..end]);
    let is_plain = |stem: &&str| !stem.rsplit('/').next().unwrap_or(stem).contains('.');
    let stem = path.rsplit_once('.').map(|(stem, _)| stem).filter(is_plain);
    [path]
        .into_iter()
        .chain(stem)
        .chain(folders)
        .chain([""])
        .find_map(|path| by_path.get(path).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_group_contains_a_file() {
        let groups =
            [".", "src", "src/", "./src/a/", "src/a/x.rs", "b/../c", ""].map(str::to_owned);
        let by_path = groups_by_path(&groups);
        for (path, want) in [
            ("x.rs", 0),
            ("srcs/x.rs", 0),
            ("src/x.rs", 1),
            ("src/a/y.rs", 3),
            ("src/a/x.rs", 4),
            ("src/a/x.rs.bak", 3),
            ("src/a.rs", 3),
            ("src/ab.rs", 1),
            ("c/x.rs", 0),
        ] {
            assert_eq!(group_of(&by_path, path), Some(want), "{path}");
        }
        assert_eq!(group_of(&groups_by_path(&groups[1..4]), "x.rs"), None);
        assert_eq!(group_of(&groups_by_path(&[]), "x.rs"), None);
    }
}
