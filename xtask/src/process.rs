//! Other programs, run with messages that name them.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Stdio},
};

/// Runs a program whose output goes to the terminal.
pub fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.stdin(Stdio::null()).status().map_err(|e| missing(&name, &e))?;
    if status.success() { Ok(()) } else { Err(format!("{name}: {status}")) }
}

/// Returns the standard output of a program; its errors are part of the message of a failure.
pub fn output(program: &str, args: &[impl AsRef<OsStr>], folder: &Path) -> Result<String, String> {
    output_of(Command::new(program).args(args).current_dir(folder))
}

/// Returns the standard output of a command.
pub fn output_of(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|e| missing(&name, &e))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    Err(format!("{name}: {}\n{}{}", output.status, text.trim_end(), errors.trim_end()))
}

fn missing(name: &str, error: &std::io::Error) -> String {
    format!("cannot run {name}: {error}")
}
