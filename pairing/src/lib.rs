//! Trust between two machines: their keys, the TLS that pins them, and the code that pairs them.
//!
//! A side is identified by its [`Pin`], the SHA-256 of its public key. TLS 1.3 proves on each
//! connection that the peer holds the key; no authority signs anything, and certificates merely
//! transport the keys. [`exchange`] lets two sides learn each other's pins without trusting the
//! network.
#![warn(missing_docs)]

pub mod exchange;
mod files;
mod identity;
mod pin;
mod tls;

pub use files::{read_json, write_private};
pub use identity::{Identity, IdentityError};
pub use pin::{BadPin, Pin};
pub use tls::{
    KeyChanged, TlsError, client_config, exporter, key_changed, peer_pin, server_config,
};
