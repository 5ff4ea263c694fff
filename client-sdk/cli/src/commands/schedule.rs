//! `cairn schedule`: requests that the daemon starts at set times.

use std::fmt::Write as _;

use cairn_protocol::{
    id::ScheduleId,
    schedule::{
        MissedRuns, Schedule, ScheduleAddParams, ScheduleEntry, ScheduleOutcome, ScheduleRef,
        ScheduledJob,
    },
    session::{Empty, Page},
};
use cairn_schedule::{Times, system_zone};
use clap::{Args, Subcommand};
use console::style;

use crate::{
    app::App,
    commands::run::JobArgs,
    exit::{Failure, OK},
    render::output::{self, plain},
};

/// Entries of the history that the list prints.
const MAX_ENTRIES: usize = 3;

const HELP: &str = "\
Times are words or a cron expression of five fields:

  cairn schedule add 'every weekday 7:00' 'summarise what changed since yesterday' --mode plan
  cairn schedule add 'every monday and thursday at 9:30' 'update the dependencies' --worktree --mode auto
  cairn schedule add 'every 2 hours' 'fix the build' --until 'make test' --budget 1
  cairn schedule add '0 6 1 * *' 'write the report of the month'

They are in the time zone of this machine unless --timezone names another. A time that the change to summer time skips
runs as much later; one that occurs twice runs once. A schedule never overlaps itself: while its last run is active, a
time is recorded as skipped. Schedules run while the daemon runs: 'cairn service install' starts it with the machine.
Exit codes: 0 done, 1 failed, 2 invalid usage, 3 not found, 4 no daemon.";

/// Arguments of `cairn schedule`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HELP)]
pub struct ScheduleArgs {
    /// The action; lists the schedules if absent.
    #[command(subcommand)]
    action: Option<Action>,
}

fn schedule_id(text: &str) -> Result<ScheduleId, String> {
    text.parse().map_err(|error| format!("{error}; 'cairn schedule' lists them"))
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Add a schedule
    Add(Box<AddArgs>),
    /// List the schedules with their next times and latest runs
    List,
    /// Remove a schedule; its active run continues
    Remove {
        /// Id of the schedule
        #[arg(value_name = "ID", value_parser = schedule_id)]
        schedule: ScheduleId,
    },
    /// Start a run of a schedule now
    RunNow {
        /// Id of the schedule
        #[arg(value_name = "ID", value_parser = schedule_id)]
        schedule: ScheduleId,
    },
}

#[derive(Debug, Clone, Args)]
struct AddArgs {
    /// Times in words, or a cron expression
    #[arg(value_name = "WHEN")]
    when: String,
    /// The request of each run
    #[arg(value_name = "REQUEST")]
    request: String,
    #[command(flatten)]
    job: JobArgs,
    /// Work in a new git work tree at each run
    #[arg(long)]
    worktree: bool,
    /// IANA time zone of the times, such as Europe/Paris; that of this machine if not given
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Times at which the daemon was off: one run follows (once), or none (skip)
    #[arg(long, value_name = "HOW", value_parser = ["once", "skip"], default_value = "once")]
    missed: String,
}

/// Runs the command.
pub async fn run(app: &App<'_>, args: ScheduleArgs) -> Result<u8, Failure> {
    let action = args.action.unwrap_or(Action::List);
    if let Action::Add(args) = &action {
        // A wrong time is reported before a daemon is started.
        let zone = args.timezone.clone().unwrap_or_else(system_zone);
        Times::parse(&args.when, &zone).map_err(|error| Failure::usage(error.to_string()))?;
    }
    let client = app.connect().await?;
    match action {
        Action::Add(args) => {
            let missed = if args.missed == "skip" { MissedRuns::Skip } else { MissedRuns::Once };
            let job = ScheduledJob {
                request: args.request.clone(),
                root: args.job.root(app, &client).await?,
                worktree: args.worktree,
                policy: Some(args.job.policy(app)?),
                until: args.job.until.clone(),
                max_turns: args.job.max_turns,
                max_usd: args.job.budget,
            };
            let timezone = Some(args.timezone.clone().unwrap_or_else(system_zone));
            let params = ScheduleAddParams { when: args.when.clone(), timezone, job, missed };
            if let Some(added) = app.answer::<Schedule>(&client, "schedule.add", &params).await? {
                output::line(added.schedule_id.as_str())?;
                app.info(&format!("next: {}", next_times(&added, 3).join(", ")));
            }
        }
        Action::List => {
            let page = app.answer::<Page<Schedule>>(&client, "schedule.list", &Empty {}).await?;
            if let Some(page) = page {
                if page.data.is_empty() {
                    app.info("there are no schedules; 'cairn schedule add' adds one");
                }
                output::print(&table(&page.data))?;
            }
        }
        Action::Remove { schedule } => {
            let params = ScheduleRef { schedule_id: schedule };
            if app.answer::<Empty>(&client, "schedule.remove", &params).await?.is_some() {
                output::line("removed")?;
            }
        }
        Action::RunNow { schedule } => {
            let params = ScheduleRef { schedule_id: schedule };
            let entry = app.answer::<ScheduleEntry>(&client, "schedule.run", &params).await?;
            if let Some(session) = entry.and_then(|entry| entry.session_id) {
                output::line(session.as_str())?;
            }
        }
    }
    Ok(OK)
}

/// Returns the next times of a schedule in its own time zone.
fn next_times(schedule: &Schedule, count: usize) -> Vec<String> {
    let Some(first) = schedule.next_at else { return vec![] };
    let Ok(times) = Times::parse(&schedule.cron, &schedule.timezone) else { return vec![] };
    let next = std::iter::successors(Some(first.0), |at| times.next_after(*at));
    next.take(count).filter_map(|at| times.local(at)).collect()
}

fn table(all: &[Schedule]) -> String {
    let mut out = String::new();
    for schedule in all {
        let next = next_times(schedule, 1).pop().unwrap_or_else(|| "never".to_owned());
        let _infallible = writeln!(
            out,
            "{}  {}  {}\n    next {next}  in {}\n    {}",
            schedule.schedule_id,
            style(plain(&schedule.when)).bold(),
            style(plain(&schedule.timezone)).dim(),
            plain(&schedule.job.root),
            plain(schedule.job.request.lines().next().unwrap_or_default()),
        );
        for entry in schedule.history.iter().take(MAX_ENTRIES) {
            let _infallible = writeln!(out, "    {}", history_line(schedule, entry));
        }
    }
    out
}

fn history_line(schedule: &Schedule, entry: &ScheduleEntry) -> String {
    let times = Times::parse(&schedule.cron, &schedule.timezone).ok();
    let at = times.and_then(|times| times.local(entry.at.0)).unwrap_or_default();
    let missed = entry.missed.map(|count| format!(", {count} missed")).unwrap_or_default();
    let text = match entry.outcome {
        ScheduleOutcome::Started => "started",
        ScheduleOutcome::Failed => "did not start",
        ScheduleOutcome::Overlapped => "skipped: the run before was active",
        ScheduleOutcome::Missed => "skipped: the daemon was off",
    };
    let session = entry.session_id.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
    let reason = entry.reason.as_ref().map(|why| format!(": {}", plain(why))).unwrap_or_default();
    format!("{at}  {text}{missed}{session}{reason}")
}
