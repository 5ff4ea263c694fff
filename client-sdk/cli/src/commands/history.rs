//! `cairn history`: search in the sessions of the past.

use std::fmt::Write as _;

use cairn_protocol::history::{HistoryAnswer, HistoryEntry, HistoryKind, HistoryParams};
use clap::Args;
use console::style;

use crate::{
    app::App,
    exit::{FAILED, Failure, OK},
    render::output::{self, plain},
};

const HELP: &str = "\
Finds what you asked, what was answered, the commands that ran, what was approved, commits and changed files:

  cairn history retry backoff              entries with all of these words, or words that begin with them
  cairn history --file src/queue.py        the turns that changed a file
  cairn history flaky --kind command       commands alone
  cairn history flaky --here               sessions of this folder alone

'cairn trace show ID' shows a session. Exit codes: 0 found, 1 nothing found, 2 invalid usage, 4 no daemon.";

/// Arguments of `cairn history`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HELP)]
pub struct HistoryArgs {
    /// Words to find
    #[arg(value_name = "WORD", required_unless_present = "file",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    words: Vec<String>,
    /// Only sessions that changed this file
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// Only entries of this kind: question, answer, command, approval, file, commit
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Vec<HistoryKind>,
    /// Only sessions of this folder
    #[arg(long)]
    here: bool,
    /// Maximum number of entries
    #[arg(short = 'k', long, value_name = "N", default_value_t = 20)]
    limit: u32,
}

fn kind(name: &str) -> Result<HistoryKind, String> {
    HistoryKind::parse(name).ok_or_else(|| {
        let names = HistoryKind::ALL.map(HistoryKind::as_str).join(", ");
        format!("the kinds are {names}")
    })
}

pub async fn run(app: &App<'_>, args: HistoryArgs) -> Result<u8, Failure> {
    let here = args.here.then(|| std::env::current_dir().and_then(|dir| dir.canonicalize()));
    let root = here.transpose()?.map(|dir| dir.to_string_lossy().into_owned());
    let client = app.connect().await?;
    let params = HistoryParams {
        query: args.words.join(" "),
        file: args.file,
        kinds: (!args.kind.is_empty()).then_some(args.kind),
        root,
        limit: Some(args.limit),
    };
    let answer: HistoryAnswer = client.call("session.search", &params).await?;
    if app.globals.json {
        output::json(&answer)?;
    } else {
        output::print(&page(&answer.data))?;
    }
    if answer.pending > 0 {
        let text =
            format!("{} sessions are not searched yet; try again in a moment", answer.pending);
        app.info(&text);
    }
    if answer.data.is_empty() {
        app.info("nothing was found");
        return Ok(FAILED);
    }
    Ok(OK)
}

/// Formats entries: one line with the session, one with the text.
fn page(entries: &[HistoryEntry]) -> String {
    let mut out = String::new();
    for entry in entries {
        let time = entry.ts.to_string();
        let _infallible = writeln!(
            out,
            "{} {} {}  {}\n    {}",
            style(time.get(..16).unwrap_or_default().replace('T', " ")).dim(),
            style(entry.kind.as_str()).cyan(),
            entry.session_id,
            style(plain(&entry.title)).bold(),
            plain(&entry.text),
        );
    }
    out
}
