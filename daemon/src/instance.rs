//! The daemon instance: lock, token, and `daemon.json`.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use cairn_protocol::{
    id::InstanceId,
    location::{DaemonFile, DataRoot},
    time::Timestamp,
};
use cairn_workspace::replace_private_file;

/// Time that a starting daemon waits for a lock that a client is only probing.
const LOCK_WAIT: Duration = Duration::from_millis(1500);
const LOCK_TICK: Duration = Duration::from_millis(25);

/// The reason why no instance can exist.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// Another daemon has locked this data root.
    #[error(
        "another cairn daemon is running on {0}: see 'cairn status', or stop it with 'cairn stop'"
    )]
    Running(String),
    /// A file or folder cannot be used.
    #[error("cannot use {path}: {source}")]
    Io { path: String, source: io::Error },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> InstanceError + '_ {
    move |source| InstanceError::Io { path: path.display().to_string(), source }
}

/// The only daemon of a data root, until this is dropped.
pub struct Instance {
    root: DataRoot,
    /// Unique for each start.
    pub id: InstanceId,
    pub started_at: Timestamp,
    /// The secret of the data root.
    pub token: String,
    _lock: Lock,
}

/// The lock of a data root. It is unlocked explicitly: a child process that is just starting
/// inherits the descriptor, and the lock would last until that copy is closed.
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::debug!(%error, "the data root's lock was not released");
        }
    }
}

impl Instance {
    /// Creates the folders (0700), takes the lock, and reads or creates the token (0600).
    ///
    /// # Errors
    /// [`InstanceError::Running`] when another daemon has the lock.
    pub fn claim(root: &DataRoot) -> Result<Self, InstanceError> {
        for dir in [root.path().to_owned(), root.index_dir(), root.workspaces_dir()] {
            create_private_dir(&dir).map_err(io_error(&dir))?;
        }
        let lock_path = root.lock();
        let lock = private(OpenOptions::new().create(true).append(true))
            .open(&lock_path)
            .map_err(io_error(&lock_path))?;
        wait_for(&lock, &lock_path)?;
        let token = token(&root.token()).map_err(io_error(&root.token()))?;
        let started_at = Timestamp::now();
        Ok(Self { root: root.clone(), id: InstanceId::new(), started_at, token, _lock: Lock(lock) })
    }

    /// Publishes the daemon's addresses to clients.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn publish(
        &self,
        addresses: &[String],
        version: &str,
        config_dir: Option<PathBuf>,
    ) -> Result<(), InstanceError> {
        let file = DaemonFile {
            pid: std::process::id(),
            instance_id: self.id.clone(),
            addresses: addresses.to_vec(),
            version: version.to_owned(),
            token_path: self.root.token(),
            started_at: self.started_at,
            config_dir,
        };
        let path = self.root.daemon_json();
        let json = serde_json::to_vec_pretty(&file).unwrap_or_default();
        replace_private_file(&path, &json).map_err(|error| {
            // It may be there and only not durable; this daemon will not serve.
            self.retract();
            io_error(&path)(error)
        })
    }

    /// Removes `daemon.json`; the lock is released when this is dropped.
    pub fn retract(&self) {
        let path = self.root.daemon_json();
        if let Err(error) = std::fs::remove_file(&path) {
            tracing::debug!(%error, path = %path.display(), "was not removed");
        }
    }
}

fn wait_for(lock: &File, path: &Path) -> Result<(), InstanceError> {
    let until = std::time::Instant::now() + LOCK_WAIT;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(io_error(path)(error)),
        }
        // Probing clients take a shared lock, a daemon an exclusive one. A starting daemon must not
        // wait for the exclusive one, or it would take over when that daemon is stopped.
        let is_exclusive = matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock));
        if is_exclusive || std::time::Instant::now() >= until {
            let root = path.parent().unwrap_or(path).display().to_string();
            return Err(InstanceError::Running(root));
        }
        lock.unlock().map_err(io_error(path))?;
        std::thread::sleep(LOCK_TICK);
    }
}

/// Creates a folder and its parents; the folder itself becomes private even if it existed.
pub fn create_private_dir(dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    #[cfg(unix)]
    std::fs::set_permissions(dir, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

fn token(path: &Path) -> io::Result<String> {
    if let Ok(text) = std::fs::read_to_string(path) {
        let text = text.trim();
        if text.len() >= 32 {
            #[cfg(unix)]
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
            return Ok(text.to_owned());
        }
    }
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(io::Error::other)?;
    let token = hex::encode(secret);
    replace_private_file(path, token.as_bytes())?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_instance_per_root_with_stable_token() {
        let dir = tempfile::tempdir().unwrap();
        let root = DataRoot(dir.path().join("home"));
        let first = Instance::claim(&root).unwrap();
        let token = first.token.clone();
        assert!(matches!(Instance::claim(&root), Err(InstanceError::Running(_))));
        // The situation of a child between fork and exec.
        let _copy = first._lock.0.try_clone().unwrap();
        drop(first);
        let second = Instance::claim(&root).unwrap();
        assert_eq!(second.token, token);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(root.path()), mode(&root.token())), (0o700, 0o600));
        }
    }
}
