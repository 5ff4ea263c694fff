//! The path of the first request or command from an entrypoint through the components: a bounded
//! search along calls, then the best path of what it read.

use std::collections::BinaryHeap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Mutex;

use cairn_code_graph::{Confidence, FileId};
use cairn_index_base::{CancelFlag, lock};
use cairn_protocol::error::Failure;
use cairn_protocol::explore::FlowStep;
use cairn_protocol::id::RootId;
use cairn_protocol::search::SymbolItem;
use cairn_store::rusqlite::Connection;
use rustc_hash::FxHashMap;

use crate::graph::{Resolved, group_of, groups_by_path};
use crate::indexes::Indexes;
use crate::rank::is_secondary;
use crate::root_index::{RootIndex, symbols_are_complete};
use crate::symbols::of_file;
use crate::uses::UseReader;

/// Most flows that are cached for one state of the imports.
const MAX_CACHED: usize = 64;
/// Most steps of a flow.
const MAX_STEPS: usize = 8;
/// Most definitions whose calls are read for one flow.
const MAX_READ: usize = 10;
/// Most bytes of the files that are parsed for one flow, a file counting each time.
const MAX_BYTES: u64 = 448 * 1024;
/// Most bytes of one parsed file.
const MAX_FILE: u64 = 256 * 1024;
/// Most definitions that are followed from one.
const MAX_NEXT: usize = 4;
/// Lowest score of a step that is followed, and lowest worth of it alone.
const MIN_SCORE: f64 = 1.0;
const MIN_WORTH: f64 = 0.5;

/// First words of names that report, convert or answer a question about a value.
const MINOR: &str = "\
    alloc append as assert bail clone close cmp contains copy count debug default die drop \
    echo empty eq err error errorf exists exit fail fatal filter find fmt format free from \
    get has hash help info insert into is join len length lock log logger make max min msg \
    must name now panic path pop print push put remove report set show size sort str string \
    to trace trim unlock usage version warn warning with wrap";
/// Words of names that carry a request or command on.
const MAJOR: &str = "\
    call command connect dispatch do event events exec execute handle handler launch listen \
    loop main perform process request requests route run serve server start stream transfer \
    transfers work";
/// Words of names that report, or describe a value, at any position.
const REPORTING: &str = "\
    by count debug err error exception fail failure fatal for format formatf get length log \
    message of out print size string warn";
/// Words of names that prepare work or end it.
const PREPARING: &str = "\
    add after arg args arguments before build check clean cleanup close complete config \
    configure create default defaults del delete destroy end env flags free init initialize \
    initialized load merge new opt option options parse parser post pre register remove \
    reset setup shutdown stop test update validate";

/// Location where a flow starts.
pub struct FlowStart<'a> {
    pub path: &'a str,
    pub line: Option<u32>,
    /// Names of functions, of which the first that the file defines runs first. If it defines none
    /// and there is no line, there is no flow.
    pub names: &'a [String],
}

impl Indexes {
    /// The flow from a start through `groups`, which are folders and files; empty if fewer than
    /// three steps are certain. `shows` limits the files.
    ///
    /// # Errors
    /// `root_not_found`, `cancelled`, or a storage failure.
    pub fn flow(
        &self,
        root: &RootId,
        start: &FlowStart<'_>,
        groups: &[String],
        shows: &dyn Fn(&str) -> bool,
        flag: &CancelFlag,
    ) -> Result<Vec<FlowStep>, Failure> {
        let index = self.index(root)?;
        let conn = index.readers.get()?;
        let resolved = index.resolved(&conn)?;
        let view = index.root.view();
        let shows = |path: &str| view.shows(path) && shows(path);
        let key = key(start, groups, resolved.table.files.iter().map(|file| shows(&file.path)));
        if let Some(steps) = resolved.flows.get(key) {
            return Ok(steps);
        }
        let is_complete = symbols_are_complete(std::slice::from_ref(&index));
        let mut search = Search {
            index: &index,
            conn: &conn,
            resolved: &resolved,
            reader: UseReader::new(&index, &conn, &resolved, false),
            groups: groups_by_path(groups),
            shows: &shows,
            nodes: Vec::new(),
            known: FxHashMap::default(),
            bytes: 0,
        };
        if !shows(start.path) || !search.start(start)? {
            return Ok(vec![]);
        }
        search.run(flag)?;
        let mut best = Vec::new();
        search.best(&mut vec![0], 0.0, &mut (0.0, &mut best));
        let steps = search.steps(&best, groups);
        if is_complete {
            resolved.flows.keep(key, steps.clone());
        }
        Ok(steps)
    }
}

/// The flows of one state of the imports: reading calls is most of the cost of an explore that
/// finds nothing new.
#[derive(Default)]
pub struct KnownFlows(Mutex<FxHashMap<u64, Vec<FlowStep>>>);

impl KnownFlows {
    fn get(&self, key: u64) -> Option<Vec<FlowStep>> {
        lock(&self.0).get(&key).cloned()
    }

    fn keep(&self, key: u64, steps: Vec<FlowStep>) {
        let mut all = lock(&self.0);
        if all.len() < MAX_CACHED {
            all.insert(key, steps);
        }
    }
}

/// Hash of the input of a flow beside the imports: its start, the groups, and the visible files.
fn key(start: &FlowStart<'_>, groups: &[String], visible: impl Iterator<Item = bool>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (start.path, start.line, start.names, groups).hash(&mut hasher);
    visible.for_each(|is_visible| is_visible.hash(&mut hasher));
    hasher.finish()
}

/// A definition, or the statements of a file outside of its functions.
struct Node {
    item: SymbolItem,
    file: FileId,
    group: Option<usize>,
    is_module: bool,
    /// The definitions that follow it, with the worth of each without the path to it; none until
    /// its calls are read.
    next: Option<Vec<(usize, f64)>>,
}

struct Search<'a> {
    index: &'a RootIndex,
    conn: &'a Connection,
    resolved: &'a Resolved,
    reader: UseReader<'a>,
    groups: FxHashMap<&'a str, usize>,
    shows: &'a dyn Fn(&str) -> bool,
    nodes: Vec<Node>,
    /// Nodes by path and first line.
    known: FxHashMap<(String, u32), usize>,
    bytes: u64,
}

fn is_function(item: &SymbolItem) -> bool {
    ["function", "method", "constructor"].contains(&item.kind.as_str())
}

impl Search<'_> {
    /// Adds the first node; false if the file is not in the index.
    fn start(&mut self, start: &FlowStart<'_>) -> Result<bool, Failure> {
        let Some(file) = self.resolved.id(start.path) else { return Ok(false) };
        let outline = self.outline(file)?;
        let functions = || outline.iter().filter(|item| is_function(item));
        let named = |name: &str| functions().find(|item| item.name == name);
        let around = |line: u32| {
            let is_around = |item: &&SymbolItem| {
                item.start_line <= line + 3 && (line..=u32::MAX).contains(&item.end_line)
            };
            functions().rfind(is_around)
        };
        let usual = || ["main", "Main", "cli", "run", "serve"].iter().find_map(|name| named(name));
        let first = match (start.names.iter().find_map(|name| named(name)), start.line) {
            (Some(item), _) => Some(item),
            (None, Some(line)) => around(line),
            (None, None) if start.names.is_empty() => usual(),
            (None, None) => return Ok(false),
        };
        let item = first.cloned().unwrap_or_else(|| SymbolItem {
            name: start.path.rsplit('/').next().unwrap_or(start.path).to_owned(),
            kind: "module".into(),
            container: None,
            path: start.path.to_owned(),
            root: self.index.root.id.clone(),
            start_line: start.line.unwrap_or(1),
            end_line: u32::MAX,
            lang: String::new(),
            score: 1.0,
        });
        self.add(item, file);
        Ok(true)
    }

    fn outline(&self, file: FileId) -> Result<Vec<SymbolItem>, Failure> {
        let table = &self.resolved.table;
        of_file(self.conn, self.index, table, table.files[file as usize].id)
    }

    fn add(&mut self, item: SymbolItem, file: FileId) -> usize {
        let key = (item.path.clone(), item.start_line);
        if let Some(at) = self.known.get(&key) {
            return *at;
        }
        let group = group_of(&self.groups, &item.path);
        let is_module = item.kind == "module";
        self.known.insert(key, self.nodes.len());
        self.nodes.push(Node { item, file, group, is_module, next: None });
        self.nodes.len() - 1
    }

    /// Reads the calls of the most promising definitions.
    fn run(&mut self, flag: &CancelFlag) -> Result<(), Failure> {
        let mut queue: BinaryHeap<(u64, std::cmp::Reverse<usize>, Vec<usize>)> = BinaryHeap::new();
        queue.push((0, std::cmp::Reverse(0), vec![0]));
        let mut read = 0;
        while let Some((_, _, path)) = queue.pop() {
            flag.check()?;
            let Some(at) = path.last().copied() else { continue };
            if read >= MAX_READ || path.len() >= MAX_STEPS {
                continue;
            }
            if self.nodes[at].next.is_none() {
                read += 1;
                self.nodes[at].next = Some(self.read(at)?);
            }
            let next = self.nodes[at].next.clone().unwrap_or_default();
            let mut scored: Vec<(usize, f64)> =
                next.iter().map(|(to, own)| (*to, own + self.novelty(&path, *to, *own))).collect();
            scored.retain(|(to, score)| !path.contains(to) && *score >= MIN_SCORE);
            scored.sort_by(|a, b| b.1.total_cmp(&a.1));
            for (to, score) in scored.into_iter().take(MAX_NEXT) {
                let longer: Vec<usize> = path.iter().copied().chain([to]).collect();
                // The deeper one of equal paths is read first.
                let priority = (score * 100.0) as u64 + 150 * longer.len() as u64;
                queue.push((priority, std::cmp::Reverse(to), longer));
            }
        }
        Ok(())
    }

    /// The definitions that follow a node, each with its worth.
    fn read(&mut self, at: usize) -> Result<Vec<(usize, f64)>, Failure> {
        let node = &self.nodes[at];
        let (file, is_module) = (node.file, node.is_module);
        let lines = node.item.start_line..=node.item.end_line;
        let bytes = self.resolved.bytes(file);
        if bytes > MAX_FILE || self.bytes + bytes > MAX_BYTES {
            return Ok(vec![]);
        }
        self.bytes += bytes;
        let Some(uses) = self.reader.read(file, lines.clone())? else { return Ok(vec![]) };
        let outline = if is_module { self.outline(file)? } else { vec![] };
        let is_outside = |line: u32| {
            let around = |item: &SymbolItem| (item.start_line..=item.end_line).contains(&line);
            !outline.iter().any(|item| is_function(item) && around(item))
        };
        let mut next: Vec<(usize, f64)> = Vec::new();
        for (order, call) in uses.uses.iter().enumerate() {
            let [target] = call.definitions[..] else { continue };
            let item = &uses.definitions[target];
            let is_certain = call.confidence != Confidence::Ambiguous;
            if !is_certain || !is_outside(call.line) || !self.is_step(item, call.is_call) {
                continue;
            }
            let Some(home) = self.resolved.id(&item.path) else { continue };
            let mut worth = worth(item) + order as f64 / uses.uses.len() as f64;
            if !call.is_call {
                worth -= 1.0;
            }
            if worth < MIN_WORTH {
                continue;
            }
            let to = self.add(item.clone(), home);
            match next.iter_mut().find(|(known, _)| *known == to) {
                Some((_, known)) => *known = known.max(worth),
                None => next.push((to, worth)),
            }
        }
        Ok(next)
    }

    /// True for a definition that can be a step: a function, or a value whose definition contains
    /// functions, such as a command with its action.
    fn is_step(&self, item: &SymbolItem, is_call: bool) -> bool {
        let is_value = ["variable", "constant"].contains(&item.kind.as_str())
            && !is_call
            && item.end_line >= item.start_line + 5;
        (is_function(item) && !is_minor(&item.name) || is_value)
            && !is_secondary(&item.path)
            && (self.shows)(&item.path)
    }

    /// The worth that a step, which has `own` alone, has by the components and files of the path
    /// before it.
    fn novelty(&self, path: &[usize], to: usize, own: f64) -> f64 {
        let node = &self.nodes[to];
        let last = path.last().map(|at| &self.nodes[*at]);
        let is_new_group =
            node.group.is_some() && path.iter().all(|at| self.nodes[*at].group != node.group);
        let is_new_file = last.is_some_and(|last| last.file != node.file);
        let is_return =
            path.iter().rev().skip(1).any(|at| self.nodes[*at].file == node.file) && is_new_file;
        // A small function of another component is rather a service than the way on.
        let group = if is_new_group { own.clamp(0.0, 3.0) } else { 0.0 };
        group + f64::from(u8::from(is_new_file)) - 2.0 * f64::from(u8::from(is_return))
    }

    /// Extends `path` in all ways and stores the best one.
    fn best(&self, path: &mut Vec<usize>, score: f64, best: &mut (f64, &mut Vec<usize>)) {
        if score > best.0 || best.1.is_empty() {
            best.0 = score;
            best.1.clone_from(path);
        }
        let Some(at) = path.last().copied().filter(|_| path.len() < MAX_STEPS) else { return };
        let mut next: Vec<(usize, f64)> = self.nodes[at].next.clone().unwrap_or_default();
        for (to, worth) in &mut next {
            *worth += self.novelty(path, *to, *worth);
        }
        next.retain(|(to, score)| !path.contains(to) && *score >= MIN_SCORE);
        next.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (to, worth) in next.into_iter().take(MAX_NEXT) {
            path.push(to);
            self.best(path, score + worth, best);
            path.pop();
        }
    }

    fn steps(&self, path: &[usize], groups: &[String]) -> Vec<FlowStep> {
        let mut path = path;
        // The statement that calls `main` adds nothing to it.
        if let [first, second, ..] = path
            && self.nodes[*first].is_module
            && self.nodes[*first].file == self.nodes[*second].file
        {
            path = &path[1..];
        }
        if path.len() < 3 {
            return vec![];
        }
        let step = |at: &usize| {
            let node = &self.nodes[*at];
            FlowStep {
                name: display_name(&node.item),
                path: node.item.path.clone(),
                line: node.item.start_line,
                component: node.group.map(|group| groups[group].clone()),
            }
        };
        path.iter().map(step).collect()
    }
}

fn display_name(item: &SymbolItem) -> String {
    let joint = if ["c", "cpp", "php", "rust"].contains(&item.lang.as_str()) { "::" } else { "." };
    match &item.container {
        Some(container) => format!("{container}{joint}{}", item.name),
        None => item.name.clone(),
    }
}

/// The words of a name in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let is_start = c.is_uppercase() && was_lower;
        if is_start || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().into_iter().for_each(|word| word.extend(c.to_lowercase()));
        }
        was_lower = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_in(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|other| other == word)
}

fn is_minor(name: &str) -> bool {
    let is_printing = |word: &String| word.contains("printf");
    let words = words(name);
    words.iter().any(is_printing) || words.first().is_none_or(|word| is_in(MINOR, word))
}

/// The worth of a step by its size and its name.
fn worth(item: &SymbolItem) -> f64 {
    let lines = f64::from(item.end_line.saturating_sub(item.start_line) + 1);
    let words = words(&item.name);
    let has = |list: &str| words.iter().any(|word| is_in(list, word));
    let mut worth = (1.0 + lines).log2().min(7.0) * 0.6;
    if lines < 4.0 {
        worth -= 1.0;
    } else if has(MAJOR) {
        worth += 2.0;
    }
    if has(PREPARING) {
        worth -= 2.0;
    }
    // A constructor does not carry a request on.
    if words == ["new"] {
        worth -= 1.0;
    }
    if has(REPORTING) {
        worth -= 2.0;
    }
    worth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(words("handleHTTPRequest"), ["handle", "httprequest"]);
        assert_eq!(words("Curl_do_more2"), ["curl", "do", "more2"]);
        assert!(words("__").is_empty());
        assert!(is_minor("log_error") && is_minor("_") && !is_minor("run_forever"));
        assert!(is_minor("curl_mfprintf") && is_minor("__"));
    }

    #[test]
    fn functions_that_carry_on_are_worth_more_than_those_that_prepare() {
        let item = |name: &str, lines| SymbolItem {
            name: name.into(),
            kind: "function".into(),
            container: None,
            path: "a".into(),
            root: RootId("a".into()),
            start_line: 1,
            end_line: lines,
            lang: "c".into(),
            score: 1.0,
        };
        assert!(worth(&item("run_loop", 20)) > worth(&item("init_options", 200)));
        assert!(worth(&item("parse", 5)) < MIN_SCORE);
        assert!(worth(&item("work", 900)) > worth(&item("work", 9)));
    }
}
