//! `cairn sessions`: who works where, and who waits for an answer.

use std::{collections::BTreeMap, fmt::Write as _};

use cairn_protocol::{
    approval::{Approval, ApprovalListParams},
    explore::RunState,
    id::SessionId,
    session::{Page, PageParams, Session},
    time::Timestamp,
};
use clap::Args;
use console::style;

use crate::{
    app::App,
    chat::age,
    exit::{Failure, OK},
    render::output::{self, plain},
};

const HELP: &str = "\
Running sessions and those that wait for you come first, then the latest ones. 'cairn trace show ID' shows one,
'cairn chat --resume' continues one of this folder, 'cairn history WORDS' finds one.
Exit codes: 0 done, 2 invalid usage, 4 no daemon.";

/// Arguments of `cairn sessions`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HELP)]
pub struct SessionsArgs {
    /// Maximum number of sessions
    #[arg(short = 'k', long, value_name = "N", default_value_t = 20)]
    limit: u32,
}

pub async fn run(app: &App<'_>, args: SessionsArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    let params = PageParams { cursor: None, limit: Some(500), archived: false };
    let page: Page<Session> = client.call("session.list", &params).await?;
    let pending: Page<Approval> =
        client.call("approval.list", &ApprovalListParams::default()).await?;
    let mut questions: BTreeMap<SessionId, Vec<Approval>> = BTreeMap::new();
    for approval in pending.data.into_iter().filter(|a| a.resolution.is_none()) {
        questions.entry(approval.session_id.clone()).or_default().push(approval);
    }
    let mut sessions = page.data;
    sessions.retain(|session| session.head_seq > 0);
    sessions.sort_by_key(|session| {
        let waits = questions.contains_key(&session.session_id);
        let order = (!waits, session.state != RunState::Running);
        (order, std::cmp::Reverse(session.updated_at))
    });
    sessions.truncate(args.limit as usize);
    if app.globals.json {
        let page = Page { data: sessions, next_cursor: None };
        output::json(&page)?;
        return Ok(OK);
    }
    output::print(&table(&sessions, &questions, Timestamp::now()))?;
    Ok(OK)
}

fn table(
    sessions: &[Session],
    questions: &BTreeMap<SessionId, Vec<Approval>>,
    now: Timestamp,
) -> String {
    let mut out = String::new();
    for session in sessions {
        let waiting = questions.get(&session.session_id);
        let state = match waiting {
            Some(_) => style("waits for you").yellow(),
            None if session.state == RunState::Running => style("running").green(),
            None => style(session.state.as_str()).dim(),
        };
        let _infallible = writeln!(
            out,
            "{:<13}  {:>9}  {}  {}",
            state,
            age(now.0 - session.updated_at.0),
            session.session_id,
            style(plain(&session.title)).bold(),
        );
        if let Some(root) = &session.root {
            let _infallible = writeln!(out, "               {}", style(plain(root)).dim());
        }
        for approval in waiting.into_iter().flatten() {
            let _infallible = writeln!(
                out,
                "               {}: {}",
                approval.tool,
                plain(&approval.preview.summary)
            );
        }
    }
    out
}
