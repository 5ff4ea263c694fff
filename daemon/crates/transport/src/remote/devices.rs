//! The devices that are paired: kept in a file, cut off at once.

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

/// Devices at most.
const MOST: usize = 128;

/// A device as the file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    id: DeviceId,
    name: String,
    key: Pin,
    rights: Vec<Right>,
    paired_at: Timestamp,
}

/// A device that may connect.
#[derive(Debug)]
pub struct Entry {
    kept: Kept,
    /// Cancelled when it is revoked: every connection of it ends.
    pub cut: CancellationToken,
    open: AtomicU64,
}

/// A connection of a device, counted while it is open.
#[derive(Debug)]
pub struct Open(Arc<Entry>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Entry {
    fn new(kept: Kept) -> Arc<Self> {
        Arc::new(Self { kept, cut: CancellationToken::new(), open: AtomicU64::new(0) })
    }

    /// Its id.
    pub fn id(&self) -> &DeviceId {
        &self.kept.id
    }

    /// What it may do.
    pub fn rights(&self) -> Rights {
        Rights::of(&self.kept.rights)
    }

    /// Counts a connection.
    pub fn open(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(Arc::clone(self))
    }

    /// As clients are told.
    pub fn told(&self) -> Device {
        let Kept { id, name, key, rights, paired_at } = self.kept.clone();
        let connections = self.open.load(Ordering::Relaxed);
        Device { id, name, key: key.to_string(), rights, paired_at, connections }
    }
}

/// All of them.
#[derive(Debug)]
pub struct Devices {
    path: PathBuf,
    list: Mutex<Vec<Arc<Entry>>>,
    /// Held while the file is written, so that it holds the latest list in the end.
    writing: Mutex<()>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Devices {
    /// Those of a file.
    ///
    /// # Errors
    /// `storage_failed` when it cannot be read: a list that is lost is not taken for an empty one.
    pub fn open(path: PathBuf) -> Result<Self, Failure> {
        let failed =
            |e| Failure::new(Reason::StorageFailed, format!("the paired devices cannot be read: {e}"));
        let kept: Vec<Kept> = read_json(&path).map_err(failed)?;
        Ok(Self {
            path,
            list: Mutex::new(kept.into_iter().map(Entry::new).collect()),
            writing: Mutex::default(),
        })
    }

    /// The device of a key.
    pub fn find(&self, key: &Pin) -> Option<Arc<Entry>> {
        locked(&self.list).iter().find(|e| e.kept.key == *key).cloned()
    }

    /// All, in the order they came.
    pub fn list(&self) -> Vec<Device> {
        locked(&self.list).iter().map(|e| e.told()).collect()
    }

    /// Takes a device. One of the same key is paired anew: what it may do is what was decided last.
    ///
    /// # Errors
    /// `storage_failed`, `overloaded`; then it is not taken.
    pub fn add(&self, name: String, key: Pin, rights: Vec<Right>) -> Result<Device, Failure> {
        let _one = locked(&self.writing);
        let kept = Kept { id: DeviceId::new(), name, key, rights, paired_at: Timestamp::now() };
        let entry = Entry::new(kept);
        let mut next: Vec<_> = locked(&self.list).clone();
        next.retain(|e| e.kept.key != key);
        if next.len() >= MOST {
            let text = format!("{MOST} devices are paired; revoke one with client.revoke");
            return Err(Failure::new(Reason::Overloaded, text));
        }
        next.push(Arc::clone(&entry));
        self.write(&next)?;
        let before = std::mem::replace(&mut *locked(&self.list), next);
        before.iter().filter(|e| e.kept.key == key).for_each(|e| e.cut.cancel());
        Ok(entry.told())
    }

    /// Forgets a device and cuts its connections before its file is written.
    ///
    /// # Errors
    /// `device_not_found`; `storage_failed`.
    pub fn revoke(&self, id: &DeviceId) -> Result<(), Failure> {
        let missing = || Failure::new(Reason::DeviceNotFound, format!("there is no device {id}"));
        // One that is being added meanwhile must not bring the old list back.
        let _one = locked(&self.writing);
        {
            let mut list = locked(&self.list);
            let at = list.iter().position(|e| e.kept.id == *id).ok_or_else(missing)?;
            list.remove(at).cut.cancel();
        }
        let left = locked(&self.list).clone();
        self.write(&left)
    }

    fn write(&self, list: &[Arc<Entry>]) -> Result<(), Failure> {
        let kept: Vec<&Kept> = list.iter().map(|e| &e.kept).collect();
        let failed = |e: &dyn std::fmt::Display| {
            let text = format!("the paired devices cannot be written to {}: {e}", self.path.display());
            Failure::new(Reason::StorageFailed, text)
        };
        let text = serde_json::to_vec_pretty(&kept).map_err(|e| failed(&e))?;
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
    fn devices_outlive_the_daemon_until_they_are_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (Pin::of_key(b"a"), Pin::of_key(b"b"));
        let first = devices(dir.path());
        let device = first.add("laptop".into(), a, vec![Right::Observe]).unwrap();
        first.add("phone".into(), b, vec![Right::Approve]).unwrap();
        let second = devices(dir.path());
        assert_eq!(second.list(), first.list());
        let entry = second.find(&a).unwrap();
        assert!(entry.rights().contains(Right::Observe) && !entry.rights().contains(Right::Prompt));
        second.revoke(&device.id).unwrap();
        assert!(entry.cut.is_cancelled() && second.find(&a).is_none());
        assert_eq!(second.revoke(&device.id).unwrap_err().reason, Reason::DeviceNotFound);
        let left = devices(dir.path());
        assert!(left.find(&a).is_none() && left.find(&b).is_some());
    }

    #[test]
    fn a_key_that_is_paired_again_gets_what_was_decided_last() {
        let dir = tempfile::tempdir().unwrap();
        let (devices, key) = (devices(dir.path()), Pin::of_key(b"a"));
        devices.add("a".into(), key, vec![Right::Admin]).unwrap();
        let before = devices.find(&key).unwrap();
        devices.add("a".into(), key, vec![Right::Observe]).unwrap();
        assert!(before.cut.is_cancelled() && !devices.find(&key).unwrap().rights().contains(Right::Admin));
        assert_eq!(devices.list().len(), 1);
    }

    #[test]
    fn what_cannot_be_kept_is_not_taken_and_what_is_revoked_is_cut_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let (devices, key) = (devices(dir.path()), Pin::of_key(b"a"));
        let device = devices.add("a".into(), key, vec![Right::Observe]).unwrap();
        // A folder in its place: nothing can be written there.
        let path = dir.path().join("remote/devices.json");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir_all(path.join("x")).unwrap();
        let refused = devices.add("b".into(), Pin::of_key(b"b"), vec![Right::Observe]);
        assert_eq!(refused.unwrap_err().reason, Reason::StorageFailed);
        assert_eq!(devices.list().len(), 1);
        let entry = devices.find(&key).unwrap();
        assert_eq!(devices.revoke(&device.id).unwrap_err().reason, Reason::StorageFailed);
        assert!(entry.cut.is_cancelled() && devices.find(&key).is_none());
        assert!(Devices::open(path).is_err());
    }
}
