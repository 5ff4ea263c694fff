//! The definitions that the calls of a file mean: identifiers are looked up by name, and scopes and
//! imports decide among the definitions.

use std::ops::RangeInclusive;

use cairn_code_graph::{
    Callee, Confidence, FileId, FileImports, Sight, Target, TargetUse, View, is_default_export,
    target_uses_in,
};
use cairn_protocol::error::Failure;
use cairn_protocol::search::SymbolItem;
use cairn_store::rusqlite::Connection;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::graph::Resolved;
use crate::references::{Candidate, candidate};
use crate::root_index::RootIndex;
use crate::symbols::by_name;

/// Most distinct identifiers of one file that are looked up.
const MAX_IDENTIFIERS: usize = 5_000;
/// Longest identifier that is looked up, in bytes.
const MAX_IDENTIFIER: usize = 200;
/// Most definitions of one name among which scopes and imports decide.
const MAX_NAMESAKES: usize = 40;
/// Most definitions among which the uses of one file are searched.
const MAX_TARGETS: usize = 1_500;
/// Most definitions of a use that may mean any of them.
const MAX_AMBIGUOUS: usize = 2;
/// Kinds of definitions that are called or passed on.
const CALLED: &[&str] = &[
    "actor", "class", "constant", "function", "macro", "method", "property", "record", "struct",
    "variable",
];

/// A use with the definitions that it may mean, which are one unless it is ambiguous.
pub struct Use {
    pub line: u32,
    pub is_call: bool,
    pub confidence: Confidence,
    /// Positions in [`Uses::definitions`] of what it may mean.
    pub definitions: Vec<usize>,
}

/// The uses in a file.
#[derive(Default)]
pub struct Uses {
    pub definitions: Vec<SymbolItem>,
    /// Uses in the order of the file.
    pub uses: Vec<Use>,
    /// Lines of the calls that lead to no definition, or to too many.
    pub unresolved: Vec<u32>,
}

/// Reads the uses of files of one root.
pub struct UseReader<'a> {
    pub index: &'a RootIndex,
    pub conn: &'a Connection,
    pub resolved: &'a Resolved,
    /// True if the only definition of a name may be meant by a member of unknown type.
    pub guesses: bool,
    texts: FxHashMap<FileId, Vec<u8>>,
}

impl<'a> UseReader<'a> {
    pub fn new(
        index: &'a RootIndex,
        conn: &'a Connection,
        resolved: &'a Resolved,
        guesses: bool,
    ) -> Self {
        Self { index, conn, resolved, guesses, texts: FxHashMap::default() }
    }

    /// The uses on the given lines of a file. `None` if the file has no grammar or is too large.
    ///
    /// # Errors
    /// A storage failure.
    pub fn read(
        &mut self,
        file: FileId,
        lines: RangeInclusive<u32>,
    ) -> Result<Option<Uses>, Failure> {
        let Some(source) = candidate(self.index, self.resolved, file) else { return Ok(None) };
        let imports =
            |id: FileId| self.resolved.imports.get(&id).map(|(lang, imports)| (*lang, imports));
        let sight = Sight::new(&self.resolved.resolver, &self.resolved.graph, &imports, file);
        let own = imports(file).map(|(_, imports)| imports);
        let mut definitions = Vec::new();
        let mut targets: Vec<(Target, View)> = Vec::new();
        for name in names(&source.text, &lines, own) {
            let mut all = by_name(self.conn, self.index, &self.resolved.table, &name)?;
            let is_unique = all.len() == 1 && self.guesses;
            all.retain(|item| self.is_seen(item, &source, &sight));
            if all.len() > MAX_NAMESAKES {
                // Of very many, only members of a type that the file names can be distinguished.
                all.retain(|item| is_container_named(item, &source.text));
            }
            for item in all.into_iter().take(MAX_NAMESAKES) {
                let Some(home) = self.resolved.id(&item.path) else { continue };
                let target = self.target(&item, home, source.lang, is_unique);
                let view = sight.view(&target, home);
                if (view.is_related() || target.is_member()) && targets.len() < MAX_TARGETS {
                    targets.push((target, view));
                    definitions.push(item);
                }
            }
        }
        let path = self.resolved.path(file);
        let stop = &self.index.stop;
        let found = target_uses_in(source.lang, path, &source.text, lines, targets, stop);
        let Some((calls, found)) = found else { return Ok(None) };
        Ok(Some(decided(definitions, &calls, &found)))
    }

    /// True for a definition that a call in the file can mean.
    fn is_seen(&self, item: &SymbolItem, source: &Candidate, sight: &Sight<'_, '_>) -> bool {
        if !CALLED.contains(&item.kind.as_str()) || family(&item.lang) != family(source.lang) {
            return false;
        }
        let folder = |path: &str| path.rsplit_once('/').map_or("", |(f, _)| f).to_owned();
        let is_included = || self.resolved.id(&item.path).is_some_and(|id| sight.includes(id));
        // Globals of C, and members of one package, need no import.
        family(source.lang) == "c"
            || is_included()
            || folder(&item.path) == folder(self.resolved.path(source.id))
    }

    fn target(&mut self, item: &SymbolItem, home: FileId, lang: &str, is_unique: bool) -> Target {
        let mut target = Target {
            name: item.name.clone(),
            kind: item.kind.clone(),
            container: item.container.clone(),
            path: item.path.clone(),
            line: item.start_line,
            is_default: false,
            is_unique,
        };
        if family(lang) == "script" {
            let (index, resolved) = (self.index, self.resolved);
            let read = || candidate(index, resolved, home).map(|c| c.text).unwrap_or_default();
            let text = self.texts.entry(home).or_insert_with(read);
            target.is_default = is_default_export(text, target.importable());
        }
        target
    }
}

fn is_container_named(item: &SymbolItem, text: &[u8]) -> bool {
    let container = item.container.as_deref().unwrap_or(&item.name);
    memchr::memmem::find(text, container.as_bytes()).is_some()
}

/// Languages whose files refer to each other's definitions.
fn family(lang: &str) -> &str {
    match lang {
        "javascript" | "typescript" | "tsx" | "jsx" | "vue" | "svelte" => "script",
        "c" | "cpp" | "objc" => "c",
        "java" | "kotlin" => "java",
        lang => lang,
    }
}

/// The identifiers on some lines, with the names that aliases of imports stand for.
fn names(text: &[u8], lines: &RangeInclusive<u32>, imports: Option<&FileImports>) -> Vec<String> {
    let skipped = lines.start().saturating_sub(1) as usize;
    let count = (*lines.end() as usize).saturating_sub(skipped);
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    let mut names: Vec<String> = Vec::new();
    for line in text.split(|byte| *byte == b'\n').skip(skipped).take(count) {
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') || *b >= 0x80;
        for word in line.split(|byte| !is_part(byte)) {
            let is_name = word.first().is_some_and(|b| !b.is_ascii_digit());
            if let Ok(word) = std::str::from_utf8(word)
                && is_name
                && word.len() <= MAX_IDENTIFIER
                && names.len() < MAX_IDENTIFIERS
                && seen.insert(word)
            {
                names.push(word.to_owned());
            }
        }
    }
    for name in imports.iter().flat_map(|i| &i.imports).flat_map(|import| &import.names) {
        let is_alias = name.alias.as_deref().is_some_and(|alias| seen.contains(alias));
        if is_alias && !seen.contains(&*name.name) {
            names.push(name.name.clone());
        }
    }
    names
}

/// The most certain definitions of each use. Several that are equally certain make it ambiguous,
/// except overloads, of which the first stands for all.
fn decided(definitions: Vec<SymbolItem>, calls: &[Callee], found: &[TargetUse]) -> Uses {
    let mut uses: Vec<Use> = Vec::new();
    let mut resolved: FxHashSet<(u32, u32)> = FxHashSet::default();
    for group in found.chunk_by(|a, b| (a.line, a.column) == (b.line, b.column)) {
        let Some(best) = group.iter().map(|found| found.confidence).min() else { continue };
        let mut meant: Vec<usize> = Vec::new();
        for found in group.iter().filter(|found| found.confidence == best) {
            let item = &definitions[found.target];
            let is_overload = |other: &usize| {
                let other = &definitions[*other];
                other.path == item.path && other.container == item.container
            };
            if !meant.iter().any(is_overload) {
                meant.push(found.target);
            }
        }
        if meant.len() > MAX_AMBIGUOUS {
            continue;
        }
        let first = group[0];
        let is_certain = meant.len() == 1;
        resolved.insert((first.line, first.column));
        uses.push(Use {
            line: first.line,
            is_call: group.iter().any(|found| found.is_call),
            confidence: if is_certain { best } else { Confidence::Ambiguous },
            definitions: meant,
        });
    }
    let is_open = |call: &&Callee| !resolved.contains(&(call.line, call.column));
    let unresolved = calls.iter().filter(is_open).map(|call| call.line).collect();
    Uses { definitions, uses, unresolved }
}
