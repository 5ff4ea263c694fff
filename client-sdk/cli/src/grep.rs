//! `cairn grep`: lines by regular expression, printed as ripgrep prints them.

use std::{fmt::Write as _, path::PathBuf};

use cairn_protocol::search::{GrepAnswer, GrepItem, GrepParams, SearchFilters};
use clap::Args;
use console::style;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    app::App,
    exit::{FAILED, Failure, OK},
    output::{self, plain},
    scope::{self, Where},
};

/// Lines asked for at once.
const PAGE: u32 = 2_000;

/// Arguments of `cairn grep`.
#[derive(Debug, Clone, Args)]
pub struct GrepArgs {
    /// A regular expression
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pattern: String,
    /// A file or folder
    path: Option<PathBuf>,
    /// The pattern is plain text
    #[arg(long, short = 'F')]
    fixed_strings: bool,
    /// Capitals and small letters are alike
    #[arg(long, short)]
    ignore_case: bool,
    /// Alike, unless the pattern has capitals
    #[arg(long, short = 'S')]
    smart_case: bool,
    /// Whole words only
    #[arg(long, short)]
    word_regexp: bool,
    /// Matches may go over several lines
    #[arg(long, short = 'U')]
    multiline: bool,
    /// Print how many lines match in each file
    #[arg(long, short)]
    count: bool,
    /// Lines around each match
    #[arg(long, short = 'C', value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=20))]
    context: u32,
    /// Only files that match, or with '!' in front do not; may be given several times
    #[arg(long, short, value_name = "GLOB")]
    glob: Vec<String>,
    /// Only this language; may be given several times
    #[arg(long, short, value_name = "NAME")]
    lang: Vec<String>,
    /// Lines wanted at most; all when not given
    #[arg(short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    k: Option<u64>,
}

/// What paging needs of an answer that is passed on as it is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageEnd {
    total: u64,
    #[serde(default)]
    next_cursor: Option<String>,
    #[serde(default)]
    items: Vec<serde::de::IgnoredAny>,
}

pub async fn run(app: &App<'_>, args: GrepArgs) -> Result<u8, Failure> {
    let (client, here) = app.start_here().await?;
    let place = app.canonical(&args.path.as_ref().map_or_else(|| here.clone(), |p| here.join(p)))?;
    let root = scope::root(app, &client, Where::Around(&place)).await?;
    let mut params = params(&args, &root.root.to_string());
    params.path_prefix = scope::prefix(&root.path, &place)?;
    let mut left = args.k.unwrap_or(u64::MAX);
    let mut matched = false;
    let mut unreadable = 0;
    loop {
        params.k = u32::try_from(left).unwrap_or(PAGE).min(PAGE);
        let raw: Box<RawValue> = client.call("search.grep", &params).await?;
        let unfit = |e: serde_json::Error| Failure::failed(format!("search.grep: {e}"));
        let end: PageEnd = serde_json::from_str(raw.get()).map_err(unfit)?;
        matched |= end.total > 0;
        if app.globals.json {
            output::line(raw.get())?;
        } else {
            let answer: GrepAnswer = serde_json::from_str(raw.get()).map_err(unfit)?;
            unreadable += answer.unreadable.len();
            output::print(&shown(&answer, &args, &root.path, &here))?;
        }
        left = left.saturating_sub(end.items.len() as u64);
        params.cursor = end.next_cursor;
        if params.cursor.is_none() || left == 0 {
            break;
        }
    }
    if unreadable > 0 {
        app.remark(&format!("{unreadable} files could not be read"));
    }
    Ok(if matched { OK } else { FAILED })
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

fn shown(answer: &GrepAnswer, args: &GrepArgs, root: &str, here: &std::path::Path) -> String {
    let mut out = String::new();
    for count in &answer.counts {
        let path = scope::shown(root, &count.path, here);
        let _infallible = writeln!(out, "{}:{}", style(path).magenta(), count.lines);
    }
    for (at, item) in answer.items.iter().enumerate() {
        let path = scope::shown(root, &item.path, here);
        if args.context > 0 && at > 0 {
            out.push_str("--\n");
        }
        let first = item.line.saturating_sub(u32::try_from(item.before.len()).unwrap_or(0));
        for (n, line) in (first..).zip(&item.before) {
            let _infallible = writeln!(out, "{}-{n}-{}", style(&path).magenta(), plain(line));
        }
        let number = style(item.line).green();
        let _infallible = writeln!(out, "{}:{number}:{}", style(&path).magenta(), matched(item));
        for (n, line) in (item.line + 1..).zip(&item.after) {
            let _infallible = writeln!(out, "{}-{n}-{}", style(&path).magenta(), plain(line));
        }
    }
    out
}

fn matched(item: &GrepItem) -> String {
    let mut out = String::new();
    let mut done = 0;
    for [from, to] in &item.ranges {
        let (from, to) = (*from as usize, *to as usize);
        let (Some(before), Some(hit)) = (item.text.get(done..from), item.text.get(from..to)) else {
            continue;
        };
        let _infallible = write!(out, "{}{}", plain(before), style(plain(hit)).bold().red());
        done = to;
    }
    out.push_str(&plain(item.text.get(done..).unwrap_or_default()));
    out
}
