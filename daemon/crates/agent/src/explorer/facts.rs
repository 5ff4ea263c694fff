//! What is known so far.

use std::collections::{BTreeMap, BTreeSet};

use cairn_protocol::{
    command::ToolCall,
    content::{DirListing, EntryKind, Span},
    error::Failure,
    explore::{LayoutEntry, TopFile},
    git::{GitCommit, GitStatus},
    index::RootStatus,
    search::{GrepAnswer, SearchAnswer},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A line that a probe for entrypoints found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The probe: index into [`super::planner::PROBES`].
    pub probe: usize,
    /// The file.
    pub path: String,
    /// The line.
    pub line: u32,
    /// Its text.
    pub text: String,
    /// The lines before it.
    pub before: Vec<String>,
}

/// Everything an explore has learned.
#[derive(Debug, Default)]
pub struct Facts {
    /// Name of the root's folder.
    pub folder: String,
    /// Whether the run may read only parts of the root.
    pub limited: bool,
    /// Entries near the top, from listings.
    pub listed: BTreeMap<String, EntryKind>,
    /// Whether the root was listed (well or badly).
    pub looked: bool,
    /// A listing was cut.
    pub listing_cut: bool,
    /// Files that exist, from look-ups by name over the whole index.
    pub files: BTreeSet<String>,
    /// Look-ups by name that ended.
    pub lookups: BTreeSet<String>,
    /// Texts that were read.
    pub texts: BTreeMap<String, String>,
    /// Lines by language.
    pub languages: BTreeMap<String, u64>,
    /// Git state.
    pub git: Option<GitStatus>,
    /// Latest commits.
    pub commits: Vec<GitCommit>,
    /// State of the index when it was waited for.
    pub index: Option<RootStatus>,
    /// Whether the wait for the index is over, well or badly.
    pub index_waited: bool,
    /// Files by centrality.
    pub ranking: Vec<TopFile>,
    /// Top-level folders.
    pub folders: Vec<LayoutEntry>,
    /// What probes found.
    pub hits: Vec<Hit>,
    /// Conditionals of C files with a main function, by file: line and text.
    pub conditionals: BTreeMap<String, Vec<(u32, String)>>,
    /// Probes that ended.
    pub probed: BTreeSet<usize>,
    /// Places found for each query.
    pub found: BTreeMap<String, Vec<String>>,
    /// Operations that failed.
    pub failures: Vec<FailedOp>,
    /// The limit of operations was reached.
    pub cut: bool,
}

/// An operation that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedOp {
    /// Its tool.
    pub tool: String,
    /// The path that it named.
    pub path: Option<String>,
    /// For people.
    pub message: String,
}

fn typed<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

fn field<T: DeserializeOwned>(mut value: Value, name: &str) -> Option<T> {
    typed(value.get_mut(name)?.take())
}

impl Facts {
    /// Nothing but the folder's name.
    pub fn new(folder: String) -> Self {
        Self { folder, ..Self::default() }
    }

    /// Learns from an operation that ended.
    pub fn absorb(&mut self, call: &ToolCall, outcome: Result<Value, Failure>) {
        self.note_end(call);
        let value = match outcome {
            Ok(value) => value,
            Err(failure) => {
                let path = call.arguments.get("path").and_then(Value::as_str).map(str::to_owned);
                self.failures.push(FailedOp { tool: call.name.clone(), path, message: failure.message });
                return;
            }
        };
        match call.name.as_str() {
            "fs_list_dir" => self.absorb_listing(value),
            "content_get_span" => {
                if let Some(span) = typed::<Span>(value) {
                    self.texts.insert(span.path, span.text);
                }
            }
            "count_languages" => self.languages = field(value, "languages").unwrap_or_default(),
            "git_status" => self.git = typed(value),
            "git_log" => self.commits = field(value, "commits").unwrap_or_default(),
            "index_build" => self.index = typed(value),
            "rank_files" => self.ranking = field(value, "files").unwrap_or_default(),
            "list_folders" => self.folders = field(value, "folders").unwrap_or_default(),
            "search_grep" => self.absorb_grep(call, value),
            "search_hybrid" | "search_semantic" => self.absorb_search(call, value),
            _ => {}
        }
    }

    /// What must be known to have ended, however it ended, so that the plan goes on.
    fn note_end(&mut self, call: &ToolCall) {
        let text =
            |name: &str| call.arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        match call.name.as_str() {
            "fs_list_dir" if text("path") == "." => self.looked = true,
            "index_build" => self.index_waited = true,
            "search_grep" => {
                let pattern = text("pattern");
                match super::planner::probe_of(&pattern) {
                    Some(probe) => {
                        self.probed.insert(probe);
                    }
                    None if pattern == super::planner::CONDITIONALS => {}
                    None => {
                        self.lookups.insert(super::planner::globs_of(call).join(" "));
                    }
                }
            }
            "search_hybrid" | "search_semantic" => {
                self.found.entry(text("query")).or_default();
            }
            "content_get_span" => {
                self.texts.entry(text("path")).or_default();
            }
            _ => {}
        }
    }

    fn absorb_listing(&mut self, value: Value) {
        let Some(listing) = typed::<DirListing>(value) else { return };
        self.listing_cut |= listing.truncated;
        self.listed.extend(listing.entries.into_iter().map(|e| (e.path, e.kind)));
    }

    fn absorb_grep(&mut self, call: &ToolCall, value: Value) {
        let Some(answer) = typed::<GrepAnswer>(value) else { return };
        let pattern = call.arguments.get("pattern").and_then(Value::as_str).unwrap_or_default();
        match super::planner::probe_of(pattern) {
            Some(probe) => {
                let hit = |i: cairn_protocol::search::GrepItem| Hit {
                    probe,
                    path: i.path,
                    line: i.line,
                    text: i.text,
                    before: i.before,
                };
                self.hits.extend(answer.items.into_iter().map(hit));
            }
            None if pattern == super::planner::CONDITIONALS => self.absorb_conditionals(answer),
            None => self.files.extend(answer.counts.into_iter().map(|c| c.path)),
        }
    }

    fn absorb_conditionals(&mut self, answer: GrepAnswer) {
        // The last file of an answer that was cut is not known to its end.
        let partly = answer.items.last().filter(|_| answer.truncated).map(|item| item.path.clone());
        for item in answer.items.into_iter().filter(|item| Some(&item.path) != partly.as_ref()) {
            self.conditionals.entry(item.path).or_default().push((item.line, item.text));
        }
    }

    fn absorb_search(&mut self, call: &ToolCall, value: Value) {
        let Some(answer) = typed::<SearchAnswer>(value) else { return };
        let query = call.arguments.get("query").and_then(Value::as_str).unwrap_or_default();
        let place = |i: &cairn_protocol::search::SearchItem| match &i.symbol {
            Some(symbol) => format!("{}:{} ({})", i.path, i.start_line, symbol.name),
            None => format!("{}:{}", i.path, i.start_line),
        };
        self.found.insert(query.to_owned(), answer.items.iter().map(place).collect());
    }

    /// Whether a file is known to exist.
    pub fn exists(&self, path: &str) -> bool {
        self.files.contains(path)
            || self.listed.get(path) == Some(&EntryKind::File)
            || self.texts.get(path).is_some_and(|t| !t.is_empty())
            || self.hits.iter().any(|h| h.path == path)
    }

    /// A text that was read.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str).filter(|t| !t.is_empty())
    }

    /// Every file that is known, by any way.
    pub fn known_files(&self) -> impl Iterator<Item = &str> {
        let listed = self.listed.iter().filter(|(_, kind)| **kind == EntryKind::File).map(|(path, _)| path);
        let all: BTreeSet<&str> = self.files.iter().chain(listed).map(String::as_str).collect();
        all.into_iter()
    }
}
