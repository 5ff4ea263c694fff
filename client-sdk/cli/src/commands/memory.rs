//! `cairn memory`: the knowledge store, for people.

use std::{
    fmt::Write as _,
    io::{IsTerminal as _, Read as _},
    path::{Path, PathBuf},
};

use cairn_client_sdk::Client;
use cairn_protocol::{
    memory::{
        MemoryChange, MemoryEntry, MemoryText, ProjectMemoryListParams, ProjectMemoryRef,
        ProjectMemorySearchParams, ProjectMemoryWriteParams,
    },
    session::Page,
};
use clap::{Args, Subcommand};
use console::style;

use crate::{
    app::App,
    exit::{Failure, OK},
    render::output::{self, bytes, plain},
    scope,
};

/// Maximum bytes of an entry.
const MAX_TEXT: u64 = 256 * 1024;

const EXAMPLES: &str = "\
Examples:
  cairn memory                                     list the entries
  cairn memory search slow disks                   find matching entries
  cairn memory show rust build                     print one
  cairn memory append rust build --text 'use mold' append to it, or create it
  cairn memory save release steps < steps.md       create or replace it
  cairn memory --general append style --text 'no emoji'   the same in every project

An entry belongs to the project around the current folder and to the work trees of its repository; no other project reads
it. With --general it is one of your own, which every project reads and no model changes. An entry is named by its keywords,
in any order; it is a Markdown file in the folder `memory` of the data root, those of projects below `memory/projects`.
Entries whose name begins with fix- are never changed by this command.

Exit codes: 0 done, 1 failed, 2 invalid usage, 4 no daemon.";

/// Arguments of `cairn memory`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct MemoryArgs {
    /// Use the general entries, which every project reads
    #[arg(long, global = true, conflicts_with = "project")]
    general: bool,
    /// The folder of another project
    #[arg(long, global = true, value_name = "DIR")]
    project: Option<PathBuf>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// List the entries (default)
    List,
    /// Find entries by words of their keywords and text
    Search {
        /// The words
        #[arg(required = true)]
        query: Vec<String>,
    },
    /// Print an entry
    Show {
        /// The entry's keywords
        #[arg(required = true)]
        keywords: Vec<String>,
    },
    /// Create or replace an entry
    Save(Written),
    /// Append to an entry, or create it
    Append(Written),
    /// Delete an entry
    Delete {
        /// The entry's keywords
        #[arg(required = true)]
        keywords: Vec<String>,
    },
}

#[derive(Debug, Clone, Args)]
struct Written {
    /// The entry's keywords
    #[arg(required = true)]
    keywords: Vec<String>,
    /// The text; without it, standard input is read
    #[arg(long, short)]
    text: Option<String>,
}

pub async fn run(app: &App<'_>, args: MemoryArgs) -> Result<u8, Failure> {
    let action = args.action.unwrap_or(Action::List);
    // The text comes first: without one there is nothing to connect for.
    let content = match &action {
        Action::Save(written) | Action::Append(written) => text(written)?,
        _ => String::new(),
    };
    let client = app.connect().await?;
    let project = match (args.general, args.project) {
        (true, _) => None,
        (false, Some(folder)) => Some(folder_name(app, &folder)),
        (false, None) => Some(scope::project(app, &client).await.map_err(not_a_project)?),
    };
    match action {
        Action::List => list(app, &client, project).await,
        Action::Search { query } => {
            let query = query.join(" ");
            let params = ProjectMemorySearchParams { project, query, ..Default::default() };
            if let Some(page) =
                app.answer::<Page<MemoryEntry>>(&client, "memory.search", &params).await?
            {
                output::print(&table(&page.data, "no entry matches\n"))?;
            }
            Ok(OK)
        }
        Action::Show { keywords } => {
            let entry = memory_ref(project, &keywords);
            if let Some(text) = app.answer::<MemoryText>(&client, "memory.load", &entry).await? {
                output::untrusted(&text.content)?;
            }
            Ok(OK)
        }
        Action::Save(written) => {
            let params = params(project, &written, content);
            change(app, &client, "memory.save", &params).await
        }
        Action::Append(written) => {
            let params = params(project, &written, content);
            change(app, &client, "memory.append", &params).await
        }
        Action::Delete { keywords } => {
            change(app, &client, "memory.delete", &memory_ref(project, &keywords)).await
        }
    }
}

/// Returns the path of a project as the daemon knows it. The folder may be gone.
fn folder_name(app: &App<'_>, folder: &Path) -> String {
    let path = app.canonical(folder).unwrap_or_else(|_| folder.to_owned());
    path.to_string_lossy().into_owned()
}

fn not_a_project(failure: Failure) -> Failure {
    failure.hint("--general names the entries of every project, --project DIR those of one")
}

async fn list(app: &App<'_>, client: &Client, project: Option<String>) -> Result<u8, Failure> {
    let mut all = Vec::new();
    let mut params = ProjectMemoryListParams { project, limit: Some(200), cursor: None };
    loop {
        let page = client.memory_list(&params).await?;
        all.extend(page.data);
        params.cursor = page.next_cursor;
        if params.cursor.is_none() {
            break;
        }
    }
    if app.globals.json {
        output::json(&Page { data: all, next_cursor: None })?;
    } else {
        output::print(&table(&all, "nothing is stored\n"))?;
    }
    Ok(OK)
}

async fn change(
    app: &App<'_>,
    client: &Client,
    method: &str,
    params: &impl serde::Serialize,
) -> Result<u8, Failure> {
    if let Some(done) = app.answer::<MemoryChange>(client, method, params).await? {
        output::line(&plain(&done.message))?;
    }
    Ok(OK)
}

fn memory_ref(project: Option<String>, keywords: &[String]) -> ProjectMemoryRef {
    ProjectMemoryRef { project, keywords: keywords.join(" ") }
}

fn params(project: Option<String>, written: &Written, content: String) -> ProjectMemoryWriteParams {
    ProjectMemoryWriteParams { project, keywords: written.keywords.join(" "), content }
}

fn text(written: &Written) -> Result<String, Failure> {
    match &written.text {
        Some(text) => Ok(text.clone()),
        None if std::io::stdin().is_terminal() => {
            Err(Failure::usage("there is no text").hint("give it with --text, or pipe it in"))
        }
        None => piped(),
    }
}

fn piped() -> Result<String, Failure> {
    let mut text = Vec::new();
    let read = std::io::stdin().lock().take(MAX_TEXT + 1).read_to_end(&mut text);
    read.map_err(|e| Failure::failed(format!("standard input cannot be read: {e}")))?;
    if text.len() as u64 > MAX_TEXT {
        return Err(
            Failure::usage("more than 256 KiB are piped in").hint("split it into several entries")
        );
    }
    String::from_utf8(text).map_err(|_| Failure::usage("the piped input is not UTF-8 text"))
}

fn table(entries: &[MemoryEntry], none: &str) -> String {
    if entries.is_empty() {
        return none.to_owned();
    }
    let mut out = String::new();
    for entry in entries {
        let mark = match (entry.general, entry.fixed) {
            (true, true) => ", general, fixed",
            (true, false) => ", general",
            (false, true) => ", fixed",
            (false, false) => "",
        };
        let day = entry.modified.to_string().chars().take(10).collect::<String>();
        let name = style(plain(&entry.keywords.join(" "))).bold();
        let _infallible = writeln!(out, "{name}  {}{mark}, {day}", bytes(entry.bytes));
        if let Some(excerpt) = &entry.excerpt {
            let _infallible = writeln!(out, "    {}", plain(excerpt));
        }
    }
    out
}
