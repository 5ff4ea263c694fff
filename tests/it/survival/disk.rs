//! File systems in files: an ext4 whose power can be cut, and folders that are mounted read-only.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::sealed::{missing, note};

/// Reports that a device is missing. Containers of continuous integration have none, so it is only
/// required where it exists.
fn missing_device(device: &str, what: &str) {
    if Path::new(device).exists() && rustix::process::geteuid().is_root() {
        missing(what);
    } else {
        note(&format!("left out: {what} needs root and {device}"));
    }
}

/// `EXT4_IOC_SHUTDOWN`, `_IOR('X', 125, __u32)`.
const SHUTDOWN: rustix::ioctl::Opcode = 0x8004_587d;
/// Drops everything that is only in the journal's memory, as a power cut does.
const NO_LOG_FLUSH: u32 = 2;

/// Runs a program that needs root; true if it succeeded.
fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// An ext4 file system in a file, mounted below a temporary folder.
pub struct Ext4 {
    image: PathBuf,
    pub folder: PathBuf,
    _dir: tempfile::TempDir,
}

impl Ext4 {
    /// Creates and mounts a file system of 512 MiB; `None` after a notice if the machine cannot.
    pub fn create() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let (image, folder) = (dir.path().join("disk.ext4"), dir.path().join("disk"));
        std::fs::create_dir(&folder).unwrap();
        File::create(&image).unwrap().set_len(512 * 1024 * 1024).unwrap();
        let disk = Self { image, folder, _dir: dir };
        let name = disk.image.to_str().unwrap();
        if !succeeds("mkfs.ext4", &["-q", "-F", name]) || !disk.mount() {
            missing_device("/dev/loop-control", "a loop-mounted ext4");
            return None;
        }
        Some(disk)
    }

    /// Mounts the image. Nothing but fsync writes the journal within the time of a test.
    fn mount(&self) -> bool {
        let (image, folder) = (self.image.to_str().unwrap(), self.folder.to_str().unwrap());
        succeeds("mount", &["-o", "loop,commit=300", image, folder])
    }

    /// Fails every further access, and loses what is not durable.
    #[expect(unsafe_code, reason = "an ioctl has no safe wrapper")]
    pub fn cut_power(&self) {
        let folder = File::open(&self.folder).unwrap();
        // SAFETY: the operation reads one u32 through its argument.
        let cut = unsafe {
            let flags = rustix::ioctl::Setter::<SHUTDOWN, u32>::new(NO_LOG_FLUSH);
            rustix::ioctl::ioctl(&folder, flags)
        };
        cut.expect("EXT4_IOC_SHUTDOWN");
    }

    /// Mounts it as after a restart of the machine; its journal is replayed.
    pub fn remount(&self) {
        let folder = self.folder.to_str().unwrap();
        assert!(succeeds("umount", &[folder]), "a process still uses {folder}");
        assert!(self.mount(), "the file system cannot be mounted again");
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        succeeds("umount", &["-l", self.folder.to_str().unwrap()]);
    }
}

/// A mount on a folder, undone when dropped.
pub struct Mount(PathBuf);

impl Mount {
    /// Mounts a folder on another one; `None` after a notice if the machine cannot.
    pub fn bind(from: &Path, on: &Path) -> Option<Self> {
        Self::with(&["--bind", from.to_str().unwrap(), on.to_str().unwrap()], on)
    }

    /// Mounts a folder on another one through a file system that reads slowly, as a network's does;
    /// `None` after a notice if the machine cannot.
    pub fn slow(from: &Path, on: &Path) -> Option<Self> {
        std::fs::create_dir_all(on).unwrap();
        let (from, to) = (from.to_str().unwrap(), on.to_str().unwrap());
        if succeeds("bindfs", &["--read-rate=20k", "-o", "direct_io", from, to]) {
            return Some(Self(on.to_owned()));
        }
        missing_device("/dev/fuse", "a slow file system (bindfs)");
        None
    }

    /// Makes a folder read-only; `None` after a notice if the machine cannot.
    pub fn read_only(folder: &Path) -> Option<Self> {
        let mount = Self::bind(folder, folder)?;
        let options = ["-o", "remount,bind,ro", folder.to_str().unwrap()];
        if !succeeds("mount", &options) {
            missing("a read-only mount");
            return None;
        }
        Some(mount)
    }

    /// Mounts an empty file system in memory with this size on a folder.
    pub fn memory(folder: &Path, size: &str) -> Option<Self> {
        let size = format!("size={size}");
        Self::with(&["-t", "tmpfs", "-o", &size, "none", folder.to_str().unwrap()], folder)
    }

    fn with(args: &[&str], on: &Path) -> Option<Self> {
        std::fs::create_dir_all(on).unwrap();
        if succeeds("mount", args) {
            return Some(Self(on.to_owned()));
        }
        missing("a mount (root)");
        None
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        succeeds("umount", &["-l", self.0.to_str().unwrap()]);
    }
}
