//! `cairn audit`: what tools did, and what allowed it.

use std::{collections::BTreeSet, time::Duration};

use cairn_client_sdk::Client;
use cairn_protocol::{
    id::SessionId,
    session::Page,
    trace::{AuditEntry, AuditQueryParams},
};
use clap::Args;
use console::{style, truncate_str};

use crate::{
    app::App,
    exit::{Failure, OK},
    render::{
        cells, explore_summary,
        output::{self, millis, plain},
        when,
    },
    session_name::{self, SessionName},
};

/// Entries per request.
const PAGE: u32 = 500;
/// Interval between polls.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of unfinished calls to watch; the end of older ones is not printed.
const MAX_OPEN: usize = 64;

const EXAMPLES: &str = "\
Each call is recorded before it starts and completed after it ends. With --follow a call is printed twice: when it
starts, with '…', and when it ends. The log is polled twice a second; Ctrl-C stops.
Exit codes: 0 done, 1 failed, 2 invalid usage, 4 no daemon.";

/// Arguments of `cairn audit`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct AuditArgs {
    /// Continue with new entries
    #[arg(long, short)]
    follow: bool,
    /// Only this session
    #[arg(long, value_name = "ID")]
    session: Option<SessionName>,
    /// Only this tool
    #[arg(long, value_name = "NAME",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    tool: Option<String>,
    /// Only entries after this one
    #[arg(long, value_name = "ID", default_value_t = 0)]
    after: u64,
}

pub async fn run(app: &App<'_>, args: AuditArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    let session = session_name::resolve(&client, args.session.as_ref()).await?;
    let mut reader = Reader { session, last: args.after, open: BTreeSet::new() };
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    loop {
        for entry in reader.next(&client, &args).await? {
            if app.globals.json {
                output::json(&entry)?;
            } else {
                output::line(&text(&entry, explore_summary::terminal_columns()))?;
            }
        }
        if !args.follow {
            return Ok(OK);
        }
        tokio::select! {
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            _ = &mut interrupt => return Ok(OK),
        }
    }
}

/// The position of the reader.
struct Reader {
    /// The session of the entries; all if absent.
    session: Option<SessionId>,
    /// The last printed entry.
    last: u64,
    /// Entries that were printed before they were complete.
    open: BTreeSet<u64>,
}

impl Reader {
    /// Returns new entries, and printed ones that have been completed since.
    async fn next(
        &mut self,
        client: &Client,
        args: &AuditArgs,
    ) -> Result<Vec<AuditEntry>, Failure> {
        let mut news = Vec::new();
        let mut after = self.open.first().map_or(self.last, |first| first - 1);
        loop {
            let params = AuditQueryParams {
                session_id: self.session.clone(),
                tool: args.tool.clone(),
                after,
                limit: Some(PAGE),
            };
            let page: Page<AuditEntry> = client.audit_query(&params).await?;
            let Some(newest) = page.data.last().map(|e| e.id) else { return Ok(news) };
            news.extend(page.data.into_iter().filter(|entry| self.should_print(entry)));
            if newest <= after || page.next_cursor.is_none() {
                return Ok(news);
            }
            after = newest;
        }
    }

    fn should_print(&mut self, entry: &AuditEntry) -> bool {
        let open = is_open(entry);
        if entry.id <= self.last {
            return !open && self.open.remove(&entry.id);
        }
        self.last = entry.id;
        if open {
            self.open.insert(entry.id);
            if self.open.len() > MAX_OPEN {
                self.open.pop_first();
            }
        }
        true
    }
}

/// Returns true if the call is still running or was interrupted.
fn is_open(entry: &AuditEntry) -> bool {
    entry.decision == "allow" && entry.outcome.is_none()
}

/// Cells of the names of tools; the longest of Cairn's own fill most of them.
const TOOL: usize = 21;
/// Indentation of the second line of an entry.
const INDENT: &str = "      ";

/// The text of an entry: one line, or two on a terminal that is too narrow for one.
fn text(entry: &AuditEntry, columns: Option<usize>) -> String {
    let (call, effect) = (call(entry), effect(entry));
    let one = format!("{call} {effect}");
    match columns {
        Some(columns) if cells::width(&one) > columns => {
            let second = format!("{INDENT}{effect}");
            [call.trim_end(), &second].map(|line| truncate_str(line, columns, "…")).join("\n")
        }
        _ => one,
    }
}

/// When which session called what, and the decision.
fn call(entry: &AuditEntry) -> String {
    let decision = match entry.decision.as_str() {
        "allow" => style("allow").green(),
        _ => style("deny ").red(),
    };
    // Calls of methods belong to no session.
    let is_of_session = entry.session_id != SessionId::nil();
    let session = if is_of_session { session_name::short(&entry.session_id) } else { "-" };
    format!(
        "{:>4}  {}  {}  {decision}  {}",
        entry.id,
        style(when::short(entry.ts)).dim(),
        style(format!("{session:<6}")).dim(),
        cells::pad(&plain(&entry.tool), TOOL),
    )
}

/// The outcome of a call and the rule that decided about it.
fn effect(entry: &AuditEntry) -> String {
    let mut details = vec![
        entry
            .outcome
            .as_deref()
            .map_or_else(|| if is_open(entry) { "…".into() } else { "-".into() }, plain),
    ];
    details.extend(entry.millis.map(millis));
    details.extend(entry.exit_code.map(|code| format!("exit {code}")));
    details.extend(entry.truncated.then(|| "cut".to_owned()));
    details.extend(entry.command.as_ref().map(|c| plain(c)));
    format!("{}  {}", details.join(", "), style(plain(&entry.rule)).dim())
}

#[cfg(test)]
mod tests {
    use cairn_protocol::time::Timestamp;

    use super::*;

    fn entry(id: u64, outcome: Option<&str>) -> AuditEntry {
        AuditEntry {
            id,
            ts: Timestamp::now(),
            session_id: SessionId::new(),
            tool: "t".into(),
            args_digest: String::new(),
            decision: "allow".into(),
            rule: "default".into(),
            millis: outcome.map(|_| 3),
            outcome: outcome.map(str::to_owned),
            exit_code: None,
            truncated: false,
            command: None,
        }
    }

    #[test]
    fn entry_that_is_wider_than_the_terminal_has_two_lines() {
        let mut entry = entry(7, Some("ok"));
        entry.tool = "write_file".into();
        entry.command = Some("src/requests/a_rather_long_name_of_a_file.py".into());
        for columns in [60, 80] {
            let text = text(&entry, Some(columns));
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.len(), 2, "{text}");
            assert!(lines.iter().all(|line| cells::width(line) <= columns), "{text}");
            assert!(lines[0].ends_with("write_file"), "{text}");
            assert!(lines[1].starts_with("      ok, 3 ms, src/requests/a_rather"), "{text}");
        }
        for columns in [Some(200), None] {
            assert_eq!(text(&entry, columns).lines().count(), 1);
        }
        entry.session_id = SessionId::nil();
        assert!(text(&entry, None).contains("  -       allow  "), "{}", text(&entry, None));
    }

    #[test]
    fn call_is_printed_when_it_starts_and_when_it_ends() {
        let mut reader = Reader { session: None, last: 0, open: BTreeSet::new() };
        assert!(reader.should_print(&entry(1, Some("ok"))));
        assert!(reader.should_print(&entry(2, None)));
        assert!(
            !reader.should_print(&entry(2, None)) && !reader.should_print(&entry(1, Some("ok")))
        );
        assert!(
            reader.should_print(&entry(2, Some("ok")))
                && !reader.should_print(&entry(2, Some("ok")))
        );
        for id in 3..200 {
            assert!(reader.should_print(&entry(id, None)));
        }
        assert!(reader.open.len() <= MAX_OPEN);
    }
}
