//! The search tools: by lines, by words, by meaning, by both, by name.

use std::sync::Arc;

use cairn_harness::{Permit, Tool};
use cairn_protocol::{
    error::{Failure, Reason},
    search::{
        GrepParams, ImpactParams, ReferencesParams, SearchFilters, SearchParams, SymbolsParams,
    },
};

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
    vec![Arc::new(references), Arc::new(impact)]
}
