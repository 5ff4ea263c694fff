//! The request to a command to end by itself, before it is killed.

use rustix::process::{Pid, Signal};

/// Most processes that receive the signal.
#[cfg(target_os = "linux")]
const MAX_PROCESSES: usize = 4096;

/// Processes of a command that receive the signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Processes with ids of their own: the ones around them are spared, because their end would
    /// kill the command.
    Namespace,
    /// The descendants of its supervisor, which is spared because it kills them when it is stopped.
    Descendants,
    /// Its descendants, and its group.
    Group,
}

/// Sends TERM to the command that `top` runs, and to its descendants in whatever group they are.
#[cfg(target_os = "linux")]
pub(super) fn terminate(top: Pid, scope: Scope) {
    let inner = scope == Scope::Namespace;
    let own = levels("self");
    let mut pending = vec![top.as_raw_nonzero().get()];
    let mut count = 0;
    while let Some(parent) = pending.pop() {
        for child in children(parent) {
            count += 1;
            if count > MAX_PROCESSES {
                return;
            }
            pending.push(child);
            let reached = !inner || levels(&child.to_string()) > own;
            if let (true, Some(pid)) = (reached, Pid::from_raw(child)) {
                // It may have exited meanwhile.
                let _gone = rustix::process::kill_process(pid, Signal::TERM);
            }
        }
    }
    if scope == Scope::Group {
        let _gone = rustix::process::kill_process_group(top, Signal::TERM);
    }
}

/// Elsewhere the process group must suffice.
#[cfg(not(target_os = "linux"))]
pub(super) fn terminate(top: Pid, _scope: Scope) {
    let _gone = rustix::process::kill_process_group(top, Signal::TERM);
}

#[cfg(target_os = "linux")]
fn children(pid: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let listed =
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    listed
        .flat_map(|list| list.split_whitespace().filter_map(|p| p.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Returns the number of nested sets of process ids that a process has an id in.
#[cfg(target_os = "linux")]
fn levels(pid: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line.map_or(0, |ids| ids.split_whitespace().count())
}
