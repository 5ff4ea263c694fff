//! Where the daemon is, and connecting to it again and again.

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

/// One daemon's address and secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// `host:port`.
    pub address: String,
    /// The token.
    pub token: String,
    /// The instance that is expected to answer, when it is known.
    pub instance: Option<InstanceId>,
    /// Version of its build, when it is known.
    pub version: Option<String>,
    /// How it is known over the network; without it, it is of this machine and known by the token.
    pub tls: Option<Tls>,
}

/// What makes another machine's daemon the right one, and this machine one that it takes.
#[derive(Debug, Clone)]
pub struct Tls {
    /// Its key; any for `None`, which is for pairing alone.
    pub key: Option<Pin>,
    /// This machine's key.
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
enum Place {
    Fixed(Target),
    Local(Env),
    /// An address, and the file of its token.
    Address(String, PathBuf),
    /// A paired machine, as the user named it.
    Remote(Env, String),
}

/// Connects to one daemon; a local one is looked up anew each time, since its port changes from start to start.
#[derive(Debug, Clone)]
pub struct Connector {
    place: Place,
    me: ClientInfo,
    approver: bool,
}

impl Connector {
    /// The daemon of this user's data root.
    pub fn local(env: Env) -> Self {
        Self::new(Place::Local(env))
    }

    /// A daemon at a known address.
    pub fn fixed(target: Target) -> Self {
        Self::new(Place::Fixed(target))
    }

    /// The daemon of another machine that the user of this data root has paired it with: by name, address or key.
    pub fn remote(env: Env, host: &str) -> Self {
        Self::new(Place::Remote(env, host.to_owned()))
    }

    /// The daemon at an address with the token in a file: another machine's through a tunnel, say.
    pub fn at(address: &str, token_file: &Path) -> Self {
        Self::new(Place::Address(address.to_owned(), token_file.to_owned()))
    }

    /// Whether it leads to another machine's daemon, which nobody here can start.
    pub fn is_remote(&self) -> bool {
        matches!(self.place, Place::Remote(..) | Place::Address(..))
    }

    fn new(place: Place) -> Self {
        let me = ClientInfo { name: "cairn-client-sdk".into(), version: env!("CARGO_PKG_VERSION").into() };
        Self { place, me, approver: false }
    }

    /// The same under another client's name, of 1 to 64 characters.
    #[must_use]
    pub fn named(mut self, name: &str, version: &str) -> Self {
        self.me = ClientInfo { name: name.into(), version: version.into() };
        self
    }

    /// The same, telling the daemon that whoever is behind it answers approvals.
    #[must_use]
    pub fn approver(mut self) -> Self {
        self.approver = true;
        self
    }

    /// Whether it tells the daemon that it answers approvals.
    pub fn answers_approvals(&self) -> bool {
        self.approver
    }

    /// Who this client says it is.
    pub fn client_info(&self) -> &ClientInfo {
        &self.me
    }

    /// Where the daemon is now.
    ///
    /// # Errors
    /// [`ClientError::NotRunning`] when no daemon has left its address; [`ClientError::NotPaired`].
    pub fn target(&self) -> Result<Target, ClientError> {
        match &self.place {
            Place::Fixed(target) => Ok(target.clone()),
            Place::Local(env) => locate(env),
            Place::Remote(env, host) => known(env, host),
            Place::Address(address, file) => {
                let token = std::fs::read_to_string(file)
                    .map_err(|e| ClientError::Remote(format!("the token {}: {e}", file.display())))?;
                let token = token.trim().to_owned();
                Ok(Target { address: address.clone(), token, instance: None, version: None, tls: None })
            }
        }
    }

    /// Connects and shakes hands.
    ///
    /// # Errors
    /// Those of finding, connecting and `initialize`; [`ClientError::Connect`] when another instance answers than the one
    /// that left its address.
    pub async fn connect(&self) -> Result<Client, ClientError> {
        let target = self.target()?;
        Client::open(&target, self.clone()).await
    }
}

/// Looks a paired machine up.
fn known(env: &Env, host: &str) -> Result<Target, ClientError> {
    let root = DataRoot(env.data_root().ok_or(ClientError::NoHome)?);
    let known = Hosts::of(&root).find(host)?;
    let tls = Some(Tls { key: Some(known.key), identity: client_key(&root)? });
    Ok(Target { address: known.address, token: String::new(), instance: None, version: None, tls })
}

/// Reads `daemon.json` and the token it names.
fn locate(env: &Env) -> Result<Target, ClientError> {
    let root = DataRoot(env.data_root().ok_or(ClientError::NoHome)?);
    let missing = || ClientError::NotRunning { data_root: root.path().to_owned() };
    let text = std::fs::read_to_string(root.daemon_json()).map_err(|_| missing())?;
    let file: DaemonFile = serde_json::from_str(&text)
        .map_err(|e| ClientError::Protocol(format!("{}: {e}", root.daemon_json().display())))?;
    let token = std::fs::read_to_string(&file.token_path).map_err(|_| missing())?;
    let address = file.addresses.into_iter().next().ok_or_else(missing)?;
    let token = token.trim().to_owned();
    Ok(Target { address, token, instance: Some(file.instance_id), version: Some(file.version), tls: None })
}
