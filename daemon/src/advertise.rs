//! Bonjour announcement: `_oasearch._tcp` with version, id and name, and nothing private.

use std::{collections::HashMap, net::IpAddr};

use cairn_protocol::id::InstanceId;
use mdns_sd::{ServiceDaemon, ServiceInfo};

/// Service type with its domain.
const SERVICE: &str = "_oasearch._tcp.local.";

/// An announcement that lasts until this is dropped.
pub struct Advertisement {
    daemon: ServiceDaemon,
    fullname: String,
}

/// Returns the daemon's display name: the user's label, or a part of its id.
pub fn name(id: &InstanceId, label: Option<&str>) -> String {
    // The end of a UUIDv7 is random; its beginning is the time.
    let short = || format!("cairn-{}", &id.as_str()[id.as_str().len() - 8..]);
    label.map_or_else(short, str::to_owned)
}

/// Builds the announced record. It never contains the host's own name, only the user's label or the
/// id.
///
/// # Errors
/// A part is not a valid DNS name.
pub fn record(
    id: &InstanceId,
    label: Option<&str>,
    version: &str,
    at: IpAddr,
    port: u16,
    key: Option<&str>,
) -> mdns_sd::Result<ServiceInfo> {
    let host = self::name(id, None);
    let name = self::name(id, label);
    let mut texts: HashMap<String, String> =
        [("version", version), ("id", id.as_str()), ("name", &name)]
            .map(|(k, v)| (k.into(), v.into()))
            .into();
    // Paired devices use this hint at the key to find the daemon; it proves nothing.
    texts.extend(key.map(|key| ("key".to_owned(), key.to_owned())));
    let host = format!("{host}.local.");
    if at.is_unspecified() {
        return Ok(ServiceInfo::new(SERVICE, &name, &host, (), port, texts)?.enable_addr_auto());
    }
    ServiceInfo::new(SERVICE, &name, &host, at, port, texts)
}

/// Announces until dropped.
///
/// # Errors
/// Multicast cannot be used.
pub fn advertise(info: ServiceInfo) -> mdns_sd::Result<Advertisement> {
    let daemon = ServiceDaemon::new()?;
    let fullname = info.get_fullname().to_owned();
    daemon.register(info)?;
    Ok(Advertisement { daemon, fullname })
}

impl Drop for Advertisement {
    fn drop(&mut self) {
        // A failed goodbye packet does no harm: the record expires anyway.
        if let Ok(acknowledged) = self.daemon.unregister(&self.fullname) {
            let _timeout_ignored = acknowledged.recv_timeout(std::time::Duration::from_millis(200));
        }
        let _stopped = self.daemon.shutdown();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_contains_only_version_id_and_name() {
        let id = InstanceId::new();
        for (label, hint) in [(None, None), (Some("desk"), None), (None, Some("00c0ffee"))] {
            let info = record(&id, label, "0.1.0", [10, 0, 0, 1].into(), 7433, hint).unwrap();
            let mut keys: Vec<_> =
                info.get_properties().iter().map(|p| p.key().to_owned()).collect();
            keys.sort();
            keys.retain(|key| key != "key" || hint.is_none());
            assert_eq!(keys, ["id", "name", "version"]);
            assert_eq!(info.get_property_val_str("key"), hint);
            assert!(info.get_hostname().starts_with("cairn-"), "{}", info.get_hostname());
        }
    }
}
