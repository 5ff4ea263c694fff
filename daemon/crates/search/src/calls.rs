//! Callers and callees of a definition, found on demand like references.

use std::sync::Arc;
use std::time::Instant;

use cairn_code_graph::Confidence;
use cairn_index_base::CancelFlag;
use cairn_protocol::calls::{CallItem, CallsAnswer, CallsParams};
use cairn_protocol::error::Failure;
use cairn_protocol::search::{
    ReferenceConfidence, ReferenceItem, ReferenceUse, ReferencesParams, SymbolItem,
};
use cairn_store::rusqlite::Connection;
use rustc_hash::FxHashMap;

use crate::filters::{check_k, invalid};
use crate::graph::Resolved;
use crate::indexes::Indexes;
use crate::references::{MAX_K, MAX_OTHERS, find};
use crate::root_index::{RootIndex, symbols_are_complete};
use crate::symbols::{by_name, of_file};
use crate::uses::UseReader;

/// Most steps of a request.
const MAX_DEPTH: u32 = 5;
/// Most definitions whose callers or callees are searched for one request.
const MAX_EXPANDED: usize = 60;
/// Lines of calls that are listed for one definition.
const MAX_LINES: usize = 20;

/// The direction in which calls are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Callers,
    Callees,
}

impl Indexes {
    /// `search.callers`: the definitions that call a definition.
    ///
    /// # Errors
    /// `invalid_params`, `root_not_found`, `no_roots`, `path_not_found`, `cancelled`, or a storage
    /// failure.
    pub fn callers(&self, params: &CallsParams, flag: &CancelFlag) -> Result<CallsAnswer, Failure> {
        self.calls(params, Side::Callers, flag)
    }

    /// `search.callees`: the definitions that a definition calls.
    ///
    /// # Errors
    /// As [`Indexes::callers`].
    pub fn callees(&self, params: &CallsParams, flag: &CancelFlag) -> Result<CallsAnswer, Failure> {
        self.calls(params, Side::Callees, flag)
    }

    fn calls(
        &self,
        params: &CallsParams,
        side: Side,
        flag: &CancelFlag,
    ) -> Result<CallsAnswer, Failure> {
        let started = Instant::now();
        check_k(params.k, MAX_K)?;
        if !(1..=MAX_DEPTH).contains(&params.depth) {
            return Err(invalid("depth", format!("must be 1 to {MAX_DEPTH}")));
        }
        let index = self.single(params.root.as_deref())?;
        let indexes = [Arc::clone(&index)];
        let complete = symbols_are_complete(&indexes);
        let request = ReferencesParams {
            root: params.root.clone(),
            symbol: params.symbol.clone(),
            path: params.path.clone(),
            line: params.line,
            kinds: vec![],
            k: params.k,
        };
        let mut others = self.definitions(&index, &request)?;
        let definition = others.remove(0);
        others.truncate(MAX_OTHERS);
        let conn = index.readers.get()?;
        let resolved = index.resolved(&conn)?;
        let reader = UseReader::new(&index, &conn, &resolved, true);
        let mut walk = Walk {
            index: &index,
            conn: &conn,
            resolved: &resolved,
            reader,
            flag,
            items: Vec::new(),
            symbols: Vec::new(),
            known: FxHashMap::default(),
            outlines: FxHashMap::default(),
            unresolved: 0,
            is_cut: false,
        };
        walk.run(&definition, side, params.depth, params.k as usize)?;
        Ok(CallsAnswer {
            definition,
            others,
            unresolved: walk.unresolved,
            truncated: walk.is_cut,
            items: walk.items,
            complete: complete && symbols_are_complete(&indexes),
            took_us: started.elapsed().as_micros() as u64,
        })
    }
}

/// A search over calls, breadth first.
struct Walk<'a> {
    index: &'a RootIndex,
    conn: &'a Connection,
    resolved: &'a Resolved,
    reader: UseReader<'a>,
    flag: &'a CancelFlag,
    items: Vec<CallItem>,
    /// The definition of each item; none for a file.
    symbols: Vec<Option<SymbolItem>>,
    /// Items by path and first line.
    known: FxHashMap<(String, u32), usize>,
    outlines: FxHashMap<String, Vec<SymbolItem>>,
    unresolved: u32,
    is_cut: bool,
}

impl Walk<'_> {
    fn run(
        &mut self,
        definition: &SymbolItem,
        side: Side,
        depth: u32,
        k: usize,
    ) -> Result<(), Failure> {
        let mut next: Vec<(SymbolItem, Option<u32>)> = vec![(definition.clone(), None)];
        let mut expanded = 0;
        for steps in 1..=depth {
            let first = self.items.len();
            for (symbol, via) in std::mem::take(&mut next) {
                expanded += 1;
                if expanded > MAX_EXPANDED || self.items.len() > k {
                    self.is_cut = true;
                    break;
                }
                self.flag.check()?;
                match side {
                    Side::Callers => self.add_callers(&symbol, via, steps)?,
                    Side::Callees => self.add_callees(&symbol, via, steps)?,
                }
            }
            // An ambiguous step would make all that follow it a guess. A call of itself, or of a
            // definition that is listed already, is followed once.
            let is_new = |item: &CallItem| {
                item.confidence != ReferenceConfidence::Ambiguous
                    && (&item.path, item.line) != (&definition.path, definition.start_line)
            };
            for at in first..self.items.len() {
                let symbol = self.symbols[at].clone().filter(|_| is_new(&self.items[at]));
                let body = match symbol {
                    Some(symbol) if side == Side::Callees => self.body(symbol)?,
                    symbol => symbol,
                };
                next.extend(body.map(|symbol| (symbol, u32::try_from(at).ok())));
            }
        }
        self.is_cut |= self.items.len() > k;
        self.items.truncate(k);
        Ok(())
    }

    /// The definition that a call runs: of a class its constructor, if it has one.
    fn body(&mut self, symbol: SymbolItem) -> Result<Option<SymbolItem>, Failure> {
        if ["function", "method", "constructor", "macro"].contains(&symbol.kind.as_str()) {
            return Ok(Some(symbol));
        }
        let is_constructor = |item: &&SymbolItem| {
            item.container.as_ref() == Some(&symbol.name)
                && (["__init__", "constructor"].contains(&item.name.as_str())
                    || item.kind == "constructor")
        };
        let is_type = ["actor", "class", "record", "struct"].contains(&symbol.kind.as_str());
        if is_type {
            return Ok(self.outline(&symbol.path)?.iter().find(is_constructor).cloned());
        }
        Ok(Some(symbol))
    }

    fn add_callers(
        &mut self,
        symbol: &SymbolItem,
        via: Option<u32>,
        steps: u32,
    ) -> Result<(), Failure> {
        let all = by_name(self.conn, self.index, &self.resolved.table, &symbol.name)?;
        let found = find(self.index, self.conn, self.resolved, symbol, all.len() == 1, self.flag)?;
        let (items, is_cut) = found;
        self.is_cut |= is_cut;
        for call in items.iter().filter(|item| item.kind == ReferenceUse::Call) {
            let caller = self.enclosing(call)?;
            let name = call.path.rsplit('/').next().unwrap_or(&call.path);
            let item = CallItem {
                name: caller.as_ref().map_or(name, |c| &c.name).to_owned(),
                kind: caller.as_ref().map_or("module", |c| &c.kind).to_owned(),
                container: caller.as_ref().and_then(|c| c.container.clone()),
                path: call.path.clone(),
                line: caller.as_ref().map_or(1, |c| c.start_line),
                steps,
                via,
                confidence: call.confidence,
                lines: vec![call.line],
            };
            self.add(item, caller);
        }
        Ok(())
    }

    fn add_callees(
        &mut self,
        symbol: &SymbolItem,
        via: Option<u32>,
        steps: u32,
    ) -> Result<(), Failure> {
        let Some(file) = self.resolved.id(&symbol.path) else { return Ok(()) };
        let lines = symbol.start_line..=symbol.end_line;
        let Some(uses) = self.reader.read(file, lines)? else {
            self.is_cut = true;
            return Ok(());
        };
        let count = u32::try_from(uses.unresolved.len()).unwrap_or(u32::MAX);
        self.unresolved = self.unresolved.saturating_add(count);
        for call in uses.uses.iter().filter(|call| call.is_call) {
            for callee in call.definitions.iter().map(|at| &uses.definitions[*at]) {
                let item = CallItem {
                    name: callee.name.clone(),
                    kind: callee.kind.clone(),
                    container: callee.container.clone(),
                    path: callee.path.clone(),
                    line: callee.start_line,
                    steps,
                    via,
                    confidence: confidence(call.confidence),
                    lines: vec![call.line],
                };
                self.add(item, Some(callee.clone()));
            }
        }
        Ok(())
    }

    /// Adds a definition, or further calls of one that is listed at the same place of the walk.
    fn add(&mut self, item: CallItem, symbol: Option<SymbolItem>) {
        let key = (item.path.clone(), item.line);
        let Some(at) = self.known.get(&key) else {
            self.known.insert(key, self.items.len());
            self.items.push(item);
            self.symbols.push(symbol);
            return;
        };
        let old = &mut self.items[*at];
        if (old.steps, old.via) != (item.steps, item.via) {
            return;
        }
        old.confidence = old.confidence.min(item.confidence);
        for line in item.lines {
            if old.lines.len() < MAX_LINES && !old.lines.contains(&line) {
                old.lines.push(line);
            }
        }
    }

    fn outline(&mut self, path: &str) -> Result<&[SymbolItem], Failure> {
        if !self.outlines.contains_key(path) {
            let table = &self.resolved.table;
            let outline = match self.resolved.id(path) {
                Some(id) => of_file(self.conn, self.index, table, table.files[id as usize].id)?,
                None => Vec::new(),
            };
            self.outlines.insert(path.to_owned(), outline);
        }
        Ok(&self.outlines[path])
    }

    /// The innermost function around a call, else the innermost other definition.
    fn enclosing(&mut self, call: &ReferenceItem) -> Result<Option<SymbolItem>, Failure> {
        let outline = self.outline(&call.path)?;
        let is_around = |item: &&SymbolItem| {
            (item.start_line..=item.end_line).contains(&call.line)
                && !["module", "section"].contains(&item.kind.as_str())
        };
        let is_function = |item: &&SymbolItem| {
            ["function", "method", "constructor", "macro"].contains(&item.kind.as_str())
        };
        let around = || outline.iter().filter(is_around);
        let innermost = around().rfind(is_function).or_else(|| around().next_back());
        Ok(innermost.cloned())
    }
}

fn confidence(confidence: Confidence) -> ReferenceConfidence {
    match confidence {
        Confidence::Exact => ReferenceConfidence::Exact,
        Confidence::Likely => ReferenceConfidence::Likely,
        Confidence::Ambiguous => ReferenceConfidence::Ambiguous,
    }
}
