//! `cairn mcp`: Cairn for agents that speak the Model Context Protocol over standard input and output.

mod entry;
mod install;

use std::{path::PathBuf, time::Duration};

use cairn_client_sdk::Client;
use cairn_protocol::index::{AddRootParams, IndexStatusParams};
use clap::{Args, Subcommand};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::{
    app::App,
    bridge::{self, Bridge},
    exit::Failure,
    scope,
};

/// Path of the daemon that speaks MCP.
const PATH: &str = "/mcp/ws";
/// After the input's end, how long answers that are due are waited for.
const LINGER: Duration = Duration::from_secs(60);

const EXAMPLES: &str = "\
Examples:
  cairn mcp install                         the clients that are known, and their files
  cairn mcp install claude                  print the entry for one of them
  cairn mcp install cursor --write          write it; what is there stays, a copy is kept beside it
  cairn mcp --root ~/src/project            what such an entry starts

Standard output carries protocol messages alone, all else goes to standard error. Without --root the declared root around
the current folder is worked in, and where there is none, every declared root is searched.
Agents may also connect by streamable HTTP: /mcp at the daemon's address ('cairn status'), with its token as bearer.
Exit codes: 0 the agent has gone, 2 wrong use, 3 no such folder, 4 no daemon.";

/// Arguments of `cairn mcp`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct McpArgs {
    /// Work in this folder, which is declared where it is not yet, or in the root of that id
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Print or write the entry that makes a client start this
    Install(install::InstallArgs),
}

pub async fn run(app: &App<'_>, args: McpArgs) -> Result<u8, Failure> {
    if let Some(Action::Install(install)) = args.action {
        return install::run(app, &install);
    }
    let client = app.client().await?;
    let root = root(app, &client, args.root).await?;
    drop(client);
    let path = match root {
        Some(root) => format!("{PATH}?root={}", utf8_percent_encode(&root, NON_ALPHANUMERIC)),
        None => PATH.to_owned(),
    };
    bridge::run(app, Bridge { path: &path, linger: Some(LINGER) }).await
}

/// The id of the root to work in. Nothing is waited for: a client gives a server little time to start.
async fn root(app: &App<'_>, client: &Client, named: Option<PathBuf>) -> Result<Option<String>, Failure> {
    let given = named.is_some();
    if let Some(id) = named.as_deref().and_then(|r| r.to_str()).filter(|r| r.starts_with("root_")) {
        return Ok(Some(id.to_owned()));
    }
    let place = match named {
        Some(folder) => app.canonical(&folder)?,
        None => app.here(client).await?,
    };
    let roots = client.index_status(&IndexStatusParams::default()).await?.roots;
    if let Some(found) = scope::around(&roots, &place) {
        // A folder that is named must be the root itself, or files outside it would be found.
        if !given || place == std::path::Path::new(&found.path) {
            return Ok(Some(found.root.to_string()));
        }
    }
    if given {
        let path = scope::utf8(&place)?;
        let receipt = client.index_add_root(&AddRootParams { path, request_id: None }).await?;
        return Ok(Some(receipt.root.to_string()));
    }
    app.remark(&format!(
        "{} is in no declared root: every declared root is searched (--root DIR declares one)",
        place.display()
    ));
    Ok(None)
}
