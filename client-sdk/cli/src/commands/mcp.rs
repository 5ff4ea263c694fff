//! `cairn mcp`: Cairn for agents that speak the Model Context Protocol over standard input and
//! output, and the MCP servers whose tools Cairn uses.

mod entry;
mod install;
mod servers;

use std::{path::PathBuf, time::Duration};

use cairn_client_sdk::Client;
use cairn_protocol::{
    index::{AddRootParams, IndexStatusParams},
    mcp::{DEFAULT_TOOLS, TURN_TOOL},
    session::Empty,
};
use clap::{Args, Subcommand};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

pub use servers::note_logins;

use crate::{
    app::App,
    bridge::{self, Bridge},
    exit::Failure,
    mistake::nearest,
    render::output::plain,
    scope,
};

/// The daemon's MCP WebSocket.
const PATH: &str = "/mcp/ws";
/// Time after the end of the input to wait for pending answers.
const LINGER: Duration = Duration::from_secs(60);

const EXAMPLES: &str = "\
Examples:
  cairn mcp install                         list the known clients and their files
  cairn mcp install claude                  print the entry for one of them
  cairn mcp install cursor --write          write it; other entries are unchanged, a backup is stored
  cairn mcp --root ~/src/project            the command that such an entry starts
  cairn mcp --tools default,git_log         with one more tool; 'cairn tools' lists the names
  cairn mcp list                            the servers of the configuration (mcp.servers)
  cairn mcp login tracker                   log in to one of them

Standard output carries only protocol messages, all else goes to standard error. Without --root the declared root around
the current folder is used; if there is none, every declared root is searched.
Agents may also connect by streamable HTTP: /mcp at the daemon's address ('cairn status'), with its token as bearer.
Exit codes: 0 the agent disconnected, 2 invalid usage, 3 no such folder, 4 no daemon.";

/// Arguments of `cairn mcp`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct McpArgs {
    /// Work in this folder, which is declared if necessary, or in the root of that id
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Tools to offer: 'default', 'all', or names, with commas between them; else 'mcp.tools'
    #[arg(long, value_name = "LIST", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    tools: Option<String>,
    /// Also offer 'run_turn', with which the client gives tasks to Cairn's own agent
    #[arg(long)]
    turns: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Print or write the configuration entry with which a client starts this
    Install(install::InstallArgs),
    /// List the MCP servers whose tools Cairn uses, with their state
    List,
    /// Log in to one of these servers, in a browser
    Login(servers::LoginArgs),
    /// Delete the login to one of these servers
    Logout(servers::LogoutArgs),
}

pub async fn run(app: &App<'_>, args: McpArgs) -> Result<u8, Failure> {
    match args.action {
        Some(Action::Install(install)) => return install::run(app, &install),
        Some(Action::List) => return servers::list(app).await,
        Some(Action::Login(login)) => return servers::login(app, login).await,
        Some(Action::Logout(logout)) => return servers::logout(app, logout).await,
        None => {}
    }
    let client = app.connect().await?;
    if let Some(list) = &args.tools {
        check_tools(&client, list).await?;
    }
    let root = root(app, &client, args.root).await?;
    drop(client);
    let pair = |name: &str, value: String| {
        format!("{name}={}", utf8_percent_encode(&value, NON_ALPHANUMERIC))
    };
    let root = root.map(|root| pair("root", root));
    let tools = args.tools.map(|tools| pair("tools", tools));
    let turns = args.turns.then(|| "turns=1".to_owned());
    let query: Vec<String> = root.into_iter().chain(tools).chain(turns).collect();
    let path = match query.as_slice() {
        [] => PATH.to_owned(),
        query => format!("{PATH}?{}", query.join("&")),
    };
    bridge::run(app, Bridge { path: &path, linger: Some(LINGER) }).await
}

/// Refuses a list with names of no tool, which would be missing without a word.
async fn check_tools(client: &Client, list: &str) -> Result<(), Failure> {
    let registered = client.tool_list(&Empty {}).await?.data;
    let servers = client.mcp_list(&Empty {}).await?.data;
    let mut known: Vec<&str> = vec!["default", "all", TURN_TOOL];
    known.extend(DEFAULT_TOOLS);
    known.extend(registered.iter().map(|tool| tool.name.as_str()));
    // A server that is not connected yet has tools that are not registered.
    let is_of_server = |name: &str| {
        servers.iter().any(|server| name.starts_with(&format!("mcp_{}_", server.name)))
    };
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let unknown: Vec<&str> =
        names.filter(|name| !known.contains(name) && !is_of_server(name)).collect();
    let Some(first) = unknown.first() else { return Ok(()) };
    let quoted: Vec<String> = unknown.iter().map(|name| format!("'{}'", plain(name))).collect();
    let (verb, noun) = if unknown.len() == 1 { ("is", "no tool") } else { ("are", "no tools") };
    let near = nearest(known.iter().copied(), first)
        .map_or_else(String::new, |name| format!("; did you mean '{name}'?"));
    Err(Failure::usage(format!("{} {verb} {noun}{near}", quoted.join(", ")))
        .hint("'cairn tools' lists the names; 'default' and 'all' stand for several"))
}

/// Returns the id of the root to work in. Indexing is not awaited, because a client gives a server
/// little time to start.
async fn root(
    app: &App<'_>,
    client: &Client,
    requested: Option<PathBuf>,
) -> Result<Option<String>, Failure> {
    let is_explicit = requested.is_some();
    if let Some(id) =
        requested.as_deref().and_then(|r| r.to_str()).filter(|r| r.starts_with("root_"))
    {
        return Ok(Some(id.to_owned()));
    }
    let location = match requested {
        Some(folder) => app.canonical(&folder)?,
        None => app.location(client).await?,
    };
    let roots = client.index_status(&IndexStatusParams::default()).await?.roots;
    if let Some(enclosing) = scope::enclosing_root(&roots, &location) {
        // A folder given explicitly must be the root itself, or results would come from outside of
        // it.
        if !is_explicit || location == std::path::Path::new(&enclosing.path) {
            return Ok(Some(enclosing.root.to_string()));
        }
    }
    if is_explicit {
        let path = scope::utf8(&location)?;
        let receipt = client.index_add_root(&AddRootParams { path, request_id: None }).await?;
        return Ok(Some(receipt.root.to_string()));
    }
    app.info(&format!(
        "{} is not in a declared root: every declared root is searched (--root DIR declares one)",
        location.display()
    ));
    Ok(None)
}
