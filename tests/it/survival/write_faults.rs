//! Each write of the daemon fails once, with EIO or ENOSPC: `strace` makes the n-th system call of
//! every thread fail.

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, Stdio},
};

use cairn_test_support::{Rng, random};

use super::workload::Workload;
use crate::{
    contents::count,
    sealed::{Daemon, missing, note},
};

/// System calls that change files, except plain writes: those go to sockets and pipes as well.
const CHANGES: [&str; 6] =
    ["pwrite64", "fsync", "fdatasync", "ftruncate", "rename,renameat,renameat2", "unlink,unlinkat"];
/// Reasons on the wire that such a failure may have.
const REASONS: [&str; 6] =
    ["storage_failed", "disk_full", "io_failed", "git_failed", "index_failed", "audit_failed"];

pub fn has_strace() -> bool {
    let mut strace = Command::new("strace");
    strace.arg("-V").stdout(Stdio::null()).stderr(Stdio::null());
    strace.status().is_ok_and(|status| status.success())
}

/// One failing system call of each thread.
struct Fault {
    syscalls: &'static str,
    error: &'static str,
    number: usize,
}

impl Fault {
    /// Starts a daemon in which it happens, with a log of these system calls.
    fn start(&self, home: &Path, log: &Path) -> Result<Daemon, Option<i32>> {
        let inject = format!("inject={}:error={}:when={}", self.syscalls, self.error, self.number);
        let trace = format!("trace={}", self.syscalls);
        let log = log.to_str().unwrap();
        let strace = ["strace", "-D", "-f", "-qq", "--seccomp-bpf", "-e", "signal=none", "-o", log];
        Daemon::start_under(home, &[&strace[..], &["-e", &trace, "-e", &inject]].concat())
    }
}

/// Result of one round.
enum Round {
    /// No thread made so many of these calls.
    NeverHappened,
    NotStarted,
    Failed(usize),
}

/// Runs a session in which the fault happens, and checks the data folder after a restart.
async fn round(fault: &Fault, rng: &mut Rng) -> Round {
    let dir = tempfile::tempdir().unwrap();
    let (home, log) = (dir.path().join("home"), dir.path().join("strace.log"));
    let mut workload = Workload::new(dir.path());
    let mut has_started = false;
    if let Ok(mut daemon) = fault.start(&home, &log) {
        // The last step of the start may be the one that fails.
        if let Some(mut raw) = daemon.try_client().await {
            has_started = true;
            let _cut = workload.every_step(&mut raw, rng).await;
        }
        daemon.stop();
    }
    for (method, reason) in &workload.failures {
        assert!(REASONS.contains(&&**reason), "{method}: {reason}");
        let is_wrong = fault.error == "EIO" && reason == "disk_full";
        assert!(!is_wrong, "{method}: {reason}, but the disk has space");
    }
    let failed = workload.failures.len();
    let traced = std::fs::read_to_string(&log).unwrap_or_default();
    let happened = traced.contains("(INJECTED)");
    assert!(has_started || happened, "the daemon did not start: {}", crate::sealed::logged(&home));
    // It works again, with everything that was acknowledged.
    let daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    workload.check(&mut raw, &home).await;
    workload.failures.clear();
    assert!(workload.every_step(&mut raw, rng).await.is_ok());
    assert_eq!(workload.failures, [], "it works again");
    match (happened, has_started) {
        (false, _) => Round::NeverHappened,
        (true, false) => Round::NotStarted,
        (true, true) => Round::Failed(failed),
    }
}

/// `CAIRN_WRITE_FAULTS=1` tries every write, the short form every 40th at a random offset.
#[tokio::test]
async fn every_write_can_fail_once() {
    if !has_strace() {
        return missing("strace");
    }
    let mut rng = random("failing writes");
    let stride = count("CAIRN_WRITE_FAULTS", 40);
    let (mut rounds, mut not_started, mut errors) = (0, 0, 0);
    let mut never = BTreeSet::new();
    for error in ["EIO", "ENOSPC"] {
        for syscalls in CHANGES {
            let mut number = 1 + rng.usize(..stride.min(6));
            loop {
                note(&format!("call {number} of {syscalls} fails with {error}"));
                match round(&Fault { syscalls, error, number }, &mut rng).await {
                    Round::NeverHappened => {
                        if number == 1 {
                            never.insert(syscalls);
                        }
                        break;
                    }
                    Round::NotStarted => not_started += 1,
                    Round::Failed(failed) => errors += failed,
                }
                rounds += 1;
                number += stride;
            }
        }
    }
    note(&format!(
        "{rounds} failing writes: {not_started} prevented the start, {errors} calls had an error"
    ));
    assert!(rounds > 0 && never.len() < CHANGES.len(), "no fault happened: {never:?}");
}
