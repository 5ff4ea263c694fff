//! `cairn search`: passages by words and meaning.

use std::{io::Read as _, time::Duration};

use cairn_protocol::search::{Omitted, SearchAnswer, SearchFilters, SearchParams};
use clap::{Args, ValueEnum};
use serde_json::value::RawValue;

use crate::{
    app::App,
    exit::{FAILED, Failure, OK},
    render::{
        highlight::Painter,
        output,
        search_results::{Page, WIDE},
    },
    scope::{self, Location, Stage},
};

/// Maximum lines of a passage on a terminal.
const LINES: usize = 6;
/// Maximum bytes of a query that the daemon accepts.
const MAX_QUERY: u64 = 64 * 1024;
/// Time limit of highlighting.
const PAINTING: Duration = Duration::from_millis(25);

const EXAMPLES: &str = "\
Examples:
  cairn search where is the token checked
  cairn search parse_config --mode lexical -k 5
  cairn search retry with backoff -l rust --path src/net --text
  cairn search how are sessions stored --max-tokens 2000
  cairn --json search 'open the database' | jq -r '.items[].path'
  gh issue view 123 | cairn search -

The search covers the indexed folder around the current one. If there is none, the git repository around it (or the
folder itself) is indexed first. With --json each result has its passage in 'text'.
Exit codes: 0 found, 1 nothing or no good match, 2 invalid usage, 3 not found, 4 no daemon.";

/// The search method.
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
    /// Returns the protocol method.
    pub fn method(self) -> &'static str {
        match self {
            Self::Hybrid => "search.hybrid",
            Self::Lexical => "search.lexical",
            Self::Semantic => "search.semantic",
        }
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        self.method().trim_start_matches("search.")
    }
}

/// Arguments of `cairn search`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct SearchArgs {
    /// Words, a name, a path, a question or the text of an issue; '-' reads it from standard input
    #[arg(required = true, value_name = "QUERY",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    query: Vec<String>,
    /// Kind of search: words, meaning, or both
    #[arg(long, short, value_enum, default_value = "hybrid")]
    mode: Mode,
    /// Number of results
    #[arg(short, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=200))]
    k: u32,
    /// Only this language; may be given several times
    #[arg(long, short, value_name = "NAME")]
    lang: Vec<String>,
    /// Only files under this path of the root
    #[arg(long, value_name = "PATH",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    path: Option<String>,
    /// Only files that match the glob, or with a leading '!' do not; may be given several times
    #[arg(long, short, value_name = "GLOB")]
    glob: Vec<String>,
    /// Only inside symbols of this kind, as in 'function'; may be given several times
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Another root: its id or a folder
    #[arg(long, value_name = "ROOT")]
    root: Option<String>,
    /// Print complete passages
    #[arg(long, short)]
    text: bool,
    /// Lines around each passage
    #[arg(long, short = 'C', value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u32).range(0..=50))]
    context: u32,
    /// Include hidden files, such as .github/, but never .git
    #[arg(long)]
    hidden: bool,
    /// Print the answer within this many tokens: the lines that answer, best results first
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(200..=100_000), conflicts_with_all = ["text", "context", "explain"])]
    max_tokens: Option<u32>,
    /// Skip this many of the best results, to continue an answer
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u32).range(0..200))]
    offset: u32,
    /// Limit the results of one file
    #[arg(long)]
    diversify: bool,
    /// Show the composition of each result's score
    #[arg(long)]
    explain: bool,
}

/// The query in the arguments, or on standard input for `-`.
fn query(arguments: &[String]) -> Result<String, Failure> {
    if arguments != ["-"] {
        return Ok(arguments.join(" "));
    }
    let mut text = Vec::new();
    // One byte more than the daemon accepts, so that it refuses what is too long.
    std::io::stdin()
        .lock()
        .take(MAX_QUERY + 1)
        .read_to_end(&mut text)
        .map_err(|e| Failure::failed(format!("standard input cannot be read: {e}")))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

pub async fn run(app: &App<'_>, args: SearchArgs) -> Result<u8, Failure> {
    let (client, here) = app.connect_here().await?;
    let at = args.root.as_deref().map_or(Location::Around(&here), Location::Root);
    let root = scope::root(app, &client, at, Stage::Complete).await?;
    let terminal = console::user_attended();
    let person = terminal && !app.globals.json;
    let params = SearchParams {
        k: args.k,
        filters: Some(SearchFilters {
            languages: args.lang,
            path_prefix: args.path,
            globs: args.glob,
            roots: vec![root.root.to_string()],
            kinds: args.kind,
            hidden: args.hidden,
        }),
        include_text: args.max_tokens.is_none() && (args.text || person || app.globals.json),
        max_tokens: args.max_tokens,
        offset: args.offset,
        context_lines: args.context,
        diversify: args.diversify.then_some(true),
        explain: args.explain || (person && args.max_tokens.is_none()),
        ..SearchParams::new(query(&args.query)?)
    };
    let raw: Box<RawValue> = client.call(args.mode.method(), &params).await?;
    let answer: SearchAnswer = serde_json::from_str(raw.get())
        .map_err(|e| Failure::failed(format!("{}: {e}", args.mode.method())))?;
    let code = if answer.items.is_empty() || answer.weak { FAILED } else { OK };
    if app.globals.json {
        output::line(raw.get())?;
        return Ok(code);
    }
    if answer.items.is_empty() {
        app.info("nothing was found");
    } else if answer.weak {
        app.info("no good match; nearest:");
    }
    for note in notes(args.mode, &answer) {
        app.info(&note);
    }
    if let Some(packed) = &answer.packed {
        output::print(&packed.text)?;
        if let Some(omitted) = &answer.omitted {
            app.info(&omission(omitted));
        }
        return Ok(code);
    }
    let colours = console::colors_enabled();
    let mut page = Page {
        root: &root.path,
        here: &here,
        limit: if args.text { usize::MAX } else { LINES },
        columns: if terminal { console::Term::stdout().size().1.into() } else { WIDE },
        terminal,
        colours,
        explain: args.explain,
        painter: (terminal && colours && !answer.items.is_empty()).then(|| Painter::load(PAINTING)),
    };
    output::print(&page.text(&answer.items))?;
    Ok(code)
}

/// Describes what an answer within `--max-tokens` leaves out, and how to get it.
fn omission(omitted: &Omitted) -> String {
    let rest = match omitted.next_offset {
        Some(offset) => {
            let results = if omitted.items == 1 { "result" } else { "results" };
            format!("{} more {results}: --offset {offset}, or ", omitted.items)
        }
        None => format!("lines left out: {}; ", omitted.lines),
    };
    format!("{rest}raise --max-tokens")
}

/// Sentences about the parts that an answer lacks.
fn notes(mode: Mode, answer: &SearchAnswer) -> Vec<String> {
    let is_degraded = |part: &str| answer.degraded.iter().any(|what| what == part);
    let mut notes = Vec::new();
    if is_degraded("script") {
        notes.push(match mode {
            Mode::Semantic => {
                "the model does not know the script of the query; '--mode lexical' compares its \
                 words"
            }
            _ => {
                "the model does not know the script of the query: words were compared, not meaning"
            }
        });
    }
    if is_degraded("rerank") {
        notes
            .push("not all of the best were re-scored in time; raise 'rerank.maxMs' to allow more");
    }
    let mut notes: Vec<String> = notes.into_iter().map(str::to_owned).collect();
    let missing: Vec<&str> = answer
        .degraded
        .iter()
        .map(String::as_str)
        .filter(|what| !matches!(*what, "rerank" | "script"))
        .collect();
    if !missing.is_empty() {
        notes.push(format!("the search is not complete yet: {}", missing.join(", ")));
    } else if !answer.complete {
        notes.push(
            "the index is not complete yet; 'cairn index status' shows its progress".to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: SearchArgs,
    }

    fn parse(line: &str) -> Result<SearchArgs, clap::Error> {
        let words = std::iter::once("search").chain(line.split(' '));
        Line::try_parse_from(words).map(|line| line.args)
    }

    #[test]
    fn limits_of_tokens_are_checked() {
        let args = parse("retry --max-tokens 2000 --offset 8 --hidden").unwrap();
        assert_eq!((args.max_tokens, args.offset, args.hidden), (Some(2000), 8, true));
        for line in [
            "x --max-tokens 0",
            "x --max-tokens 199",
            "x --max-tokens 1000000000",
            "x --max-tokens many",
            "x --max-tokens 500 --text",
            "x --offset 200",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn omission_names_the_way_to_the_rest() {
        let omitted =
            |items, lines, next_offset| Omitted { items, lines, next_offset, hint: String::new() };
        let text = omission(&omitted(4, 90, Some(6)));
        assert_eq!(text, "4 more results: --offset 6, or raise --max-tokens");
        let text = omission(&omitted(0, 90, None));
        assert_eq!(text, "lines left out: 90; raise --max-tokens");
    }

    #[test]
    fn notes_name_the_missing_parts() {
        let answer = |degraded: &[&str], complete| SearchAnswer {
            degraded: degraded.iter().map(|part| (*part).to_owned()).collect(),
            complete,
            ..SearchAnswer::default()
        };
        assert!(notes(Mode::Hybrid, &answer(&[], true)).is_empty());
        let script = answer(&["script"], true);
        assert!(notes(Mode::Semantic, &script)[0].contains("--mode lexical"));
        assert!(notes(Mode::Hybrid, &script)[0].contains("words were compared"));
        assert_eq!(notes(Mode::Hybrid, &script).len(), 1);
        let all = notes(Mode::Hybrid, &answer(&["vectors", "rerank", "script"], false));
        assert_eq!(all.len(), 3);
        assert!(all[2].ends_with("not complete yet: vectors"), "{all:?}");
        assert!(notes(Mode::Lexical, &answer(&[], false))[0].contains("cairn index status"));
    }
}
