//! `cairn approvals`: requests that wait for an answer, of all sessions.

use std::{collections::BTreeSet, fmt::Write as _, time::Duration};

use cairn_client_sdk::{Client, Notice, Notices};
use cairn_protocol::{
    approval::{
        Approval, ApprovalDecision, ApprovalListParams, ApprovalRef, ApprovalResolveParams,
    },
    id::SessionId,
    session::Session,
    time::Timestamp,
};
use clap::{Args, Subcommand};
use console::style;

use crate::{
    app::App,
    chat::{self, age, has_keyboard},
    commands::tools::{self, Approver},
    exit::{Failure, INTERRUPTED, OK, REFUSED},
    render::{
        output::{self, plain},
        when,
    },
    session_name::{self, MIN_DIGITS, SessionName},
};

/// Interval in which `--watch` reads the list where it is not notified: without a keyboard it is no
/// approver.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The same for an approver, which misses notifications if it falls behind.
const MISSED_INTERVAL: Duration = Duration::from_secs(30);

const HELP: &str = "\
  cairn approvals                     what waits for an answer, and in which session
  cairn approvals show                the oldest one with its command or diff, and what each answer stores
  cairn approvals answer 3f9a2c once  allow this call; 'once' may be written 'yes', 'deny' may be written 'no'
  cairn approvals answer 3f9a2c deny --reason 'use the test database'
  cairn approvals --watch             ask for each one here, as it comes; without a terminal, print it

The id is that of the list, or a part of it of at least 4 digits. 'session' allows similar calls until the session
ends, 'always' from now on in its project, 'everywhere' in every project: 'cairn rules' lists, removes and narrows them.
Exit codes: 0 done, 2 invalid usage, 3 not found or answered already, 4 no daemon, 130 interrupted.";

/// Arguments of `cairn approvals`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HELP, args_conflicts_with_subcommands = true)]
pub struct ApprovalsArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Wait for requests, and ask for the answer to each
    #[arg(long, short)]
    watch: bool,
    /// Only the requests of this session
    #[arg(long, value_name = "ID")]
    session: Option<SessionName>,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// List the requests that wait for an answer
    List {
        /// Only those of this session
        #[arg(long, value_name = "ID")]
        session: Option<SessionName>,
    },
    /// Show one with its exact effect; the oldest if no id is given
    Show {
        /// Id of the request, or a part of it
        #[arg(value_name = "ID")]
        id: Option<String>,
    },
    /// Answer one
    Answer {
        /// Id of the request, or a part of it
        #[arg(value_name = "ID")]
        id: String,
        /// The answer: once (yes), session, always, everywhere, deny (no)
        #[arg(value_name = "ANSWER", value_parser = decision)]
        answer: ApprovalDecision,
        /// With deny: the reason, which the model receives
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// With session, always or everywhere: allow the wider rule that 'show' names
        #[arg(long)]
        wider: bool,
    },
}

/// Parses an answer as people write it.
///
/// # Errors
/// Lists the answers.
pub fn decision(name: &str) -> Result<ApprovalDecision, String> {
    match name.to_ascii_lowercase().as_str() {
        "yes" | "y" => Ok(ApprovalDecision::Once),
        "no" | "n" => Ok(ApprovalDecision::Deny),
        name => ApprovalDecision::parse(name).ok_or_else(|| {
            "the answers are once (yes), session, always, everywhere, deny (no)".to_owned()
        }),
    }
}

/// Runs the command.
pub async fn run(app: &App<'_>, args: ApprovalsArgs) -> Result<u8, Failure> {
    if args.watch {
        return watch(app, args.session).await;
    }
    let client = app.connect().await?;
    match args.action {
        None => list(app, &client, args.session).await,
        Some(Action::List { session }) => list(app, &client, session).await,
        Some(Action::Show { id }) => show(app, &client, id.as_deref()).await,
        Some(Action::Answer { id, answer, reason, wider }) => {
            let approval = complete(&client, find(pending(&client, None).await?, &id)?).await?;
            resolve(&client, &approval, answer, reason, wider).await
        }
    }
}

/// Returns the requests that wait, the oldest first.
pub async fn pending(
    client: &Client,
    session_id: Option<SessionId>,
) -> Result<Vec<Approval>, Failure> {
    let params = ApprovalListParams { session_id, resolved: false };
    let mut all = client.approval_list(&params).await?.data;
    all.retain(|approval| approval.resolution.is_none());
    all.sort_by_key(|approval| approval.created_at);
    Ok(all)
}

/// Returns the complete approval for one of a list.
pub async fn complete(client: &Client, approval: Approval) -> Result<Approval, Failure> {
    if !approval.shortened {
        return Ok(approval);
    }
    Ok(client.approval_get(&ApprovalRef { approval_id: approval.approval_id }).await?)
}

async fn list(app: &App<'_>, client: &Client, session: Option<SessionName>) -> Result<u8, Failure> {
    let all = pending(client, session_name::resolve(client, session.as_ref()).await?).await?;
    if app.globals.json {
        output::json(&serde_json::json!({ "data": all }))?;
        return Ok(OK);
    }
    if all.is_empty() {
        app.info("nothing waits for an answer");
    }
    let mut out = String::new();
    for approval in &all {
        let session = client.session_get(&Client::session(&approval.session_id)).await?;
        out.push_str(&row(approval, &session, Timestamp::now()));
    }
    output::print(&out)?;
    if !all.is_empty() {
        app.info("'cairn approvals show ID' shows one, 'cairn approvals answer ID yes' allows it");
    }
    Ok(OK)
}

fn row(approval: &Approval, session: &Session, now: Timestamp) -> String {
    let mut out = String::new();
    let _infallible = writeln!(
        out,
        "{}  {:>7}  {}",
        style(short(approval)).bold(),
        age(now.0 - approval.created_at.0),
        plain(&approval.preview.summary),
    );
    let folder = session.root.as_deref().map(|root| format!(" in {}", plain(root)));
    let text = format!(
        "{}, session {}{}",
        session_name::title(session),
        session_name::short(&session.session_id),
        folder.unwrap_or_default()
    );
    let _infallible = writeln!(out, "                 {}", style(text).dim());
    out
}

async fn show(app: &App<'_>, client: &Client, id: Option<&str>) -> Result<u8, Failure> {
    let all = pending(client, None).await?;
    let approval = match id {
        Some(id) => find(all, id)?,
        None => match all.into_iter().next() {
            Some(oldest) => oldest,
            None => {
                app.info("nothing waits for an answer");
                return Ok(REFUSED);
            }
        },
    };
    let approval = complete(client, approval).await?;
    if app.globals.json {
        output::json(&approval)?;
        return Ok(OK);
    }
    let session = client.session_get(&Client::session(&approval.session_id)).await?;
    output::print(&details(&approval, &session))?;
    Ok(OK)
}

/// Renders a request with its exact effect, and what each answer stores.
pub fn details(approval: &Approval, session: &Session) -> String {
    let preview = &approval.preview;
    let mut out = format!("{}\n", style(plain(&preview.summary)).bold());
    let mut field = |name: &str, value: &str| {
        let _infallible = writeln!(out, "  {:<9} {value}", style(name).dim());
    };
    let id = session_name::short(&session.session_id);
    field("request", short(approval));
    field("tool", &plain(&approval.tool));
    field("session", &format!("{} ({id})", session_name::title(session)));
    if let Some(root) = &session.root {
        field("in", &plain(root));
    }
    if let Some(folder) = &preview.folder {
        field("folder", &plain(folder));
    }
    for path in &preview.paths {
        field("path", &plain(path));
    }
    for domain in &preview.domains {
        field("network", &plain(domain));
    }
    field("because", &plain(&approval.rule));
    field("until", &when::long(approval.expires_at));
    for warning in &preview.warnings {
        field("warning", &style(plain(warning)).red().to_string());
    }
    for part in [&preview.command, &preview.diff].into_iter().flatten() {
        let lines = output::plain_lines(part);
        let _infallible = write!(out, "\n{}", coloured(&lines));
    }
    out.push('\n');
    out.push_str(&answers(approval));
    out
}

/// Colours the lines of a diff.
fn coloured(lines: &str) -> String {
    let colour = |line: &str| match line.as_bytes().first() {
        Some(b'+') => style(line).green().to_string(),
        Some(b'-') => style(line).red().to_string(),
        Some(b'@') => style(line).cyan().to_string(),
        _ => line.to_owned(),
    };
    lines.lines().map(|line| colour(line) + "\n").collect()
}

/// Renders what each answer does.
fn answers(approval: &Approval) -> String {
    let mut out = String::from("answers:\n  once      allows this call\n");
    let mut grant = |rules: &[String], suffix: &str| {
        for rule in rules {
            let rule = chat::granted(rule);
            let _infallible =
                writeln!(out, "  session   also allows {rule}, until the session ends{suffix}");
            if let Some(project) = &approval.project {
                let project = plain(project);
                let _infallible = writeln!(
                    out,
                    "  always    also allows {rule}, from now on in {project}{suffix}"
                );
            }
            let _infallible = writeln!(out, "  everywhere  the same, in every project{suffix}");
        }
    };
    grant(&approval.grants, "");
    for pattern in &approval.patterns {
        grant(pattern, " (with --wider)");
    }
    if approval.grants.is_empty() {
        out.push_str(
            "  session, always, everywhere   not for such a call: it is allowed each time\n",
        );
    }
    out.push_str("  deny      refuses it; --reason TEXT tells the model why\n");
    out
}

/// Returns the request that a part of an id names.
fn find(all: Vec<Approval>, name: &str) -> Result<Approval, Failure> {
    let digits = name.strip_prefix("apr_").unwrap_or(name);
    if digits.len() < MIN_DIGITS || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        let text = format!("'{}' is no id of a request: at least 4 digits of it", plain(name));
        return Err(Failure::usage(text).hint("'cairn approvals' lists the requests"));
    }
    let has_digits =
        |approval: &&Approval| session_name::has_digits(approval.approval_id.as_str(), digits);
    let found: Vec<&Approval> = all.iter().filter(has_digits).collect();
    match found.as_slice() {
        [only] => Ok((*only).clone()),
        [] => {
            let text = format!("no request '{digits}' waits for an answer");
            Err(Failure::with_reason("approval_not_found", text)
                .hint("'cairn approvals' lists the requests; one may have been answered already"))
        }
        several => {
            let ids: Vec<&str> = several.iter().map(|a| a.approval_id.as_str()).collect();
            let text = format!("several requests have the id '{digits}': {}", ids.join(", "));
            Err(Failure::usage(text).hint("use more digits"))
        }
    }
}

/// Sends an answer, and prints it.
pub async fn resolve(
    client: &Client,
    approval: &Approval,
    decision: ApprovalDecision,
    reason: Option<String>,
    wider: bool,
) -> Result<u8, Failure> {
    let pattern = match approval.patterns.first() {
        Some(pattern) if wider => Some(pattern.clone()),
        None if wider => return Err(Failure::usage("the request offers no wider rule")),
        _ => None,
    };
    if approval.form.is_some() && decision != ApprovalDecision::Deny {
        let text = "the request is a form of an MCP server, which needs values";
        return Err(Failure::usage(text).hint("answer it in a chat, the viewer, or with --watch"));
    }
    let approval_id = approval.approval_id.clone();
    let values = std::collections::BTreeMap::new();
    let params = ApprovalResolveParams { approval_id, decision, reason, pattern, values };
    client.approval_resolve(&params).await?;
    output::line(&format!("{}: {}", decision.as_str(), plain(&approval.preview.summary)))?;
    Ok(OK)
}

/// Prints each request as it comes; on a terminal it asks for the answer.
async fn watch(app: &App<'_>, session: Option<SessionName>) -> Result<u8, Failure> {
    let is_prompting = has_keyboard() && !app.globals.json;
    let connector = app.connector();
    let client =
        app.connect_with(if is_prompting { connector.approver() } else { connector }).await?;
    app.info("waiting for requests; Ctrl+C ends this");
    let session = session_name::resolve(&client, session.as_ref()).await?;
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let interval = if is_prompting { MISSED_INTERVAL } else { POLL_INTERVAL };
    loop {
        // Subscribed before the list is read: a request that follows it is not missed.
        let mut notices = client.notices();
        let waiting = pending(&client, session.clone()).await?;
        // Answered requests are forgotten, so that the set has a bound.
        seen.retain(|id| waiting.iter().any(|approval| approval.approval_id.as_str() == *id));
        for approval in waiting {
            if !seen.insert(approval.approval_id.as_str().to_owned()) {
                continue;
            }
            let approval = complete(&client, approval).await?;
            if approval.resolution.is_some() {
                continue;
            }
            if app.globals.json {
                output::json(&approval)?;
                continue;
            }
            let session = client.session_get(&Client::session(&approval.session_id)).await?;
            output::print(&row(&approval, &session, Timestamp::now()))?;
            if is_prompting {
                tools::answer(app, &client, &approval, Approver::Keyboard).await?;
            }
        }
        tokio::select! {
            _ = &mut interrupt => return Ok(INTERRUPTED),
            () = updated(&mut notices) => {}
            () = tokio::time::sleep(interval) => {}
        }
    }
}

/// Waits until an approval is requested or answered. A lost connection fails at the next request.
async fn updated(notices: &mut Notices) {
    while let Some(notice) = notices.next().await {
        if matches!(notice, Notice::Approval(_)) {
            return;
        }
    }
}

fn short(approval: &Approval) -> &str {
    session_name::last_digits(approval.approval_id.as_str())
}
