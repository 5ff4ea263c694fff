//! `cairn discover`: daemons that announce themselves in the local network.

use std::{fmt::Write as _, time::Duration};

use cairn_client_sdk::{DiscoveredDaemon, Hosts, KnownHost};
use clap::Args;
use serde::Serialize;

use crate::{
    app::App,
    exit::{Failure, OK},
    render::output::{self, plain},
};

/// Arguments of `cairn discover`.
#[derive(Debug, Clone, Args)]
pub struct DiscoverArgs {
    /// Seconds to listen; at least 2, because daemons answer once a second
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0, value_parser = seconds)]
    timeout: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.1..=600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("must be between 0.1 and 600".into())
    }
}

/// A daemon, and its local name if this machine is paired with it.
#[derive(Serialize)]
struct DaemonRow<'a> {
    #[serde(flatten)]
    daemon: &'a DiscoveredDaemon,
    #[serde(skip_serializing_if = "Option::is_none")]
    paired: Option<&'a str>,
}

/// A hint at a key is enough to select the name, because the key is verified on connection.
fn paired<'k>(daemon: &DiscoveredDaemon, known: &'k [KnownHost]) -> Option<&'k str> {
    let hint = daemon.key.as_deref()?;
    known.iter().find(|k| k.key.hint() == hint).map(|k| &*k.name)
}

pub async fn run(app: &App<'_>, args: &DiscoverArgs) -> Result<u8, Failure> {
    let known = Hosts::of(&app.data_root()?).list()?;
    let daemons = cairn_client_sdk::discover(Duration::from_secs_f64(args.timeout)).await?;
    if app.globals.json {
        let discovered: Vec<_> = daemons
            .iter()
            .map(|daemon| DaemonRow { daemon, paired: paired(daemon, &known) })
            .collect();
        output::json(&serde_json::json!({"data": discovered}))?;
        return Ok(OK);
    }
    if daemons.is_empty() {
        app.info("no daemon was found; a daemon is announced only when the network can reach it");
    }
    let mut out = String::new();
    for daemon in &daemons {
        let addresses: Vec<String> = daemon
            .addresses
            .iter()
            .map(|a| std::net::SocketAddr::new(*a, daemon.port).to_string())
            .collect();
        let at = if addresses.is_empty() {
            format!("port {}", daemon.port)
        } else {
            addresses.join(", ")
        };
        let _infallible = write!(
            out,
            "{}  {}  {}  {at}",
            plain(&daemon.name),
            plain(&daemon.version),
            plain(&daemon.id)
        );
        if let Some(key) = &daemon.key {
            let _infallible = write!(out, "  key {}", plain(key));
        }
        let _infallible = match paired(daemon, &known) {
            Some(name) => writeln!(out, "  paired: --host {}", plain(name)),
            None => writeln!(out),
        };
    }
    output::print(&out)?;
    Ok(OK)
}
