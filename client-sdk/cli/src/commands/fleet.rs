//! `cairn fleet`: daemons of several machines that share a broker.

use std::{fmt::Write as _, time::Duration};

use cairn_client_sdk::Client;
use cairn_protocol::{
    approval::{ApprovalDecision, ApprovalResolveParams},
    envelope::Envelope,
    fleet::{
        FleetCallParams, FleetDaemon, FleetRecordsParams, FleetRun, FleetRunRef, FleetRunState,
        FleetRunsParams, FleetStatus, PoolStatus,
    },
    id::{ApprovalId, SessionId},
    session::Empty,
    turn::SteerParams,
};
use clap::{Args, Subcommand};
use console::style;

use crate::{
    app::App,
    commands::approvals,
    exit::{FAILED, Failure, INTERRUPTED, OK},
    render::{
        event,
        output::{self, number, plain},
    },
    session_name,
};

/// Interval in which the state of a watched run is read.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Longest wait of one request for further records, in milliseconds.
const RECORD_WAIT_MILLIS: u32 = 10_000;
/// Records of one request.
const RECORDS: u32 = 200;

const HELP: &str = "\
  cairn fleet                                   the daemons, their sessions, and what waits for an answer
  cairn run --pool ci 'fix the failing test'    a daemon of the pool 'ci' does it
  cairn fleet runs ci                           the runs of a pool, with their daemons and reasons
  cairn fleet cancel ci ID                      stop a run, wherever it is
  cairn fleet records build-1 3f9a2c --follow   what a session of another daemon does
  cairn fleet answer build-1 7d21f0 yes         answer its question
  cairn fleet steer build-1 3f9a2c 'use tabs'   tell its model something during a run

The section 'fleet' of your configuration names the broker: see docs/fleet.md. Without it nothing leaves this machine.
Exit codes: 0 done, 1 failed, 2 invalid usage, 3 not found, 4 no daemon, 130 interrupted.";

/// Arguments of `cairn fleet`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HELP)]
pub struct FleetArgs {
    /// The action; shows the daemons if absent.
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Show the daemons with their sessions and pools
    Status,
    /// List the runs of a pool
    Runs {
        /// Name of the pool
        #[arg(value_name = "POOL")]
        pool: String,
        /// Most runs to list, up to 1000; those that changed last
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Stop a waiting or active run of a pool
    Cancel {
        /// Name of the pool
        #[arg(value_name = "POOL")]
        pool: String,
        /// Id of the run
        #[arg(value_name = "ID")]
        turn_id: String,
    },
    /// Print the mirrored records of a session of any daemon
    Records {
        /// Name of the daemon
        #[arg(value_name = "DAEMON")]
        daemon: String,
        /// Session, or a part of its id
        #[arg(value_name = "SESSION")]
        session: String,
        /// Wait for further records
        #[arg(long, short)]
        follow: bool,
    },
    /// Tell the model of a running session of another daemon something
    Steer {
        /// Name of the daemon
        #[arg(value_name = "DAEMON")]
        daemon: String,
        /// Session, or a part of its id
        #[arg(value_name = "SESSION")]
        session: String,
        /// The text, which the model receives before its next answer
        #[arg(value_name = "TEXT")]
        text: String,
    },
    /// Answer a question of a session of another daemon
    Answer {
        /// Name of the daemon
        #[arg(value_name = "DAEMON")]
        daemon: String,
        /// Id of the question, or a part of it
        #[arg(value_name = "ID")]
        id: String,
        /// The answer: once (yes), session, always, everywhere, deny (no)
        #[arg(value_name = "ANSWER", value_parser = approvals::decision)]
        answer: ApprovalDecision,
        /// With deny: the reason, which the model receives
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

pub async fn run(app: &App<'_>, args: FleetArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    match args.action.unwrap_or(Action::Status) {
        Action::Status => {
            if let Some(status) =
                app.answer::<FleetStatus>(&client, "fleet.status", &Empty {}).await?
            {
                output::print(&overview(&status))?;
                if let Some(error) = &status.error {
                    app.info(&plain(error));
                }
            }
            Ok(OK)
        }
        Action::Runs { pool, limit } => runs(app, &client, pool, limit).await,
        Action::Cancel { pool, turn_id } => {
            let run = client.fleet_cancel(&FleetRunRef { pool, turn_id }).await?;
            match run.state {
                FleetRunState::Cancelled => output::line("cancelled")?,
                FleetRunState::Running => output::line("its daemon stops the run")?,
                state => output::line(&format!("the run had ended: {}", state.as_str()))?,
            }
            Ok(OK)
        }
        Action::Records { daemon, session, follow } => {
            records(app, &client, daemon, &session, follow).await
        }
        Action::Steer { daemon, session, text } => {
            let session_id = find_session(&client, &daemon, &session).await?;
            let params = SteerParams { session_id, text };
            call(&client, daemon, "orchestrate.run.steer", &params).await?;
            output::line("sent")?;
            Ok(OK)
        }
        Action::Answer { daemon, id, answer, reason } => {
            answer_question(&client, daemon, &id, answer, reason).await
        }
    }
}

fn overview(status: &FleetStatus) -> String {
    let mut out = String::new();
    let link = if status.connected { "connected" } else { "not connected" };
    let _infallible = writeln!(
        out,
        "{}  {} to {}",
        style(plain(&status.name)).bold(),
        link,
        plain(&status.server)
    );
    if let Some(mirror) = &status.mirror {
        let _infallible = writeln!(
            out,
            "mirror: {} records since the start, {} sessions wait",
            mirror.confirmed, mirror.waiting
        );
        if let Some(error) = &mirror.error {
            let _infallible = writeln!(out, "mirror: {}", plain(error));
        }
    }
    status.pools.iter().for_each(|pool| out.push_str(&pool_line(pool)));
    status.daemons.iter().for_each(|daemon| out.push_str(&daemon_lines(daemon)));
    if status.truncated {
        let listed = number(status.daemons.len() as u64);
        let _infallible =
            writeln!(out, "more are connected: these {listed} confirmed their state last");
    }
    out
}

fn pool_line(pool: &PoolStatus) -> String {
    let daemons = match pool.daemons.is_empty() {
        true => "no daemon takes its runs".to_owned(),
        false => pool.daemons.iter().map(|name| plain(name)).collect::<Vec<_>>().join(", "),
    };
    format!(
        "pool {}: {} wait, {} run; {daemons}\n",
        style(plain(&pool.name)).bold(),
        pool.queued,
        pool.active
    )
}

fn daemon_lines(daemon: &FleetDaemon) -> String {
    let mut out = format!(
        "\n{}  cairn {}  {} active, {} wait for an answer\n",
        style(plain(&daemon.name)).bold(),
        plain(&daemon.version),
        daemon.running,
        daemon.waiting
    );
    for session in &daemon.sessions {
        let text = session.request.as_deref().unwrap_or(&session.title);
        let _infallible = writeln!(
            out,
            "  {}  {:<11}  {}",
            session_name::short(&session.session_id),
            session.state.as_str(),
            plain(text)
        );
        for approval in &session.approvals {
            let _infallible = writeln!(
                out,
                "    {} waits: {} — cairn fleet answer {} {} yes",
                plain(&approval.tool),
                plain(&approval.summary),
                plain(&daemon.name),
                session_name::last_digits(approval.approval_id.as_str())
            );
        }
    }
    out
}

async fn runs(app: &App<'_>, client: &Client, pool: String, limit: u32) -> Result<u8, Failure> {
    let params = FleetRunsParams { pool, limit: Some(limit), ..FleetRunsParams::default() };
    let page = client.fleet_runs(&params).await?;
    if app.globals.json {
        output::json(&page)?;
        return Ok(OK);
    }
    if page.data.is_empty() {
        app.info("the pool has no runs");
    }
    for run in &page.data {
        output::line(&run_line(run))?;
    }
    if page.next_cursor.is_some() {
        app.info("older runs are left out: --limit lists more");
    }
    Ok(OK)
}

fn run_line(run: &FleetRun) -> String {
    let daemon = run.attempts.last().map_or("-", |attempt| attempt.daemon.as_str());
    let mut line = format!(
        "{}  {:<9}  {:<12}  {}",
        plain(&run.turn_id),
        run.state.as_str(),
        plain(daemon),
        plain(&run.request)
    );
    if run.attempts.len() > 1 {
        let _infallible = write!(line, "  (attempt {})", run.attempts.len());
    }
    if let Some(reason) = &run.reason {
        let _infallible = write!(line, "\n    {}", plain(reason));
    }
    line
}

/// Prints the states of a run of a pool until it ends.
///
/// # Errors
/// Fails when the daemon cannot be asked.
pub async fn watch(app: &App<'_>, client: &Client, run: FleetRun) -> Result<u8, Failure> {
    let (pool, turn_id) = (run.pool.clone(), run.turn_id.clone());
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    let mut poll = tokio::time::interval(POLL_INTERVAL);
    let mut last = String::new();
    loop {
        tokio::select! {
            _ = poll.tick() => {}
            _ = &mut interrupt => {
                app.info(&format!("the run goes on; 'cairn fleet cancel {pool} {turn_id}' stops it"));
                return Ok(INTERRUPTED);
            }
        }
        let params = FleetRunsParams {
            pool: pool.clone(),
            turn_id: Some(turn_id.clone()),
            ..FleetRunsParams::default()
        };
        let Some(run) = client.fleet_runs(&params).await?.data.into_iter().next() else {
            return Err(Failure::failed("the run is gone"));
        };
        let state = describe(&run);
        if state != last {
            app.info(&state);
            last = state;
        }
        if run.state.is_final() {
            if app.globals.json {
                output::json(&run)?;
            }
            return Ok(match run.state {
                FleetRunState::Completed => OK,
                FleetRunState::Cancelled => INTERRUPTED,
                _ => FAILED,
            });
        }
    }
}

fn describe(run: &FleetRun) -> String {
    let mut text = run.state.as_str().to_owned();
    if let Some(attempt) = run.attempts.last() {
        let _infallible = write!(text, " on {}", plain(&attempt.daemon));
        if let Some(session) = &attempt.session_id {
            let _infallible = write!(text, ", session {}", session_name::short(session));
        }
    }
    if run.attempts.len() > 1 {
        let _infallible = write!(text, " (attempt {})", run.attempts.len());
    }
    if let Some(reason) = &run.reason {
        let _infallible = write!(text, ": {}", plain(reason));
    }
    text
}

async fn find_session(client: &Client, daemon: &str, part: &str) -> Result<SessionId, Failure> {
    if let Ok(id) = part.parse() {
        return Ok(id);
    }
    let status = client.fleet_status(&Empty {}).await?;
    let daemon = find_daemon(&status, daemon)?;
    let missing = || {
        let text = format!("{} lists no session '{}'", plain(&daemon.name), plain(part));
        Failure::refused(text)
            .hint("'cairn fleet' lists the sessions; older ones need the complete id")
    };
    only(daemon.sessions.iter().map(|session| &session.session_id), SessionId::as_str, part)
        .unwrap_or_else(|| Err(missing()))
}

/// Returns the id that has these digits; `None` without one.
fn only<'a, T: Clone + 'a>(
    ids: impl Iterator<Item = &'a T>,
    text: impl Fn(&T) -> &str,
    digits: &str,
) -> Option<Result<T, Failure>> {
    let mut found = ids.filter(|id| session_name::has_digits(text(id), digits));
    let first = found.next()?;
    Some(match found.next() {
        None => Ok(first.clone()),
        Some(_) => Err(Failure::usage(format!("several have the id '{}'", plain(digits)))
            .hint("use more digits")),
    })
}

fn find_daemon<'a>(status: &'a FleetStatus, name: &str) -> Result<&'a FleetDaemon, Failure> {
    let missing = || {
        Failure::refused(format!("no daemon '{}' is connected", plain(name)))
            .hint("'cairn fleet' lists the daemons")
    };
    status.daemons.iter().find(|daemon| daemon.name == name).ok_or_else(missing)
}

async fn records(
    app: &App<'_>,
    client: &Client,
    daemon: String,
    session: &str,
    follow: bool,
) -> Result<u8, Failure> {
    let session_id = find_session(client, &daemon, session).await?;
    let mut after = 0;
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    loop {
        let params = FleetRecordsParams {
            daemon: daemon.clone(),
            session_id: session_id.clone(),
            after,
            limit: Some(RECORDS),
            wait_millis: follow.then_some(RECORD_WAIT_MILLIS),
        };
        let answer = tokio::select! {
            answer = client.fleet_records(&params) => answer?,
            _ = &mut interrupt => return Ok(INTERRUPTED),
        };
        if let (0, Some(first)) = (after, answer.first) {
            app.info(&format!("the broker has the records from {first} on"));
        }
        let count = answer.records.len();
        for record in answer.records {
            after = record["seq"].as_u64().unwrap_or(after + 1);
            if app.globals.json {
                output::json(&record)?;
            } else {
                output::line(&record_line(record))?;
            }
        }
        if count == 0 && !follow {
            return Ok(OK);
        }
    }
}

fn record_line(record: serde_json::Value) -> String {
    let (seq, omitted) = (record["seq"].as_u64().unwrap_or(0), record["omittedBytes"].as_u64());
    if let Some(bytes) = omitted {
        return format!("{seq:>6} omitted    {bytes} bytes, over the broker's limit of a message");
    }
    let kind = record["kind"].as_str().unwrap_or("record").to_owned();
    let Ok(envelope) = serde_json::from_value::<Envelope>(record) else {
        return format!("{seq:>6} {}", plain(&kind));
    };
    match envelope.body.evt() {
        Some(evt) => {
            let (kind, text) = event::line(evt);
            format!("{seq:>6} {kind:<10} {}", plain(&text))
        }
        None => format!("{seq:>6} {}", plain(&kind)),
    }
}

async fn answer_question(
    client: &Client,
    daemon: String,
    id: &str,
    decision: ApprovalDecision,
    reason: Option<String>,
) -> Result<u8, Failure> {
    let status = client.fleet_status(&Empty {}).await?;
    let waiting = find_daemon(&status, &daemon)?.sessions.iter().flat_map(|s| &s.approvals);
    let approval_id = match id.parse() {
        Ok(complete) => complete,
        Err(_) => only(waiting.map(|approval| &approval.approval_id), ApprovalId::as_str, id)
            .unwrap_or_else(|| {
                let text = format!("{} has no question '{}'", plain(&daemon), plain(id));
                Err(Failure::refused(text).hint("'cairn fleet' lists what waits"))
            })?,
    };
    let params = ApprovalResolveParams {
        approval_id,
        decision,
        reason,
        pattern: None,
        values: Default::default(),
    };
    call(client, daemon, "approval.resolve", &params).await?;
    output::line("answered")?;
    Ok(OK)
}

/// Calls a method of another daemon.
async fn call(
    client: &Client,
    daemon: String,
    method: &str,
    params: &impl serde::Serialize,
) -> Result<(), Failure> {
    let params = serde_json::to_value(params).unwrap_or_default();
    client.fleet_call(&FleetCallParams { daemon, method: method.into(), params }).await?;
    Ok(())
}
