//! Built-in tools for searching and reading: search, lines, symbols, spans, the map; uses and
//! dependents are in [`references`]. They call API methods and answer with short texts.

use std::time::Duration;

use cairn_protocol::{
    content::{Span, SpanParams},
    error::{Failure, Reason},
    map::{MapAnswer, MapParams},
    search::{
        GrepAnswer, GrepParams, MAX_K, SearchAnswer, SearchFilters, SearchParams, SymbolsAnswer,
        SymbolsParams,
    },
};
use rmcp::model::{Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    client::Client,
    explore,
    format::{self, LocationStyle},
    references,
    server::simplify_schema,
};

/// Results of `search`: default and maximum.
const RESULT_LIMITS: (u32, u32) = (10, 50);
/// Lines of `search_lines`: default and maximum.
const LINE_LIMITS: (u32, u32) = (50, 500);
/// Definitions of `symbols`: default and maximum.
const SYMBOL_LIMITS: (u32, u32) = (30, 200);
/// Maximum lines of one span, sized for a model's context.
const MAX_SPAN_LINES: u32 = 400;

/// Time to wait for results while an index is being created, and the interval of retries.
const INDEX_WAIT: Duration = Duration::from_secs(10);
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

pub struct BuiltinTool {
    name: &'static str,
    title: &'static str,
    text: &'static str,
    schema: fn() -> Value,
    /// Set if the tool uses more than the declared roots.
    open_world: bool,
}

fn schema<P: JsonSchema>() -> Value {
    schemars::schema_for!(P).to_value()
}

const BUILTIN_TOOLS: &[BuiltinTool] = &[
    BuiltinTool {
        name: "search",
        title: "Search code",
        text: "Finds passages by words and meaning together: the first choice for a question about \
            code. Takes a question in plain words, names, or both. Returns ranked locations, \
            `path:first-last`, the enclosing definition and their most informative line; `text` adds \
            the passages themselves. Get more with `k` or the cursor at the end.",
        schema: schema::<Search>,
        open_world: false,
    },
    BuiltinTool {
        name: "search_lines",
        title: "Search lines",
        text: "Finds every line that matches a text or a regular expression, by path. Use it for exact \
            names and messages, and when all occurrences are needed. Returns `path:line: text`.",
        schema: schema::<Lines>,
        open_world: false,
    },
    BuiltinTool {
        name: "symbols",
        title: "Find definitions",
        text: "Finds definitions (functions, types, constants) by name; with `path` and no `query` it \
            returns the outline of that file. Returns `path:first-last kind name`.",
        schema: schema::<Symbols>,
        open_world: false,
    },
    BuiltinTool {
        name: "read_span",
        title: "Read lines",
        text: "Reads lines of a file, with their numbers. Use it on the locations that a search returns.",
        schema: schema::<ReadSpan>,
        open_world: false,
    },
    BuiltinTool {
        name: "repo_map",
        title: "Map of a repository",
        text: "Shows a map of a repository: its most informative files and their definitions, within a \
            number of tokens. With `files` or `query` it is centred on the current task.",
        schema: schema::<RepoMap>,
        open_world: false,
    },
    BuiltinTool {
        name: "references",
        title: "Find uses, callers and callees",
        text: "Finds the uses of a definition by scope and imports, not by text: calls, types, imports, \
            reads and writes, each with its certainty. `kind` `callers` or `callees` gives the \
            definitions that call it, or that it calls. Use it before a change of a signature.",
        schema: schema::<references::References>,
        open_world: false,
    },
    BuiltinTool {
        name: "impact",
        title: "Find dependent files",
        text: "Lists the files that import a file, directly or by others, nearest first. Use it before \
            a change that others may depend on.",
        schema: schema::<references::Impact>,
        open_world: false,
    },
    BuiltinTool {
        name: explore::NAME,
        title: "Explore a project",
        text: "Explores a project and summarizes it: purpose, languages, entrypoints, commands to build \
            and test, files to read first, answers to goals. Takes seconds to a minute and reports its \
            progress.",
        schema: schema::<explore::Explore>,
        open_world: false,
    },
];

pub fn find(name: &str) -> Option<&'static BuiltinTool> {
    BUILTIN_TOOLS.iter().find(|tool| tool.name == name)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    BUILTIN_TOOLS.iter().map(|tool| tool.name)
}

/// Renders the tools as MCP defines them.
pub fn tools() -> Vec<Tool> {
    let tool = |builtin_tools: &BuiltinTool| {
        let hints = ToolAnnotations::new()
            .read_only(true)
            .destructive(false)
            .open_world(builtin_tools.open_world);
        Tool::new(builtin_tools.name, builtin_tools.text, simplify_schema((builtin_tools.schema)()))
            .with_title(builtin_tools.title)
            .with_annotations(hints)
    };
    BUILTIN_TOOLS.iter().map(tool).collect()
}

/// Arguments of the tool `search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// The search query: a question in plain words, names, or both.
    query: String,
    /// Number of results, 1 to 50; 10 by default.
    k: Option<u32>,
    /// Only under this path, relative to the root.
    path: Option<String>,
    /// Only files that match one of these globs; a glob that starts with `!` excludes files.
    #[serde(default)]
    globs: Vec<String>,
    /// Only these languages, such as `rust`.
    #[serde(default)]
    languages: Vec<String>,
    /// Set to return the passages themselves.
    #[serde(default)]
    text: bool,
    /// Position to continue at, from the end of an answer.
    cursor: Option<String>,
    /// The root to search, an id or a path; see the resource `cairn://roots`.
    root: Option<String>,
}

/// Arguments of the tool `search_lines`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Lines {
    /// The text, or a regular expression with `regex`.
    pattern: String,
    /// Set if `pattern` is a regular expression.
    #[serde(default)]
    regex: bool,
    /// Set to ignore case.
    #[serde(default)]
    ignore_case: bool,
    /// Set to match whole words only.
    #[serde(default)]
    word: bool,
    /// Only under this path, relative to the root.
    path: Option<String>,
    /// Only files that match one of these globs; a glob that starts with `!` excludes files.
    #[serde(default)]
    globs: Vec<String>,
    /// Lines before and after each match, at most 20.
    #[serde(default)]
    context: u32,
    /// Number of lines, 1 to 500; 50 by default.
    k: Option<u32>,
    /// Position to continue at, from the end of an answer.
    cursor: Option<String>,
    /// The root to search, an id or a path.
    root: Option<String>,
}

/// Arguments of the tool `symbols`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Symbols {
    /// A name, or the beginning of one.
    query: Option<String>,
    /// The file of an outline; with `query`, only definitions under this path.
    path: Option<String>,
    /// Only these kinds: `function`, `method`, `class`, `struct`, `enum`, `interface`, `constant`,
    /// …
    #[serde(default)]
    kinds: Vec<String>,
    /// Number of definitions, 1 to 200; 30 by default.
    k: Option<u32>,
    /// The root to search, an id or a path.
    root: Option<String>,
}

/// Arguments of the tool `read_span`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadSpan {
    /// The file, relative to the root or absolute.
    path: String,
    /// First line, from 1; 1 by default.
    start: Option<u32>,
    /// Last line; by default, and at most, 399 lines after the first.
    end: Option<u32>,
    /// Lines before and after, at most 50.
    context: Option<u32>,
    /// The root of a relative path, an id or a path.
    root: Option<String>,
}

/// Arguments of the tool `repo_map`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RepoMap {
    /// Size in tokens, 100 to 8,000; 1,024 by default.
    budget: Option<u32>,
    /// Files being worked on; the files and definitions that they refer to come first.
    #[serde(default)]
    files: Vec<String>,
    /// The current task, in words or names.
    query: Option<String>,
    /// The root, an id or a path; all roots by default.
    root: Option<String>,
}

/// Parses the arguments of a tool.
///
/// # Errors
/// `invalid_params` that names the invalid argument.
pub fn arguments<P: DeserializeOwned>(tool: &str, arguments: Value) -> Result<P, Failure> {
    serde_json::from_value(arguments).map_err(|e| {
        Failure::new(Reason::InvalidParams, format!("{tool}: {e}; see the tool's input schema"))
    })
}

/// Calls a built-in tool.
///
/// # Errors
/// The errors of the underlying call.
pub async fn call(client: &Client, name: &str, input: Value) -> Result<String, Failure> {
    match name {
        "search" => search(client, arguments(name, input)?).await,
        "search_lines" => lines(client, arguments(name, input)?).await,
        "symbols" => symbols(client, arguments(name, input)?).await,
        "read_span" => read_span(client, arguments(name, input)?).await,
        "references" => references::references(client, arguments(name, input)?).await,
        "impact" => references::impact(client, arguments(name, input)?).await,
        "repo_map" => repo_map(client, arguments(name, input)?).await,
        _ => Err(Failure::new(
            Reason::UnknownTool,
            format!("there is no tool '{}'", name.escape_default()),
        )),
    }
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
    let bad =
        || Failure::new(Reason::InvalidParams, "search: cursor: it was not returned by a search");
    cursor.parse().ok().filter(|n| *n < MAX_K).ok_or_else(bad)
}

async fn search(client: &Client, args: Search) -> Result<String, Failure> {
    let (roots, style) = scope(client, args.root.as_deref()).await?;
    let from = offset(args.cursor.as_deref())?;
    let k = args.k.unwrap_or(RESULT_LIMITS.0).clamp(1, RESULT_LIMITS.1);
    let filters = SearchFilters {
        languages: args.languages,
        path_prefix: args.path,
        globs: args.globs,
        roots,
        kinds: vec![],
    };
    // One more than the page size shows whether there is a next page.
    let params = SearchParams {
        k: (from + k + 1).min(MAX_K),
        filters: Some(filters),
        include_text: true,
        ..SearchParams::new(args.query)
    };
    let request = || client.api.request::<SearchAnswer>("search.hybrid", &params);
    let answer = retry_while_indexing(request, |a| a.items.is_empty() && !a.complete).await?;
    Ok(format::passages(&answer, &style, from as usize, k as usize, args.text))
}

async fn lines(client: &Client, args: Lines) -> Result<String, Failure> {
    let (roots, style) = scope(client, args.root.as_deref()).await?;
    let flags = [(args.ignore_case, "ignore_case"), (args.word, "word")];
    let params = GrepParams {
        pattern: args.pattern,
        path_prefix: args.path,
        is_regex: args.regex,
        flags: flags.iter().filter(|(on, _)| *on).map(|(_, name)| (*name).to_owned()).collect(),
        k: args.k.unwrap_or(LINE_LIMITS.0).clamp(1, LINE_LIMITS.1),
        filters: Some(SearchFilters { globs: args.globs, roots, ..SearchFilters::default() }),
        count_only: false,
        context_lines: args.context,
        cursor: args.cursor,
        request_id: None,
    };
    let answer: GrepAnswer = client.api.request("search.grep", &params).await?;
    Ok(format::lines(&answer, &style))
}

async fn symbols(client: &Client, args: Symbols) -> Result<String, Failure> {
    let (roots, style) = scope(client, args.root.as_deref()).await?;
    let outline = args.query.is_none();
    let filters = SearchFilters {
        path_prefix: args.path.clone().filter(|_| !outline),
        roots,
        kinds: args.kinds,
        ..SearchFilters::default()
    };
    let params = SymbolsParams {
        query: args.query,
        path: args.path.filter(|_| outline),
        matching: None,
        k: args
            .k
            .unwrap_or(if outline { SYMBOL_LIMITS.1 } else { SYMBOL_LIMITS.0 })
            .clamp(1, SYMBOL_LIMITS.1),
        filters: Some(filters),
    };
    let request = || client.api.request::<SymbolsAnswer>("search.symbols", &params);
    let answer = retry_while_indexing(request, |a| a.items.is_empty() && !a.complete).await?;
    Ok(format::symbols(&answer, &style, params.k as usize))
}

async fn read_span(client: &Client, args: ReadSpan) -> Result<String, Failure> {
    let root = match args.path.starts_with('/') {
        true => None,
        false => client.root(args.root.as_deref()).await?.map(|r| r.root.to_string()),
    };
    let start = args.start.unwrap_or(1).max(1);
    let last = start.saturating_add(MAX_SPAN_LINES - 1);
    let end = args.end.unwrap_or(last).min(last);
    let cut = args.end.is_some_and(|end| end > last);
    let params =
        SpanParams { path: args.path, root, start, end, context: args.context, content_hash: None };
    let span: Span = client.api.request("content.getSpan", &params).await?;
    Ok(format::span(&span, cut || args.end.is_none()))
}

async fn repo_map(client: &Client, args: RepoMap) -> Result<String, Failure> {
    let (roots, _) = scope(client, args.root.as_deref()).await?;
    let params = MapParams {
        roots,
        budget: args.budget.unwrap_or(1024).clamp(100, 8000),
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
    fn every_tool_has_a_schema() {
        for tool in tools() {
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
            assert!(tool.input_schema.get("$schema").is_none() && find(&tool.name).is_some());
            let properties = tool.input_schema["properties"].as_object().unwrap();
            assert!(properties.values().all(|p| p.get("description").is_some()), "{}", tool.name);
        }
    }

    #[test]
    fn foreign_cursor_is_rejected() {
        assert_eq!((offset(None).unwrap(), offset(Some("10")).unwrap()), (0, 10));
        for wrong in ["", "x", "-1", "200", "99999999999"] {
            assert_eq!(offset(Some(wrong)).unwrap_err().reason, Reason::InvalidParams, "{wrong}");
        }
    }
}
