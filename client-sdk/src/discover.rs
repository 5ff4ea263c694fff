//! Discovery of daemons in the local network by Bonjour.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    time::{Duration, Instant},
};

use cairn_protocol::rpc;
use mdns_sd::{ServiceDaemon, ServiceEvent};
use serde::Serialize;

use crate::ClientError;

/// Maximum number of daemons listed.
const MAX_DAEMONS: usize = 256;
/// Minimum time to listen. A daemon multicasts an answer at most once per second and ignores other
/// queries within that second (RFC 6762, section 6), so a query shortly after another one is
/// answered only when it is repeated a second later.
pub const MIN_DISCOVERY_TIME: Duration = Duration::from_secs(2);

/// A daemon that announces itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoveredDaemon {
    /// Name of the daemon.
    pub name: String,
    /// Instance id of the daemon.
    pub id: String,
    /// Version of its build.
    pub version: String,
    /// Sorted addresses of the daemon.
    pub addresses: Vec<IpAddr>,
    /// Port of the daemon.
    pub port: u16,
    /// Prefix of the key's hash, if the daemon accepts paired devices. It does not authenticate
    /// the daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Listens for announcements of daemons during `timeout`, at least [`MIN_DISCOVERY_TIME`].
///
/// # Errors
/// [`ClientError::Connect`] when multicast cannot be used.
pub async fn discover(timeout: Duration) -> Result<Vec<DiscoveredDaemon>, ClientError> {
    let service = format!("{}.local.", rpc::SERVICE_TYPE);
    let failed =
        |e: mdns_sd::Error| ClientError::Connect { address: service.clone(), cause: e.to_string() };
    let daemon = ServiceDaemon::new().map_err(failed)?;
    let events = daemon.browse(&service).map_err(failed)?;
    let until = Instant::now() + timeout.max(MIN_DISCOVERY_TIME);
    let mut daemons = BTreeMap::new();
    while let Ok(Ok(event)) = tokio::time::timeout_at(until.into(), events.recv_async()).await {
        let ServiceEvent::ServiceResolved(info) = event else { continue };
        let text = |key: &str| info.get_property_val_str(key).unwrap_or_default().to_owned();
        let mut addresses: Vec<IpAddr> =
            info.get_addresses().iter().map(|a| a.to_ip_addr()).collect();
        addresses.sort();
        let announced = DiscoveredDaemon {
            name: text("name"),
            id: text("id"),
            version: text("version"),
            addresses,
            port: info.get_port(),
            key: info.get_property_val_str("key").map(str::to_owned),
        };
        if daemons.len() < MAX_DAEMONS {
            daemons.insert(info.get_fullname().to_owned(), announced);
        }
    }
    let _stopped = daemon.shutdown();
    Ok(daemons.into_values().collect())
}
