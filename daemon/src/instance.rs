//! This daemon among others: the held lock, the token, and `daemon.json`.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use cairn_protocol::{
    id::InstanceId,
    location::{DaemonFile, DataRoot},
    time::Timestamp,
};

/// How long a starting daemon waits for a lock that somebody only looks at.
const LOCK_WAIT: Duration = Duration::from_millis(1500);
const LOCK_TICK: Duration = Duration::from_millis(25);

/// Why there can be no instance.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// Another daemon holds this data root.
    #[error("another cairn daemon runs on {0}: see 'cairn status', or stop it with 'cairn stop'")]
    Running(String),
    /// A file or folder cannot be used.
    #[error("cannot use {path}: {source}")]
    Io {
        /// What was touched.
        path: String,
        /// The system's reason.
        source: io::Error,
    },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> InstanceError + '_ {
    move |source| InstanceError::Io { path: path.display().to_string(), source }
}

/// The one daemon of a data root, for as long as this lives.
pub struct Instance {
    root: DataRoot,
    /// This start.
    pub id: InstanceId,
    /// When it began.
    pub started_at: Timestamp,
    /// The secret of the data root.
    pub token: String,
    _lock: Lock,
}

/// The lock of a data root. It is let go by its name: a child that is just then starting has a copy of what is open here, and
/// the lock would stay until that is closed too.
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::debug!(%error, "the data root's lock was not let go");
        }
    }
}

impl Instance {
    /// Makes the folders (0700), takes the lock and reads or makes the token (0600).
    ///
    /// # Errors
    /// [`InstanceError::Running`] when another daemon holds the lock.
    pub fn claim(root: &DataRoot) -> Result<Self, InstanceError> {
        for dir in [root.path().to_owned(), root.index_dir(), root.workspaces_dir()] {
            make_dir(&dir).map_err(io_error(&dir))?;
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

    /// Tells clients where this daemon listens.
    ///
    /// # Errors
    /// When the file cannot be written.
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
        write_private(&path, &json).map_err(io_error(&path))
    }

    /// Takes `daemon.json` back; the lock goes with this value.
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
        // Who only looks shares the lock; a daemon does not. One that waited for it would take over when that
        // daemon is stopped.
        let taken = matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock));
        if taken || std::time::Instant::now() >= until {
            let root = path.parent().unwrap_or(path).display().to_string();
            return Err(InstanceError::Running(root));
        }
        lock.unlock().map_err(io_error(path))?;
        std::thread::sleep(LOCK_TICK);
    }
}

/// Makes a folder and its parents; the folder itself is private, whoever made it.
pub fn make_dir(dir: &Path) -> io::Result<()> {
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

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temp = path.with_extension("tmp");
    let mut file = private(OpenOptions::new().create(true).write(true).truncate(true)).open(&temp)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temp, path)
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
    write_private(path, token.as_bytes())?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_instance_a_root_and_the_token_stays() {
        let dir = tempfile::tempdir().unwrap();
        let root = DataRoot(dir.path().join("home"));
        let first = Instance::claim(&root).unwrap();
        let token = first.token.clone();
        assert!(matches!(Instance::claim(&root), Err(InstanceError::Running(_))));
        // As in a child between its fork and its program.
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
