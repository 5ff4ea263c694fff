//! The helper: our own binary, run again with a step in JSON as its argument.

use std::{
    os::{
        fd::{AsRawFd as _, IntoRawFd as _},
        unix::process::CommandExt as _,
    },
    path::PathBuf,
    process::Command,
};

use serde::{Deserialize, Serialize};

use super::{confine, limits::Rlimits, spec::Expected, supervise};

/// The exit code of a helper that could not set the sandbox up; no command was run then.
pub(super) const FAILED: i32 = 125;
/// Prefix of the helper's error messages.
pub(super) const MARK: &str = "cairn sandbox: ";

/// Hash of the helper's sources: a helper with other sources is not used.
pub(super) const BUILD: u64 = build(&[
    include_bytes!("step.rs"),
    include_bytes!("bridge.rs"),
    include_bytes!("confine.rs"),
    include_bytes!("limits.rs"),
    include_bytes!("seccomp.rs"),
    include_bytes!("supervise.rs"),
]);

/// FNV-1a with 64 bits.
const fn build(sources: &[&[u8]]) -> u64 {
    let (mut hash, mut n) = (0xcbf2_9ce4_8422_2325_u64, 0);
    while n < sources.len() {
        let mut at = 0;
        while at < sources[n].len() {
            hash = (hash ^ sources[n][at] as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        n += 1;
    }
    hash
}

/// A step for the helper to perform.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub(super) enum Step {
    /// Confine this process, then become the command.
    Confine(Confine),
    /// Run `argv`; when it exits, `parent` has ended, or this process receives a signal to stop,
    /// kill all its descendants.
    Supervise {
        /// The program and its arguments.
        argv: Vec<String>,
        /// Process that this one must not outlive.
        parent: u32,
        /// True if descendants may remain when the program exits by itself.
        spares_rest: bool,
    },
    /// Print [`BUILD`], to compare versions.
    Build,
}

/// Returns true if `helper` was built from the sources of this build.
pub(super) fn is_of_this_build(helper: &std::path::Path) -> bool {
    let Ok(step) = serde_json::to_string(&Step::Build) else { return false };
    let mut ask = Command::new(helper);
    ask.args([super::HELPER_WORD, &step]).env_clear().stdin(std::process::Stdio::null());
    ask.output().is_ok_and(|report| {
        report.status.success() && report.stdout == BUILD.to_string().as_bytes()
    })
}

/// Confinement of a process from inside.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Confine {
    /// Readable and executable paths.
    pub read: Vec<PathBuf>,
    /// Paths that are writable as well.
    pub write: Vec<PathBuf>,
    /// True if the network may be used.
    pub network: bool,
    /// True if the network is a separate namespace, so that its sockets lead nowhere.
    pub own_network: bool,
    /// True if a port on loopback leads to the proxy's socket.
    pub proxy: bool,
    /// True if standard input is a pipe that served another purpose: it is then replaced by an
    /// empty one.
    pub used_input: bool,
    /// Paths with the device and inode that they must have.
    pub expected: Vec<Expected>,
    /// True if files outside of the workspace are visible, among them sockets of other programs.
    pub outside_is_visible: bool,
    /// True if the command may start no other program.
    pub sole_program: bool,
    pub limits: Rlimits,
    /// The command; when empty, the helper prints in JSON what could be set up.
    pub argv: Vec<String>,
}

/// The main function of the helper: `args` are the arguments after [`super::HELPER_WORD`]. It
/// returns only when no command could be run, or after a probe.
pub fn sandbox_main(args: impl Iterator<Item = std::ffi::OsString>) -> std::process::ExitCode {
    let mut args = args;
    let text = args.next().unwrap_or_default();
    let done = serde_json::from_slice(text.as_encoded_bytes())
        .map_err(|e| format!("only cairn may call this: {e}"))
        .and_then(take);
    match done {
        Ok(code) => std::process::ExitCode::from(code),
        Err(why) => {
            use std::io::Write as _;
            // If standard error is closed, the exit code is enough.
            let _closed = writeln!(std::io::stderr(), "{MARK}{why}");
            std::process::ExitCode::from(u8::try_from(FAILED).unwrap_or(1))
        }
    }
}

fn take(step: Step) -> Result<u8, String> {
    match step {
        Step::Confine(inner) => {
            if inner.used_input {
                empty_input()?;
            }
            let report = confine::apply(&inner)?;
            if inner.argv.is_empty() {
                return print(&report.to_string());
            }
            if inner.proxy {
                start_bridge()?;
            }
            Err(if inner.sole_program {
                become_sole(&inner.argv)
            } else {
                become_command(&inner.argv)
            })
        }
        Step::Supervise { argv, parent, spares_rest } => {
            supervise::supervise(&argv, parent, spares_rest)
        }
        Step::Build => print(&BUILD.to_string()),
    }
}

fn print(text: &str) -> Result<u8, String> {
    use std::io::Write as _;
    std::io::stdout().write_all(text.as_bytes()).map(|()| 0).map_err(|e| e.to_string())
}

#[cfg(target_os = "linux")]
fn start_bridge() -> Result<(), String> {
    super::bridge::start()
}

/// Only a network namespace has loopback ports of its own.
#[cfg(not(target_os = "linux"))]
fn start_bridge() -> Result<(), String> {
    Err("there is no proxy on this system".into())
}

/// Replaces standard input by an empty one: some programs read a pipe instead of their arguments.
fn empty_input() -> Result<(), String> {
    let failed = |e: std::io::Error| format!("standard input: {e}");
    let nothing = std::fs::File::open("/dev/null").map_err(failed)?;
    if nothing.as_raw_fd() == 0 {
        // Descriptor 0 was closed, and the new file has taken its number.
        let _fd = nothing.into_raw_fd();
        return Ok(());
    }
    rustix::stdio::dup2_stdin(&nothing).map_err(|e| failed(e.into()))
}

/// Replaces this process; returns only on failure, with the reason.
fn become_command(argv: &[String]) -> String {
    let Some((program, rest)) = argv.split_first() else {
        return "there is no program to run".into();
    };
    let error = Command::new(program).args(rest).exec();
    format!("program {program} cannot be run: {error}")
}

/// Replaces this process by a program after which no other can be started, by it or its threads.
#[cfg(target_os = "linux")]
fn become_sole(argv: &[String]) -> String {
    super::seccomp::become_sole(argv)
}

/// Only Linux can distinguish this start of a program from later ones; elsewhere the profile
/// enforces it.
#[cfg(not(target_os = "linux"))]
fn become_sole(argv: &[String]) -> String {
    become_command(argv)
}
