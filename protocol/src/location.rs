//! Where things lie on disk: pure functions of the platform and the environment, so that a client finds the
//! daemon without the daemon's code.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{id::InstanceId, time::Timestamp};

/// The parts of the environment that decide locations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Env {
    /// `CAIRN_HOME`.
    pub cairn_home: Option<PathBuf>,
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
    /// `CAIRN_HOME`, which is made absolute.
    pub fn from_process() -> Self {
        let var = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let absolute = |name| var(name).filter(|p| p.is_absolute());
        Self {
            cairn_home: var("CAIRN_HOME").map(|p| std::path::absolute(&p).unwrap_or(p)),
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

    /// The user's config folder: `<CAIRN_HOME>/config` when that is set, else `~/.config/cairn`.
    pub fn config_dir(&self) -> Option<PathBuf> {
        if let Some(home) = &self.cairn_home {
            return Some(home.join("config"));
        }
        let config =
            self.xdg_config_home.clone().or_else(|| self.home.as_ref().map(|h| h.join(".config")))?;
        Some(config.join("cairn"))
    }
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
        assert_eq!(own.config_dir().unwrap(), PathBuf::from("/c/config"));
    }
}
