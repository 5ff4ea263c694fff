//! The broker that connects this daemon with those of other machines.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sessions whose records are copied to the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FleetMirror {
    /// No records leave this machine.
    None,
    /// Records of the runs of pools.
    Pools,
    /// Records of all sessions.
    All,
}

section! {
    /// The NATS broker that connects this daemon with those of other machines.
    FleetConfig "camelCase" {
        /// Address of the broker, `tls://HOST:PORT`; `nats://` only on this machine, or with
        /// `fleet.plaintext`. The nodes of a cluster are separated by commas. Without it the daemon
        /// takes part in nothing.
        server: Option<String> = None,
        /// Name of this daemon, of letters, digits, `-` and `_`; the machine's name when absent.
        name: Option<String> = None,
        /// File with the credentials of a NATS user, which only its owner can read (mode 0600).
        credentials_file: Option<PathBuf> = None,
        /// Name of a NATS user with a password.
        user: Option<String> = None,
        /// File with the password, which only its owner can read (mode 0600).
        password_file: Option<PathBuf> = None,
        /// File with the certificates of the authorities that signed the broker's, besides those
        /// of the system.
        ca_file: Option<PathBuf> = None,
        /// Allows a connection to another machine without TLS.
        plaintext: bool = false,
        /// Pools of which this daemon takes runs, at most `resources.maxRuns` at once.
        pools: Vec<String> = vec![],
        /// Sessions whose records are copied to the broker, without apparent secrets.
        mirror: FleetMirror = FleetMirror::None,
        /// Folders to whose sessions the copies are limited; all when empty.
        mirror_folders: Vec<PathBuf> = vec![],
        /// Copies the large results of these sessions too, without apparent secrets.
        blobs: bool = false,
        /// Nodes of a cluster that have each message of the streams that this daemon creates, 1, 3
        /// or 5.
        replicas: u32 = 1,
        /// Beginnings of the URLs of repositories that may be cloned for a run of a pool.
        clone_from: Vec<String> = vec![],
    }
}

/// Returns the reason why a broker cannot have these addresses.
pub(super) fn check_server(servers: &str, is_plaintext: bool) -> Result<(), &'static str> {
    servers.split(',').try_for_each(|server| check_address(server.trim(), is_plaintext))
}

fn check_address(server: &str, is_plaintext: bool) -> Result<(), &'static str> {
    let (scheme, rest) = server.split_once("://").ok_or("must begin with tls:// or nats://")?;
    if rest.is_empty() || rest.contains(['@', ' ', '/']) {
        return Err("must be a host and a port after '://', without a user or a path");
    }
    let host = rest.rsplit_once(':').map_or(rest, |(host, _)| host);
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    let is_local = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    match scheme {
        "tls" => Ok(()),
        "nats" if is_local || is_plaintext => Ok(()),
        "nats" => {
            Err("is on another machine: use tls://, or set fleet.plaintext in a closed network")
        }
        _ => Err("must begin with tls:// or nats://"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brokers_of_other_machines_need_tls() {
        for (server, plaintext, fits) in [
            ("nats://127.0.0.1:4222", false, true),
            ("nats://localhost:4222", false, true),
            ("nats://10.0.0.7:4222", false, false),
            ("nats://10.0.0.7:4222", true, true),
            ("tls://broker.example.com:4222", false, true),
            ("tls://a.example.com:4222, tls://b.example.com:4222", false, true),
            ("tls://a.example.com:4222,nats://b.example.com:4222", false, false),
            ("tls://a.example.com:4222,", false, false),
            ("tls://user:pw@broker:4222", false, false),
            ("http://broker", true, false),
            ("broker:4222", true, false),
            ("nats://127.evil.example.com:1", false, false),
        ] {
            assert_eq!(check_server(server, plaintext).is_ok(), fits, "{server}");
        }
    }
}
