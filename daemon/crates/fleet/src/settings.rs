//! Settings of the connection, as the configuration gives them.

use std::{path::PathBuf, time::Duration};

/// Time after which the broker gives the run of a silent daemon to another.
pub const LEASE: Duration = Duration::from_secs(30);

/// Settings of a daemon's connection to a broker.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Address of the broker, as `nats://HOST:PORT` or `tls://HOST:PORT`; those of a cluster's nodes
    /// are separated by commas.
    pub server: String,
    pub login: Login,
    /// Certificates of authorities that signed the broker's certificate, besides the system's.
    pub ca_file: Option<PathBuf>,
    /// Name of this daemon, a single token.
    pub name: String,
    /// Pools whose runs this daemon takes.
    pub pools: Vec<String>,
    pub mirror: Mirrored,
    /// Folders of which the sessions are mirrored; all if empty.
    pub mirror_folders: Vec<PathBuf>,
    /// Copies the large results of the mirrored sessions too.
    pub blobs: bool,
    /// Nodes of a cluster that have each message of the streams that this daemon creates.
    pub replicas: usize,
    /// Beginnings of the URLs of repositories that may be cloned for a run.
    pub clone_from: Vec<String>,
    /// Maximum number of runs at once.
    pub max_runs: u32,
    /// Duration of a lease; shorter only in tests.
    pub lease: Duration,
}

/// The way in which the daemon proves its identity to the broker.
#[derive(Debug, Clone)]
pub enum Login {
    /// A broker without accounts.
    None,
    /// A file with a user's token and seed, as `nsc` writes it.
    Credentials(PathBuf),
    Password {
        user: String,
        password: String,
    },
}

/// Sessions whose records are mirrored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mirrored {
    None,
    /// Sessions of the runs of a pool.
    Pools,
    All,
}
