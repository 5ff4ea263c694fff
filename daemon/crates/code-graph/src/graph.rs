//! The edges between files of a tree.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::import::{Import, ImportKind};
use crate::resolve::{FileId, Resolved, Resolver, SourceFile};

/// An edge from a file to one that it imports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    pub from: FileId,
    pub to: FileId,
    /// First line of the statement, counted from 1; 0 for a type of the same package.
    pub line: u32,
    pub kind: ImportKind,
    pub is_type_only: bool,
}

/// The direction in which edges are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the files that a file imports.
    Dependencies,
    /// To the files that import a file.
    Dependents,
}

/// Edges between two groups of files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    pub from: String,
    pub to: String,
    pub edges: usize,
}

/// True for `export { a }`, which names no other file.
fn is_own_export(import: &Import) -> bool {
    import.kind == ImportKind::ReExport && import.specifier.is_empty()
}

/// All edges of a tree, sorted in both directions.
#[derive(Debug, Default)]
pub struct ImportGraph {
    edges: Vec<Edge>,
    /// Indexes of `edges` in the order of their targets.
    by_target: Vec<u32>,
    /// Files and lines that import each external package.
    externals: BTreeMap<String, Vec<(FileId, u32)>>,
    unresolved: Vec<(FileId, u32)>,
}

impl ImportGraph {
    /// Resolves the imports of all files. `id` gives the number of a path.
    pub fn build(
        resolver: &Resolver,
        sources: &[SourceFile<'_>],
        id: impl Fn(&str) -> Option<FileId>,
    ) -> Self {
        let mut graph = Self::default();
        for source in sources {
            let Some(from) = id(source.path) else { continue };
            graph.add(resolver, source, from);
        }
        graph.edges.sort_unstable();
        graph.edges.dedup();
        let mut by_target: Vec<u32> = (0..graph.edges.len() as u32).collect();
        by_target.sort_by_key(|at| {
            let edge = graph.edges[*at as usize];
            (edge.to, edge.from, edge.line)
        });
        graph.by_target = by_target;
        graph
    }

    fn add(&mut self, resolver: &Resolver, source: &SourceFile<'_>, from: FileId) {
        let SourceFile { path, lang, imports } = source;
        let mut targets = FxHashSet::default();
        for import in &imports.imports {
            match resolver.resolve(path, lang, imports, import) {
                Resolved::Files(files) => {
                    for to in files.into_iter().filter(|to| *to != from) {
                        let Import { line, kind, is_type_only, .. } = import;
                        // A path in code adds nothing to a statement.
                        if *kind == ImportKind::Path && targets.contains(&to) {
                            continue;
                        }
                        targets.insert(to);
                        let (line, kind, is_type_only) = (*line, *kind, *is_type_only);
                        self.edges.push(Edge { from, to, line, kind, is_type_only });
                    }
                }
                Resolved::External(package) => {
                    self.externals.entry(package).or_default().push((from, import.line));
                }
                Resolved::Unresolved if import.kind == ImportKind::Path => {}
                Resolved::Unresolved if is_own_export(import) => {}
                Resolved::Unresolved => self.unresolved.push((from, import.line)),
            }
        }
        for to in resolver.same_package(path, lang, imports) {
            if to != from && targets.insert(to) {
                let kind = ImportKind::SamePackage;
                self.edges.push(Edge { from, to, line: 0, kind, is_type_only: false });
            }
        }
    }

    /// All edges, sorted by importer.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Edges from `file` to its imports.
    pub fn dependencies(&self, file: FileId) -> &[Edge] {
        let first = self.edges.partition_point(|e| e.from < file);
        let count = self.edges[first..].partition_point(|e| e.from == file);
        &self.edges[first..first + count]
    }

    /// Edges to `file` from its importers.
    pub fn dependents(&self, file: FileId) -> impl Iterator<Item = &Edge> {
        let to = |at: &u32| self.edges[*at as usize].to;
        let first = self.by_target.partition_point(|at| to(at) < file);
        let rest = self.by_target[first..].iter().take_while(move |at| to(at) == file);
        rest.map(|at| &self.edges[*at as usize])
    }

    /// Files that are reached from `file` in at most `depth` steps, with their number of steps, in
    /// the order in which they are reached; at most `limit`.
    pub fn reachable(
        &self,
        file: FileId,
        direction: Direction,
        depth: u32,
        limit: usize,
    ) -> Vec<(FileId, u32)> {
        let mut seen = FxHashSet::from_iter([file]);
        let mut found: Vec<(FileId, u32)> = Vec::new();
        let mut next = 0;
        let mut current = (file, 0);
        loop {
            let (at, steps) = current;
            if steps < depth {
                let mut visit = |to: FileId| {
                    if found.len() < limit && seen.insert(to) {
                        found.push((to, steps + 1));
                    }
                };
                match direction {
                    Direction::Dependencies => {
                        self.dependencies(at).iter().for_each(|e| visit(e.to));
                    }
                    Direction::Dependents => self.dependents(at).for_each(|e| visit(e.from)),
                }
            }
            let Some(following) = found.get(next) else { return found };
            current = *following;
            next += 1;
        }
    }

    /// Edges between groups of files, such as folders, most edges first.
    pub fn groups<'a>(&self, group: impl Fn(FileId) -> &'a str) -> Vec<Group> {
        let mut counts: FxHashMap<(&str, &str), usize> = FxHashMap::default();
        let mut pairs: Vec<(FileId, FileId)> = self.edges.iter().map(|e| (e.from, e.to)).collect();
        pairs.dedup();
        for (from, to) in pairs {
            let (from, to) = (group(from), group(to));
            if from != to {
                *counts.entry((from, to)).or_default() += 1;
            }
        }
        let owned = |((from, to), edges): ((&str, &str), usize)| Group {
            from: from.to_owned(),
            to: to.to_owned(),
            edges,
        };
        let mut groups: Vec<Group> = counts.into_iter().map(owned).collect();
        groups.sort_by(|a, b| b.edges.cmp(&a.edges).then_with(|| a.cmp(b)));
        groups
    }

    /// External packages with the files and lines that import them.
    pub fn externals(&self) -> &BTreeMap<String, Vec<(FileId, u32)>> {
        &self.externals
    }

    /// Imports that name a file of the tree which does not exist.
    pub fn unresolved(&self) -> &[(FileId, u32)] {
        &self.unresolved
    }
}
