//! Checks of the machine: git, file watching, the sandbox.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use cairn_config::Config;
use cairn_harness::sandbox::Tier;

use super::{Check, Outcome};

/// Time limit of `git --version`.
const GIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Recommended number of watched folders, for a large tree.
const RECOMMENDED_WATCHES: u64 = 65_536;
/// Recommended number of watching programs.
const RECOMMENDED_INSTANCES: u64 = 64;

/// Runs all checks of the machine.
pub fn all(config: &Config) -> Vec<Check> {
    let mut checks = vec![git()];
    if cfg!(target_os = "linux") {
        checks.push(limit(
            "watched folders",
            "/proc/sys/fs/inotify/max_user_watches",
            RECOMMENDED_WATCHES,
        ));
        checks.push(limit(
            "watchers",
            "/proc/sys/fs/inotify/max_user_instances",
            RECOMMENDED_INSTANCES,
        ));
        checks.push(openat2());
    }
    checks.extend(sandbox(config));
    checks.push(multicast());
    checks
}

fn git() -> Check {
    const NAME: &str = "git";
    let missing = |why: String| {
        Check::new(NAME, Outcome::Warn, why)
            .hint("install git: repositories cannot be cloned without it")
    };
    let Some(path) = in_path("git") else { return missing("git is not installed".into()) };
    let spawned = Command::new(&path)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(e) => return missing(format!("{}: {e}", path.display())),
    };
    let until = Instant::now() + GIT_TIMEOUT;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => {
                // The process may have ended already.
                let _already_exited = child.kill();
                let _already_exited = child.wait();
                return missing(format!("{} does not answer", path.display()));
            }
        }
    }
    match child.wait_with_output() {
        Ok(output) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout);
            Check::new(NAME, Outcome::Ok, format!("{} ({})", version.trim(), path.display()))
        }
        Ok(output) => missing(format!("{} exited with {}", path.display(), output.status)),
        Err(e) => missing(format!("{}: {e}", path.display())),
    }
}

/// Finds a program in the search path.
fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

fn number(path: &str) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn limit(name: &'static str, path: &str, recommended: u64) -> Check {
    match number(path) {
        None => Check::new(name, Outcome::Info, format!("{path} cannot be read")),
        Some(value) if value < recommended => {
            let key = path.trim_start_matches("/proc/sys/").replace('/', ".");
            Check::new(
                name,
                Outcome::Warn,
                format!("at most {value}; large trees are then scanned periodically instead"),
            )
            .hint(format!("sudo sysctl {key}={recommended}"))
        }
        Some(value) => Check::new(name, Outcome::Ok, format!("at most {value}")),
    }
}

#[cfg(target_os = "linux")]
fn openat2() -> Check {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
    let opened = rustix::fs::openat2(
        CWD,
        ".",
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::BENEATH,
    );
    match opened {
        Ok(_) => {
            Check::new("openat2", Outcome::Ok, "paths are resolved inside their root by the kernel")
        }
        Err(e) => Check::new(
            "openat2",
            Outcome::Info,
            format!("not available ({e}); paths are resolved step by step instead"),
        ),
    }
}

#[cfg(not(target_os = "linux"))]
fn openat2() -> Check {
    Check::new(
        "openat2",
        Outcome::Info,
        "only available on Linux; paths are resolved step by step instead",
    )
}

/// Finds the usable sandbox by trying.
fn sandbox(config: &Config) -> Vec<Check> {
    const NAME: &str = "sandbox";
    if !config.safety.sandbox_enabled {
        let text = "disabled: commands can do anything that you can";
        return vec![Check::new(NAME, Outcome::Warn, text).hint("set safety.sandbox_enabled")];
    }
    let sandbox = crate::compose::sandbox(config, config.safety.sandbox_blocked_paths.clone());
    let probe = sandbox.probe();
    let landlock = probe.landlock.map_or("no landlock".into(), |abi| format!("landlock {abi}"));
    let seccomp = if probe.seccomp { "seccomp" } else { "no seccomp" };
    let group = if probe.control_group { "control groups" } else { "per-process limits" };
    let bubblewrap = probe.bubblewrap.as_deref().unwrap_or("no bubblewrap");
    let parts = if cfg!(target_os = "macos") {
        "sandbox-exec".to_owned()
    } else {
        format!("{bubblewrap}, {landlock}, {seccomp}, {group}")
    };
    let main = match (probe.tier, &probe.why_not_full) {
        (Tier::Full, _) => Check::new(NAME, Outcome::Ok, format!("full: {parts}")),
        (tier, why) => {
            let why = why.as_deref().unwrap_or_default();
            let hint =
                "install bubblewrap, or set sandbox.whenMissing to ask in your own configuration";
            let text = format!(
                "commands are refused or need an approval: {} ({parts}): {why}",
                tier.label()
            );
            Check::new(NAME, Outcome::Warn, text).hint(hint)
        }
    };
    let stops =
        Check::new(NAME, Outcome::Info, format!("does not stop: {}", probe.notes.join("; ")));
    vec![main, stops]
}

fn multicast() -> Check {
    const NAME: &str = "local network";
    match mdns_sd::ServiceDaemon::new() {
        Ok(daemon) => {
            let _stopped = daemon.shutdown();
            Check::new(NAME, Outcome::Ok, "multicast can be used")
        }
        Err(e) => Check::new(
            NAME,
            Outcome::Info,
            format!("multicast cannot be used, so that no daemon is found there: {e}"),
        ),
    }
}
