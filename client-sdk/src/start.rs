//! Starting a daemon when none runs. A process that loses the race of starters connects to the
//! winner's daemon.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions, TryLockError},
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use cairn_protocol::location::{DataRoot, Env};

use crate::{Client, ClientError, Connector};

/// Exit code of a daemon that exits because another one has locked its data root.
pub const ALREADY_RUNNING: u8 = 5;

/// Maximum time until a started daemon answers.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of daemons that one client starts before it fails.
const MAX_STARTS: u32 = 5;
/// Pauses between checks for the daemon, shortest and longest.
const LOOK: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(50));
/// Bytes at the end of the log that are searched for the reason of a failed start.
const TAIL: u64 = 16 * 1024;

/// Command that starts a daemon: `<exe> <args>`, detached.
#[derive(Debug, Clone)]
pub struct Starter {
    /// Path of the binary.
    pub exe: PathBuf,
    /// Arguments of the binary, such as `serve --on-demand`.
    pub args: Vec<OsString>,
}

/// Connects to the daemon of `env`, and first starts one if none answers.
///
/// # Errors
/// [`ClientError::Start`] with the daemon's message when it did not answer within 10 s;
/// [`ClientError::Incompatible`].
pub async fn ensure_daemon(
    env: &Env,
    connector: &Connector,
    starter: &Starter,
) -> Result<Client, ClientError> {
    match connector.connect().await {
        Err(error) if absent(&error) => {}
        decided => return decided,
    }
    let root = DataRoot(env.data_root().ok_or(ClientError::NoHome)?);
    let log = root.log_file();
    let failed = |cause: String| ClientError::Start { cause, log: log.clone() };
    let until = Instant::now() + START_TIMEOUT;
    let (mut child, mut starts, mut from) = (None, 0, 0);
    let mut pause = LOOK.0;
    loop {
        // A daemon that is stopping holds the lock for a moment; the next one starts after that.
        if child.is_none() && starts < MAX_STARTS && !is_root_locked(&root) {
            from = log.metadata().map_or(0, |m| m.len());
            starts += 1;
            child = Some(
                spawn(env, starter, &log)
                    .map_err(|e| failed(format!("{}: {e}", starter.exe.display())))?,
            );
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LOOK.1);
        let error = match connector.connect().await {
            Err(error) if absent(&error) => error,
            decided => return decided,
        };
        if let Some(running) = &mut child
            && let Ok(Some(status)) = running.try_wait()
        {
            // The loser of a race exits at once, and the winner answers.
            if !status.success() && status.code() != Some(ALREADY_RUNNING.into()) {
                return Err(failed(
                    reason(&log, from).unwrap_or_else(|| format!("it exited with {status}")),
                ));
            }
            child = None;
        }
        if Instant::now() >= until {
            return Err(failed(format!("no answer within {} s: {error}", START_TIMEOUT.as_secs())));
        }
    }
}

/// Returns true if an error means that no daemon of this data root answers.
fn absent(error: &ClientError) -> bool {
    use ClientError::{Closed, Connect, NotRunning, Protocol, Unauthorized};
    // A daemon that starts or stops may leave a file half written or a connection cut.
    matches!(
        error,
        NotRunning { .. } | Connect { .. } | Unauthorized { .. } | Closed(_) | Protocol(_)
    )
}

/// Returns true if a daemon holds the lock of this data root.
pub fn is_root_locked(root: &DataRoot) -> bool {
    let Ok(lock) = File::open(root.lock()) else { return false };
    matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn spawn(env: &Env, starter: &Starter, log: &Path) -> std::io::Result<Child> {
    let log = open_log(log)?;
    let mut command = Command::new(&starter.exe);
    command.args(&starter.args).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    // A separate process group: an interrupt meant for the client does not reach the daemon.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    // The daemon must not keep the caller's folder from being unmounted; `CAIRN_HOME` is absolute.
    command.current_dir("/");
    if let Some(home) = &env.cairn_home {
        command.env("CAIRN_HOME", home);
    }
    command.spawn()
}

fn open_log(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    if let Some(dir) = path.parent() {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(dir)?;
    }
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Returns the last line with `error:` written after offset `from`.
fn reason(log: &Path, from: u64) -> Option<String> {
    let mut file = File::open(log).ok()?;
    let size = file.metadata().ok()?.len();
    // A rotated log is shorter than before.
    let from = if size < from { 0 } else { from.max(size.saturating_sub(TAIL)) };
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().rev().find_map(|line| line.strip_prefix("error: ")).map(str::to_owned)
}
