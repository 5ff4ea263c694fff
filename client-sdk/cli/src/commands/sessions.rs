//! `cairn sessions`: who works where, and who waits for an answer.

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
    exit::{Failure, INTERRUPTED, OK},
    render::output::{self, plain},
    session_name,
};

const HELP: &str = "\
Sessions that wait for you come first, then running ones, then the latest others, each with its cost if prices are
known. 'cairn approvals' answers, 'cairn run watch ID' watches a run, 'cairn open ID' and 'cairn trace show ID' show
a session, 'cairn chat --resume' continues one of this folder, 'cairn history WORDS' finds one. Ids may be shortened.
Exit codes: 0 done, 2 invalid usage, 4 no daemon.";

/// Arguments of `cairn sessions`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HELP)]
pub struct SessionsArgs {
    /// Maximum number of sessions, at most 100
    #[arg(short = 'k', long, value_name = "N", default_value_t = 20)]
    limit: u32,
    /// Choose one, and what to do with it
    #[arg(long, short)]
    pick: bool,
}

impl SessionsArgs {
    /// True if the user chooses a session.
    pub fn is_pick(&self) -> bool {
        self.pick
    }
}

/// Actions for a chosen session: name, and the words of the command before its id.
const ACTIONS: [(&str, &[&str]); 4] = [
    ("continue it in a chat", &["chat", "--session"]),
    ("open it in the viewer", &["open"]),
    ("answer what it waits for", &["approvals", "--watch", "--session"]),
    ("print its log", &["trace", "show"]),
];

/// Lets the user choose a session and what to do with it.
pub fn pick(app: &App<'_>, args: &SessionsArgs) -> Result<u8, Failure> {
    if !chat::has_keyboard() || app.globals.json {
        return Err(Failure::usage("--pick requires a terminal"));
    }
    let board = crate::wait_for(async {
        let client = app.connect().await?;
        Ok(client.session_board(&BoardParams { limit: Some(args.limit) }).await?)
    })?;
    if board.rows.is_empty() {
        app.info("there is no session yet");
        return Ok(OK);
    }
    let now = Timestamp::now();
    let row = |row: &BoardRow| {
        let age = age(now.0 - row.session.updated_at.0);
        let state = console::strip_ansi_codes(&state(row).to_string()).into_owned();
        format!("{age:>6}  {state:<13}  {}", session_name::title(&row.session))
    };
    let rows: Vec<String> = board.rows.iter().map(row).collect();
    let chosen = crate::wait_for(chat::choose("session", rows))?;
    let Some(chosen) = chosen.and_then(|at| board.rows.get(at)) else { return Ok(INTERRUPTED) };
    output::print(&table(&Board { rows: vec![chosen.clone()] }, now))?;
    let waits = !chosen.waiting.is_empty();
    let actions: Vec<_> =
        ACTIONS.iter().filter(|(_, line)| waits || line[0] != "approvals").collect();
    let names = actions.iter().map(|(name, _)| (*name).to_owned()).collect();
    let action = crate::wait_for(chat::choose("do", names))?;
    let Some((_, line)) = action.and_then(|at| actions.get(at)) else { return Ok(INTERRUPTED) };
    let id = chosen.session.session_id.as_str();
    crate::dispatch(app, &[&["cairn"], *line, &[id]].concat())
}

/// Runs the command.
pub async fn run(app: &App<'_>, args: SessionsArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    let params = BoardParams { limit: Some(args.limit) };
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
