//! Runs the user's own git so that it never prompts, starts no program that a repository names, and
//! can be stopped.

use std::{
    io::Read as _,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use cairn_protocol::error::{Failure, Reason};
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};

use super::{
    progress::{Words, reason},
    source::{CloneSource, Settings},
};

/// Interval in which cancellation and the time limit are checked.
const TICK: Duration = Duration::from_millis(25);
/// Wait for the output of a git that has exited; a child of it may have it open for ever.
const GRACE: Duration = Duration::from_millis(500);

/// Configuration that overrides every file: nothing that a repository or a template brings is run.
const NEUTRAL: [(&str, &str); 12] = [
    ("protocol.ext.allow", "never"),
    ("protocol.fd.allow", "never"),
    // Plain text can be read and changed in transit; a redirection would lead to an address that
    // was not judged.
    ("protocol.http.allow", "never"),
    ("http.followRedirects", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.askPass", ""),
    ("credential.interactive", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// Builds a git command in `folder` that reaches only `source`; the caller adds its arguments.
pub(super) fn command(folder: &Path, source: &CloneSource) -> Command {
    let mut git = Command::new("git");
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    ] {
        git.env_remove(name);
    }
    for name in [
        "GIT_COMMON_DIR",
        "GIT_NAMESPACE",
        "GIT_TEMPLATE_DIR",
        "GIT_CONFIG_PARAMETERS",
        "GIT_TRACE",
        "GIT_CURL_VERBOSE",
    ] {
        git.env_remove(name);
    }
    let Settings { config, environment, ssh } = source.settings();
    let all = NEUTRAL
        .iter()
        .copied()
        .chain(config.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    git.env("GIT_CONFIG_COUNT", (NEUTRAL.len() + config.len()).to_string());
    for (n, (key, value)) in all.enumerate() {
        git.env(format!("GIT_CONFIG_KEY_{n}"), key).env(format!("GIT_CONFIG_VALUE_{n}"), value);
    }
    git.envs(environment);
    git.env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "")
        .env("SSH_ASKPASS", "")
        .env("SSH_ASKPASS_REQUIRE", "never");
    git.env("GCM_INTERACTIVE", "never")
        .env("GIT_LFS_SKIP_SMUDGE", "1")
        .env("GIT_PAGER", "cat")
        .env("LC_ALL", "C");
    if std::env::var_os("GIT_SSH_COMMAND").is_none()
        && std::env::var_os("GIT_SSH").is_none()
        && !has_ssh_command()
    {
        let pinned =
            ssh.filter(|host| !is_mapped(&host.name)).map(|host| format!(" {}", host.options()));
        let options = pinned.unwrap_or_default();
        git.env("GIT_SSH_COMMAND", format!("ssh -o BatchMode=yes -o ConnectTimeout=20{options}"));
    }
    git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // A separate process group, so that its helpers are killed with it.
    git.process_group(0);
    git.current_dir(folder);
    git
}

/// Returns true if the user's ssh configuration maps a host to another one, which is then left as
/// it is.
fn is_mapped(name: &str) -> bool {
    let ssh_config =
        Command::new("ssh").args(["-G", name]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let ssh_config = ssh_config
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    let host = ssh_config.lines().find_map(|line| line.strip_prefix("hostname "));
    host.is_some_and(|host| !host.eq_ignore_ascii_case(name))
}

/// Returns true if the user's own configuration names an ssh command, which the environment's would
/// override.
fn has_ssh_command() -> bool {
    git2::Config::open_default().is_ok_and(|c| c.get_string("core.sshCommand").is_ok())
}

/// Purpose and limits of a git process.
pub(super) struct Task<'a> {
    /// `cloning` or `fetching`, for messages.
    pub(super) what: &'static str,
    /// The remote, without credentials.
    pub(super) url: &'a str,
    pub(super) limit: Duration,
    /// Longest time without output from git.
    pub(super) silence: Duration,
}

/// Runs git until it exits, its time limit expires or it is cancelled.
///
/// # Errors
/// `Cancelled`, `AuthenticationRequired`, `DiskFull`, `CloneFailed` with git's message, `GitFailed`
/// (no git here).
pub(super) fn run(
    mut git: Command,
    task: &Task<'_>,
    progress: &mut dyn FnMut(&'static str, f64),
    cancelled: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let mut child = git.spawn().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            Failure::new(Reason::GitFailed, "git was not found on the path; install git to clone")
        }
        _ => Failure::new(Reason::GitFailed, format!("starting git: {e}")),
    })?;
    let output = read_output(&mut child);
    let mut words = Words::default();
    let end =
        supervise(&mut child, &output, task, cancelled, &mut |bytes| words.feed(bytes, progress));
    // In any case nothing of its group remains; the leader is reaped afterwards so that its id is
    // not reused before.
    if let Some(group) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let status = child
        .wait()
        .map_err(|e| Failure::new(Reason::GitFailed, format!("waiting for git: {e}")))?;
    let (what, url) = (task.what, task.url);
    match end {
        End::Exited => {}
        End::Cancelled => {
            return Err(Failure::new(Reason::Cancelled, format!("{what} {url} was cancelled")));
        }
        End::TimedOut => {
            let text = format!("{what} {url}: not finished within {} s", task.limit.as_secs());
            return Err(Failure::new(Reason::CloneFailed, text));
        }
        End::Silent => {
            let text = format!("{what} {url}: no output from git for {} s", task.silence.as_secs());
            return Err(Failure::new(Reason::CloneFailed, text));
        }
    }
    let grace = Instant::now() + GRACE;
    while let Ok(bytes) = output.recv_deadline(grace) {
        words.feed(&bytes, progress);
    }
    if status.success() {
        return Ok(());
    }
    let words = words.finish();
    Err(Failure::new(reason(&words), format!("{what} {url}: {words}")))
}

enum End {
    Exited,
    Cancelled,
    TimedOut,
    Silent,
}

fn supervise(
    child: &mut Child,
    output: &Receiver<Vec<u8>>,
    task: &Task<'_>,
    cancelled: &dyn Fn() -> bool,
    feed: &mut dyn FnMut(&[u8]),
) -> End {
    let deadline = Instant::now() + task.limit;
    let mut last_output = Instant::now();
    let mut open = true;
    loop {
        match open.then(|| output.recv_timeout(TICK)) {
            Some(Ok(bytes)) => {
                last_output = Instant::now();
                feed(&bytes);
            }
            Some(Err(RecvTimeoutError::Disconnected)) => open = false,
            Some(Err(RecvTimeoutError::Timeout)) => {}
            None => std::thread::sleep(TICK),
        }
        if cancelled() {
            return End::Cancelled;
        }
        if Instant::now() >= deadline {
            return End::TimedOut;
        }
        if last_output.elapsed() >= task.silence {
            return End::Silent;
        }
        if !matches!(child.try_wait(), Ok(None)) {
            return End::Exited;
        }
    }
}

/// Reads a child's error output on a thread, which exits at the end of the output or when the
/// receiver is dropped.
fn read_output(child: &mut Child) -> Receiver<Vec<u8>> {
    let (tx, rx) = bounded(64);
    if let Some(mut stderr) = child.stderr.take() {
        std::thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(n) = stderr.read(&mut block) {
                if n == 0 || tx.send(block[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
    }
    rx
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::git::Remote;

    /// Returns the arguments that ssh gets from a clone of `url`, whose name was judged at this
    /// address.
    fn arguments_of_ssh(url: &str, address: Option<&str>) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("ssh");
        let recorded = dir.path().join("arguments");
        let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {}\nexit 1\n", recorded.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let addresses = address.map(|address| address.parse().unwrap()).into_iter().collect();
        let source = CloneSource::host(Remote::parse(url).unwrap(), addresses);
        let path = std::env::var("PATH").unwrap();
        let mut git = command(dir.path(), &source);
        git.args(["clone", "--", source.url(), "made"])
            .env("PATH", format!("{}:{path}", dir.path().display()));
        assert!(!git.output().unwrap().status.success());
        std::fs::read_to_string(recorded).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn ssh_connects_to_judged_address_and_verifies_key_of_host_name() {
        for url in
            ["ssh://git@host.invalid/x", "git@host.invalid:x", "ssh://git@host.invalid:2222/x"]
        {
            let arguments = arguments_of_ssh(url, Some("192.0.2.7"));
            let options = ["-o", "HostName=192.0.2.7", "-o", "HostKeyAlias=host.invalid"];
            assert!(arguments.windows(4).any(|four| four == options), "{url}: {arguments:?}");
            assert!(arguments.contains(&"git@host.invalid".to_owned()), "{url}: {arguments:?}");
        }
        let arguments = arguments_of_ssh("git@host.invalid:x", Some("2001:db8::7"));
        assert!(arguments.contains(&"HostName=2001:db8::7".to_owned()), "{arguments:?}");
        // Control: a name that was not found, and an address, are passed to ssh unchanged.
        for (url, address) in [("git@host.invalid:x", None), ("git@192.0.2.7:x", Some("192.0.2.7"))]
        {
            let arguments = arguments_of_ssh(url, address);
            assert!(
                !arguments.iter().any(|one| one.starts_with("HostName")),
                "{url}: {arguments:?}"
            );
        }
    }
}
