//! `cairn discover`: daemons that announce themselves in the local network.

use std::{fmt::Write as _, time::Duration};

use clap::Args;

use crate::{
    app::App,
    exit::{Failure, OK},
    output::{self, plain},
};

/// Arguments of `cairn discover`.
#[derive(Debug, Clone, Args)]
pub struct DiscoverArgs {
    /// Seconds to listen; at least 2 are, since daemons answer once a second
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0, value_parser = seconds)]
    timeout: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.1..=600.0).contains(&seconds) { Ok(seconds) } else { Err("must be between 0.1 and 600".into()) }
}

pub async fn run(app: &App<'_>, args: &DiscoverArgs) -> Result<u8, Failure> {
    let found = cairn_client_sdk::discover(Duration::from_secs_f64(args.timeout)).await?;
    if app.globals.json {
        output::json(&serde_json::json!({"data": found}))?;
        return Ok(OK);
    }
    if found.is_empty() {
        app.remark("no daemon announces itself; one does so only when the network can reach it");
    }
    let mut out = String::new();
    for daemon in &found {
        let addresses: Vec<String> =
            daemon.addresses.iter().map(|a| std::net::SocketAddr::new(*a, daemon.port).to_string()).collect();
        let at = if addresses.is_empty() { format!("port {}", daemon.port) } else { addresses.join(", ") };
        let _infallible =
            writeln!(out, "{}  {}  {}  {at}", plain(&daemon.name), plain(&daemon.version), plain(&daemon.id));
    }
    output::print(&out)?;
    Ok(OK)
}
