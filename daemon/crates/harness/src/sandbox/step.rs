//! The helper: our own binary, run again with a step in JSON as its argument.

use std::{os::unix::process::CommandExt as _, path::PathBuf, process::Command};

use serde::{Deserialize, Serialize};

use super::{confine, limits::Rlimits, supervise};

/// The exit code of a helper that could not set the sandbox up; nothing was run then.
pub(super) const FAILED: i32 = 125;
/// What its message begins with.
pub(super) const MARK: &str = "cairn sandbox: ";

/// What the helper is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub(super) enum Step {
    /// Set up what confines this process, then become the command.
    Confine(Confine),
    /// Run `argv` and, when it ends or this process is told to end, kill all that it started.
    Supervise {
        /// The program.
        argv: Vec<String>,
    },
}

/// What confines a process from inside.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Confine {
    /// Paths that can be read and run.
    pub read: Vec<PathBuf>,
    /// Paths that can be written to as well.
    pub write: Vec<PathBuf>,
    /// Whether the network may be used.
    pub network: bool,
    /// Whether the network is one of its own, so that its sockets lead nowhere.
    pub own_network: bool,
    /// Limits.
    pub limits: Rlimits,
    /// The command; when empty, say in JSON what could be set up.
    pub argv: Vec<String>,
}

/// The main function of the helper: `args` are the arguments after [`super::HELPER_WORD`]. It returns only when
/// nothing could be run, or after a probe.
pub fn sandbox_main(args: impl Iterator<Item = std::ffi::OsString>) -> std::process::ExitCode {
    let mut args = args;
    let text = args.next().unwrap_or_default();
    let done = serde_json::from_slice(text.as_encoded_bytes())
        .map_err(|e| format!("this is called by cairn alone: {e}"))
        .and_then(take);
    match done {
        Ok(code) => std::process::ExitCode::from(code),
        Err(why) => {
            use std::io::Write as _;
            // With nobody listening the code says enough.
            let _closed = writeln!(std::io::stderr(), "{MARK}{why}");
            std::process::ExitCode::from(u8::try_from(FAILED).unwrap_or(1))
        }
    }
}

fn take(step: Step) -> Result<u8, String> {
    match step {
        Step::Confine(inner) => {
            let told = confine::apply(&inner)?;
            if inner.argv.is_empty() {
                use std::io::Write as _;
                std::io::stdout().write_all(told.to_string().as_bytes()).map_err(|e| e.to_string())?;
                return Ok(0);
            }
            Err(become_command(&inner.argv))
        }
        Step::Supervise { argv } => supervise::supervise(&argv),
    }
}

/// Replaces this process; comes back only with the reason why not.
fn become_command(argv: &[String]) -> String {
    let Some((program, rest)) = argv.split_first() else { return "there is no program to run".into() };
    let error = Command::new(program).args(rest).exec();
    format!("program {program} cannot be run: {error}")
}
