//! Finding the daemon, and connecting to it repeatedly.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use cairn_pairing::{Identity, Pin};
use cairn_protocol::{
    daemon::ClientInfo,
    id::InstanceId,
    location::{DaemonFile, DataRoot, Env},
};

use crate::{Client, ClientError, Hosts, pair::client_key};

/// Address and secret of one daemon.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// Address of the daemon as `host:port`.
    pub address: String,
    /// Access token of the daemon.
    pub token: String,
    /// Instance that should answer, if known.
    pub instance: Option<InstanceId>,
    /// Version of the daemon's build, if known.
    pub version: Option<String>,
    /// TLS parameters for a daemon on another machine; `None` for a local one, which the token
    /// authenticates.
    pub tls: Option<Tls>,
}

/// Keys that authenticate another machine's daemon and this machine to each other.
#[derive(Debug, Clone)]
pub struct Tls {
    /// Key of the daemon; `None` accepts any key, which is for pairing alone.
    pub key: Option<Pin>,
    /// Key of this machine.
    pub identity: Arc<Identity>,
}

impl PartialEq for Tls {
    fn eq(&self, other: &Self) -> bool {
        (self.key, self.identity.pin()) == (other.key, other.identity.pin())
    }
}

impl Eq for Tls {}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("address", &self.address)
            .field("instance", &self.instance)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone)]
enum Location {
    Fixed(Target),
    Local(Env),
    /// Address of the daemon, and path of its token file.
    Address(String, PathBuf),
    /// Paired machine, as named by the user.
    Remote(Env, String),
}

/// Connects to one daemon. A local one is located before each connection because its port changes
/// with each start.
#[derive(Debug, Clone)]
pub struct Connector {
    location: Location,
    me: ClientInfo,
    approver: bool,
}

impl Connector {
    /// Connects to the daemon of this user's data root.
    pub fn local(env: Env) -> Self {
        Self::new(Location::Local(env))
    }

    /// Connects to a daemon at a known address.
    pub fn fixed(target: Target) -> Self {
        Self::new(Location::Fixed(target))
    }

    /// Connects to the paired daemon of another machine, found by name, address or key.
    pub fn remote(env: Env, host: &str) -> Self {
        Self::new(Location::Remote(env, host.to_owned()))
    }

    /// Connects to a daemon at an address with the token in a file, such as one behind a tunnel.
    pub fn at(address: &str, token_file: &Path) -> Self {
        Self::new(Location::Address(address.to_owned(), token_file.to_owned()))
    }

    /// Returns true for a daemon on another machine, which cannot be started from this one.
    pub fn is_remote(&self) -> bool {
        matches!(self.location, Location::Remote(..) | Location::Address(..))
    }

    fn new(location: Location) -> Self {
        let me = ClientInfo {
            name: "cairn-client-sdk".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        Self { location, me, approver: false }
    }

    /// Sets the name of the client, of 1 to 64 characters, and its version.
    #[must_use]
    pub fn named(mut self, name: &str, version: &str) -> Self {
        self.me = ClientInfo { name: name.into(), version: version.into() };
        self
    }

    /// Declares to the daemon that this client answers approvals.
    #[must_use]
    pub fn approver(mut self) -> Self {
        self.approver = true;
        self
    }

    /// Returns true if this client declares that it answers approvals.
    pub fn answers_approvals(&self) -> bool {
        self.approver
    }

    /// Returns the name and version that this client sends.
    pub fn client_info(&self) -> &ClientInfo {
        &self.me
    }

    /// Locates the daemon.
    ///
    /// # Errors
    /// [`ClientError::NotRunning`] when no daemon has published its address;
    /// [`ClientError::NotPaired`].
    pub fn target(&self) -> Result<Target, ClientError> {
        match &self.location {
            Location::Fixed(target) => Ok(target.clone()),
            Location::Local(env) => locate(env),
            Location::Remote(env, host) => known(env, host),
            Location::Address(address, file) => {
                let token = std::fs::read_to_string(file).map_err(|e| {
                    ClientError::Remote(format!("the token {}: {e}", file.display()))
                })?;
                let token = token.trim().to_owned();
                Ok(Target {
                    address: address.clone(),
                    token,
                    instance: None,
                    version: None,
                    tls: None,
                })
            }
        }
    }

    /// Connects and performs the handshake.
    ///
    /// # Errors
    /// Errors of locating, connecting and `initialize`; [`ClientError::Connect`] when an instance
    /// answers that differs from the one in `daemon.json`.
    pub async fn connect(&self) -> Result<Client, ClientError> {
        let target = self.target()?;
        Client::open(&target, self.clone()).await
    }
}

/// Looks up a paired machine.
fn known(env: &Env, host: &str) -> Result<Target, ClientError> {
    let root = DataRoot(env.data_root().ok_or(ClientError::NoHome)?);
    let known = Hosts::of(&root).find(host)?;
    let tls = Some(Tls { key: Some(known.key), identity: client_key(&root)? });
    Ok(Target { address: known.address, token: String::new(), instance: None, version: None, tls })
}

/// Reads `daemon.json` and the token file that it names.
fn locate(env: &Env) -> Result<Target, ClientError> {
    let root = DataRoot(env.data_root().ok_or(ClientError::NoHome)?);
    let missing = || ClientError::NotRunning { data_root: root.path().to_owned() };
    let text = std::fs::read_to_string(root.daemon_json()).map_err(|_| missing())?;
    let file: DaemonFile = serde_json::from_str(&text)
        .map_err(|e| ClientError::Protocol(format!("{}: {e}", root.daemon_json().display())))?;
    let token = std::fs::read_to_string(&file.token_path).map_err(|_| missing())?;
    let address = file.addresses.into_iter().next().ok_or_else(missing)?;
    let token = token.trim().to_owned();
    Ok(Target {
        address,
        token,
        instance: Some(file.instance_id),
        version: Some(file.version),
        tls: None,
    })
}
