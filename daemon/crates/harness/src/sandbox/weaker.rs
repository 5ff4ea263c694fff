//! Tier B keeps its processes together without namespaces: a supervisor to which every orphan comes back.

use std::{
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

use super::step::{Confine, Step};

/// Runs the step in a process of its own, and kills all that is left when it has ended.
///
/// # Errors
/// What could not be started.
#[cfg(target_os = "linux")]
pub(super) fn supervise(inner: &Confine) -> Result<u8, String> {
    use rustix::process::{getpid, set_child_subreaper, set_parent_process_death_signal};
    set_child_subreaper(Some(getpid())).map_err(|e| format!("supervisor: {e}"))?;
    set_parent_process_death_signal(Some(Signal::TERM)).map_err(|e| format!("supervisor: {e}"))?;
    let ended = end_on_signal()?;
    let step = serde_json::to_string(&Step::Confine(inner.clone())).map_err(|e| e.to_string())?;
    let me = std::env::current_exe().map_err(|e| format!("supervisor: {e}"))?;
    let child = Command::new(me)
        .args([super::HELPER_WORD, &step])
        .stdin(Stdio::null())
        .spawn()
        .map_err(|e| format!("supervisor: {e}"))?;
    let main = i32::try_from(child.id()).map_err(|e| e.to_string())?;
    let code = follow(main, &ended);
    kill_all();
    Ok(code)
}

/// Elsewhere the process group has to do.
#[cfg(not(target_os = "linux"))]
pub(super) fn supervise(inner: &Confine) -> Result<u8, String> {
    let step = serde_json::to_string(&Step::Confine(inner.clone())).map_err(|e| e.to_string())?;
    let me = std::env::current_exe().map_err(|e| format!("supervisor: {e}"))?;
    let status = Command::new(me).args([super::HELPER_WORD, &step]).stdin(Stdio::null()).status();
    let code = status.map_err(|e| format!("supervisor: {e}"))?.code();
    Ok(code.and_then(|c| u8::try_from(c).ok()).unwrap_or(128))
}

/// Holds once this process is told to end.
static TOLD: AtomicBool = AtomicBool::new(false);

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a signal handler can be set in no other way")]
fn end_on_signal() -> Result<&'static AtomicBool, String> {
    extern "C" fn told(_: libc::c_int) {
        TOLD.store(true, Ordering::SeqCst);
    }
    // SAFETY: the handler only stores to an atomic; no other thread is here. Without SA_RESTART, so that a wait ends.
    let set = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = told as *const () as usize;
        libc::sigaction(libc::SIGTERM, &raw const action, std::ptr::null_mut())
    };
    if set == 0 { Ok(&TOLD) } else { Err("supervisor: no handler for signals".into()) }
}

/// Waits for the main process, taking in orphans meanwhile.
#[cfg(target_os = "linux")]
fn follow(main: i32, ended: &AtomicBool) -> u8 {
    loop {
        if ended.load(Ordering::SeqCst) {
            return 128 + 9;
        }
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == main => {
                let signal = status.terminating_signal().map(|s| 128 + s);
                let code = status.exit_status().or(signal).unwrap_or(1);
                return u8::try_from(code).unwrap_or(255);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return 1,
        }
    }
}

/// Kills every child until none is left. A killed one's children come here, so that none is missed.
#[cfg(target_os = "linux")]
fn kill_all() {
    let children = format!("/proc/self/task/{}/children", std::process::id());
    loop {
        for pid in std::fs::read_to_string(&children).unwrap_or_default().split_whitespace() {
            if let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) {
                let _gone = kill_process(pid, Signal::KILL);
            }
        }
        match wait(WaitOptions::empty()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
