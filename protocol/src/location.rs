//! Locations on disk: pure functions of the platform and the environment, so that a client finds
//! the daemon without the daemon's code.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{id::InstanceId, time::Timestamp};

/// Parts of the environment that decide locations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Env {
    /// Value of the variable `CAIRN_HOME`.
    pub cairn_home: Option<PathBuf>,
    /// Value of the variable `CAIRN_CONFIG`.
    pub cairn_config: Option<PathBuf>,
    /// True if the folder `<CAIRN_HOME>/config` exists.
    pub has_home_config: bool,
    /// Value of the variable `HOME`.
    pub home: Option<PathBuf>,
    /// Value of the variable `XDG_DATA_HOME`.
    pub xdg_data_home: Option<PathBuf>,
    /// Value of the variable `XDG_CONFIG_HOME`.
    pub xdg_config_home: Option<PathBuf>,
    /// True if the platform is macOS.
    pub macos: bool,
}

impl Env {
    /// Reads the environment of the process. Relative values are ignored, as the XDG specification
    /// asks, except in `CAIRN_HOME` and `CAIRN_CONFIG`, which are made absolute.
    pub fn from_process() -> Self {
        let var = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let absolute = |name| var(name).filter(|p| p.is_absolute());
        let own = |name| var(name).map(|p| std::path::absolute(&p).unwrap_or(p));
        let cairn_home = own("CAIRN_HOME");
        Self {
            has_home_config: cairn_home.as_ref().is_some_and(|home| home.join("config").is_dir()),
            cairn_home,
            cairn_config: own("CAIRN_CONFIG"),
            home: absolute("HOME"),
            xdg_data_home: absolute("XDG_DATA_HOME"),
            xdg_config_home: absolute("XDG_CONFIG_HOME"),
            macos: cfg!(target_os = "macos"),
        }
    }

    /// Returns the data root: `CAIRN_HOME`; else Application Support on macOS; else the XDG data
    /// folder. `None` without a home.
    pub fn data_root(&self) -> Option<PathBuf> {
        if let Some(home) = &self.cairn_home {
            return Some(home.clone());
        }
        if self.macos {
            return self.home.as_ref().map(|h| h.join("Library/Application Support/cairn"));
        }
        let data = self
            .xdg_data_home
            .clone()
            .or_else(|| self.home.as_ref().map(|h| h.join(".local/share")))?;
        Some(data.join("cairn"))
    }

    /// Returns every folder that is a data root in some environment: no tool may change any of them.
    pub fn data_candidates(&self) -> Vec<PathBuf> {
        let support = self.home.as_ref().map(|h| h.join("Library/Application Support/cairn"));
        let of_home = self.home.as_ref().map(|h| h.join(".local/share/cairn"));
        let of_xdg = self.xdg_data_home.as_ref().map(|data| data.join("cairn"));
        let on_mac = support.filter(|_| self.macos);
        self.cairn_home.iter().cloned().chain(of_xdg).chain(of_home).chain(on_mac).collect()
    }

    /// Returns the configuration folder that applies, and the reason why; `None` without a home.
    pub fn config(&self) -> Option<(PathBuf, ConfigFolder)> {
        if let Some(folder) = &self.cairn_config {
            return Some((folder.clone(), ConfigFolder::Named));
        }
        if let Some(home) = self.cairn_home.as_ref().filter(|_| self.has_home_config) {
            return Some((home.join("config"), ConfigFolder::OfDataRoot));
        }
        self.user_config().map(|folder| (folder, ConfigFolder::OfUser))
    }

    /// Returns the configuration folder that applies.
    pub fn config_dir(&self) -> Option<PathBuf> {
        self.config().map(|(folder, _)| folder)
    }

    /// Returns every folder that is a configuration folder in some environment: no tool may change
    /// any of them.
    pub fn config_candidates(&self) -> Vec<PathBuf> {
        let of_home = self.cairn_home.as_ref().map(|home| home.join("config"));
        self.cairn_config.iter().cloned().chain(of_home).chain(self.user_config()).collect()
    }

    fn user_config(&self) -> Option<PathBuf> {
        let config = self
            .xdg_config_home
            .clone()
            .or_else(|| self.home.as_ref().map(|h| h.join(".config")))?;
        Some(config.join("cairn"))
    }
}

/// The reason why a configuration folder applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfigFolder {
    /// The variable `CAIRN_CONFIG` names it.
    Named,
    /// It is `<CAIRN_HOME>/config`, which exists.
    OfDataRoot,
    /// It is the user's own configuration folder.
    OfUser,
}

/// Paths of the files of a data root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataRoot(pub PathBuf);

impl DataRoot {
    /// The entries of a data root that Cairn writes.
    pub const ENTRIES: &[&str] = &[
        "agents",
        "chat_history",
        "chats",
        "config",
        "daemon.json",
        "daemon.lock",
        "damaged",
        "external",
        "index",
        "language-servers",
        "logs",
        "mcp-logins.json",
        "memory",
        "model-presets.json",
        "remote",
        "set-aside",
        "state.json",
        "token",
        "trace.db",
        "trace.db-shm",
        "trace.db-wal",
        "trust",
        "workspaces",
    ];

    /// The entries that hold folders of the user's, or programs that run in the sandbox.
    const SHARED: &[&str] = &["agents", "external", "language-servers", "workspaces"];

    /// Returns the paths of the entries that are Cairn's alone.
    pub fn own_entries(&self) -> Vec<PathBuf> {
        let own = Self::ENTRIES.iter().filter(|name| !Self::SHARED.contains(name));
        own.map(|name| self.0.join(name)).collect()
    }

    /// Returns the path of the log's database.
    pub fn trace_db(&self) -> PathBuf {
        self.0.join("trace.db")
    }
    /// Returns the folder of damaged files that were replaced.
    pub fn damaged_dir(&self) -> PathBuf {
        self.0.join("damaged")
    }
    /// Returns the folder of the indexes, one subfolder per root.
    pub fn index_dir(&self) -> PathBuf {
        self.0.join("index")
    }
    /// Returns the folder of cloned repositories.
    pub fn workspaces_dir(&self) -> PathBuf {
        self.0.join("workspaces")
    }
    /// Returns the path of [`DaemonFile`], which tells clients about the running daemon.
    pub fn daemon_json(&self) -> PathBuf {
        self.0.join("daemon.json")
    }
    /// Returns the path of the lock file, which a daemon locks while it runs.
    pub fn lock(&self) -> PathBuf {
        self.0.join("daemon.lock")
    }
    /// Returns the path of the access token of this data root.
    pub fn token(&self) -> PathBuf {
        self.0.join("token")
    }
    /// Returns the path of the file with remotes of clones and declared roots.
    pub fn state_json(&self) -> PathBuf {
        self.0.join("state.json")
    }
    /// Returns the file with newer facts about models than those of the program.
    pub fn presets_file(&self) -> PathBuf {
        self.0.join("model-presets.json")
    }
    /// Returns the file with the logins to MCP servers, readable by its owner alone.
    pub fn mcp_logins(&self) -> PathBuf {
        self.0.join("mcp-logins.json")
    }
    /// Returns the folder of running command-line agents.
    pub fn agents_dir(&self) -> PathBuf {
        self.0.join("agents")
    }

    /// Returns the folder of the caches of language servers.
    pub fn language_servers_dir(&self) -> PathBuf {
        self.0.join("language-servers")
    }
    /// Returns the folder of what was trusted, by content.
    pub fn trust_dir(&self) -> PathBuf {
        self.0.join("trust")
    }
    /// Returns the folder of what commands wrote into files that run later and nobody accepted.
    pub fn rejected_dir(&self) -> PathBuf {
        self.0.join("set-aside")
    }
    /// Returns the folder of the knowledge store's entries.
    pub fn memory_dir(&self) -> PathBuf {
        self.0.join("memory")
    }
    /// Returns the path of the log of a daemon that a client started.
    pub fn log_file(&self) -> PathBuf {
        self.0.join("logs").join("daemon.log")
    }
    /// Returns the path of the log of a daemon that launchd started.
    pub fn service_log(&self) -> PathBuf {
        self.0.join("logs").join("service.log")
    }
    /// Returns the folder with keys, paired devices and known hosts of remote control.
    pub fn remote_dir(&self) -> PathBuf {
        self.0.join("remote")
    }
    /// Returns the path of the daemon's key.
    pub fn daemon_key(&self) -> PathBuf {
        self.remote_dir().join("daemon-key.pem")
    }
    /// Returns the path of the key with which clients of this data root authenticate to other
    /// daemons.
    pub fn client_key(&self) -> PathBuf {
        self.remote_dir().join("client-key.pem")
    }
    /// Returns the path of the list of devices that may connect to the daemon.
    pub fn devices_json(&self) -> PathBuf {
        self.remote_dir().join("devices.json")
    }
    /// Returns the path of the list of daemons that clients of this data root may connect to.
    pub fn hosts_json(&self) -> PathBuf {
        self.remote_dir().join("hosts.json")
    }
    /// Returns the path of the data root.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Content of the file `daemon.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonFile {
    /// Process id of the daemon.
    pub pid: u32,
    /// Id of this start of the daemon.
    pub instance_id: InstanceId,
    /// `host:port` of each listener, loopback first.
    pub addresses: Vec<String>,
    /// Version of the daemon's binary.
    pub version: String,
    /// Path of the token file.
    pub token_path: PathBuf,
    /// Start time of the daemon.
    pub started_at: Timestamp,
    /// Configuration folder that the daemon reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_by_platform() {
        let linux = Env { home: Some("/h".into()), ..Env::default() };
        let mac = Env { macos: true, ..linux.clone() };
        let xdg = Env { xdg_data_home: Some("/x".into()), ..linux.clone() };
        let own = Env { cairn_home: Some("/c".into()), ..mac.clone() };
        for (env, want) in [
            (&linux, "/h/.local/share/cairn"),
            (&mac, "/h/Library/Application Support/cairn"),
            (&xdg, "/x/cairn"),
            (&own, "/c"),
        ] {
            assert_eq!(env.data_root().unwrap(), PathBuf::from(want));
        }
        assert_eq!(Env::default().data_root(), None);
    }

    #[test]
    fn user_config_folder_is_used_unless_another_is_named_or_exists() {
        use ConfigFolder::{Named, OfDataRoot, OfUser};
        let user = Env { home: Some("/h".into()), ..Env::default() };
        let data = Env { cairn_home: Some("/c".into()), ..user.clone() };
        let full = Env { has_home_config: true, ..data.clone() };
        let named = Env { cairn_config: Some("/n".into()), ..full.clone() };
        let xdg = Env { xdg_config_home: Some("/x".into()), ..data.clone() };
        for (env, want) in [
            (&user, ("/h/.config/cairn", OfUser)),
            (&data, ("/h/.config/cairn", OfUser)),
            (&full, ("/c/config", OfDataRoot)),
            (&named, ("/n", Named)),
            (&xdg, ("/x/cairn", OfUser)),
        ] {
            assert_eq!(env.config().unwrap(), (PathBuf::from(want.0), want.1));
        }
        let all: Vec<PathBuf> = named.config_candidates();
        assert_eq!(all, ["/n", "/c/config", "/h/.config/cairn"].map(PathBuf::from));
    }
}
