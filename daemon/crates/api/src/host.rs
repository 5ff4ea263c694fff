//! Information about the host.

use std::path::{Path, PathBuf};

use cairn_protocol::{id::InstanceId, location::ConfigFolder, time::Timestamp};

/// Facts about the running daemon that the engine does not know.
#[derive(Debug, Clone)]
pub struct HostInfo {
    pub version: String,
    /// Unique for each start of the daemon.
    pub instance_id: InstanceId,
    pub started_at: Timestamp,
    /// `host:port` of each listener.
    pub addresses: Vec<String>,
    pub data_root: PathBuf,
    /// `None` if the log goes to standard error.
    pub log_file: Option<PathBuf>,
    /// The configuration folder and the reason why it applies.
    pub config: Option<(PathBuf, ConfigFolder)>,
    /// `on_demand`, `service` or `foreground`.
    pub mode: String,
    /// Seconds without a client after which the daemon exits.
    pub idle_exit_seconds: Option<u64>,
}

impl HostInfo {
    /// Describes an engine inside another program: without listeners, log file and configuration
    /// folder, and it does not exit by itself.
    pub fn in_process(version: &str, data_root: &Path) -> Self {
        Self {
            version: version.to_owned(),
            instance_id: InstanceId::new(),
            started_at: Timestamp::now(),
            addresses: Vec::new(),
            data_root: data_root.to_owned(),
            log_file: None,
            config: None,
            mode: "foreground".to_owned(),
            idle_exit_seconds: None,
        }
    }
}

/// Returns the resident bytes and the part of them that is not file pages; zeros where the system
/// does not report them.
pub fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kb| kb * 1024)
    };
    (field("VmRSS:").unwrap_or(0), field("RssAnon:").unwrap_or(0))
}
