//! The commonest tasks at the command line: keys and seconds of each.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use crate::{
    daemon::binary,
    meter::{quantile, report, timed, value},
};

/// Times that each command is measured after the first, by which the folder is indexed.
const TIMES: usize = 5;

/// Commands as a user types them in the folder, in the order of a first day.
const COMMANDS: [&[&str]; 22] = [
    &["search", "open a file"],
    &["symbols", "open"],
    &["grep", "-n", "open"],
    &["grep", "-l", "open"],
    &["grep", "--files"],
    &["map"],
    &["refs", "open"],
    &["explore", "."],
    &["history", "open"],
    &["sessions", "--list"],
    &["trace", "show", "last"],
    &["approvals"],
    &["audit"],
    &["worktrees"],
    &["status"],
    &["models"],
    &["config"],
    &["tools"],
    &["du"],
    &["doctor"],
    &["schedule"],
    &["--help"],
];

/// Measures the commands in `folder` with a daemon in `home` that the first of them starts.
pub fn run(folder: &Path, home: &Path) {
    let (code, ms) = timed(|| code_of(&["search", "open a file"], folder, home));
    report(format!(
        "command: {:27} {} s, exit {code}: starts the daemon and indexes",
        "the first search",
        seconds(ms)
    ));
    for arguments in COMMANDS {
        let runs: Vec<(i32, f64)> =
            (0..TIMES).map(|_| timed(|| code_of(arguments, folder, home))).collect();
        let p50 = quantile(&mut runs.iter().map(|(_, ms)| *ms).collect::<Vec<_>>(), 0.5);
        let line = line(arguments);
        value(&format!("command {line} p50 ms"), p50);
        // The line and Enter.
        let keys = line.chars().count() + 1;
        report(format!("command: {line:27} {} s, {keys:2} keys, exit {}", seconds(p50), runs[0].0));
    }
    code_of(&["stop"], folder, home);
}

/// Runs a command without its output, and returns its exit code; -1 for none.
fn code_of(arguments: &[&str], folder: &Path, home: &Path) -> i32 {
    let mut command = Command::new(binary());
    command.args(arguments).current_dir(folder).env("CAIRN_HOME", home).stdin(Stdio::null());
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.expect("target/release/cairn: build it first").code().unwrap_or(-1)
}

/// The line that a user types.
fn line(arguments: &[&str]) -> String {
    let quoted = |argument: &&str| match argument.contains(' ') {
        true => format!("'{argument}'"),
        false => (*argument).to_owned(),
    };
    format!("cairn {}", arguments.iter().map(quoted).collect::<Vec<_>>().join(" "))
}

fn seconds(ms: f64) -> String {
    format!("{:.2}", ms / 1000.0)
}
