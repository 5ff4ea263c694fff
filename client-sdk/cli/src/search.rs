//! `cairn search`: passages by words and meaning.

use std::{fmt::Write as _, path::Path};

use cairn_protocol::search::{SearchAnswer, SearchFilters, SearchItem, SearchParams, Share};
use clap::{Args, ValueEnum};
use console::style;

use crate::{
    app::{App, current_dir},
    exit::{Failure, OK},
    output::{self, plain},
    scope::{self, Where},
};

/// Lines of a passage shown on a terminal.
const LINES: usize = 6;
/// Characters of a line shown on a terminal.
const WIDTH: usize = 200;

const EXAMPLES: &str = "\
Examples:
  cairn search where is the token checked
  cairn search parse_config --mode lexical -k 5
  cairn search retry with backoff -l rust --path src/net --text
  cairn --json search 'open the database' | jq -r '.items[].path'

The root is the declared one around the current folder. When there is none, the git repository around it (or the
folder itself) is declared and indexed first.";

/// Which index is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// By words and meaning
    Hybrid,
    /// By words
    Lexical,
    /// By meaning
    Semantic,
}

impl Mode {
    /// The method that searches so.
    pub fn method(self) -> &'static str {
        match self {
            Self::Hybrid => "search.hybrid",
            Self::Lexical => "search.lexical",
            Self::Semantic => "search.semantic",
        }
    }

    /// As it is typed.
    pub fn name(self) -> &'static str {
        self.method().trim_start_matches("search.")
    }
}

/// Arguments of `cairn search`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct SearchArgs {
    /// Words, an identifier, or a question
    #[arg(required = true, value_name = "QUERY", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    query: Vec<String>,
    /// How to search
    #[arg(long, short, value_enum, default_value = "hybrid")]
    mode: Mode,
    /// Results wanted
    #[arg(short, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=200))]
    k: u32,
    /// Only this language; may be given several times
    #[arg(long, short, value_name = "NAME")]
    lang: Vec<String>,
    /// Only files under this path of the root
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Only files that match, or with '!' in front do not; may be given several times
    #[arg(long, short, value_name = "GLOB")]
    glob: Vec<String>,
    /// Only inside symbols of this kind, as in 'function'; may be given several times
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Another root: its id or a folder
    #[arg(long, value_name = "ROOT")]
    root: Option<String>,
    /// Print each passage whole
    #[arg(long, short)]
    text: bool,
    /// Lines around each passage
    #[arg(long, short = 'C', value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=50))]
    context: u32,
    /// At most a few results of one file
    #[arg(long)]
    diversify: bool,
    /// Tell what each result's score is made of
    #[arg(long)]
    explain: bool,
}

pub async fn run(app: &App<'_>, args: SearchArgs) -> Result<u8, Failure> {
    let here = current_dir()?;
    let client = app.client().await?;
    let at = args.root.as_deref().map_or(Where::Around(&here), Where::Root);
    let root = scope::root(app, &client, at).await?;
    let terminal = console::user_attended();
    let params = SearchParams {
        query: args.query.join(" "),
        k: args.k,
        filters: Some(SearchFilters {
            languages: args.lang,
            path_prefix: args.path,
            globs: args.glob,
            roots: vec![root.root.to_string()],
            kinds: args.kind,
        }),
        include_text: args.text || (terminal && !app.globals.json),
        context_lines: args.context,
        fusion: None,
        diversify: args.diversify.then_some(true),
        mmr: None,
        explain: args.explain,
        request_id: None,
    };
    let Some(answer) = app.answer::<SearchAnswer>(&client, args.mode.method(), &params).await? else {
        return Ok(OK);
    };
    if answer.items.is_empty() {
        app.remark("nothing was found");
    }
    if !answer.degraded.is_empty() {
        app.remark(&format!("not all is searched yet: {}", answer.degraded.join(", ")));
    } else if !answer.complete {
        app.remark("the index is not complete yet; 'cairn index status' tells how far it is");
    }
    let limit = if args.text { usize::MAX } else { LINES };
    let text: String = answer.items.iter().map(|item| shown(item, &root.path, &here, limit)).collect();
    output::print(&text)?;
    Ok(OK)
}

fn shown(item: &SearchItem, root: &str, here: &Path, limit: usize) -> String {
    let path = scope::shown(root, &item.path, here);
    let symbol =
        item.symbol.as_ref().map_or_else(String::new, |s| format!("  {} {}", s.kind, plain(&s.name)));
    let place = format!("{}:{}-{}", style(path).green(), item.start_line, item.end_line);
    let changed = if item.changed { "  (changed since)" } else { "" };
    let mut out =
        format!("{place}{}  {}{changed}\n", style(symbol).cyan(), style(format!("{:.3}", item.score)).dim());
    if !item.explain.is_empty() {
        let share = |s: &Share| format!("{} {:+.3}", s.feature, s.share);
        let shares: Vec<String> = item.explain.iter().map(share).collect();
        let _infallible = writeln!(out, "        {}", style(plain(&shares.join("  "))).dim());
    }
    if let Some(text) = &item.text {
        passage(&mut out, item, text, limit);
        out.push('\n');
    }
    out
}

/// The lines of a passage; when not all are shown, those around its best match.
fn passage(out: &mut String, item: &SearchItem, text: &str, limit: usize) {
    let first = item.text_start_line.unwrap_or(item.start_line);
    let mut lines: Vec<(usize, &str)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        lines.push((at, line.trim_end_matches(['\n', '\r'])));
        at += line.len();
    }
    let hits = |start: usize, line: &str| {
        item.highlights
            .iter()
            .filter(|h| (h[0] as usize) >= start && (h[0] as usize) < start + line.len().max(1))
            .count()
    };
    let best = (0..lines.len())
        .max_by_key(|n| {
            let window = lines.iter().skip(*n).take(limit.min(lines.len()));
            (window.map(|(start, line)| hits(*start, line)).sum::<usize>(), std::cmp::Reverse(*n))
        })
        .unwrap_or(0);
    let from = best.min(lines.len().saturating_sub(limit));
    for (n, (start, line)) in lines.iter().enumerate().skip(from).take(limit) {
        let number = first as usize + n;
        let marked = marked(line, *start, &item.highlights);
        let _infallible = writeln!(out, "  {} {marked}", style(format!("{number:>5}")).dim());
    }
}

/// A line with the matches in it marked.
fn marked(line: &str, start: usize, highlights: &[[u32; 2]]) -> String {
    let mut out = String::new();
    let mut done = 0;
    let end = line.char_indices().nth(WIDTH).map_or(line.len(), |(at, _)| at);
    let line = &line[..end];
    for [from, to] in highlights {
        let (from, to) = (
            (*from as usize).max(start + done) - start,
            (*to as usize).min(start + line.len()).max(start) - start,
        );
        // Ranges come from outside: those that do not fit are passed over.
        let (Some(before), Some(hit)) = (line.get(done..from), line.get(from..to)) else { continue };
        if hit.is_empty() {
            continue;
        }
        let _infallible = write!(out, "{}{}", plain(before), style(plain(hit)).bold().red());
        done = to;
    }
    out.push_str(&plain(line.get(done..).unwrap_or_default()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wild_ranges_do_no_harm() {
        console::set_colors_enabled(false);
        for ranges in [
            vec![],
            vec![[0, 2]],
            vec![[5, 1]],
            vec![[1, 3]],
            vec![[0, 900]],
            vec![[4, 6], [2, 5]],
            vec![[900, 901]],
        ] {
            assert_eq!(marked("añb cd", 0, &ranges), "añb cd", "{ranges:?}");
            assert_eq!(marked("añb cd", 3, &ranges), "añb cd", "{ranges:?}");
        }
    }
}
