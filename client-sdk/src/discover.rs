//! Daemons of the local network, by Bonjour.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use cairn_protocol::rpc;
use mdns_sd::{ServiceDaemon, ServiceEvent};
use serde::Serialize;

use crate::ClientError;

/// Daemons listed at most.
const MAX_FOUND: usize = 256;
/// Shortest time to listen. A daemon multicasts an answer once a second and lets other questions within that second go by
/// (RFC 6762, section 6), so that a question soon after another's is only answered when it is asked again, a second later.
pub const SHORTEST: Duration = Duration::from_secs(2);

/// A daemon that announces itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its instance id.
    pub id: String,
    /// Version of its build.
    pub version: String,
    /// Addresses, in order.
    pub addresses: Vec<IpAddr>,
    /// Port.
    pub port: u16,
    /// The beginning of its key's hash, where it takes paired devices. It proves nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Listens for `timeout`, but not less than [`SHORTEST`], to what daemons announce.
///
/// # Errors
/// [`ClientError::Connect`] when multicast cannot be used.
pub async fn discover(timeout: Duration) -> Result<Vec<Found>, ClientError> {
    let service = format!("{}.local.", rpc::SERVICE_TYPE);
    let failed = |e: mdns_sd::Error| ClientError::Connect { address: service.clone(), cause: e.to_string() };
    let daemon = ServiceDaemon::new().map_err(failed)?;
    let events = daemon.browse(&service).map_err(failed)?;
    let until = Instant::now() + timeout.max(SHORTEST);
    let mut found = BTreeMap::new();
    while let Ok(Ok(event)) = tokio::time::timeout_at(until.into(), events.recv_async()).await {
        let ServiceEvent::ServiceResolved(info) = event else { continue };
        let text = |key: &str| info.get_property_val_str(key).unwrap_or_default().to_owned();
        let mut addresses: Vec<IpAddr> = info.get_addresses().iter().map(|a| a.to_ip_addr()).collect();
        addresses.sort();
        let one = Found {
            name: text("name"),
            id: text("id"),
            version: text("version"),
            addresses,
            port: info.get_port(),
            key: info.get_property_val_str("key").map(str::to_owned),
        };
        if found.len() < MAX_FOUND {
            found.insert(info.get_fullname().to_owned(), one);
        }
    }
    let _stopped = daemon.shutdown();
    Ok(found.into_values().collect())
}
