//! What can go wrong between a client and its daemon.

use std::path::PathBuf;

use cairn_protocol::error::ErrorData;

/// Why a call or a connection failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// No daemon has told where it listens.
    #[error("no daemon runs on {}", .data_root.display())]
    NotRunning {
        /// The data root that was looked at.
        data_root: PathBuf,
    },
    /// Neither `CAIRN_HOME` nor a home folder is known.
    #[error("there is no home folder to keep data in")]
    NoHome,
    /// The daemon cannot be reached.
    #[error("cannot connect to {address}: {cause}")]
    Connect {
        /// Where it should listen.
        address: String,
        /// What the system says.
        cause: String,
    },
    /// This machine is not paired with that daemon, or no longer.
    #[error("this machine is not paired with {host}")]
    NotPaired {
        /// As the user named it, or its address.
        host: String,
    },
    /// Another key answers than the one that was paired with.
    #[error(
        "the key at {address} has changed: paired with {expected}, now there is {seen}; someone may be in between"
    )]
    KeyChanged {
        /// Where it answers.
        address: String,
        /// Hash of the key that was paired with.
        expected: String,
        /// Hash of the key that answers.
        seen: String,
    },
    /// The two machines were not paired.
    #[error("not paired: {0}")]
    Pairing(String),
    /// Keys or lists of remote control cannot be used.
    #[error("{0}")]
    Remote(String),
    /// The token is not this daemon's.
    #[error("the daemon at {address} does not take the token")]
    Unauthorized {
        /// Where it listens.
        address: String,
    },
    /// The two sides have no protocol version in common.
    #[error("this client ({client}) and the daemon ({daemon}) cannot talk: {message}")]
    Incompatible {
        /// Version of this client's build.
        client: String,
        /// Version of the daemon's build, as far as it is known.
        daemon: String,
        /// The daemon's words.
        message: String,
    },
    /// The daemon could not be started.
    #[error("the daemon did not start: {cause}")]
    Start {
        /// What is known of it.
        cause: String,
        /// Where it logs.
        log: PathBuf,
    },
    /// The daemon answered with an error.
    #[error("{message}")]
    Rpc {
        /// JSON-RPC code.
        code: i32,
        /// For people.
        message: String,
        /// The rest: `reason` is the contract.
        data: Box<ErrorData>,
    },
    /// The connection ended.
    #[error("the connection ended: {0}")]
    Closed(String),
    /// The session is gone: it was deleted.
    #[error("the session is gone: {0}")]
    Gone(String),
    /// An answer did not come in time; the call was cancelled.
    #[error("{method} was not answered within {seconds} s")]
    TimedOut {
        /// The method.
        method: String,
        /// Seconds waited.
        seconds: u64,
    },
    /// The other side does not keep to the protocol.
    #[error("not understood: {0}")]
    Protocol(String),
}

impl ClientError {
    /// The stable reason of the error table, for an answer of the daemon.
    pub fn reason(&self) -> Option<&str> {
        match self {
            ClientError::Rpc { data, .. } => Some(&data.reason),
            _ => None,
        }
    }

    /// The way out, where there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            ClientError::Rpc { data, .. } => Some(data.hint.clone()).filter(|h| !h.is_empty()),
            ClientError::NotRunning { .. } => {
                Some("start one with 'cairn serve', or run a command that needs it".into())
            }
            ClientError::NotPaired { .. } => {
                Some("run 'cairn pair' on the daemon's machine and 'cairn pair HOST' on this one".into())
            }
            ClientError::KeyChanged { .. } => Some(
                "if that daemon's data folder was made anew, forget it with 'cairn pair --forget HOST' and pair again"
                    .into(),
            ),
            ClientError::Pairing(_) => {
                Some("make a new code with 'cairn pair' on the daemon's machine, and type it here".into())
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

    /// Whether the daemon is out of reach, rather than refusing.
    pub fn is_unreachable(&self) -> bool {
        use ClientError::{
            Closed, Connect, Incompatible, KeyChanged, NoHome, NotPaired, NotRunning, Start, Unauthorized,
        };
        matches!(
            self,
            NotRunning { .. }
                | NoHome
                | Connect { .. }
                | Unauthorized { .. }
                | Incompatible { .. }
                | NotPaired { .. }
                | KeyChanged { .. }
                | Start { .. }
                | Closed(_)
        )
    }
}
