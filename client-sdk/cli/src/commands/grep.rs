//! `cairn grep`: lines by regular expression, printed in ripgrep's format.

mod format;

use std::path::PathBuf;

use cairn_client_sdk::{Client, ClientError};
use cairn_protocol::error::Reason;
use cairn_protocol::lines::GrepStreamParams;
use cairn_protocol::search::{GrepAnswer, GrepParams, SearchFilters};
use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use format::Output;

use crate::{
    app::App,
    exit::{FAILED, Failure, OK},
    render::output,
    scope::{self, Location, Stage},
};

/// Lines per request.
const PAGE: u32 = 2_000;

/// Arguments of `cairn grep`.
#[derive(Debug, Clone, Args)]
pub struct GrepArgs {
    /// A regular expression; with -e or --files this is a path already
    #[arg(value_name = "PATTERN", required_unless_present_any = ["regexp", "files"])]
    pattern: Option<String>,
    /// Files or folders; the current folder if not given
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// A pattern, also one that begins with '-'; may be given several times
    #[arg(long, short = 'e', value_name = "PATTERN", allow_hyphen_values = true)]
    regexp: Vec<String>,
    /// Treat the pattern as plain text
    #[arg(long, short = 'F')]
    fixed_strings: bool,
    /// Ignore case
    #[arg(long, short)]
    ignore_case: bool,
    /// Ignore case unless the pattern has capitals
    #[arg(long, short = 'S')]
    smart_case: bool,
    /// Whole words only
    #[arg(long, short)]
    word_regexp: bool,
    /// Print the lines that do not match
    #[arg(long, short = 'v')]
    invert_match: bool,
    /// Let matches span several lines
    #[arg(long, short = 'U')]
    multiline: bool,
    /// Print the number of matching lines per file
    #[arg(long, short, conflicts_with = "only_matching")]
    count: bool,
    /// Print only the paths of files with a match
    #[arg(long, short = 'l', conflicts_with_all = ["count", "only_matching"])]
    files_with_matches: bool,
    /// Print only the paths of the files that would be searched
    #[arg(long, conflicts_with_all = ["regexp", "count", "files_with_matches", "only_matching"])]
    files: bool,
    /// Print only the matches, each on a line of its own
    #[arg(long, short = 'o', conflicts_with = "invert_match")]
    only_matching: bool,
    /// Print line numbers, which is always so
    #[arg(long, short = 'n', overrides_with = "no_line_number", hide = true)]
    line_number: bool,
    /// Print no line numbers
    #[arg(long, short = 'N')]
    no_line_number: bool,
    /// Lines before and after each match
    #[arg(long, short = 'C', value_name = "N", default_value_t = 0,
        value_parser = context_lines, allow_negative_numbers = true)]
    context: u32,
    /// Lines after each match
    #[arg(long, short = 'A', value_name = "N",
        value_parser = context_lines, allow_negative_numbers = true)]
    after_context: Option<u32>,
    /// Lines before each match
    #[arg(long, short = 'B', value_name = "N",
        value_parser = context_lines, allow_negative_numbers = true)]
    before_context: Option<u32>,
    /// Only files that match the glob, or with a leading '!' do not; may be given several times
    #[arg(long, short, value_name = "GLOB")]
    glob: Vec<String>,
    /// Only files of this type or language, as in 'rust', 'py' or 'c++'; may be given several times
    #[arg(long = "type", visible_alias = "lang", short = 't', value_name = "NAME")]
    lang: Vec<String>,
    /// Include hidden files and folders, but never .git
    #[arg(long)]
    hidden: bool,
    /// Maximum number of lines; all when not given
    #[arg(short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    k: Option<u64>,
}

/// Maximum lines of context.
const MAX_CONTEXT: u32 = 100;

fn context_lines(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|n| *n <= MAX_CONTEXT)
        .ok_or_else(|| format!("a number of lines from 0 to {MAX_CONTEXT}"))
}

impl GrepArgs {
    /// Returns the pattern to search for, and true if it is a regular expression. Several patterns
    /// become alternatives of one.
    fn pattern(&self) -> (String, bool) {
        let positional = self.pattern.iter().filter(|_| self.regexp.is_empty());
        let all: Vec<&String> = self.regexp.iter().chain(positional).collect();
        if let [only] = all.as_slice() {
            return ((*only).clone(), !self.fixed_strings);
        }
        let part = |text: &&String| match self.fixed_strings {
            true => format!("(?:{})", regex_syntax::escape(text)),
            false => format!("(?:{text})"),
        };
        (all.iter().map(part).collect::<Vec<_>>().join("|"), true)
    }

    /// Returns the paths to search. The first argument is one of them if the pattern is given
    /// otherwise.
    fn paths(&self) -> Vec<PathBuf> {
        let is_path = self.files || !self.regexp.is_empty();
        let first = self.pattern.iter().filter(|_| is_path).map(PathBuf::from);
        first.chain(self.paths.iter().cloned()).collect()
    }

    fn before(&self) -> u32 {
        self.before_context.unwrap_or(self.context)
    }

    fn after(&self) -> u32 {
        self.after_context.unwrap_or(self.context)
    }

    /// True if the answer has counts instead of lines.
    fn counts(&self) -> bool {
        self.count || self.files_with_matches || self.files
    }
}

/// The paging fields of an answer that is printed unchanged.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageInfo {
    total: u64,
    #[serde(default)]
    next_cursor: Option<String>,
    #[serde(default)]
    items: Vec<serde::de::IgnoredAny>,
    #[serde(default)]
    counts: Vec<serde::de::IgnoredAny>,
}

pub async fn run(app: &App<'_>, args: GrepArgs) -> Result<u8, Failure> {
    if args.pattern().0.is_empty() && !args.files {
        return Err(Failure::usage("the pattern is empty, so that every line would match")
            .hint("'cairn grep --files' lists the files"));
    }
    let (client, here) = app.connect_here().await?;
    let mut paths = args.paths();
    if paths.is_empty() {
        paths.push(here.clone());
    }
    let mut output = Output::new(&args);
    let mut code = FAILED;
    let mut remaining = args.k;
    for path in paths {
        let location = app.canonical(&here.join(path))?;
        let root = scope::root(app, &client, Location::Around(&location), Stage::Lexical).await?;
        let mut params = params(&args, &root.root.to_string());
        params.path_prefix = scope::prefix(&root.path, &location)?;
        output.names = (root.path.clone(), here.clone());
        let found = if app.globals.json || args.counts() || params.context_lines > 0 {
            pages(app, &client, params, remaining, &mut output).await?
        } else {
            stream(app, &client, params, remaining, &mut output).await?
        };
        if found.unreadable > 0 {
            app.info(&format!("{} files could not be read", found.unreadable));
        }
        remaining = remaining.map(|left| left.saturating_sub(found.lines));
        if found.lines > 0 {
            code = OK;
        }
        if remaining == Some(0) {
            break;
        }
    }
    Ok(code)
}

/// The outcome of one search.
#[derive(Default)]
struct Found {
    lines: u64,
    unreadable: usize,
}

/// Prints an answer page by page.
async fn pages(
    app: &App<'_>,
    client: &Client,
    mut params: GrepParams,
    k: Option<u64>,
    output: &mut Output<'_>,
) -> Result<Found, Failure> {
    let mut remaining = k.unwrap_or(u64::MAX);
    let mut found = Found::default();
    loop {
        params.k = u32::try_from(remaining).unwrap_or(PAGE).min(PAGE);
        let raw: Box<RawValue> = client.call("search.grep", &params).await?;
        let unfit = |e: serde_json::Error| Failure::failed(format!("search.grep: {e}"));
        let end: PageInfo = serde_json::from_str(raw.get()).map_err(unfit)?;
        found.lines += match output.args.files {
            true => end.counts.len() as u64,
            false if params.count_only => end.total,
            false => end.items.len() as u64,
        };
        if app.globals.json {
            output::line(raw.get())?;
        } else {
            let answer: GrepAnswer = serde_json::from_str(raw.get()).map_err(unfit)?;
            found.unreadable += answer.unreadable.len();
            output::print(&output.page(answer))?;
        }
        remaining = remaining.saturating_sub(end.items.len() as u64);
        params.cursor = end.next_cursor;
        if params.cursor.is_none() || remaining == 0 {
            output::print(&output.finish())?;
            return Ok(found);
        }
    }
}

/// Prints lines while the search runs. A slow reader such as a pager is fine: the daemon
/// disconnects a client that does not read for long, and then another search continues from there.
async fn stream(
    app: &App<'_>,
    client: &Client,
    params: GrepParams,
    k: Option<u64>,
    output: &mut Output<'_>,
) -> Result<Found, Failure> {
    let mut reconnected;
    let mut client = client;
    let GrepParams { pattern, path_prefix, is_regex, flags, filters, cursor, .. } = params;
    let request_id = "lines".to_owned();
    let with_ranges = console::colors_enabled() || output.args.only_matching;
    let mut params = GrepStreamParams {
        request_id,
        pattern,
        path_prefix,
        is_regex,
        flags,
        k,
        with_ranges,
        cursor,
        filters,
    };
    let mut found = Found::default();
    let mut out = String::new();
    loop {
        let mut last = None;
        let mut lines = client.grep_stream(&params).await?;
        while let Some(part) = lines.next().await? {
            out.clear();
            for file in part.files() {
                output.lines(&mut out, file);
                found.lines += file.lines.len() as u64;
            }
            output::print(&out)?;
            last = part.cursor().map(str::to_owned).or(last);
        }
        let was_abandoned = |e: &ClientError| match e {
            ClientError::Closed(_) => true,
            ClientError::Rpc { data, .. } => data.reason == Reason::Cancelled.as_str(),
            _ => false,
        };
        let error = match lines.end().await {
            Ok(end) => {
                found.unreadable = end.unreadable.len();
                return Ok(found);
            }
            Err(error) => error,
        };
        // Without progress since the last attempt, the next search would be abandoned too.
        let Some(cursor) = last.filter(|_| was_abandoned(&error)) else { return Err(error.into()) };
        params.cursor = Some(cursor);
        params.k = k.map(|k| k - found.lines);
        if params.k == Some(0) {
            return Ok(found);
        }
        reconnected = app.connect().await?;
        client = &reconnected;
    }
}

fn params(args: &GrepArgs, root: &str) -> GrepParams {
    let flags = [
        (args.ignore_case, "ignore_case"),
        (args.smart_case, "smart_case"),
        (args.word_regexp, "word"),
        (args.multiline, "multiline"),
        (args.invert_match, "invert"),
        (args.files, "files"),
    ];
    let (pattern, is_regex) = args.pattern();
    GrepParams {
        pattern,
        path_prefix: None,
        is_regex,
        flags: flags.iter().filter(|(on, _)| *on).map(|(_, name)| (*name).to_owned()).collect(),
        k: PAGE,
        filters: Some(SearchFilters {
            languages: args.lang.clone(),
            globs: args.glob.clone(),
            hidden: args.hidden,
            roots: vec![root.to_owned()],
            ..SearchFilters::default()
        }),
        count_only: args.counts(),
        context_lines: if args.counts() { 0 } else { args.before().max(args.after()) },
        cursor: None,
        request_id: None,
    }
}
