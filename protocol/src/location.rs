//! Where things lie on disk: pure functions of the platform and the environment, so that a client finds the
//! daemon without the daemon's code.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{id::InstanceId, time::Timestamp};

/// The parts of the environment that decide locations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Env {
    /// `CAIRN_HOME`.
    pub cairn_home: Option<PathBuf>,
    /// `CAIRN_CONFIG`.
    pub cairn_config: Option<PathBuf>,
    /// True if the folder `<CAIRN_HOME>/config` exists.
    pub has_home_config: bool,
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// `XDG_DATA_HOME`.
    pub xdg_data_home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub xdg_config_home: Option<PathBuf>,
    /// Whether this is macOS.
    pub macos: bool,
}

impl Env {
    /// The process's own environment. Relative values are ignored, as the XDG specification asks, except in
    /// `CAIRN_HOME` and `CAIRN_CONFIG`, which are made absolute.
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

    /// The data root: `CAIRN_HOME`; else Application Support on macOS; else XDG data. `None` with no home.
    pub fn data_root(&self) -> Option<PathBuf> {
        if let Some(home) = &self.cairn_home {
            return Some(home.clone());
        }
        if self.macos {
            return self.home.as_ref().map(|h| h.join("Library/Application Support/cairn"));
        }
        let data =
            self.xdg_data_home.clone().or_else(|| self.home.as_ref().map(|h| h.join(".local/share")))?;
        Some(data.join("cairn"))
    }

    /// The configuration folder that applies, and the reason why it does; `None` with no home.
    pub fn config(&self) -> Option<(PathBuf, ConfigFolder)> {
        if let Some(folder) = &self.cairn_config {
            return Some((folder.clone(), ConfigFolder::Named));
        }
        if let Some(home) = self.cairn_home.as_ref().filter(|_| self.has_home_config) {
            return Some((home.join("config"), ConfigFolder::OfDataRoot));
        }
        self.user_config().map(|folder| (folder, ConfigFolder::OfUser))
    }

    /// The configuration folder that applies.
    pub fn config_dir(&self) -> Option<PathBuf> {
        self.config().map(|(folder, _)| folder)
    }

    /// Every folder that is a configuration folder in some environment: no tool may change any of them.
    pub fn config_candidates(&self) -> Vec<PathBuf> {
        let of_home = self.cairn_home.as_ref().map(|home| home.join("config"));
        self.cairn_config.iter().cloned().chain(of_home).chain(self.user_config()).collect()
    }

    fn user_config(&self) -> Option<PathBuf> {
        let config =
            self.xdg_config_home.clone().or_else(|| self.home.as_ref().map(|h| h.join(".config")))?;
        Some(config.join("cairn"))
    }
}

/// The reason why a configuration folder applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfigFolder {
    /// `CAIRN_CONFIG` names it.
    Named,
    /// It is `<CAIRN_HOME>/config`, which exists.
    OfDataRoot,
    /// It is the user's own.
    OfUser,
}

/// The files of a data root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataRoot(pub PathBuf);

impl DataRoot {
    /// The log.
    pub fn trace_db(&self) -> PathBuf {
        self.0.join("trace.db")
    }
    /// Indexes, one folder a root.
    pub fn index_dir(&self) -> PathBuf {
        self.0.join("index")
    }
    /// Clones.
    pub fn workspaces_dir(&self) -> PathBuf {
        self.0.join("workspaces")
    }
    /// Who runs, for clients: [`DaemonFile`].
    pub fn daemon_json(&self) -> PathBuf {
        self.0.join("daemon.json")
    }
    /// Held for as long as a daemon runs.
    pub fn lock(&self) -> PathBuf {
        self.0.join("daemon.lock")
    }
    /// The secret of this data root.
    pub fn token(&self) -> PathBuf {
        self.0.join("token")
    }
    /// Remotes of clones and declared roots.
    pub fn state_json(&self) -> PathBuf {
        self.0.join("state.json")
    }
    /// Folders of command-line agents at work.
    pub fn agents_dir(&self) -> PathBuf {
        self.0.join("agents")
    }

    /// Entries of the knowledge store.
    pub fn memory_dir(&self) -> PathBuf {
        self.0.join("memory")
    }
    /// Log of a daemon that was started by a client.
    pub fn log_file(&self) -> PathBuf {
        self.0.join("logs").join("daemon.log")
    }
    /// Keys, paired devices and known hosts of remote control.
    pub fn remote_dir(&self) -> PathBuf {
        self.0.join("remote")
    }
    /// The daemon's key.
    pub fn daemon_key(&self) -> PathBuf {
        self.remote_dir().join("daemon-key.pem")
    }
    /// The key that clients of this data root show other daemons.
    pub fn client_key(&self) -> PathBuf {
        self.remote_dir().join("client-key.pem")
    }
    /// Devices that may connect to the daemon.
    pub fn devices_json(&self) -> PathBuf {
        self.remote_dir().join("devices.json")
    }
    /// Other daemons that clients of this data root may connect to.
    pub fn hosts_json(&self) -> PathBuf {
        self.remote_dir().join("hosts.json")
    }
    /// The path itself.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Content of `daemon.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonFile {
    /// Process id.
    pub pid: u32,
    /// This start.
    pub instance_id: InstanceId,
    /// `host:port` of each listener, loopback first.
    pub addresses: Vec<String>,
    /// Version of the binary.
    pub version: String,
    /// Where the token lies.
    pub token_path: PathBuf,
    /// When it started.
    pub started_at: Timestamp,
    /// The configuration folder that it reads.
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
    fn configuration_is_the_users_unless_another_folder_is_named_or_exists() {
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
