//! Commands that the daemon's binary implements: serving, services, checks.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Args, Subcommand};

use crate::Globals;

/// The binary that contains the daemon.
pub trait Host {
    /// Runs the daemon until it stops.
    fn serve(&self, args: ServeArgs, globals: &Globals) -> ExitCode;
    /// Installs, removes or shows the service.
    fn service(&self, args: ServiceArgs, globals: &Globals) -> ExitCode;
    /// Runs the checks of `cairn doctor`.
    fn doctor(&self, args: DoctorArgs, globals: &Globals) -> ExitCode;
    /// Lists the unit files of the service that exist.
    fn service_files(&self) -> Vec<PathBuf>;
    /// Stops the service and returns its removed files; a missing service is no error.
    fn remove_service(&self) -> Result<Vec<PathBuf>, String>;
    /// Reads the file at a URL, of at most `max_bytes`.
    fn download(&self, url: &str, max_bytes: u64) -> Result<Vec<u8>, String>;
    /// Returns the sources of the configuration; `project` is the folder whose own file applies.
    fn config_inputs(&self, globals: &Globals, project: Option<PathBuf>) -> cairn_config::Inputs;
}

/// Arguments of `cairn serve`.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    /// As started by a client: log to a file, exit when idle
    #[arg(long, conflicts_with = "service")]
    pub on_demand: bool,
    /// As started by a service manager
    #[arg(long)]
    pub service: bool,
    /// Port; the next free one if it is in use, any for 0
    #[arg(long)]
    pub port: Option<u16>,
    /// Local address to listen on
    #[arg(long, value_name = "IP")]
    pub listen: Option<IpAddr>,
    /// An address for paired devices in the network, by TLS (listen.lan in the config enables it
    /// permanently)
    #[arg(long, value_name = "IP[:PORT]", value_parser = lan)]
    pub lan: Option<(IpAddr, Option<u16>)>,
    /// An additional address for the local network, without TLS: for tests in a closed network
    #[arg(long, value_name = "IP")]
    pub insecure_lan: Option<IpAddr>,
    /// The daemon's name in the local network
    #[arg(long)]
    pub name: Option<String>,
    /// Log filter, as in 'info' or 'cairn_search=debug,info'
    #[arg(long, value_name = "FILTER")]
    pub log: Option<String>,
    /// Print the audit to standard output, as lines of JSON: each call when it starts and when it
    /// ends
    #[arg(long, conflicts_with = "on_demand")]
    pub audit_stdout: bool,
    /// Exit after so many seconds without clients and work; 0 for never
    #[arg(long, value_name = "SECONDS")]
    pub idle_exit: Option<u64>,
}

/// Parses an address with an optional port.
fn lan(text: &str) -> Result<(IpAddr, Option<u16>), String> {
    if let Ok(at) = text.parse::<SocketAddr>() {
        return Ok((at.ip(), Some(at.port())));
    }
    text.parse()
        .map(|ip| (ip, None))
        .map_err(|_| "not an address, as in 10.0.0.1 or 10.0.0.1:7434".to_owned())
}

/// Arguments of `cairn service`.
#[derive(Debug, Clone, Copy, Args)]
pub struct ServiceArgs {
    /// The action.
    #[command(subcommand)]
    pub action: ServiceAction,
}

/// The action.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum ServiceAction {
    /// Write the unit files and start the service
    Install {
        /// Only print the files and their locations
        #[arg(long)]
        dry_run: bool,
    },
    /// Stop the service and remove its files
    Uninstall {
        /// Only print what would be removed
        #[arg(long)]
        dry_run: bool,
    },
    /// Show whether it is installed and running
    Status,
}

/// Arguments of `cairn doctor`.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct DoctorArgs {
    /// Show what of the data folder is damaged, and what a repair would rescue
    #[arg(long)]
    pub repair: bool,
    /// Do it: rescue what is intact, and move the damaged files aside
    #[arg(long, requires = "repair")]
    pub yes: bool,
}
