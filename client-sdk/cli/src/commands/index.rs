//! `cairn index`: declare folders, wait for them, show their progress, remove them.

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
    commands::status,
    exit::{FAILED, Failure, OK},
    render::output,
    scope,
    scope::Stage,
};

/// Arguments of `cairn index`.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct IndexArgs {
    /// A folder to declare and wait for; without it, as 'status'
    path: Option<PathBuf>,
    #[command(subcommand)]
    action: Option<Action>,
}

/// Time to wait for an index.
#[derive(Debug, Clone, Copy, Args)]
struct WaitOptions {
    /// Wait until it is complete
    #[arg(long)]
    wait: bool,
    /// Maximum seconds to wait
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    timeout: u64,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Show the progress of each index
    Status {
        /// Only this root: its id or folder
        root: Option<String>,
    },
    /// Declare a folder
    Add {
        /// The folder
        path: PathBuf,
        #[command(flatten)]
        wait_options: WaitOptions,
    },
    /// Remove a root and delete its index
    Remove {
        /// Its id or folder
        root: String,
    },
    /// Delete an index and build it again
    Rebuild {
        /// Its id or folder
        root: String,
        #[command(flatten)]
        wait_options: WaitOptions,
    },
    /// The declared roots
    List,
}

pub async fn run(app: &App<'_>, args: IndexArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    match (args.path, args.action) {
        (Some(path), _) => {
            add(app, &client, &path, WaitOptions { wait: true, timeout: 3600 }).await
        }
        (None, None) => show(app, &client, None).await,
        (None, Some(Action::Status { root })) => show(app, &client, root.as_deref()).await,
        (None, Some(Action::Add { path, wait_options })) => {
            add(app, &client, &path, wait_options).await
        }
        (None, Some(Action::Remove { root })) => {
            let params =
                RootRef { root: resolve_root(app, &client, &root).await?, request_id: None };
            if let Some(receipt) =
                app.answer::<IndexReceipt>(&client, "index.removeRoot", &params).await?
            {
                output::line(&format!("{} is forgotten", output::plain(&receipt.path)))?;
            }
            Ok(OK)
        }
        (None, Some(Action::Rebuild { root, wait_options })) => {
            let params =
                RootRef { root: resolve_root(app, &client, &root).await?, request_id: None };
            let receipt = client.index_rebuild(&params).await?;
            report_receipt(app, &client, &receipt, wait_options).await
        }
        (None, Some(Action::List)) => list(app, &client).await,
    }
}

/// Returns a root as the daemon knows it: an id, or the canonical path of a folder that may no
/// longer exist.
async fn resolve_root(app: &App<'_>, client: &Client, root: &str) -> Result<String, Failure> {
    if root.starts_with("root_") {
        return Ok(root.to_owned());
    }
    let path = app.location(client).await?.join(root);
    scope::utf8(&app.canonical(&path).unwrap_or(path))
}

async fn add(
    app: &App<'_>,
    client: &Client,
    path: &Path,
    wait_options: WaitOptions,
) -> Result<u8, Failure> {
    let path = scope::utf8(&app.canonical(&app.location(client).await?.join(path))?)?;
    let receipt = client.index_add_root(&AddRootParams { path, request_id: None }).await?;
    report_receipt(app, client, &receipt, wait_options).await
}

async fn report_receipt(
    app: &App<'_>,
    client: &Client,
    receipt: &IndexReceipt,
    wait_options: WaitOptions,
) -> Result<u8, Failure> {
    if !wait_options.wait {
        if app.globals.json {
            output::json(receipt)?;
        } else {
            output::line(&format!("{}  {}", receipt.root, output::plain(&receipt.path)))?;
        }
        return Ok(OK);
    }
    let limit = Duration::from_secs(wait_options.timeout);
    let status = scope::wait(app, client, &receipt.path, Stage::Complete, limit).await?;
    if app.globals.json {
        output::json(&status)?;
    } else {
        output::print(&status::root_text(&status))?;
    }
    let done = status.complete && status.state == IndexState::Ready;
    if !done {
        app.info(&format!(
            "not complete after {} s; it continues in the background",
            wait_options.timeout
        ));
    }
    Ok(if done { OK } else { FAILED })
}

async fn show(app: &App<'_>, client: &Client, root: Option<&str>) -> Result<u8, Failure> {
    let root = match root {
        Some(root) => Some(resolve_root(app, client, root).await?),
        None => None,
    };
    let params = IndexStatusParams { root };
    let answer =
        app.answer::<cairn_protocol::index::IndexStatus>(client, "index.status", &params).await?;
    let Some(answer) = answer else { return Ok(OK) };
    if answer.roots.is_empty() {
        app.info("no root is declared; 'cairn index PATH' declares one");
    }
    output::print(&answer.roots.iter().map(status::root_text).collect::<String>())?;
    Ok(OK)
}

async fn list(app: &App<'_>, client: &Client) -> Result<u8, Failure> {
    let none = cairn_protocol::session::Empty {};
    let answer = app
        .answer::<cairn_protocol::session::Page<RootStatus>>(client, "index.list", &none)
        .await?;
    let lines = answer
        .iter()
        .flat_map(|page| &page.data)
        .map(|r| format!("{}  {}\n", r.root, output::plain(&r.path)));
    output::print(&lines.collect::<String>())?;
    Ok(OK)
}
