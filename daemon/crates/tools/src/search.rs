//! The search tools: by lines, by words, by meaning, by both, by name.

use std::sync::Arc;

use cairn_harness::{Permit, Tool};
use cairn_protocol::{
    calls::{CallsAnswer, CallsParams},
    error::{Failure, Reason},
    search::{
        GrepParams, ImpactParams, ReferencesParams, SearchFilters, SearchParams, SymbolsParams,
    },
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    Deps,
    narrow::{exclude, narrow},
    reading::reading,
};

/// Limits a search to the session's root, unless it names roots itself, and to the run's paths: a
/// wider search returns only results inside them.
pub fn scope(permit: &Permit, filters: &mut Option<SearchFilters>) -> Result<(), Failure> {
    let filters = filters.get_or_insert_default();
    if filters.roots.is_empty()
        && let Some(root) = permit.root()
    {
        filters.roots.push(root.id.to_string());
    }
    let path_prefix = filters.path_prefix.take().unwrap_or_else(|| ".".into());
    let mut parts = None;
    for root in &filters.roots {
        let target;
        (target, parts) = permit.resolve_with_parts(&path_prefix, Some(root))?;
        // The target of a path is known for a single root; of several each has its own.
        let prefix = if filters.roots.len() == 1 { target.real() } else { target.requested() };
        filters.path_prefix = (prefix != ".").then(|| prefix.to_owned());
    }
    filters.globs.extend(permit.hidden_paths()?.iter().flat_map(|path| exclude(path)));
    parts.map_or(Ok(()), |parts| narrow(filters, &parts))
}

pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    let grep = reading(
        deps,
        "search_grep",
        "Finds lines by text or regular expression, in all text files of the root.",
        "grep_answer",
        |deps, permit, mut params: GrepParams, flag| {
            let prefix = params.path_prefix.clone();
            let filters = params.filters.get_or_insert_default();
            filters.path_prefix = filters.path_prefix.take().or(prefix);
            scope(permit, &mut params.filters)?;
            let answer = deps.indexes.grep(&params, flag)?;
            let cut = answer.truncated;
            Ok((answer, cut))
        },
    );
    let lexical = reading(
        deps,
        "search_lexical",
        "Finds passages by their words (BM25, identifiers split).",
        "search_answer",
        |deps, permit, mut params: SearchParams, flag| {
            scope(permit, &mut params.filters)?;
            Ok((deps.indexes.lexical(&params, flag, &|_| ())?, false))
        },
    );
    let semantic = reading(
        deps,
        "search_semantic",
        "Finds passages by meaning.",
        "search_answer",
        |deps, permit, mut params: SearchParams, flag| {
            scope(permit, &mut params.filters)?;
            Ok((deps.indexes.semantic(&params, flag, &|_| ())?, false))
        },
    );
    let hybrid = reading(
        deps,
        "search_hybrid",
        "Finds passages by words and meaning together: the best first choice for a question about code.",
        "search_answer",
        |deps, permit, mut params: SearchParams, flag| {
            scope(permit, &mut params.filters)?;
            Ok((deps.indexes.hybrid(&params, flag, &|_| ())?, false))
        },
    );
    let symbols = reading(
        deps,
        "search_symbols",
        "Finds definitions by name, or gives the outline of a file.",
        "symbols_answer",
        |deps, permit, mut params: SymbolsParams, _| {
            scope(permit, &mut params.filters)?;
            Ok((deps.indexes.symbols(&params)?, false))
        },
    );
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(grep.narrowing()),
        Arc::new(lexical.narrowing()),
        Arc::new(semantic.narrowing()),
        Arc::new(hybrid.narrowing()),
        Arc::new(symbols.narrowing()),
    ];
    tools.extend(graph_tools(deps));
    tools
}

/// Refuses an answer about a file that the run may not read, as if the file did not exist.
fn require_visible(permit: &Permit, path: &str) -> Result<(), Failure> {
    if permit.shows(path) {
        return Ok(());
    }
    Err(Failure::new(Reason::PathNotFound, format!("'{path}' does not exist")))
}

/// The tools that answer from the graph of imports.
fn graph_tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    let references = reading(
        deps,
        "find_references",
        "Finds the uses of a definition by scope and imports: calls, types, imports, with certainty.",
        "references",
        |deps, permit, mut params: ReferencesParams, flag| {
            params.root = Some(permit.require_root()?.id.to_string());
            let mut answer = deps.indexes.references(&params, flag)?;
            require_visible(permit, &answer.definition.path)?;
            answer.items.retain(|item| permit.shows(&item.path));
            answer.others.retain(|item| permit.shows(&item.path));
            let is_cut = answer.truncated;
            Ok((answer, is_cut))
        },
    );
    let impact = reading(
        deps,
        "find_impact",
        "Lists the files that import a file, directly or by others.",
        "impact",
        |deps, permit, mut params: ImpactParams, _| {
            params.root = Some(permit.require_root()?.id.to_string());
            let mut answer = deps.indexes.impact(&params)?;
            require_visible(permit, &answer.path)?;
            answer.items.retain(|item| permit.shows(&item.path));
            let is_cut = answer.truncated;
            Ok((answer, is_cut))
        },
    );
    let calls = reading(
        deps,
        "find_calls",
        "Finds the callers of a definition, or with `direction` `callees` the definitions that it \
        calls, with certainty.",
        "calls",
        |deps, permit, args: FindCalls, flag| {
            let params = CallsParams {
                root: Some(permit.require_root()?.id.to_string()),
                symbol: args.symbol,
                path: args.path,
                line: args.line,
                depth: args.depth,
                k: args.k,
            };
            let mut answer = match args.direction {
                CallDirection::Callers => deps.indexes.callers(&params, flag)?,
                CallDirection::Callees => deps.indexes.callees(&params, flag)?,
            };
            require_visible(permit, &answer.definition.path)?;
            retain_visible(permit, &mut answer);
            let is_cut = answer.truncated;
            Ok((answer, is_cut))
        },
    );
    vec![Arc::new(references), Arc::new(impact), Arc::new(calls)]
}

/// Arguments of the tool `find_calls`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FindCalls {
    /// Name of the definition, as `name` or `Type.name`; with `path` the one in that file.
    symbol: Option<String>,
    /// File with the definition.
    path: Option<String>,
    /// Line of the definition in `path`, starting at 1.
    line: Option<u32>,
    /// The side of the calls that is listed.
    #[serde(default)]
    direction: CallDirection,
    /// Steps of calls that are followed, 1 to 5.
    #[serde(default = "one")]
    depth: u32,
    /// Maximum number of definitions, 1 to 2,000.
    #[serde(default = "hundred")]
    k: u32,
}

#[derive(Debug, Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CallDirection {
    /// The definitions that call it.
    #[default]
    Callers,
    /// The definitions that it calls.
    Callees,
}

fn one() -> u32 {
    1
}

fn hundred() -> u32 {
    100
}

/// Removes definitions that the run may not read, with those that are reached only through them.
fn retain_visible(permit: &Permit, answer: &mut CallsAnswer) {
    answer.others.retain(|item| permit.shows(&item.path));
    let mut positions: Vec<Option<u32>> = Vec::with_capacity(answer.items.len());
    let mut visible = Vec::new();
    for mut item in std::mem::take(&mut answer.items) {
        let via = item.via.map(|at| positions.get(at as usize).copied().flatten());
        let is_reached = via.is_none_or(|via| via.is_some());
        let position = u32::try_from(visible.len()).ok();
        if !is_reached || !permit.shows(&item.path) {
            positions.push(None);
            continue;
        }
        item.via = via.flatten();
        positions.push(position);
        visible.push(item);
    }
    answer.items = visible;
}
