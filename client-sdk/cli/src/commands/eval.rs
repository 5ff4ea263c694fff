//! `cairn eval`: measures how well a search answers queries with known answers.

mod queries;
mod report;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
    time::Duration,
};

use cairn_client_sdk::Client;
use cairn_protocol::{
    index::{AddRootParams, IndexState, RootStatus},
    search::{PackedLines, SearchAnswer, SearchFilters, SearchItem, SearchParams},
};
use cairn_search_metrics::{self as metrics, ResultSpan, Scored};
use clap::Args;

use crate::{
    app::App,
    commands::search::Mode,
    exit::{Failure, OK},
    render::{output, progress::Progress},
    scope::{self, Location, Stage},
};
use queries::{Queries, Query};

/// Results that answers within a budget are packed of.
const PACKED_RESULTS: u32 = 50;
/// Time limit for indexing.
const INDEX_TIMEOUT: Duration = Duration::from_secs(3600);

const EXAMPLES: &str = "\
Each line of QUERIES is one query with its correct answers; their lines are optional:
  {\"query\": \"retry with backoff\", \"relevant\": [{\"path\": \"src/retry.rs\", \"start\": 1, \"end\": 9}]}
Optional fields: \"kind\", \"repo\" (groups of the table), \"query_id\", and \"skip\": true for a line to ignore.

Examples:
  cairn eval queries.jsonl
  cairn eval queries.jsonl --mode lexical --misses
  cairn eval queries.jsonl --budget 500,8000
  cairn eval queries.jsonl --repos ~/src          each query's \"repo\" is a folder below ~/src
  cairn --json eval queries.jsonl | jq '.overall[] | select(.kind == null)'

File level: each file counts once, where it came first. Span level, for queries with lines: a result is correct when
it shares half of the shorter range's lines and has at most 120 lines, or twice the answer's. R@k is found /
min(correct, k); R, MRR and nDCG look at the first 10; @200L and @400L are the share of queries answered before that
many lines were printed. @1k, @2k and @4k (--budget) are the recall of the lines in an answer of so many tokens, as
'cairn search --max-tokens' prints it: the share of the correct ranges of which it has at least half. Overall is the mean over the kinds of the means over the repositories; a group of fewer than
10 queries is excluded, unless all are.";

/// Arguments of `cairn eval`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct EvalArgs {
    /// A JSON lines file of queries with their answers
    #[arg(value_name = "QUERIES")]
    file: PathBuf,
    /// The root to search: its id or a folder
    #[arg(long, value_name = "PATH", conflicts_with = "repos")]
    root: Option<String>,
    /// A folder; each query's "repo" is a folder below it, which is declared and indexed
    #[arg(long, value_name = "FOLDER")]
    repos: Option<PathBuf>,
    /// Kind of search: words, meaning, or both
    #[arg(long, short, value_enum, default_value = "hybrid")]
    mode: Mode,
    /// Number of results; more than 100 are never scored
    #[arg(short, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100))]
    k: u32,
    /// Recall of the lines within answers of so many tokens, each a column
    #[arg(long, value_name = "TOKENS", value_delimiter = ',', default_values_t = [1000, 2000, 4000],
        value_parser = clap::value_parser!(u32).range(200..=100_000))]
    budget: Vec<u32>,
    /// List the queries without a correct answer among the first 10
    #[arg(long)]
    misses: bool,
    /// Write the results of each query to this file, as JSON by query_id
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
}

/// An answered query.
struct Answered {
    query: Query,
    scored: Scored,
    items: Vec<SearchItem>,
}

/// The result of an evaluation.
struct Outcome {
    answered: Vec<Answered>,
    skipped: usize,
    /// Notes for the reader, one per line.
    notes: Vec<String>,
}

pub async fn run(app: &App<'_>, args: EvalArgs) -> Result<u8, Failure> {
    let queries = queries::read(&args.file)?;
    check_groups(&queries, &args)?;
    let client = app.connect().await?;
    let roots = roots(app, &client, &queries, &args).await?;
    let outcome = answer(app, &client, queries, &roots, &args).await?;
    if let Some(path) = &args.answers {
        let text = serde_json::to_string(&report::answers(&outcome))
            .map_err(|e| Failure::failed(format!("the answers cannot be written as JSON: {e}")))?;
        std::fs::write(path, text).map_err(|e| Failure::path(path, &e))?;
    }
    let cells = metrics::cells(
        outcome.answered.iter().map(|a| (&*a.query.repo, &*a.query.kind, &a.scored)),
    );
    if app.globals.json {
        output::json(&report::json(&outcome, &cells, &args))?;
        return Ok(OK);
    }
    outcome.notes.iter().for_each(|info| app.info(info));
    let mut text = report::table(&cells, &args.budget);
    if args.misses {
        text.push_str(&report::misses(&outcome));
    }
    output::print(&text)?;
    Ok(OK)
}

/// Refuses queries that cannot all belong to the searched root.
fn check_groups(queries: &Queries, args: &EvalArgs) -> Result<(), Failure> {
    if args.repos.is_some() {
        for query in &queries.all {
            let inside =
                Path::new(&query.repo).components().all(|c| matches!(c, Component::Normal(_)));
            if !query.names_repo {
                return Err(at(query, &args.file, "no query names a repo, which --repos requires"));
            }
            if !inside || query.repo.is_empty() {
                return Err(at(
                    query,
                    &args.file,
                    &format!("repo '{}' is not the name of a folder", query.repo),
                ));
            }
        }
        return Ok(());
    }
    let names: BTreeSet<&str> = queries.all.iter().map(|a| &*a.repo).collect();
    if names.len() > 1 && args.root.is_none() {
        let names: Vec<&str> = names.into_iter().take(5).collect();
        let text = format!("the queries are of several repositories: {}", names.join(", "));
        return Err(Failure::usage(text).hint("specify the folder that contains them with --repos"));
    }
    Ok(())
}

fn at(query: &Query, file: &Path, what: &str) -> Failure {
    Failure::usage(format!("{} line {}: {what}", file.display(), query.line))
}

/// Returns the indexed root of each repository in the queries.
async fn roots(
    app: &App<'_>,
    client: &Client,
    queries: &Queries,
    args: &EvalArgs,
) -> Result<BTreeMap<String, RootStatus>, Failure> {
    let here = app.location(client).await?;
    let names: BTreeSet<&str> = queries.all.iter().map(|a| &*a.repo).collect();
    let mut roots = BTreeMap::new();
    if let Some(folder) = &args.repos {
        for name in names {
            let path = scope::utf8(&app.canonical(&here.join(folder).join(name))?)?;
            let receipt = client.index_add_root(&AddRootParams { path, request_id: None }).await?;
            roots.insert(name.to_owned(), complete(app, client, &receipt.path).await?);
        }
    } else {
        let around = args.root.as_deref().map_or(Location::Around(&here), Location::Root);
        let root = scope::root(app, client, around, Stage::Lexical).await?;
        let root = complete(app, client, &root.path).await?;
        roots.extend(names.into_iter().map(|name| (name.to_owned(), root.clone())));
    }
    Ok(roots)
}

async fn complete(app: &App<'_>, client: &Client, path: &str) -> Result<RootStatus, Failure> {
    let status = scope::wait(app, client, path, Stage::Complete, INDEX_TIMEOUT).await?;
    if status.complete && status.state == IndexState::Ready {
        return Ok(status);
    }
    Err(Failure::with_reason(
        "index_failed",
        format!("the index of {path} is not complete: {}", scope::progress_line(&status)),
    ))
}

async fn answer(
    app: &App<'_>,
    client: &Client,
    queries: Queries,
    roots: &BTreeMap<String, RootStatus>,
    args: &EvalArgs,
) -> Result<Outcome, Failure> {
    let progress = Progress::new(!app.globals.quiet && !app.globals.json);
    let all = queries.all.len();
    let mut outcome =
        Outcome { answered: Vec::with_capacity(all), skipped: queries.skipped, notes: Vec::new() };
    let mut behind = 0;
    for (n, query) in queries.all.into_iter().enumerate() {
        progress.set_text(format!("query {} of {all}", n + 1));
        let Some(root) = roots.get(&query.repo) else { continue };
        let params = params(&query.query, root, args.k);
        let answer: Result<SearchAnswer, _> = client.call(args.mode.method(), &params).await;
        let answer =
            answer.map_err(|e| Failure::from(e).in_context(&format!("line {}", query.line)))?;
        behind += usize::from(!answer.complete);
        let results: Vec<ResultSpan> = answer
            .items
            .iter()
            .map(|i| ResultSpan { path: i.path.clone(), lines: (i.start_line, i.end_line) })
            .collect();
        let mut scored = metrics::score(&results, &query.expected);
        if scored.span.is_some() {
            scored.budgets = budgets(client, &query, root, args).await?;
        }
        outcome.answered.push(Answered { query, scored, items: answer.items });
    }
    progress.set_text("checking which answers were not found");
    outcome.notes = missing_answers(client, &outcome.answered, roots).await?;
    if behind > 0 {
        outcome.notes.push(format!("the index was not up to date for {behind} of {all} queries"));
    }
    Ok(outcome)
}

/// Measures the recall of a query's lines within each budget.
async fn budgets(
    client: &Client,
    query: &Query,
    root: &RootStatus,
    args: &EvalArgs,
) -> Result<Vec<f64>, Failure> {
    let mut recalls = Vec::with_capacity(args.budget.len());
    for tokens in &args.budget {
        let params = SearchParams {
            max_tokens: Some(*tokens),
            ..params(&query.query, root, args.k.min(PACKED_RESULTS))
        };
        let answer: SearchAnswer = client
            .call(args.mode.method(), &params)
            .await
            .map_err(|e| Failure::from(e).in_context(&format!("line {}", query.line)))?;
        recalls.push(metrics::packed_recall(&printed(&answer), &query.expected).unwrap_or(0.0));
    }
    Ok(recalls)
}

/// The ranges of lines that a packed answer prints.
fn printed(answer: &SearchAnswer) -> Vec<ResultSpan> {
    let packed = answer.packed.iter().flat_map(|packed| &packed.lines);
    let span = |range: &PackedLines| {
        let item = answer.items.get(range.item as usize)?;
        Some(ResultSpan { path: item.path.clone(), lines: (range.start_line, range.end_line) })
    };
    packed.filter_map(span).collect()
}

fn params(query: &str, root: &RootStatus, k: u32) -> SearchParams {
    let filters = SearchFilters { roots: vec![root.root.to_string()], ..SearchFilters::default() };
    SearchParams { k, filters: Some(filters), ..SearchParams::new(query) }
}

/// Notes each correct answer that no search can find, because its file is not in the index.
async fn missing_answers(
    client: &Client,
    answered: &[Answered],
    roots: &BTreeMap<String, RootStatus>,
) -> Result<Vec<String>, Failure> {
    let mut known: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    let mut notes = Vec::new();
    for one in answered {
        let Some(root) = roots.get(&one.query.repo) else { continue };
        for (expected, rank) in one.query.expected.iter().zip(&one.scored.file_ranks) {
            let key = (&*root.path, &*expected.path);
            let there = match (rank, known.get(&key)) {
                (Some(_), _) => true,
                (None, Some(known)) => *known,
                // Every window is similar to something, so a file without any result has no
                // windows.
                (None, None) => {
                    let mut params = params(&format!("{} file", expected.path), root, 1);
                    let filters = params.filters.get_or_insert_default();
                    filters.path_prefix = Some(expected.path.clone());
                    let answer = client.search_semantic(&params).await?;
                    answer.items.iter().any(|i| i.path == expected.path)
                }
            };
            known.insert(key, there);
            if !there {
                let path = output::plain(&expected.path);
                notes.push(format!(
                    "line {}: {path} is not in the index of {}",
                    one.query.line, root.path
                ));
            }
        }
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: EvalArgs,
    }

    fn args(line: &str) -> EvalArgs {
        Line::parse_from(std::iter::once("eval").chain(line.split(' '))).args
    }

    fn query(repo: Option<&str>) -> Query {
        Query {
            line: 3,
            id: "q".into(),
            query: "x".into(),
            repo: repo.unwrap_or("all").into(),
            names_repo: repo.is_some(),
            kind: "query".into(),
            expected: Vec::new(),
        }
    }

    #[test]
    fn queries_must_match_the_searched_root() {
        for (repos, line, fine) in [
            (vec![None, None], "q.jsonl", true),
            (vec![Some("a"), Some("a")], "q.jsonl", true),
            (vec![Some("a"), Some("b")], "q.jsonl", false),
            (vec![Some("a"), Some("b")], "q.jsonl --root .", true),
            (vec![Some("a"), Some("b/c")], "q.jsonl --repos .", true),
            (vec![Some("a"), None], "q.jsonl --repos .", false),
            (vec![Some("..")], "q.jsonl --repos .", false),
            (vec![Some("/etc")], "q.jsonl --repos .", false),
            (vec![Some("")], "q.jsonl --repos .", false),
        ] {
            let queries = Queries { all: repos.iter().map(|r| query(*r)).collect(), skipped: 0 };
            assert_eq!(check_groups(&queries, &args(line)).is_ok(), fine, "{repos:?} {line}");
        }
    }
}
