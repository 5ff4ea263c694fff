//! `cairn run`: runs that go on without a client.

use std::{path::PathBuf, time::Duration};

use cairn_client_sdk::{Client, Item, Record};
use cairn_protocol::{
    approval::ApprovalDecision,
    event::AgentEvt,
    fleet::{FleetRunParams, FleetWork},
    id::SessionId,
    session::{Empty, Session, SessionCreateParams, WorktreeUse},
    turn::{ExecutionMode, ExecutionPolicy, Input, RunStartParams},
    unattended::{UnattendedRun, UnattendedStartParams, UnattendedStatus},
};
use clap::{Args, Subcommand};

use crate::{
    app::App,
    commands::{approvals, fleet},
    exit::{FAILED, Failure, INTERRUPTED, OK, REFUSED},
    render::{
        event,
        output::{self, plain},
    },
    scope::{self, Location, Stage},
    session_name::{self, SessionName},
};

/// Interval in which the status of a watched run is read.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Longest wait for one of the last records of a run that has ended.
const REST_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of creating a session, whose work tree may have a set-up command.
const CREATE_TIMEOUT: Duration = Duration::from_secs(900);
/// Maximum characters of a session's title.
const MAX_TITLE: usize = 60;
/// Maximum characters of a line of the log.
const MAX_LINE: usize = 400;

const HELP: &str = "\
The run goes on in the daemon when this command ends: Ctrl+C stops watching, not the run. A call that needs an approval
waits for it; 'cairn approvals' lists what waits, and it, 'cairn run answer', the viewer or a chat answers.

  cairn run 'update the changelog' --detach                       start it and return
  cairn run 'fix the failing test' --until 'cargo test' --mode auto --worktree --budget 2
  cairn run watch 3f9a2c                                          watch it again
  cairn run answer 3f9a2c yes                                     answer its question
  cairn run stop last                                             stop the newest
  cairn run 'update the changelog' --pool ci                      let a daemon of a pool do it ('cairn fleet')

With --until the command runs in the sandbox after each turn: exit status 0 ends the run, otherwise its output is the
next request. 'cairn chat --resume' continues the session when the run has ended.
Exit codes: 0 done, 1 failed or a limit ended it, 2 invalid usage, 3 not found, 4 no daemon, 130 stopped.";

/// Arguments of `cairn run`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HELP, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct RunArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// The request
    #[arg(value_name = "REQUEST", required = true,
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    request: Option<String>,
    #[command(flatten)]
    job: JobArgs,
    /// Work in a new git work tree, on a new branch of this name (cairn/… if not given)
    #[arg(long, value_name = "BRANCH", num_args = 0..=1, default_missing_value = "")]
    worktree: Option<String>,
    /// With --worktree: begin at this revision instead of the current commit
    #[arg(long, value_name = "REV", requires = "worktree")]
    base: Option<String>,
    /// Have a daemon of this pool do it, on the commit that is checked out here; 'cairn fleet'
    /// lists the pools
    #[arg(long, value_name = "NAME", conflicts_with_all = ["worktree", "until", "max_turns"])]
    pool: Option<String>,
    /// Return when the run has started
    #[arg(long)]
    detach: bool,
}

/// Arguments that runs and schedules have in common.
#[derive(Debug, Clone, Default, Args)]
pub struct JobArgs {
    /// Work in the root that contains this folder instead of the current one
    #[arg(long, value_name = "PATH")]
    pub root: Option<PathBuf>,
    /// Mode: plan changes nothing, ask waits for an approval of each change, accept-edits edits
    /// files without one, auto also runs commands in the sandbox without one
    #[arg(long, value_name = "MODE", value_parser = ["plan", "ask", "accept-edits", "auto"])]
    pub mode: Option<String>,
    /// Command that ends the run when it exits with 0; it runs in the sandbox after each turn
    #[arg(long, value_name = "COMMAND",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub until: Option<String>,
    /// With --until: maximum number of turns, at most 100; 10 if not given
    #[arg(long, value_name = "N", requires = "until")]
    pub max_turns: Option<u32>,
    /// Maximum cost of the run in US dollars, by the known prices
    #[arg(long, value_name = "USD", allow_negative_numbers = true, value_parser = dollars)]
    pub budget: Option<f64>,
}

fn dollars(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|amount: &f64| amount.is_finite() && *amount > 0.0)
        .ok_or_else(|| "an amount above 0, such as 2 or 0.5".to_owned())
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Print what a run does, until it ends
    Watch {
        /// Session of the run
        #[arg(value_name = "ID")]
        session: SessionName,
    },
    /// Stop a run
    Stop {
        /// Session of the run
        #[arg(value_name = "ID")]
        session: SessionName,
    },
    /// Answer the oldest question of a session; prints it if no answer is given
    Answer {
        /// Session that waits
        #[arg(value_name = "ID")]
        session: SessionName,
        /// The answer: once (yes), session, always, everywhere, deny (no)
        #[arg(value_name = "ANSWER", value_parser = approvals::decision)]
        answer: Option<ApprovalDecision>,
        /// With deny: the reason, which the model receives
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

impl JobArgs {
    /// Returns the policy of the turns.
    pub fn policy(&self, app: &App<'_>) -> Result<ExecutionPolicy, Failure> {
        let mut policy = ExecutionPolicy {
            // The user's own configuration must allow external models as well.
            allow_external_llms: true,
            mode: self.mode.as_deref().and_then(ExecutionMode::from_name),
            ..ExecutionPolicy::default()
        };
        app.overrides()?.apply(&mut policy);
        Ok(policy)
    }

    /// Returns the path of the declared root.
    pub async fn root(&self, app: &App<'_>, client: &Client) -> Result<String, Failure> {
        let here = match &self.root {
            Some(path) => app.canonical(path)?,
            None => app.location(client).await?,
        };
        Ok(scope::root(app, client, Location::Around(&here), Stage::Lexical).await?.path)
    }
}

/// Runs the command.
pub async fn run(app: &App<'_>, args: RunArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    match args.action.clone() {
        Some(Action::Watch { session }) => {
            watch(app, &client, &session.resolve(&client).await?, 0).await
        }
        Some(Action::Stop { session }) => {
            let session = session.resolve(&client).await?;
            let params = Client::session(&session);
            let run = app.answer::<UnattendedRun>(&client, "unattended.stop", &params).await?;
            if let Some(run) = run {
                let text = if run.status.is_final() { "has ended already" } else { "is stopped" };
                output::line(&format!("the run of {session} {text}"))?;
            }
            Ok(OK)
        }
        Some(Action::Answer { session, answer, reason }) => {
            resolve(app, &client, &session.resolve(&client).await?, answer, reason).await
        }
        None => start(app, &client, args).await,
    }
}

async fn start(app: &App<'_>, client: &Client, args: RunArgs) -> Result<u8, Failure> {
    let request = args.request.clone().unwrap_or_default();
    if let Some(pool) = &args.pool {
        return start_in_pool(app, client, &args, pool, request).await;
    }
    let session = create_session(app, client, &args, &request).await?;
    let id = session.session_id.clone();
    if let Some(tree) = &session.worktree {
        app.info(&format!(
            "working in {}, on the branch {}",
            plain(&tree.path),
            plain(&tree.branch)
        ));
        if let Some(setup) = tree.setup.as_ref().filter(|setup| !setup.succeeded()) {
            let cause = setup
                .error
                .clone()
                .unwrap_or_else(|| format!("exit status {}", setup.exit_code.unwrap_or_default()));
            let text = format!("the set-up '{}' failed: {}", plain(&setup.command), plain(&cause));
            let hint = format!(
                "the work tree remains; 'cairn trace show {id}' has the output, 'cairn worktrees \
                 remove' removes it"
            );
            return Err(Failure::failed(text).hint(hint));
        }
    }
    let params = UnattendedStartParams {
        turn: RunStartParams {
            session_id: id.clone(),
            turn_id: uuid::Uuid::now_v7().to_string(),
            input: Input::Text(request),
            context: None,
            policy: Some(args.job.policy(app)?),
            metadata: std::collections::BTreeMap::new(),
        },
        until: args.job.until.clone(),
        max_turns: args.job.max_turns,
        max_usd: args.job.budget,
    };
    let receipt = client.unattended_start(&params).await?;
    if app.globals.json {
        output::json(&receipt)?;
    } else {
        output::line(id.as_str())?;
    }
    let name = session_name::short(&id);
    app.info(&format!("'cairn run watch {name}' watches it, 'cairn run answer {name}' answers"));
    if args.detach {
        return Ok(OK);
    }
    watch(app, client, &id, receipt.seq.saturating_sub(1)).await
}

async fn start_in_pool(
    app: &App<'_>,
    client: &Client,
    args: &RunArgs,
    pool: &str,
    request: String,
) -> Result<u8, Failure> {
    let policy = ExecutionPolicy { max_usd: args.job.budget, ..args.job.policy(app)? };
    let line = request.trim().lines().next().unwrap_or_default();
    let params = FleetRunParams {
        pool: pool.to_owned(),
        turn_id: None,
        title: Some(line.chars().take(MAX_TITLE).collect()),
        work: FleetWork::Turn { input: request, policy: Some(Box::new(policy)) },
        repository: None,
        root: Some(args.job.root(app, client).await?),
        metadata: std::collections::BTreeMap::new(),
    };
    let run = client.fleet_run(&params).await?;
    if app.globals.json {
        output::json(&run)?;
    } else {
        output::line(&run.turn_id)?;
    }
    if args.detach {
        app.info(&format!("'cairn fleet runs {pool}' shows what becomes of it"));
        return Ok(OK);
    }
    fleet::watch(app, client, run).await
}

async fn create_session(
    app: &App<'_>,
    client: &Client,
    args: &RunArgs,
    request: &str,
) -> Result<Session, Failure> {
    let line = request.trim().lines().next().unwrap_or_default();
    let params = SessionCreateParams {
        title: Some(line.chars().take(MAX_TITLE).collect()),
        root: Some(args.job.root(app, client).await?),
        worktree: args.worktree.is_some().then_some(WorktreeUse::New),
        branch: args.worktree.clone().filter(|branch| !branch.is_empty()),
        base: args.base.clone(),
        request_id: None,
    };
    Ok(client.call_within("session.create", &params, CREATE_TIMEOUT).await?)
}

/// Prints the records of a run until it ends.
async fn watch(
    app: &App<'_>,
    client: &Client,
    session: &SessionId,
    after: u64,
) -> Result<u8, Failure> {
    find_run(client, session).await?;
    let mut follow = client.follow(session, after);
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    let mut poll = tokio::time::interval(POLL_INTERVAL);
    let mut printed = after;
    loop {
        tokio::select! {
            item = follow.next() => if let Item::Event(record) = item? {
                printed = record.seq;
                print_record(app, &record)?;
            },
            _ = poll.tick() => {
                let run = find_run(client, session).await?;
                if run.status.is_final() {
                    let head = client.session_get(&Client::session(session)).await?.head_seq;
                    while printed < head {
                        let item = tokio::time::timeout(REST_TIMEOUT, follow.next()).await;
                        let Ok(item) = item else { break };
                        if let Item::Event(record) = item? {
                            printed = record.seq;
                            print_record(app, &record)?;
                        }
                    }
                    return finish(app, &run);
                }
            }
            _ = &mut interrupt => {
                let name = session_name::short(session);
                app.info(&format!("the run goes on; 'cairn run stop {name}' stops it"));
                return Ok(INTERRUPTED);
            }
        }
    }
}

fn print_record(app: &App<'_>, record: &Record) -> Result<(), Failure> {
    let envelope = record.envelope()?;
    if app.globals.json {
        output::json(&envelope)?;
    } else if let Some(line) = envelope.body.evt().and_then(line) {
        output::line(&line)?;
    }
    Ok(())
}

/// Renders an event that a watcher needs.
fn line(evt: &AgentEvt) -> Option<String> {
    let is_relevant = !matches!(
        evt,
        AgentEvt::TokenDelta { .. }
            | AgentEvt::PromptProgress { .. }
            | AgentEvt::Text { .. }
            | AgentEvt::CommandOutput { .. }
            | AgentEvt::RunStarted { .. }
    );
    let text = match evt {
        AgentEvt::RunCompleted { result } => {
            let answer = result.final_output.as_deref().unwrap_or_default();
            return Some(output::plain_lines(answer)).filter(|answer| !answer.is_empty());
        }
        evt => {
            let (kind, text) = event::line(evt);
            format!("{kind:<10} {}", plain(&text.chars().take(MAX_LINE).collect::<String>()))
        }
    };
    is_relevant.then_some(text)
}

fn finish(app: &App<'_>, run: &UnattendedRun) -> Result<u8, Failure> {
    let mut text = format!("{} after {} turns", run.status.as_str(), run.turns);
    if let Some(reason) = &run.reason {
        text.push_str(&format!(": {}", plain(reason)));
    }
    app.info(&text);
    Ok(match run.status {
        UnattendedStatus::Completed => OK,
        UnattendedStatus::Cancelled => INTERRUPTED,
        _ => FAILED,
    })
}

async fn find_run(client: &Client, session: &SessionId) -> Result<UnattendedRun, Failure> {
    let all = client.unattended_list(&Empty {}).await?.data;
    let found = all.into_iter().find(|run| run.session_id == *session);
    found.ok_or_else(|| {
        let text = format!("session {session} has no run that goes on without a client");
        Failure::with_reason("run_not_found", text).hint("'cairn sessions' lists the sessions")
    })
}

/// Answers the oldest question of a session, or prints it.
async fn resolve(
    app: &App<'_>,
    client: &Client,
    session: &SessionId,
    answer: Option<ApprovalDecision>,
    reason: Option<String>,
) -> Result<u8, Failure> {
    let oldest = approvals::pending(client, Some(session.clone())).await?.into_iter().next();
    let Some(approval) = oldest else {
        app.info("the session does not wait for an answer");
        return Ok(REFUSED);
    };
    let Some(decision) = answer else {
        let session = client.session_get(&Client::session(session)).await?;
        output::print(&approvals::details(&approval, &session))?;
        return Ok(OK);
    };
    approvals::resolve(client, &approval, decision, reason, false).await
}
