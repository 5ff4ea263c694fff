//! `cairn viewer`: a link that opens the viewer in a browser.

use std::{
    io::IsTerminal as _,
    process::{Command, Stdio},
};

use cairn_client_sdk::Client;
use cairn_protocol::session::Empty;
use clap::Args;
use serde::Deserialize;

use crate::{
    app::App,
    exit::{Failure, OK},
    render::output,
    session_name::SessionName,
};

/// Shows sessions, approvals, searches and traces in a browser.
#[derive(Debug, Args)]
#[command(
    after_help = "The link opens the viewer once, within a minute. The page never gets the daemon's token.\n\n\
Examples:\n  cairn viewer\n  cairn viewer --print"
)]
pub struct ViewerArgs {
    /// Print the link without opening a browser
    #[arg(long)]
    print: bool,
}

/// Arguments of `cairn open`.
#[derive(Debug, Args)]
pub struct OpenArgs {
    /// The session: its id, a part of it, or 'last'; the viewer's first page if not given
    #[arg(value_name = "ID")]
    session: Option<SessionName>,
    /// Print the link without opening a browser
    #[arg(long)]
    print: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Link {
    path: String,
    expires_in_seconds: u64,
}

pub async fn run(app: &App<'_>, args: &ViewerArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    show(app, &client, "", args.print).await
}

/// Runs `cairn open`: the page of a session.
pub async fn open_session(app: &App<'_>, args: &OpenArgs) -> Result<u8, Failure> {
    let client = app.connect().await?;
    let page = match &args.session {
        // The page is behind the secret of the link.
        Some(name) => format!("/session/{}", name.resolve(&client).await?),
        None => String::new(),
    };
    show(app, &client, &page, args.print).await
}

/// Opens a page of the viewer.
async fn show(app: &App<'_>, client: &Client, page: &str, print: bool) -> Result<u8, Failure> {
    let link: Link = client.call("viewer.link", &Empty {}).await?;
    let address = client.connector().target()?.address;
    let url = format!("http://{address}{}{page}", link.path);
    if app.globals.json {
        output::json(
            &serde_json::json!({"url": url, "expiresInSeconds": link.expires_in_seconds}),
        )?;
        return Ok(OK);
    }
    output::print(&format!("{url}\n"))?;
    app.info(&format!("opens the viewer once, within {} s", link.expires_in_seconds));
    if !print && std::io::stdout().is_terminal() && !open(&url) {
        app.info("no browser could be started: open the link manually");
    }
    Ok(OK)
}

/// Starts the platform's opener; false if that failed.
pub fn open(url: &str) -> bool {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(opener);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}
