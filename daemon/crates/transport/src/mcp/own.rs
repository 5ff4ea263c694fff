//! The tools of looking: search, lines, symbols, spans, the map. They are calls of the API, their answers short texts.

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
    server::slim,
    shape::{self, Places},
};

/// Results of a search when nothing is said, and most of them.
const RESULTS: (u32, u32) = (10, 50);
/// Lines of `search_lines` when nothing is said, and most of them.
const LINES: (u32, u32) = (50, 500);
/// Definitions when nothing is said, and most of them.
const SYMBOLS: (u32, u32) = (30, 200);
/// Most lines of one span: what a model can take at once.
const SPAN: u32 = 400;

/// How long an answer is waited for while an index is begun, and the pauses between.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(100);

/// A tool of this server.
pub struct Own {
    name: &'static str,
    title: &'static str,
    text: &'static str,
    schema: fn() -> Value,
    /// Whether it uses more than what is declared here.
    open_world: bool,
}

fn schema<P: JsonSchema>() -> Value {
    schemars::schema_for!(P).to_value()
}

const OWN: &[Own] = &[
    Own {
        name: "search",
        title: "Search code",
        text: "Finds passages by words and meaning together: the first choice for a question about code. Takes a question in plain \
               words, names, or both. Answers with ranked places, `path:first-last`, the definition they lie in and their most \
               telling line; `text` adds the passages themselves. Ask for more with `k` or the cursor at the end.",
        schema: schema::<Search>,
        open_world: false,
    },
    Own {
        name: "search_lines",
        title: "Search lines",
        text: "Finds every line with a text or a regular expression, by path. Use it for exact names and messages, and where all \
               places are wanted. Answers with `path:line: text`.",
        schema: schema::<Lines>,
        open_world: false,
    },
    Own {
        name: "symbols",
        title: "Find definitions",
        text: "Finds definitions (functions, types, constants) by name; with `path` and no `query` it gives the outline of that file. \
               Answers with `path:first-last kind name`.",
        schema: schema::<Symbols>,
        open_world: false,
    },
    Own {
        name: "read_span",
        title: "Read lines",
        text: "Reads lines of a file, with their numbers. Use it on the places that a search gives.",
        schema: schema::<ReadSpan>,
        open_world: false,
    },
    Own {
        name: "repo_map",
        title: "Map of a repository",
        text: "Draws the map of a repository: its most telling files and their definitions, within a number of tokens. With `files` or \
               `query` it is drawn around what is being worked on.",
        schema: schema::<RepoMap>,
        open_world: false,
    },
    Own {
        name: explore::NAME,
        title: "Explore a project",
        text: "Explores a project and sums it up: what it is, languages, entrypoints, commands to build and test, files to read first, \
               answers to goals. Takes seconds to a minute and tells its progress.",
        schema: schema::<explore::Explore>,
        open_world: false,
    },
];

/// The tool of that name, when it is one of these.
pub fn find(name: &str) -> Option<&'static Own> {
    OWN.iter().find(|own| own.name == name)
}

/// Names of all of them.
pub fn names() -> impl Iterator<Item = &'static str> {
    OWN.iter().map(|own| own.name)
}

/// All of them as MCP has them.
pub fn tools() -> Vec<Tool> {
    let tool = |own: &Own| {
        let hints = ToolAnnotations::new().read_only(true).destructive(false).open_world(own.open_world);
        Tool::new(own.name, own.text, slim((own.schema)())).with_title(own.title).with_annotations(hints)
    };
    OWN.iter().map(tool).collect()
}

/// Arguments of `search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// What is looked for: a question in plain words, names, or both.
    query: String,
    /// Places wanted, 1 to 50; 10 by default.
    k: Option<u32>,
    /// Only under this path, relative to the root.
    path: Option<String>,
    /// Only files that fit one of these globs; with `!` in front, none of them.
    #[serde(default)]
    globs: Vec<String>,
    /// Only these languages, such as `rust`.
    #[serde(default)]
    languages: Vec<String>,
    /// Whether the passages themselves are wanted.
    #[serde(default)]
    text: bool,
    /// Where to go on, from the end of an answer.
    cursor: Option<String>,
    /// The root to search, an id or a path; see the resource `cairn://roots`.
    root: Option<String>,
}

/// Arguments of `search_lines`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Lines {
    /// The text, or a regular expression with `regex`.
    pattern: String,
    /// Whether `pattern` is a regular expression.
    #[serde(default)]
    regex: bool,
    /// Whether capital and small letters are the same.
    #[serde(default)]
    ignore_case: bool,
    /// Whether only whole words count.
    #[serde(default)]
    word: bool,
    /// Only under this path, relative to the root.
    path: Option<String>,
    /// Only files that fit one of these globs; with `!` in front, none of them.
    #[serde(default)]
    globs: Vec<String>,
    /// Lines before and after each, at most 20.
    #[serde(default)]
    context: u32,
    /// Lines wanted, 1 to 500; 50 by default.
    k: Option<u32>,
    /// Where to go on, from the end of an answer.
    cursor: Option<String>,
    /// The root to search, an id or a path.
    root: Option<String>,
}

/// Arguments of `symbols`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Symbols {
    /// A name, or what it begins with.
    query: Option<String>,
    /// The file of an outline; with `query`, only definitions under this path.
    path: Option<String>,
    /// Only these kinds: `function`, `method`, `class`, `struct`, `enum`, `interface`, `constant`, …
    #[serde(default)]
    kinds: Vec<String>,
    /// Definitions wanted, 1 to 200; 30 by default.
    k: Option<u32>,
    /// The root to search, an id or a path.
    root: Option<String>,
}

/// Arguments of `read_span`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadSpan {
    /// The file, relative to the root or absolute.
    path: String,
    /// First line, from 1; 1 by default.
    start: Option<u32>,
    /// Last line; 399 lines after the first by default, which is also the most.
    end: Option<u32>,
    /// Lines before and after, at most 50.
    context: Option<u32>,
    /// The root of a relative path, an id or a path.
    root: Option<String>,
}

/// Arguments of `repo_map`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RepoMap {
    /// Tokens it may take, 100 to 8,000; 1,024 by default.
    budget: Option<u32>,
    /// Files being worked on: what they refer to comes first.
    #[serde(default)]
    files: Vec<String>,
    /// What is being worked on, in words or names.
    query: Option<String>,
    /// The root, an id or a path; all roots by default.
    root: Option<String>,
}

/// The arguments of a tool.
///
/// # Errors
/// `invalid_params` that names the wrong one.
pub fn arguments<P: DeserializeOwned>(tool: &str, arguments: Value) -> Result<P, Failure> {
    serde_json::from_value(arguments)
        .map_err(|e| Failure::new(Reason::InvalidParams, format!("{tool}: {e}; see the tool's input schema")))
}

/// Calls the tool `name`, one of these.
///
/// # Errors
/// What the call under it fails with.
pub async fn call(client: &Client, name: &str, given: Value) -> Result<String, Failure> {
    match name {
        "search" => search(client, arguments(name, given)?).await,
        "search_lines" => lines(client, arguments(name, given)?).await,
        "symbols" => symbols(client, arguments(name, given)?).await,
        "read_span" => read_span(client, arguments(name, given)?).await,
        "repo_map" => repo_map(client, arguments(name, given)?).await,
        _ => Err(Failure::new(Reason::UnknownTool, format!("there is no tool '{}'", name.escape_default()))),
    }
}

/// Where to look, and how places are named.
async fn scope(client: &Client, named: Option<&str>) -> Result<(Vec<String>, Places), Failure> {
    match client.root(named).await? {
        Some(root) => Ok((vec![root.root.to_string()], Places::Relative)),
        None => Ok((vec![], Places::Absolute(client.roots().await?))),
    }
}

/// Asks again for a while where an index that is being made has nothing yet: an agent's first question often comes right
/// after its root was declared.
async fn patient<A, W: Future<Output = Result<A, Failure>>>(
    ask: impl Fn() -> W,
    is_too_early: impl Fn(&A) -> bool,
) -> Result<A, Failure> {
    let until = Instant::now() + PATIENCE;
    loop {
        let answer = ask().await?;
        if !is_too_early(&answer) || Instant::now() >= until {
            return Ok(answer);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The page that a cursor of `search` names.
fn offset(cursor: Option<&str>) -> Result<u32, Failure> {
    let Some(cursor) = cursor else { return Ok(0) };
    let bad = || Failure::new(Reason::InvalidParams, "search: cursor: it is not one that an answer gave");
    cursor.parse().ok().filter(|n| *n < MAX_K).ok_or_else(bad)
}

async fn search(client: &Client, wanted: Search) -> Result<String, Failure> {
    let (roots, places) = scope(client, wanted.root.as_deref()).await?;
    let from = offset(wanted.cursor.as_deref())?;
    let k = wanted.k.unwrap_or(RESULTS.0).clamp(1, RESULTS.1);
    let filters = SearchFilters {
        languages: wanted.languages,
        path_prefix: wanted.path,
        globs: wanted.globs,
        roots,
        kinds: vec![],
    };
    // One more than is shown tells whether there is more.
    let params = SearchParams {
        k: (from + k + 1).min(MAX_K),
        filters: Some(filters),
        include_text: true,
        ..SearchParams::new(wanted.query)
    };
    let ask = || client.queue.ask::<SearchAnswer>("search.hybrid", &params);
    let answer = patient(ask, |a| a.items.is_empty() && !a.complete).await?;
    Ok(shape::passages(&answer, &places, from as usize, k as usize, wanted.text))
}

async fn lines(client: &Client, wanted: Lines) -> Result<String, Failure> {
    let (roots, places) = scope(client, wanted.root.as_deref()).await?;
    let flags = [(wanted.ignore_case, "ignore_case"), (wanted.word, "word")];
    let params = GrepParams {
        pattern: wanted.pattern,
        path_prefix: wanted.path,
        is_regex: wanted.regex,
        flags: flags.iter().filter(|(on, _)| *on).map(|(_, name)| (*name).to_owned()).collect(),
        k: wanted.k.unwrap_or(LINES.0).clamp(1, LINES.1),
        filters: Some(SearchFilters { globs: wanted.globs, roots, ..SearchFilters::default() }),
        count_only: false,
        context_lines: wanted.context,
        cursor: wanted.cursor,
        request_id: None,
    };
    let answer: GrepAnswer = client.queue.ask("search.grep", &params).await?;
    Ok(shape::lines(&answer, &places))
}

async fn symbols(client: &Client, wanted: Symbols) -> Result<String, Failure> {
    let (roots, places) = scope(client, wanted.root.as_deref()).await?;
    let outline = wanted.query.is_none();
    let filters = SearchFilters {
        path_prefix: wanted.path.clone().filter(|_| !outline),
        roots,
        kinds: wanted.kinds,
        ..SearchFilters::default()
    };
    let params = SymbolsParams {
        query: wanted.query,
        path: wanted.path.filter(|_| outline),
        matching: None,
        k: wanted.k.unwrap_or(if outline { SYMBOLS.1 } else { SYMBOLS.0 }).clamp(1, SYMBOLS.1),
        filters: Some(filters),
    };
    let ask = || client.queue.ask::<SymbolsAnswer>("search.symbols", &params);
    let answer = patient(ask, |a| a.items.is_empty() && !a.complete).await?;
    Ok(shape::symbols(&answer, &places, params.k as usize))
}

async fn read_span(client: &Client, wanted: ReadSpan) -> Result<String, Failure> {
    let root = match wanted.path.starts_with('/') {
        true => None,
        false => client.root(wanted.root.as_deref()).await?.map(|r| r.root.to_string()),
    };
    let start = wanted.start.unwrap_or(1).max(1);
    let last = start.saturating_add(SPAN - 1);
    let end = wanted.end.unwrap_or(last).min(last);
    let cut = wanted.end.is_some_and(|end| end > last);
    let params =
        SpanParams { path: wanted.path, root, start, end, context: wanted.context, content_hash: None };
    let span: Span = client.queue.ask("content.getSpan", &params).await?;
    Ok(shape::span(&span, cut || wanted.end.is_none()))
}

async fn repo_map(client: &Client, wanted: RepoMap) -> Result<String, Failure> {
    let (roots, _) = scope(client, wanted.root.as_deref()).await?;
    let params = MapParams {
        roots,
        budget: wanted.budget.unwrap_or(1024).clamp(100, 8000),
        files: wanted.files,
        query: wanted.query,
    };
    let ask = || client.queue.ask::<MapAnswer>("search.map", &params);
    let answer = patient(ask, |a| a.text.is_empty() && !a.complete).await?;
    Ok(shape::map(&answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_schema_and_is_found() {
        for tool in tools() {
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
            assert!(tool.input_schema.get("$schema").is_none() && find(&tool.name).is_some());
            let properties = tool.input_schema["properties"].as_object().unwrap();
            assert!(properties.values().all(|p| p.get("description").is_some()), "{}", tool.name);
        }
    }

    #[test]
    fn a_cursor_is_one_of_ours() {
        assert_eq!((offset(None).unwrap(), offset(Some("10")).unwrap()), (0, 10));
        for wrong in ["", "x", "-1", "200", "99999999999"] {
            assert_eq!(offset(Some(wrong)).unwrap_err().reason, Reason::InvalidParams, "{wrong}");
        }
    }
}
