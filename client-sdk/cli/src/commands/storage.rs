//! `cairn du` and `cairn gc`: what the data on disk consists of, and the removal of old sessions.

use std::fmt::Write as _;

use cairn_protocol::usage::{
    CollectParams, Collected, DiskUsage, LogUsage, SessionUsage, UsageParams,
};
use clap::Args;
use console::style;

use crate::{
    app::App,
    confirm,
    exit::{Failure, OK},
    render::output::{self, bytes, plain},
    session_name,
};

const DU_HELP: &str = "\
The log has the records of all sessions, and as blobs large results and the contents of files before they were changed
(for undo). Records of sessions that are not in use are packed: compressed, and read as before.
Exit codes: 0 done, 2 invalid usage, 4 no daemon.";

const GC_HELP: &str = "\
Removes the sessions beyond the limits of `retention` in the configuration, least recently used first:

  {\"retention\": {\"maxAgeDays\": 365, \"maxBytes\": 10737418240, \"keep\": 100, \"packAfterDays\": 14}}

These are the defaults; 0 removes none by that limit. The `keep` most recently used sessions remain, and so do running
ones and those with a question that waits. The daemon does the same once an hour, from a week after it first found such
a session on. The audit of tool calls remains.
Exit codes: 0 done, 1 failed or not confirmed, 2 invalid usage, 4 no daemon.";

/// Arguments of `cairn du`.
#[derive(Debug, Clone, Args)]
#[command(after_help = DU_HELP)]
pub struct DuArgs {
    /// Number of sessions to list, largest first
    #[arg(long, value_name = "N", default_value_t = 10)]
    sessions: u32,
}

/// Arguments of `cairn gc`.
#[derive(Debug, Clone, Args)]
#[command(after_help = GC_HELP)]
pub struct GcArgs {
    /// List what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before sessions are removed
    #[arg(long, short)]
    yes: bool,
}

pub async fn du(app: &App<'_>, args: DuArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    let params = UsageParams { sessions: Some(args.sessions) };
    if let Some(usage) = app.answer::<DiskUsage>(&client, "storage.usage", &params).await? {
        output::print(&page(&usage))?;
    }
    Ok(OK)
}

pub async fn gc(app: &App<'_>, args: GcArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    let plan: Collected = client.call("storage.collect", &CollectParams { dry_run: true }).await?;
    if args.dry_run {
        if app.globals.json {
            output::json(&plan)?;
        } else {
            output::print(&planned(&plan.removed))?;
        }
        return Ok(OK);
    }
    if !plan.removed.is_empty() && !args.yes && !is_confirmed(&plan.removed)? {
        return Err(Failure::failed("nothing was removed"));
    }
    let params = CollectParams { dry_run: false };
    if let Some(done) = app.answer::<Collected>(&client, "storage.collect", &params).await? {
        output::print(&summary(&done))?;
    }
    Ok(OK)
}

fn is_confirmed(sessions: &[SessionUsage]) -> Result<bool, Failure> {
    confirm::at_terminal("sessions", || planned(sessions) + "remove them? [y/N] ")
}

fn planned(sessions: &[SessionUsage]) -> String {
    if sessions.is_empty() {
        return "no session is beyond the limits of `retention`\n".into();
    }
    let total = sessions.iter().map(|session| session.bytes).sum();
    let mut out = format!("{} sessions, {}, would be removed:\n", sessions.len(), bytes(total));
    sessions.iter().for_each(|session| session_line(&mut out, session));
    out
}

fn summary(done: &Collected) -> String {
    let Collected { removed, packed, bytes_before, bytes_after } = done;
    let (removed, before, after) = (removed.len(), bytes(*bytes_before), bytes(*bytes_after));
    format!(
        "removed {removed} sessions, packed {packed}; the log: {before} before, {after} after\n"
    )
}

fn page(usage: &DiskUsage) -> String {
    let DiskUsage { log, indexes, shared_indexes, expired } = usage;
    let mut out = String::new();
    heading(&mut out, log.file_bytes, "log of sessions");
    for (size, text) in parts(log) {
        let _infallible = writeln!(out, "{:>12}  {text}", bytes(size));
    }
    let shared_bytes: u64 = shared_indexes.iter().map(|index| index.bytes).sum();
    let own_bytes: u64 = indexes.iter().map(|index| index.bytes).sum();
    heading(&mut out, own_bytes + shared_bytes, "indexes");
    for index in shared_indexes {
        let _infallible =
            writeln!(out, "{:>12}  shared by {} roots", bytes(index.bytes), index.roots.len());
    }
    for index in indexes {
        let _infallible = writeln!(out, "{:>12}  {}", bytes(index.bytes), plain(&index.path));
    }
    if !log.largest.is_empty() {
        let _infallible = writeln!(out, "{}", style("largest sessions").bold());
        log.largest.iter().for_each(|session| session_line(&mut out, session));
    }
    if let Some(from) = expired.removed_from {
        let _infallible = writeln!(
            out,
            "{} sessions ({}) are beyond the limits of `retention`; the daemon removes them from {} on\n\
             ('cairn gc' does it now, 'cairn gc --dry-run' lists them)",
            expired.sessions,
            bytes(expired.bytes),
            from.to_string().get(..10).unwrap_or_default(),
        );
    }
    out
}

fn heading(out: &mut String, size: u64, text: &str) {
    let _infallible = writeln!(out, "{:>10}  {}", style(bytes(size)).bold(), style(text).bold());
}

/// Returns the parts of the log with their bytes; parts without any are omitted.
fn parts(log: &LogUsage) -> Vec<(u64, String)> {
    let records = format!("records: {} in {} sessions", log.records, log.sessions);
    let packed = format!("packed records, {} before", bytes(log.unpacked_bytes));
    let all = [
        (log.record_bytes.saturating_sub(log.packed_bytes), records),
        (log.packed_bytes, packed),
        (log.blob_bytes, "blobs: large results, contents of files before changes".into()),
        (log.artifact_bytes, "state of explores, system texts".into()),
        (log.free_bytes, "free".into()),
    ];
    all.into_iter().filter(|(size, _)| *size > 0).collect()
}

fn session_line(out: &mut String, session: &SessionUsage) {
    let date = session.updated_at.to_string();
    let _infallible = writeln!(
        out,
        "{:>12}  {}  {}  {}{}",
        bytes(session.bytes),
        date.get(..10).unwrap_or_default(),
        session_name::short(&session.session_id),
        plain(&session.title),
        session.root.as_deref().map(|root| format!("  ({})", plain(root))).unwrap_or_default(),
    );
}

#[cfg(test)]
mod tests {
    use cairn_protocol::{
        id::{RootId, SessionId},
        time::Timestamp,
        usage::{ExpiredUsage, SharedIndexUsage},
    };

    use super::*;

    #[test]
    fn usage_lists_parts_and_the_date_of_removals() {
        let session = SessionUsage {
            session_id: SessionId::nil(),
            title: "fix \u{1b}[31mit".into(),
            root: Some("/work/app".into()),
            updated_at: Timestamp(1_700_000_000_000),
            bytes: 2048,
        };
        let log = LogUsage {
            file_bytes: 5 << 20,
            record_bytes: 4 << 20,
            records: 12,
            sessions: 2,
            largest: vec![session.clone()],
            ..LogUsage::default()
        };
        let removed_from = Some(Timestamp(1_800_000_000_000));
        let expired = ExpiredUsage { sessions: 1, bytes: 2048, removed_from };
        let shared_indexes = vec![SharedIndexUsage {
            roots: vec![RootId("root_1".into()), RootId("root_2".into())],
            bytes: 3 << 20,
        }];
        let text = page(&DiskUsage { log, indexes: vec![], shared_indexes, expired });
        let text = console::strip_ansi_codes(&text);
        assert!(text.contains("4.00 MiB  records: 12 in 2 sessions"), "{text}");
        assert!(text.contains("2.00 KiB  2023-11-14  000000"), "{text}");
        assert!(text.contains("(/work/app)") && !text.contains('\u{1b}'), "{text}");
        assert!(text.contains("removes them from 2027-01-15 on"), "{text}");
        assert!(text.contains("3.00 MiB  shared by 2 roots"), "{text}");
        assert!(!text.contains("blobs"), "{text}");
        assert!(planned(&[session]).starts_with("1 sessions, 2.00 KiB, would be removed:\n"));
    }
}
