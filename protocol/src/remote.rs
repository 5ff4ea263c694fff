//! Remote control: pairing, the paired devices, and their rights.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{id::DeviceId, time::Timestamp};

/// Default port of the listener for paired devices.
pub const PORT: u16 = 7434;
/// Path of the WebSocket over which two machines pair.
pub const PAIR_PATH: &str = "/pair";
/// Beginning of the fragment that pairs a browser; the code follows.
pub const PAGE_FRAGMENT: &str = "pair=";

/// A right that a method requires of a client.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Right {
    /// Read the state and follow events.
    Observe,
    /// Start and control work.
    Prompt,
    /// Answer requests for approval.
    Approve,
    /// Change the daemon's state and configuration.
    Admin,
}

impl Right {
    /// All rights, in ascending order.
    pub const ALL: [Self; 4] = [Self::Observe, Self::Prompt, Self::Approve, Self::Admin];

    /// Returns the name of the right.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Prompt => "prompt",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }
}

/// Parameters of the method `pair.begin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PairBeginParams {
    /// Rights of the new device, all of which the caller must have.
    #[schemars(length(min = 1))]
    pub rights: Vec<Right>,
    /// Name for the device; the device's own name when omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Answer of `pair.begin`: a person enters it on the other machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PairOffer {
    /// Code of eight digits, valid for one pairing.
    pub code: String,
    /// Time at which the code expires.
    pub expires_at: Timestamp,
    /// Number of wrong attempts after which the code becomes void.
    pub tries: u32,
    /// `host:port` of each listener for devices.
    pub addresses: Vec<String>,
    /// Hash of the daemon's public key.
    pub key: String,
    /// Path of the viewer on each address, with a code behind `#` that pairs one browser; it is
    /// valid as long as `code`, and instead of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// SHA-256 of the listener's certificate, which browsers show with their warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
}

/// State of a pairing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairState {
    /// No code was requested yet.
    None,
    /// A code waits for its device.
    Waiting,
    /// A device is paired; the code is used up.
    Paired,
    /// Too many wrong attempts made the code void.
    Void,
    /// No device used the code in time.
    Expired,
    /// The pairing was cancelled.
    Cancelled,
}

/// Answer of `pair.status` and `pair.cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PairStatus {
    /// State of the latest code.
    pub state: PairState,
    /// Number of attempts that remain.
    pub tries_left: u32,
    /// Device that used the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
}

/// A device that is paired with the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// Id of the device at this daemon.
    pub id: DeviceId,
    /// Name of the device.
    pub name: String,
    /// Hash of the device's public key; of its secret for a browser.
    pub key: String,
    /// Rights of the device.
    pub rights: Vec<Right>,
    /// Time of the pairing.
    pub paired_at: Timestamp,
    /// Number of open connections.
    #[serde(default)]
    pub connections: u64,
    /// True for a browser, which proves itself by a secret of its own instead of a key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub browser: bool,
}

/// Parameters of the method `client.revoke`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceRef {
    /// Id of the device.
    pub id: DeviceId,
}

/// Answer to a device after it was paired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Granted {
    /// Id of the device at the daemon.
    pub id: DeviceId,
    /// Rights of the device.
    pub rights: Vec<Right>,
    /// Name of the daemon.
    pub server: String,
}
