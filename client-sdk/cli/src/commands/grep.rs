//! `cairn grep`: lines by regular expression, printed in ripgrep's format.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use cairn_client_sdk::{Client, ClientError};
use cairn_protocol::error::Reason;
use cairn_protocol::lines::{FileLines, GrepStreamParams};
use cairn_protocol::search::{GrepAnswer, GrepParams, SearchFilters};
use clap::Args;
use console::style;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    app::App,
    exit::{FAILED, Failure, OK},
    render::output::{self, plain},
    scope::{self, Location},
};

/// Lines per request.
const PAGE: u32 = 2_000;

/// Arguments of `cairn grep`.
#[derive(Debug, Clone, Args)]
pub struct GrepArgs {
    /// A regular expression
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pattern: String,
    /// A file or folder
    path: Option<PathBuf>,
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
    /// Let matches span several lines
    #[arg(long, short = 'U')]
    multiline: bool,
    /// Print the number of matching lines per file
    #[arg(long, short)]
    count: bool,
    /// Lines around each match
    #[arg(long, short = 'C', value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=20))]
    context: u32,
    /// Only files that match the glob, or with a leading '!' do not; may be given several times
    #[arg(long, short, value_name = "GLOB")]
    glob: Vec<String>,
    /// Only this language; may be given several times
    #[arg(long, short, value_name = "NAME")]
    lang: Vec<String>,
    /// Maximum number of lines; all when not given
    #[arg(short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    k: Option<u64>,
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
}

pub async fn run(app: &App<'_>, args: GrepArgs) -> Result<u8, Failure> {
    let (client, here) = app.connect_here().await?;
    let location =
        app.canonical(&args.path.as_ref().map_or_else(|| here.clone(), |p| here.join(p)))?;
    let root = scope::root(app, &client, Location::Around(&location)).await?;
    let mut params = params(&args, &root.root.to_string());
    params.path_prefix = scope::prefix(&root.path, &location)?;
    if !app.globals.json && !args.count && args.context == 0 {
        return stream(app, client, params, args.k, (&root.path, &here)).await;
    }
    let mut remaining = args.k.unwrap_or(u64::MAX);
    let mut matched = false;
    let mut unreadable = 0;
    loop {
        params.k = u32::try_from(remaining).unwrap_or(PAGE).min(PAGE);
        let raw: Box<RawValue> = client.call("search.grep", &params).await?;
        let unfit = |e: serde_json::Error| Failure::failed(format!("search.grep: {e}"));
        let end: PageInfo = serde_json::from_str(raw.get()).map_err(unfit)?;
        matched |= end.total > 0;
        if app.globals.json {
            output::line(raw.get())?;
        } else {
            let answer: GrepAnswer = serde_json::from_str(raw.get()).map_err(unfit)?;
            unreadable += answer.unreadable.len();
            output::print(&render(&answer, &args, &root.path, &here))?;
        }
        remaining = remaining.saturating_sub(end.items.len() as u64);
        params.cursor = end.next_cursor;
        if params.cursor.is_none() || remaining == 0 {
            break;
        }
    }
    Ok(exit_code(app, unreadable, matched))
}

fn exit_code(app: &App<'_>, unreadable: usize, matched: bool) -> u8 {
    if unreadable > 0 {
        app.info(&format!("{unreadable} files could not be read"));
    }
    if matched { OK } else { FAILED }
}

/// Prints lines while the search runs. A slow reader such as a pager is fine: the daemon
/// disconnects a client that does not read for long, and then another search continues from there.
async fn stream(
    app: &App<'_>,
    mut client: Client,
    params: GrepParams,
    k: Option<u64>,
    (root, here): (&str, &Path),
) -> Result<u8, Failure> {
    let GrepParams { pattern, path_prefix, is_regex, flags, filters, cursor, .. } = params;
    let request_id = "lines".to_owned();
    let with_ranges = console::colors_enabled();
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
    let mut printed = 0;
    let mut out = String::new();
    loop {
        let mut last = None;
        let mut lines = client.grep_stream(&params).await?;
        while let Some(part) = lines.next().await? {
            out.clear();
            for file in part.files() {
                let path =
                    style(scope::relative_display(root, &file.path, here)).magenta().to_string();
                write_lines(&mut out, &path, file);
                printed += file.lines.len() as u64;
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
            Ok(end) => return Ok(exit_code(app, end.unreadable.len(), printed > 0)),
            Err(error) => error,
        };
        // Without progress since the last attempt, the next search would be abandoned too.
        let Some(cursor) = last.filter(|_| was_abandoned(&error)) else { return Err(error.into()) };
        params.cursor = Some(cursor);
        params.k = k.map(|k| k - printed);
        if params.k == Some(0) {
            return Ok(OK);
        }
        client = app.connect().await?;
    }
}

/// Appends the lines of a file to `out`. There may be millions, so the common prefix is rendered
/// once.
fn write_lines(out: &mut String, path: &str, file: &FileLines) {
    let mut digits = itoa::Buffer::new();
    let is_plain = output::is_plain(&file.text);
    let is_coloured = console::colors_enabled();
    for (line, text, ranges) in file.iter() {
        let number = digits.format(line);
        out.extend([path, ":"]);
        if is_coloured {
            let _infallible = write!(out, "{}", style(number).green());
        } else {
            out.push_str(number);
        }
        out.push(':');
        if is_plain && ranges.is_empty() {
            out.push_str(text);
        } else {
            out.push_str(&matched(text, ranges));
        }
        out.push('\n');
    }
}

fn params(args: &GrepArgs, root: &str) -> GrepParams {
    let flags = [
        (args.ignore_case, "ignore_case"),
        (args.smart_case, "smart_case"),
        (args.word_regexp, "word"),
        (args.multiline, "multiline"),
    ];
    GrepParams {
        pattern: args.pattern.clone(),
        path_prefix: None,
        is_regex: !args.fixed_strings,
        flags: flags.iter().filter(|(on, _)| *on).map(|(_, name)| (*name).to_owned()).collect(),
        k: PAGE,
        filters: Some(SearchFilters {
            languages: args.lang.clone(),
            globs: args.glob.clone(),
            roots: vec![root.to_owned()],
            ..SearchFilters::default()
        }),
        count_only: args.count,
        context_lines: args.context,
        cursor: None,
        request_id: None,
    }
}

fn render(answer: &GrepAnswer, args: &GrepArgs, root: &str, here: &Path) -> String {
    let mut out = String::new();
    for count in &answer.counts {
        let path = scope::relative_display(root, &count.path, here);
        let _infallible = writeln!(out, "{}:{}", style(path).magenta(), count.lines);
    }
    for (at, item) in answer.items.iter().enumerate() {
        let path = scope::relative_display(root, &item.path, here);
        if args.context > 0 && at > 0 {
            out.push_str("--\n");
        }
        let first = item.line.saturating_sub(u32::try_from(item.before.len()).unwrap_or(0));
        for (n, line) in (first..).zip(&item.before) {
            let _infallible = writeln!(out, "{}-{n}-{}", style(&path).magenta(), plain(line));
        }
        let number = style(item.line).green();
        let _infallible = writeln!(
            out,
            "{}:{number}:{}",
            style(&path).magenta(),
            matched(&item.text, &item.ranges)
        );
        for (n, line) in (item.line + 1..).zip(&item.after) {
            let _infallible = writeln!(out, "{}-{n}-{}", style(&path).magenta(), plain(line));
        }
    }
    out
}

fn matched(text: &str, ranges: &[[u32; 2]]) -> String {
    let mut out = String::new();
    let mut done = 0;
    for [from, to] in ranges {
        let from = *from as usize;
        let to = *to as usize;
        let (Some(before), Some(hit)) = (text.get(done..from), text.get(from..to)) else {
            continue;
        };
        let _infallible = write!(out, "{}{}", plain(before), style(plain(hit)).bold().red());
        done = to;
    }
    out.push_str(&plain(text.get(done..).unwrap_or_default()));
    out
}
