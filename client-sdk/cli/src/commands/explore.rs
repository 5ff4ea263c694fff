//! `cairn explore`: start, follow, display, summarise.

mod outputs;

use std::{path::Path, time::Duration};

use cairn_client_sdk::{Client, ClientError, Item, Record};
use cairn_protocol::{
    approval::ApprovalListParams,
    error::Reason,
    event::AgentEvt,
    explore::{ExplorePolicy, ExploreStartParams, PlannerKind, RunState},
    id::SessionId,
    index::IndexStatusParams,
};
use clap::Args;

use crate::{
    app::{App, current_dir},
    commands::tools::{self, Approver},
    exit::{FAILED, Failure, INTERRUPTED, OK},
    render::{output, progress::Progress},
    scope,
    session_name::{self, SessionName},
};

/// The operation whose end is the end of the run.
const EXPLORE_OPERATION: &str = "explore";
/// Time for reconnecting after a lost connection; a restarted service is back within it.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of polling the index.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The remedy for an approval without an approver.
const NO_APPROVER_HINT: &str =
    "run it in a terminal and answer there, or clone it with git and explore the folder";

const EXAMPLES: &str = "\
Examples:
  cairn explore                             this folder
  cairn explore ~/src/project --goal auth   with a question to answer
  cairn explore https://github.com/owner/name --branch main
  cairn explore --since v1.2                with what changed since a revision
  cairn explore --full                      everything, not one page
  cairn explore --html overview.html        a page with a diagram, for a browser
  cairn explore --markdown ARCHITECTURE.md --agents-md AGENTS.md
                                            documents to review and commit
  cairn explore --json | tail -n 1          the last event, with the summary
  cairn explore --resume ses_…              resume an interrupted one, or follow a running one

Ctrl-C stops the explore; a second one exits at once.
Exit codes: 0 done, 1 failed or stopped, 2 invalid usage, 3 not found or refused, 4 no daemon, 130 interrupted.";

/// Arguments of `cairn explore`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExploreArgs {
    /// A folder, or the URL of a git repository to clone
    #[arg(value_name = "PATH|URL", default_value = ".", hide_default_value = true,
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    target: String,
    /// A question to answer; may be given several times
    #[arg(long, value_name = "TEXT")]
    goal: Vec<String>,
    /// Report what changed between this git revision and the work tree
    #[arg(long, value_name = "REV", allow_hyphen_values = true)]
    since: Option<String>,
    /// Let the configured model plan further steps after the built-in ones
    #[arg(long)]
    model: bool,
    /// The branch to clone
    #[arg(long)]
    branch: Option<String>,
    /// Resume an interrupted session, or follow a running one
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["target", "goal", "since", "branch", "model"])]
    resume: Option<SessionName>,
    /// The form of the summary.
    #[command(flatten)]
    outputs: outputs::OutputArgs,
}

/// A followed run and the position in it.
struct Run {
    session: SessionId,
    /// Records after this one are displayed.
    after: u64,
    /// An end before this record belongs to an earlier run.
    from: u64,
    /// The root, if it is known in advance.
    root: Option<String>,
}

pub async fn run(app: &App<'_>, args: ExploreArgs) -> Result<u8, Failure> {
    args.outputs.check(app.globals.json)?;
    // Problems with a local folder are reported before a daemon is started.
    let early = if args.resume.is_none() && !app.is_remote() {
        Some(start_params(app, &args, &current_dir()?)?)
    } else {
        None
    };
    // Cloning from the local network needs an approval, if a person can give one.
    let approver = if crate::chat::has_keyboard() && !app.globals.json {
        Approver::Keyboard
    } else {
        Approver::None
    };
    let connector = app.connector();
    let client = app
        .connect_with(if approver == Approver::Keyboard { connector.approver() } else { connector })
        .await?;
    let params = match early {
        None if args.resume.is_none() => {
            Some(start_params(app, &args, &app.location(&client).await?)?)
        }
        early => early,
    };
    let run = match (&args.resume, params) {
        (Some(name), _) => resume(&client, &name.resolve(&client).await?).await?,
        (None, params) => start(&client, &params.unwrap_or_default()).await?,
    };
    if !app.globals.json {
        app.info(&format!("session {}", session_name::short(&run.session)));
    }
    Watch {
        app,
        client,
        run,
        progress: Progress::new(!app.globals.quiet && !app.globals.json),
        aborting: false,
        approver,
        outputs: args.outputs,
    }
    .follow()
    .await
}

fn start_params(
    app: &App<'_>,
    args: &ExploreArgs,
    here: &Path,
) -> Result<ExploreStartParams, Failure> {
    let goals = args.goal.clone();
    // The daemon user's configuration decides which models may be used.
    let planner = args.model.then_some(PlannerKind::Model);
    let policy = ExplorePolicy { allow_external_llms: args.model, ..ExplorePolicy::default() };
    if (app.is_remote() || !Path::new(&args.target).exists()) && is_url(&args.target) {
        let policy = Some(ExplorePolicy { network: true, ..policy });
        let remote_url = Some(args.target.clone());
        return Ok(ExploreStartParams {
            remote_url,
            branch: args.branch.clone(),
            policy,
            planner,
            goals,
            since: args.since.clone(),
            ..Default::default()
        });
    }
    if args.branch.is_some() {
        return Err(Failure::usage("--branch requires a URL; a folder is explored as it is"));
    }
    let path = app.canonical(&here.join(&args.target))?;
    let root = Some(scope::utf8(&path)?);
    let policy = args.model.then_some(policy);
    let since = args.since.clone();
    Ok(ExploreStartParams { root, policy, planner, goals, since, ..Default::default() })
}

/// Returns true for `scheme://…`, or `host:path` in scp notation. The daemon decides whether the
/// URL is allowed.
fn is_url(text: &str) -> bool {
    let scp = || {
        text.split_once(':')
            .is_some_and(|(host, path)| !host.is_empty() && !host.contains('/') && !path.is_empty())
    };
    text.contains("://") || scp()
}

async fn start(client: &Client, params: &ExploreStartParams) -> Result<Run, Failure> {
    let receipt = client.explore_start(params).await?;
    let after = receipt.seq.saturating_sub(1);
    Ok(Run { session: receipt.session_id, after, from: receipt.seq, root: params.root.clone() })
}

async fn resume(client: &Client, session: &SessionId) -> Result<Run, Failure> {
    let session_info = client.session_get(&Client::session(session)).await?;
    if session_info.state == RunState::Idle {
        return Err(Failure::with_reason("not_resumable", format!("session {session} has no run")));
    }
    if session_info.state != RunState::Interrupted {
        return Ok(Run {
            session: session.clone(),
            after: 0,
            from: session_info.head_seq,
            root: session_info.root,
        });
    }
    let receipt = client.session_resume(&Client::session(session)).await?;
    let after = receipt.seq.saturating_sub(1);
    Ok(Run { session: session.clone(), after, from: receipt.seq, root: session_info.root })
}

struct Watch<'a> {
    app: &'a App<'a>,
    client: Client,
    run: Run,
    progress: Progress,
    aborting: bool,
    approver: Approver,
    outputs: outputs::OutputArgs,
}

/// The effect of a record on the command.
enum Step {
    Go,
    End(Result<u8, Failure>),
}

impl Watch<'_> {
    async fn follow(mut self) -> Result<u8, Failure> {
        let mut follow =
            self.client.follow(&self.run.session, self.run.after).patience(RECONNECT_TIMEOUT);
        let mut look = tokio::time::interval(POLL_INTERVAL);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let interrupt = tokio::signal::ctrl_c();
        tokio::pin!(interrupt);
        let mut stage = "starting".to_owned();
        loop {
            tokio::select! {
                item = follow.next() => match item {
                    Ok(Item::Event(record)) => {
                        self.approve(&record).await?;
                        if let Step::End(end) = self.take(&record, &mut stage)? {
                            return end;
                        }
                    }
                    Ok(Item::Synced(_) | Item::Lagged(_) | Item::Live(_)) => {}
                    Err(error) => return Err(self.interrupted_failure(error)),
                },
                _ = &mut interrupt => {
                    if self.aborting {
                        return Ok(INTERRUPTED);
                    }
                    self.abort();
                    interrupt.set(tokio::signal::ctrl_c());
                }
                _ = look.tick(), if self.progress.is_visible() => self.draw(&stage).await,
            }
        }
    }

    /// Prompts the user for a pending approval.
    async fn approve(&mut self, record: &Record) -> Result<(), Failure> {
        if self.approver != Approver::Keyboard {
            return Ok(());
        }
        let Ok(envelope) = record.envelope() else { return Ok(()) };
        let Some(AgentEvt::ApprovalRequired { approval }) = envelope.body.evt() else {
            return Ok(());
        };
        let session_filter = ApprovalListParams {
            session_id: Some(self.run.session.clone()),
            ..ApprovalListParams::default()
        };
        let pending = self.client.approval_list(&session_filter).await?.data;
        if !pending.iter().any(|one| one.approval_id == approval.approval_id) {
            return Ok(());
        }
        self.progress.pause();
        let answered = tools::answer(self.app, &self.client, approval, self.approver).await;
        self.progress.resume();
        answered
    }

    fn take(&mut self, record: &Record, stage: &mut String) -> Result<Step, Failure> {
        if self.app.globals.json {
            output::line(&record.json)?;
        }
        // Unknown records of a newer daemon are only passed on.
        let Ok(envelope) = record.envelope() else { return Ok(Step::Go) };
        let Some(event) = envelope.body.evt() else { return Ok(Step::Go) };
        match event {
            AgentEvt::Started { op, details } if op != EXPLORE_OPERATION => {
                *stage = details
                    .as_ref()
                    .map_or_else(|| op.clone(), |d| format!("{op} {}", output::plain(d)));
            }
            AgentEvt::Progress { op, percent, message } => {
                let text = message
                    .as_deref()
                    .map_or_else(|| format!("{op} {percent:.0} %"), output::plain);
                *stage = text;
            }
            AgentEvt::Warning { message, .. }
                if !self.app.globals.json && !self.app.globals.quiet =>
            {
                self.progress.println(&format!("warning: {}", output::plain(message)));
            }
            AgentEvt::Interrupted { .. } if record.seq > self.run.from => {
                let failure = Failure::with_reason(
                    "interrupted",
                    "the daemon stopped before the explore finished".into(),
                );
                return Ok(Step::End(Err(failure.hint(self.resume_hint()))));
            }
            event if event.ends(EXPLORE_OPERATION) && record.seq >= self.run.from => {
                return Ok(Step::End(self.end(event)));
            }
            _ => {}
        }
        Ok(Step::Go)
    }

    fn end(&self, event: &AgentEvt) -> Result<u8, Failure> {
        match event {
            AgentEvt::Completed { summary } => {
                if !self.app.globals.json {
                    self.progress.finish();
                    self.outputs.emit(self.app, summary, &self.run.session)?;
                }
                Ok(OK)
            }
            AgentEvt::Error { message, reason, .. } => {
                let reason = reason.as_deref().unwrap_or("failed");
                let failure = Failure::with_reason(reason, output::plain(message));
                let not_found = Reason::RevisionNotFound;
                Err(match reason {
                    "no_approver" => failure.hint(NO_APPROVER_HINT),
                    reason if reason == not_found.as_str() => failure.hint(not_found.hint()),
                    _ => failure,
                })
            }
            AgentEvt::Stopped { reason, .. } => {
                self.app.info(&format!("stopped: {}", output::plain(reason)));
                Ok(if self.aborting { INTERRUPTED } else { FAILED })
            }
            _ => Ok(FAILED),
        }
    }

    /// Requests the end, once; the `stopped` record will confirm it.
    fn abort(&mut self) {
        self.aborting = true;
        self.progress.println("stopping the explore; press Ctrl-C again to exit at once");
        let client = self.client.clone();
        let session = self.run.session.clone();
        tokio::spawn(async move {
            // An exited daemon has stopped the run already, which the follower reports.
            let _daemon_exited = client.explore_abort(&Client::session(&session)).await;
        });
    }

    async fn draw(&self, stage: &str) {
        let params = IndexStatusParams { root: self.run.root.clone() };
        let approver = self.run.root.is_some();
        let status = if approver { self.client.index_status(&params).await.ok() } else { None };
        let index = status.and_then(|s| s.roots.first().map(scope::progress_line));
        self.progress.set_text(match index {
            Some(index) => format!("{stage}  ·  {index}"),
            None => stage.to_owned(),
        });
    }

    fn resume_hint(&self) -> String {
        format!("resume with 'cairn explore --resume {}'", self.run.session)
    }

    fn interrupted_failure(&self, error: ClientError) -> Failure {
        let lost = error.is_unreachable();
        let failure = Failure::from(error);
        if lost { failure.hint(self.resume_hint()) } else { failure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_distinguished_from_paths() {
        for (text, expected) in [
            ("https://example.org/a.git", true),
            ("git@example.org:a/b.git", true),
            ("host:path", true),
            ("./a:b", false),
            ("src/lib.rs", false),
            ("/abs", false),
        ] {
            assert_eq!(is_url(text), expected, "{text}");
        }
    }
}
