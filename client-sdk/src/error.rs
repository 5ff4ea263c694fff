//! Errors between a client and its daemon.

use std::path::PathBuf;

use cairn_protocol::error::ErrorData;

/// Reason why a call or a connection failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// No daemon has published its address.
    #[error("no daemon is running on {}", .data_root.display())]
    NotRunning {
        /// Path of the data root that was searched.
        data_root: PathBuf,
    },
    /// Neither `CAIRN_HOME` nor a home folder is known.
    #[error("there is no home folder to store data in")]
    NoHome,
    /// The daemon cannot be reached.
    #[error("cannot connect to {address}: {cause}")]
    Connect {
        /// Address at which it should listen.
        address: String,
        /// Error message of the system.
        cause: String,
    },
    /// The daemon answers, and takes no further connection now.
    #[error("the daemon at {address} is busy: {message}")]
    Busy {
        /// Address at which the daemon listens.
        address: String,
        /// Error message of the daemon.
        message: String,
    },
    /// This machine is not paired with that daemon, or was revoked.
    #[error("this machine is not paired with {host}")]
    NotPaired {
        /// Host as named by the user, or its address.
        host: String,
    },
    /// The daemon presents a key that differs from the paired one.
    #[error(
        "the key at {address} has changed: expected {expected}, received {seen}; the connection may be \
        intercepted"
    )]
    KeyChanged {
        /// Address of the daemon that answers.
        address: String,
        /// Hash of the paired key.
        expected: String,
        /// Hash of the key that was presented.
        seen: String,
    },
    /// The two machines were not paired.
    #[error("not paired: {0}")]
    Pairing(String),
    /// Keys or lists of remote control are unusable.
    #[error("{0}")]
    Remote(String),
    /// The token does not belong to this daemon.
    #[error("the daemon at {address} rejected the token")]
    Unauthorized {
        /// Address at which the daemon listens.
        address: String,
    },
    /// Both sides have no protocol version in common.
    #[error("this client ({client}) and the daemon ({daemon}) are incompatible: {message}")]
    Incompatible {
        /// Version of this client's build.
        client: String,
        /// Version of the daemon's build, if known.
        daemon: String,
        /// Error message of the daemon.
        message: String,
    },
    /// The daemon could not be started.
    #[error("the daemon did not start: {cause}")]
    Start {
        /// Reason of the failure, as far as known.
        cause: String,
        /// Path of the daemon's log.
        log: PathBuf,
    },
    /// The daemon returned an error.
    #[error("{message}")]
    Rpc {
        /// JSON-RPC code of the error.
        code: i32,
        /// Error message for a person.
        message: String,
        /// Further data of the error; its `reason` is part of the contract.
        data: Box<ErrorData>,
    },
    /// The connection was closed.
    #[error("the connection ended: {0}")]
    Closed(String),
    /// The session no longer exists because it was deleted.
    #[error("the session no longer exists: {0}")]
    Gone(String),
    /// The answer did not arrive in time; the call was cancelled.
    #[error("{method} was not answered within {seconds} s")]
    TimedOut {
        /// Name of the method.
        method: String,
        /// Time limit in seconds.
        seconds: u64,
    },
    /// The other side violates the protocol.
    #[error("invalid message: {0}")]
    Protocol(String),
}

impl ClientError {
    /// Returns the stable reason of the error table, for an error of the daemon.
    pub fn reason(&self) -> Option<&str> {
        match self {
            ClientError::Rpc { data, .. } => Some(&data.reason),
            _ => None,
        }
    }

    /// Returns advice on how to resolve the error, if any.
    pub fn hint(&self) -> Option<String> {
        match self {
            ClientError::Rpc { data, .. } => Some(data.hint.clone()).filter(|h| !h.is_empty()),
            ClientError::NotRunning { .. } => {
                Some("start one with 'cairn serve', or run a command that needs one".into())
            }
            ClientError::Busy { .. } => Some(
                "close clients that are not used, or raise resources.maxConnections and restart \
                the daemon"
                    .into(),
            ),
            ClientError::NotPaired { .. } => {
                Some("run 'cairn pair' on the daemon's machine and 'cairn pair HOST' on this one".into())
            }
            ClientError::KeyChanged { .. } => Some(
                "if that daemon's data folder was recreated, forget it with 'cairn pair --forget HOST' \
                and pair again"
                    .into(),
            ),
            ClientError::Pairing(_) => {
                Some("create a new code with 'cairn pair' on the daemon's machine, and type it here".into())
            }
            ClientError::NoHome => Some("set CAIRN_HOME to a folder".into()),
            ClientError::Unauthorized { .. } => {
                Some("another user's daemon may have this port; restart yours with 'cairn stop'".into())
            }
            ClientError::Incompatible { .. } => {
                Some("stop the daemon with 'cairn stop'; the next command starts this version".into())
            }
            ClientError::Start { log, .. } => Some(format!("see {}", log.display())),
            _ => None,
        }
    }

    /// Returns true if there is no usable connection, as opposed to an error of a call.
    pub fn is_unreachable(&self) -> bool {
        use ClientError::{
            Busy, Closed, Connect, Incompatible, KeyChanged, NoHome, NotPaired, NotRunning, Start,
            Unauthorized,
        };
        matches!(
            self,
            NotRunning { .. }
                | NoHome
                | Connect { .. }
                | Busy { .. }
                | Unauthorized { .. }
                | Incompatible { .. }
                | NotPaired { .. }
                | KeyChanged { .. }
                | Start { .. }
                | Closed(_)
        )
    }
}
