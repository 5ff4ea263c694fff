//! `cairn trace`: the logs of sessions.

use std::{
    fmt::Write as _,
    io::{BufRead, Write as _},
    path::{Path, PathBuf},
};

use cairn_client_sdk::Client;
use cairn_explore_report::facts::count;
use cairn_protocol::{
    envelope::{Body, Envelope},
    id::SessionId,
    index::AddRootParams,
    session::{Page, PageParams, Session},
    trace::{
        ReplayParams, ReplayReport, TraceExportParams, TraceGetParams, TraceHeader,
        TraceImportParams,
    },
};
use clap::{Args, Subcommand};
use console::style;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    app::App,
    exit::{FAILED, Failure, OK},
    render::{
        output::{self, plain},
        when,
    },
    scope,
    session_name::{self, SessionName},
};

/// Records per request.
const PAGE: u32 = 200;

/// Arguments of `cairn trace`.
#[derive(Debug, Clone, Args)]
pub struct TraceArgs {
    /// The action.
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Sessions, newest first
    List {
        /// Number of sessions
        #[arg(short, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=500))]
        k: u32,
        /// Position to continue at: 'nextCursor' of the page before
        #[arg(long)]
        cursor: Option<String>,
        /// Include archived sessions
        #[arg(long)]
        archived: bool,
    },
    /// The records of a session
    Show {
        /// The session: its id, a part of it, or 'last'
        id: SessionName,
        /// Only records after this one
        #[arg(long, value_name = "SEQ", default_value_t = 0)]
        after: u64,
    },
    /// A session's log as JSON lines
    Export {
        /// The session: its id, a part of it, or 'last'
        id: SessionName,
        /// The output file; standard output when not given
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Import an export
    Import {
        /// The file; '-' for standard input
        file: PathBuf,
    },
    /// Repeat a session's run without the network and name the first difference
    ///
    /// Exit codes: 0 identical, 1 different, 3 not found or nothing to replay.
    Replay {
        /// The session, or the file of an export, which is imported first
        trace: String,
        /// The folder to replay it in; the original one when not given
        #[arg(long)]
        root: Option<PathBuf>,
    },
}

pub async fn run(app: &App<'_>, args: TraceArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    match args.action {
        Action::List { k, cursor, archived } => {
            list(app, &client, PageParams { cursor, limit: Some(k), archived, id: None }).await
        }
        Action::Show { id, after } => {
            let id = id.resolve(&client).await?;
            show(app, &client, id, after).await
        }
        Action::Export { id, output } => {
            let id = id.resolve(&client).await?;
            export(app, &client, id, output.as_deref()).await
        }
        Action::Import { file } => import(app, &client, &file).await,
        Action::Replay { trace, root } => replay(app, &client, &trace, root).await,
    }
}

async fn replay(
    app: &App<'_>,
    client: &Client,
    trace: &str,
    root: Option<PathBuf>,
) -> Result<u8, Failure> {
    let trace_id = match trace.parse::<SessionName>() {
        Ok(name) if !Path::new(trace).exists() => name.resolve(client).await?,
        _ => ensure_imported(client, Path::new(trace)).await?,
    };
    let root = match root {
        Some(folder) => {
            let path = scope::utf8(&scope::canonical(&folder)?)?;
            client.index_add_root(&AddRootParams { path: path.clone(), request_id: None }).await?;
            Some(path)
        }
        None => None,
    };
    let report = client.trace_replay(&ReplayParams { trace_id, root }).await?;
    if app.globals.json {
        output::line(&serde_json::to_string(&report).unwrap_or_default())?;
    } else if let Some(first) = &report.first {
        let position =
            if first.path.is_empty() { String::new() } else { format!(" at {}", first.path) };
        let text = format!(
            "different: record {}, {}{position}\n  recorded: {}\n  now:      {}\n",
            first.seq,
            plain(&first.what),
            plain(&first.recorded),
            plain(&first.now)
        );
        output::print(&text)?;
        if let Some(file) = &first.file {
            output::print(&format!("  file:     {}\n", plain(file)))?;
        }
        output::print(&changes(&report))?;
    } else {
        output::print(&format!("identical: {} steps compared\n", report.compared))?;
    }
    Ok(if report.identical { OK } else { FAILED })
}

/// The files that are not as they were when an explore was recorded.
fn changes(report: &ReplayReport) -> String {
    if report.changed_file_count == 0 {
        return String::new();
    }
    let mut out = format!("{} changed since:\n", count(report.changed_file_count, "file"));
    for file in &report.changed_files {
        let _infallible = writeln!(out, "  {:<8}  {}", file.status, plain(&file.path));
    }
    let more = report.changed_file_count - report.changed_files.len() as u64;
    if more > 0 {
        let _infallible = writeln!(out, "  and {more} more");
    }
    out
}

async fn list(app: &App<'_>, client: &Client, params: PageParams) -> Result<u8, Failure> {
    let Some(page) = app.answer::<Page<Session>>(client, "trace.list", &params).await? else {
        return Ok(OK);
    };
    let mut out = String::new();
    for s in &page.data {
        let state = format!("{:<11}", s.state.as_str());
        let _infallible = writeln!(
            out,
            "{}  {}  {state}  {:>6}  {}",
            session_name::short(&s.session_id),
            style(when::short(s.updated_at)).dim(),
            s.head_seq,
            session_name::title(s)
        );
    }
    output::print(&out)?;
    if let Some(cursor) = page.next_cursor {
        app.info(&format!("more with --cursor {cursor}"));
    }
    Ok(OK)
}

async fn show(app: &App<'_>, client: &Client, id: SessionId, after: u64) -> Result<u8, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Records {
        data: Vec<Box<RawValue>>,
        #[serde(default)]
        next_after: Option<u64>,
    }
    let mut params = TraceGetParams { trace_id: id, after, limit: Some(PAGE) };
    loop {
        let page: Records = client.call("trace.get", &params).await?;
        let mut out = String::new();
        for record in &page.data {
            if app.globals.json {
                out.push_str(record.get());
                out.push('\n');
            } else if let Ok(envelope) = serde_json::from_str::<Envelope>(record.get()) {
                let _infallible = writeln!(out, "{}", record_line(&envelope));
            } else {
                let _infallible = writeln!(out, "{}", plain(record.get()));
            }
        }
        output::print(&out)?;
        match page.next_after {
            Some(next) if next > params.after => params.after = next,
            _ => return Ok(OK),
        }
    }
}

/// Renders a record in one line.
fn record_line(envelope: &Envelope) -> String {
    let (kind, text) = match &envelope.body {
        Body::Cmd { cmd } => {
            let call = cmd.clone().into_call();
            ("command", format!("{} {}", call.name, call.arguments))
        }
        Body::Evt { evt } => crate::render::event::line(evt),
    };
    let mut text = plain(&text);
    if let Some((at, _)) = text.char_indices().nth(160) {
        text.truncate(at);
        text.push('…');
    }
    format!("{:>5}  {}  {:<12}  {text}", envelope.seq, style(envelope.ts).dim(), style(kind).cyan())
}

async fn export(
    app: &App<'_>,
    client: &Client,
    id: SessionId,
    file: Option<&Path>,
) -> Result<u8, Failure> {
    let failed =
        |path: &Path, e: &std::io::Error| Failure::failed(format!("{}: {e}", path.display()));
    let mut target = match file {
        Some(path) => Some((path, std::fs::File::create(path).map_err(|e| failed(path, &e))?)),
        None => None,
    };
    let mut params = TraceExportParams { trace_id: id, cursor: None };
    let mut written = 0;
    loop {
        let part = client.trace_export(&params).await?;
        written += part.jsonl.len() as u64;
        match &mut target {
            Some((path, file)) => {
                file.write_all(part.jsonl.as_bytes()).map_err(|e| failed(path, &e))?
            }
            None => output::print(&part.jsonl)?,
        }
        match part.next_cursor {
            Some(next) if params.cursor.as_ref() != Some(&next) => params.cursor = Some(next),
            _ => break,
        }
    }
    if let Some((path, file)) = &target {
        file.sync_all().map_err(|e| failed(path, &e))?;
        app.info(&format!("{} written to {}", output::bytes(written), path.display()));
    }
    Ok(OK)
}

async fn import(app: &App<'_>, client: &Client, file: &Path) -> Result<u8, Failure> {
    let session = import_file(client, file).await?;
    if app.globals.json {
        output::json(&session)?;
    } else {
        output::line(&format!("{}  {}", session.session_id, plain(&session.title)))?;
    }
    Ok(OK)
}

/// Returns the session of an export, importing it unless it exists.
async fn ensure_imported(client: &Client, file: &Path) -> Result<SessionId, Failure> {
    let mut first = String::new();
    let opened = std::fs::File::open(file).map_err(|e| Failure::path(file, &e))?;
    let mut bounded = std::io::Read::take(std::io::BufReader::new(opened), 16 * 1024 * 1024);
    bounded.read_line(&mut first).map_err(|e| Failure::path(file, &e))?;
    let header: TraceHeader = serde_json::from_str(&first).map_err(|e| {
        Failure::with_reason(
            "bad_trace",
            format!("{} is neither a session nor an export: {e}", file.display()),
        )
    })?;
    let id = header.session.session_id;
    match client.session_get(&Client::session(&id)).await {
        Ok(_) => Ok(id),
        Err(_) => import_file(client, file).await.map(|session| session.session_id),
    }
}

async fn import_file(client: &Client, file: &Path) -> Result<Session, Failure> {
    let source: Box<dyn BufRead> = match file == Path::new("-") {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(std::io::BufReader::new(
            std::fs::File::open(file).map_err(|e| Failure::path(file, &e))?,
        )),
    };
    // As JSON text a line takes at most twice its bytes, if all of it is quotes and backslashes.
    let room = client.server().limits.max_message_bytes.saturating_sub(4096) / 2;
    let mut parts = Parts { source, room, waiting: String::new(), line: 0 };
    let mut jsonl = parts.next(file)?.unwrap_or_default();
    while let Some(next) = parts.next(file)? {
        client.trace_import(&TraceImportParams { jsonl }).await?;
        jsonl = next;
    }
    Ok(client.trace_import(&TraceImportParams { jsonl }).await?)
}

/// Splits an export at line ends into parts that the daemon accepts.
struct Parts {
    source: Box<dyn BufRead>,
    room: u64,
    /// A line that has been read and is not in a part yet.
    waiting: String,
    line: u64,
}

impl Parts {
    fn next(&mut self, file: &Path) -> Result<Option<String>, Failure> {
        let mut part = std::mem::take(&mut self.waiting);
        loop {
            let mut line = String::new();
            let mut bounded = std::io::Read::take(&mut self.source, self.room + 1);
            bounded.read_line(&mut line).map_err(|e| Failure::path(file, &e))?;
            self.line += 1;
            if line.len() as u64 > self.room {
                let text = format!(
                    "line {} of {} is longer than the {} that the daemon accepts at once",
                    self.line,
                    file.display(),
                    output::bytes(self.room)
                );
                return Err(Failure::with_reason("too_large", text));
            }
            if line.is_empty() {
                return Ok((!part.is_empty()).then_some(part));
            }
            if (part.len() + line.len()) as u64 > self.room {
                self.waiting = line;
                return Ok(Some(part));
            }
            part.push_str(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_at_line_breaks_and_are_complete() {
        let file = Path::new("f");
        let split = |text: &'static str, room| {
            let mut parts =
                Parts { source: Box::new(text.as_bytes()), room, waiting: String::new(), line: 0 };
            let mut all = Vec::new();
            while let Some(part) = parts.next(file)? {
                all.push(part);
            }
            Ok::<_, Failure>(all)
        };
        for (text, room, expected) in [
            ("", 4, vec![]),
            ("a\nb\nc\n", 4, vec!["a\nb\n", "c\n"]),
            ("abc\nabc\n", 4, vec!["abc\n", "abc\n"]),
            ("a\nlast", 100, vec!["a\nlast"]),
        ] {
            assert_eq!(split(text, room).ok().unwrap(), expected);
        }
        assert!(split("a\nabcdef\n", 4).is_err());
    }
}
