//! Default tools that search and read: passages, lines, definitions, files, the map. Uses and
//! dependents are in [`super::references`].

use std::{sync::Arc, time::Duration};

use cairn_protocol::{
    content::{Span, SpanParams},
    error::{Failure, Reason},
    map::{MapAnswer, MapParams},
    search::{
        GrepAnswer, GrepParams, MAX_K, SearchAnswer, SearchFilters, SearchParams, SymbolsAnswer,
        SymbolsParams,
    },
    tool::{ToolCallParams, ToolResult},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::{
    client::Client,
    format::{self, Budget, LocationStyle},
};

/// Results of `search`: default and maximum.
const RESULT_LIMITS: (u32, u32) = (8, 50);
/// Lines of `grep`: default and maximum.
const LINE_LIMITS: (u32, u32) = (50, 500);
/// Definitions of `symbols`: default and maximum.
const SYMBOL_LIMITS: (u32, u32) = (30, 200);
/// Most lines that one call of `read` returns; the budget usually ends it before.
const MAX_READ_LINES: u32 = 1000;
/// Tokens of a map by default.
const MAP_TOKENS: u32 = 1024;

/// Time to wait for results while an index is being created, and the interval of retries.
const INDEX_WAIT: Duration = Duration::from_secs(10);
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Arguments of the tool `search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Search {
    /// A short question, names, or both.
    query: String,
    /// Only under this folder or file.
    path: Option<String>,
    lang: Option<String>,
    /// Results, 1 to 50; 8 by default.
    k: Option<u32>,
    max_tokens: Option<u32>,
    cursor: Option<String>,
    root: Option<String>,
}

/// Arguments of the tool `grep`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Grep {
    /// A regular expression, unless `fixedStrings`.
    pattern: String,
    path: Option<String>,
    /// Such as `*.rs`; `!` excludes.
    glob: Option<String>,
    /// Takes `pattern` as text.
    #[serde(default)]
    fixed_strings: bool,
    #[serde(default)]
    ignore_case: bool,
    /// Lines around each match, to 20.
    context: Option<u32>,
    /// Lines, 1 to 500; 50 by default.
    k: Option<u32>,
    max_tokens: Option<u32>,
    cursor: Option<String>,
    root: Option<String>,
}

/// Arguments of the tool `symbols`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Symbols {
    /// A name or a part of one.
    query: Option<String>,
    path: Option<String>,
    /// Such as `function` or `struct`.
    kind: Option<String>,
    k: Option<u32>,
    max_tokens: Option<u32>,
    root: Option<String>,
}

/// Arguments of the tool `read`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Read {
    path: String,
    /// The first line, from 1.
    line: Option<u32>,
    /// The number of lines to return.
    lines: Option<u32>,
    max_tokens: Option<u32>,
    root: Option<String>,
}

/// Arguments of the tool `map`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Map {
    /// The task at hand.
    query: Option<String>,
    /// Files being worked on.
    #[serde(default)]
    files: Vec<String>,
    max_tokens: Option<u32>,
    root: Option<String>,
}

/// Selects the roots of a call and the form of its locations.
async fn scope(
    client: &Client,
    named: Option<&str>,
) -> Result<(Vec<String>, LocationStyle), Failure> {
    match client.root(named).await? {
        Some(root) => Ok((vec![root.root.to_string()], LocationStyle::Relative)),
        None => Ok((vec![], LocationStyle::Absolute(client.roots().await?))),
    }
}

/// Retries for a while if an index that is being created has no results yet: an agent's first
/// question often comes right after its root was declared.
async fn retry_while_indexing<A, W: Future<Output = Result<A, Failure>>>(
    request: impl Fn() -> W,
    is_too_early: impl Fn(&A) -> bool,
) -> Result<A, Failure> {
    let until = Instant::now() + INDEX_WAIT;
    loop {
        let answer = request().await?;
        if !is_too_early(&answer) || Instant::now() >= until {
            return Ok(answer);
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

/// Parses a cursor of `search`.
fn offset(cursor: Option<&str>) -> Result<u32, Failure> {
    let Some(cursor) = cursor else { return Ok(0) };
    let bad = || {
        let text = "search: 'cursor' was not returned by a search; leave it out to start over";
        Failure::new(Reason::InvalidParams, text)
    };
    cursor.parse().ok().filter(|n| *n < MAX_K).ok_or_else(bad)
}

/// Returns the limit of results for a requested number.
fn limited(requested: Option<u32>, (default, most): (u32, u32)) -> u32 {
    requested.unwrap_or(default).clamp(1, most)
}

pub async fn search(client: &Client, args: Search) -> Result<String, Failure> {
    let (roots, _) = scope(client, args.root.as_deref()).await?;
    let from = offset(args.cursor.as_deref())?;
    let k = limited(args.k, RESULT_LIMITS);
    let filters = SearchFilters {
        languages: args.lang.into_iter().collect(),
        path_prefix: args.path,
        roots,
        ..SearchFilters::default()
    };
    let k = k.min(MAX_K - from);
    let params = SearchParams {
        k,
        offset: from,
        max_tokens: Some(Budget::tokens(args.max_tokens).token_count()),
        filters: Some(filters),
        ..SearchParams::new(args.query)
    };
    let request = || client.api.request::<SearchAnswer>("search.hybrid", &params);
    let answer = retry_while_indexing(request, |a| a.items.is_empty() && !a.complete).await?;
    let is_full = answer.items.len() == k as usize && from + k < MAX_K;
    Ok(format::passages(&answer, is_full.then_some(from + k)))
}

pub async fn grep(client: &Client, args: Grep) -> Result<String, Failure> {
    let (roots, style) = scope(client, args.root.as_deref()).await?;
    let flags = if args.ignore_case { vec!["ignore_case".to_owned()] } else { vec![] };
    let globs = args.glob.into_iter().collect();
    let mut params = GrepParams {
        pattern: args.pattern,
        path_prefix: args.path,
        is_regex: !args.fixed_strings,
        flags,
        k: limited(args.k, LINE_LIMITS),
        filters: Some(SearchFilters { globs, roots, ..SearchFilters::default() }),
        count_only: false,
        context_lines: args.context.unwrap_or(0),
        cursor: args.cursor,
        request_id: None,
    };
    let budget = Budget::tokens(args.max_tokens);
    let mut answer: GrepAnswer = client.api.request("search.grep", &params).await?;
    let fitting = format::fitting_lines(&answer, &style, budget);
    if fitting < answer.items.len() {
        // The cursor of a shorter page continues after the last line that fits.
        params.k = u32::try_from(fitting.max(1)).unwrap_or(1);
        answer = client.api.request("search.grep", &params).await?;
    }
    Ok(format::lines(&answer, &style, budget))
}

pub async fn symbols(client: &Client, args: Symbols) -> Result<String, Failure> {
    if args.query.is_none() && args.path.is_none() {
        let text = "symbols: give 'query' for a name, 'path' for the outline of a file, or both";
        return Err(Failure::new(Reason::InvalidParams, text));
    }
    let (roots, style) = scope(client, args.root.as_deref()).await?;
    let outline = args.query.is_none();
    let filters = SearchFilters {
        path_prefix: args.path.clone().filter(|_| !outline),
        roots,
        kinds: args.kind.into_iter().collect(),
        ..SearchFilters::default()
    };
    let default = if outline { SYMBOL_LIMITS.1 } else { SYMBOL_LIMITS.0 };
    let params = SymbolsParams {
        query: args.query,
        path: args.path.filter(|_| outline),
        matching: None,
        k: limited(args.k, (default, SYMBOL_LIMITS.1)),
        filters: Some(filters),
    };
    let request = || client.api.request::<SymbolsAnswer>("search.symbols", &params);
    let answer = retry_while_indexing(request, |a| a.items.is_empty() && !a.complete).await?;
    let budget = Budget::tokens(args.max_tokens);
    Ok(format::symbols(&answer, &style, params.k as usize, budget))
}

/// Reads lines. In the root of the client's session the registered tool reads, so that the session
/// has seen the file when it is edited next.
pub async fn read(client: &Arc<Client>, args: Read) -> Result<String, Failure> {
    let start = args.line.unwrap_or(1).max(1);
    let lines = limited(args.lines, (MAX_READ_LINES, MAX_READ_LINES));
    let budget = Budget::tokens(args.max_tokens);
    let is_bounded = args.lines.is_some();
    let own = client.root(None).await?;
    let named = match &args.root {
        Some(named) => client.root(Some(named)).await?,
        None => own.clone(),
    };
    let is_own = own.is_some() && own.map(|r| r.root) == named.as_ref().map(|r| r.root.clone());
    if is_own {
        let arguments = json!({"path": args.path, "offset": start, "limit": lines});
        let session_id = client.session().await?;
        let params = ToolCallParams { session_id, name: "read_file".to_owned(), arguments };
        let result: ToolResult = client.api.request("tool.call", &params).await?;
        return format::file(&args.path, result, start, is_bounded, budget);
    }
    let params = SpanParams {
        root: named.map(|r| r.root.to_string()).filter(|_| !args.path.starts_with('/')),
        path: args.path,
        start,
        end: start.saturating_add(lines - 1),
        context: None,
        content_hash: None,
    };
    let span: Span = client.api.request("content.getSpan", &params).await?;
    Ok(format::span(&span, is_bounded, budget))
}

pub async fn map(client: &Client, args: Map) -> Result<String, Failure> {
    let (roots, _) = scope(client, args.root.as_deref()).await?;
    let params = MapParams {
        roots,
        budget: args.max_tokens.unwrap_or(MAP_TOKENS).clamp(100, 8000),
        files: args.files,
        query: args.query,
    };
    let request = || client.api.request::<MapAnswer>("search.map", &params);
    let answer = retry_while_indexing(request, |a| a.text.is_empty() && !a.complete).await?;
    Ok(format::map(&answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_cursor_is_rejected() {
        assert_eq!((offset(None).unwrap(), offset(Some("10")).unwrap()), (0, 10));
        for wrong in ["", "x", "-1", "200", "99999999999"] {
            assert_eq!(offset(Some(wrong)).unwrap_err().reason, Reason::InvalidParams, "{wrong}");
        }
    }
}
