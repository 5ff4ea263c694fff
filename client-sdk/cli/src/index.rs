//! `cairn index`: declare folders, wait for them, see how far they are, forget them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use cairn_client_sdk::Client;
use cairn_protocol::index::{
    AddRootParams, IndexReceipt, IndexState, IndexStatusParams, RootRef, RootStatus,
};
use clap::{Args, Subcommand};

use crate::{
    app::App,
    exit::{FAILED, Failure, OK},
    output, scope,
    scope::Until,
    status,
};

/// Arguments of `cairn index`.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct IndexArgs {
    /// A folder to declare and wait for; without it, as 'status'
    path: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    action: Option<Action>,
}

/// How long to wait for an index.
#[derive(Debug, Clone, Copy, Args)]
struct Waiting {
    /// Wait until it is complete
    #[arg(long)]
    wait: bool,
    /// Seconds to wait at most
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    timeout: u64,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// How far each index is
    Status {
        /// Only this root: its id or folder
        root: Option<String>,
    },
    /// Declare a folder
    Add {
        /// The folder
        path: PathBuf,
        #[command(flatten)]
        waiting: Waiting,
    },
    /// Forget a root and delete its index
    Remove {
        /// Its id or folder
        root: String,
    },
    /// Throw an index away and make it anew
    Rebuild {
        /// Its id or folder
        root: String,
        #[command(flatten)]
        waiting: Waiting,
    },
    /// The declared roots
    List,
}

pub async fn run(app: &App<'_>, args: IndexArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    match (args.path, args.action) {
        (Some(path), _) => add(app, &client, &path, Waiting { wait: true, timeout: 3600 }).await,
        (None, None) => show(app, &client, None).await,
        (None, Some(Action::Status { root })) => show(app, &client, root.as_deref()).await,
        (None, Some(Action::Add { path, waiting })) => add(app, &client, &path, waiting).await,
        (None, Some(Action::Remove { root })) => {
            let params = RootRef { root: named(app, &client, &root).await?, request_id: None };
            if let Some(receipt) = app.answer::<IndexReceipt>(&client, "index.removeRoot", &params).await? {
                output::line(&format!("{} is forgotten", output::plain(&receipt.path)))?;
            }
            Ok(OK)
        }
        (None, Some(Action::Rebuild { root, waiting })) => {
            let params = RootRef { root: named(app, &client, &root).await?, request_id: None };
            let receipt = client.index_rebuild(&params).await?;
            begun(app, &client, &receipt, waiting).await
        }
        (None, Some(Action::List)) => list(app, &client).await,
    }
}

/// A root as the daemon knows it: an id, or the canonical path of a folder that may be gone by now.
async fn named(app: &App<'_>, client: &Client, root: &str) -> Result<String, Failure> {
    if root.starts_with("root_") {
        return Ok(root.to_owned());
    }
    let path = app.here(client).await?.join(root);
    scope::utf8(&app.canonical(&path).unwrap_or(path))
}

async fn add(app: &App<'_>, client: &Client, path: &Path, waiting: Waiting) -> Result<u8, Failure> {
    let path = scope::utf8(&app.canonical(&app.here(client).await?.join(path))?)?;
    let receipt = client.index_add_root(&AddRootParams { path, request_id: None }).await?;
    begun(app, client, &receipt, waiting).await
}

async fn begun(
    app: &App<'_>,
    client: &Client,
    receipt: &IndexReceipt,
    waiting: Waiting,
) -> Result<u8, Failure> {
    if !waiting.wait {
        if app.globals.json {
            output::json(receipt)?;
        } else {
            output::line(&format!("{}  {}", receipt.root, output::plain(&receipt.path)))?;
        }
        return Ok(OK);
    }
    let limit = Duration::from_secs(waiting.timeout);
    let status = scope::wait(app, client, &receipt.path, Until::Complete, limit).await?;
    if app.globals.json {
        output::json(&status)?;
    } else {
        output::print(&status::root_text(&status))?;
    }
    let done = status.complete && status.state == IndexState::Ready;
    if !done {
        app.remark(&format!("not complete after {} s; it goes on in the background", waiting.timeout));
    }
    Ok(if done { OK } else { FAILED })
}

async fn show(app: &App<'_>, client: &Client, root: Option<&str>) -> Result<u8, Failure> {
    let root = match root {
        Some(root) => Some(named(app, client, root).await?),
        None => None,
    };
    let params = IndexStatusParams { root };
    let answer = app.answer::<cairn_protocol::index::IndexStatus>(client, "index.status", &params).await?;
    let Some(answer) = answer else { return Ok(OK) };
    if answer.roots.is_empty() {
        app.remark("no root is declared; 'cairn index PATH' declares one");
    }
    output::print(&answer.roots.iter().map(status::root_text).collect::<String>())?;
    Ok(OK)
}

async fn list(app: &App<'_>, client: &Client) -> Result<u8, Failure> {
    let none = cairn_protocol::session::Empty {};
    let answer = app.answer::<cairn_protocol::session::Page<RootStatus>>(client, "index.list", &none).await?;
    let lines = answer
        .iter()
        .flat_map(|page| &page.data)
        .map(|r| format!("{}  {}\n", r.root, output::plain(&r.path)));
    output::print(&lines.collect::<String>())?;
    Ok(OK)
}
