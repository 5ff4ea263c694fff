//! `cairn mcp list`, `login` and `logout`: the MCP servers whose tools Cairn uses.

use std::{fmt::Write as _, io::IsTerminal as _};

use cairn_client_sdk::Client;
use cairn_protocol::{
    mcp::{McpAccount, McpFinishLoginParams, McpServerInfo, McpServerRef, McpServerState},
    session::{Empty, Page},
};
use clap::Args;
use console::style;
use tokio::sync::oneshot;

use crate::{
    app::App,
    commands::viewer,
    exit::{Failure, OK},
    render::output::{self, plain},
};

const LOGIN_HELP: &str = "\
The daemon opens a port on 127.0.0.1 for the answer of the browser and waits five minutes. A browser on another machine
cannot reach that port: paste the address at which it ended, when asked. Tokens are stored in 'mcp-logins.json' of the
data folder, which only you can read, and refreshed before they expire.";

/// Arguments of `cairn mcp login`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LOGIN_HELP)]
pub struct LoginArgs {
    /// The server's name in the configuration
    name: String,
    /// Print the address without opening a browser
    #[arg(long)]
    no_browser: bool,
}

/// Arguments of `cairn mcp logout`.
#[derive(Debug, Clone, Args)]
pub struct LogoutArgs {
    /// The server's name in the configuration
    name: String,
}

pub async fn list(app: &App<'_>) -> Result<u8, Failure> {
    let client = app.connect().await?;
    if let Some(page) = app.answer::<Page<McpServerInfo>>(&client, "mcp.list", &Empty {}).await? {
        if page.data.is_empty() {
            app.info("the configuration has no MCP servers (mcp.servers)");
        }
        output::print(&table(&page.data))?;
    }
    Ok(OK)
}

/// Prints a note for each server whose tools are missing until the user logs in.
pub async fn note_logins(app: &App<'_>, client: &Client) {
    // A daemon of an earlier version does not know the method.
    let Ok(page) = client.mcp_list(&Empty {}).await else { return };
    for server in page.data.iter().filter(|s| s.state == McpServerState::LoginRequired) {
        let name = plain(&server.name);
        app.info(&format!("mcp server '{name}' requires a login: run 'cairn mcp login {name}'"));
    }
}

fn table(all: &[McpServerInfo]) -> String {
    let mut out = String::new();
    for server in all {
        let (mark, state) = match server.state {
            McpServerState::Connected => (style("●").green(), format!("{} tools", server.tools)),
            McpServerState::Starting => (style("◌").yellow(), "starting".to_owned()),
            McpServerState::LoginRequired => (style("○").yellow(), "needs a login".to_owned()),
            McpServerState::Failed => (style("○").red(), "failed".to_owned()),
            McpServerState::Disabled => (style("○").dim(), "disabled".to_owned()),
        };
        let login = if server.logged_in { ", logged in" } else { "" };
        let url = server.url.as_deref().map(plain).unwrap_or_else(|| "program".to_owned());
        let name = style(plain(&server.name)).bold();
        let _infallible = writeln!(out, "{mark} {name}  {url}  {state}{login}");
        if let Some(error) = &server.error {
            let _infallible = writeln!(out, "    {}", plain(error));
        }
    }
    out
}

pub async fn login(app: &App<'_>, args: LoginArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    let login = client.mcp_login(&McpServerRef { name: args.name.clone() }).await?;
    // The address goes to standard output, for programs that open it themselves.
    output::print(&format!("{}\n", login.url))?;
    app.info(&format!("open this address to log in to '{}'", args.name));
    let is_terminal = std::io::stdin().is_terminal();
    let opened = !args.no_browser && is_terminal && viewer::open(&login.url);
    if !args.no_browser && is_terminal && !opened {
        app.info("no browser could be started: open the address manually");
    }
    let typed = if is_terminal && (app.is_remote() || !opened) {
        app.info("if the browser cannot reach this machine, paste the address at which it ended:");
        Some(read_line())
    } else {
        None
    };
    let account = finish(&client, &login.login_id, typed).await?;
    if app.globals.json {
        output::json(&account)?;
    } else {
        app.info(&format!("logged in to '{}'", account.name));
    }
    Ok(OK)
}

/// Waits for the end of a login, by the browser's answer or the address that the user pastes.
async fn finish(
    client: &Client,
    id: &cairn_protocol::id::McpLoginId,
    typed: Option<oneshot::Receiver<String>>,
) -> Result<McpAccount, Failure> {
    let params = |redirect_url| McpFinishLoginParams { login_id: id.clone(), redirect_url };
    let (by_browser, by_user) = (params(None), typed);
    let waiting = client.mcp_finish_login(&by_browser);
    let pasting = async {
        let line = match by_user {
            Some(typed) => typed.await.ok().filter(|line| !line.trim().is_empty()),
            None => None,
        };
        match line {
            Some(line) => client.mcp_finish_login(&params(Some(line))).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        account = waiting => Ok(account?),
        account = pasting => Ok(account?),
    }
}

/// Reads one line of standard input on a thread that ends with the program.
fn read_line() -> oneshot::Receiver<String> {
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        if std::io::stdin().read_line(&mut line).is_ok() {
            let _login_is_over = sender.send(line);
        }
    });
    receiver
}

pub async fn logout(app: &App<'_>, args: LogoutArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    let server = McpServerRef { name: args.name };
    if let Some(account) = app.answer::<McpAccount>(&client, "mcp.logout", &server).await? {
        let text = if account.was_logged_in { "logged out of" } else { "there was no login to" };
        app.info(&format!("{text} '{}'", plain(&account.name)));
    }
    Ok(OK)
}
