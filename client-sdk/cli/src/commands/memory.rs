//! `cairn memory`: the knowledge store, for people.

use std::{
    fmt::Write as _,
    io::{IsTerminal as _, Read as _},
};

use cairn_protocol::{
    memory::{
        MemoryChange, MemoryEntry, MemoryListParams, MemoryRef, MemorySearchParams, MemoryText,
        MemoryWriteParams,
    },
    session::Page,
};
use clap::{Args, Subcommand};
use console::style;

use crate::{
    app::App,
    exit::{Failure, OK},
    render::output::{self, bytes, plain},
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

An entry is named by its keywords, in any order; it is a Markdown file in the folder `memory` of the data root.
Entries whose name begins with fix- are never changed by this command.

Exit codes: 0 done, 1 failed, 2 invalid usage, 4 no daemon.";

/// Arguments of `cairn memory`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct MemoryArgs {
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
    match args.action.unwrap_or(Action::List) {
        Action::List => list(app).await,
        Action::Search { query } => {
            let client = app.connect().await?;
            let params = MemorySearchParams { query: query.join(" "), ..Default::default() };
            if let Some(page) =
                app.answer::<Page<MemoryEntry>>(&client, "memory.search", &params).await?
            {
                output::print(&table(&page.data, "no entry matches\n"))?;
            }
            Ok(OK)
        }
        Action::Show { keywords } => {
            let client = app.connect().await?;
            let entry = memory_ref(&keywords);
            if let Some(text) = app.answer::<MemoryText>(&client, "memory.load", &entry).await? {
                output::untrusted(&text.content)?;
            }
            Ok(OK)
        }
        Action::Save(written) => change(app, "memory.save", &params(written)?).await,
        Action::Append(written) => change(app, "memory.append", &params(written)?).await,
        Action::Delete { keywords } => change(app, "memory.delete", &memory_ref(&keywords)).await,
    }
}

async fn list(app: &App<'_>) -> Result<u8, Failure> {
    let client = app.connect().await?;
    let mut all = Vec::new();
    let mut params = MemoryListParams { limit: Some(200), cursor: None };
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
    method: &str,
    params: &impl serde::Serialize,
) -> Result<u8, Failure> {
    let client = app.connect().await?;
    if let Some(done) = app.answer::<MemoryChange>(&client, method, params).await? {
        output::line(&plain(&done.message))?;
    }
    Ok(OK)
}

fn memory_ref(keywords: &[String]) -> MemoryRef {
    MemoryRef { keywords: keywords.join(" ") }
}

fn params(written: Written) -> Result<MemoryWriteParams, Failure> {
    let content = match written.text {
        Some(text) => text,
        None if std::io::stdin().is_terminal() => {
            return Err(
                Failure::usage("there is no text").hint("give it with --text, or pipe it in")
            );
        }
        None => piped()?,
    };
    Ok(MemoryWriteParams { keywords: written.keywords.join(" "), content })
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
        let mark = if entry.fixed { ", fixed" } else { "" };
        let day = entry.modified.to_string().chars().take(10).collect::<String>();
        let name = style(plain(&entry.keywords.join(" "))).bold();
        let _infallible = writeln!(out, "{name}  {}{mark}, {day}", bytes(entry.bytes));
        if let Some(excerpt) = &entry.excerpt {
            let _infallible = writeln!(out, "    {}", plain(excerpt));
        }
    }
    out
}
