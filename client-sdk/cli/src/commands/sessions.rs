//! `cairn sessions`: who works where, and who waits for an answer.

mod picker;

use std::fmt::Write as _;

use cairn_protocol::{
    board::{Board, BoardParams, BoardRow},
    explore::RunState,
    time::Timestamp,
    unattended::UnattendedRun,
};
use clap::Args;
use console::{StyledObject, style};

use crate::{
    app::App,
    chat::{self, age},
    exit::{Failure, OK},
    render::output::{self, plain},
    session_name,
};

const HELP: &str = "\
Sessions that wait for you come first, then running ones, then the latest others, each with its cost if prices are
known. 'cairn approvals' answers, 'cairn run watch ID' watches a run, 'cairn open ID' and 'cairn trace show ID' show
a session, 'cairn chat --resume' continues one of this folder, 'cairn history WORDS' finds one. Ids may be shortened.
In a terminal the list shows the end of each conversation, and its keys continue, open, answer or delete a session;
--list, --json and a pipe print it.
Exit codes: 0 done, 2 invalid usage, 4 no daemon.";

/// Arguments of `cairn sessions`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HELP)]
pub struct SessionsArgs {
    /// Maximum number of sessions, at most 100
    #[arg(short = 'k', long, value_name = "N", default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: u32,
    /// Choose one in a terminal, which is the default there
    #[arg(long, short)]
    pick: bool,
    /// Print the list in a terminal too
    #[arg(long, short, conflicts_with = "pick")]
    list: bool,
}

/// Runs the command: in a terminal the user chooses a session and what to do with it.
pub fn run(app: &App<'_>, args: &SessionsArgs) -> Result<u8, Failure> {
    let has_terminal = chat::has_keyboard() && !app.globals.json;
    if args.pick && !has_terminal {
        return Err(Failure::usage("--pick requires a terminal")
            .hint("'cairn sessions' prints the list, 'cairn open ID' opens one"));
    }
    if args.list || !has_terminal {
        return crate::wait_for(print(app, args.limit));
    }
    let chosen = crate::wait_for(picker::choose(app, args.limit))?;
    let Some((action, session)) = chosen else { return Ok(OK) };
    crate::dispatch(app, &[&["cairn"], action.words(), &[session.as_str()]].concat())
}

async fn print(app: &App<'_>, limit: u32) -> Result<u8, Failure> {
    let client = app.connect().await?;
    let params = BoardParams { limit: Some(limit) };
    let board = client.session_board(&params).await?;
    if app.globals.json {
        output::json(&board)?;
    } else {
        output::print(&table(&board, Timestamp::now()))?;
    }
    Ok(OK)
}

fn table(board: &Board, now: Timestamp) -> String {
    let mut out = String::new();
    for row in &board.rows {
        let session = &row.session;
        let _infallible = writeln!(
            out,
            "{}  {:<13}  {:>6}  {:>7}  {}",
            session_name::short(&session.session_id),
            state(row),
            age(now.0 - session.updated_at.0),
            row.cost_micro_usd.map(dollars).unwrap_or_default(),
            style(session_name::title(session)).bold(),
        );
        if let Some(root) = &session.root {
            let branch = row.branch.as_ref().map(|branch| format!("  on {}", plain(branch)));
            let text = format!("{}{}", plain(root), branch.unwrap_or_default());
            let _infallible = writeln!(out, "{INDENT}{}", style(text).dim());
        }
        if let Some(parent) = &row.parent {
            let _infallible = writeln!(
                out,
                "{INDENT}{}",
                style(format!("agent of {}", session_name::short(parent))).dim()
            );
        }
        if let Some(run) = &row.unattended {
            let _infallible = writeln!(out, "{INDENT}{}", run_line(run));
        }
        for approval in &row.waiting {
            let summary = plain(&approval.preview.summary);
            let _infallible = writeln!(out, "{INDENT}{}", style(format!("? {summary}")).yellow());
        }
    }
    out
}

/// Indentation of the lines below a session.
const INDENT: &str = "        ";

fn state(row: &BoardRow) -> StyledObject<&'static str> {
    match &row.waiting[..] {
        [] if row.session.state == RunState::Running => style("running").green(),
        [] => style(row.session.state.as_str()).dim(),
        _ => style("waits for you").yellow(),
    }
}

/// Renders an unattended run: its status, its turns and its check.
fn run_line(run: &UnattendedRun) -> String {
    let mut text = format!("run {}, turn {} of {}", run.status.as_str(), run.turns, run.max_turns);
    if let Some(command) = &run.until {
        text.push_str(&format!(", until '{}'", plain(command)));
    }
    if let Some(reason) = &run.reason {
        text.push_str(&format!(": {}", plain(reason)));
    }
    text
}

fn dollars(micro_usd: u64) -> String {
    let amount = micro_usd as f64 / 1e6;
    if amount < 0.1 { format!("${amount:.4}") } else { format!("${amount:.2}") }
}
