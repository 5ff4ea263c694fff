//! What the host tells about itself.

use std::path::PathBuf;

use cairn_protocol::{id::InstanceId, location::ConfigFolder, time::Timestamp};

/// Facts of the running daemon that the engine does not know.
#[derive(Debug, Clone)]
pub struct HostInfo {
    /// Version of the binary.
    pub version: String,
    /// This start.
    pub instance_id: InstanceId,
    /// When it started.
    pub started_at: Timestamp,
    /// `host:port` of each listener.
    pub addresses: Vec<String>,
    /// Where the data lies.
    pub data_root: PathBuf,
    /// Where it logs, when to a file.
    pub log_file: Option<PathBuf>,
    /// The configuration folder, and the reason why it applies.
    pub config: Option<(PathBuf, ConfigFolder)>,
    /// `on_demand`, `service` or `foreground`.
    pub mode: String,
    /// Seconds without a client after which it leaves.
    pub idle_exit_seconds: Option<u64>,
}

/// Resident bytes and those of them that are not file pages; zeros where the system does not tell.
pub fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kb| kb * 1024)
    };
    (field("VmRSS:").unwrap_or(0), field("RssAnon:").unwrap_or(0))
}
