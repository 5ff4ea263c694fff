//! Confinement that the helper applies to itself before it becomes the command.

use std::path::PathBuf;

use serde_json::json;

use super::{spec::Expected, step::Confine};

/// Confines this process and all that it will start. Returns what could be set up.
///
/// # Errors
/// The step that failed.
#[cfg(target_os = "linux")]
pub(super) fn apply(confine: &Confine) -> Result<serde_json::Value, String> {
    use super::seccomp::{Sockets, apply as forbid_calls};
    close_descriptors();
    if confine.outside_is_visible {
        // The command ends as well if its supervisor is killed.
        let signal = Some(rustix::process::Signal::KILL);
        rustix::process::set_parent_process_death_signal(signal)
            .map_err(|e| format!("parent: {e}"))?;
    }
    confine.expected.iter().try_for_each(check)?;
    confine.limits.apply()?;
    rustix::thread::set_no_new_privs(true).map_err(|e| format!("no_new_privs: {e}"))?;
    let landlock = landlock(confine)?;
    drop_capabilities()?;
    let sockets =
        if confine.network || confine.own_network { Sockets::Network } else { Sockets::Local };
    // The full sandbox shows no socket but those of the workspace.
    let closes_sockets = landlock.is_some_and(|version| version >= CLOSES_SOCKETS);
    forbid_calls(sockets, !confine.outside_is_visible || closes_sockets)?;
    Ok(json!({"landlock": landlock, "seccomp": true, "uid": rustix::process::getuid().as_raw()}))
}

/// Version of Landlock's interface from which sockets are closed by their paths.
pub(super) const CLOSES_SOCKETS: i32 = 9;

/// Only Linux has Landlock and seccomp.
#[cfg(not(target_os = "linux"))]
pub(super) fn apply(confine: &Confine) -> Result<serde_json::Value, String> {
    confine.limits.apply()?;
    Ok(json!({"landlock": null, "seccomp": false, "uid": rustix::process::getuid().as_raw()}))
}

/// Marks inherited descriptors close-on-exec: the daemon's own parent may have left some open.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe way to close descriptors that nothing here owns")]
fn close_descriptors() {
    // SAFETY: it marks them to be closed at exec and touches no memory; no descriptor above
    // standard error is in use.
    let _older_kernel = unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
}

/// Drops root's capabilities; since no program can add new ones, none can be regained.
#[cfg(target_os = "linux")]
fn drop_capabilities() -> Result<(), String> {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).map_err(|e| format!("capabilities: {e}"))
}

/// Fails if another folder was mounted than the one that was judged.
#[cfg(target_os = "linux")]
fn check(expected: &Expected) -> Result<(), String> {
    let swapped = || format!("'{}' changed while the command was started", expected.path.display());
    let stat = rustix::fs::lstat(&expected.path).map_err(|_| swapped())?;
    if expected.is(&stat) { Ok(()) } else { Err(swapped()) }
}

/// Returns Landlock rules for these paths. The opened path is compared with the judged one, so a
/// link that is swapped in gets no rule.
#[cfg(target_os = "linux")]
fn beneath<'a>(
    paths: &'a [PathBuf],
    access: landlock::BitFlags<landlock::AccessFs>,
    expected: &'a [Expected],
) -> impl Iterator<Item = Result<landlock::PathBeneath<std::os::fd::OwnedFd>, landlock::RulesetError>> + 'a
{
    use landlock::AccessFs;
    let files = AccessFs::from_file(landlock::ABI::V9);
    paths.iter().filter_map(move |path| {
        let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
        // A path that does not exist needs no rule.
        let opened = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&opened).ok()?;
        let judged = expected.iter().find(|e| e.path == *path);
        if judged.is_some_and(|e| !e.is(&stat)) {
            return None;
        }
        let folder =
            rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory;
        Some(Ok(landlock::PathBeneath::new(opened, if folder { access } else { access & files })))
    })
}

/// Closes all but the listed paths; returns the version of the interface, `None` if the kernel has
/// none.
#[cfg(target_os = "linux")]
fn landlock(confine: &Confine) -> Result<Option<i32>, String> {
    use landlock::{
        ABI, Access as _, AccessFs, AccessNet, Compatible as _, LandlockStatus, Ruleset,
        RulesetAttr as _, RulesetCreatedAttr as _, Scope,
    };
    let newest = ABI::V9;
    let failed = |e: landlock::RulesetError| format!("landlock: {e}");
    let mut rules = Ruleset::default()
        .set_compatibility(landlock::CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(newest))
        .and_then(|r| r.scope(Scope::AbstractUnixSocket | Scope::Signal))
        .map_err(failed)?;
    if !confine.network && !confine.own_network {
        rules = rules.handle_access(AccessNet::from_all(newest)).map_err(failed)?;
    }
    let status = rules
        .create()
        .and_then(|r| {
            r.add_rules(beneath(&confine.read, AccessFs::from_read(newest), &confine.expected))
        })
        .and_then(|r| {
            r.add_rules(beneath(&confine.write, AccessFs::from_all(newest), &confine.expected))
        })
        .and_then(|r| r.restrict_self())
        .map_err(failed)?;
    Ok(match status.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            Some(kernel_abi.unwrap_or(effective_abi as i32))
        }
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
    })
}
