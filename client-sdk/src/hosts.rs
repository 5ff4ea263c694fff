//! Daemons of other machines that this one is paired with.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use cairn_pairing::{Pin, read_json, write_private};
use cairn_protocol::{
    id::DeviceId,
    location::DataRoot,
    remote::{PORT, Right},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::ClientError;

/// A daemon that this machine is paired with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownHost {
    /// Local name of the daemon.
    pub name: String,
    /// Address of the daemon as `host:port`.
    pub address: String,
    /// Key of the daemon; connections to any other key are refused.
    pub key: Pin,
    /// Id of this machine at the daemon.
    pub device: DeviceId,
    /// Rights of this machine at the daemon.
    pub rights: Vec<Right>,
    /// Time of the pairing.
    pub paired_at: Timestamp,
}

/// File with the list of known hosts.
#[derive(Debug, Clone)]
pub struct Hosts(PathBuf);

impl Hosts {
    /// Returns the list of a data root.
    pub fn of(root: &DataRoot) -> Self {
        Self(root.hosts_json())
    }

    /// Returns all hosts in the order of their pairing.
    ///
    /// # Errors
    /// [`ClientError::Remote`] when the file cannot be read.
    pub fn list(&self) -> Result<Vec<KnownHost>, ClientError> {
        read_json(&self.0).map_err(failed)
    }

    /// Returns the host with that name, address, or key prefix of at least 8 digits.
    ///
    /// # Errors
    /// [`ClientError::NotPaired`].
    pub fn find(&self, host: &str) -> Result<KnownHost, ClientError> {
        let address = with_port(host);
        let same = |known: &KnownHost| {
            known.name == host
                || known.address == address
                || (host.len() >= 8 && known.key.to_string().starts_with(host))
        };
        // The latest pairing wins if several match.
        let known_host = self.list()?.into_iter().rev().find(same);
        known_host.ok_or_else(|| ClientError::NotPaired { host: host.to_owned() })
    }

    /// Stores a host, and replaces any other of the same name, address or key.
    ///
    /// # Errors
    /// [`ClientError::Remote`].
    pub fn save(&self, host: KnownHost) -> Result<(), ClientError> {
        let mut all = self.list()?;
        all.retain(|k| k.name != host.name && k.address != host.address && k.key != host.key);
        all.push(host);
        self.write(&all)
    }

    /// Removes a host from the list.
    ///
    /// # Errors
    /// [`ClientError::NotPaired`], [`ClientError::Remote`].
    pub fn forget(&self, host: &str) -> Result<KnownHost, ClientError> {
        let removed = self.find(host)?;
        let mut all = self.list()?;
        all.retain(|k| *k != removed);
        self.write(&all)?;
        Ok(removed)
    }

    fn write(&self, all: &[KnownHost]) -> Result<(), ClientError> {
        let text = serde_json::to_vec_pretty(all).map_err(|e| failed(e.into()))?;
        write_private(&self.0, &text).map_err(failed)
    }
}

fn failed(error: io::Error) -> ClientError {
    ClientError::Remote(format!("the known hosts: {error}"))
}

/// Returns `host:port` for a user's input, with the port of remote control as the default.
pub fn with_port(host: &str) -> String {
    if host.parse::<SocketAddr>().is_ok() {
        return host.to_owned();
    }
    if let Ok(ip) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return SocketAddr::new(ip, PORT).to_string();
    }
    match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') && port.parse::<u16>().is_ok() => host.to_owned(),
        _ => format!("{host}:{PORT}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, address: &str, key: &[u8]) -> KnownHost {
        KnownHost {
            name: name.into(),
            address: address.into(),
            key: Pin::of_key(key),
            device: DeviceId::new(),
            rights: vec![Right::Observe],
            paired_at: Timestamp(0),
        }
    }

    #[test]
    fn address_input_is_parsed() {
        for (typed, want) in [
            ("den", "den:7434"),
            ("den.local:9", "den.local:9"),
            ("10.0.0.7", "10.0.0.7:7434"),
            ("10.0.0.7:8000", "10.0.0.7:8000"),
            ("::1", "[::1]:7434"),
            ("[::1]", "[::1]:7434"),
            ("[fe80::1]:9", "[fe80::1]:9"),
            ("den:99999", "den:99999:7434"),
        ] {
            assert_eq!(with_port(typed), want, "{typed}");
        }
    }

    #[test]
    fn host_is_looked_up_by_name_address_or_key() {
        let dir = tempfile::tempdir().unwrap();
        let hosts = Hosts::of(&DataRoot(dir.path().to_owned()));
        assert!(matches!(hosts.find("den"), Err(ClientError::NotPaired { .. })));
        let den = host("den", "10.0.0.7:7434", b"den");
        hosts.save(den.clone()).unwrap();
        hosts.save(host("attic", "10.0.0.8:7434", b"attic")).unwrap();
        for named in ["den", "10.0.0.7", "10.0.0.7:7434", &den.key.hint(), &den.key.to_string()] {
            assert_eq!(hosts.find(named).unwrap(), den, "{named}");
        }
        assert!(hosts.find(&den.key.to_string()[..7]).is_err());
        // The address moved to another machine, which replaces the earlier entry.
        hosts.save(host("new", "10.0.0.7:7434", b"new")).unwrap();
        assert!(hosts.find("den").is_err());
        assert_eq!(hosts.forget("new").unwrap().name, "new");
        assert_eq!(hosts.list().unwrap().len(), 1);
    }
}
