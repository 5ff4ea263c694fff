//! The paired devices: stored in a file, disconnected at once when revoked.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use cairn_api::Rights;
use cairn_pairing::{Pin, read_json, write_private};
use cairn_protocol::{
    error::{Failure, Reason},
    id::DeviceId,
    remote::{Device, Right},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// Maximum number of devices.
const MAX_DEVICES: usize = 128;

/// A device as stored in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredDevice {
    id: DeviceId,
    name: String,
    key: Pin,
    rights: Vec<Right>,
    paired_at: Timestamp,
    /// True if `key` is the hash of a browser's secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    browser: bool,
}

/// The proof by which a device is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// The key of a machine, which its TLS handshake proves.
    Machine(Pin),
    /// The hash of the secret that a browser sends.
    Browser(Pin),
}

impl Credential {
    fn pin(self) -> Pin {
        match self {
            Self::Machine(pin) | Self::Browser(pin) => pin,
        }
    }

    fn is_browser(self) -> bool {
        matches!(self, Self::Browser(_))
    }
}

#[derive(Debug)]
pub struct Entry {
    stored: StoredDevice,
    /// Cancelled on revocation, which ends every connection of the device.
    pub abort: CancellationToken,
    open: AtomicU64,
}

/// An open connection of a device, for counting.
#[derive(Debug)]
pub struct Open(Arc<Entry>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Entry {
    fn new(stored: StoredDevice) -> Arc<Self> {
        Arc::new(Self { stored, abort: CancellationToken::new(), open: AtomicU64::new(0) })
    }

    pub fn id(&self) -> &DeviceId {
        &self.stored.id
    }

    pub fn rights(&self) -> Rights {
        Rights::of(&self.stored.rights)
    }

    /// Counts a connection until the guard is dropped.
    pub fn open(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(self))
    }

    /// Renders the device for clients.
    pub fn to_device(&self) -> Device {
        let StoredDevice { id, name, key, rights, paired_at, browser } = self.stored.clone();
        let connections = self.open.load(Ordering::Relaxed);
        Device { id, name, key: key.to_string(), rights, paired_at, connections, browser }
    }
}

#[derive(Debug)]
pub struct Devices {
    path: PathBuf,
    list: Mutex<Vec<Arc<Entry>>>,
    /// Locked while the file is written, so that the latest list is written last.
    writing: Mutex<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Devices {
    /// Loads the devices of a file.
    ///
    /// # Errors
    /// `storage_failed` when the file cannot be read; an unreadable list is not taken for an empty
    /// one.
    pub fn open(path: PathBuf) -> Result<Self, Failure> {
        let failed = |e| {
            Failure::new(Reason::StorageFailed, format!("the paired devices cannot be read: {e}"))
        };
        let stored: Vec<StoredDevice> = read_json(&path).map_err(failed)?;
        Ok(Self {
            path,
            list: Mutex::new(stored.into_iter().map(Entry::new).collect()),
            writing: Mutex::default(),
        })
    }

    pub fn find(&self, credential: Credential) -> Option<Arc<Entry>> {
        let matches = |e: &&Arc<Entry>| {
            e.stored.browser == credential.is_browser() && e.stored.key == credential.pin()
        };
        lock(&self.list).iter().find(matches).cloned()
    }

    pub fn list(&self) -> Vec<Device> {
        lock(&self.list).iter().map(|e| e.to_device()).collect()
    }

    /// Adds a device, or replaces the rights of one with the same credential.
    ///
    /// # Errors
    /// `storage_failed`, `overloaded`; the device is not added then.
    pub fn add(
        &self,
        name: String,
        credential: Credential,
        rights: Vec<Right>,
    ) -> Result<Device, Failure> {
        let _one = lock(&self.writing);
        let key = credential.pin();
        let stored = StoredDevice {
            id: DeviceId::new(),
            name,
            key,
            rights,
            paired_at: Timestamp::now(),
            browser: credential.is_browser(),
        };
        let entry = Entry::new(stored);
        let mut next: Vec<_> = lock(&self.list).clone();
        next.retain(|e| e.stored.key != key);
        if next.len() >= MAX_DEVICES {
            let text = format!("{MAX_DEVICES} devices are paired; revoke one with client.revoke");
            return Err(Failure::new(Reason::Overloaded, text));
        }
        next.push(Arc::clone(&entry));
        self.write(&next)?;
        let before = std::mem::replace(&mut *lock(&self.list), next);
        before.iter().filter(|e| e.stored.key == key).for_each(|e| e.abort.cancel());
        Ok(entry.to_device())
    }

    /// Removes a device and closes its connections before the file is written.
    ///
    /// # Errors
    /// `device_not_found`; `storage_failed`.
    pub fn revoke(&self, id: &DeviceId) -> Result<(), Failure> {
        let missing = || Failure::new(Reason::DeviceNotFound, format!("there is no device {id}"));
        // A concurrent addition must not write the old list again.
        let _one = lock(&self.writing);
        {
            let mut list = lock(&self.list);
            let at = list.iter().position(|e| e.stored.id == *id).ok_or_else(missing)?;
            list.remove(at).abort.cancel();
        }
        let remaining = lock(&self.list).clone();
        self.write(&remaining)
    }

    fn write(&self, list: &[Arc<Entry>]) -> Result<(), Failure> {
        let stored: Vec<&StoredDevice> = list.iter().map(|e| &e.stored).collect();
        let failed = |e: &dyn std::fmt::Display| {
            let text =
                format!("the paired devices cannot be written to {}: {e}", self.path.display());
            Failure::new(Reason::StorageFailed, text)
        };
        let text = serde_json::to_vec_pretty(&stored).map_err(|e| failed(&e))?;
        write_private(&self.path, &text).map_err(|e| failed(&e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices(dir: &std::path::Path) -> Devices {
        Devices::open(dir.join("remote/devices.json")).unwrap()
    }

    #[test]
    fn devices_persist_until_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let a = Credential::Machine(Pin::of_key(b"a"));
        let b = Credential::Machine(Pin::of_key(b"b"));
        let first = devices(dir.path());
        let device = first.add("laptop".into(), a, vec![Right::Observe]).unwrap();
        first.add("phone".into(), b, vec![Right::Approve]).unwrap();
        let second = devices(dir.path());
        assert_eq!(second.list(), first.list());
        let entry = second.find(a).unwrap();
        assert!(entry.rights().contains(Right::Observe) && !entry.rights().contains(Right::Prompt));
        second.revoke(&device.id).unwrap();
        assert!(entry.abort.is_cancelled() && second.find(a).is_none());
        assert_eq!(second.revoke(&device.id).unwrap_err().reason, Reason::DeviceNotFound);
        let remaining = devices(dir.path());
        assert!(remaining.find(a).is_none() && remaining.find(b).is_some());
    }

    #[test]
    fn browser_is_found_by_its_secret_and_never_by_a_key() {
        let dir = tempfile::tempdir().unwrap();
        let all = devices(dir.path());
        let pin = Pin::of_secret("secret");
        all.add("phone".into(), Credential::Browser(pin), vec![Right::Observe]).unwrap();
        let machine = Pin::of_key(b"laptop's key");
        all.add("laptop".into(), Credential::Machine(machine), vec![Right::Admin]).unwrap();
        let all = devices(dir.path());
        assert!(all.find(Credential::Browser(pin)).is_some());
        assert!(all.find(Credential::Machine(pin)).is_none());
        assert!(all.find(Credential::Browser(machine)).is_none());
        // A public key is not accepted as a secret, nor a secret as a key.
        assert!(all.find(Credential::Browser(Pin::of_secret("laptop's key"))).is_none());
        assert!(all.find(Credential::Machine(Pin::of_key(b"secret"))).is_none());
        let browsers: Vec<bool> = all.list().iter().map(|d| d.browser).collect();
        assert_eq!(browsers, [true, false]);
    }

    #[test]
    fn repeated_pairing_replaces_rights() {
        let dir = tempfile::tempdir().unwrap();
        let devices = devices(dir.path());
        let key = Credential::Machine(Pin::of_key(b"a"));
        devices.add("a".into(), key, vec![Right::Admin]).unwrap();
        let before = devices.find(key).unwrap();
        devices.add("a".into(), key, vec![Right::Observe]).unwrap();
        assert!(
            before.abort.is_cancelled()
                && !devices.find(key).unwrap().rights().contains(Right::Admin)
        );
        assert_eq!(devices.list().len(), 1);
    }

    #[test]
    fn failed_write_rejects_addition_but_not_revocation() {
        let dir = tempfile::tempdir().unwrap();
        let devices = devices(dir.path());
        let key = Credential::Machine(Pin::of_key(b"a"));
        let device = devices.add("a".into(), key, vec![Right::Observe]).unwrap();
        // A folder in its place prevents writing.
        let path = dir.path().join("remote/devices.json");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir_all(path.join("x")).unwrap();
        let refused =
            devices.add("b".into(), Credential::Machine(Pin::of_key(b"b")), vec![Right::Observe]);
        assert_eq!(refused.unwrap_err().reason, Reason::StorageFailed);
        assert_eq!(devices.list().len(), 1);
        let entry = devices.find(key).unwrap();
        assert_eq!(devices.revoke(&device.id).unwrap_err().reason, Reason::StorageFailed);
        assert!(entry.abort.is_cancelled() && devices.find(key).is_none());
        assert!(Devices::open(path).is_err());
    }
}
