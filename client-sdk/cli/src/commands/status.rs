//! `cairn status`: the daemon, its files and its roots.

use std::fmt::Write as _;

use cairn_client_sdk::{ClientError, is_root_locked};
use cairn_protocol::{
    daemon::DaemonStatus, index::RootStatus, location::ConfigFolder, session::Empty,
};
use console::style;

use crate::{
    app::App,
    exit::{Failure, OK, UNREACHABLE},
    render::output::{self, bytes, number, plain},
    scope,
};

pub async fn run(app: &App<'_>) -> Result<u8, Failure> {
    let client = match app.connector().connect().await {
        Ok(client) => client,
        // A daemon that answers is running, whatever it answers.
        Err(error @ (ClientError::Incompatible { .. } | ClientError::Busy { .. })) => {
            return Err(error.into());
        }
        Err(error) if error.is_unreachable() && !app.is_remote() => return absent(app, &error),
        Err(error) => return Err(error.into()),
    };
    if let Some(status) = app.answer::<DaemonStatus>(&client, "daemon.status", &Empty {}).await? {
        output::print(&text(&status))?;
    }
    Ok(OK)
}

/// Shows what is known without a daemon.
fn absent(app: &App<'_>, why: &ClientError) -> Result<u8, Failure> {
    let root = app.data_root()?;
    let (config, origin) = app.env.config().unzip();
    let config = config.unwrap_or_default();
    if app.globals.json {
        output::json(&serde_json::json!({
            "running": false,
            "reason": why.to_string(),
            "dataRoot": root.path(),
            "logFile": root.log_file(),
            "configDir": config,
            "configOrigin": origin,
        }))?;
        return Ok(UNREACHABLE);
    }
    let is_locked = is_root_locked(&root);
    let state = if is_locked { "the daemon does not answer" } else { "no daemon is running" };
    let mut out = format!("{}\n", style(state).yellow());
    if !matches!(why, ClientError::NotRunning { .. }) {
        let _infallible = writeln!(out, "  reason    {}", plain(&why.to_string()));
    }
    let _infallible = writeln!(out, "  data      {}", root.path().display());
    let _infallible = writeln!(out, "  log       {}", root.log_file().display());
    let _infallible = writeln!(out, "  config    {}{}", config.display(), origin_text(origin));
    out.push_str(match is_locked {
        true => "'cairn stop' ends it, and the next command that needs one starts it\n",
        false => "a command that needs one starts it\n",
    });
    output::print(&out)?;
    Ok(UNREACHABLE)
}

fn text(status: &DaemonStatus) -> String {
    let mode = match status.mode.as_str() {
        "on_demand" => "started by a client",
        "service" => "a service",
        _ => "in a terminal",
    };
    let leaves = status
        .idle_exit_seconds
        .map_or_else(String::new, |s| format!(", exits after {s} s without use"));
    let mut out = format!("{} {}\n", style("cairn").bold(), status.version);
    let rows = [
        ("process", format!("{} since {}, {mode}{leaves}", status.pid, status.started_at)),
        ("instance", status.instance_id.to_string()),
        ("listens", status.addresses.join(", ")),
        ("data", status.data_root.clone()),
        ("config", config_text(status)),
        ("log", status.log_file.clone().unwrap_or_else(|| "standard error of the daemon".into())),
        ("running", format!("{} sessions", number(status.running_sessions))),
    ];
    for (name, value) in rows {
        let _infallible = writeln!(out, "  {name:<9} {}", plain(&value));
    }
    let none = if status.index.roots.is_empty() { "  no root is declared yet\n" } else { "" };
    out.push_str(none);
    out.extend(status.index.roots.iter().map(root_text));
    out
}

fn config_text(status: &DaemonStatus) -> String {
    let folder = status.config_dir.clone().unwrap_or_else(|| "no folder".into());
    format!("{folder}{}", origin_text(status.config_origin))
}

fn origin_text(origin: Option<ConfigFolder>) -> &'static str {
    match origin {
        Some(ConfigFolder::Named) => ", which CAIRN_CONFIG names",
        Some(ConfigFolder::OfDataRoot) => ", which is in CAIRN_HOME",
        Some(ConfigFolder::OfUser) | None => "",
    }
}

/// Renders a root and its index.
pub fn root_text(root: &RootStatus) -> String {
    let mut out = format!("{}  {}\n", style(plain(&root.path)).green(), style(&root.root).dim());
    let _infallible = writeln!(
        out,
        "  {}, {}; {} vectors, {} symbols; {}",
        scope::progress_line(root),
        bytes(root.bytes),
        number(root.vectors),
        number(root.symbols),
        root.watch
    );
    if !root.skipped.is_empty() {
        let skipped: Vec<String> =
            root.skipped.iter().map(|(why, n)| format!("{} {why}", number(*n))).collect();
        let _infallible = writeln!(out, "omitted: {}", skipped.join(", "));
    }
    if let Some(error) = &root.error {
        let _infallible = writeln!(out, "  {} {}", style("last error:").red(), plain(error));
    }
    out
}
