//! Remote control: pairing, the devices that are paired, and what each may do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{id::DeviceId, time::Timestamp};

/// Port of the listener for paired devices, unless the user says otherwise.
pub const PORT: u16 = 7434;
/// Path of the WebSocket that two machines pair over.
pub const PAIR_PATH: &str = "/pair";

/// What a client must be allowed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Right {
    /// Look.
    Observe,
    /// Start work.
    Prompt,
    /// Answer approvals.
    Approve,
    /// Change the daemon.
    Admin,
}

impl Right {
    /// Each of them.
    pub const ALL: [Self; 4] = [Self::Observe, Self::Prompt, Self::Approve, Self::Admin];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Prompt => "prompt",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }
}

/// Parameters of `pair.begin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PairBeginParams {
    /// What the device may do; none that the caller has not.
    #[schemars(length(min = 1))]
    pub rights: Vec<Right>,
    /// What the device is to be called; absent to take its own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Answer of `pair.begin`: what a person carries to the other machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PairOffer {
    /// Eight digits, good for one pairing.
    pub code: String,
    /// When it is void.
    pub expires_at: Timestamp,
    /// Wrong tries after which it is void.
    pub tries: u32,
    /// `host:port` of each listener for devices.
    pub addresses: Vec<String>,
    /// The daemon's key, by its hash.
    pub key: String,
}

/// How a pairing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PairState {
    /// No code was asked for.
    None,
    /// A code waits for its device.
    Waiting,
    /// A device is paired; the code is used up.
    Paired,
    /// Too many wrong tries.
    Void,
    /// Nobody came in time.
    Expired,
    /// It was called off.
    Cancelled,
}

/// Answer of `pair.status` and `pair.cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PairStatus {
    /// How the latest code stands.
    pub state: PairState,
    /// Tries that are left of it.
    pub tries_left: u32,
    /// The device that used it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
}

/// A paired device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// Its id here.
    pub id: DeviceId,
    /// What it is called.
    pub name: String,
    /// Its key, by its hash.
    pub key: String,
    /// What it may do.
    pub rights: Vec<Right>,
    /// When it was paired.
    pub paired_at: Timestamp,
    /// Its open connections.
    #[serde(default)]
    pub connections: u64,
}

/// Parameters of `client.revoke`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceRef {
    /// Its id.
    pub id: DeviceId,
}

/// What a device is told when it is paired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Granted {
    /// Its id there.
    pub id: DeviceId,
    /// What it may do.
    pub rights: Vec<Right>,
    /// What the daemon is called.
    pub server: String,
}
