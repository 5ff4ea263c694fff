//! A supervisor that tracks processes where no control group is available: every orphan is
//! re-parented to it.

use std::process::Command;

/// Runs a program in a child process, and kills all remaining descendants when it has exited, when
/// `parent` has ended, or when this process receives a signal to stop. With `spares_rest` they
/// remain if the program exits by itself.
///
/// # Errors
/// The program that could not be started.
#[cfg(target_os = "linux")]
pub(super) fn supervise(argv: &[String], parent: u32, spares_rest: bool) -> Result<u8, String> {
    use rustix::process::{
        Signal, getpid, getppid, set_child_subreaper, set_parent_process_death_signal,
    };
    let signals = Signals::block()?;
    set_child_subreaper(Some(getpid())).map_err(|e| format!("supervisor: {e}"))?;
    set_parent_process_death_signal(Some(Signal::TERM)).map_err(|e| format!("supervisor: {e}"))?;
    // The signal is not sent for a parent that has ended before.
    if getppid().is_none_or(|pid| pid.as_raw_nonzero().get().unsigned_abs() != parent) {
        return Err("the daemon has ended".into());
    }
    let main = i32::try_from(start(argv)?.id()).map_err(|e| e.to_string())?;
    let (code, is_stopped) = follow(main, &signals);
    if is_stopped || !spares_rest {
        kill_all();
    }
    Ok(code)
}

/// Elsewhere the process group must suffice.
#[cfg(not(target_os = "linux"))]
pub(super) fn supervise(argv: &[String], _parent: u32, _spares: bool) -> Result<u8, String> {
    let status = start(argv)?.wait().map_err(|e| format!("supervisor: {e}"))?;
    Ok(status.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(128))
}

fn start(argv: &[String]) -> Result<std::process::Child, String> {
    let (program, rest) = argv.split_first().ok_or("there is no program to run")?;
    let child = Command::new(program).args(rest).spawn();
    child.map_err(|e| format!("program {program} cannot be run: {e}"))
}

/// SIGCHLD and the stop signals, blocked until they are waited for, so that none is missed.
/// Children start with the usual mask.
#[cfg(target_os = "linux")]
struct Signals(libc::sigset_t);

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "signals can be waited for in no other way")]
impl Signals {
    fn block() -> Result<Self, String> {
        // SAFETY: the set is initialised empty before it is used, and lives on the stack; there is
        // no other thread.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGTERM);
            libc::sigaddset(&raw mut set, libc::SIGCHLD);
            match libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) {
                0 => Ok(Self(set)),
                _ => Err("supervisor: signals cannot be blocked".into()),
            }
        }
    }

    /// Waits for the next signal.
    fn next(&self) -> libc::c_int {
        let mut signal = 0;
        // SAFETY: both point to values that live here; the set was initialised by `block`.
        unsafe { libc::sigwait(&raw const self.0, &raw mut signal) };
        signal
    }
}

/// Waits for the main process and reaps orphans meanwhile. Returns its exit code, and true if a
/// signal to stop came first.
#[cfg(target_os = "linux")]
fn follow(main: i32, signals: &Signals) -> (u8, bool) {
    use rustix::process::{WaitOptions, wait};
    loop {
        if signals.next() == libc::SIGTERM {
            return (128 + 9, true);
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == main => {
                    let signal = status.terminating_signal().map(|s| 128 + s);
                    let code = status.exit_status().or(signal).unwrap_or(1);
                    return (u8::try_from(code).unwrap_or(255), false);
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => break,
                Err(_) => return (1, false),
            }
        }
    }
}

/// Kills every child until none remains. Children of a killed process are re-parented here, so that
/// none is missed.
#[cfg(target_os = "linux")]
fn kill_all() {
    use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
    let children = format!("/proc/self/task/{}/children", std::process::id());
    loop {
        for pid in std::fs::read_to_string(&children).unwrap_or_default().split_whitespace() {
            if let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) {
                let _result = kill_process(pid, Signal::KILL);
            }
        }
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
