//! Facts that an explore has collected.

use std::collections::{BTreeMap, BTreeSet};

use cairn_protocol::{
    command::ToolCall,
    content::{DirListing, EntryKind, Span},
    error::Failure,
    explore::{CodeGraph, Flow, GraphGroup, LayoutEntry, TopFile},
    git::{GitChanges, GitCommit, GitStatus},
    index::RootStatus,
    search::{GrepAnswer, GrepItem, ImpactAnswer, SearchAnswer, SymbolItem, SymbolsAnswer},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    components::Part,
    flows::FlowStart,
    planner::{LookUp, Purpose},
};

/// A line that a probe for entrypoints found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Index of the probe in [`super::planner::PROBES`].
    pub probe: usize,
    pub path: String,
    pub line: u32,
    /// Text of the line.
    pub text: String,
    pub before: Vec<String>,
}

/// All facts that an explore has collected.
#[derive(Debug, Default)]
pub struct Facts {
    /// Name of the root's folder.
    pub folder: String,
    /// True if the run may read only parts of the root.
    pub limited: bool,
    /// Entries near the top, from listings.
    pub listed: BTreeMap<String, EntryKind>,
    /// True if the root's listing has finished, successfully or not.
    pub looked: bool,
    /// True if a listing was truncated.
    pub listing_cut: bool,
    /// Files that exist, from look-ups by name over the whole index.
    pub files: BTreeSet<String>,
    /// Look-ups by name that have finished.
    pub lookups: BTreeSet<LookUp>,
    /// Texts that were read, by path.
    pub texts: BTreeMap<String, String>,
    pub languages: BTreeMap<String, u64>,
    pub git: Option<GitStatus>,
    pub commits: Vec<GitCommit>,
    /// Changes since the requested revision.
    pub changes: Option<GitChanges>,
    /// Files that depend on each changed file.
    pub impacts: BTreeMap<String, ImpactAnswer>,
    /// State of the index after the wait for it.
    pub index: Option<RootStatus>,
    /// True if the wait for the index has finished, successfully or not.
    pub index_waited: bool,
    /// Files ordered by centrality.
    pub ranking: Vec<TopFile>,
    /// Folders to some levels, with the files below each.
    pub folders: Vec<LayoutEntry>,
    /// True if the request for folders has finished, successfully or not.
    pub has_folders: bool,
    /// Imports between files; without groups.
    pub graph: CodeGraph,
    /// True if the request for imports has finished, successfully or not.
    pub has_graph: bool,
    /// Definitions found for each name.
    pub definitions: BTreeMap<String, Vec<SymbolItem>>,
    /// Parts of the repository, once manifests, folders and imports are known.
    pub parts: Option<Vec<Part>>,
    /// The same parts with the imports between them.
    pub groups: Vec<GraphGroup>,
    /// True if the request for groups has finished, successfully or not.
    pub has_groups: bool,
    /// Lines that probes found.
    pub hits: Vec<Hit>,
    /// Conditionals of C files with a main function, by file: line and text.
    pub conditionals: BTreeMap<String, Vec<(u32, String)>>,
    /// True if the request for conditionals has finished, successfully or not.
    pub has_conditionals: bool,
    /// Starts of flows, once the entrypoints are known.
    pub starts: Option<Vec<FlowStart>>,
    /// Flows that were found, by the index of their start.
    pub flows: BTreeMap<usize, Flow>,
    /// Probes that have finished.
    pub probed: BTreeSet<usize>,
    /// Locations found for each query.
    pub locations: BTreeMap<String, Vec<String>>,
    pub failures: Vec<FailedOp>,
    /// True if the limit of operations was reached.
    pub cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedOp {
    pub tool: String,
    /// The path in its arguments.
    pub path: Option<String>,
    /// Error message for users.
    pub message: String,
}

fn typed<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

fn field<T: DeserializeOwned>(mut value: Value, name: &str) -> Option<T> {
    typed(value.get_mut(name)?.take())
}

impl Facts {
    /// Creates facts that contain only the folder's name.
    pub fn new(folder: String) -> Self {
        Self { folder, ..Self::default() }
    }

    /// Adds the result of a finished operation.
    pub fn absorb(&mut self, call: &ToolCall, purpose: &Purpose, outcome: Result<Value, Failure>) {
        self.note_end(purpose);
        let value = match outcome {
            Ok(value) => value,
            Err(failure) => {
                let path = call.arguments.get("path").and_then(Value::as_str).map(str::to_owned);
                self.failures.push(FailedOp {
                    tool: call.name.clone(),
                    path,
                    message: failure.message,
                });
                return;
            }
        };
        match purpose {
            Purpose::Listing { .. } => self.absorb_listing(value),
            Purpose::Text { .. } => {
                if let Some(span) = typed::<Span>(value) {
                    self.texts.insert(span.path, span.text);
                }
            }
            Purpose::Languages => self.languages = field(value, "languages").unwrap_or_default(),
            Purpose::GitStatus => self.git = typed(value),
            Purpose::GitLog => self.commits = field(value, "commits").unwrap_or_default(),
            Purpose::Changes => self.changes = typed(value),
            Purpose::Impact { path } => {
                if let Some(answer) = typed(value) {
                    self.impacts.insert(path.clone(), answer);
                }
            }
            Purpose::Index => self.index = typed(value),
            Purpose::Ranking => self.ranking = field(value, "files").unwrap_or_default(),
            Purpose::Folders => self.folders = field(value, "folders").unwrap_or_default(),
            Purpose::Graph => self.graph = typed(value).unwrap_or_default(),
            Purpose::Groups => self.groups = field(value, "groups").unwrap_or_default(),
            Purpose::Flow(start) => {
                let flow = typed::<Flow>(value).filter(|flow| !flow.steps.is_empty());
                self.flows.extend(flow.map(|flow| (*start, flow)));
            }
            Purpose::LookUp(_) => {
                let counts = typed::<GrepAnswer>(value).map(|answer| answer.counts);
                self.files.extend(counts.unwrap_or_default().into_iter().map(|count| count.path));
            }
            Purpose::Probe(probe) => self.absorb_hits(*probe, value),
            Purpose::Conditionals => {
                if let Some(answer) = typed(value) {
                    self.absorb_conditionals(answer);
                }
            }
            Purpose::Question { query } => self.absorb_search(query, value),
            Purpose::Definition { name } => {
                let items = typed::<SymbolsAnswer>(value).map(|answer| answer.items);
                self.definitions.insert(name.clone(), items.unwrap_or_default());
            }
            Purpose::ForModel => {}
        }
    }

    /// Marks an operation as finished, successfully or not, so that the plan continues.
    fn note_end(&mut self, purpose: &Purpose) {
        match purpose {
            Purpose::Listing { is_root: true } => self.looked = true,
            Purpose::Index => self.index_waited = true,
            Purpose::Graph => self.has_graph = true,
            Purpose::Groups => self.has_groups = true,
            Purpose::Folders => self.has_folders = true,
            Purpose::Conditionals => self.has_conditionals = true,
            Purpose::Probe(probe) => {
                self.probed.insert(*probe);
            }
            Purpose::LookUp(look_up) => {
                self.lookups.insert(*look_up);
            }
            Purpose::Question { query } => {
                self.locations.entry(query.clone()).or_default();
            }
            Purpose::Text { path } => {
                self.texts.entry(path.clone()).or_default();
            }
            _ => {}
        }
    }

    fn absorb_listing(&mut self, value: Value) {
        let Some(listing) = typed::<DirListing>(value) else { return };
        self.listing_cut |= listing.truncated;
        self.listed.extend(listing.entries.into_iter().map(|e| (e.path, e.kind)));
    }

    fn absorb_hits(&mut self, probe: usize, value: Value) {
        let Some(answer) = typed::<GrepAnswer>(value) else { return };
        let hit =
            |i: GrepItem| Hit { probe, path: i.path, line: i.line, text: i.text, before: i.before };
        self.hits.extend(answer.items.into_iter().map(hit));
    }

    fn absorb_conditionals(&mut self, answer: GrepAnswer) {
        // The last file of a truncated answer may be incomplete.
        let partly = answer.items.last().filter(|_| answer.truncated).map(|item| item.path.clone());
        for item in answer.items.into_iter().filter(|item| Some(&item.path) != partly.as_ref()) {
            self.conditionals.entry(item.path).or_default().push((item.line, item.text));
        }
    }

    fn absorb_search(&mut self, query: &str, value: Value) {
        let Some(answer) = typed::<SearchAnswer>(value) else { return };
        let location = |i: &cairn_protocol::search::SearchItem| match &i.symbol {
            Some(symbol) => format!("{}:{} ({})", i.path, i.start_line, symbol.name),
            None => format!("{}:{}", i.path, i.start_line),
        };
        self.locations.insert(query.to_owned(), answer.items.iter().map(location).collect());
    }

    /// Returns true if a file is known to exist.
    pub fn exists(&self, path: &str) -> bool {
        self.files.contains(path)
            || self.listed.get(path) == Some(&EntryKind::File)
            || self.texts.get(path).is_some_and(|t| !t.is_empty())
            || self.hits.iter().any(|h| h.path == path)
    }

    /// Returns a text that was read.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str).filter(|t| !t.is_empty())
    }

    /// Returns every file of the look-ups and listings.
    pub fn known_files(&self) -> impl Iterator<Item = &str> {
        let listed =
            self.listed.iter().filter(|(_, kind)| **kind == EntryKind::File).map(|(path, _)| path);
        let all: BTreeSet<&str> = self.files.iter().chain(listed).map(String::as_str).collect();
        all.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use cairn_protocol::error::Reason;
    use serde_json::json;

    use super::*;

    fn absorb(facts: &mut Facts, purpose: &Purpose, outcome: Result<Value, Failure>) {
        let call = ToolCall { name: "t".into(), arguments: json!({"path": "a"}) };
        facts.absorb(&call, purpose, outcome);
    }

    #[test]
    fn failures_end_their_operation() {
        let mut facts = Facts::default();
        for purpose in [Purpose::Groups, Purpose::Graph, Purpose::Folders, Purpose::Index] {
            absorb(&mut facts, &purpose, Err(Failure::new(Reason::InvalidParams, "no")));
        }
        assert!(facts.has_groups && facts.has_graph && facts.has_folders && facts.index_waited);
        assert_eq!(facts.failures.len(), 4);
        assert_eq!(facts.failures[0].path.as_deref(), Some("a"));
    }

    #[test]
    fn malformed_values_are_no_facts() {
        let mut facts = Facts::default();
        let name = Purpose::Definition { name: "X".into() };
        for value in [json!(null), json!([1]), json!({"folders": 1, "groups": {}, "files": "x"})] {
            for purpose in [&Purpose::Groups, &Purpose::Graph, &Purpose::Folders, &name] {
                absorb(&mut facts, purpose, Ok(value.clone()));
            }
        }
        assert!(facts.groups.is_empty() && facts.graph.files.is_empty());
        assert!(facts.folders.is_empty() && facts.failures.is_empty());
        assert!(facts.definitions["X"].is_empty());
    }

    #[test]
    fn graph_and_groups_are_separate() {
        let mut facts = Facts::default();
        let file = json!({"path": "a.rs", "bytes": 1, "dependents": 2, "dependencies": 3});
        absorb(&mut facts, &Purpose::Graph, Ok(json!({"files": [file]})));
        let group = json!({"path": "a", "files": 1, "lines": 2, "keyFiles": [], "dependsOn": []});
        absorb(&mut facts, &Purpose::Groups, Ok(json!({"files": [], "groups": [group]})));
        assert_eq!((facts.graph.files.len(), facts.groups.len()), (1, 1));
    }
}
