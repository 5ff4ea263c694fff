//! Checks of the machine: git, file watching, the sandbox.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use cairn_config::{Config, DiagnosticsMode};
use cairn_harness::sandbox::Tier;

use super::{Check, remedy};
use crate::language_servers;

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
    checks.push(language_servers(config));
    checks.push(multicast());
    checks
}

fn git() -> Check {
    const NAME: &str = "git";
    let missing = |why: String| {
        let text = format!("{why}: repositories cannot be cloned");
        Check::warn(NAME, text, remedy::install("git", &remedy::os_release()))
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
            Check::ok(NAME, format!("{} ({})", version.trim(), path.display()))
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
        None => Check::info(name, format!("{path} cannot be read")),
        Some(value) if value < recommended => {
            let key = path.trim_start_matches("/proc/sys/").replace('/', ".");
            Check::warn(
                name,
                format!("at most {value}; large trees are then scanned periodically instead"),
                format!("sudo sysctl {key}={recommended}"),
            )
        }
        Some(value) => Check::ok(name, format!("at most {value}")),
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
        Ok(_) => Check::ok("openat2", "paths are resolved inside their root by the kernel"),
        Err(e) => Check::info(
            "openat2",
            format!("not available ({e}); paths are resolved step by step instead"),
        ),
    }
}

#[cfg(not(target_os = "linux"))]
fn openat2() -> Check {
    Check::info("openat2", "only available on Linux; paths are resolved step by step instead")
}

/// Lists the language servers that check edits.
fn language_servers(config: &Config) -> Check {
    const NAME: &str = "language servers";
    let path = language_servers::search_path();
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for spec in language_servers::specs(config).iter().filter(|spec| !spec.commands.is_empty()) {
        match language_servers::find(spec, &path).and_then(|program| program.argv.first().cloned())
        {
            Some(file) => found.push(format!("{} ({file})", spec.name)),
            None => missing.push(spec.name.clone()),
        }
    }
    let list = |names: &[String]| {
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let mode = match config.diagnostics.mode {
        DiagnosticsMode::Auto | DiagnosticsMode::Server => "",
        DiagnosticsMode::Command | DiagnosticsMode::Off => "; not used by diagnostics.mode",
    };
    let text = format!("found: {}; not found: {}{mode}", list(&found), list(&missing));
    Check::info(NAME, text)
}

/// Finds the usable sandbox by trying.
fn sandbox(config: &Config) -> Vec<Check> {
    const NAME: &str = "sandbox";
    if !config.safety.sandbox_enabled {
        let text = "disabled: commands can do anything that you can";
        let hint = "set safety.sandboxEnabled to true in your configuration";
        return vec![Check::warn(NAME, text, hint)];
    }
    let sandbox =
        crate::compose::sandbox(config, config.safety.sandbox_blocked_paths.clone(), vec![]);
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
        (Tier::Full, _) => Check::ok(NAME, format!("full: {parts}")),
        (tier, why) => {
            let why = why.as_deref().unwrap_or_default();
            let text = format!(
                "commands are refused or need an approval: {} ({parts}): {why}",
                tier.label()
            );
            Check::warn(NAME, text, sandbox_remedy(probe.bubblewrap.is_none()))
        }
    };
    let stops = Check::info(NAME, format!("does not stop: {}", probe.notes.join("; ")));
    vec![main, stops]
}

/// Returns the line that makes the sandbox usable.
fn sandbox_remedy(lacks_bubblewrap: bool) -> String {
    if lacks_bubblewrap {
        return remedy::install("bubblewrap", &remedy::os_release());
    }
    let switch = remedy::NAMESPACE_SWITCHES
        .iter()
        .find(|(file, forbids, _)| number(file) == Some(*forbids))
        .map(|(_, _, line)| *line);
    switch
        .unwrap_or(
            "set sandbox.whenMissing to ask in your own configuration: you approve each command",
        )
        .to_owned()
}

fn multicast() -> Check {
    const NAME: &str = "local network";
    match mdns_sd::ServiceDaemon::new() {
        Ok(daemon) => {
            let _stopped = daemon.shutdown();
            Check::ok(NAME, "multicast can be used")
        }
        Err(e) => Check::info(
            NAME,
            format!("multicast cannot be used, so that no daemon is found there: {e}"),
        ),
    }
}
